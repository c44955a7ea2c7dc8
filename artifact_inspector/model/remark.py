"""Severity and origin of remarks and findings; topics of differences between two kernels."""

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


class Consequence(StringEnum):
    """Topic of a difference; members are listed in the order in which users should read them."""

    FIT = "does not fit"
    LAUNCH = "cannot launch"
    MATRIX = "matrix unit lost"
    ATOMICS = "native atomic lost"
    SPILLS = "spills"
    DRAIN = "pipeline drains"
    OPERANDS = "operands by element"
    ASYNCHRONY = "pipeline through registers"
    ACCESS = "access width"
    EXCHANGE = "exchange between warps"
    OCCUPANCY = "occupancy"
    IN_FLIGHT = "in flight"
    ORDER = "order"
    OTHER = "the rest"

    @property
    def rank(self) -> int:
        """Position in the order of importance; 0 is the most important.

        Example:
            >>> Consequence.FIT.rank < Consequence.SPILLS.rank < Consequence.OTHER.rank
            True
        """
        return _RANKS[self]


_RANKS = {member: rank for rank, member in enumerate(Consequence)}
