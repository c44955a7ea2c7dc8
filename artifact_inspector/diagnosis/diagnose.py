"""The diagnosis of a launch: its causes in order, and the first sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from artifact_inspector.diagnosis.arithmetic_causes import find_arithmetic_causes
from artifact_inspector.diagnosis.assumed_launch import assume_indices
from artifact_inspector.diagnosis.attribution import (
    LEAST_SHARE,
    MANY_INSTRUCTIONS,
    Attribution,
    group_by_line,
    join_lines,
)
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.latency_causes import find_latency_causes
from artifact_inspector.diagnosis.launch_causes import find_launch_causes
from artifact_inspector.diagnosis.launch_model import LaunchModel, model_launch, product_cycles, roofline_cycles
from artifact_inspector.diagnosis.memory_causes import atomic_cycles, find_memory_causes, launch_cycles
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.launch_time import find_bounds
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.hardware.products import clock_of
from artifact_inspector.hardware.timing import BOUNDS

LEAST_INSTRUCTION_SHARE = 0.02
"""Share of the instructions from which a cause is reported if times are not predicted."""
SMALL_SHARE = 0.01
"""The same if there is no other cause."""
NEAR_ROOFLINE = 0.20
"""Distance from the roofline, as a share of the predicted time, within which nothing stands out."""
_GENERIC_URGENCY = 1 / 3
_WAIT_URGENCY = 0.5
_CAUSES_OF_WAITS = (
    CauseKind.REDUNDANT_LOAD, CauseKind.INVARIANT_LOAD, CauseKind.UNCOALESCED, CauseKind.SPILLS,
    CauseKind.TYPE_CONVERSION,
)  # fmt: skip
_COST = "its largest cost is "
MOST_CAUSES = 8
MOST_WORDS = 32
"""Of a first sentence that names two causes."""
TIE = 0.03
"""Difference of two shares up to which the sentence names both causes: the shares are not more exact."""
_RULES: tuple[Callable[[LaunchModel], Iterator[Attribution]], ...] = (
    find_launch_causes,
    find_memory_causes,
    find_arithmetic_causes,
    find_latency_causes,
)


def diagnose(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None = None, **options: Any
) -> Diagnosis:
    """The diagnosis of one launch; arguments and errors as of `model_launch`."""
    request = assume_indices(candidate.artifact, candidate.request)
    model = model_launch(replace(candidate, request=request), disassemble, gpu=gpu, **options)
    least = LEAST_SHARE if model.time is not None else LEAST_INSTRUCTION_SHARE
    attributions = join_lines(model, [attribution for rule in _RULES for attribution in rule(model)])
    large = [attribution for attribution in attributions if attribution.weight >= least]
    # without a large cause, the largest small attribution is better than none
    small = [
        attribution
        for attribution in attributions
        if attribution.hidden_weight >= SMALL_SHARE
        and (not attribution.is_generic or attribution.hidden_weight > attribution.weight)
    ]
    largest = max(small, key=lambda cause: cause.hidden_weight) if small and model.time else None
    first = [largest] if largest and not largest.is_generic else []
    return describe(model, large or first, largest)


def predict_microseconds(
    candidate: RankingCandidate, disassemble: Disassemble | None, *, gpu: str | None = None, **options: Any
) -> float | None:
    """The predicted time of a launch, without its causes; None if times are not predicted."""
    request = assume_indices(candidate.artifact, candidate.request)
    return microseconds_of(model_launch(replace(candidate, request=request), disassemble, gpu=gpu, **options))


def microseconds_of(model: LaunchModel) -> float | None:
    """The predicted time of a launch, from a sample of CTAs (`predict` simulates all); None if not predicted."""
    time = model.launch_time
    return None if time is None else time.microseconds(model.sample, launch_cycles(model, time)[0])


def bound_of(model: LaunchModel) -> str:
    """What limits a launch whose time is predicted, from a sample of CTAs; `predict` decides it the same way."""
    time = model.launch_time
    assert time is not None
    us, timing, (cycles, terms) = microseconds_of(model) or 0.0, time.gpu.timing, launch_cycles(model, time)
    return BOUNDS[find_bounds(terms, timing, cycles * us / (us - timing.launch_us))[0]]


def describe(model: LaunchModel, attributions: list[Attribution], hidden: Attribution | None = None) -> Diagnosis:
    """The diagnosis from all causes of a launch, and the largest one where the roofline hides its work."""
    ordered = sorted(
        attributions,
        key=lambda attribution: (
            _rank(attribution, has_time=model.time is not None),
            -urgency_of(attribution, attributions),
        ),
    )
    causes = tuple(cause.as_cause(explain_order(cause, ordered[0])) for cause in ordered[:MOST_CAUSES])
    if model.time is not None and ordered:
        causes = (describe_first(attributions, ordered), *causes[1:])
    time = model.time
    cycles = None if model.cycles is None else atomic_cycles(model, model.cycles)
    roofline = None if time is None else roofline_cycles(model, time)
    microseconds, bound = microseconds_of(model), "" if time is None else bound_of(model)
    roofline_microseconds, with_all_writes = _roofline_microseconds(model)
    speed = _roofline_speed(microseconds, roofline_microseconds)
    is_small = any(attribution.kind is CauseKind.SMALL_LAUNCH for attribution in ordered)
    is_large = any(cause.weight >= LEAST_SHARE for cause in ordered)
    near = (roofline or 0.0) / (cycles or 1.0)
    if not is_large and near < 1 - NEAR_ROOFLINE:
        near = min(1.0, (with_all_writes or 0.0) / (microseconds or 1.0))  # with the memory and clock of this launch
    notes = model.sample.launch.notes
    if time is not None and model.is_amd:
        notes += ("times are predicted from AMD's documented rates, and were not compared with a GPU",)
    if time is None or not cycles or roofline is None:
        notes += ("times are not predicted for this kernel: causes are ordered by instruction counts",)
        summary = causes[0].text if causes else "Nothing stands out."
        budget = model.counters.budget
        if budget is not None and any(budget.reason in end.reasons for end in model.sample.unfinished):
            causes, summary = (), f"Not decided: {budget.reason}."
    elif not is_small and near >= 1 - NEAR_ROOFLINE:
        causes = ()
        reason = "" if speed >= 1 - NEAR_ROOFLINE else f"{_COST}{bound}; "
        summary = f"Nothing stands out: {reason}{_describe_speed(speed)}{_remainder(ordered, hidden)}."
    else:
        if not is_large:
            causes = (_describe_bound(model, bound, speed),)
            for largest in ordered[:1]:  # of less than the error of the model
                largest_text = (
                    f"{largest.line or 'the launch'} ({largest.share:.0%}), {re.split('[;,]', largest.reason)[0]}"
                )
                text = f"{causes[0].text[:-1]}; largest: {largest_text}."
                causes = (replace(largest.as_cause(), text=text),)
        summary = causes[0].text
    artifact = model.sample.loaded.artifact
    return Diagnosis(
        kernel=artifact.display_name,
        hash=artifact.hash,
        target=str(model.target),
        gpu=None if time is None else time.gpu.name,
        grid=model.sample.launch.grid,
        microseconds=microseconds,
        roofline_microseconds=roofline_microseconds,
        causes=causes,
        summary=summary,
        notes=notes,
        bound=bound,
    )


def with_time(diagnosis: Diagnosis, microseconds: float, bound: str) -> Diagnosis:
    """The diagnosis with the time and the bound that `predict` prints, also where its sentence names them."""
    times, roofline = (diagnosis.microseconds, microseconds), diagnosis.roofline_microseconds
    before, after = (_describe_speed(_roofline_speed(time, roofline)) for time in times)
    named = re.compile(rf"{_COST}{re.escape(diagnosis.bound)}( \([^)]*\))?" if bound != diagnosis.bound else "$^")

    def revise(text: str) -> str:
        return named.sub(f"{_COST}{bound}", text.replace(before, after))

    causes = tuple(replace(cause, text=revise(cause.text)) for cause in diagnosis.causes)
    if bound != BOUNDS["path"] and [cause.kind for cause in causes[:1]] == [CauseKind.FEW_BYTES]:
        causes = (Cause(CauseKind.BOUND, None, None, f"No single cause: {_COST}{bound}; {after}."), *causes[1:])
    summary = causes[0].text if causes else revise(diagnosis.summary)
    timed = replace(diagnosis, microseconds=microseconds, sampled_microseconds=diagnosis.microseconds, bound=bound)
    return replace(timed, causes=causes, summary=summary)


def roofline_share(model: LaunchModel, microseconds: float | None) -> float | None:
    """What a launch reaches of the roofline's speed on its GPU; None if its time is not predicted."""
    roofline = _roofline_microseconds(model)[0]
    return None if roofline is None or not microseconds else round(_roofline_speed(microseconds, roofline), 3)


def _roofline_speed(microseconds: float | None, roofline: float | None) -> float:
    """Share of the roofline's speed, by the times that a report prints."""
    return min(1.0, (roofline or 0.0) / (microseconds or 1.0))


def _describe_speed(speed: float) -> str:
    is_near = speed >= 1 - NEAR_ROOFLINE
    return f"within {1 - speed:.0%} of the roofline" if is_near else f"{speed:.0%} of the roofline's speed"


def _roofline_microseconds(model: LaunchModel) -> tuple[float | None, float | None]:
    """The roofline without the writes that stay in L2; and with them, as the distance from it was set."""
    if (time := model.launch_time) is None:
        return None, None
    cycles = (roofline_cycles(model, time, share) for share in (time.traffic.written_share, 1.0))
    # a matrix unit at its peak lowers the clock, also for dots that the kernel computes elsewhere
    products = product_cycles(model, time) / clock_of(time.gpu.name, 1.0) + time.gpu.timing.launch_us
    least, most = (max(products, time.microseconds(model.sample, count)) for count in cycles)
    return least, most


def _remainder(ordered: Sequence[Attribution], hidden: Attribution | None) -> str:
    """What a launch near its roofline still loses, or would lose if the roofline did not hide it."""
    specific = (cause for cause in ordered if cause.weight >= LEAST_SHARE and not cause.is_generic)
    if (largest := next(specific, None)) is not None:
        return f"; most of the rest is lost at {largest.as_cause().text[:-1]}"
    if hidden is None or hidden.issued < MANY_INSTRUCTIONS:
        return ""
    verb = "; most of the rest is lost at" if hidden.weight >= LEAST_SHARE else ", which hides"
    return f"{verb} {hidden.as_cause().text[:-1]}"


def _rank(cause: Attribution, *, has_time: bool) -> int:
    if not has_time:  # without times, occupancy is a cause only if the launch fails
        return -1 if cause.kind is CauseKind.OCCUPANCY else cause.kind.priority
    return 0 if cause.kind is CauseKind.SMALL_LAUNCH else 1


def urgency_of(cause: Attribution, attributions: Sequence[Attribution] = ()) -> float:
    """The weight that orders causes: less for those that the repair of another one often removes as well.

    Fewer loads and fewer live values shorten waits.
    """
    half = cause.weight * _WAIT_URGENCY
    is_narrow = any(other.kind is CauseKind.NARROW_ACCESS and other.weight >= half for other in attributions)
    if is_narrow and cause.kind is CauseKind.OCCUPANCY:  # narrow loads take registers for their addresses
        return half * _GENERIC_URGENCY
    if cause.is_generic:
        return cause.weight * _GENERIC_URGENCY
    if cause.kind is CauseKind.SPILLS and any(other.kind is CauseKind.FP32_DOT for other in attributions):
        return half  # the operands of multiply-adds take the registers
    if cause.kind is CauseKind.UNCOALESCED:  # lanes that share an element scatter: one load of each is contiguous
        at_line = [other for other in attributions if other.line == cause.line]
        same = [other.weight for other in at_line if other.kind is CauseKind.REDUNDANT_LOAD]
        return min(cause.weight, max(same)) - TIE if same and max(same) >= half else cause.weight
    if cause.kind is CauseKind.SMALL_TILE:  # a larger tile spills more
        spilling = any(other.kind is CauseKind.SPILLS and other.weight >= half for other in attributions)
        return half if spilling else cause.weight
    if cause.kind is not CauseKind.SERIAL_LOOP:
        return cause.weight
    is_behind = any(other.kind in _CAUSES_OF_WAITS and other.weight >= half * _WAIT_URGENCY for other in attributions)
    return half if is_behind else cause.weight


def describe_first(attributions: Sequence[Attribution], ordered: Sequence[Attribution]) -> Cause:
    """The first cause, with the second one if the sentence stays short enough without what to do about the first."""
    first, note = ordered[0], name_second(attributions, ordered)
    short = replace(first, reason=first.reason.partition(";")[0])
    texts = [cause.as_cause(note) for cause in (first, short) if note]
    return next((cause for cause in texts if len(cause.text.split()) <= MOST_WORDS), first.as_cause())


def name_second(attributions: Sequence[Attribution], ordered: Sequence[Attribution]) -> str:
    """The second cause, if it is as large, at least half as large, or specific beside a generic one."""
    first, others = ordered[0], [cause for cause in ordered[1:] if not cause.is_generic]
    if not others or first.share is None or (second := others[0]).share is None:
        return ""
    least, urgency = urgency_of(first, attributions), urgency_of(second, attributions)
    is_equal, is_half = urgency >= least - TIE, urgency >= max(least / 2, 2 * LEAST_SHARE)
    if not is_equal and not is_half and not (first.is_generic and second.share >= LEAST_SHARE):
        return ""
    place = "there" if second.line == first.line else second.line or "the launch"
    word = "as large" if is_equal and second.share >= first.share - TIE else "also"
    return f"; {word}: {place} ({second.share:.0%}), {second.reason.partition(';')[0]}"


def explain_order(cause: Attribution, first: Attribution) -> str:
    """Why a cause with a larger share than the first one is not the first; empty for others."""
    if (cause.share or 0.0) <= (first.share or 0.0):
        return ""
    if cause.kind is CauseKind.TYPE_CONVERSION:
        return "; listed later, since mixed precision needs most conversions"
    return "; listed later, since the repair of the first cause often shrinks it"


def _describe_bound(model: LaunchModel, bound: str, speed: float) -> Cause:
    assert model.time is not None
    terms = model.time.terms(model.sample)
    if bound == BOUNDS["path"] and max(terms, key=terms.__getitem__) == "path":
        reason = "too few bytes are in flight: the latency of each CTA bounds it"
        return Cause(CauseKind.FEW_BYTES, None, None, f"The launch: {reason}.")
    lines = {
        line: model.instruction_share([step.index for step in steps])
        for line, steps in group_by_line(model, bool).items()
    }
    costliest = max(lines, key=lambda line: lines[line], default="")
    where = f" ({lines[costliest]:.0%} of it at {costliest})" if bound == BOUNDS["issue"] and costliest else ""
    return Cause(CauseKind.BOUND, None, None, f"No single cause: {_COST}{bound}{where}; {_describe_speed(speed)}.")
