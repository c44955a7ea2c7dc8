"""The partitions of a warp-specialised kernel: a lane each, and the barriers by which they wait for each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifact_inspector.errors import UsageError
from artifact_inspector.model import EventKind
from artifact_inspector.model.schedule import ScheduleEvent, ScheduleRole
from artifact_inspector.pictures._canvas import FAMILY_OF, Canvas, cut_text, width_of

if TYPE_CHECKING:
    from artifact_inspector.analysis.overlap.partitions import PartitionSchedule
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, LEFT, TOP, ROW, LANE = 14, 96, 66, 18, 62
STEPS = 48
"""Most steps that are drawn."""
_KINDS = {
    ScheduleRole.COPY: (EventKind.ASYNC_COPY, "async copy"), ScheduleRole.READ: (EventKind.SHARED_LOAD, "read"),
    ScheduleRole.MATRIX: (EventKind.MATRIX, "matrix op"), ScheduleRole.ARRIVAL: (EventKind.COMMIT, "arrival"),
}  # fmt: skip


def partitions(kernel: KernelFacts, *, width: float = 960, style: bool = True) -> str:
    """The first steps of all partitions as SVG.

    Raises:
        UsageError: the kernel has no partitions, or no barriers between them.
    """
    name, schedule = kernel.artifact.display_name, kernel.partition_schedule
    if schedule is None:
        raise UsageError(f"{name} has no warp partitions that wait for each other at barriers.")
    return _PartitionsPainter(schedule, width).render(name, style=style)


class _PartitionsPainter:
    def __init__(self, schedule: PartitionSchedule, width: float) -> None:
        self.schedule, self.width, self.canvas = schedule, width, Canvas()
        self.events = [event for event in schedule.events if event.start < STEPS]
        self.lanes = {lane: n for n, lane in enumerate(dict.fromkeys(event.lane for event in schedule.events))}
        self.step = (width - LEFT - MARGIN) / min(STEPS, max(event.end for event in self.events))

    def render(self, name: str, *, style: bool) -> str:
        canvas, width = self.canvas, self.width
        canvas.text(MARGIN, 20, cut_text(f"{name} · {len(self.lanes)} partitions", width - 2 * MARGIN, 13), "head")
        note = "from ttgir, executed with integers only: barriers order the lanes, steps are no clock"
        canvas.text(MARGIN, 38, note, "small faint")
        for lane, number in self.lanes.items():
            y = TOP + LANE * number
            canvas.text(MARGIN, y + 13, cut_text(lane, LEFT - MARGIN), "bold")
            canvas.line(LEFT, y + 2 * ROW + 4, width - MARGIN, y + 2 * ROW + 4, "line rule")
        for event in self.events:
            self._draw(event)
        waits = [event for event in self.events if event.role is ScheduleRole.PHASE_WAIT and event.end > event.start]
        for wait in waits:
            self._draw_arrow(wait)
        texts = [f"{kind.letter} {text}" for kind, text in _KINDS.values()]
        texts += ["bar: waits for a barrier", "arrow: completes that barrier"]
        bottom = canvas.flow(texts, MARGIN, TOP + LANE * len(self.lanes) + 4, width) + 16
        summary = f"{len(self.events)} events in {len(self.lanes)} lanes; {len(waits)} of them are waits."
        return canvas.render(width, bottom, f"Partitions of {name}", summary, style=style)

    def _y(self, event: ScheduleEvent) -> float:
        return TOP + LANE * self.lanes[event.lane] + (ROW if event.role is ScheduleRole.MATRIX else 0)

    def _x(self, step: int) -> float:
        return LEFT + min(step, STEPS) * self.step

    def _describe(self, event: ScheduleEvent) -> str:
        names = (
            self.schedule.names[slot.root] + "".join(f"[{'?' if n is None else n}]" for n in slot.path)
            for slot in event.slots
        )
        return f"{', '.join(names)} (ttgir line {event.line})"

    def _draw(self, event: ScheduleEvent) -> None:
        canvas, x, y = self.canvas, self._x(event.start), self._y(event)
        wide = self._x(event.end) - x
        kind, text = _KINDS.get(event.role, (EventKind.WAIT, "wait"))
        if wide <= 0:
            return
        with canvas.group(f"{event.lane}: {text} {self._describe(event)}", location=f"ttgir:{event.line}"):
            if kind is EventKind.WAIT:
                canvas.rect(x, y + 5, wide, ROW - 12, "box edge wait")
                return
            canvas.rect(x + 0.5, y, wide - 1, ROW - 2, f"box edge {FAMILY_OF[kind]}", 2)
            if wide > width_of("A"):
                canvas.text(x + wide / 2, y + 12, kind.letter, "ink", "middle")

    def _draw_arrow(self, wait: ScheduleEvent) -> None:
        """From what completes a barrier in another lane to the end of the wait for it."""
        cause = None if wait.cause is None else self.schedule.events[wait.cause]
        if cause is None or cause.lane == wait.lane or wait.end > STEPS:
            return
        is_below = self.lanes[cause.lane] < self.lanes[wait.lane]
        start, end = self._y(cause) + (ROW - 2) * is_below, self._y(wait) + (ROW - 2) * (not is_below)
        with self.canvas.group(f"{cause.lane} → {wait.lane}: {self._describe(wait)}", focus=False):
            self.canvas.line(self._x(cause.end), start, self._x(wait.end), end, "line go")
            for side in (-3, 3):
                self.canvas.line(
                    self._x(wait.end) + side, end - (6 if is_below else -6), self._x(wait.end), end, "line go"
                )
