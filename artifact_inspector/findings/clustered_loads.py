"""The loads of several rounds are issued before computes that they do not feed.

The source order load, compute, load, compute became load, load, compute, compute.

**When it is reported.** The source of a region was `interleaved` or `grouped`, and a later stage made it `clustered`,
`grouped` or `staggered(d)`. The last stage still has that order. Loads count as clustered only if no direct compute of
these rounds is between them: braces such as `{1 2}{3}` enclose such rounds. The message names the stage that changed
the order. Loops that wait for their loads in turn (AI023) are not reported.

**What it is likely to cost, or gain.** More loads are in flight at once, which hides latency if registers suffice.
More registers are live, and the first compute waits for loads that a later compute needs. Which effect wins depends on
the target: measure both orders.

**What to do.** Nothing, if this order is faster. Otherwise compare other values of `num_stages` and other releases of
Triton with `inspect-kernel rank`.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, describe_region
from artifact_inspector.findings.waits_in_turn import SEVERAL
from artifact_inspector.model import OrderVerdict, RegionKind, Stage
from artifact_inspector.model.region import RegionId

ISSUED_TOGETHER = frozenset({OrderVerdict.CLUSTERED, OrderVerdict.GROUPED, OrderVerdict.STAGGERED})
IN_TURN = frozenset({OrderVerdict.INTERLEAVED, OrderVerdict.GROUPED})
"""Source orders in which some loads are after computes of earlier rounds."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    for region in last.regions:
        if region.verdict not in ISSUED_TOGETHER or not region.is_in_program:
            continue
        stage = _stage_of_change(kernel, region)
        earlier_orders = () if stage is None else _orders_before(kernel, region.id, stage)
        if stage is None or not earlier_orders or earlier_orders[0].verdict not in IN_TURN:
            continue
        if region.kind is RegionKind.LOOP and len(last.drains(region.id, SEVERAL)) >= SEVERAL:
            continue
        loads = sum(located_round.loads for located_round in region.rounds)
        lines = [located_round.first_load for located_round in region.rounds if located_round.first_load is not None]
        sources = dict.fromkeys(source for located_round in region.rounds for source in located_round.sources)
        yield Remark(
            f"{describe_region(region.id)}: {loads} loads of {len(region.rounds)} rounds {_describe(region)} "
            f"({region.phrase}). "
            f"{stage.producer} changed the order at {stage.value}; before it was {earlier_orders[-1].phrase}",
            last.stage,
            tuple(lines),
            tuple(sources),
        )


def _describe(region: RegionFacts) -> str:
    if region.verdict is OrderVerdict.CLUSTERED:
        return "are issued together"
    if any(" " in brace for brace in region.groups.split("}")):
        return "are issued together in part"
    return "are issued ahead of earlier computes"


def _stage_of_change(kernel: KernelFacts, region: RegionFacts) -> Stage | None:
    """The last stage that changed a region's order, if that order is still the one of the last stage."""
    regions = ((stage, facts.region(region.id)) for stage, facts in reversed(kernel.stages.items()))
    change = next(
        (
            (stage, region_facts)
            for stage, region_facts in regions
            if region_facts is not None and region_facts.order_changed
        ),
        None,
    )
    return change[0] if change is not None and change[1].phrase == region.phrase else None


def _orders_before(kernel: KernelFacts, name: str, stage: Stage) -> tuple[RegionFacts, ...]:
    """A region at the stages before one, if it had an order there, the source order first."""
    names = (name, RegionId.parse(name).loop_id)
    earlier = [facts for facts in kernel.stages.values() if facts.stage.order < stage.order]
    regions = (next(filter(None, map(facts.region, names)), None) for facts in earlier)
    return tuple(region for region in regions if region is not None and region.verdict.is_order_verdict)


RULE = Rule("AI001", "clustered-loads", Severity.NOTE, Consequence.ORDER, _look, __doc__)
