"""Causes in waits: loads whose latency nothing hides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.analysis.overlap.pipeline_causes import FIRST_CP_ASYNC
from artifact_inspector.diagnosis.attribution import Attribution
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, with_contiguous_accesses, without_work
from artifact_inspector.diagnosis.memory_causes import LEAST_COPY
from artifact_inspector.diagnosis.source_operations import SourceOperations
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect
from artifact_inspector.execution.timing.pipes import pipe_of, wait_effect
from artifact_inspector.facts.inspection import inspect_artifact


def find_latency_causes(model: LaunchModel) -> Iterator[Attribution]:
    """At most one cause: the latency of loads in loops, with the reason that it is exposed."""
    loads = [step for step in model.steps if step.kind in ("global_load", "copy") and model.is_in_loop(step)]
    if not loads:
        return
    share = model.share_without_latency()
    weight = 1.0 if share is None else share
    lines = list(dict.fromkeys(step.source_place for step in loads if step.source_place is not None))
    executed = model.counters.warps_executed
    of_line = {name: sum(executed[step.index] for step in loads if step.source_place == name) for name in lines}
    line = max(lines, key=lambda name: of_line[name], default=None)
    chained = {name: origins for name in lines if (origins := _loads_of_address(model.operations, name))}
    kernel = inspect_artifact(model.sample.loaded.artifact, None, lambda facts: facts.pipelines if model.is_amd else ())
    if chained:
        chasing = [name for name in chained if name in chained[name]]
        first = (chasing or list(chained))[0]
        origin = first if chasing else min(chained[first])
        feeding = "the value of its previous iteration" if origin == first else f"the value loaded at {origin}"
        reason = f"the load's address is {feeding}, so every iteration waits; load addresses ahead"
        if share is not None and chasing:
            scattered = [step.index for step in loads if step.source_place in model.chasing_lines]
            of_sectors = model.share_of(with_contiguous_accesses(model.sample, scattered)) or 0.0
            weight = share = max(share, of_sectors, _chain_share(model, first))
        yield Attribution(CauseKind.DEPENDENT_LOADS, first, share, weight, reason)
    elif any(step.kind == "copy" for step in loads):
        effects = [wait_effect(step, pipe_of(step)) for step in model.steps if model.is_in_loop(step)]
        depths = {depth for effect, depth in effects if effect is SchedulingEffect.WAITS_FOR_COPIES}
        if depths == {0}:
            reason = "the pipeline drains: every iteration waits until no copy is in flight; raise num_stages"
            share = model.share_without_latency(is_ahead=True)
            weight = 1.0 if share is None else share
            yield Attribution(CauseKind.DRAINED_PIPELINE, line, share, weight, reason)
    elif not model.is_amd or all(pipeline.kind is None for pipeline in kernel.pipelines.values()):
        if share is not None and not model.operations.multiplies_at(line):
            weight = share / 2  # Triton pipelines no such loop by default, and other warps may hide it
        elif share is not None and not model.is_amd:
            weight = share = _share_of_copies(model, loads)
        width = model.bytes_per_lane([step for step in loads if step.source_place == line])
        remedy = "raise num_stages" if model.operations.multiplies_at(line) else "set num_stages in tl.range"
        if 0 < width < LEAST_COPY and not model.is_amd:
            remedy = f"asynchronous copies take {LEAST_COPY} B of a thread at least, and it loads {width:.3g}"
        if not model.is_amd and model.target.arch.number < FIRST_CP_ASYNC:
            remedy = f"{model.target} has no asynchronous copies, so only more warps hide it"
        reason = f"the loop is not pipelined: every iteration waits for its own loads; {remedy}"
        yield Attribution(CauseKind.SERIAL_LOOP, line, share, weight, reason)


def _share_of_copies(model: LaunchModel, loads: Sequence[ProgramStep]) -> float:
    """Share of the time of the way through registers: asynchronous copies store operands by themselves."""
    lines = {step.source_place for step in loads}
    stores = [s.index for s in model.steps if s.kind in ("shared_store", "matrix_store") and s.source_place in lines]
    copied = without_work(model.sample, dict.fromkeys(stores, 0.0))
    return model.share_of(copied, hidden={step.index for step in loads}, is_ahead=True) or 0.0


def _loads_of_address(operations: SourceOperations, line: str) -> frozenset[str]:
    """Lines of the loads in the loop of a load that its address depends on: one before the loop is waited for once."""
    loop = min((lines for lines in operations.loops if line in lines), key=len, default=frozenset())
    return operations.chained_loads.get(line, frozenset()) & loop


def _chain_share(model: LaunchModel, line: str) -> float:
    """Share of the time that one CTA's chain of loads takes, if resident CTAs run their chains side by side.

    The longest load of the line counts in each iteration: an L2 hit at least, since its address is unknown.
    """
    assert model.time is not None
    loads = [step for step in model.steps if step.source_place == line and step.kind in ("global_load", "copy")]
    trips = max(model.visits.get(step.index, 0) for step in loads)
    if line in model.unrolled_lines:
        loads_per_trip = -(-(model.operations.most_elements or 1) // model.sample.loaded.threads)
        trips = max(1, len(loads) // loads_per_trip)
    ctas = -(-model.sample.launch.ctas // (model.multiprocessors or 1))
    waves = -(-ctas // min(model.time.resident_ctas, ctas))
    return min(1.0, trips * model.time.gpu.timing.l2 * waves / (model.cycles or 1))
