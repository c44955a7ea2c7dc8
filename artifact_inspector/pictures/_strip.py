"""One strip of a timeline: its events, the loads in flight, and their amount."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.overlap.track import Flight
from artifact_inspector.facts.lane import Event, Lane, Loading
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import RegionKind
from artifact_inspector.pictures._canvas import Canvas, cut
from artifact_inspector.pictures._row import Row, describe, lay_out

GUTTER, MARGIN = 116, 14
"""Pixels left of a strip, for its label; pixels at the edges of a picture."""
ARC, BOX, BAR, AREA = 14, 24, 13, 34
"""Heights of a back edge, a block, a load in flight, and the area chart."""
MOST_BARS = 8
DENSE = 400
"""Number of changes of the amount in flight above which it is drawn per pixel."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A lane, or one of its warp partitions."""

    lane: Lane
    title: str
    cuts: tuple[tuple[int, int], ...]
    """Its parts as instruction ranges: before, in and after the loop; or its rounds."""


def inside(lane: Lane, start: int, stop: int) -> list[Event]:
    """The events in a range of instructions."""
    return [event for event in lane.events if start <= event.step.start < stop]


def group_loads(lane: Lane, start: int, stop: int) -> list[list[Loading]]:
    """Loads in a range of instructions, grouped by the wait or the run that completes them."""
    stops = [event.step.stop for event in lane.events]
    together: dict[tuple[object, ...], list[Loading]] = {}
    for loading in lane.loadings:
        flight = loading.flight
        end = flight.start if flight.end is None else flight.end
        if max(flight.start, end) < start or min(flight.start, end) >= stop:
            continue
        home = lane.events[flight.step].step.region
        run = None if flight.end is None else bisect_right(stops, flight.end)
        where = ("wait", flight.end, home) if flight.by_wait else (flight.step, run)
        together.setdefault((*where, flight.turns, flight.behind), []).append(loading)
    return list(together.values())


def loop_around(lane: Lane, flight: Flight) -> tuple[int, int] | None:
    """The loop whose back edge a load crosses before it completes; None if there is none."""
    if flight.end is None or flight.behind or not flight.turns:
        return None
    loops = [s for s in lane.stretches if s.kind is RegionKind.LOOP and s.start <= flight.end < s.stop]
    inner = max(loops, key=lambda loop: loop.depth, default=None)
    return None if inner is None or flight.start < inner.start else (inner.start, inner.stop)


def label_of(lane: Lane, loadings: Sequence[Loading]) -> str:
    """A short label of some loads: `A5 80 B +3`."""
    flight = loadings[0].flight
    loads = sum(loading.flight.loads for loading in loadings)
    sizes = [loading.flight.bytes for loading in loadings]
    known = [size for size in sizes if size is not None]
    bytes_ = f" {short(sum(known))} B" if len(known) == len(sizes) else ""
    later = f" +{flight.turns}" if flight.turns else ""
    return f"{lane.events[flight.step].letter}{loads}{bytes_}{later}{' ?' if flight.end is None else ''}"


def short(amount: float) -> str:
    """A number of bytes with at most one decimal place."""
    return f"{amount:.1f}".removesuffix(".0")


def amounts_of(lane: Lane, start: int, stop: int) -> tuple[list[tuple[int, float]], bool]:
    """The amounts in flight with their start, and whether they are bytes per thread (else loads)."""
    has_bytes, before = all(level.bytes is not None for level in lane.levels), 0.0
    found: list[tuple[int, float]] = []
    for level in lane.levels:
        amount = (level.bytes or 0.0) if has_bytes else float(level.loads)
        if level.start <= start:
            before = amount
        elif level.start < stop:
            found.append((level.start, amount))
    return [(start, before), *found], has_bytes


def most_in_flight(lane: Lane, start: int, stop: int) -> str:
    """The most in flight in a range of instructions, with its unit."""
    amounts, has_bytes = amounts_of(lane, start, stop)
    most = max(amount for _, amount in amounts)
    return f"{short(most)} B/thread" if has_bytes else f"{most:g} loads"


@dataclass(frozen=True, slots=True)
class Bar:
    """Loads that the same wait or the same run of instructions completes."""

    loadings: list[Loading]
    pieces: list[tuple[float, float]]
    """Segments from left to right; two if the loads cross the back edge of the loop."""
    turns: int
    through: tuple[float, float] | None
    """The x range of the loop if they are in flight for a full iteration."""
    last: float
    """x at which the last of them completes."""

    @property
    def reach(self) -> tuple[float, float]:
        """Its x range."""
        ends = [x for piece in self.pieces for x in piece] + [*(self.through or ()), self.last]
        return min(ends), max(ends)


class Drawing:
    """A strip being drawn."""

    def __init__(self, canvas: Canvas, scene: Scene, strip: Strip, columns: Sequence[float]) -> None:
        self.canvas, self.scene, self.strip = canvas, scene, strip
        self.lane = strip.lane
        self.rows = list(self._rows(columns))
        self.start, self.stop = self.rows[0].start, self.rows[-1].stop

    def _rows(self, columns: Sequence[float]) -> Iterator[Row]:
        last = (
            len(self.strip.cuts) - 1
        )  # the last part takes the remaining width if other strips have more parts
        widths = [*columns[:last], sum(columns[last:])]
        x = float(GUTTER)
        for (start, stop), width in zip(self.strip.cuts, widths, strict=True):
            yield lay_out(inside(self.lane, start, stop), x, width, start, stop)
            x += width

    def x_of(self, place: float) -> float:
        """The x coordinate of an instruction; at the edge if it is outside."""
        for row in self.rows:
            if place < row.stop or row is self.rows[-1]:
                return row.x_of(max(place, row.start))
        raise AssertionError

    def draw(self, y: float) -> float:
        """Draw the lane at a height; returns its bottom."""
        arcs = self._arcs(y)
        top = y + arcs
        bars, left_out = self._bars()
        below = top + BOX + 4
        area = below + BAR * len(bars) + (BAR if left_out else 0) + (4 if bars else 0)
        has_area = any(amount for _, amount in amounts_of(self.lane, self.start, self.stop)[0])
        bottom = area + (AREA if has_area else 0)
        self._gates(top, bottom)
        self._words(top, bars, area if has_area else None)
        if has_area:
            self._area(area)
        for number, bar in enumerate(bars):
            for one in bar:
                self._bar(one, below + BAR * number)
        if left_out:
            self.canvas.text(
                GUTTER, below + BAR * len(bars) + 10, f"… and {left_out} more loads", "faint small"
            )
        for row in self.rows:
            self._blocks(row, top)
        return bottom

    def _words(self, top: float, bars: Sequence[object], area: float | None) -> None:
        canvas, lane = self.canvas, self.lane
        canvas.text(MARGIN, top + 11, lane.stage.value, "bold")
        said = self.strip.title or self.scene.verdicts.get(lane.stage, "")
        canvas.text(MARGIN, top + 23, cut(said, GUTTER - MARGIN - 4, 9), "small accent")
        canvas.text(MARGIN, top + 35, f"{lane.instructions:,} instructions", "small faint")
        merged = sum(row.merged for row in self.rows)
        if merged:
            canvas.text(MARGIN, top + 47, f"{merged:,} runs merged", "small alarm")
        untold = [one for one in self.lane.stretches if one.untold and self._holds(one.start, one.stop)]
        if untold and area is None:
            canvas.text(MARGIN, top + 47, "in flight: unknown", "small alarm")
        if area is not None:
            canvas.text(MARGIN, area + AREA - 13, "in flight", "small faint")
            canvas.text(MARGIN, area + AREA - 2, f"≤ {self._most()}", "small faint")

    # -- events ----------------------------------------------------------------------------------------

    def _blocks(self, row: Row, top: float) -> None:
        for block in row.blocks:
            place = f"{self.lane.stage.value}:{block.events[0].first.line}"
            with self.canvas.told(describe(block), place=place):
                self.canvas.rect(
                    block.x + 0.5, top, block.width - 1, BOX, f"box edge {block.family}", round_=2
                )
                middle = block.x + block.width / 2
                number = block.events[0].step.round if len(block.events) == 1 else None
                if number is None or not self._numbered:
                    self.canvas.text(middle, top + 16, block.label, "ink", "middle")
                else:
                    self.canvas.text(middle, top + 11, block.label, "ink", "middle")
                    self.canvas.text(middle, top + 21, str(number), "ink small", "middle")
        for repeat in row.repeats:
            first, last = row.blocks[repeat.first], row.blocks[repeat.last]
            left, right = first.x + 1, last.x + last.width - 1
            self.canvas.path(f"M{left:.1f} {top - 1:.1f}v-3H{right:.1f}v3", "line rule")
            self.canvas.text((left + right) / 2, top - 6, f"×{repeat.times}", "small", "middle")

    @property
    def _numbered(self) -> bool:
        """True if there are several rounds."""
        return any((event.step.round or 0) > 1 for event in self.lane.events)

    def _arcs(self, y: float) -> float:
        """Draw the back edges of loops, outer ones above; returns their height."""
        loops = [
            found
            for found in self.lane.stretches
            if found.kind is RegionKind.LOOP and self.start <= found.start and found.stop <= self.stop
        ]
        deepest = max((loop.depth for loop in loops), default=0)
        least = min((loop.depth for loop in loops), default=0)
        for loop in loops:
            at = y + 10 + (loop.depth - least) * ARC
            left, right = self.x_of(loop.start) + 2, self.x_of(loop.stop) - 2
            bottom = y + 6 + (deepest - least + 1) * ARC
            with self.canvas.told(f"{loop.region}: back edge", focus=False):
                up, over = f"M{right:.1f} {bottom:.1f}V{at + 3:.1f}q0 -3 -3 -3", f"H{left + 3:.1f}q-3 0 -3 3"
                self.canvas.path(f"{up}{over}V{bottom:.1f}", "line go")
                if right - left > 90:
                    self.canvas.arrow(left + (right - left) / 2 - 4, at, -1, "accent")
                self.canvas.text(left + 8, at - 2, cut(loop.region, right - left - 16, 9), "small accent")
        if loops:
            return (deepest - least + 1) * ARC + 8
        return 14.0 if any(row.repeats for row in self.rows) else 0.0

    # -- loads in flight ---------------------------------------------------------------------------------

    def _bars(self) -> tuple[list[list[Bar]], int]:
        """The loads in flight by row, and the number of loads without a row."""
        groups = group_loads(self.lane, self.start, self.stop)
        rows: list[list[Bar]] = []
        left_out = 0
        for bar in sorted(map(self._make_bar, groups), key=lambda bar: bar.reach):
            left = bar.reach[0]
            row = next((row for row in rows if row[-1].reach[1] + 3 <= left), None)
            if row is not None:
                row.append(bar)
            elif len(rows) < MOST_BARS:
                rows.append([bar])
            else:
                left_out += sum(loading.flight.loads for loading in bar.loadings)
        return rows, left_out

    def _make_bar(self, loadings: list[Loading]) -> Bar:
        flight = loadings[0].flight
        start = self.x_of(min(loading.flight.start for loading in loadings))
        ends = [loading.flight.end for loading in loadings if loading.flight.end is not None]
        if not ends:
            return Bar(loadings, [(start, start + 22)], 0, None, start)
        end, last = self.x_of(min(ends) + 0.5), self.x_of(max(ends) + 0.5)
        loop = loop_around(self.lane, flight)
        if loop is None:
            return Bar(loadings, [(start, max(end, start + 3))], flight.turns, None, last)
        left, right = self.x_of(loop[0]) + 3, self.x_of(loop[1]) - 3
        through = (left, right) if flight.turns > 1 else None
        return Bar(loadings, [(left, end), (start, right)], flight.turns, through, last)

    def _bar(self, bar: Bar, y: float) -> None:
        canvas, flight = self.canvas, bar.loadings[0].flight
        with canvas.told(_tell_bar(bar), place=f"{self.lane.stage.value}:{bar.loadings[0].issue.line}"):
            if bar.through is not None:
                canvas.line(bar.through[0], y + 5.5, bar.through[1], y + 5.5, "thick edge dotted")
            for left, right in bar.pieces:
                dashed = " dashed" if flight.behind or flight.end is None else ""
                canvas.rect(left, y, right - left, BAR - 2, f"box edge load{dashed}", round_=2)
            label = label_of(self.lane, bar.loadings)
            if bar.last > bar.pieces[0][1] + 3:
                canvas.line(bar.pieces[0][1], y + 5.5, bar.last, y + 5.5, "thick edge")
            left, right = max(bar.pieces, key=lambda piece: piece[1] - piece[0])
            canvas.text(left + 4, y + 8.5, cut(label, right - left - 8, 9), "ink small")
            if len(bar.pieces) == 2:
                canvas.arrow(bar.pieces[1][1] + 4, y + 5.5, 1)
                canvas.arrow(bar.pieces[0][0] + 1, y + 5.5, 1)

    def _gates(self, top: float, bottom: float) -> None:
        """Draw a line down from every wait that completes loads."""
        ends = {
            loading.flight.end
            for loading in self.lane.loadings
            if loading.flight.by_wait and loading.flight.end is not None
        }
        for end in sorted(ends):
            if self.start <= end < self.stop:
                x = self.x_of(end + 0.5)
                self.canvas.line(x, top + BOX, x, bottom, "thick stop")

    # -- how much is in flight ---------------------------------------------------------------------------

    def _holds(self, start: int, stop: int) -> bool:
        return self.start <= start and stop <= self.stop

    def _most(self) -> str:
        return most_in_flight(self.lane, self.start, self.stop)

    def _area(self, y: float) -> None:
        steps, base = amounts_of(self.lane, self.start, self.stop)[0], y + AREA - 1
        most = max(amount for _, amount in steps)
        left, right = self.x_of(self.start), self.x_of(self.stop)
        path = [f"M{left:.1f} {base:.1f}"]
        peaks: dict[float, tuple[float, float]] = {}
        for start, amount in steps:  # of several changes within a pixel, keep the largest and the last
            x = round(self.x_of(start - 0.5), 0 if len(steps) > DENSE else 1)
            peaks[x] = (max(amount, peaks.get(x, (0.0, 0.0))[0]), amount)
        for x, heights in peaks.items():
            path += [f"H{x:.1f}V{base - (AREA - 6) * height / most:.1f}" for height in dict.fromkeys(heights)]
        with self.canvas.told(f"in flight: at most {self._most()}", focus=False):
            self.canvas.path("".join(path) + f"H{right:.1f}V{base:.1f}Z", "area line edge box")
        self.canvas.line(left, base, right, base, "line rule")


def _tell_bar(bar: Bar) -> str:
    """The tooltip of a bar."""
    flight, first = bar.loadings[0].flight, bar.loadings[0]
    loads = sum(loading.flight.loads for loading in bar.loadings)
    sizes = [loading.flight.bytes for loading in bar.loadings]
    known = [size for size in sizes if size is not None]
    moved = f", {short(sum(known))} bytes per thread" if len(known) == len(sizes) else ""
    lines = sorted({loading.issue.line for loading in bar.loadings})
    what = "load" if loads == 1 else "loads"
    said = f"{loads} {what} issued from line {lines[0]}{moved}\n{first.issue.text}"
    if first.completion is None:
        return f"{said}\ncompletion unknown"
    how = "waited for" if flight.by_wait else "complete at the latest" if flight.bounded else "used"
    when = ""
    if flight.behind:
        when = ", after the loop"
    elif flight.turns:
        when = f", {flight.turns} {'iteration' if flight.turns == 1 else 'iterations'} later"
    source = "" if first.issue.source is None else f"\n{first.issue.source}"
    return f"{said}{source}\n{how} at line {first.completion.line}{when}\n{first.completion.text}"
