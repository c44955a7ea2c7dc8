"""How a layout splits a dot: into whole instructions on all warps, even if the tile is smaller.

Triton gives every warp at least one instruction along each dimension. A tile smaller than the instructions of all warps
is computed more than once, or padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import NamedTuple

from artifact_inspector.analysis.matrix.matrix_work import Tiling
from artifact_inspector.hardware.matrix import WARPS_PER_WARPGROUP
from artifact_inspector.model import Issuer, MatrixOp


@dataclass(frozen=True, slots=True)
class KnownMatrixWork:
    """Equal operations of a region with all factors known."""

    op: MatrixOp
    count: int
    along_path: int
    issuers: int
    """In all blocks that share the tile."""
    tiling: Tiling | None
    precision: str | None
    sources: tuple[str, ...]
    exclusive_sources: tuple[str, ...] = ()
    """Lines of dots that never execute in the same pass."""

    @property
    def flop(self) -> int:
        """Operations of one pass by all issuers."""
        return self.count * self.op.flop * self.issuers

    @property
    def flop_along_path(self) -> int:
        """The maximum of these on one path."""
        return self.along_path * self.op.flop * self.issuers

    @property
    def warps_per_issue(self) -> int:
        """Number of warps that issue one instruction jointly."""
        return WARPS_PER_WARPGROUP if self.op.issuer == Issuer.WARPGROUP else 1


class RegionMatrixWork(NamedTuple):
    """A region at both stages."""

    name: str
    dots: tuple[KnownMatrixWork, ...]
    instructions: tuple[KnownMatrixWork, ...]
    unknown_reason: str
    """Why the work is unknown; empty if it is known."""
    unroll_factor: int
    is_dissolved: bool
    enclosing_regions: frozenset[str] | None
    """Enclosing regions; None if unknown."""
    sources: frozenset[str]
    ctas: int

    @property
    def dot_flop(self) -> int:
        """Operations of the dots."""
        return sum(dot.flop for dot in self.dots)

    @property
    def padded_flop(self) -> int:
        """Operations of the dots as the layouts split them: whole instructions on all warps."""
        return sum(padded_flop_of(dot, self.instructions) * dot.count for dot in self.dots)

    @property
    def padded_flop_along_path(self) -> int:
        """The part of these on one path. Of mutually exclusive dots, the first counts."""
        return sum(padded_flop_of(dot, self.instructions) * dot.along_path for dot in self.on_one_path)

    @property
    def on_one_path(self) -> tuple[KnownMatrixWork, ...]:
        """The dots, without those that exclude an earlier one."""
        compatible_dots: list[KnownMatrixWork] = []
        for dot in self.dots:
            if not any(set(dot.exclusive_sources).intersection(kept_dot.sources) for kept_dot in compatible_dots):
                compatible_dots.append(dot)
        return tuple(compatible_dots)

    @property
    def instruction_flop(self) -> int:
        """Operations of the instructions."""
        return sum(work.flop for work in self.instructions)

    @property
    def iteration_flop(self) -> int:
        """Operations of one iteration as the instructions execute it: the amount that a copy of it adds."""
        return self.padded_flop if self.dots else self.instruction_flop // self.unroll_factor


class _DotTiling(NamedTuple):
    """How a dot is split into instructions: extents of M, N, K and the batch."""

    instruction: tuple[int, int, int]
    warps: tuple[int, ...]
    padded_extents: tuple[int, int, int, int]
    copies: int
    """Number of times that the layout's warps fit into the warps that run it. All of them do the work."""


def padded_flop_of(dot: KnownMatrixWork, works: tuple[KnownMatrixWork, ...]) -> int:
    """Operations of one dot if each warp executes whole instructions and no warp is idle."""
    tiling = _tile_dot(dot, works)
    return dot.op.flop if tiling is None else 2 * prod(tiling.padded_extents) * tiling.copies


def describe_redundancy(dot: KnownMatrixWork, works: tuple[KnownMatrixWork, ...]) -> str:
    """How the layout covers more than the tile, as text; empty if it covers it exactly."""
    tiling = _tile_dot(dot, works)
    padded_flop = padded_flop_of(dot, works)
    if tiling is None or padded_flop == dot.op.flop:
        return ""
    tile = (dot.op.m, dot.op.n, dot.op.k, dot.op.blocks)
    # M and N always; K and the batch only if the layout does not match them exactly.
    shown_axes = [axis for axis in range(4) if axis < 2 or tiling.padded_extents[axis] != tile[axis]]
    warps = "×".join(map(str, tiling.warps))
    instruction, covered, wanted = (
        "×".join(str(extents[axis]) for axis in shown_axes)
        for extents in ((*tiling.instruction, 1), tiling.padded_extents, tile)
    )
    return (
        (f"{tiling.copies} times " if tiling.copies > 1 else "")
        + f"{warps} warps of {instruction} cover {covered}, but the tile is {wanted}: "
        + f"×{padded_flop / dot.op.flop:.3g} the work"
    )


def _tile_dot(dot: KnownMatrixWork, works: tuple[KnownMatrixWork, ...]) -> _DotTiling | None:
    """How a layout splits one dot; None if unknown."""
    work = _instruction_of(dot, works)
    if work is None or dot.tiling is None or not dot.tiling.is_matrix or dot.tiling.ctas > 1:
        return None
    m, n, k = _extents(dot.tiling.instruction, work)
    warps = dot.tiling.warps if len(dot.tiling.warps) > 1 else (1, 1)
    batches = warps[0] if len(warps) > 2 else 1
    steps = zip((dot.op.m, dot.op.n, dot.op.k, dot.op.blocks), (m * warps[-2], n * warps[-1], k, batches), strict=True)
    padded_m, padded_n, padded_k, padded_blocks = (-(-extent // step) * step for extent, step in steps)
    copies = work.issuers * work.warps_per_issue // prod(warps) if dot.tiling.warps else 1
    return _DotTiling((m, n, k), warps, (padded_m, padded_n, padded_k, padded_blocks), max(1, copies))


def _instruction_of(dot: KnownMatrixWork, works: tuple[KnownMatrixWork, ...]) -> KnownMatrixWork | None:
    """The instructions that a dot was split into, by the extents in its layout."""
    layout_extents = () if dot.tiling is None else dot.tiling.instruction
    fitting = [work for work in works if _extents(layout_extents, work)[:2] == _extents((), work)[:2]] or works
    deep = [work for work in fitting if layout_extents[2:] == (work.op.k,)] or fitting
    return deep[0] if deep else None


def _extents(layout_extents: tuple[int, ...], work: KnownMatrixWork) -> tuple[int, int, int]:
    """M, N and K of one warp's instruction. M and N come from the layout, or else from the instruction.

    Several products in one instruction form a larger square (four of m8n8k4 are 16×16).
    """
    if len(layout_extents) == 3 and layout_extents[0] == 1:
        layout_extents = layout_extents[1:]  # along the batch
    side = isqrt(work.op.blocks)
    m, n = work.op.m * side // work.warps_per_issue, work.op.n * side
    if len(layout_extents) > 1:
        m, n = layout_extents[:2]
    m, n = max(1, m), max(1, n)
    return m, n, max(1, work.op.flop // work.warps_per_issue // (2 * m * n))
