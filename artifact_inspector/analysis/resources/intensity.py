"""The arithmetic intensity of one pass through a region: bytes loaded and operations computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork


class Intensity(NamedTuple):
    """Loads and dots of one pass through a region of the program, each counted once."""

    loaded: int
    """Bytes per CTA and pass, for whole tiles: masked elements are counted."""
    flop: int
    """FLOP of the dots per CTA and pass."""
    element: str
    """Type of the first operand of the dots: `f16`."""

    @property
    def flop_per_byte(self) -> float:
        """FLOP per loaded byte, from any level of the memory hierarchy."""
        return self.flop / self.loaded


def find_intensity(accesses: AccessCounts, dots: Sequence[MatrixWork]) -> Intensity | None:
    """The intensity of a region of tensor-level IR; None without loads or dots, or if a size is unknown.

    Dots and loads on mutually exclusive paths would all be counted, so a region with such dots has none.
    """
    sizes = {**accesses.loads, **accesses.copies, **accesses.tiles}
    if not accesses.tiles or len(sizes) > len(accesses.tiles) or not dots:
        return None
    if None in accesses.tiles or any(dot.flop is None or dot.along_path != dot.count for dot in dots):
        return None
    loaded = sum((size or 0) * count for size, count in accesses.tiles.items())
    first = dots[0].matrix
    if not loaded or first is None:
        return None
    return Intensity(loaded, sum(dot.flop or 0 for dot in dots), first.operands[0])
