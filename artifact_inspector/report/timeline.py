"""The timeline in a terminal: events in a row, and below them every load from issue to completion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from artifact_inspector.facts.lane import LoadSpan
from artifact_inspector.facts.scene import Scene
from artifact_inspector.model import EventKind
from artifact_inspector.pictures._block_row import COLUMNS, BlockRow, lay_out, needed_width
from artifact_inspector.pictures._timeline_strip import (
    TimelineStrip,
    amounts_in_flight,
    describe_peak,
    events_in,
    group_loads,
    load_label,
    loop_around,
)
from artifact_inspector.pictures.timeline import make_strips, scene_notes
from artifact_inspector.report.layout import WrappedTexts
from artifact_inspector.vocabulary.letters import LETTERS

MAX_BARS = 8
MAX_WIDTH = 160
"""Most columns of a row, for any width of the stream."""
_STYLES = {
    "load": "cyan", "wait": "yellow bold", "shared": "green", "matrix": "red bold", "store": "dim",
    "barrier": "magenta",
}  # fmt: skip
_LEVELS = " ▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True)
class TimelineReport:
    """The timeline of a kernel, strip by strip."""

    scene: Scene

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        scene, width = self.scene, min(options.max_width, MAX_WIDTH)
        yield Text(scene.kernel, "bold", no_wrap=True, overflow="ellipsis").append(f"  {scene.target}", "dim")
        for strip in make_strips(scene):
            yield ""
            yield from _StripLines(scene, strip, width).render()
        yield ""
        present = {event.step.kind for lane in scene.lanes for event in lane.events}
        texts = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind in present]
        texts += ["│ start or end of the loop"]
        texts += ["┃ a wait"] if EventKind.WAIT in present else []
        texts += ["+n: complete n iterations later"]
        yield WrappedTexts(texts, "dim")
        for note in scene_notes(scene):
            yield Text(note, "yellow")


class _StripLines:
    """The lines of one strip."""

    def __init__(self, scene: Scene, strip: TimelineStrip, width: int) -> None:
        self.scene, self.strip, self.lane, self.width = scene, strip, strip.lane, width
        self.rows = list(self._lay_out())
        self.start, self.stop = self.rows[0].start, self.rows[-1].stop

    def _lay_out(self) -> Iterator[BlockRow]:
        cuts = self.strip.cuts
        events = [events_in(self.lane, *part_events) for part_events in cuts]
        needs = [needed_width(part_events, COLUMNS) for part_events in events]
        room = float(self.width - 2 * len(cuts) - 8)
        if sum(needs) > room and len(needs) == 3:
            loop = min(needs[1], room * 0.6)
            share = (room - loop) / (needs[0] + needs[2])
            needs = [needs[0] * share, loop, needs[2] * share]
        x = 1.0
        for (start, stop), part_events, need in zip(cuts, events, needs, strict=True):
            row = lay_out(part_events, x, min(need, room), start, stop, COLUMNS)
            used = max((block.x + len(block.label) + 1 for block in row.blocks), default=x)
            marks = sum(len(f"×{repeat.times}") + 1 for repeat in row.repeats)
            row.width = used - x
            x = used + marks + 2
            yield row

    def column(self, position: float) -> int:
        """The column of an instruction."""
        for row in self.rows:
            if position < row.stop or row is self.rows[-1]:
                return int(row.x_of(max(position, row.start)))
        raise AssertionError

    def render(self) -> Iterator[Text]:
        yield self._title()
        yield self._events()
        yield from self._bars()
        level = self._level()
        if level is not None:
            yield level

    def _title(self) -> Text:
        lane = self.lane
        subtitle = self.strip.title or self.scene.verdicts.get(lane.stage, "")
        text = Text(no_wrap=True, overflow="ellipsis").append(lane.stage.value, "bold")
        text.append(f"  {subtitle}" if subtitle else "").append(f"  {lane.instructions:,} instructions", "dim")
        merged = sum(row.merged for row in self.rows)
        return text.append(f"  {merged:,} runs merged", "yellow") if merged else text

    def _events(self) -> Text:
        text = Text(" ", no_wrap=True, overflow="ellipsis")
        for number, row in enumerate(self.rows):
            if number:
                text.append("│ ", "blue")
            ends = {repeat.last: repeat.times for repeat in row.repeats}
            for at, block in enumerate(row.blocks):
                text.append(f"{block.label} ", _STYLES.get(block.family, ""))
                if at in ends:
                    text.append(f"×{ends[at]} ", "dim")
        return text

    # -- loads in flight ---------------------------------------------------------------------------------

    def _bars(self) -> Iterator[Text]:
        rows: list[list[tuple[int, str]]] = []
        omitted = 0
        for segments in sorted(map(self._bar_segments, group_loads(self.lane, self.start, self.stop))):
            row = next(
                (row for row in rows if max(column + len(piece) for column, piece in row) < segments[0][0]), None
            )
            if row is not None:
                row += segments
            elif len(rows) < MAX_BARS:
                rows.append(list(segments))
            else:
                omitted += 1
        for row in rows:
            line, at = "", 0
            for column, segment in row:
                line += " " * (column - at) + segment
                at = max(at, column) + len(segment)
            yield Text(line[: self.width], "cyan", no_wrap=True, overflow="ellipsis")
        if omitted:
            yield Text(f" … and {omitted} more groups of loads", "dim")

    def _bar_segments(self, loadings: list[LoadSpan]) -> list[tuple[int, str]]:
        flight, label = loadings[0].flight, load_label(self.lane, loadings)
        start = self.column(min(loading.flight.start for loading in loadings))
        if flight.end is None:
            return [(start, f"├ {label}")]
        end = self.column(flight.end)
        loop = loop_around(self.lane, flight)
        dash = "╌" if flight.is_after_loop else "─"
        stop = "┫" if flight.is_by_wait else "┤"
        if loop is None:
            segments = [(start, _bar("├", label, stop, dash, max(end, start + 1) - start))]
        else:
            left, right = self.column(loop[0]), self.column(loop[1] - 0.5)
            out = max(start, end + 1)
            segments = [
                (left, _bar("▶", "", stop, dash, max(1, end - left))),
                (out, _bar("├", label, "▶", dash, max(1, right - out))),
            ]
        column, bar = segments[-1]
        beside = column + len(bar) + 1
        if label not in bar and beside + len(label) < self.width:
            segments.append((beside, label))
        return segments

    def _level(self) -> Text | None:
        amounts, _ = amounts_in_flight(self.lane, self.start, self.stop)
        peak = max(amount for _, amount in amounts)
        if not peak:
            return None
        last = self.rows[-1]
        heights = [0.0] * (int(last.x + last.width) + 1)
        for (start, amount), (stop, _) in zip(amounts, [*amounts[1:], (self.stop, 0.0)], strict=True):
            for column in range(self.column(start - 0.5), min(len(heights), self.column(stop - 0.5))):
                heights[column] = max(heights[column], amount)
        line = "".join(_LEVELS[ceil(8 * height / peak)] for height in heights)
        caption = f"≤ {describe_peak(self.lane, self.start, self.stop)} in flight"
        text = Text(no_wrap=True, overflow="ellipsis")
        if len(line) + len(caption) + 2 <= self.width:
            return text.append(line, "blue").append(f"  {caption}", "dim")
        return text.append(line, "blue").append("\n").append(f" {caption}", "dim")


def _bar(first: str, label: str, last: str, dash: str, length: int) -> str:
    """A bar of `length` + 1 columns, with its label inside if it fits."""
    room = length - 1
    inner_label = f"{label}" if len(label) + 1 <= room else ""
    return first + inner_label + dash * (room - len(inner_label)) + last
