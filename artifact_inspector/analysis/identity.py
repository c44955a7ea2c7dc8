"""Whether the matrix instructions of a region do the work of its dots, and why where they do not.

One issue of an instruction does a known number of operations, so over a region
`count × flop × issuers = Σ 2·M·N·K` of the dots that tensor-level IR has there. The two sides are
counted independently of each other, in two files.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import combinations
from math import isqrt

from artifact_inspector.analysis.matrix import WARPS_PER_WARPGROUP, MatrixWork

__all__ = ["Identity", "Reason", "check_identity"]

Works = tuple[MatrixWork, ...]

MOST_PEELED = 7
"""Iterations that LLVM peels off a loop at most. Source: LLVM, LoopPeel.cpp, unroll-peel-max-count."""
# Triton, F32DotTC.cpp: the products of the parts that a value is split into.
_PRODUCTS = {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6, "bf16x9": 9}


class Reason(Enum):
    """Why the instructions of a region do the work that they do."""

    EXACT = "exact"
    UNROLLED = "unrolled"
    """The body holds several iterations of the program's loop, each of them exact."""
    REDUNDANT = "redundant"
    """The layout covers more than the tile: instructions are padded, or warps repeat each other."""
    EMULATED = "emulated"
    """The result's precision takes several products for each one asked for."""
    PEELED = "peeled"
    """Iterations of a loop stand outside it: peeled off, left over by unrolling, or all of them."""
    ALTERNATIVES = "alternatives"
    """Copies stand on paths of which a warp takes one."""
    ELSEWHERE = "elsewhere"
    """The work of the dots stands in another region."""
    SCALAR = "scalar"
    """The dots became multiply-adds of single lanes."""
    UNKNOWN = "unknown"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Identity:
    """The two sides of the identity for one region, in operations of one pass by the whole block."""

    expected: int
    """2·M·N·K over the dots, for as many iterations as one pass holds."""
    found: int | None
    """count × flop × issuers over the matrix instructions; None where the issuers are unknown."""
    reason: Reason
    words: str

    @property
    def holds(self) -> bool | None:
        """True where both sides are equal; None where one is unknown, or there is nothing to compare."""
        if self.found is None or self.reason in (Reason.SCALAR, Reason.UNKNOWN):
            return None
        return self.reason in (Reason.EXACT, Reason.UNROLLED)

    @property
    def ratio(self) -> float | None:
        """Found ÷ expected."""
        return None if self.found is None or not self.expected else self.found / self.expected


@dataclass(frozen=True, slots=True)
class _Side:
    """A region at both stages."""

    name: str
    dots: Works
    works: Works
    unrolled_by: int
    is_left_over: bool

    @property
    def expected(self) -> int:
        return sum(dot.flop or 0 for dot in self.dots)

    @property
    def covered(self) -> int:
        """The same, as the layouts cut it up: whole instructions by all warps."""
        return sum(_covered(dot, self.works) for dot in self.dots)

    @property
    def found(self) -> int:
        return sum((work.flop or 0) * _blocks(self.dots, work) for work in self.works)

    @property
    def along_path(self) -> int:
        return sum(
            work.along_path * work.matrix.flop * (work.issuers or 0) * _blocks(self.dots, work)
            for work in self.works
        )

    @property
    def covered_along_path(self) -> int:
        return sum(_covered(dot, self.works) * dot.along_path // dot.count for dot in self.dots)

    @property
    def sources(self) -> set[str]:
        return {source for work in (*self.dots, *self.works) for source in work.sources}

    @property
    def iteration(self) -> int:
        """Work of one iteration as the instructions do it: what a copy of it elsewhere adds there."""
        return self.covered if self.dots else self.found // self.unrolled_by


def check_identity(
    dots: Mapping[str, Works],
    works: Mapping[str, Works],
    *,
    unrolled: Mapping[str, int] | None = None,
    left_over: Collection[str] = (),
) -> dict[str, Identity]:
    """The identity of every region of a function that has matrix work at either stage.

    All regions at once, because compilers move work between them.

    Args:
        dots: tensor-level matrix work by region.
        works: that of a later stage.
        unrolled: iterations of the program in one of the loop at the later stage, where not 1.
        left_over: loops of the program that are no loops there; their works are also part of the
            region that they were dissolved into.
    """
    sides = [
        _Side(name, dots.get(name, ()), works.get(name, ()), (unrolled or {}).get(name, 1), name in left_over)
        for name in dict.fromkeys((*dots, *works))
    ]
    return {side.name: _judge(side, sides) for side in sides if side.dots or side.works}


def _judge(side: _Side, sides: list[_Side]) -> Identity:
    expected, found = side.expected * side.unrolled_by, side.found
    if any(work.issuers is None for work in side.works):
        return Identity(expected, None, Reason.UNKNOWN, "the number of warps that issue them is not known")
    if found == expected:
        if side.unrolled_by > 1:
            words = f"{_equation(side)}, {side.unrolled_by} iterations in one"
            return Identity(expected, found, Reason.UNROLLED, words)
        return Identity(expected, found, Reason.EXACT, _equation(side))
    reason, words = _explain(side, sides)
    return Identity(expected, found, reason, words)


def _explain(side: _Side, sides: list[_Side]) -> tuple[Reason, str]:
    found, covered = side.found, side.covered * side.unrolled_by
    if side.dots and not side.works:
        units = sorted({dot.tiling.unit for dot in side.dots if dot.tiling is not None})
        if not any(dot.tiling is None or dot.tiling.is_matrix for dot in side.dots):
            return Reason.SCALAR, f"no matrix instruction: the dot's layout is {', '.join(units)}"
    redundancy = _redundancy(side) if covered != side.expected * side.unrolled_by else ""
    if found == covered:
        return Reason.REDUNDANT, redundancy
    for dot in side.dots:
        factor = _PRODUCTS.get(dot.precision or "", 1)
        if factor > 1 and found == covered * factor:
            return Reason.EMULATED, f"{dot.precision} takes {factor} products for one" + _also(redundancy)
    if side.dots and side.along_path == side.covered_along_path * side.unrolled_by:
        return Reason.ALTERNATIVES, "copies stand on paths of which only one is taken" + _also(redundancy)
    if side.is_left_over and side.dots and found and found % covered == 0:
        return Reason.UNROLLED, f"the loop is gone: {found // covered} iterations in a row" + _also(
            redundancy
        )
    others = [other for other in sides if other is not side and _same_lines(side, other)]
    if found > covered:
        moved = _made_of(found - covered, others)
        if moved:
            return Reason.PEELED, f"{moved} stand{'' if ' and ' in moved else 's'} here too" + _also(
                redundancy
            )
    for other in others:
        if found + other.found == covered + other.covered * other.unrolled_by:
            at = f"{other.name}" if found < covered else f"here, of {other.name}"
            return Reason.ELSEWHERE, f"some of the work stands {'in ' if found < covered else ''}{at}"
    ratio = found / (side.expected * side.unrolled_by) if side.expected else None
    if ratio is None:
        return Reason.UNEXPLAINED, "matrix instructions without a dot of this region"
    return Reason.UNEXPLAINED, f"unexplained ×{ratio:.3g}"


def _made_of(excess: int, others: list[_Side]) -> str:
    """Which iterations of other regions an excess is made of, empty when of none."""
    parts = [(other, other.found if other.is_left_over else other.iteration) for other in others]
    parts = [(other, work) for other, work in parts if work > 0]
    for size in range(1, len(parts) + 1):
        for chosen in combinations(parts[:8], size):
            if sum(work for _, work in chosen) == excess:
                return " and ".join(_copies(other, 1) for other, _ in chosen)
    for other, work in parts:
        copies = excess // work
        if excess % work == 0 and copies <= max(MOST_PEELED, other.unrolled_by - 1):
            return _copies(other, copies)
    return ""


def _copies(other: _Side, copies: int) -> str:
    if other.is_left_over:
        return f"what is left of {other.name}, no loop at this stage,"
    times = "one iteration" if copies == 1 else f"{copies} iterations"
    return f"{times} of {other.name}, {'left over by unrolling,' if other.unrolled_by > 1 else 'peeled off,'}"


def _same_lines(side: _Side, other: _Side) -> bool:
    """True when both do work of one source line, or nothing tells."""
    return not side.sources or not other.sources or bool(side.sources & other.sources)


def _also(redundancy: str) -> str:
    return f"; {redundancy}" if redundancy else ""


def _equation(side: _Side) -> str:
    def times(count: int, rest: str) -> str:
        return rest if count == 1 else f"{count} × {rest}"

    made = [
        f"{work.count} × {work.matrix.flop} × {work.issuers} {work.matrix.issuer}"
        + ("s" if work.issuers != 1 else "")
        + (f" × {blocks} CTAs" if (blocks := _blocks(side.dots, work)) > 1 else "")
        for work in side.works
    ]
    asked = [times(dot.count * dot.matrix.blocks, _product(dot)) for dot in side.dots]
    return f"{' + '.join(made)} = {' + '.join(asked)}"


def _product(dot: MatrixWork) -> str:
    return f"2·{dot.matrix.m}·{dot.matrix.n}·{dot.matrix.k}"


def _blocks(dots: Works, work: MatrixWork) -> int:
    """Blocks of a cluster that each issue an instruction; a pair of them issues one together."""
    ctas = max((dot.tiling.ctas for dot in dots if dot.tiling is not None), default=1)
    return max(1, ctas // 2) if work.matrix.issuer == "CTA pair" else ctas


# -- what a layout covers ----------------------------------------------------------------


def _covered(dot: MatrixWork, works: Works) -> int:
    """Operations of some dots when each warp does whole instructions and no warp is left out."""
    cut = _cut(dot, works)
    if cut is None:
        return dot.flop or 0
    m, n, k, batch = cut
    return 2 * m * n * k * batch * dot.count


def _cut(dot: MatrixWork, works: Works) -> tuple[int, int, int, int] | None:
    """What the layout covers of M, N, K and the batch; None where nothing tells."""
    tiling, op = dot.tiling, dot.matrix
    work = _instruction_of(dot, works)
    if tiling is None or work is None or tiling.ctas > 1:
        return None
    m, n, k = _extents(dot, work)
    rows, columns = tiling.warps[-2:] if len(tiling.warps) > 1 else (1, 1)
    batches = tiling.warps[0] if len(tiling.warps) > 2 else 1
    return _up(op.m, m * rows), _up(op.n, n * columns), _up(op.k, k), _up(op.blocks, batches)


def _instruction_of(dot: MatrixWork, works: Works) -> MatrixWork | None:
    """The instructions that a dot was cut into, by the extents that its layout names."""
    written = dot.tiling.instruction if dot.tiling is not None else ()
    fitting = [work for work in works if not written or _extents(dot, work)[:2] == _by_itself(work)[:2]]
    candidates = fitting or list(works)
    if len({work.matrix.shape for work in candidates}) == 1:
        return candidates[0]
    exact = [work for work in candidates if written[2:] == (work.matrix.k,)]
    return exact[0] if exact else candidates[0] if candidates else None


def _extents(dot: MatrixWork, work: MatrixWork) -> tuple[int, int, int]:
    """M, N and K of one warp's instruction: as the layout says, else as the instruction does."""
    written = dot.tiling.instruction if dot.tiling is not None else ()
    if len(written) == 3 and written[0] == 1:
        written = written[1:]  # a batch dimension
    if len(written) < 2:
        return _by_itself(work)
    m, n = written[:2]
    return m, n, max(1, _per_warp(work) // (2 * m * n))


def _by_itself(work: MatrixWork) -> tuple[int, int, int]:
    """M, N and K of one warp's share; products side by side make a larger square."""
    op = work.matrix
    side = isqrt(op.blocks)
    m = op.m * side // (WARPS_PER_WARPGROUP if op.issuer == "warpgroup" else 1)
    n = op.n * side
    return m, n, max(1, _per_warp(work) // (2 * m * n))


def _per_warp(work: MatrixWork) -> int:
    shared_by = WARPS_PER_WARPGROUP if work.matrix.issuer == "warpgroup" else 1
    return work.matrix.flop // shared_by


def _up(extent: int, step: int) -> int:
    return -(-extent // step) * step


def _redundancy(side: _Side) -> str:
    words: list[str] = []
    for dot in side.dots:
        cut, work = _cut(dot, side.works), _instruction_of(dot, side.works)
        if cut is None or work is None or _covered(dot, side.works) == dot.flop:
            continue
        m, n, k = _extents(dot, work)
        op, tiling = dot.matrix, dot.tiling
        warps = "×".join(str(extent) for extent in tiling.warps) if tiling is not None else ""
        times = _covered(dot, side.works) / (dot.flop or 1)
        filled = [
            f"{name} of {extent} is filled up to {least}"
            for name, extent, least in (("M", op.m, m), ("N", op.n, n), ("K", op.k, k))
            if extent < least
        ]
        if cut[2] == op.k and warps and not filled:
            filled = [f"{warps} warps of {m}×{n} cover {cut[0]}×{cut[1]} of a {op.m}×{op.n} tile"]
        words.append(f"{', '.join(filled) or 'the layout covers more than the tile'}: ×{times:.3g} the work")
    return "; ".join(dict.fromkeys(words))
