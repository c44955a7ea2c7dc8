"""The source lines on which the trips of a loop cost more or less than before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.vocabulary import region_facts
from artifact_inspector.vocabulary.fact import Fact
from artifact_inspector.vocabulary.rows import fact_of

_KINDS: dict[str, EventKind] = {
    region_facts.scratch_loads.key: EventKind.LOCAL_LOAD,
    region_facts.scratch_stores.key: EventKind.LOCAL_STORE,
    region_facts.barriers.key: EventKind.BARRIER,
    region_facts.waits_per_trip.key: EventKind.WAIT,
    region_facts.conversions_per_trip.key: EventKind.LAYOUT_CONVERSION,
}


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
        if fact.differs and definition is not None and definition.key in _KINDS:
            sides = zip((pair.left, pair.right), ids.get(fact.region, (None, None)), strict=True)
            left, right = (_count(kernel, region, definition) for kernel, region in sides)
            for source in sorted({*left, *right}, key=lambda source: (-abs(right[source] - left[source]), source)):
                if left[source] != right[source]:
                    yield LineChange(fact.key, fact.title, source, left[source], right[source])


def count_by_line(kernel: KernelFacts, kind: EventKind) -> Counter[str]:
    """Source line → instructions of a kind in the code of the last stage, in the order of the text."""
    works = () if kernel.last is None else kernel.last.work.values()
    lines = [line for work in works for line in work.code_lines if line.kind == kind.count_name]
    counts: Counter[str] = Counter()
    for line in lines:
        counts[str(line.source or "")] += line.instructions
    del counts[""]
    return counts


def _count(kernel: KernelFacts, region: str | None, fact: Fact) -> Counter[str]:
    """Source line → instructions of one iteration."""
    counts: Counter[str] = Counter()
    is_conversion = fact is region_facts.conversions_per_trip
    stage = kernel.stages.get(Stage.TTGIR) if is_conversion else kernel.last
    facts = None if stage is None or region is None else stage.region(region)
    work = None if stage is None or region is None else stage.work.get(region)
    if facts is None or work is None:
        return counts
    for conversion in work.conversions if is_conversion else ():
        counts[str(conversion.source or "")] += 1
    for line in () if is_conversion else work.line_counts:
        if line.kind == _KINDS[fact.key].count_name:
            counts[str(line.source or "")] += line.instructions / facts.unroll_factor  # type: ignore[assignment]
    del counts[""]
    return counts
