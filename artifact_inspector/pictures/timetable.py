"""The timetable of a pipelined loop: when each iteration is loaded and computed, and in which buffer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifact_inspector.facts.timetable import Timetable, find_timetable
from artifact_inspector.model import COMPUTES, LOADS, EventKind
from artifact_inspector.pictures._canvas import Canvas, cut, width_of
from artifact_inspector.pictures._colours import FAMILY_OF
from artifact_inspector.vocabulary.letters import LETTERS

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, LEFT, TOP, ROW = 14, 96, 70, 26
MOST_HEAD = 7
"""Most iterations drawn at the beginning; two more are drawn at the end."""


def timetable(
    kernel: KernelFacts, region: str | None = None, *, width: float = 960, style: bool = True
) -> str:
    """The timetable of a loop as SVG; of the main loop by default.

    Raises:
        UsageError: the loop is not pipelined.
    """
    return draw_timetable(find_timetable(kernel, region), width=width, style=style)


def draw_timetable(table: Timetable, *, width: float = 960, style: bool = True) -> str:
    """A timetable as SVG."""
    return _Drawing(table, width).render(style=style)


@dataclass(frozen=True, slots=True)
class _Life:
    """One iteration: when it is loaded, complete and computed, in pixels."""

    name: str
    buffer: int | None
    issue: tuple[float, float] | None
    """None if it is in an omitted iteration."""
    complete: float | None
    compute: tuple[float, float]
    begins: float
    """x at which its buffer is first written."""


class _Drawing:
    def __init__(self, table: Timetable, width: float) -> None:
        self.table, self.width = table, width
        self.canvas = Canvas()
        whole = table.trips
        self.head = min(max(table.distance + 2, 4), MOST_HEAD) if whole is None else min(whole, MOST_HEAD)
        self.has_tail = whole is None or whole > MOST_HEAD
        tail = ["n−2", "n−1"] if whole is None else [str(whole - 2), str(whole - 1)]
        self.trips = [str(n) for n in range(self.head)] + ([*tail] if self.has_tail else [])
        columns = self.head + 2 + (3 if self.has_tail else 0)
        self.column = (width - LEFT - MARGIN) / columns
        self.parts = len(table.order) or 1

    def render(self, *, style: bool) -> str:
        canvas, table = self.canvas, self.table
        title = f"{table.kernel} · {table.region} · {table.kind}, {table.distance} ahead"
        canvas.text(MARGIN, 20, cut(title, self.width - 2 * MARGIN, 13), "head")
        canvas.text(
            MARGIN, 38, f"from {table.stage.value}; one row per iteration of the source", "small faint"
        )
        lives = self._lives()
        bottom = TOP + ROW * (len(lives) + self.has_tail)
        self._columns(bottom)
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
        """The part of a trip for some kinds of events."""
        at = next((n for n, kind in enumerate(self.table.order) if kind in kinds), 0)
        part = self.column / self.parts
        return self._x(trip) + at * part + 1, part - 2

    def _lives(self) -> list[_Life]:
        table, lives = self.table, []
        for number, name in enumerate(self.trips):
            issued = number - table.distance
            in_gap = self.has_tail and number >= self.head and issued < self.head
            issue: tuple[float, float] | None = None
            if issued < 0:  # in the prologue
                part = self.column / table.distance
                issue = (self._x(-1) + number * part + 1, part - 2)
            elif not in_gap:
                issue = self._slot(issued, LOADS)
            complete = None
            if table.lag is not None:
                trip = number - table.distance + table.lag
                hidden = self.has_tail and number >= self.head > trip
                complete = None if hidden or trip < 0 else sum(self._slot(trip, _WAITS)) - 1
            begins = self._x(self.head - 1) + self.column if issue is None else issue[0]
            buffer = number % table.buffers if table.buffers and number < self.head else None
            lives.append(_Life(name, buffer, issue, complete, self._slot(number, COMPUTES), begins))
        return lives

    # -- drawing --------------------------------------------------------------------------------------------

    def _columns(self, bottom: float) -> None:
        canvas, table = self.canvas, self.table
        names = [(-1, "prologue"), *((n, f"trip {name}") for n, name in enumerate(self.trips))]
        last = len(self.trips)
        behind = "epilogue" if table.epilogue_line is None else f"line {table.epilogue_line}: drained"
        for trip, name in [*names, (last, behind)]:
            x = self._x(trip)
            canvas.line(x, TOP - 12, x, bottom, "line rule dotted")
            canvas.text(x + self.column / 2, TOP - 16, cut(name, self.column * 1.4, 9), "small", "middle")
        if self.has_tail:
            canvas.text(self._x(self.head) - self.column / 2, TOP - 16, "⋯", "faint", "middle")
        if EventKind.WAIT in table.order:
            for trip in range(len(self.trips)):
                x, wide = self._slot(trip, _WAITS)
                canvas.line(x + wide, TOP - 10, x + wide, bottom, "thick stop")

    def _row(self, life: _Life, y: float) -> None:
        canvas = self.canvas
        canvas.text(MARGIN, y + 16, f"iteration {life.name}", "small")
        load = next((kind for kind in self.table.order if kind in LOADS), EventKind.ASYNC_COPY)
        compute = next((kind for kind in self.table.order if kind in COMPUTES), EventKind.MATRIX)
        held = "" if life.buffer is None else f" in buffer {life.buffer}"
        start = life.begins if life.issue is None else sum(life.issue)
        end = life.complete if life.complete is not None else start
        if end > start:
            with canvas.told(f"iteration {life.name}: in flight", focus=False):
                canvas.rect(start, y + 8, end - start, 7, "box edge load", round_=2)
        if life.compute[0] > max(start, end):
            canvas.line(max(start, end), y + 11.5, life.compute[0], y + 11.5, "line edge dashed")
        if life.issue is not None:
            with canvas.told(f"iteration {life.name}: loaded{held}"):
                self._box(life.issue, y, load, life.buffer)
        with canvas.told(f"iteration {life.name}: computed{held}"):
            self._box(life.compute, y, compute, life.buffer)

    def _box(self, place: tuple[float, float], y: float, kind: EventKind, buffer: int | None) -> None:
        x, wide = place
        self.canvas.rect(x, y + 2, wide, ROW - 7, f"box edge {FAMILY_OF[kind]}", round_=2)
        label = kind.letter if buffer is None or wide < width_of("A0") + 2 else f"{kind.letter}{buffer}"
        self.canvas.text(x + wide / 2, y + 15.5, label, "ink", "middle")

    def _buffers(self, lives: list[_Life], y: float) -> float:
        """Draw what each buffer holds over the same trips; returns the bottom."""
        canvas, count = self.canvas, self.table.buffers or 0
        canvas.text(MARGIN, y, "buffers", "bold")
        canvas.text(
            LEFT,
            y,
            "iteration that each buffer holds, from the issue of its copy to its computes",
            "small faint",
        )
        y += 6
        for number in range(min(count, 16)):
            canvas.text(MARGIN, y + 16, f"buffer {number}", "small")
            for life in lives:
                if life.buffer != number:
                    continue
                right = life.compute[0] + life.compute[1]
                full = life.complete if life.complete is not None else life.begins
                with canvas.told(f"buffer {number} holds iteration {life.name}", focus=False):
                    canvas.rect(life.begins, y + 3, right - life.begins, ROW - 6, "box edge shared")
                    if full > life.begins:
                        canvas.rect(life.begins, y + 3, full - life.begins, ROW - 6, "box edge load")
                    canvas.text((life.begins + right) / 2, y + 16.5, life.name, "ink", "middle")
            y += ROW
        return y + 10

    def _legend(self, y: float) -> float:
        canvas, table = self.canvas, self.table
        said = [f"{kind.letter} {LETTERS[kind]}" for kind in table.order]
        said += ["digit: buffer"] if table.buffers else []
        said += ["thin bar: in flight", "dashed: complete, not yet used"]
        said += ["vertical line: wait"] if EventKind.WAIT in table.order else []
        said += ["blue: being filled; green: complete"] if table.buffers else []
        x = float(MARGIN)
        for piece in said:
            room = width_of(piece, 9) + 16
            if x + room > self.width - MARGIN:
                x, y = float(MARGIN), y + 13
            canvas.text(x, y + 8, piece, "small faint")
            x += room
        for note in table.notes[:4]:
            y += 13
            canvas.text(MARGIN, y + 8, cut(note, self.width - 2 * MARGIN, 9), "small faint")
        return y + 14


_WAITS = frozenset({EventKind.WAIT})
