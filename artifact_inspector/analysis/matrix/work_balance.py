"""Whether the matrix instructions of a region do the work of its dots, and why if they do not.

One issue of an instruction does a known number of operations. Over a region, `count × flop × issuers = Σ 2·M·N·K` of
the dots in tensor-level IR. The two sides are counted independently, in two files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import reachable
from artifact_inspector.analysis.matrix.dot_tiling import (
    KnownMatrixWork,
    RegionMatrixWork,
    describe_redundancy,
    padded_flop_of,
)
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.model import Issuer, StringEnum

MAX_COMBINED_LOOPS = 3
"""Maximum number of loops whose iterations are combined to explain one region."""
MAX_PEELED = 7
"""Maximum number of iterations that LLVM peels off a loop. Source: LLVM, LoopPeel.cpp, unroll-peel-max-count."""
# Triton, F32DotTC.cpp: the products of the parts that a value is split into.
_PRODUCTS = {"tf32x3": 3, "bf16x3": 3, "bf16x6": 6, "bf16x9": 9}


class BalanceReason(StringEnum):
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
class WorkBalance:
    """Both sides of the equation for one region, in operations of one pass by the whole block."""

    expected: int
    """2·M·N·K over the dots, for as many iterations as one pass holds."""
    actual: int | None
    """count × flop × issuers over the matrix instructions; None if the issuers are unknown."""
    reason: BalanceReason
    explanation: str
    redundant: tuple[str, ...] = ()
    """Lines of the dots, `file.py:line`, that the layout covers more than once."""

    @property
    def is_balanced(self) -> bool | None:
        """True if both sides are equal; None if one is unknown, or there is nothing to compare."""
        if self.actual is None or self.reason in (BalanceReason.SCALAR, BalanceReason.UNKNOWN):
            return None
        return self.reason in (BalanceReason.EXACT, BalanceReason.UNROLLED)

    @property
    def ratio(self) -> float | None:
        """Found ÷ expected."""
        return None if self.actual is None or not self.expected else self.actual / self.expected


def check_work_balance(
    dots: Mapping[str, tuple[MatrixWork, ...]],
    works: Mapping[str, tuple[MatrixWork, ...]],
    *,
    unrolled: Mapping[str, int] | None = None,
    dissolved: Collection[str] = (),
    parents: Mapping[str, str | None] | None = None,
) -> dict[str, WorkBalance]:
    """The equation for every region of a function that has matrix work at either stage.

    All regions are handled at once, because compilers move work between them.

    Args:
        dots: tensor-level matrix work by region.
        works: that of a later stage.
        unrolled: iterations of the program in one of the loop at the later stage, where not 1.
        dissolved: loops of the program that are no loops at the later stage (`Region.remains`). Their works are also
            part of the region that they were dissolved into.
        parents: region → the enclosing one, at the later stage, which holds peeled iterations. If None, every region
            may hold the iterations of any other.
    """

    def parent_of(region: str) -> Iterable[str]:
        return filter(None, [(parents or {}).get(region)])

    sides = [
        _side(
            name,
            dots.get(name, ()),
            works.get(name, ()),
            unroll_factor=(unrolled or {}).get(name, 1),
            is_dissolved=name in dissolved,
            enclosing_regions=None if parents is None else frozenset(reachable([name], parent_of)) - {name},
        )
        for name in dict.fromkeys((*dots, *works))
    ]
    instruction_sources = frozenset(source for side in sides for work in side.instructions for source in work.sources)
    return {
        side.name: _judge(side, sides, instruction_sources)
        for side in sides
        if side.dots or side.instructions or side.unknown_reason
    }


def _side(
    name: str,
    dots: tuple[MatrixWork, ...],
    works: tuple[MatrixWork, ...],
    *,
    unroll_factor: int,
    is_dissolved: bool,
    enclosing_regions: frozenset[str] | None,
) -> RegionMatrixWork:
    unknown_works = [f"{work.op} ×{work.count}" for work in (*dots, *works) if work.matrix is None]
    unknown_reason = f"unknown amount of work in {', '.join(unknown_works)}" if unknown_works else ""
    if not unknown_works and any(work.issuers is None for work in works):
        unknown_reason = "unknown number of warps that issue them"
    ctas = max((dot.tiling.ctas for dot in dots if dot.tiling is not None), default=1)
    return RegionMatrixWork(
        name=name,
        dots=_known_work(dots, 1),
        instructions=_known_work(works, ctas),
        unknown_reason=unknown_reason,
        unroll_factor=unroll_factor,
        is_dissolved=is_dissolved,
        enclosing_regions=enclosing_regions,
        sources=frozenset(source for work in (*dots, *works) for source in work.sources),
        ctas=ctas,
    )


def _known_work(works: tuple[MatrixWork, ...], ctas: int) -> tuple[KnownMatrixWork, ...]:
    return tuple(
        KnownMatrixWork(
            work.matrix,
            work.count,
            work.along_path,
            work.issuers * (max(1, ctas // 2) if work.matrix.issuer == Issuer.CTA_PAIR else ctas),
            work.tiling,
            work.precision,
            work.sources,
            work.exclusive_sources,
        )
        for work in works
        if work.matrix is not None and work.issuers is not None
    )


class _ImbalanceCause(NamedTuple):
    """Why the two sides differ."""

    reason: BalanceReason
    message: str
    iterations: int
    """Of the program's loop in one pass."""


def _judge(side: RegionMatrixWork, sides: list[RegionMatrixWork], instruction_sources: frozenset[str]) -> WorkBalance:
    expected, actual = side.dot_flop * side.unroll_factor, side.instruction_flop
    if side.unknown_reason:
        return WorkBalance(expected, None, BalanceReason.UNKNOWN, side.unknown_reason)
    if actual == expected:
        is_unrolled = side.unroll_factor > 1
        explanation = _format_equation(side) + (f", in each of {side.unroll_factor} iterations" if is_unrolled else "")
        return WorkBalance(
            expected, actual, BalanceReason.UNROLLED if is_unrolled else BalanceReason.EXACT, explanation
        )
    cause = _explain(side, sides)
    if cause.reason is BalanceReason.UNEXPLAINED:
        cause = _without_some_dots(side, sides, instruction_sources) or cause
    if side.is_dissolved and cause.reason is BalanceReason.ELSEWHERE:
        actual = 0  # the instructions on its lines belong to the other region
    redundant_dots = (dot for dot in side.dots if describe_redundancy(dot, side.instructions))
    redundant = tuple(dict.fromkeys(source for dot in redundant_dots for source in dot.sources))
    return WorkBalance(side.dot_flop * cause.iterations, actual, cause.reason, cause.message, redundant)


def _without_some_dots(
    side: RegionMatrixWork, sides: list[RegionMatrixWork], instruction_sources: frozenset[str]
) -> _ImbalanceCause | None:
    """The explanation without the dots that no matrix instruction does; None if that does not help."""
    scalar = [dot for dot in side.dots if _is_scalar(dot)]
    unmatched = [dot for dot in side.dots if dot.sources and instruction_sources.isdisjoint(dot.sources)]
    removed = unmatched if instruction_sources else []
    for reason, missing_dots, fate in (
        (BalanceReason.SCALAR, scalar, "became multiply-adds"),
        (BalanceReason.REMOVED, removed, "has no instruction"),
    ):
        reduced = side._replace(dots=tuple(dot for dot in side.dots if dot not in missing_dots))
        if not missing_dots or (not reduced.dots and reduced.instructions):
            continue
        dot_lines = ", ".join(dict.fromkeys(source for dot in missing_dots for source in dot.sources))
        note = " ".join(filter(None, ("the dot", dot_lines and f"of {dot_lines}", fate)))
        if reduced.instruction_flop == reduced.dot_flop * side.unroll_factor:
            return _ImbalanceCause(reason, note, side.unroll_factor)
        cause = _explain(reduced, sides)
        if cause.reason is not BalanceReason.UNEXPLAINED:
            return cause._replace(message=f"{cause.message}; {note}")
    return None


def _is_scalar(dot: KnownMatrixWork) -> bool:
    return dot.tiling is not None and not dot.tiling.is_matrix


def _explain(side: RegionMatrixWork, sides: list[RegionMatrixWork]) -> _ImbalanceCause:
    redundancies = dict.fromkeys(describe_redundancy(dot, side.instructions) for dot in side.dots)
    redundancy = "; ".join(filter(None, redundancies))
    others = [x for x in sides if x is not side and (not side.sources or not x.sources or side.sources & x.sources)]
    others.sort(key=lambda neighbour: len(side.sources ^ neighbour.sources))
    cause = _explain_from_region(side) or _explain_from_others(side, others)
    if cause.reason is BalanceReason.UNROLLED and redundancy:
        cause = cause._replace(reason=BalanceReason.REDUNDANT)
    return cause._replace(message="; ".join(filter(None, (cause.message, redundancy))))


def _explain_from_region(side: RegionMatrixWork) -> _ImbalanceCause | None:
    """Why the two sides differ, if the region itself explains it."""
    actual, padded_flop = side.instruction_flop, side.padded_flop * side.unroll_factor
    if not side.instructions and all(_is_scalar(dot) for dot in side.dots):
        units = sorted({dot.tiling.unit for dot in side.dots if dot.tiling is not None})
        message = f"no matrix instruction: the layout of the dot is {', '.join(units)}"
        return _ImbalanceCause(BalanceReason.SCALAR, message, side.unroll_factor)
    if actual == padded_flop:
        return _ImbalanceCause(BalanceReason.REDUNDANT, "", side.unroll_factor)
    for dot in side.dots:
        factor = _PRODUCTS.get(dot.precision or "", 1)
        if factor > 1 and actual == padded_flop * factor:
            message = f"{dot.precision} needs {factor} products for each one"
            return _ImbalanceCause(BalanceReason.EMULATED, message, side.unroll_factor)
    along_path = sum(work.flop_along_path for work in side.instructions)
    if side.dots and along_path == side.padded_flop_along_path * side.unroll_factor:
        return _ImbalanceCause(BalanceReason.ALTERNATIVES, _alternatives(side), side.unroll_factor)
    return None


def _explain_from_others(side: RegionMatrixWork, others: list[RegionMatrixWork]) -> _ImbalanceCause:
    """Why the two sides differ, as far as other regions explain it.

    Args:
        others: regions of the same source lines, the most similar first.
    """
    elsewhere = _describe_moved_work(side, others)
    if elsewhere:
        return _ImbalanceCause(BalanceReason.ELSEWHERE, elsewhere, side.unroll_factor)
    copies = _count_iterations(side, others)
    if copies > 1:
        loop_text = "the loop was removed: " if side.is_dissolved else ""
        return _ImbalanceCause(BalanceReason.UNROLLED, f"{loop_text}{copies} iterations in a row", copies)
    surplus_cause = _explain_surplus(side, others)
    if surplus_cause is not None:
        return surplus_cause
    folded = _describe_folded_loop(side, others)
    if folded:
        return _ImbalanceCause(BalanceReason.REMOVED, folded, side.unroll_factor)
    if not side.dot_flop:
        message = "matrix instructions, but no dot in this region"
    else:
        message = f"unexplained ×{side.instruction_flop / (side.dot_flop * side.unroll_factor):.3g}"
    return _ImbalanceCause(BalanceReason.UNEXPLAINED, message, side.unroll_factor)


def _explain_surplus(side: RegionMatrixWork, others: list[RegionMatrixWork]) -> _ImbalanceCause | None:
    """The regions whose work is also done here; None if there is no such surplus."""
    surplus = side.instruction_flop - side.padded_flop * side.unroll_factor
    if surplus <= 0:
        return None
    moved = _describe_excess(surplus, [neighbour for neighbour in others if _encloses(side, neighbour)])
    if moved:
        return _ImbalanceCause(BalanceReason.PEELED, f"also contains {moved}", side.unroll_factor)
    copied = next((other for other in others if other.dot_flop and surplus == other.iteration_flop), None)
    if copied is None:
        return None
    return _ImbalanceCause(BalanceReason.COPIED, f"also contains the work of {copied.name}", side.unroll_factor)


def _alternatives(side: RegionMatrixWork) -> str:
    if side.instruction_flop == side.padded_flop_along_path * side.unroll_factor:
        lines = dict.fromkeys(source for dot in side.dots if dot.exclusive_sources for source in dot.sources)
        if lines:
            return f"only one dot of {', '.join(lines)} runs in a pass, and they share their instructions"
    return "copies are on mutually exclusive paths"


def _describe_folded_loop(side: RegionMatrixWork, others: list[RegionMatrixWork]) -> str:
    """The removed loop of which less remains than was peeled off it here; empty if there is none.

    If a loop is known to run once, one iteration remains: loads prefetched for the next one are removed.
    """
    for neighbour in others:
        padded_flop = neighbour.padded_flop
        copies, remainder = divmod(neighbour.instruction_flop, padded_flop) if padded_flop else (0, 0)
        dots = [dot for dot in side.dots if neighbour.sources.intersection(dot.sources)]
        peeled = sum(padded_flop_of(dot, side.instructions) * dot.count for dot in dots)
        if not neighbour.is_dissolved or not copies or remainder or peeled <= neighbour.instruction_flop:
            continue
        if side.instruction_flop - neighbour.instruction_flop == side.padded_flop - peeled:
            remaining_text = f"{copies} iteration{'s' if copies > 1 else ''}"
            return f"only {remaining_text} of {neighbour.name} can be reached, and its loop was removed"
    return ""


def _describe_moved_work(side: RegionMatrixWork, others: list[RegionMatrixWork]) -> str:
    """The region that has the work this one lacks, or lacks the work this one has; empty if none.

    This is stronger evidence than a matching sum of peeled iterations.
    """
    surplus = side.instruction_flop - side.padded_flop * side.unroll_factor
    for neighbour in others:
        name, flop, padded_flop = neighbour.name, neighbour.instruction_flop, neighbour.padded_flop
        lacks = padded_flop * neighbour.unroll_factor - flop
        if lacks and surplus == lacks:
            share = "some" if (side.instruction_flop if lacks < 0 else flop) else "all"
            return f"also contains {share} of {name}" if lacks > 0 else f"{share} of it is in {name}"
        # A loop that counts as removed, and a loop of this stage that was not matched to the program.
        if neighbour.is_dissolved and not side.dots and not _encloses(side, neighbour) and surplus == padded_flop:
            return f"contains all of {name}"
        if side.is_dissolved and not neighbour.dots and not _encloses(neighbour, side) and flop == side.padded_flop:
            return f"all of it is in {name}"
    return ""


def _encloses(side: RegionMatrixWork, inner: RegionMatrixWork) -> bool:
    return inner.enclosing_regions is None or side.name in inner.enclosing_regions


def _count_iterations(side: RegionMatrixWork, others: list[RegionMatrixWork]) -> int:
    """Iterations in one pass, by the number of instructions; 1 if nothing confirms it.

    For a removed loop all iterations count; for an unrolled one, the remainder must be after it.
    """
    own_flop, padded_flop = side.instruction_flop, side.padded_flop
    if not padded_flop:
        return 1
    if side.is_dissolved:
        # Instructions on the same lines that other regions account for are not its own.
        explained = sum(n.instruction_flop for n in others if n.dots and n.instruction_flop == n.padded_flop)
        own_flop -= explained if own_flop > explained else 0
        return own_flop // padded_flop if own_flop % padded_flop == 0 else 1
    copies, remainder = divmod(own_flop, padded_flop)
    if remainder or side.enclosing_regions is None:
        return 1
    enclosing = [neighbour for neighbour in others if neighbour.name in side.enclosing_regions]
    left_over = [(neighbour.instruction_flop - neighbour.padded_flop) / padded_flop for neighbour in enclosing]
    return copies if any(1 <= share < copies and share == int(share) for share in left_over) else 1


def _describe_excess(excess: int, others: list[RegionMatrixWork]) -> str:
    """The iterations of other regions that an excess consists of; empty if none match."""
    works = ((other, other.instruction_flop if other.is_dissolved else other.iteration_flop) for other in others)
    candidates = sorted((entry for entry in works if entry[1] > 0), key=lambda entry: not entry[0].is_dissolved)
    for size in range(1, min(len(candidates), MAX_COMBINED_LOOPS) + 1):
        for combination in combinations(candidates, size):
            if sum(work for _, work in combination) == excess:
                return " and ".join(_describe_copies(neighbour, 1) for neighbour, _ in combination)
    for neighbour, work in candidates:
        copies = excess // work
        if excess % work == 0 and copies <= max(MAX_PEELED, neighbour.unroll_factor - 1):
            return _describe_copies(neighbour, copies)
    for neighbour, _ in candidates:
        if _is_sum_of_dots(excess, [padded_flop_of(dot, neighbour.instructions) * dot.count for dot in neighbour.dots]):
            return f"parts of iterations of {neighbour.name} (peeled)"
    return ""


def _is_sum_of_dots(excess: int, dots: list[int]) -> bool:
    """True if some dots of an iteration, each at most as often as LLVM peels, add up to the excess."""
    sums = {0}
    for work in set(dots):
        sums |= {partial_sum + copies * work for partial_sum in sums for copies in range(1, MAX_PEELED + 1)}
    return excess in sums


def _describe_copies(neighbour: RegionMatrixWork, copies: int) -> str:
    if neighbour.is_dissolved:
        return f"the iterations of {neighbour.name} (the loop was removed)"
    unrolled = neighbour.unroll_factor > 1 or neighbour.instruction_flop > neighbour.padded_flop
    origin = "remainder of unrolling" if unrolled else "peeled"
    return f"{copies} iteration{'s' if copies > 1 else ''} of {neighbour.name} ({origin})"


def _format_equation(side: RegionMatrixWork) -> str:
    work_terms = []
    for work in side.instructions:
        ctas = f" of {side.ctas} CTAs" if side.ctas > 1 and work.op.issuer not in (Issuer.CTA, Issuer.CTA_PAIR) else ""
        issuers = f"{work.issuers} {work.op.issuer}{'s' if work.issuers != 1 else ''}"
        work_terms.append(f"{work.count} × {work.op.flop} × {issuers}{ctas}")
    copies: Counter[str] = Counter()
    for dot in side.dots:
        product = f"2·{dot.op.m}·{dot.op.n}·{dot.op.k}"
        copies[product] += dot.count * dot.op.blocks * side.unroll_factor
    dot_terms = [f"{count} × {product}" if count > 1 else product for product, count in copies.items()]
    return f"{' + '.join(work_terms)} = {' + '.join(dot_terms)}"
