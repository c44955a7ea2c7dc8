"""The diagnosis of a launch: its causes in order, and the first sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from artifact_inspector.diagnosis.arithmetic_causes import find_arithmetic_causes
from artifact_inspector.diagnosis.assumed_launch import assume_indices
from artifact_inspector.diagnosis.attribution import Attribution
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.latency_causes import find_latency_causes
from artifact_inspector.diagnosis.launch_causes import find_launch_causes
from artifact_inspector.diagnosis.launch_model import LaunchModel, model_launch
from artifact_inspector.diagnosis.memory_causes import atomic_cycles, find_memory_causes
from artifact_inspector.diagnosis.roofline import roofline_cycles
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.facts.modules import Disassemble

LEAST_SHARE = 0.05
"""Share of the predicted time from which a cause is reported: below, the model's error is larger."""
LEAST_INSTRUCTION_SHARE = 0.02
"""Share of the instructions from which a cause is reported if times are not predicted."""
SMALL_SHARE = 0.01
"""The same if there is no other cause."""
NEAR_ROOFLINE = 0.20
"""Distance from the roofline, as a share of the predicted time, within which nothing stands out."""
_WAIT_URGENCY = 0.5
_TRAFFIC = (CauseKind.REDUNDANT_LOAD, CauseKind.INVARIANT_LOAD, CauseKind.UNCOALESCED)
MOST_CAUSES = 8
_RULES: tuple[Callable[[LaunchModel], Iterator[Attribution]], ...] = (
    find_launch_causes,
    find_memory_causes,
    find_arithmetic_causes,
    find_latency_causes,
)
_BOUNDS = {
    "dram": "device memory bounds it",
    "l2": "traffic between L2 and the SMs bounds it; larger tiles reuse more",
    "lsu": "shared memory and L1 bound it",
    "tensor": "the matrix pipe bounds it",
    "fma": "the FMA pipe bounds it",
    "alu": "integer instructions bound it",
    "xu": "special functions and conversions bound it",
    "double": "fp64 arithmetic bounds it",
    "issue": "instruction issue bounds it",
    "launch": "starting CTAs bounds it",
    "path": "the latency of each CTA bounds it",
}


def diagnose(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None = None, limit: int = 50_000_000
) -> Diagnosis:
    """The diagnosis of one launch.

    Args:
        candidate: the launch.
        disassemble: converts cubins to SASS.
        gpu: product name; None selects the default product of the kernel's target.
        limit: steps after which it counts as endless.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
        CacheError: the kernel has no readable machine code.
    """
    request = assume_indices(candidate.artifact, candidate.request)
    model = model_launch(replace(candidate, request=request), disassemble, gpu=gpu, limit=limit)
    least = LEAST_SHARE if model.time is not None else LEAST_INSTRUCTION_SHARE
    attributions = [one for rule in _RULES for one in rule(model)]
    large = [one for one in attributions if one.weight >= least]
    # without a large cause, the largest small one is better than none
    small = [one for one in attributions if one.weight >= SMALL_SHARE and not one.kind.is_generic]
    return describe(
        model, large or ([max(small, key=lambda one: _urgency(one, small))] if small and model.time else [])
    )


def predict_microseconds(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None = None, limit: int = 50_000_000
) -> float | None:
    """The predicted time of a launch, without its causes; None if times are not predicted."""
    request = assume_indices(candidate.artifact, candidate.request)
    model = model_launch(replace(candidate, request=request), disassemble, gpu=gpu, limit=limit)
    if model.time is None or model.cycles is None:
        return None
    return max(model.cycles, atomic_cycles(model)) / model.time.megahertz


def describe(model: LaunchModel, attributions: list[Attribution]) -> Diagnosis:
    """The diagnosis from all causes of a launch."""
    ordered = sorted(
        attributions, key=lambda one: (_rank(one, has_time=model.time is not None), -_urgency(one, attributions))
    )
    causes = tuple(one.as_cause() for one in ordered[:MOST_CAUSES])
    time = model.time
    cycles = None if model.cycles is None else max(model.cycles, atomic_cycles(model))
    roofline = None if time is None else roofline_cycles(model, time)
    is_small = any(one.kind is CauseKind.SMALL_LAUNCH for one in ordered)
    notes = model.sample.launch.notes
    if time is None or not cycles or roofline is None:
        notes += ("times are not predicted for this kernel: causes are ordered by instruction counts",)
        summary = causes[0].text if causes else "Nothing stands out."
    elif not is_small and roofline >= (1 - NEAR_ROOFLINE) * cycles:
        causes = ()
        summary = f"Nothing stands out: within {1 - roofline / cycles:.0%} of the roofline."
    else:
        if not causes:
            causes = (_bound(model, roofline / cycles),)
        summary = causes[0].text
    artifact = model.sample.loaded.artifact
    return Diagnosis(
        kernel=artifact.display_name,
        hash=artifact.hash,
        target=str(model.target),
        gpu=None if time is None else time.gpu.name,
        grid=model.sample.launch.grid,
        microseconds=None if time is None or cycles is None else cycles / time.megahertz,
        roofline_microseconds=None if time is None or roofline is None else roofline / time.megahertz,
        causes=causes,
        summary=summary,
        notes=notes,
    )


def _rank(one: Attribution, *, has_time: bool) -> int:
    if not has_time:
        return one.kind.priority
    if one.kind is CauseKind.SMALL_LAUNCH:
        return 0
    return 2 if one.kind.is_generic else 1


def _urgency(one: Attribution, attributions: Sequence[Attribution] = ()) -> float:
    """The weight that orders causes. Fewer loads also shorten waits, so a large cause in traffic comes first."""
    half = one.weight * _WAIT_URGENCY
    is_behind = any(other.kind in _TRAFFIC and other.weight >= half for other in attributions)
    return half if one.kind is CauseKind.SERIAL_LOOP and is_behind else one.weight


def _bound(model: LaunchModel, efficiency: float) -> Cause:
    assert model.time is not None
    terms = model.time.terms(model.sample)
    unit = max(terms, key=lambda name: terms[name])
    if unit == "path":
        reason = (
            "too few bytes are in flight: the latency of each CTA bounds it; use more warps, or more loads per thread"
        )
        return Cause(CauseKind.FEW_BYTES, None, None, f"The launch: {reason}.")
    reason = f"No single cause: {_BOUNDS.get(unit, unit + ' bounds it')}; {efficiency:.0%} of the roofline's speed."
    return Cause(CauseKind.BOUND, None, None, reason)
