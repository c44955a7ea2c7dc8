"""The loads of several rounds run ahead of computes that they do not feed.

Load, load, compute, compute: the order in which the kernel was written, load, compute, load, compute, is
gone.

**When it is said.** A region of the program is `clustered`, `grouped` or `staggered(d)` at the last stage.
That loads stand together is said only where no direct compute of these rounds stands between them. The
message names the stage that made it so when an earlier stage had another order. Nothing is said of a region
that was written so: one that has such an order in TTIR already, and keeps it. Nor of a loop that waits for
its loads in turn (AI023): what is waited for at once is not in flight with the next.

**What it is likely to cost, or gain.** More loads are in flight at once, which hides latency where
registers suffice; more registers are live, and the first compute waits for loads that a later one needs.
Which of the two wins depends on the target: measure both.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings.waits_in_turn import SEVERAL
from artifact_inspector.model import RegionKind, Stage, Verdict
from artifact_inspector.model.region import RegionId

SAID = {
    Verdict.CLUSTERED: "stand together",
    Verdict.GROUPED: "stand together in part",
    Verdict.STAGGERED: "run ahead of computes in front of them",
}


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    for region in last.regions:
        if region.verdict not in SAID or not region.in_program:
            continue
        work = last.work.get(region.id)
        if work is not None and region.kind is RegionKind.LOOP and len(work.in_flight.drains) >= SEVERAL:
            continue
        stage = _made_so_at(kernel, region)
        if stage is None and _is_written_so(kernel, region.id):
            continue
        loads = sum(found.loads for found in region.rounds)
        said = f"{loads} loads of {len(region.rounds)} rounds {SAID[region.verdict]}"
        message = f"{region.id}: {said} ({region.phrase})"
        if stage is not None:
            earlier = (facts for facts in reversed(kernel.stages.values()) if facts.stage.order < stage.order)
            found = (facts.region(region.id) for facts in earlier)
            was = next((facts for facts in found if facts is not None and facts.verdict.is_of_order), None)
            message += f"; {stage.made_by} made it so at {stage.value}" + (
                "" if was is None else f", it was {was.phrase} before"
            )
        lines = [found.first_load for found in region.rounds if found.first_load is not None]
        sources = dict.fromkeys(source for found in region.rounds for source in found.sources)
        yield Remark(message, last.stage, tuple(lines), tuple(sources))


def _made_so_at(kernel: KernelFacts, region: RegionFacts) -> Stage | None:
    """The last stage that changed a region's order, where it made it what it is at the last stage."""
    found = ((stage, facts.region(region.id)) for stage, facts in reversed(kernel.stages.items()))
    changed = next(((stage, there) for stage, there in found if there is not None and there.changed), None)
    return changed[0] if changed is not None and changed[1].phrase == region.phrase else None


def _is_written_so(kernel: KernelFacts, name: str) -> bool:
    """True for a region whose loads stand together in the program as written, or a copy of one."""
    facts = kernel.stages.get(Stage.TTIR)
    written = None if facts is None else facts.region(RegionId.parse(name).whole)
    return written is not None and written.verdict in SAID


RULE = Rule("AI001", "clustered-loads", Severity.NOTE, Consequence.ORDER, _look, __doc__)
