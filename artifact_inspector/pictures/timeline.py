"""The timeline: a lane for each stage, its events in order, every load from its issue to its completion."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from artifact_inspector.facts.lane import Event, Lane, Loading
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.model import EventKind, RegionKind, Stage
from artifact_inspector.pictures._canvas import Canvas, cut, width_of
from artifact_inspector.pictures._row import Row, demand, describe, lay_out
from artifact_inspector.vocabulary.letters import LETTERS

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

__all__ = ["draw_scene", "timeline"]

GUTTER, MARGIN = 116, 14
ARC, BOX, BAR, AREA = 14, 24, 13, 34
"""Heights: of a back edge, of a block, of a load in flight, of the area beneath."""
MOST_BARS = 8
LEAST = 14.0
"""Pixels of a column that holds nothing."""


def timeline(
    kernel: KernelFacts,
    region: str | None = None,
    stages: Collection[Stage] | None = None,
    *,
    width: float = 960,
    style: bool = True,
) -> str:
    """The timeline of a kernel as SVG.

    Args:
        region: id of a loop or partition to look at; the whole kernel without one.
        stages: those to show; all without any.
        width: in pixels.
        style: with its rules; see `Canvas.render`.

    Raises:
        UsageError: the kernel has no such region or stage.
    """
    return draw_scene(find_scene(kernel, region, stages), width=width, style=style)


def draw_scene(scene: Scene, *, width: float = 960, style: bool = True) -> str:
    """A scene as SVG."""
    canvas = Canvas()
    head = f"{scene.kernel} · {scene.target}" if scene.target else scene.kernel
    canvas.text(MARGIN, 20, cut(head, width - 2 * MARGIN, 13), "head")
    columns = _columns(scene, width - GUTTER - MARGIN)
    y = 34.0
    for lane in scene.lanes:
        y = _LaneDrawing(canvas, scene, lane, columns, width).draw(y) + 16
    y = _legend(canvas, scene, y, width)
    return canvas.render(width, y + 8, f"Timeline of {scene.kernel}", _summary(scene), style=style)


def _summary(scene: Scene) -> str:
    """The picture in words."""
    said = []
    for lane in scene.lanes:
        letters = " ".join(f"{event.letter}{event.step.times}" for event in lane.events[:60])
        more = f" and {len(lane.events) - 60} more" if len(lane.events) > 60 else ""
        said.append(f"{lane.stage.value}: {letters}{more}")
    return "Events in execution order. " + ". ".join(said)


# -- columns: in front of the loop, the loop, behind it --------------------------------------------------


def _cuts(scene: Scene, lane: Lane) -> list[tuple[int, int]]:
    """The parts of a lane, by their first and last places."""
    whole = lane.stretches[0] if scene.region is None else lane.stretch(scene.region)
    assert whole is not None
    loop = None if scene.region is not None or scene.principal is None else lane.stretch(scene.principal)
    if loop is None or loop.kind is not RegionKind.LOOP:
        return [(whole.start, whole.stop)]
    return [(whole.start, loop.start), (loop.start, loop.stop), (loop.stop, whole.stop)]


def _inside(lane: Lane, start: int, stop: int) -> list[Event]:
    return [event for event in lane.events if start <= event.step.start < stop]


def _columns(scene: Scene, room: float) -> list[float]:
    """Widths of the parts: those that most lanes need, scaled to the room that there is."""
    needs = [LEAST, LEAST, LEAST]
    for lane in scene.lanes:
        cuts = _cuts(scene, lane)
        if len(cuts) == 3:
            for number, (start, stop) in enumerate(cuts):
                needs[number] = max(needs[number], min(demand(_inside(lane, start, stop)), 4 * room))
    total = sum(needs)
    if total > room:  # the loop is what people came for
        sides = min(needs[0], room * 0.3), min(needs[2], room * 0.25)
        needs = [sides[0], room - sum(sides), sides[1]]
        total = room
    return [need * room / total for need in needs]


# -- one lane ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Bar:
    """Loads that are complete with the same instruction."""

    loadings: list[Loading]
    pieces: list[tuple[float, float]]
    """From left to right; of two the loads go out of the loop at its end, and come in at its start."""
    turns: int
    through: tuple[float, float] | None
    """The loop that they go through as a whole."""

    @property
    def reach(self) -> tuple[float, float]:
        """All that it takes."""
        ends = [x for piece in self.pieces for x in piece] + list(self.through or ())
        return min(ends), max(ends)


class _LaneDrawing:
    def __init__(
        self, canvas: Canvas, scene: Scene, lane: Lane, columns: Sequence[float], width: float
    ) -> None:
        self.canvas, self.scene, self.lane, self.width = canvas, scene, lane, width
        self.rows = list(self._rows(columns))
        self.start, self.stop = self.rows[0].start, self.rows[-1].stop

    def _rows(self, columns: Sequence[float]) -> Iterator[Row]:
        cuts = _cuts(self.scene, self.lane)
        widths = list(columns) if len(cuts) == 3 else [sum(columns)]
        x = float(GUTTER)
        for (start, stop), width in zip(cuts, widths, strict=True):
            yield lay_out(_inside(self.lane, start, stop), x, width, start, stop)
            x += width

    def x_of(self, place: float) -> float:
        """Where a place stands; what is outside stands at the edge."""
        for row in self.rows:
            if place < row.stop or row is self.rows[-1]:
                return row.x_of(max(place, row.start))
        raise AssertionError

    def draw(self, y: float) -> float:
        """The lane from a height down; returns where it ends."""
        arcs = self._arcs(y)
        top = y + arcs
        bars, left_out = self._bars()
        below = top + BOX + 4
        area = below + BAR * len(bars) + (BAR if left_out else 0) + (4 if bars else 0)
        has_area = any(level.loads for level in self.lane.levels)
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
        verdict = self.scene.verdicts.get(lane.stage)
        canvas.text(MARGIN, top + 23, cut(verdict or "", GUTTER - MARGIN - 4, 9), "small accent")
        canvas.text(MARGIN, top + 35, f"{lane.instructions:,} instructions", "small faint")
        merged = sum(row.merged for row in self.rows)
        if merged:
            canvas.text(MARGIN, top + 47, f"{merged:,} runs merged", "small alarm")
        if area is not None:
            canvas.text(MARGIN, area + AREA - 13, "in flight", "small faint")
            canvas.text(MARGIN, area + AREA - 2, f"≤ {self._most()}", "small faint")

    # -- events ----------------------------------------------------------------------------------------

    def _blocks(self, row: Row, top: float) -> None:
        for block in row.blocks:
            with self.canvas.told(
                describe(block), place=f"{self.lane.stage.value}:{block.events[0].first.line}"
            ):
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
        """True where there are rounds to be told apart."""
        return any((event.step.round or 0) > 1 for event in self.lane.events)

    def _arcs(self, y: float) -> float:
        """The back edges of loops, outer ones above; returns their height."""
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
            with self.canvas.told(f"{loop.region}: goes back to its start", focus=False):
                up, over = f"M{right:.1f} {bottom:.1f}V{at + 3:.1f}q0 -3 -3 -3", f"H{left + 3:.1f}q-3 0 -3 3"
                self.canvas.path(f"{up}{over}V{bottom:.1f}", "line go")
                self.canvas.arrow(left + (right - left) / 2 - 4, at, -1, "accent")
                self.canvas.text(left + 8, at - 2, cut(loop.region, right - left - 16, 9), "small accent")
        return 0.0 if not loops else (deepest - least + 1) * ARC + 8

    # -- loads in flight ---------------------------------------------------------------------------------

    def _bars(self) -> tuple[list[list[Bar]], int]:
        """The loads in flight row by row, and how many loads there is no row for."""
        together: dict[tuple[object, ...], list[Loading]] = {}
        for loading in self.lane.loadings:
            flight = loading.flight
            start = flight.start
            ends = start if flight.end is None else flight.end
            if max(start, ends) < self.start or min(start, ends) >= self.stop:
                continue
            home = self.lane.events[flight.step].step.region
            key = (flight.end, flight.turns, flight.behind, home, flight.end is None and flight.step)
            together.setdefault(key, []).append(loading)
        rows: list[list[Bar]] = []
        left_out = 0
        for bar in sorted(map(self._make_bar, together.values()), key=lambda bar: bar.reach):
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
        if flight.end is None:
            return Bar(loadings, [(start, start + 22)], 0, None)
        end = self.x_of(flight.end + 0.5)
        loop = self._loop_around(flight.end)
        goes_round = flight.turns > 0 and not flight.behind and loop is not None and flight.start >= loop[0]
        if not goes_round or loop is None:
            return Bar(loadings, [(start, max(end, start + 3))], flight.turns, None)
        left, right = self.x_of(loop[0]) + 3, self.x_of(loop[1]) - 3
        return Bar(
            loadings, [(left, end), (start, right)], flight.turns, (left, right) if flight.turns > 1 else None
        )

    def _loop_around(self, place: int) -> tuple[int, int] | None:
        """The innermost loop around a place."""
        loops = [s for s in self.lane.stretches if s.kind is RegionKind.LOOP and s.start <= place < s.stop]
        inner = max(loops, key=lambda loop: loop.depth, default=None)
        return None if inner is None else (inner.start, inner.stop)

    def _bar(self, bar: Bar, y: float) -> None:
        canvas, flight = self.canvas, bar.loadings[0].flight
        with canvas.told(_tell_bar(bar), place=f"{self.lane.stage.value}:{bar.loadings[0].issue.line}"):
            if bar.through is not None:
                canvas.line(bar.through[0], y + 5.5, bar.through[1], y + 5.5, "thick edge dotted")
            for left, right in bar.pieces:
                dashed = " dashed" if flight.behind or flight.end is None else ""
                canvas.rect(left, y, right - left, BAR - 2, f"box edge load{dashed}", round_=2)
            label = _label_bar(bar)
            left, right = max(bar.pieces, key=lambda piece: piece[1] - piece[0])
            canvas.text(left + 4, y + 8.5, cut(label, right - left - 8, 9), "ink small")
            if len(bar.pieces) == 2:
                canvas.arrow(bar.pieces[1][1] + 4, y + 5.5, 1)
                canvas.arrow(bar.pieces[0][0] + 1, y + 5.5, 1)

    def _gates(self, top: float, bottom: float) -> None:
        """A line down from every wait that something in flight is complete with."""
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

    def _has_bytes(self) -> bool:
        return all(level.bytes is not None for level in self.lane.levels)

    def _most(self) -> str:
        """The most that is in flight in what is drawn."""
        shown = [level for level in self.lane.levels if self.start <= level.start < self.stop]
        if self._has_bytes():
            return f"{max((level.bytes or 0 for level in shown), default=0):g} B/thread"
        return f"{max((level.loads for level in shown), default=0)} loads"

    def _area(self, y: float) -> None:
        """Bytes in flight, or loads where their bytes are not known."""
        has_bytes, base = self._has_bytes(), y + AREA - 1
        amounts = [
            (level.start, (level.bytes or 0) if has_bytes else level.loads) for level in self.lane.levels
        ]
        before = [amount for start, amount in amounts if start <= self.start]
        inside = [(start, amount) for start, amount in amounts if self.start < start < self.stop]
        steps = [(self.start, before[-1] if before else 0), *inside]
        most = max(amount for _, amount in steps) or 1
        left = self.x_of(self.start)
        path = [f"M{left:.1f} {base:.1f}"]
        for start, amount in steps:
            path.append(f"H{self.x_of(start - 0.5):.1f}V{base - (AREA - 6) * amount / most:.1f}")
        right = self.x_of(self.stop)
        title = f"in flight: at most {self._most()}"
        with self.canvas.told(title, focus=False):
            self.canvas.path("".join(path) + f"H{right:.1f}V{base:.1f}Z", "area line edge box")
        self.canvas.line(left, base, right, base, "line rule")


def _label_bar(bar: Bar) -> str:
    loads = sum(loading.flight.loads for loading in bar.loadings)
    sizes = [loading.flight.bytes for loading in bar.loadings]
    known = [size for size in sizes if size is not None]
    bytes_ = f" {sum(known):g} B" if len(known) == len(sizes) else ""
    later = f" +{bar.turns}" if bar.turns else ""
    unknown = " ?" if bar.loadings[0].flight.end is None else ""
    return f"{loads}{bytes_}{later}{unknown}"


def _tell_bar(bar: Bar) -> str:
    """A bar in words."""
    flight, first = bar.loadings[0].flight, bar.loadings[0]
    loads = sum(loading.flight.loads for loading in bar.loadings)
    sizes = [loading.flight.bytes for loading in bar.loadings]
    known = [size for size in sizes if size is not None]
    moved = f", {sum(known):g} bytes per thread" if len(known) == len(sizes) else ""
    lines = sorted({loading.issue.line for loading in bar.loadings})
    what = "load" if loads == 1 else "loads"
    said = f"{loads} {what} issued from line {lines[0]} on{moved}\n{first.issue.text}"
    if first.completion is None:
        return f"{said}\nwhat completes them is not told"
    how = "waited for" if flight.by_wait else "used"
    when = ""
    if flight.behind:
        when = ", behind the loop"
    elif flight.turns:
        when = f", {flight.turns} {'trip' if flight.turns == 1 else 'trips'} of the loop later"
    source = "" if first.issue.source is None else f"\n{first.issue.source}"
    return f"{said}{source}\n{how} at line {first.completion.line}{when}\n{first.completion.text}"


# -- what it all means -------------------------------------------------------------------------------------


def _legend(canvas: Canvas, scene: Scene, y: float, width: float) -> float:
    """Letters and notes below the lanes; returns where they end."""
    present = {event.step.kind for lane in scene.lanes for event in lane.events}
    said = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind in present]
    if EventKind.WAIT in present:
        said.append("line down from W: what it completes")
    if any(loading.flight.turns for lane in scene.lanes for loading in lane.loadings):
        said.append("+n: complete n trips of the loop later")
    notes = [*_untold(scene), *scene.missing]
    x = float(MARGIN)
    for piece in said:
        room = width_of(piece, 9) + 16
        if x + room > width - MARGIN:
            x, y = float(MARGIN), y + 13
        canvas.text(x, y + 8, piece, "small faint")
        x += room
    y += 14
    for note in notes:
        canvas.text(MARGIN, y + 8, cut(note, width - 2 * MARGIN, 9), "small alarm")
        y += 13
    return y


def _untold(scene: Scene) -> Iterator[str]:
    for lane in scene.lanes:
        for stretch in lane.stretches:
            if stretch.untold is not None and scene.region in (None, stretch.region):
                yield f"{lane.stage.value} {stretch.region}: in flight not told: {stretch.untold}"
