"""A loop waits for everything in flight several times in one iteration.

Load, wait until it is there, load the next, wait again: the loads of one iteration do not overlap with each
other, and the latency of the memory is paid once for each.

**When it is said.** In one iteration of a loop that no asynchronous copy feeds, three waits or more find
loads of the loop in flight and leave none, at the last stage. Of a loop around another it is a note.

**What it is likely to cost.** The latency of global memory, some hundred cycles, once for each wait, less
what other warps can do meanwhile. Loads that do not depend on each other, issued together in front of the
first wait, pay it once; registers must suffice for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import PipelineKind, RegionKind

SEVERAL = 3


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    around = {region.parent for region in last.regions if region.kind is RegionKind.LOOP}
    for region in last.regions:
        work, pipeline = last.work.get(region.id), kernel.pipelines.get(region.id)
        if work is None or region.kind is not RegionKind.LOOP:
            continue
        if pipeline is not None and pipeline.kind not in (None, PipelineKind.REGISTERS):
            continue
        drains = work.in_flight.drains
        if len(drains) < SEVERAL:
            continue
        ops = dict.fromkeys(wait.op for wait in work.in_flight.waits if wait.drains)
        yield Remark(
            f"{region.id}: {len(drains)} waits in one iteration each leave no load in flight "
            f"({', '.join(ops)}): the latency of memory is paid {len(drains)} times",
            last.stage,
            drains,
            tuple(dict.fromkeys(source for found in region.rounds for source in found.sources)),
            is_minor=region.id in around,
        )


RULE = Rule("AI023", "waits-in-turn", Severity.WARNING, Consequence.IN_FLIGHT, _look, __doc__)
