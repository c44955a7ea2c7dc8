"""Describes the work of a region: pipeline, matrix instructions, layout conversions, bounds checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.analysis.flow.trips import Trips
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.analysis.overlap.issue import Issue
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.shared.conversions import Conversion
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts
from artifact_inspector.model import Stage
from artifact_inspector.report.words import plural, span


def describe_work(kernel: KernelFacts, region: str, *, is_loop: bool) -> Iterator[tuple[str, str]]:
    """The work of a region as (label, sentence), the most important first."""
    pipeline = kernel.pipelines.get(region)
    if pipeline is not None:
        yield from _pipeline(pipeline)
    last = _last_with(kernel, region)
    if last is None:
        return
    work = last.work[region]
    yield from _matrix(kernel, region, work)
    tensor = kernel.stages.get(Stage.TTGIR)
    if tensor is not None and region in tensor.work:
        yield from (("conversion", text) for text in _conversions(tensor.work[region].conversions))
    yield from _trips(kernel, region)
    if is_loop:
        yield from (("bounds", text) for text in _checks(work, last.stage))
    slots = [f"{slot.kind} {slot.memory + slot.matrix}" for slot in work.slots]
    if slots:
        yield "slots", f"between schedule hints: {' | '.join(slots)}"
    if work.issue is not None and is_loop:
        yield "issue", _issue(work.issue)
    for note in work.in_flight.notes:
        yield "in flight", f"{note} ({last.stage.value})"


def in_flight_text(found: InFlight) -> str:
    """`15, 240 B`: loads and bytes per thread; `–` if there are none, `?` if unknown."""
    if found.max_loads is None:
        return "?"
    if not found.max_loads:
        return "–"
    size = found.max_bytes_per_thread
    if size is None:
        return f"{found.max_loads}"
    # a scalar that all threads share counts for a fraction of a byte per thread
    return f"{found.max_loads}, {size:.2g} B" if size < 1 else f"{found.max_loads}, {round(size, 1):g} B"


def _trips(kernel: KernelFacts, region: str) -> Iterator[tuple[str, str]]:
    """The trip count of the loop and its range, if the program has them as constants."""
    for stage in (Stage.TTIR, Stage.TTGIR):
        facts = kernel.stages.get(stage)
        work = None if facts is None else facts.work.get(region)
        if work is not None:
            if work.trips is not None:
                tiles = () if kernel.program is None else kernel.program.tiles
                yield (
                    "trip count",
                    _passes(work.trips, {tile.extents[-1] for tile in tiles if tile.is_dot and tile.extents}),
                )
            return


def _passes(trips: Trips, depths: set[int]) -> str:
    """The values of the loop counter, or the ranges of K if the loop steps by the depth of a dot.

    Args:
        depths: K of the kernel's dots, in elements.
    """
    start, stop, step = trips
    count = trips.passes
    if not count:
        return "0"

    def nth(n: int) -> str:
        first = start + n * step
        return f"{first}–{first + step - 1}" if is_tiled else str(first)

    is_tiled = step > 1 and step in depths
    shown = [nth(n) for n in range(min(count, 3))]
    shown += ["…", nth(count - 1)] if count > 4 else [nth(3)] if count == 4 else []
    said = f"{count}: {', '.join(shown)}"
    if not is_tiled:
        return f"{said}, in steps of {step} up to {stop}"
    over = start + count * step - stop
    return f"{said} of K" + (f"; the last {over} are past its end" if over else "")


def _last_with(kernel: KernelFacts, region: str) -> StageFacts | None:
    return next((facts for facts in reversed(kernel.stages.values()) if region in facts.work), None)


def _pipeline(found: Pipeline) -> Iterator[tuple[str, str]]:
    if found.why_not is not None:
        lines = ", ".join(f"{e.stage.value} line {e.line}" for e in found.evidence[:3])
        yield "not pipelined", found.why_not + (f" ({lines})" if lines else "")
    if found.kind is None:
        yield from (("pipeline", note) for note in found.notes)
        return
    steps = [f"num_stages {found.num_stages}"] if found.num_stages is not None else []
    if found.buffers is not None:
        steps.append(f"{found.buffers} {plural('buffer', found.buffers)}")
    if found.commits_per_iteration is not None:
        groups = plural("group", found.commits_per_iteration)
        steps.append(f"{found.commits_per_iteration} commit {groups} per iteration")
    if found.wait_depth is not None:
        steps.append(f"the wait leaves {found.wait_depth} in flight")
    if found.iterations_in_flight is not None:
        count = found.iterations_in_flight
        steps.append(f"{count:g} {plural('iteration', count)} in flight after it")
    if found.distance is not None:
        low, high = found.distance if isinstance(found.distance, tuple) else (found.distance,) * 2
        steps.append(f"loads {span(low, high)} {plural('iteration', high)} ahead")
    yield "pipeline", f"{found.kind}: {' → '.join(steps)}"
    around = []
    if found.prologue:
        around.append(f"{found.prologue:g} {plural('iteration', found.prologue)} of copies before the loop")
    if found.epilogue_line is not None:
        around.append(f"drained after it at line {found.epilogue_line}")
    if found.overlaps_matrix:
        around.append("matrix operations stay in flight into the next iteration")
    if around:
        yield "pipeline", ", ".join(around)
    yield from (("pipeline", note) for note in found.notes)


def _matrix(kernel: KernelFacts, region: str, work: RegionWork) -> Iterator[tuple[str, str]]:
    for found in work.matrix:
        yield "MMA", _matrix_work(found)
    identity = kernel.identities.get(region)
    if identity is not None:
        if identity.holds or identity.found is None or identity.holds is None:
            yield "FLOP", identity.words + (f" = {identity.expected}" if identity.holds else "")
        else:
            yield "FLOP", f"{identity.found}, but the dots need {identity.expected}: {identity.words}"
    intensity = kernel.intensity(region)
    if intensity is not None:
        yield (
            "traffic",
            f"{intensity.loaded} B loaded per CTA and iteration for {intensity.flop} FLOP: "
            f"{intensity.flop_per_byte:.3g} FLOP/B",
        )
    generation = kernel.generations.get(region)
    if generation is not None and generation.is_newest is False:
        yield "MMA", generation.words + (f": {generation.reason}" if generation.reason else "")


def _matrix_work(found: MatrixWork) -> str:
    op = found.matrix
    if op is None:
        return f"{found.count} × {found.op}, unknown shape"
    issuers = "" if found.issuers is None else f" by {found.issuers} {plural(op.issuer, found.issuers)}"
    return f"{found.count} × {op.op} {op.shape} ({op.types}), {op.flop} FLOP each{issuers}"


def _conversions(found: Iterable[Conversion]) -> Iterator[str]:
    for conversion in found:
        where = f"{conversion.source}, " if conversion.source is not None else ""
        how = {True: "through shared memory", False: "inside each warp", None: "by an unknown path"}
        yield (
            f"{conversion.change}, {conversion.bytes} B {how[conversion.through_shared]} "
            f"({where}ttgir line {conversion.line})"
        )


def _issue(found: Issue) -> str:
    text = f"{found.instructions} instructions, at least {found.cycles} cycles per iteration (stall counts)"
    if not found.waits:
        return text
    lines = ", ".join(str(line) for line, _ in found.waits[:4]) + (" …" if len(found.waits) > 4 else "")
    return f"{text}; {len(found.waits)} also wait on scoreboards (lines {lines})"


def _checks(work: RegionWork, stage: Stage) -> Iterator[str]:
    compares, divisions = work.checks.get(Check.COMPARE, 0), work.checks.get(Check.DIVISION, 0)
    said = [f"{compares} mask {plural('compare', compares)}"] if compares else []
    said += [f"{divisions} integer {plural('division', divisions)}"] if divisions else []
    if said:
        yield f"{' and '.join(said)} per iteration in {stage.value}"
