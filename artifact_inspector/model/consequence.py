"""What news of a kernel is about, the most decisive first."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Consequence(Word):
    """What news is about; the members stand in the order in which people should read them."""

    FIT = "does not fit"
    LAUNCH = "cannot launch"
    SPILLS = "spills"
    MATRIX = "matrix unit lost"
    OCCUPANCY = "occupancy"
    IN_FLIGHT = "in flight"
    ORDER = "order"
    REST = "the rest"

    @property
    def rank(self) -> int:
        """0 for what decides most.

        Example:
            >>> Consequence.FIT.rank < Consequence.SPILLS.rank < Consequence.REST.rank
            True
        """
        return _RANKS[self]


_RANKS = {member: rank for rank, member in enumerate(Consequence)}
