"""A loop waits for everything in flight several times in one iteration.

Load, wait until it is there, load the next, wait again: the loads of one iteration do not overlap with each
other, and the latency of the memory is paid once for each.

**When it is said.** In one iteration of a loop that no asynchronous copy feeds, three waits or more find
loads of the loop in flight and leave none, at the last stage. Those that stand under a condition are counted
apart, as not every iteration comes by them, and two or more stand under none. Where LLVM unrolled the loop,
there are three for each iteration of the program. Of a loop around another, and where fewer than three stand
under none, it is a note.

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
AT_LEAST = 2
"""Of them under no condition: what stands under conditions alone may exclude each other."""


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
        times = region.unrolled_by
        if len(drains) < SEVERAL * times:
            continue
        draining = [wait for wait in work.in_flight.waits if wait.drains]
        ops = dict.fromkeys(wait.op for wait in draining)
        always = sum(wait.always for wait in draining)
        if always < AT_LEAST * times:
            continue
        yield Remark(
            f"{region.id}: {_words(always, len(draining))} each leave no load in flight "
            f"({', '.join(ops)}): the latency of memory is paid up to {len(drains)} times"
            + (f" in {times} iterations of the program" if times > 1 else ""),
            last.stage,
            drains,
            tuple(dict.fromkeys(source for found in region.rounds for source in found.sources)),
            is_minor=region.id in around or always < SEVERAL * times,
        )


def _words(always: int, waits: int) -> str:
    if always == waits:
        return f"{waits} waits in every iteration"
    apart = f"{waits - always} that stand{'s' if waits - always == 1 else ''} under a condition"
    return f"{always} waits in every iteration, and {apart},"


RULE = Rule("AI023", "waits-in-turn", Severity.WARNING, Consequence.IN_FLIGHT, _look, __doc__)
