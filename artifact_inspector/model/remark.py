"""Severity and origin of remarks and findings."""

from __future__ import annotations

from artifact_inspector.model.string_enum import StringEnum


class Severity(StringEnum):
    """The likely cost of a finding, not its correctness."""

    WARNING = "warning"
    """Usually costs time, and can be avoided by writing or compiling the kernel differently."""
    NOTE = "note"
    """A fact that explains a measurement; the kernel may need it."""


class RemarkKind(StringEnum):
    """Kind of a compiler's remark."""

    REMARK = "remark"
    WARNING = "warning"
    ERROR = "error"
    ADVISORY = "advisory"
    """ptxas's own performance advice."""


class CompilerTool(StringEnum):
    """The compiler that printed the remark."""

    TRITON = "triton"
    PTXAS = "ptxas"
