"""A changed kernel of a search: what changes, what it costs, and which bytes it touches."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.diagnosis.changes import Change, describe_change
from artifact_inspector.diagnosis.source_edits import SourceEdit
from artifact_inspector.errors import InspectorError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Artifact


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
            more = value_after - value_before
            unit = f"register{'s' * (more > 1)} per thread" if name == "registers" else "B of shared memory"
            costs.append(f"{more:,} {unit}")
    if old.occupancy and new.occupancy and (old.occupancy.warps or 0) > (new.occupancy.warps or 0):
        costs.append(f"occupancy ({old.occupancy.warps} → {new.occupancy.warps} warps)")
    if "tf32" in trial.change.values():
        costs.append("precision (tf32 has 10 fraction bits)")
    if trial.edit is not None and trial.edit.cost:
        costs.append(trial.edit.cost)
    return tuple(costs)
