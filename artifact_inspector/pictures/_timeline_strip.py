"""One strip of a timeline: its events, the loads in flight, and their amount."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.overlap.execution_track import LoadFlight
from artifact_inspector.facts.lane import Event, Lane, LoadSpan
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import RegionKind
from artifact_inspector.pictures._block_row import BlockRow, describe_block, lay_out
from artifact_inspector.pictures._canvas import Canvas, cut_text

GUTTER, MARGIN = 116, 14
"""Pixels left of a strip, for its label; pixels at the edges of a picture."""
ARC, BOX, BAR, AREA = 14, 24, 13, 34
"""Heights of a back edge, a block, a load in flight, and the area chart."""
MAX_BARS = 8
MAX_AREA_STEPS = 400
"""Number of changes of the amount in flight above which it is drawn per pixel."""


@dataclass(frozen=True, slots=True)
class TimelineStrip:
    """A lane, or one of its warp partitions."""

    lane: Lane
    title: str
    cuts: tuple[tuple[int, int], ...]
    """Its parts as instruction ranges: before, in and after the loop; or its rounds."""


def events_in(lane: Lane, start: int, stop: int) -> list[Event]:
    """The events in a range of instructions."""
    return [event for event in lane.events if start <= event.step.start < stop]


def group_loads(lane: Lane, start: int, stop: int) -> list[list[LoadSpan]]:
    """Loads in a range of instructions, grouped by the wait or the run that completes them."""
    stops = [event.step.stop for event in lane.events]
    groups: dict[tuple[object, ...], list[LoadSpan]] = {}
    for loading in lane.load_spans:
        flight = loading.flight
        end = flight.start if flight.end is None else flight.end
        if max(flight.start, end) < start or min(flight.start, end) >= stop:
            continue
        region = lane.events[flight.step].step.region
        run = None if flight.end is None else bisect_right(stops, flight.end)
        completion = ("wait", flight.end, region) if flight.is_by_wait else (flight.step, run)
        groups.setdefault((*completion, flight.back_edges, flight.is_after_loop), []).append(loading)
    return list(groups.values())


def loop_around(lane: Lane, flight: LoadFlight) -> tuple[int, int] | None:
    """The loop whose back edge a load crosses before it completes; None if there is none."""
    if flight.end is None or flight.is_after_loop or not flight.back_edges:
        return None
    loops = [s for s in lane.spans if s.kind is RegionKind.LOOP and s.start <= flight.end < s.stop]
    inner = max(loops, key=lambda loop: loop.depth, default=None)
    return None if inner is None or flight.start < inner.start else (inner.start, inner.stop)


def load_label(lane: Lane, loadings: Sequence[LoadSpan]) -> str:
    """A short label of some loads: `A5 80 B +3`."""
    flight = loadings[0].flight
    loads = sum(loading.flight.loads for loading in loadings)
    size = _total_bytes(loadings)
    bytes_ = "" if size is None else f" {size} B"
    later = f" +{flight.back_edges}" if flight.back_edges else ""
    return f"{lane.events[flight.step].letter}{loads}{bytes_}{later}{' ?' if flight.end is None else ''}"


def _total_bytes(loadings: Sequence[LoadSpan]) -> str | None:
    """Bytes per thread; None if some are unknown."""
    sizes = [loading.flight.bytes for loading in loadings if loading.flight.bytes is not None]
    return format_bytes(sum(sizes)) if len(sizes) == len(loadings) else None


def format_bytes(amount: float) -> str:
    """A number of bytes with at most one decimal place."""
    return f"{amount:.1f}".removesuffix(".0")


def amounts_in_flight(lane: Lane, start: int, stop: int) -> tuple[list[tuple[int, float]], bool]:
    """The amounts in flight with their start, and whether they are bytes per thread (else loads)."""
    has_bytes, initial_amount = all(level.bytes is not None for level in lane.levels), 0.0
    steps: list[tuple[int, float]] = []
    for level in lane.levels:
        amount = (level.bytes or 0.0) if has_bytes else float(level.loads)
        if level.start <= start:
            initial_amount = amount
        elif level.start < stop:
            steps.append((level.start, amount))
    return [(start, initial_amount), *steps], has_bytes


def describe_peak(lane: Lane, start: int, stop: int) -> str:
    """The most in flight in a range of instructions, with its unit."""
    amounts, has_bytes = amounts_in_flight(lane, start, stop)
    peak = max(amount for _, amount in amounts)
    return f"{format_bytes(peak)} B/thread" if has_bytes else f"{peak:g} loads"


@dataclass(frozen=True, slots=True)
class LoadBar:
    """Loads that the same wait or the same run of instructions completes."""

    loadings: list[LoadSpan]
    segments: list[tuple[float, float]]
    """Segments from left to right; two if the loads cross the back edge of the loop."""
    back_edges: int
    loop_span: tuple[float, float] | None
    """The x range of the loop if they are in flight for a full iteration."""
    completion_x: float
    """x at which the last of them completes."""

    @property
    def extent(self) -> tuple[float, float]:
        """Its x range."""
        ends = [x for piece in self.segments for x in piece] + [*(self.loop_span or ()), self.completion_x]
        return min(ends), max(ends)


class StripPainter:
    """A strip being drawn."""

    def __init__(self, canvas: Canvas, scene: Scene, strip: TimelineStrip, columns: Sequence[float]) -> None:
        self.canvas, self.scene, self.strip = canvas, scene, strip
        self.lane = strip.lane
        self.rows = list(self._rows(columns))
        self.start, self.stop = self.rows[0].start, self.rows[-1].stop

    def _rows(self, columns: Sequence[float]) -> Iterator[BlockRow]:
        last = len(self.strip.cuts) - 1  # the last part takes the remaining width if other strips have more parts
        widths = [*columns[:last], sum(columns[last:])]
        x = float(GUTTER)
        for (start, stop), width in zip(self.strip.cuts, widths, strict=True):
            yield lay_out(events_in(self.lane, start, stop), x, width, start, stop)
            x += width

    def x_of(self, position: float) -> float:
        """The x coordinate of an instruction; at the edge if it is outside."""
        for row in self.rows:
            if position < row.stop or row is self.rows[-1]:
                return row.x_of(max(position, row.start))
        raise AssertionError

    def draw(self, y: float) -> float:
        """Draw the lane at a height; returns its bottom."""
        top = y + self._draw_back_edges(y)
        bars, omitted = self._bars()
        below = top + BOX + 4
        area = below + BAR * len(bars) + (BAR if omitted else 0) + (4 if bars else 0)
        has_area = any(amount for _, amount in amounts_in_flight(self.lane, self.start, self.stop)[0])
        bottom = area + (AREA if has_area else 0)
        self._draw_waits(top, bottom)
        self._draw_labels(top, bars, area if has_area else None)
        if has_area:
            self._draw_area(area)
        for number, bar in enumerate(bars):
            for load_bar in bar:
                self._draw_bar(load_bar, below + BAR * number)
        if omitted:
            self.canvas.text(GUTTER, below + BAR * len(bars) + 10, f"… and {omitted} more loads", "faint small")
        for row in self.rows:
            self._draw_blocks(row, top)
        return bottom

    def _draw_labels(self, top: float, bars: Sequence[object], area: float | None) -> None:
        canvas, lane = self.canvas, self.lane
        canvas.text(MARGIN, top + 11, lane.stage.value, "bold")
        subtitle = self.strip.title or self.scene.verdicts.get(lane.stage, "")
        canvas.text(MARGIN, top + 23, cut_text(subtitle, GUTTER - MARGIN - 4, 9), "small accent")
        canvas.text(MARGIN, top + 35, f"{lane.instructions:,} instructions", "small faint")
        merged = sum(row.merged for row in self.rows)
        if merged:
            canvas.text(MARGIN, top + 47, f"{merged:,} runs merged", "small alarm")
        spans = [x for x in lane.spans if x.unknown_reason and self.start <= x.start and x.stop <= self.stop]
        if spans and area is None:
            canvas.text(MARGIN, top + 47, "in flight: unknown", "small alarm")
        if area is not None:
            canvas.text(MARGIN, area + AREA - 13, "in flight", "small faint")
            canvas.text(MARGIN, area + AREA - 2, f"≤ {describe_peak(lane, self.start, self.stop)}", "small faint")

    # -- events ----------------------------------------------------------------------------------------

    def _draw_blocks(self, row: BlockRow, top: float) -> None:
        has_rounds = any((event.step.round or 0) > 1 for event in self.lane.events)
        for block in row.blocks:
            location = f"{self.lane.stage.value}:{block.events[0].first.line}"
            with self.canvas.group(describe_block(block), location=location):
                self.canvas.rect(block.x + 0.5, top, block.width - 1, BOX, f"box edge {block.family}", round_=2)
                middle = block.x + block.width / 2
                number = block.events[0].step.round if len(block.events) == 1 else None
                if number is None or not has_rounds:
                    self.canvas.text(middle, top + 16, block.label, "ink", "middle")
                else:
                    self.canvas.text(middle, top + 11, block.label, "ink", "middle")
                    self.canvas.text(middle, top + 21, str(number), "ink small", "middle")
        for repeat in row.repeats:
            first, last = row.blocks[repeat.first], row.blocks[repeat.last]
            left, right = first.x + 1, last.x + last.width - 1
            self.canvas.path(f"M{left:.1f} {top - 1:.1f}v-3H{right:.1f}v3", "line rule")
            self.canvas.text((left + right) / 2, top - 6, f"×{repeat.times}", "small", "middle")

    def _draw_back_edges(self, y: float) -> float:
        """Draw the back edges of loops, outer ones above; returns their height."""
        loops = [
            stretch
            for stretch in self.lane.spans
            if stretch.kind is RegionKind.LOOP and self.start <= stretch.start and stretch.stop <= self.stop
        ]
        deepest = max((loop.depth for loop in loops), default=0)
        least = min((loop.depth for loop in loops), default=0)
        for loop in loops:
            at = y + 10 + (loop.depth - least) * ARC
            left, right = self.x_of(loop.start) + 2, self.x_of(loop.stop) - 2
            bottom = y + 6 + (deepest - least + 1) * ARC
            with self.canvas.group(f"{loop.region}: back edge", focus=False):
                right_edge = f"M{right:.1f} {bottom:.1f}V{at + 3:.1f}q0 -3 -3 -3"
                self.canvas.path(f"{right_edge}H{left + 3:.1f}q-3 0 -3 3V{bottom:.1f}", "line go")
                if right - left > 90:
                    self.canvas.arrow(left + (right - left) / 2 - 4, at, -1, "accent")
                self.canvas.text(left + 8, at - 2, cut_text(loop.region, right - left - 16, 9), "small accent")
        if loops:
            return (deepest - least + 1) * ARC + 8
        return 14.0 if any(row.repeats for row in self.rows) else 0.0

    # -- loads in flight ---------------------------------------------------------------------------------

    def _bars(self) -> tuple[list[list[LoadBar]], int]:
        groups = group_loads(self.lane, self.start, self.stop)
        rows: list[list[LoadBar]] = []
        omitted = 0
        for bar in sorted(map(self._make_bar, groups), key=lambda bar: bar.extent):
            left = bar.extent[0]
            row = next((row for row in rows if row[-1].extent[1] + 3 <= left), None)
            if row is not None:
                row.append(bar)
            elif len(rows) < MAX_BARS:
                rows.append([bar])
            else:
                omitted += sum(loading.flight.loads for loading in bar.loadings)
        return rows, omitted

    def _make_bar(self, loadings: list[LoadSpan]) -> LoadBar:
        flight = loadings[0].flight
        start = self.x_of(min(loading.flight.start for loading in loadings))
        ends = [loading.flight.end for loading in loadings if loading.flight.end is not None]
        if not ends:
            return LoadBar(loadings, [(start, start + 22)], 0, None, start)
        end, last = self.x_of(min(ends) + 0.5), self.x_of(max(ends) + 0.5)
        loop = loop_around(self.lane, flight)
        if loop is None:
            return LoadBar(loadings, [(start, max(end, start + 3))], flight.back_edges, None, last)
        left, right = self.x_of(loop[0]) + 3, self.x_of(loop[1]) - 3
        through = (left, right) if flight.back_edges > 1 else None
        return LoadBar(loadings, [(left, end), (start, right)], flight.back_edges, through, last)

    def _draw_bar(self, bar: LoadBar, y: float) -> None:
        canvas, flight = self.canvas, bar.loadings[0].flight
        with canvas.group(_describe_bar(bar), location=f"{self.lane.stage.value}:{bar.loadings[0].issue.line}"):
            if bar.loop_span is not None:
                canvas.line(bar.loop_span[0], y + 5.5, bar.loop_span[1], y + 5.5, "thick edge dotted")
            for left, right in bar.segments:
                dashed = " dashed" if flight.is_after_loop or flight.end is None else ""
                canvas.rect(left, y, right - left, BAR - 2, f"box edge load{dashed}", round_=2)
            label = load_label(self.lane, bar.loadings)
            if bar.completion_x > bar.segments[0][1] + 3:
                canvas.line(bar.segments[0][1], y + 5.5, bar.completion_x, y + 5.5, "thick edge")
            left, right = max(bar.segments, key=lambda piece: piece[1] - piece[0])
            canvas.text(left + 4, y + 8.5, cut_text(label, right - left - 8, 9), "ink small")
            if len(bar.segments) == 2:
                canvas.arrow(bar.segments[1][1] + 4, y + 5.5, 1)
                canvas.arrow(bar.segments[0][0] + 1, y + 5.5, 1)

    def _draw_waits(self, top: float, bottom: float) -> None:
        ends = {
            loading.flight.end
            for loading in self.lane.load_spans
            if loading.flight.is_by_wait and loading.flight.end is not None
        }
        for end in sorted(ends):
            if self.start <= end < self.stop:
                x = self.x_of(end + 0.5)
                self.canvas.line(x, top + BOX, x, bottom, "thick stop")

    # -- how much is in flight ---------------------------------------------------------------------------

    def _draw_area(self, y: float) -> None:
        steps, base = amounts_in_flight(self.lane, self.start, self.stop)[0], y + AREA - 1
        peak = max(amount for _, amount in steps)
        left, right = self.x_of(self.start), self.x_of(self.stop)
        path = [f"M{left:.1f} {base:.1f}"]
        peaks: dict[float, tuple[float, float]] = {}
        for start, amount in steps:  # of several changes within a pixel, keep the largest and the last
            x = round(self.x_of(start - 0.5), 0 if len(steps) > MAX_AREA_STEPS else 1)
            peaks[x] = (max(amount, peaks.get(x, (0.0, 0.0))[0]), amount)
        for x, heights in peaks.items():
            path += [f"H{x:.1f}V{base - (AREA - 6) * height / peak:.1f}" for height in dict.fromkeys(heights)]
        with self.canvas.group(f"in flight: at most {describe_peak(self.lane, self.start, self.stop)}", focus=False):
            self.canvas.path("".join(path) + f"H{right:.1f}V{base:.1f}Z", "area line edge box")
        self.canvas.line(left, base, right, base, "line rule")


def _describe_bar(bar: LoadBar) -> str:
    flight, first = bar.loadings[0].flight, bar.loadings[0]
    loads = sum(loading.flight.loads for loading in bar.loadings)
    size = _total_bytes(bar.loadings)
    size_text = "" if size is None else f", {size} bytes per thread"
    lines = sorted({loading.issue.line for loading in bar.loadings})
    noun = "load" if loads == 1 else "loads"
    text = f"{loads} {noun} issued from line {lines[0]}{size_text}\n{first.issue.text}"
    if first.completion is None:
        return f"{text}\ncompletion unknown"
    completion_text = "waited for" if flight.is_by_wait else "complete at the latest" if flight.is_bounded else "used"
    when = ""
    if flight.is_after_loop:
        when = ", after the loop"
    elif flight.back_edges:
        when = f", {flight.back_edges} {'iteration' if flight.back_edges == 1 else 'iterations'} later"
    source = "" if first.issue.source is None else f"\n{first.issue.source}"
    return f"{text}{source}\n{completion_text} at line {first.completion.line}{when}\n{first.completion.text}"
