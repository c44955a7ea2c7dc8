"""Occupancy as bars, and shared memory as a map of its allocations over the lines of TTGIR at which they are live."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifact_inspector.errors import UsageError
from artifact_inspector.pictures._canvas import NUMBERED_FILLS, Canvas, cut_text

if TYPE_CHECKING:
    from artifact_inspector.analysis.shared.shared_memory_usage import Allocation
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, BARS_LEFT, BAR, PITCH = 14, 130, 16, 24
LABEL_WIDTH = 150
"""Pixels right of the bars, for their labels."""
MAP_LEFT, TOP, TALL, ROW = 70, 52, 260, 16
MAX_ALLOCATIONS = 40
"""Most allocations that are drawn."""


def occupancy_bars(kernel: KernelFacts, *, width: float = 640, style: bool = True) -> str:
    """The bars of a kernel as SVG.

    Raises:
        UsageError: its resources or its target are unknown.
    """
    occupancy, name = kernel.occupancy, kernel.artifact.display_name
    if occupancy is None or not occupancy.blocks_by_resource:
        raise UsageError(f"The occupancy limits of {name} are unknown.")
    canvas = Canvas()
    canvas.text(MARGIN, 20, cut_text(f"{name} · occupancy", width - 2 * MARGIN, 13), "head")
    if occupancy.blocks is None:
        summary = f"unknown (needs {', '.join(occupancy.missing)})"
    else:
        share = "" if occupancy.ratio is None else f" ({occupancy.ratio:.0%})"
        blocks = "block" if occupancy.blocks == 1 else "blocks"
        summary = (
            f"{occupancy.blocks} {blocks}, {occupancy.warps} of {occupancy.max_warps} warps per {occupancy.unit}{share}"
        )
    canvas.text(MARGIN, 38, cut_text(summary, width - 2 * MARGIN, 11), "accent")
    max_blocks = max(1, *occupancy.blocks_by_resource.values())
    full, y = width - BARS_LEFT - LABEL_WIDTH, 52.0
    for resource, blocks_allowed in sorted(occupancy.blocks_by_resource.items(), key=lambda row: row[1]):
        is_limit = resource in occupancy.limited_by
        length = full * blocks_allowed / max_blocks
        label = f"{blocks_allowed}" + (" ← limit" if is_limit else "")
        with canvas.group(f"{resource}: {blocks_allowed} blocks{', the limit' if is_limit else ''}"):
            canvas.text(BARS_LEFT - 8, y + 12, resource, "bold" if is_limit else "", "end")
            canvas.rect(BARS_LEFT, y, max(2, length), BAR, f"box edge {'wait' if is_limit else 'other'}", round_=2)
            canvas.text(BARS_LEFT + length + 6, y + 12, label, "bold alarm" if is_limit else "")
        if occupancy.blocks:
            for block in range(1, min(blocks_allowed, 64)):
                x = BARS_LEFT + full * block / max_blocks
                canvas.line(x, y, x, y + BAR, "line edge dotted")
        y += PITCH
    canvas.text(MARGIN, y + 10, f"blocks per {occupancy.unit} that each resource allows by itself", "small faint")
    return canvas.render(width, y + 18, f"Occupancy of {name}", summary, style=style)


def shared_map(kernel: KernelFacts, *, width: float = 960, style: bool = True) -> str:
    """The map of a kernel as SVG.

    Raises:
        UsageError: it has no TTGIR or no shared memory.
    """
    bill, name = kernel.bill, kernel.artifact.display_name
    if bill is None or not bill.entries:
        raise UsageError(f"{name} has no shared-memory allocation in TTGIR.")
    entries = bill.entries[:MAX_ALLOCATIONS]
    canvas = Canvas()
    declared = "" if bill.declared is None else f", {bill.declared:,} bytes per block"
    canvas.text(MARGIN, 20, cut_text(f"{name} · shared memory{declared}", width - 2 * MARGIN, 13), "head")
    placed = [allocation for allocation in entries if allocation.offset is not None and allocation.bytes is not None]
    bottom = float(TOP - 12)
    if placed and bill.peak:
        bottom = _draw_chart(canvas, entries, bill.peak, width)
    explanation = "box: height = bytes, width = lines of TTGIR at which the allocation is live"
    notes = [explanation] if placed else ["offsets unknown: the allocations do not add up to the declared size"]
    notes += [bill.note] if bill.note else []
    notes += (
        [f"… and {len(bill.entries) - MAX_ALLOCATIONS} more allocations"] if len(bill.entries) > MAX_ALLOCATIONS else []
    )
    y = bottom + 22
    for number, entry in enumerate(entries, 1):
        canvas.rect(MARGIN, y - 10, 20, 12, f"box edge {NUMBERED_FILLS[(number - 1) % len(NUMBERED_FILLS)]}", round_=2)
        canvas.text(MARGIN + 10, y, str(number), "ink small", "middle")
        canvas.text(MARGIN + 28, y, cut_text(_describe(entry), width - 2 * MARGIN - 28, 10), "")
        y += ROW
    y = canvas.notes(notes, MARGIN, y + 4, width) - 4
    summary = "; ".join(_describe(entry) for entry in entries)
    return canvas.render(width, y + 6, f"Shared memory of {name}", summary, style=style)


def _draw_chart(canvas: Canvas, entries: tuple[Allocation, ...], peak: int, width: float) -> float:
    """Draw boxes over lines and bytes; returns the bottom of the chart."""
    first = min(entry.first for entry in entries)
    last = max(entry.last for entry in entries) + 1
    right = width - MARGIN

    def x_of(line: float) -> float:
        return MAP_LEFT + (right - MAP_LEFT) * (line - first) / max(1, last - first)

    canvas.line(MAP_LEFT, TOP, MAP_LEFT, TOP + TALL, "line rule")
    canvas.line(MAP_LEFT, TOP + TALL, right, TOP + TALL, "line rule")
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = TOP + TALL * share
        canvas.line(MAP_LEFT - 4, y, MAP_LEFT, y, "line rule")
        canvas.text(MAP_LEFT - 8, y + 3, f"{int(peak * share):,}", "small faint", "end")
    canvas.text(MAP_LEFT, TOP + TALL + 12, f"line {first}", "small faint")
    canvas.text(right, TOP + TALL + 12, f"line {last - 1}", "small faint", "end")
    canvas.text(MAP_LEFT - 8, TOP - 10, "bytes", "small faint", "end")
    label_positions: list[tuple[float, float]] = []
    for number, entry in enumerate(entries, 1):
        if entry.offset is None or entry.bytes is None:
            continue
        x, y = x_of(entry.first), TOP + TALL * entry.offset / peak
        wide, tall = max(6, x_of(entry.last + 1) - x), max(4, TALL * entry.bytes / peak)
        y = min(y, TOP + TALL - tall)
        with canvas.group(f"{number}. {_describe(entry)}", location=f"ttgir:{entry.line}"):
            family = NUMBERED_FILLS[(number - 1) % len(NUMBERED_FILLS)]
            canvas.rect(x, y, wide, tall, f"box edge {family}")
            for buffer_index in range(1, min(entry.buffers, 64)):
                at = y + tall * buffer_index / entry.buffers
                canvas.line(x, at, x + wide, at, "line edge dotted")
            if tall >= 11 and wide >= 12:
                canvas.text(x + wide / 2, y + tall / 2 + 4, str(number), "ink bold", "middle")
            else:  # too small for a number, which is drawn next to it
                label_position = _find_free_position(
                    label_positions, min(x + wide + 3, right - 12), max(y + 3, TOP + 9)
                )
                canvas.text(label_position[0], label_position[1], str(number), "small")
    return TOP + TALL + 16.0


def _find_free_position(label_positions: list[tuple[float, float]], x: float, y: float) -> tuple[float, float]:
    """The first position at or above a given one without a label."""
    while any(abs(x - left) < 13 and abs(y - top) < 9 for left, top in label_positions):
        y -= 9
    label_positions.append((x, y))
    return x, y


def _describe(entry: Allocation) -> str:
    size = "size unknown" if entry.bytes is None else f"{entry.bytes:,} B"
    buffer_text = f", {entry.buffers} buffers" if entry.buffers > 1 else ""
    name = f"{entry.name}: " if entry.name else ""
    source = f", {entry.source}" if entry.source else ""
    at = "" if entry.offset is None else f" at {entry.offset:,}"
    return f"{name}{entry.purpose}, {size}{buffer_text}{at}, live at lines {entry.first}–{entry.last}{source}"
