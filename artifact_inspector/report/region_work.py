"""Describes the work of a region: pipeline, matrix instructions, conversions, bounds checks, copies and waits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.analysis.flow.loop_range import LoopRange
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.issue_cycles import IssueEstimate
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import iterations_left
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, WaitFacts
from artifact_inspector.model import EventKind, Queue, RegionKind, Stage, WaitPurpose
from artifact_inspector.report.phrases import plural, span


def describe_work(kernel: KernelFacts, region: str, *, is_loop: bool) -> Iterator[tuple[str, str]]:
    """The work of a region as (label, sentence), the most important first."""
    pipeline = kernel.pipelines.get(region)
    if pipeline is not None:
        yield from _pipeline(pipeline)
    last = next((facts for facts in reversed(kernel.stages.values()) if region in facts.work), None)
    if last is None:
        return
    work = last.work[region]
    yield from _matrix(kernel, region, work)
    tensor = kernel.stages.get(Stage.TTGIR)
    if tensor is not None and region in tensor.work:
        yield from (("conversion", text) for text in _conversions(tensor.work[region].conversions))
    yield from _trip_count(kernel, region)
    if is_loop:
        yield from (("bounds", text) for text in _checks(work, last.stage))
    slots = [f"{slot.kind} {slot.memory + slot.matrix}" for slot in work.slots]
    if slots:
        yield "slots", f"between schedule hints: {' | '.join(slots)}"
    if work.issue is not None and is_loop:
        yield "issue", _issue(work.issue)
    for note in work.in_flight.notes:
        yield "in flight", f"{note} ({last.stage.value})"


def in_flight_text(in_flight: LoadsInFlight) -> str:
    """`15, 240 B`: loads and bytes per thread; `–` if there are none, `?` if unknown."""
    if in_flight.max_loads is None:
        return "?"
    if not in_flight.max_loads:
        return "–"
    size = in_flight.max_bytes_per_thread
    if size is None:
        return f"{in_flight.max_loads}"
    # a scalar that all threads share counts for a fraction of a byte per thread
    return f"{in_flight.max_loads}, {size:.2g} B" if size < 1 else f"{in_flight.max_loads}, {round(size, 1):g} B"


def _trip_count(kernel: KernelFacts, region: str) -> Iterator[tuple[str, str]]:
    stages = [kernel.stages[stage] for stage in (Stage.TTIR, Stage.TTGIR) if stage in kernel.stages]
    work = next((facts.work[region] for facts in stages if region in facts.work), None)
    if work is not None and work.trips is not None:
        tiles = () if kernel.program is None else kernel.program.tiles
        depths = {tile.extents[-1] for tile in tiles if tile.is_dot and tile.extents}
        yield "trip count", _describe_trips(work.trips, depths)


def _describe_trips(trips: LoopRange, depths: set[int]) -> str:
    """The values of the loop counter, or the ranges of K if the loop steps by the depth of a dot.

    Args:
        depths: K of the kernel's dots, in elements.
    """
    start, stop, step = trips
    count = trips.trip_count
    if not count:
        return "0"

    def nth(n: int) -> str:
        first = start + n * step
        return f"{first}–{first + step - 1}" if is_tiled else str(first)

    is_tiled = step > 1 and step in depths
    ranges = [nth(n) for n in range(min(count, 3))]
    ranges += ["…", nth(count - 1)] if count > 4 else [nth(3)] if count == 4 else []
    text = f"{count}: {', '.join(ranges)}"
    if not is_tiled:
        return f"{text}, in steps of {step} up to {stop}"
    excess = start + count * step - stop
    return f"{text} of K" + (f"; the last {excess} are past its end" if excess else "")


def _pipeline(pipeline: Pipeline) -> Iterator[tuple[str, str]]:
    if pipeline.unpipelined_reason is not None:
        lines = ", ".join(f"{e.stage.value} line {e.line}" for e in pipeline.evidence[:3])
        yield "not pipelined", pipeline.unpipelined_reason + (f" ({lines})" if lines else "")
    if pipeline.kind is None:
        yield from (("pipeline", note) for note in pipeline.notes)
        return
    steps = [f"num_stages {pipeline.num_stages}"] if pipeline.num_stages is not None else []
    if pipeline.buffers is not None:
        steps.append(f"{pipeline.buffers} {plural('buffer', pipeline.buffers)}")
    if pipeline.commits_per_iteration is not None:
        groups = plural("group", pipeline.commits_per_iteration)
        steps.append(f"{pipeline.commits_per_iteration} commit {groups} per iteration")
    if pipeline.wait_depth is not None:
        steps.append(f"the wait leaves {pipeline.wait_depth} in flight")
    if pipeline.iterations_in_flight is not None:
        count = pipeline.iterations_in_flight
        steps.append(f"{count:g} {plural('iteration', count)} in flight after it")
    if pipeline.distance is not None:
        low, high = pipeline.distance if isinstance(pipeline.distance, tuple) else (pipeline.distance,) * 2
        steps.append(f"loads {span(low, high)} {plural('iteration', high)} ahead")
    yield "pipeline", f"{pipeline.kind}: {' → '.join(steps)}"
    notes = []
    if pipeline.prologue:
        notes.append(f"{pipeline.prologue:g} {plural('iteration', pipeline.prologue)} of copies before the loop")
    if pipeline.epilogue_line is not None:
        notes.append(f"drained after it at line {pipeline.epilogue_line}")
    if pipeline.overlaps_matrix:
        notes.append("matrix operations stay in flight into the next iteration")
    if notes:
        yield "pipeline", ", ".join(notes)
    yield from (("pipeline", note) for note in pipeline.notes)


def _matrix(kernel: KernelFacts, region: str, work: RegionWork) -> Iterator[tuple[str, str]]:
    for matrix_work in work.matrix:
        yield "MMA", describe_matrix_work(matrix_work)
    identity = kernel.identities.get(region)
    if identity is not None:
        if identity.is_balanced or identity.actual is None or identity.is_balanced is None:
            yield "FLOP", identity.explanation + (f" = {identity.expected}" if identity.is_balanced else "")
        else:
            yield "FLOP", f"{identity.actual}, but the dots need {identity.expected}: {identity.explanation}"
    intensity = kernel.intensity(region)
    if intensity is not None:
        text = f"{intensity.loaded} B loaded per CTA and iteration for {intensity.flop} FLOP"
        yield "traffic", f"{text}: {intensity.flop_per_byte:.3g} FLOP/B"
    generation = kernel.generations.get(region)
    if generation is not None and generation.is_newest is False:
        yield "MMA", generation.description + (f": {generation.reason}" if generation.reason else "")


def describe_matrix_work(matrix_work: MatrixWork) -> str:
    """`4 × mma.sync m16n8k16 (f16×f16→f32), 4096 FLOP each by 4 warps`."""
    op = matrix_work.matrix
    if op is None:
        return f"{matrix_work.count} × {matrix_work.op}, unknown shape"
    count = matrix_work.issuers
    issuers = "" if count is None else f" by {count} {plural(op.issuer, count)}"
    return f"{matrix_work.count} × {op.op} {op.shape} ({op.types}), {op.flop} FLOP each{issuers}"


def _conversions(conversions: Iterable[LayoutConversion]) -> Iterator[str]:
    paths = {True: "through shared memory", False: "inside each warp", None: "by an unknown path"}
    for x in conversions:
        location = f"{x.source}, " if x.source is not None else ""
        yield f"{x.change}, {x.bytes} B {paths[x.through_shared]} ({location}ttgir line {x.line})"


def _issue(issue: IssueEstimate) -> str:
    text = f"{issue.instructions} instructions, at least {issue.cycles} cycles per iteration (stall counts)"
    if not issue.waits:
        return text
    lines = ", ".join(str(line) for line, _ in issue.waits[:4]) + (" …" if len(issue.waits) > 4 else "")
    return f"{text}; {len(issue.waits)} also wait on scoreboards (lines {lines})"


def _checks(work: RegionWork, stage: Stage) -> Iterator[str]:
    compares, divisions = work.checks.get(CheckKind.COMPARE, 0), work.checks.get(CheckKind.DIVISION, 0)
    texts = [f"{compares} mask {plural('compare', compares)}"] if compares else []
    texts += [f"{divisions} integer {plural('division', divisions)}"] if divisions else []
    if texts:
        yield f"{' and '.join(texts)} per iteration in {stage.value}"


def load_depths(kernel: KernelFacts) -> str:
    """Depths of the main loop's waits for loads and copies; `phase` for waits on an mbarrier."""
    last = kernel.last
    if last is None:
        return "–"
    depths = kernel.wait_depths
    if depths:
        return span(min(depths), max(depths))
    return "phase" if any(w.purpose is WaitPurpose.BARRIER for w in last.waits_in(kernel.principal)) else "–"


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
            text = f"{waits_of_op[0].format_with_depth(f'{depths[0]}…{depths[-1]}')} {_wait_lines(waits_of_op)}"
            zero_note = "; 0 waits for all of them" if depths[-1] == 0 else ""
            yield f"{text}: the number is how many {_unit(waits_of_op[0], 2)} stay in flight{zero_note}"
            continue
        for depth in depths if depths else (None,):
            waits_of_depth = [wait for wait in waits_of_op if wait.depth == depth]
            text = op if depth is None else waits_of_op[0].format_with_depth(depth)
            yield f"{text} {_wait_lines(waits_of_depth)}: {_explain(kernel, stage, regions[0], waits_of_depth[0])}"


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
    pipeline = kernel.pipelines.get(region.id)
    return None if pipeline is None else pipeline.commits_per_iteration


_UNITS = {
    Queue.GROUP: "copy group", Queue.LOADS: "vector-memory load", Queue.COPIES: "copy", Queue.TENSORS: "copy",
    Queue.MATRIX: "group of matrix operations", Queue.STORES: "group of stores", Queue.PHASE: "phase",
}  # fmt: skip


def _unit(wait: WaitFacts, count: int) -> str:
    return plural(_UNITS[wait.queue], count)


def _wait_lines(waits: list[WaitFacts]) -> str:
    lines = [wait.line for wait in waits]
    if len(lines) == 1:
        return f"(line {lines[0]})"
    if len(lines) <= 3:
        return f"(lines {', '.join(map(str, lines))})"
    return f"(×{len(lines)}, lines {span(lines[0], lines[-1])})"
