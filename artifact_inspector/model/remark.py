"""The words for how much a remark matters, and for who made it."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Severity(Word):
    """How much a finding is likely to cost; never whether it is wrong."""

    WARNING = "warning"
    """As a rule it costs time, and another way of writing or compiling the kernel avoids it."""
    NOTE = "note"
    """A fact that explains a measurement; it may be what the kernel needs."""


class RemarkKind(Word):
    """What a compiler's remark is."""

    REMARK = "remark"
    WARNING = "warning"
    ERROR = "error"
    ADVISORY = "advisory"
    """ptxas's own advice about performance."""


class Tool(Word):
    """Which compiler said it."""

    TRITON = "triton"
    PTXAS = "ptxas"
