"""Facts of one iteration of a loop, and of what runs outside of loops, in the last text: without copies of loops."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from fractions import Fraction

from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.facts.kernel import RegionWork
from artifact_inspector.model import EventKind, SourceLine, Stage
from artifact_inspector.model.region import RegionKind
from artifact_inspector.vocabulary import file_facts
from artifact_inspector.vocabulary.fact import Absent, Category, Direction, Fact, RegionSubject, Unit, region_fact
from artifact_inspector.vocabulary.kernel_facts import no_consequence
from artifact_inspector.vocabulary.region_facts import per_iteration


def count_by_line(works: Iterable[RegionWork], kind: EventKind) -> Counter[SourceLine | None]:
    """Source line → instructions of a kind, in the order of the text."""
    lines = [line for work in works for line in work.code_lines if line.kind == kind.count_name]
    counts: Counter[SourceLine | None] = Counter()
    for line in lines:
        counts[line.source] += line.instructions
    return counts


def _loops_inside(of: RegionSubject) -> list[RegionWork]:
    """The loops of a stage that are in a loop; all of them for code outside of loops."""
    parents = {region.id: region.parent for region in of.stage.regions}

    def is_inside(region: str | None) -> bool:
        while region is not None and region != of.region.id:
            region = parents.get(region)
        return region is not None

    loops = [region.id for region in of.stage.regions if region.kind is RegionKind.LOOP]
    return [of.stage.work[loop] for loop in loops if of.region.kind is not RegionKind.LOOP or is_inside(parents[loop])]


def _count_own(of: RegionSubject, kind: EventKind, copied: Collection[SourceLine | None]) -> int | None:
    """The instructions of a kind but those on lines of loops inside: their prologue, epilogue and peeled iterations."""
    counts = count_by_line([] if of.work is None else [of.work], kind)
    if not copied:
        return of.region.count(kind)
    return None if None in copied or None in counts else sum(n for line, n in counts.items() if line not in copied)


def _count_per_trip(
    kind: EventKind, label: str, category: Category, direction: Direction = Direction.LESS_IS_BETTER, key: str = ""
) -> Fact:
    """The instructions of a kind in one iteration of a loop, without copies of loops inside."""

    @region_fact(
        f"trip.{key or label.replace(' ', '_')}", label, Unit.PER_ITERATION, category=category, direction=direction
    )
    def find(of: RegionSubject) -> int | float | Absent | None:
        if of.work is None or of.region.kind is not RegionKind.LOOP:
            return Absent.ABSENT
        count = _count_own(of, kind, count_by_line(_loops_inside(of), kind))
        return None if count is None else per_iteration(of, count) or Absent.ABSENT

    return find


def _count_once(kind: EventKind, label: str, category: Category) -> Fact:
    """The instructions of a kind outside of loops, without copies of loops; absent where no loop has any."""

    @region_fact(
        f"once.{label.replace(' ', '_')}",
        f"{label} outside of loops",
        Unit.IN_CODE,
        category=category,
        direction=Direction.LESS_IS_BETTER,
    )
    def find(of: RegionSubject) -> int | Absent | None:
        is_outside = of.stage.stage.order > Stage.LLIR.order and of.region.kind is not RegionKind.LOOP
        copied = count_by_line(_loops_inside(of), kind) if is_outside else {}
        return _count_own(of, kind, copied) if copied else Absent.ABSENT

    return find


scratch_loads = _count_per_trip(EventKind.LOCAL_LOAD, "scratch loads", Category.SPILLS)
scratch_stores = _count_per_trip(EventKind.LOCAL_STORE, "scratch stores", Category.SPILLS)
barriers = _count_per_trip(EventKind.BARRIER, "barriers", Category.BARRIERS)
waits_per_trip = _count_per_trip(EventKind.WAIT, "waits", Category.INSTRUCTIONS, Direction.NEUTRAL, "wait_count")
shared_loads = _count_per_trip(EventKind.SHARED_LOAD, "shared loads", Category.INSTRUCTIONS)
shared_stores = _count_per_trip(EventKind.SHARED_STORE, "shared stores", Category.INSTRUCTIONS)
barriers_once = _count_once(EventKind.BARRIER, "barriers", Category.BARRIERS)
shared_loads_once = _count_once(EventKind.SHARED_LOAD, "shared loads", Category.INSTRUCTIONS)
shared_stores_once = _count_once(EventKind.SHARED_STORE, "shared stores", Category.INSTRUCTIONS)
ONCE = (barriers_once, shared_loads_once, shared_stores_once)
"""Counts outside of loops."""


def _work_per_trip(
    key: str,
    label: str,
    category: Category,
    count: Callable[[RegionSubject, RegionWork], int | None],
    unit: Unit = Unit.PER_ITERATION,
) -> Fact:
    """An amount of one iteration of a loop without loops inside."""

    @region_fact(f"trip.{key}", label, unit, category=category, direction=Direction.LESS_IS_BETTER)
    def find(of: RegionSubject) -> int | float | Absent | None:
        is_last = of.stage.stage.order > Stage.LLIR.order
        if of.work is None or not is_last or of.region.kind is not RegionKind.LOOP or _loops_inside(of):
            return Absent.ABSENT
        amount = count(of, of.work)
        return None if amount is None else per_iteration(of, amount) or Absent.ABSENT

    return find


read_bytes = _work_per_trip(
    "read_bytes",
    "global reads",
    Category.LOADS,
    lambda of, work: file_facts.count_read_bytes(of.kernel, work.accesses),
    Unit.BYTES_PER_BLOCK_AND_ITERATION,
)
compares = _work_per_trip(
    "compares", "compares for masks", Category.BOUNDS, lambda _, work: work.checks.get(CheckKind.COMPARE, 0)
)
instructions = _work_per_trip(
    "instructions",
    "instructions without moves",
    Category.INSTRUCTIONS,
    lambda of, _: sum(of.region.counts.values()) - of.region.count(EventKind.MOVE),
)


@region_fact("unrolled", "iterations that the compiler unrolled", category=Category.INSTRUCTIONS)
def unrolled(of: RegionSubject) -> int | Absent:
    """Copies of the body of a loop in the last text."""
    factor = of.region.unroll_factor
    return factor if of.region.kind is RegionKind.LOOP and factor > 1 else Absent.ABSENT


@region_fact(
    "trip.loads_ahead",
    "shared loads of the next iteration",
    Unit.PER_ITERATION,
    category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER,
    costs=no_consequence,
)
def shared_loads_ahead(of: RegionSubject) -> int | Absent:
    """Shared loads for the matrix instructions of the next iteration.

    Those of the first iteration are outside of the loop: more copies of its loads than of its matrix instructions.
    """
    loads, matrix = (of.region.count(kind) for kind in (EventKind.SHARED_LOAD, EventKind.MATRIX))
    if of.work is None or of.region.kind is not RegionKind.LOOP or not loads or not matrix or _loops_inside(of):
        return Absent.ABSENT
    others = [work for region, work in of.stage.work.items() if region != of.region.id]
    copies = []
    for kind in (EventKind.SHARED_LOAD, EventKind.MATRIX):
        lines = count_by_line([of.work], kind).keys() - {None}
        copies.append(sum(n for line, n in count_by_line(others, kind).items() if line in lines))
    ahead = copies[0] - Fraction(loads * copies[1], matrix)
    return int(ahead) if 0 < ahead <= Fraction(loads) / of.region.unroll_factor else Absent.ABSENT


@region_fact(
    "trip.conversions",
    "layout conversions",
    Unit.PER_ITERATION,
    category=Category.CONVERSIONS,
    direction=Direction.LESS_IS_BETTER,
    step="ttgir",
)
def conversions_per_trip(of: RegionSubject) -> int | Absent:
    """Layout conversions of one iteration, in TTGIR."""
    ttgir = of.kernel.stages.get(Stage.TTGIR)
    work = None if ttgir is None or of.region.kind is not RegionKind.LOOP else ttgir.work.get(of.region.id)
    return Absent.ABSENT if work is None else len(work.conversions) or Absent.ABSENT


TRIPS = {
    file_facts.barriers.key: barriers, file_facts.shared_loads.key: shared_loads,
    file_facts.shared_stores.key: shared_stores, file_facts.compares.key: compares,
    file_facts.read_bytes.key: read_bytes, file_facts.instructions.key: instructions,
}  # fmt: skip
"""Key of a count of the whole text → what one iteration of a loop has of it."""
