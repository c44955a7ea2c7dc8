"""A loop waits for all loads in flight several times per iteration.

Load, wait, load, wait: the loads of one iteration do not overlap, and each pays the latency of memory.

**When it is reported.** In one iteration of a loop without asynchronous copies, at least three waits find loads of the
loop in flight and leave none, at the last stage. At least two of them are unconditional. If LLVM unrolled the loop,
there are three for each iteration of the program. For an outer loop, and with fewer than three unconditional waits,
the finding is a note.

**What it is likely to cost.** The latency of global memory, some hundred cycles, for each wait, minus the work of
other warps.

**What to do.** Write independent loads of an iteration before its first compute. They then share one wait, if
registers suffice.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, describe_region
from artifact_inspector.model import PipelineKind, RegionKind

SEVERAL = 3
AT_LEAST = 2
"""Of them unconditional: conditional waits may exclude each other."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    outer_loops = {region.parent for region in last.regions if region.kind is RegionKind.LOOP}
    for region in last.regions:
        work, times = last.work.get(region.id), region.unroll_factor
        is_loop = work is not None and region.kind is RegionKind.LOOP
        drains = last.drains(region.id, SEVERAL * times) if is_loop else ()
        if work is None or len(drains) < SEVERAL * times:
            continue
        pipeline = kernel.pipelines.get(region.id)
        if pipeline is not None and pipeline.kind not in (None, PipelineKind.REGISTERS):
            continue
        draining = [wait for wait in work.in_flight.waits if wait.drains]
        ops = dict.fromkeys(wait.op for wait in draining)
        always = sum(wait.is_unconditional for wait in draining)
        if always < AT_LEAST * times:
            continue
        maybe = len(draining) - always
        conditional = f", and {maybe} conditional," if maybe else ""
        yield Remark(
            f"{describe_region(region.id)}: {always} waits in every iteration{conditional} each leave no load in "
            f"flight ({', '.join(ops)}): each iteration pays the latency of memory up to {len(drains)} times"
            + (f" ({times} iterations of the program)" if times > 1 else ""),
            last.stage,
            drains,
            tuple(dict.fromkeys(source for located_round in region.rounds for source in located_round.sources)),
            is_minor=region.id in outer_loops or always < SEVERAL * times,
        )


RULE = Rule("AI023", "waits-in-turn", Severity.WARNING, Consequence.IN_FLIGHT, _look, __doc__)
