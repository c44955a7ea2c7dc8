"""How a layout splits a dot: into whole instructions on all warps, even if the tile is smaller.

Triton gives every warp at least one instruction along each dimension. A tile smaller than the
instructions of all warps is computed more than once, or padded.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt, prod
from typing import NamedTuple

from artifact_inspector.analysis.matrix.work import Tiling
from artifact_inspector.hardware.matrix import WARPS_PER_WARPGROUP
from artifact_inspector.model import Issuer, MatrixOp


@dataclass(frozen=True, slots=True)
class Part:
    """Equal operations of a region with all factors known."""

    op: MatrixOp
    count: int
    along_path: int
    issuers: int
    """In all blocks that share the tile."""
    tiling: Tiling | None
    precision: str | None
    sources: tuple[str, ...]
    instead_of: tuple[str, ...] = ()
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
    def warps_together(self) -> int:
        """Number of warps that issue one instruction jointly."""
        return WARPS_PER_WARPGROUP if self.op.issuer == Issuer.WARPGROUP else 1


@dataclass(frozen=True, slots=True)
class Side:
    """A region at both stages."""

    name: str
    dots: tuple[Part, ...]
    works: tuple[Part, ...]
    unread: str
    """Why the work is unknown; empty if it is known."""
    unrolled_by: int
    is_left_over: bool
    around: frozenset[str] | None
    """Enclosing regions; None if unknown."""
    sources: frozenset[str]
    ctas: int

    @property
    def expected(self) -> int:
        """Operations of the dots."""
        return sum(dot.flop for dot in self.dots)

    @property
    def covered(self) -> int:
        """Operations of the dots as the layouts split them: whole instructions on all warps."""
        return sum(covered_by(dot, self.works) * dot.count for dot in self.dots)

    @property
    def covered_along_path(self) -> int:
        """The part of these on one path. Of mutually exclusive dots, the first counts."""
        return sum(covered_by(dot, self.works) * dot.along_path for dot in self.on_one_path)

    @property
    def on_one_path(self) -> tuple[Part, ...]:
        """The dots, without those that exclude an earlier one."""
        kept: list[Part] = []
        for dot in self.dots:
            if not any(set(dot.instead_of).intersection(other.sources) for other in kept):
                kept.append(dot)
        return tuple(kept)

    @property
    def found(self) -> int:
        """Operations of the instructions."""
        return sum(work.flop for work in self.works)

    @property
    def iteration(self) -> int:
        """Operations of one iteration as the instructions execute it: the amount that a copy of it adds."""
        return self.covered if self.dots else self.found // self.unrolled_by


class _Cut(NamedTuple):
    """How a dot is split into instructions: extents of M, N, K and the batch."""

    instruction: tuple[int, int, int]
    warps: tuple[int, ...]
    covered: tuple[int, int, int, int]
    copies: int
    """Number of times that the layout's warps fit into the warps that run it. All of them do the work."""


def covered_by(dot: Part, works: tuple[Part, ...]) -> int:
    """Operations of one dot if each warp executes whole instructions and no warp is idle."""
    cut = _cut(dot, works)
    return dot.op.flop if cut is None else 2 * prod(cut.covered) * cut.copies


def redundancy_of(dot: Part, works: tuple[Part, ...]) -> str:
    """How the layout covers more than the tile, as text; empty if it covers it exactly."""
    cut = _cut(dot, works)
    done = covered_by(dot, works)
    if cut is None or done == dot.op.flop:
        return ""
    tile = (dot.op.m, dot.op.n, dot.op.k, dot.op.blocks)
    # M and N always; K and the batch only if they are not covered exactly.
    shown = [place for place in range(4) if place < 2 or cut.covered[place] != tile[place]]
    warps = "×".join(str(extent) for extent in cut.warps)
    return (
        (f"{cut.copies} times " if cut.copies > 1 else "")
        + f"{warps} warps of {_by((*cut.instruction, 1), shown)} cover {_by(cut.covered, shown)}, "
        f"but the tile is {_by(tile, shown)}: ×{done / dot.op.flop:.3g} the work"
    )


def _cut(dot: Part, works: tuple[Part, ...]) -> _Cut | None:
    """How a layout splits one dot; None if unknown."""
    work = _instruction_of(dot, works)
    if work is None or dot.tiling is None or not dot.tiling.is_matrix or dot.tiling.ctas > 1:
        return None
    m, n, k = _extents(dot.tiling.instruction, work)
    warps = dot.tiling.warps if len(dot.tiling.warps) > 1 else (1, 1)
    batches = warps[0] if len(warps) > 2 else 1
    op = dot.op
    covered = (_up(op.m, m * warps[-2]), _up(op.n, n * warps[-1]), _up(op.k, k), _up(op.blocks, batches))
    copies = work.issuers * work.warps_together // prod(warps) if dot.tiling.warps else 1
    return _Cut((m, n, k), warps, covered, max(1, copies))


def _instruction_of(dot: Part, works: tuple[Part, ...]) -> Part | None:
    """The instructions that a dot was split into, by the extents in its layout."""
    written = () if dot.tiling is None else dot.tiling.instruction
    fitting = [work for work in works if _extents(written, work)[:2] == _extents((), work)[:2]] or works
    deep = [work for work in fitting if written[2:] == (work.op.k,)] or fitting
    return deep[0] if deep else None


def _extents(written: tuple[int, ...], work: Part) -> tuple[int, int, int]:
    """M, N and K of one warp's instruction. M and N come from the layout, or else from the instruction.

    Several products in one instruction form a larger square (four of m8n8k4 are 16×16).
    """
    if len(written) == 3 and written[0] == 1:
        written = written[1:]  # along the batch
    side = isqrt(work.op.blocks)
    m, n = written[:2] if len(written) > 1 else (work.op.m * side // work.warps_together, work.op.n * side)
    m, n = max(1, m), max(1, n)
    return m, n, max(1, work.op.flop // work.warps_together // (2 * m * n))


def _up(extent: int, step: int) -> int:
    return -(-extent // step) * step


def _by(extents: tuple[int, ...], shown: list[int]) -> str:
    return "×".join(str(extents[place]) for place in shown)
