"""A cause with what orders it, and the grouping of instructions by source line that all rules share."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from artifact_inspector.diagnosis.cause import Cause, CauseKind
from artifact_inspector.diagnosis.launch_model import LaunchModel, without_work
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.sampling import LaunchSample

LEAST_SHARE = 0.05
"""Share of the predicted time from which a cause is reported: below, the model's error is larger."""
MANY_INSTRUCTIONS = 0.3
"""Share of the instructions from which work that memory hides is worth a word."""
_REPEATED = {
    CauseKind.DIVISION, CauseKind.INT64, CauseKind.MASKS, CauseKind.REDUCTION_PER_TRIP, CauseKind.LAYOUT_CONVERSION,
    CauseKind.TYPE_CONVERSION, CauseKind.NARROW_ACCESS, CauseKind.INVARIANT_LOAD,
}  # fmt: skip


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
    issued: float = 0.0
    """Share of the executed instructions, or of the loaded bytes for loads that every iteration repeats."""
    repair: Callable[[LaunchSample], LaunchSample] | None = None
    """Removes the cause from a sample; None if it is not in lines."""
    more_lines: tuple[str, ...] = ()
    """Further lines with the same cause, whose share is included."""
    released: frozenset[int] = frozenset()
    """Loads that other loads need not wait for without the cause."""
    is_of_tensor: bool = False
    """Whether a tensor's strides or addresses make it, which no repair of another cause changes."""

    @property
    def is_generic(self) -> bool:
        """Whether the repair of a specific cause often removes this one too."""
        return self.kind.is_generic and not self.is_of_tensor

    @property
    def hidden_weight(self) -> float:
        """The order of small causes: what they take now, and what they would if nothing hid them."""
        return self.weight + (self.issued / 10 if self.issued >= MANY_INSTRUCTIONS and self.kind in _REPEATED else 0.0)

    def as_cause(self, note: str = "") -> Cause:
        """The cause with its sentence, and why it is not the first one."""
        place = "The launch" if self.line is None else self.line
        if self.more_lines:
            place += f" and {len(self.more_lines)} more line{'s' * (len(self.more_lines) > 1)}"
        took = "" if self.share is None else f" ({self.share:.0%} of the predicted time)"
        if took and (self.share or 0.0) < LEAST_SHARE and self.issued >= MANY_INSTRUCTIONS:
            unit = "loaded bytes" if self.kind is CauseKind.INVARIANT_LOAD else "instructions"
            took = f" ({self.share:.0%} of the predicted time, {self.issued:.0%} of the {unit})"
        return Cause(self.kind, self.line, self.share, f"{place}{took}: {self.reason}{note}.", self.more_lines, note)


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
        left: fraction of the work that is left without the cause.
    """
    indices = {step.index: left for step in steps}
    return attribute_repair(model, kind, line, lambda sample: without_work(sample, indices), indices, reason)


def attribute_repair(
    model: LaunchModel,
    kind: CauseKind,
    line: str | None,
    repair: Callable[[LaunchSample], LaunchSample],
    steps: Iterable[int],
    reason: str,
    *,
    released: frozenset[int] = frozenset(),
) -> Attribution:
    """A cause that disappears with a repair; the instructions of `steps` order it if times are not predicted."""
    share, issued = _share_of(model, repair(model.sample), released), model.instruction_share(set(steps))
    weight = issued if share is None else share
    return Attribution(kind, line, share, weight, reason, issued, repair, released=released)


def _share_of(model: LaunchModel, sample: LaunchSample, released: frozenset[int]) -> float | None:
    """Share of the time that a sample saves; of released loads the compiler has registers to issue some earlier."""
    share = model.share_of(sample)
    return share if share is None or not released else (share + (model.share_of(sample, hidden=released) or 0.0)) / 2


def join_lines(model: LaunchModel, attributions: Iterable[Attribution]) -> list[Attribution]:
    """One attribution for each kind, at its most expensive line, with the share of all its lines."""
    by_kind: defaultdict[tuple[CauseKind, bool], list[Attribution]] = defaultdict(list)
    for one in attributions:
        by_kind[one.kind, one.line in model.operations.converts_doubles].append(one)
    joined = []
    for group in by_kind.values():
        group.sort(key=lambda one: -one.weight)
        first, repairs = group[0], [one.repair for one in group]
        if len(group) == 1 or None in repairs:
            joined += group
            continue
        sample = model.sample
        for repair in repairs:
            assert repair is not None
            sample = repair(sample)
        released = frozenset().union(*(member.released for member in group))
        share = _share_of(model, sample, released)
        urgency = first.weight / first.share if first.share else 1.0
        weight = min(1.0, sum(one.weight for one in group)) if share is None else share * urgency
        lines = tuple(dict.fromkeys(member.line for member in group if member.line not in (None, first.line)))
        issued = min(1.0, sum(one.issued for one in group))
        joined.append(replace(first, share=share, weight=weight, issued=issued, more_lines=lines))
    return joined


def group_by_line(model: LaunchModel, accepts: Callable[[ProgramStep], bool]) -> Mapping[str, list[ProgramStep]]:
    """Executed steps by source line; steps without a line are left out, but for loads that the compiler merged."""
    groups: defaultdict[str, list[ProgramStep]] = defaultdict(list)
    executed, merged_line = model.counters.warps_executed, _line_of_merged_loads(model)
    for step in model.steps:
        place = merged_line if step.source_place is None and step.kind == "global_load" else step.source_place
        if executed[step.index] and place is not None and accepts(step):
            groups[place].append(step)
    return groups


def _line_of_merged_loads(model: LaunchModel) -> str | None:
    """The first line whose loads are not in the machine code: a load that replaces those of two lines has no line."""
    loading = {step.source_place for step in model.steps if step.kind in ("global_load", "copy")}
    lines = [line for line in model.operations.operations if model.operations.has(line, "tt.load")]
    return next((line for line in lines if line not in loading), None)
