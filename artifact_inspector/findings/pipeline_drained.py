"""A pipelined loop leaves nothing in flight at its wait.

`cp.async.wait_group 0` in every iteration: the loop waits for all prefetched data before it computes.

**When it is reported.** A loop prefetches with asynchronous copies, and a wait in it leaves none in
flight. Both the depth of the wait and the copies issued before it count. The message names the shared
memory that one more stage takes at most, where it is known. Nothing is reported if another stage does
not fit.

**What it is likely to cost.** The next loads overlap with the computes after the wait, but not with the
wait. With `num_stages` 2 the pipeline is built so; with more, the additional stages are wasted.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import deeper
from artifact_inspector.model import PipelineKind, Stage


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
            wait.op if wait.depth is None else wait.format_with_depth(wait.depth)
            for wait in last.waits
            if wait.line in drains
        }
        more, room = _stage(kernel, name), _room(kernel)
        if more is not None and room is not None and more > room:
            continue
        free = "" if room is None else f"; {room} B are free"
        one_more = f". One more stage takes at most {more} B of shared memory{free}" if more else ""
        depth = f" at num_stages {pipeline.num_stages}" if pipeline.num_stages is not None else ""
        message = (
            f"{name}: the pipeline drains in every iteration: {', '.join(sorted(waits))} leaves no copy "
            f"in flight{depth}{one_more}"
        )
        sources = () if region is None else tuple(s for found in region.rounds for s in found.sources)
        yield Remark(message, last.stage, drains, tuple(dict.fromkeys(sources)))


def _stage(kernel: KernelFacts, name: str) -> int | None:
    """Bytes of shared memory that one stage of a loop takes at most; None where that is not known."""
    facts = kernel.stages.get(Stage.TTGIR)
    region = None if facts is None else facts.region(name)
    if region is None or kernel.bill is None:
        return None
    # What the pipeliner made is allocated in front of the loop, and used in it; so may other things be.
    start, stop = region.lines
    own = [one for one in kernel.bill.entries if one.first < start < one.last and one.first <= stop]
    sizes = [None if one.bytes is None else one.bytes // one.buffers for one in own if not one.is_scratch]
    return sum(size for size in sizes if size is not None) if sizes and None not in sizes else None


def _room(kernel: KernelFacts) -> int | None:
    """Bytes of shared memory that a block may have beside those it takes."""
    target, taken = kernel.artifact.target, kernel.resources.shared.value
    most = None if target is None else target.limits.shared_per_block
    return None if most is None or taken is None else most - taken


RULE = Rule("AI002", "pipeline-drained", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__, switches=deeper)
