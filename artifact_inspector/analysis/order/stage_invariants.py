"""What holds between the stages of every kernel. A departure is an error of this tool, not of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.model import OrderVerdict, Stage

_PREFETCHES = frozenset({OrderVerdict.PIPELINED, OrderVerdict.PARTLY_PIPELINED})


def find_broken_invariants(stages: Mapping[Stage, tuple[RegionFacts, ...]]) -> Iterator[str]:
    """The statements about regions that contradict each other, each as a sentence."""
    previous: dict[str, tuple[Stage, RegionFacts]] = {}
    for stage, regions in stages.items():
        for region in regions:
            for complaint in (*_in_stage(region), *_between_stages(previous.get(region.id), stage, region)):
                yield f"{region.id} at {stage.value}: {complaint}"
            if region.verdict is not OrderVerdict.UNKNOWN:
                previous[region.id] = (stage, region)


def _in_stage(region: RegionFacts) -> Iterator[str]:
    if region.is_dissolved_loop and (region.distance is not None or region.unroll_factor > 1):
        yield f"there is no such loop, but it is called {region.phrase}"
    if region.verdict in _PREFETCHES and region.distance is None:
        yield f"{region.verdict} without a distance"
    for number, item in enumerate(region.rounds, 1):
        if region.verdict in _PREFETCHES and item.loads % region.unroll_factor:
            yield f"{item.loads} loads of round {number} are no whole number in each of {region.unroll_factor} copies"


def _between_stages(before: tuple[Stage, RegionFacts] | None, stage: Stage, region: RegionFacts) -> Iterator[str]:
    """Only Triton's pipeliner, which makes TTGIR, and the assembler move loads to other iterations."""
    if before is None or stage.order <= Stage.TTGIR.order or stage is Stage.SASS:
        return
    earlier_stage, earlier = before
    if earlier.verdict in _PREFETCHES and region.verdict is OrderVerdict.SERIAL and not region.notes:
        yield f"{region.phrase}, but {earlier.phrase} at {earlier_stage.value}, and no cause is named"
    distances = [
        (now, then)
        for item, old in zip(region.rounds, earlier.rounds, strict=False)
        if item.sources == old.sources and region.verdict in _PREFETCHES and earlier.verdict in _PREFETCHES
        for now, then in zip(item.distances, old.distances, strict=False)
        if now != then
    ]
    if distances and not region.notes:
        now, then = distances[0]
        yield f"a load is {now} iterations ahead, but {then} at {earlier_stage.value}, and no cause is named"
