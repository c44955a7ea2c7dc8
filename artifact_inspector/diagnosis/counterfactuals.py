"""The predicted time of a launch with as much of some work, or of a resource, as another kernel has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from artifact_inspector.diagnosis.arithmetic_causes import MEMORY, SHARED, is_barrier, is_shuffle
from artifact_inspector.diagnosis.launch_model import LaunchModel, without_work
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.ranking import resident_ctas_of
from artifact_inspector.execution.timing.sampling import LaunchSample

_MULTIPLY_ADDS = ("FFMA", "HFMA", "DFMA", "FMUL", "FADD", "v_fma", "v_mac", "v_pk_fma", "v_mul_f", "v_add_f", "v_dot")
Counterfactual = Callable[[LaunchModel, LaunchModel], float | None]
"""Predicted cycles of the first kernel with something of the second one; None if unknown, or if it has less."""


def _scale(model: LaunchModel, other: LaunchModel, selects: Callable[[ProgramStep], bool]) -> LaunchSample | None:
    """The sample with as many executions of some steps per CTA as the other kernel has; None if that has more."""
    executed = [
        sum(one.counters.warps_executed[step.index] for step in one.steps if selects(step)) / len(one.sample.ctas)
        for one in (model, other)
    ]
    if executed[0] <= executed[1]:
        return None
    fraction = executed[1] / executed[0]
    return without_work(model.sample, {step.index: fraction for step in model.steps if selects(step)})


def _with_steps(selects: Callable[[ProgramStep], bool]) -> Counterfactual:
    def predict(model: LaunchModel, other: LaunchModel) -> float | None:
        sample = _scale(model, other, selects)
        return None if sample is None or model.time is None else model.time.score(sample)

    return predict


def _with_kinds(*kinds: str) -> Counterfactual:
    return _with_steps(lambda step: step.kind in kinds)


def with_spills(model: LaunchModel, other: LaunchModel) -> float | None:
    """Spill loads and stores, and the local memory of a thread."""
    sample = _scale(model, other, lambda step: step.kind in ("local_load", "local_store"))
    if sample is None or model.time is None or other.time is None:
        return None
    return replace(model.time, frame_bytes=other.time.frame_bytes).score(sample)


def with_widths(model: LaunchModel, other: LaunchModel) -> float | None:
    """Fewer, wider accesses that move the same bytes."""
    sample = _scale(model, other, lambda step: step.kind in ("global_load", "global_store", "copy"))
    return None if sample is None or model.time is None else model.time.score(replace(sample, traffic=model.traffic))


def with_hidden_loads(model: LaunchModel, _other: LaunchModel) -> float | None:
    """Loads of loops without latency beyond the transfer of their bytes."""
    share = model.share_without_latency()
    return None if share is None else (model.cycles or 0.0) * (1 - share)


def with_residency(model: LaunchModel, other: LaunchModel) -> float | None:
    """Resident CTAs, if both have the same size."""
    if model.time is None or model.sample.loaded.threads != other.sample.loaded.threads:
        return None
    return model.time.score(model.sample, resident=other.occupancy.blocks)


def _with_resource(name: str) -> Counterfactual:
    def predict(model: LaunchModel, other: LaunchModel) -> float | None:
        resources = replace(model.resources, **{name: getattr(other.resources, name)})
        resident = resident_ctas_of(model.target, resources)
        return None if model.time is None else model.time.score(model.sample, resident=resident)

    return predict


with_registers, with_shared_bytes = _with_resource("registers"), _with_resource("shared")
with_exchange = _with_steps(lambda step: step.kind in SHARED or is_shuffle(step) or is_barrier(step))
with_arithmetic = _with_steps(
    lambda step: step.kind not in (*MEMORY, *SHARED) and not is_barrier(step) and not is_shuffle(step)
)
with_barriers = _with_steps(is_barrier)
with_shared_loads, with_shared_stores = (
    _with_kinds("shared_load", "matrix_load"), _with_kinds("shared_store", "matrix_store"),
)  # fmt: skip
with_multiply_adds = _with_steps(lambda step: step.opcode.startswith(_MULTIPLY_ADDS))
with_matrix_work = _with_kinds("tensor")
