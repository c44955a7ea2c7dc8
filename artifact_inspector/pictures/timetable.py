"""The timetable of a pipelined loop: when each iteration is loaded and computed, and in which buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifact_inspector.facts.timetable import Timetable, find_timetable
from artifact_inspector.model import COMPUTES, LOADS, EventKind
from artifact_inspector.pictures._canvas import FAMILY_OF, Canvas, cut_text, width_of
from artifact_inspector.vocabulary.letters import LETTERS

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, LEFT, TOP, ROW = 14, 96, 70, 26
MAX_HEAD_TRIPS = 7
"""Most iterations drawn at the beginning; two more are drawn at the end."""


def timetable(kernel: KernelFacts, region: str | None = None, *, width: float = 960, style: bool = True) -> str:
    """The timetable of a loop as SVG; of the main loop by default.

    Raises:
        UsageError: the loop is not pipelined.
    """
    return _TimetablePainter(find_timetable(kernel, region), width).render(style=style)


@dataclass(frozen=True, slots=True)
class _IterationSpan:
    """One iteration: when it is loaded, complete and computed, in pixels."""

    name: str
    buffer: int | None
    issue: tuple[float, float] | None
    """None if it is in an omitted iteration."""
    complete: float | None
    compute: tuple[float, float]
    buffer_start: float
    """x at which its buffer is first written."""


class _TimetablePainter:
    def __init__(self, table: Timetable, width: float) -> None:
        self.table, self.width = table, width
        self.canvas = Canvas()
        trip_count = table.trips
        self.head = (
            min(max(table.distance + 2, 4), MAX_HEAD_TRIPS) if trip_count is None else min(trip_count, MAX_HEAD_TRIPS)
        )
        self.has_tail = trip_count is None or trip_count > MAX_HEAD_TRIPS
        tail = ["n−2", "n−1"] if trip_count is None else [str(trip_count - 2), str(trip_count - 1)]
        self.trips = [str(n) for n in range(self.head)] + ([*tail] if self.has_tail else [])
        self.column = (width - LEFT - MARGIN) / (self.head + 2 + (3 if self.has_tail else 0))
        self.slot_count = len(table.order) or 1

    def render(self, *, style: bool) -> str:
        canvas, table = self.canvas, self.table
        title = f"{table.kernel} · {table.region} · {table.kind}, {table.distance} ahead"
        canvas.text(MARGIN, 20, cut_text(title, self.width - 2 * MARGIN, 13), "head")
        canvas.text(MARGIN, 38, f"from {table.stage.value}; one row per iteration of the source", "small faint")
        lives = self._iteration_spans()
        self._columns(TOP + ROW * (len(lives) + self.has_tail))
        y = float(TOP)
        for life in lives:
            if self.has_tail and life.name == self.trips[self.head]:
                canvas.text(MARGIN + 50, y + 16, "⋯", "faint")
                y += ROW
            self._row(life, y)
            y += ROW
        y += 24
        if table.buffers:
            y = self._buffers(lives, y)
        y = self._legend(y)
        summary = (
            f"Iteration i is loaded in trip i − {table.distance}, "
            f"complete {'?' if table.lag is None else table.lag} trips later, and computed in trip i."
        )
        return canvas.render(self.width, y + 6, f"Timetable of {table.region}", summary, style=style)

    # -- layout ---------------------------------------------------------------------------------------------

    def _x(self, trip: int) -> float:
        """The left edge of a trip; trips after the gap are right of it; -1 is the prologue."""
        gap = 1 if self.has_tail and trip >= self.head else 0
        return LEFT + self.column * (trip + 1 + gap)

    def _slot(self, trip: int, kinds: frozenset[EventKind]) -> tuple[float, float]:
        at = next((n for n, kind in enumerate(self.table.order) if kind in kinds), 0)
        slot_width = self.column / self.slot_count
        return self._x(trip) + at * slot_width + 1, slot_width - 2

    def _iteration_spans(self) -> list[_IterationSpan]:
        table, spans = self.table, []
        for number, name in enumerate(self.trips):
            issued = number - table.distance
            in_gap = self.has_tail and number >= self.head and issued < self.head
            issue: tuple[float, float] | None = None
            if issued < 0:  # in the prologue
                slot_width = self.column / table.distance
                issue = (self._x(-1) + number * slot_width + 1, slot_width - 2)
            elif not in_gap:
                issue = self._slot(issued, LOADS)
            complete = None
            if table.lag is not None:
                trip = number - table.distance + table.lag
                hidden = self.has_tail and number >= self.head > trip
                complete = None if hidden or trip < 0 else sum(self._slot(trip, _WAITS)) - 1
            begins = self._x(self.head - 1) + self.column if issue is None else issue[0]
            buffer = number % table.buffers if table.buffers and number < self.head else None
            spans.append(_IterationSpan(name, buffer, issue, complete, self._slot(number, COMPUTES), begins))
        return spans

    # -- drawing --------------------------------------------------------------------------------------------

    def _columns(self, bottom: float) -> None:
        canvas, table = self.canvas, self.table
        names = [(-1, "prologue"), *((n, f"trip {name}") for n, name in enumerate(self.trips))]
        last = len(self.trips)
        behind = "epilogue" if table.epilogue_line is None else f"line {table.epilogue_line}: drained"
        for trip, name in [*names, (last, behind)]:
            x = self._x(trip)
            canvas.line(x, TOP - 12, x, bottom, "line rule dotted")
            canvas.text(x + self.column / 2, TOP - 16, cut_text(name, self.column * 1.4, 9), "small", "middle")
        if self.has_tail:
            canvas.text(self._x(self.head) - self.column / 2, TOP - 16, "⋯", "faint", "middle")
        if EventKind.WAIT in table.order:
            for trip in range(len(self.trips)):
                x, wide = self._slot(trip, _WAITS)
                canvas.line(x + wide, TOP - 10, x + wide, bottom, "thick stop")

    def _row(self, span: _IterationSpan, y: float) -> None:
        canvas = self.canvas
        canvas.text(MARGIN, y + 16, f"iteration {span.name}", "small")
        load = next((kind for kind in self.table.order if kind in LOADS), EventKind.ASYNC_COPY)
        compute = next((kind for kind in self.table.order if kind in COMPUTES), EventKind.MATRIX)
        buffer_text = "" if span.buffer is None else f" in buffer {span.buffer}"
        start = span.buffer_start if span.issue is None else sum(span.issue)
        end = span.complete if span.complete is not None else start
        if end > start:
            with canvas.group(f"iteration {span.name}: in flight", focus=False):
                canvas.rect(start, y + 8, end - start, 7, "box edge load", round_=2)
        if span.compute[0] > max(start, end):
            canvas.line(max(start, end), y + 11.5, span.compute[0], y + 11.5, "line edge dashed")
        if span.issue is not None:
            with canvas.group(f"iteration {span.name}: loaded{buffer_text}"):
                self._box(span.issue, y, load, span.buffer)
        with canvas.group(f"iteration {span.name}: computed{buffer_text}"):
            self._box(span.compute, y, compute, span.buffer)

    def _box(self, span: tuple[float, float], y: float, kind: EventKind, buffer: int | None) -> None:
        x, wide = span
        self.canvas.rect(x, y + 2, wide, ROW - 7, f"box edge {FAMILY_OF[kind]}", round_=2)
        label = kind.letter if buffer is None or wide < width_of("A0") + 2 else f"{kind.letter}{buffer}"
        self.canvas.text(x + wide / 2, y + 15.5, label, "ink", "middle")

    def _buffers(self, spans: list[_IterationSpan], y: float) -> float:
        """Draw what each buffer holds over the same trips; returns the bottom."""
        canvas, count = self.canvas, self.table.buffers or 0
        canvas.text(MARGIN, y, "buffers", "bold")
        canvas.text(
            LEFT, y, "iteration that each buffer holds, from the issue of its copy to its computes", "small faint"
        )
        y += 6
        for number in range(min(count, 16)):
            canvas.text(MARGIN, y + 16, f"buffer {number}", "small")
            for span in spans:
                if span.buffer != number:
                    continue
                right = span.compute[0] + span.compute[1]
                full = span.complete if span.complete is not None else span.buffer_start
                with canvas.group(f"buffer {number} holds iteration {span.name}", focus=False):
                    canvas.rect(span.buffer_start, y + 3, right - span.buffer_start, ROW - 6, "box edge shared")
                    if full > span.buffer_start:
                        canvas.rect(span.buffer_start, y + 3, full - span.buffer_start, ROW - 6, "box edge load")
                    canvas.text((span.buffer_start + right) / 2, y + 16.5, span.name, "ink", "middle")
            y += ROW
        return y + 10

    def _legend(self, y: float) -> float:
        canvas, table = self.canvas, self.table
        texts = [f"{kind.letter} {LETTERS[kind]}" for kind in table.order]
        texts += ["digit: buffer"] if table.buffers else []
        texts += ["thin bar: in flight", "dashed: complete, not yet used"]
        texts += ["vertical line: wait"] if EventKind.WAIT in table.order else []
        texts += ["blue: being filled; green: complete"] if table.buffers else []
        y = canvas.flow(texts, MARGIN, y, self.width)
        return canvas.notes(table.notes[:4], MARGIN, y + 21, self.width) - 7


_WAITS = frozenset({EventKind.WAIT})
