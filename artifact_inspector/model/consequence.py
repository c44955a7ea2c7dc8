"""Topics of differences between two kernels, the most important first."""

from __future__ import annotations

from artifact_inspector.model.string_enum import StringEnum


class Consequence(StringEnum):
    """Topic of a difference; members are listed in the order in which users should read them."""

    FIT = "does not fit"
    LAUNCH = "cannot launch"
    SPILLS = "spills"
    MATRIX = "matrix unit lost"
    DRAIN = "pipeline drains"
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
