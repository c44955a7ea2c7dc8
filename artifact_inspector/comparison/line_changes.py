"""The source lines on which the trips of a loop cost more or less than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.model.region import RegionKind
from artifact_inspector.vocabulary import file_facts, iteration_facts
from artifact_inspector.vocabulary.fact import Fact
from artifact_inspector.vocabulary.rows import fact_of

KINDS = {
    iteration_facts.scratch_loads: EventKind.LOCAL_LOAD,
    iteration_facts.scratch_stores: EventKind.LOCAL_STORE,
    iteration_facts.waits_per_trip: EventKind.WAIT,
    iteration_facts.conversions_per_trip: EventKind.LAYOUT_CONVERSION,
    **{of.barriers: EventKind.BARRIER for of in (file_facts, iteration_facts)},
    **{of.shared_loads: EventKind.SHARED_LOAD for of in (file_facts, iteration_facts)},
    **{of.shared_stores: EventKind.SHARED_STORE for of in (file_facts, iteration_facts)},
    iteration_facts.barriers_once: EventKind.BARRIER,
    iteration_facts.shared_loads_once: EventKind.SHARED_LOAD,
    iteration_facts.shared_stores_once: EventKind.SHARED_STORE,
}
"""Count → the instructions whose lines explain it."""


class LineChange(NamedTuple):
    """What one iteration does on one source line, on both sides."""

    key: str
    """Of the fact: `loop1.trip.barriers`."""
    title: str
    """Its label: `barriers`."""
    source: str
    """`matmul.py:41`."""
    left: float
    right: float


def find_line_changes(pair: Comparison) -> Iterator[LineChange]:
    """The lines of each differing fact of a trip, the largest change first; empty without locations."""
    ids = {region.name: (region.left, region.right) for region in pair.regions}
    for fact in pair.facts:
        definition = fact_of(fact.key, fact.region)
        if fact.differs and fact.region and definition is not None and definition in KINDS:
            sides = zip((pair.left, pair.right), ids.get(fact.region, (None, None)), strict=True)
            left, right = (count_lines(kernel, region, definition) for kernel, region in sides)
            for source in sorted({*left, *right}, key=lambda source: (-abs(right[source] - left[source]), source)):
                if left[source] != right[source]:
                    yield LineChange(fact.key, fact.title, source, left[source], right[source])


def count_lines(kernel: KernelFacts, region: str | None, fact: Fact) -> Counter[str]:
    """Source line → instructions that a fact counts, of one iteration of a loop; empty without locations.

    Args:
        region: id of the region that the fact is of; None for facts of the whole text.
    """
    counts: Counter[str] = Counter()
    is_conversion = fact is iteration_facts.conversions_per_trip
    stage = kernel.stages.get(Stage.TTGIR) if is_conversion else kernel.last
    if stage is None:
        return counts
    loops = [stage.work[facts.id] for facts in stage.regions if facts.kind is RegionKind.LOOP]
    copied = iteration_facts.count_by_line(loops, KINDS[fact]) if fact in iteration_facts.ONCE else Counter()
    for facts in stage.regions:
        if region not in (None, facts.id) or (fact in iteration_facts.ONCE and not copied):
            continue
        work = stage.work[facts.id]
        lines = Counter(one.source for one in work.conversions)
        lines = lines if is_conversion else iteration_facts.count_by_line([work], KINDS[fact])
        for source in lines.keys() - copied.keys() - {None}:
            counts[str(source)] += lines[source] / (1 if region is None else facts.unroll_factor)  # type: ignore[assignment]
    return counts
