"""A pipelined loop leaves nothing in flight at its wait.

`cp.async.wait_group 0` in every iteration: all that was loaded ahead is waited for before the computes
begin.

**When it is said.** A loop runs ahead with asynchronous copies, and a wait for copies in it leaves none in
flight, by its depth and by the copies that were issued in front of it.

**What it is likely to cost.** The loads of the next iterations overlap with the computes behind the wait
only, not with the wait. With `num_stages` 2 that is how the pipeline is built; with more it gives the
additional stages away.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import deeper
from artifact_inspector.model import PipelineKind


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    for name, pipeline in kernel.pipelines.items():
        if last is None or pipeline.kind in (None, PipelineKind.REGISTERS):
            continue
        drains = kernel.drains(name)
        if not drains:
            continue
        region = last.region(name)
        waits = {
            wait.op if wait.depth is None else wait.written(wait.depth)
            for wait in last.waits
            if wait.line in drains
        }
        depth = f"num_stages {pipeline.num_stages}" if pipeline.num_stages is not None else "its num_stages"
        message = f"{name}: {', '.join(sorted(waits))} leaves no copy in flight in any iteration, at {depth}"
        sources = () if region is None else tuple(s for found in region.rounds for s in found.sources)
        yield Remark(message, last.stage, drains, tuple(dict.fromkeys(sources)))


RULE = Rule(
    "AI002", "pipeline-drained", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__, switches=deeper
)
