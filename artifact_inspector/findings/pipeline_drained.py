"""A pipelined loop leaves nothing in flight at its wait.

`cp.async.wait_group 0` in every iteration: all that was loaded ahead is waited for before the computes
begin.

**When it is said.** A loop runs ahead with asynchronous copies, and a wait for copies in it leaves none in
flight, by its depth and by the copies that were issued in front of it. It is told what shared memory one
stage more would take at most, where that is known; nothing is said where a block has no room for it.

**What it is likely to cost.** The loads of the next iterations overlap with the computes behind the wait
only, not with the wait. With `num_stages` 2 that is how the pipeline is built; with more it gives the
additional stages away.
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
            wait.op if wait.depth is None else wait.written(wait.depth)
            for wait in last.waits
            if wait.line in drains
        }
        more, room = _stage(kernel, name), _room(kernel)
        if more is not None and room is not None and more > room:
            continue
        takes = "" if not more else f"; one stage more takes {more} B of shared memory at most"
        one_more = takes if not takes or room is None else f"{takes}, and a block may have {room} more"
        depth = f"num_stages {pipeline.num_stages}" if pipeline.num_stages is not None else "its num_stages"
        message = (
            f"{name}: {', '.join(sorted(waits))} leaves no copy in flight in any iteration, "
            f"at {depth}{one_more}"
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


RULE = Rule(
    "AI002", "pipeline-drained", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__, switches=deeper
)
