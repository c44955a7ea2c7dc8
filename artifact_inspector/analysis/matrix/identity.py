"""Whether the matrix instructions of a region do the work of its dots, and why if they do not.

One issue of an instruction does a known number of operations. Over a region, `count × flop × issuers = Σ
2·M·N·K` of the dots in tensor-level IR. The two sides are counted independently, in two files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import NamedTuple

from artifact_inspector.analysis.matrix.coverage import Part, Side, covered_by, redundancy_of
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.model import Issuer, MatrixOp, Word

MOST_TOGETHER = 3
"""Maximum number of loops whose iterations are combined to explain one region."""
MOST_PEELED = 7
"""Maximum number of iterations that LLVM peels off a loop. Source: LLVM, LoopPeel.cpp, unroll-peel-max-count.
"""
# Triton, F32DotTC.cpp: the products of the parts that a value is split into.
_PRODUCTS = {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6, "bf16x9": 9}


class Reason(Word):
    """Why the instructions of a region do more or less work than its dots."""

    EXACT = "exact"
    UNROLLED = "unrolled"
    """The body holds several iterations of the program's loop, each of them exact."""
    REDUNDANT = "redundant"
    """The layout covers more than the tile: instructions are padded, or warps repeat each other."""
    EMULATED = "emulated"
    """The precision of the result takes several products for each one."""
    PEELED = "peeled"
    """Iterations of a loop are outside it: peeled, remaining after unrolling, or all of them."""
    COPIED = "copied"
    """A region that does not enclose this one does the same work: partitions that repeat each other."""
    ALTERNATIVES = "alternatives"
    """Copies are on mutually exclusive paths."""
    ELSEWHERE = "elsewhere"
    """The work of the dots is in another region."""
    REMOVED = "removed"
    """LLVM found that a dot's result is unused, or that it is never reached.

    No matrix instruction has its source line, or only those remaining from a removed loop.
    """
    SCALAR = "scalar"
    """The dots became multiply-adds on single lanes."""
    UNKNOWN = "unknown"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True, slots=True)
class Identity:
    """Both sides of the equation for one region, in operations of one pass by the whole block."""

    expected: int
    """2·M·N·K over the dots, for as many iterations as one pass holds."""
    found: int | None
    """count × flop × issuers over the matrix instructions; None if the issuers are unknown."""
    reason: Reason
    words: str
    redundant: tuple[str, ...] = ()
    """Lines of the dots, `file.py:line`, that the layout covers more than once."""

    @property
    def holds(self) -> bool | None:
        """True if both sides are equal; None if one is unknown, or there is nothing to compare."""
        if self.found is None or self.reason in (Reason.SCALAR, Reason.UNKNOWN):
            return None
        return self.reason in (Reason.EXACT, Reason.UNROLLED)

    @property
    def is_explained(self) -> bool:
        """False if the two sides differ and nothing in the files explains it."""
        return self.reason not in (Reason.UNEXPLAINED, Reason.UNKNOWN)

    @property
    def ratio(self) -> float | None:
        """Found ÷ expected."""
        return None if self.found is None or not self.expected else self.found / self.expected


def check_identity(
    dots: Mapping[str, tuple[MatrixWork, ...]],
    works: Mapping[str, tuple[MatrixWork, ...]],
    *,
    unrolled: Mapping[str, int] | None = None,
    left_over: Collection[str] = (),
    parents: Mapping[str, str | None] | None = None,
) -> dict[str, Identity]:
    """The equation for every region of a function that has matrix work at either stage.

    All regions are handled at once, because compilers move work between them.

    Args:
        dots: tensor-level matrix work by region.
        works: that of a later stage.
        unrolled: iterations of the program in one of the loop at the later stage, where not 1.
        left_over: loops of the program that are no loops at the later stage (`Region.remains`). Their
            works are also part of the region that they were dissolved into.
        parents: region → the enclosing one, at the later stage, which holds peeled iterations. If None,
            every region may hold the iterations of any other.
    """
    sides = [
        _side(
            name,
            dots.get(name, ()),
            works.get(name, ()),
            unrolled_by=(unrolled or {}).get(name, 1),
            is_left_over=name in left_over,
            around=None if parents is None else _around(name, parents),
        )
        for name in dict.fromkeys((*dots, *works))
    ]
    seen = frozenset(source for side in sides for work in side.works for source in work.sources)
    return {side.name: _judge(side, sides, seen) for side in sides if side.dots or side.works or side.unread}


def _around(name: str, parents: Mapping[str, str | None]) -> frozenset[str]:
    around: set[str] = set()
    parent = parents.get(name)
    while parent is not None and parent not in around:
        around.add(parent)
        parent = parents.get(parent)
    return frozenset(around)


def _side(
    name: str,
    dots: tuple[MatrixWork, ...],
    works: tuple[MatrixWork, ...],
    *,
    unrolled_by: int,
    is_left_over: bool,
    around: frozenset[str] | None,
) -> Side:
    unread = [f"{work.op} ×{work.count}" for work in (*dots, *works) if work.matrix is None]
    said = f"unknown amount of work in {', '.join(unread)}" if unread else ""
    if not unread and any(work.issuers is None for work in works):
        said = "unknown number of warps that issue them"
    ctas = max((dot.tiling.ctas for dot in dots if dot.tiling is not None), default=1)
    return Side(
        name=name,
        dots=_parts(dots, 1),
        works=_parts(works, ctas),
        unread=said,
        unrolled_by=unrolled_by,
        is_left_over=is_left_over,
        around=around,
        sources=frozenset(source for work in (*dots, *works) for source in work.sources),
        ctas=ctas,
    )


def _parts(works: tuple[MatrixWork, ...], ctas: int) -> tuple[Part, ...]:
    return tuple(
        Part(
            work.matrix,
            work.count,
            work.along_path,
            work.issuers * (max(1, ctas // 2) if work.matrix.issuer == Issuer.CTA_PAIR else ctas),
            work.tiling,
            work.precision,
            work.sources,
            work.instead_of,
        )
        for work in works
        if work.matrix is not None and work.issuers is not None
    )


class _Why(NamedTuple):
    """Why the two sides differ."""

    reason: Reason
    words: str
    iterations: int
    """Of the program's loop in one pass."""


def _judge(side: Side, sides: list[Side], seen: frozenset[str]) -> Identity:
    expected, found = side.expected * side.unrolled_by, side.found
    if side.unread:
        return Identity(expected, None, Reason.UNKNOWN, side.unread)
    if found == expected:
        if side.unrolled_by > 1:
            words = f"{_equation(side)}, in each of {side.unrolled_by} iterations"
            return Identity(expected, found, Reason.UNROLLED, words)
        return Identity(expected, found, Reason.EXACT, _equation(side))
    why = _explain(side, sides)
    if why.reason is Reason.UNEXPLAINED:
        why = _without_some_dots(side, sides, seen) or why
    if side.is_left_over and why.reason is Reason.ELSEWHERE:
        found = 0  # the instructions on its lines belong to the other region
    twice = (dot for dot in side.dots if redundancy_of(dot, side.works))
    redundant = tuple(dict.fromkeys(source for dot in twice for source in dot.sources))
    return Identity(side.expected * why.iterations, found, why.reason, why.words, redundant)


def _without_some_dots(side: Side, sides: list[Side], seen: frozenset[str]) -> _Why | None:
    """The explanation without the dots that no matrix instruction does; None if that does not help."""
    scalar = [dot for dot in side.dots if _is_scalar(dot)]
    removed = [dot for dot in side.dots if seen and dot.sources and not seen.intersection(dot.sources)]
    for reason, gone, fate in (
        (Reason.SCALAR, scalar, "became multiply-adds"),
        (Reason.REMOVED, removed, "has no instruction"),
    ):
        kept = replace(side, dots=tuple(dot for dot in side.dots if dot not in gone))
        if not gone or (not kept.dots and kept.works):
            continue
        where = ", ".join(dict.fromkeys(source for dot in gone for source in dot.sources))
        note = " ".join(filter(None, ("the dot", where and f"of {where}", fate)))
        if kept.found == kept.expected * side.unrolled_by:
            return _Why(reason, note, side.unrolled_by)
        rest = _explain(kept, sides)
        if rest.reason is not Reason.UNEXPLAINED:
            return rest._replace(words=f"{rest.words}; {note}")
    return None


def _is_scalar(dot: Part) -> bool:
    return dot.tiling is not None and not dot.tiling.is_matrix


def _explain(side: Side, sides: list[Side]) -> _Why:
    redundancy = "; ".join(dict.fromkeys(filter(None, (redundancy_of(dot, side.works) for dot in side.dots))))
    others = [other for other in sides if other is not side and _same_lines(side, other)]
    others.sort(key=lambda other: len(side.sources ^ other.sources))
    why = _by_itself(side) or _by_others(side, others)
    if why.reason is Reason.UNROLLED and redundancy:
        why = why._replace(reason=Reason.REDUNDANT)
    return why._replace(words="; ".join(filter(None, (why.words, redundancy))))


def _by_itself(side: Side) -> _Why | None:
    """Why the two sides differ, if the region itself explains it."""
    found, covered = side.found, side.covered * side.unrolled_by
    if not side.works and all(_is_scalar(dot) for dot in side.dots):
        units = sorted({dot.tiling.unit for dot in side.dots if dot.tiling is not None})
        words = f"no matrix instruction: the layout of the dot is {', '.join(units)}"
        return _Why(Reason.SCALAR, words, side.unrolled_by)
    if found == covered:
        return _Why(Reason.REDUNDANT, "", side.unrolled_by)
    for dot in side.dots:
        factor = _PRODUCTS.get(dot.precision or "", 1)
        if factor > 1 and found == covered * factor:
            return _Why(
                Reason.EMULATED, f"{dot.precision} needs {factor} products for each one", side.unrolled_by
            )
    along_path = sum(work.flop_along_path for work in side.works)
    if side.dots and along_path == side.covered_along_path * side.unrolled_by:
        return _Why(Reason.ALTERNATIVES, _alternatives(side), side.unrolled_by)
    return None


def _by_others(side: Side, others: list[Side]) -> _Why:
    """Why the two sides differ, as far as other regions explain it.

    Args:
        others: regions of the same source lines, the most similar first.
    """
    elsewhere = _elsewhere(side, others)
    if elsewhere:
        return _Why(Reason.ELSEWHERE, elsewhere, side.unrolled_by)
    copies = _iterations(side, others)
    if copies > 1:
        gone = "the loop was removed: " if side.is_left_over else ""
        return _Why(Reason.UNROLLED, f"{gone}{copies} iterations in a row", copies)
    more = _here_too(side, others)
    if more is not None:
        return more
    folded = _folded_away(side, others)
    if folded:
        return _Why(Reason.REMOVED, folded, side.unrolled_by)
    if not side.expected:
        words = "matrix instructions, but no dot in this region"
    else:
        words = f"unexplained ×{side.found / (side.expected * side.unrolled_by):.3g}"
    return _Why(Reason.UNEXPLAINED, words, side.unrolled_by)


def _here_too(side: Side, others: list[Side]) -> _Why | None:
    """The regions whose work is also done here; None if there is no such surplus."""
    surplus = side.found - side.covered * side.unrolled_by
    if surplus <= 0:
        return None
    inside = [other for other in others if other.around is None or side.name in other.around]
    moved = _made_of(surplus, inside)
    if moved:
        return _Why(Reason.PEELED, f"also contains {moved}", side.unrolled_by)
    copied = next((other for other in others if other.expected and surplus == other.iteration), None)
    if copied is None:
        return None
    return _Why(Reason.COPIED, f"also contains the work of {copied.name}", side.unrolled_by)


def _alternatives(side: Side) -> str:
    if side.found == side.covered_along_path * side.unrolled_by:
        lines = dict.fromkeys(source for dot in side.dots if dot.instead_of for source in dot.sources)
        if lines:
            return f"only one dot of {', '.join(lines)} runs in a pass, and they share their instructions"
    return "copies are on mutually exclusive paths"


def _folded_away(side: Side, others: list[Side]) -> str:
    """The removed loop of which less remains than was peeled off it here; empty if there is none.

    If a loop is known to run once, one iteration remains: loads prefetched for the next one are removed.
    """
    for other in others:
        copies, rest = divmod(other.found, other.covered) if other.covered else (0, 0)
        peeled = sum(
            covered_by(dot, side.works) * dot.count
            for dot in side.dots
            if other.sources.intersection(dot.sources)
        )
        if not other.is_left_over or not copies or rest or peeled <= other.found:
            continue
        if side.found - other.found == side.covered - peeled:
            left = f"{copies} iteration{'s' if copies > 1 else ''}"
            return f"only {left} of {other.name} can be reached, and its loop was removed"
    return ""


def _elsewhere(side: Side, others: list[Side]) -> str:
    """The region that has the work this one lacks, or lacks the work this one has; empty if none.

    This is stronger evidence than a matching sum of peeled iterations.
    """
    surplus = side.found - side.covered * side.unrolled_by
    for other in others:
        lacks = other.covered * other.unrolled_by - other.found
        if lacks and surplus == lacks:
            part = "some" if (side.found if lacks < 0 else other.found) else "all"
            return (
                f"also contains {part} of {other.name}" if lacks > 0 else f"{part} of it is in {other.name}"
            )
        # A loop that counts as removed, and a loop of this stage that was not matched to the program.
        if other.is_left_over and not side.dots and not _encloses(side, other) and surplus == other.covered:
            return f"contains all of {other.name}"
        if (
            side.is_left_over
            and not other.dots
            and not _encloses(other, side)
            and other.found == side.covered
        ):
            return f"all of it is in {other.name}"
    return ""


def _encloses(side: Side, other: Side) -> bool:
    return other.around is None or side.name in other.around


def _iterations(side: Side, others: list[Side]) -> int:
    """Iterations in one pass, by the number of instructions; 1 if nothing confirms it.

    For a removed loop all iterations count; for an unrolled one, the remainder must be after it.
    """
    if not side.covered:
        return 1
    if side.is_left_over:
        # Instructions on the same lines that other regions account for are not its own.
        apart = sum(other.found for other in others if other.dots and other.found == other.covered)
        own = side.found - apart if side.found > apart else side.found
        return own // side.covered if own % side.covered == 0 else 1
    copies, rest = divmod(side.found, side.covered)
    if rest or side.around is None:
        return 1
    left_over = [
        (other.found - other.covered) / side.covered for other in others if other.name in side.around
    ]
    return copies if any(1 <= share < copies and share == int(share) for share in left_over) else 1


def _made_of(excess: int, others: list[Side]) -> str:
    """The iterations of other regions that an excess consists of; empty if none match."""
    parts = [(other, other.found if other.is_left_over else other.iteration) for other in others]
    parts = sorted((part for part in parts if part[1] > 0), key=lambda part: not part[0].is_left_over)
    for size in range(1, min(len(parts), MOST_TOGETHER) + 1):
        for chosen in combinations(parts, size):
            if sum(work for _, work in chosen) == excess:
                return " and ".join(_copies(other, 1) for other, _ in chosen)
    for other, work in parts:
        copies = excess // work
        if excess % work == 0 and copies <= max(MOST_PEELED, other.unrolled_by - 1):
            return _copies(other, copies)
    for other, _ in parts:
        if _is_made_of(excess, [covered_by(dot, other.works) * dot.count for dot in other.dots]):
            return f"parts of iterations of {other.name} (peeled)"
    return ""


def _is_made_of(excess: int, dots: list[int]) -> bool:
    """True if some dots of an iteration, each at most as often as LLVM peels, add up to the excess."""
    sums = {0}
    for work in set(dots):
        sums |= {known + copies * work for known in sums for copies in range(1, MOST_PEELED + 1)}
    return excess in sums


def _copies(other: Side, copies: int) -> str:
    if other.is_left_over:
        return f"the iterations of {other.name} (the loop was removed)"
    unrolled = other.unrolled_by > 1 or other.found > other.covered
    why = "remainder of unrolling" if unrolled else "peeled"
    return f"{copies} iteration{'s' if copies > 1 else ''} of {other.name} ({why})"


def _same_lines(side: Side, other: Side) -> bool:
    """True if both do work of one source line, or the lines are unknown."""
    return not side.sources or not other.sources or bool(side.sources & other.sources)


def _equation(side: Side) -> str:
    made = [
        f"{work.count} × {work.op.flop} × {work.issuers} {work.op.issuer}{'s' if work.issuers != 1 else ''}"
        + (f" of {side.ctas} CTAs" if side.ctas > 1 and not _is_of_cta(work.op) else "")
        for work in side.works
    ]
    copies: Counter[str] = Counter()
    for dot in side.dots:
        product = f"2·{dot.op.m}·{dot.op.n}·{dot.op.k}"
        copies[product] += dot.count * dot.op.blocks * side.unrolled_by
    asked = [f"{count} × {product}" if count > 1 else product for product, count in copies.items()]
    return f"{' + '.join(made)} = {' + '.join(asked)}"


def _is_of_cta(op: MatrixOp) -> bool:
    return op.issuer in (Issuer.CTA, Issuer.CTA_PAIR)
