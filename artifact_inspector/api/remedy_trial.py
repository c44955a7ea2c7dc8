"""A changed kernel of a search: what changes, what it costs, and which bytes it touches."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from artifact_inspector.api.launches import predict_launches
from artifact_inspector.compiling.ask.compile import count_processors
from artifact_inspector.diagnosis.assumed_launch import assume_indices
from artifact_inspector.diagnosis.changes import Change, describe_change
from artifact_inspector.diagnosis.remedy import Remedy
from artifact_inspector.diagnosis.source_edits import SourceEdit
from artifact_inspector.errors import CacheError, InspectorError, UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.budget import current_budget
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.launch_time import LaunchTime
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact
from artifact_inspector.files.reader import read_binary
from artifact_inspector.model import Backend

PredictTime = Callable[[RankingCandidate], float | None]
LEAST_SAVING = 1.0
"""Microseconds from which it counts: starts of a kernel vary by as much."""
LEAST_GAIN = 1.05
"""Predicted time before ÷ after from which a change counts: below, the model's error is larger."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A changed kernel."""

    change: Change
    edit: SourceEdit | None
    candidate: RankingCandidate
    microseconds: float
    """Predicted time."""

    @property
    def label(self) -> str:
        """What changes."""
        edit = "" if self.edit is None else self.edit.label
        return ", ".join(filter(None, (edit, describe_change(self.change))))

    def does_no_more_than(self, better: Trial) -> bool:
        """Whether another one does the same with less, or compiles to the same code."""
        if _words(self.label) >= _words(better.label):
            return True
        old, new = better.candidate, self.candidate
        code = read_binary(new.artifact)
        return code is not None and code == read_binary(old.artifact) and new.request.grid == old.request.grid


def _words(label: str) -> set[str]:
    return set(label.replace(",", " ").split())


def has_launch_times(entry: Artifact) -> bool:
    """Whether `predict` simulates all CTAs; it samples those of AMD, too."""
    return entry.target is not None and entry.target.backend is Backend.CUDA


def predict_time(
    candidate: RankingCandidate, disassemble: Disassemble | None, gpu: str | None, steps: int
) -> LaunchTime | None:
    """The time that `predict` prints; None for AMD, and if the budget ends before all CTAs are simulated."""
    budget, entry = current_budget(), candidate.artifact
    if not has_launch_times(entry) or (budget is not None and budget.is_spent()):
        return None
    pair = entry, assume_indices(entry, candidate.request)
    return predict_launches([pair], disassemble, gpu=gpu, steps=steps)[0].time


def count_unique_bytes(
    candidate: RankingCandidate, disassemble: Disassemble | None, steps: int
) -> tuple[int, int] | None:
    """Distinct bytes that the launch reads and writes; None if it does not end or leaves its tensors."""
    try:
        kernel = load_kernel(candidate.artifact, disassemble)
        loaded, launch = match_launch(kernel, candidate.request, candidate.constants)
        run = simulate_launch(loaded, launch, limit=steps, counts_requests=False)
    except InspectorError:
        return None
    if run.unfinished or run.counters.missing_inputs or run.counters.out_of_bounds:
        return None
    return run.memory.count_unique_bytes()


def describe_costs(before: Artifact, request: LaunchRequest, trial: Trial) -> tuple[str, ...]:
    """What the change takes in addition."""
    old, new = inspect_artifact(before, None), inspect_artifact(trial.candidate.artifact, None)
    costs = []
    if trial.candidate.request.grid != request.grid:
        costs.append(f"a grid of {' × '.join(map(str, trial.candidate.request.grid))}")
    for name in ("registers", "shared"):
        value_before, value_after = getattr(old.resources, name).value, getattr(new.resources, name).value
        if value_before is not None and value_after is not None and value_after > value_before:
            increase = value_after - value_before
            unit = f"register{'s' * (increase > 1)} per thread" if name == "registers" else "B of shared memory"
            costs.append(f"{increase:,} {unit}")
    if old.occupancy and new.occupancy and (old.occupancy.warps or 0) > (new.occupancy.warps or 0):
        costs.append(f"occupancy ({old.occupancy.warps} → {new.occupancy.warps} warps)")
    if "tf32" in trial.change.values():
        costs.append("precision (tf32 has 10 fraction bits)")
    if trial.edit is not None and trial.edit.cost:
        costs.append(trial.edit.cost)
    return tuple(costs)


def saves(base_time: float, new_time: float | None) -> bool:
    """Whether a change saves more than the model's error, and than the variation of starts."""
    return new_time is not None and base_time >= max(LEAST_GAIN * new_time, new_time + LEAST_SAVING)


def rank_trial(trial: Trial, base_time: float) -> tuple[float, int, int]:
    """The order of trials: their time, then if that is equal their settings and shared memory, the fewest first."""
    return (-round(base_time / trial.microseconds, 2), len(trial.change), trial.candidate.artifact.shared_bytes or 0)


def time_launches(candidates: Sequence[RankingCandidate], predict: PredictTime) -> list[float | None]:
    """The times of launches, from parallel processes; None where none is predicted."""

    def judge(number: int) -> tuple[int, float | None]:
        try:
            return number, predict(candidates[number])
        except (UsageError, CacheError):
            return number, None

    is_main = threading.current_thread() is threading.main_thread()  # a server's other threads must not fork
    times = dict(map_in_processes(judge, range(len(candidates)), count_processors() if is_main else 1))
    return [times[number] for number in range(len(candidates))]


def price_launches(
    base_time: float, checked: Sequence[tuple[Remedy, Trial]], predict: PredictTime, seconds: float = 0.0
) -> tuple[list[Remedy], list[str]]:
    """The remedies that save by the times of all CTAs, the best first, and changes that help by a sample only.

    A sample may be wrong by more than what a change gains, so these are no remedies unless nothing else is known. If
    the launch's time is that of all CTAs, their gain is the smaller one of those over the sample's time and over it.

    Args:
        base_time: the time of all CTAs of the launch; 0 if only that of a sample is known.
        seconds: processor seconds that this time took: as many changes are priced together as the budget lets end.
    """
    budget, times = current_budget(), list[float | None]()
    while base_time and len(times) < len(checked):
        most = len(checked) if budget is None or not seconds else max(1, int(budget.remaining / seconds))
        times += time_launches([trial.candidate for _, trial in checked[len(times) :][:most]], predict)
    priced, sampled = list[tuple[Remedy, Trial]](), list[tuple[Remedy, Trial]]()
    for (remedy, trial), new_time in zip(checked, times or [None] * len(checked), strict=True):
        if new_time is None:
            gain = min([remedy.gain, *([round(base_time / trial.microseconds, 2)] if base_time else [])])
            sampled.append((replace(remedy, gain=gain, sampled=has_launch_times(trial.candidate.artifact)), trial))
        elif saves(base_time, new_time):
            priced.append((replace(remedy, gain=round(base_time / new_time, 2)), trial))
    best = priced or [pair for pair in sampled if not base_time or saves(base_time, pair[1].microseconds)]
    best.sort(key=lambda pair: -pair[0].gain)
    trials = [trial for _, trial in best]
    remedies = [remedy for at, (remedy, trial) in enumerate(best) if not any(map(trial.does_no_more_than, trials[:at]))]
    return remedies, [trial.label for remedy, trial in sampled if remedy not in remedies]
