"""Explains the waits and copies of a region."""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.waits import iterations_left
from artifact_inspector.facts.kernel import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.model import EventKind, Queue, RegionKind, WaitPurpose
from artifact_inspector.report.phrases import plural, span


def load_depths(kernel: KernelFacts) -> str:
    """Depths of the main loop's waits for loads and copies; `phase` for waits on an mbarrier."""
    last = kernel.last
    if last is None:
        return "–"
    depths = kernel.wait_depths
    if depths:
        return span(min(depths), max(depths))
    waits = last.waits_in(kernel.principal)
    return "phase" if any(w.purpose is WaitPurpose.BARRIER for w in waits) else "–"


def describe_copies(kernel: KernelFacts, region: RegionFacts) -> str | None:
    """Copies and commit groups of one iteration of a loop, and their place in it."""
    if region.kind is not RegionKind.LOOP:
        return None
    texts = []
    copies = region.count(EventKind.ASYNC_COPY) / region.unroll_factor
    if copies:
        texts.append(f"{copies:g} {plural('copy', copies)} per iteration")
        commits = _commits(kernel, region)
        if commits is not None:
            texts.append(f"in {commits} commit {plural('group', commits)}")
    if region.copy_position is not None:
        lead = "issued" if texts else "loads for later iterations are issued"
        texts.append(f"{lead} {region.copy_position} the computes")
    return ", ".join(texts) or None


def describe_waits(kernel: KernelFacts, stage: StageFacts, *regions: RegionFacts) -> Iterator[str]:
    """A sentence for each kind and depth of wait in some related regions."""
    waits = stage.waits_in(*(region.id for region in regions))
    for op in dict.fromkeys(wait.op for wait in waits):
        waits_of_op = [wait for wait in waits if wait.op == op]
        depths = sorted({wait.depth for wait in waits_of_op if wait.depth is not None}, reverse=True)
        if len(depths) > 2:
            text = f"{waits_of_op[0].format_with_depth(f'{depths[0]}…{depths[-1]}')} {_lines(waits_of_op)}"
            zero_note = "; 0 waits for all of them" if depths[-1] == 0 else ""
            yield f"{text}: the number is how many {_unit(waits_of_op[0], 2)} stay in flight{zero_note}"
            continue
        for depth in depths if depths else (None,):
            waits_of_depth = [wait for wait in waits_of_op if wait.depth == depth]
            text = op if depth is None else waits_of_op[0].format_with_depth(depth)
            yield f"{text} {_lines(waits_of_depth)}: {_explain(kernel, stage, regions[0], waits_of_depth[0])}"


def _explain(kernel: KernelFacts, stage: StageFacts, region: RegionFacts, wait: WaitFacts) -> str:
    if wait.depth is None:
        if wait.purpose is WaitPurpose.BARRIER:
            return "waits on an mbarrier until its copies have landed and its warps have arrived"
        if wait.is_for_loads:
            return "waits for all earlier loads"
        if wait.purpose is WaitPurpose.TENSOR_MEMORY:
            return f"waits for {wait.purpose}, not for loads"
        return f"waits for {_unit(wait, 2)}, not for loads"
    if wait.depth == 0:
        text = f"waits for all earlier {_unit(wait, 2)}"
        work = stage.work.get(region.id)
        drains = work is not None and wait.line in work.in_flight.drains
        ahead = wait.is_for_loads and region.distance is not None
        return text + ("; the pipeline drains in every iteration" if ahead and drains else "")
    text = f"leaves {wait.depth} {_unit(wait, wait.depth)} in flight"
    commits = _commits(kernel, region) if wait.queue is Queue.GROUP else None
    iterations = iterations_left(wait.depth, commits)
    if iterations is None:
        return text
    return (
        f"{text}; with {commits} per iteration, that is {wait.depth} ÷ {commits} = "
        f"{iterations:.2g} {plural('iteration', iterations)}"
    )


def _commits(kernel: KernelFacts, region: RegionFacts) -> int | None:
    """Groups of copies committed in one source iteration of a loop."""
    pipeline = kernel.pipelines.get(region.id)
    return None if pipeline is None else pipeline.commits_per_iteration


_UNITS = {
    Queue.GROUP: "copy group",
    Queue.LOADS: "vector-memory load",
    Queue.COPIES: "copy",
    Queue.TENSORS: "copy",
    Queue.MATRIX: "group of matrix operations",
    Queue.STORES: "group of stores",
    Queue.PHASE: "phase",
}


def _unit(wait: WaitFacts, count: int) -> str:
    return plural(_UNITS[wait.queue], count)


def _lines(waits: list[WaitFacts]) -> str:
    lines = [wait.line for wait in waits]
    if len(lines) == 1:
        return f"(line {lines[0]})"
    if len(lines) <= 3:
        return f"(lines {', '.join(map(str, lines))})"
    return f"(×{len(lines)}, lines {span(lines[0], lines[-1])})"
