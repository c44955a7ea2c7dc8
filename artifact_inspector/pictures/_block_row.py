"""Lays out the events of a lane as a row of blocks; events that do not fit are merged and counted."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from artifact_inspector.facts.lane import Event
from artifact_inspector.model import LOADS, EventKind
from artifact_inspector.pictures._canvas import ADVANCE, FAMILY_OF, SIZE
from artifact_inspector.vocabulary.letters import LETTERS

MAX_PERIOD = 8
"""Most events of a repeating pattern."""
_MAJOR_KINDS = LOADS | {EventKind.WAIT, EventKind.MATRIX}


@dataclass(frozen=True, slots=True)
class LayoutUnit:
    """The unit of a layout: pixels or terminal columns."""

    advance: float
    """Width of a character."""
    pad: float
    """Padding of a label."""
    is_stretched: bool
    """True if blocks grow to fill the row."""

    @property
    def narrow(self) -> float:
        """Width of a block with a single letter."""
        return self.advance + (self.pad if not self.is_stretched else 3.3)

    def width_of(self, label: str) -> float:
        """Width of a block with a label."""
        return max(self.narrow, len(label) * self.advance + self.pad)


PIXELS = LayoutUnit(SIZE * ADVANCE, 6, is_stretched=True)
COLUMNS = LayoutUnit(1, 1, is_stretched=False)
"""Columns of a terminal; each block is followed by a blank."""


@dataclass(slots=True)
class Block:
    """One or more events, drawn as one box."""

    events: Sequence[Event]
    label: str
    family: str
    x: float = 0
    width: float = 0

    @property
    def start(self) -> int:
        """Index of its first instruction."""
        return self.events[0].step.start

    @property
    def stop(self) -> int:
        """Index after its last instruction."""
        return self.events[-1].step.stop


@dataclass(frozen=True, slots=True)
class BlockRepeat:
    """A run of blocks that repeats and is drawn once."""

    first: int
    """Index of the first block."""
    last: int
    times: int
    stop: int
    """Instruction index after the last copy."""


@dataclass(slots=True)
class BlockRow:
    """Blocks from left to right."""

    x: float
    width: float
    start: int
    """Instruction index at its left edge."""
    stop: int
    blocks: list[Block]
    repeats: list[BlockRepeat]
    merged: int
    """Number of events that are merged with others."""

    _anchors: tuple[list[int], list[float]] | None = None

    def x_of(self, position: float) -> float:
        """The x coordinate of an instruction; between blocks if it is not an event."""
        if self._anchors is None:
            self._anchors = self._find_anchors()
        positions, xs = self._anchors
        right = min(max(1, bisect_right(positions, position)), len(positions) - 1)
        left = right - 1
        span = positions[right] - positions[left]
        share = 0 if span <= 0 else min(1, max(0, (position - positions[left]) / span))
        return xs[left] + share * (xs[right] - xs[left])

    def _find_anchors(self) -> tuple[list[int], list[float]]:
        """Instruction indices with known x; omitted copies of a repeat map to its right edge."""
        anchors = [(self.start, self.x)]
        ends = {repeat.last: repeat.stop for repeat in self.repeats}
        for number, block in enumerate(self.blocks):
            anchors += [(block.start, block.x), (block.stop, block.x + block.width)]
            if number in ends:
                anchors.append((ends[number], block.x + block.width))
        anchors.append((self.stop, self.x + self.width))
        return [position for position, _ in anchors], [x for _, x in anchors]


def needed_width(events: Sequence[Event], measure: LayoutUnit = PIXELS) -> float:
    """The width at which all events have their labels."""
    return sum(measure.width_of(_label(event)) for event in events)


def lay_out(
    events: Sequence[Event], x: float, width: float, start: int, stop: int, measure: LayoutUnit = PIXELS
) -> BlockRow:
    """The blocks of some events in a width: with counts, with letters only, or merged."""
    blocks, repeats, merged = [_block((event,)) for event in events], list[BlockRepeat](), 0

    def fits() -> bool:
        return sum(measure.width_of(block.label) for block in blocks) <= width

    if not fits():
        blocks, repeats = _fold_repeats(events)
    if len(blocks) * measure.narrow > width:
        blocks, merged = _merge(events, int(width / (2 * measure.narrow)))
        repeats = []
    for selects in (lambda block: len(block.events) == 1, lambda block: True):
        if not fits():
            for block in filter(selects, blocks):
                block.label = block.label[:1]
    total = sum(measure.width_of(block.label) for block in blocks)
    scale = width / total if total and (measure.is_stretched or total > width) else 1
    row = BlockRow(x, width, start, stop, blocks, repeats, merged)
    for block in blocks:
        block.x, block.width = x, measure.width_of(block.label) * scale
        x += block.width
    return row


def _label(event: Event) -> str:
    return event.letter if event.step.repetitions == 1 else f"{event.letter}{event.step.repetitions}"


def _block(events: Sequence[Event]) -> Block:
    if len(events) == 1:
        (event,) = events
        return Block(events, _label(event), FAMILY_OF.get(event.step.kind, "other"))
    kinds = Counter[EventKind]()
    for event in events:
        kinds[event.step.kind] += event.step.repetitions
    main_kind = max(kinds, key=lambda kind: (kind in _MAJOR_KINDS, kinds[kind]))
    return Block(events, f"{main_kind.letter}…", FAMILY_OF.get(main_kind, "other") if len(kinds) == 1 else "other")


def _fold_repeats(events: Sequence[Event]) -> tuple[list[Block], list[BlockRepeat]]:
    """The blocks with each repeating pattern drawn once; the longest repetition first."""
    keys = [(event.step.kind, event.step.repetitions, event.step.region) for event in events]
    blocks, repeats, at = list[Block](), list[BlockRepeat](), 0
    while at < len(events):
        period, times = _find_repeat(keys, at)
        blocks += [_block((event,)) for event in events[at : at + period]]
        if times > 1:
            stop = events[at + period * times - 1].step.stop
            repeats.append(BlockRepeat(len(blocks) - period, len(blocks) - 1, times, stop))
        at += period * times
    return blocks, repeats


def _find_repeat(keys: Sequence[object], at: int) -> tuple[int, int]:
    best = (1, 1)
    for period in range(1, MAX_PERIOD + 1):
        times = 1
        pattern = keys[at : at + period]
        while len(pattern) == period and keys[at + times * period : at + (times + 1) * period] == pattern:
            times += 1
        if (times - 1) * period > (best[1] - 1) * best[0]:
            best = (period, times)
    return best


def _merge(events: Sequence[Event], max_blocks: int) -> tuple[list[Block], int]:
    """At most `max_blocks` blocks: merges events between loads, waits and matrix instructions, then all events."""
    groups: list[list[Event]] = []
    for event in events:
        if groups and event.step.kind not in _MAJOR_KINDS and groups[-1][-1].step.kind not in _MAJOR_KINDS:
            groups[-1].append(event)
        else:
            groups.append([event])
    max_blocks = max(1, max_blocks)
    if len(groups) > max_blocks:
        size = -(-len(events) // max_blocks)
        groups = [list(events[at : at + size]) for at in range(0, len(events), size)]
    return [_block(group) for group in groups], sum(len(group) for group in groups if len(group) > 1)


def describe_block(block: Block) -> str:
    """The tooltip of a block."""
    if len(block.events) > 1:
        kinds = Counter[EventKind]()
        for event in block.events:
            kinds[event.step.kind] += event.step.repetitions
        counts_text = ", ".join(f"{count} {LETTERS[kind]}" for kind, count in kinds.most_common())
        lines = [line for event in block.events for line in event.step.lines]
        return f"lines {min(lines)}–{max(lines)}: {counts_text}"
    (event,) = block.events
    step, first = event.step, event.first
    low, high = step.lines
    line_text = f"line {low}" if low == high else f"lines {low}–{high}"
    count = f"{step.repetitions} × " if step.repetitions > 1 else ""
    number = "" if step.round is None else f", round {step.round}"
    source = "" if first.source is None else f"\n{first.source}"
    return f"{count}{LETTERS[step.kind]}{number}, {line_text}\n{first.text}{source}"
