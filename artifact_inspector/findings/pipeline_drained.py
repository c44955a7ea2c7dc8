"""A pipelined loop leaves nothing in flight at its wait.

`cp.async.wait_group 0` in every iteration: the loop waits for all prefetched data before it computes.

**When it is reported.** A loop prefetches with asynchronous copies, and a wait in it leaves none in flight. Both the
depth of the wait and the copies issued before it count. Nothing is reported if another stage does not fit, or if
matrix operations stay in flight during the wait. Which `num_stages` helps depends on the loop, as one stage more may
be wasted too: `findings --try` compiles up to three more and says what each does, `advise` simulates some.

**What it is likely to cost.** The next loads overlap with the computes after the wait, but not with the wait. With
`num_stages` 2 the pipeline is built so; with more, the additional stages are wasted.

**What to do.** Try the `num_stages` that `inspect-kernel advise` names. If none helps, load what the copies depend on,
such as an index, one iteration earlier.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.overlap.pipeline import RUNS_AHEAD
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import deeper
from artifact_inspector.model import EventKind, PipelineKind, Stage

_COPIES = EventKind.ASYNC_COPY.count_name
MOST_STAGES = 3
"""Stages more that are tried: where waits of two copies of a loop alternate, only the third may help."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last, target, used = kernel.last, kernel.artifact.target, kernel.resources.shared.value
    most = None if target is None else target.limits.shared_per_block
    at_last = {region.id: (stage, region) for stage in kernel.stages.values() for region in stage.regions}
    ahead = [(stage, region.id) for stage, region in at_last.values() if region.verdict in RUNS_AHEAD]
    if last is None or not any(stage.counts[_COPIES] and stage.drains(name) for stage, name in ahead):
        return  # no loop whose copies run ahead drains: a row of a list then needs no pipelines
    for name, pipeline in kernel.pipelines.items():
        if pipeline.kind in (None, PipelineKind.REGISTERS):
            continue
        drains = kernel.drains(name)
        if not drains:
            continue
        region = last.region(name)
        if region is not None and region.matrix_in_flight:
            continue
        waits = {
            wait.op if wait.depth is None else wait.format_with_depth(wait.depth)
            for wait in last.waits
            if wait.line in drains
        }
        stage_bytes = _stage_bytes(kernel, name)
        if stage_bytes is not None and most is not None and used is not None and stage_bytes > most - used:
            continue
        depth = ""
        if pipeline.num_stages is not None:
            tried = f"{pipeline.num_stages + 1} to {pipeline.num_stages + MOST_STAGES}"
            depth = f" at num_stages {pipeline.num_stages}; `findings --try` tests num_stages {tried}"
        message = (
            f"{name}: the pipeline drains in every iteration: {', '.join(sorted(waits))} leaves no copy "
            f"in flight{depth}"
        )
        sources = () if region is None else tuple(s for located_round in region.rounds for s in located_round.sources)
        yield Remark(message, last.stage, drains, tuple(dict.fromkeys(sources)))


def _stage_bytes(kernel: KernelFacts, name: str) -> int | None:
    """Bytes of shared memory that one stage of a loop takes at most; None if unknown."""
    facts = kernel.stages.get(Stage.TTGIR)
    region = None if facts is None else facts.region(name)
    if region is None or kernel.bill is None:
        return None
    # The pipeliner allocates its buffers before the loop and uses them in it. Others may do so too.
    start, stop = region.lines
    allocations = [
        allocation
        for allocation in kernel.bill.entries
        if allocation.first < start < allocation.last and allocation.first <= stop
    ]
    sizes = [
        None if allocation.bytes is None else allocation.bytes // allocation.buffers
        for allocation in allocations
        if not allocation.is_scratch
    ]
    return sum(size for size in sizes if size is not None) if sizes and None not in sizes else None


RULE = Rule(
    "AI002", "pipeline-drained", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__,
    switches=lambda kernel: deeper(kernel, MOST_STAGES),
)  # fmt: skip
