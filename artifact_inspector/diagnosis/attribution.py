"""A cause with what orders it, and the grouping of instructions by source line that all rules share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from artifact_inspector.diagnosis.cause import Cause, CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel
from artifact_inspector.execution.interpreter.program import ProgramStep


@dataclass(frozen=True, slots=True)
class Attribution:
    """A cause before it is ordered."""

    kind: CauseKind
    line: str | None
    share: float | None
    """Share of the predicted time; None if times are not predicted."""
    weight: float
    """The share, or if times are not predicted an estimate from counters, which only orders causes."""
    reason: str
    """What happens, without line and share."""

    def as_cause(self) -> Cause:
        """The cause with its sentence."""
        place = "The launch" if self.line is None else self.line
        took = "" if self.share is None else f" ({self.share:.0%} of the predicted time)"
        return Cause(self.kind, self.line, self.share, f"{place}{took}: {self.reason}.")


def attribute(
    model: LaunchModel,
    kind: CauseKind,
    line: str | None,
    steps: Iterable[ProgramStep],
    reason: str,
    *,
    left: float = 0.0,
) -> Attribution:
    """A cause that disappears with the work of some steps.

    Args:
        model: the launch.
        kind: of the cause.
        line: source line.
        steps: what it consists of.
        reason: what happens.
        left: fraction of the work that is left without the cause.
    """
    indices = {step.index: left for step in steps}
    share = model.share_without(indices)
    return Attribution(kind, line, share, model.instruction_share(indices) if share is None else share, reason)


def group_by_line(model: LaunchModel, accepts: Callable[[ProgramStep], bool]) -> Mapping[str, list[ProgramStep]]:
    """Executed steps by source line; steps without a line are left out."""
    groups: defaultdict[str, list[ProgramStep]] = defaultdict(list)
    executed = model.counters.warps_executed
    for step in model.steps:
        if executed[step.index] and step.source_place is not None and accepts(step):
            groups[step.source_place].append(step)
    return groups
