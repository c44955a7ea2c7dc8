"""The shared-memory bill as a table with a map."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.shared_memory import Allocation, Bill
from artifact_inspector.report.words import span

__all__ = ["bill_block"]

MAP_WIDTH = 32
_BUFFERS = "█▒"
"""Neighbouring buffers of one allocation are told apart by shade."""


def bill_block(bill: Bill) -> RenderableType | None:
    """Every allocation with its place; None for a kernel without shared memory."""
    if not bill.entries and not bill.declared:
        return None
    head = Text("shared memory", "bold")
    if bill.declared is not None:
        head.append(f"  {bill.declared} B per block", "dim")
    if bill.accounted:
        head.append(", all accounted for by TTGIR", "dim")
    body: list[RenderableType] = []
    if bill.entries:
        body.append(_table(bill))
    if bill.note:
        body.append(Text(bill.note, "yellow"))
    return Group(head, Padding(Group(*body), (0, 0, 0, 2)))


def _table(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    placed = bill.peak if all(entry.offset is not None for entry in bill.entries) else None
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("buffers", justify="right", no_wrap=True)
    table.add_column("for", overflow="fold")
    table.add_column("allocated at", overflow="fold")
    table.add_column("ttgir lines", justify="right", no_wrap=True)
    if placed:
        table.add_column(f"0 … {placed}", no_wrap=True)
    for entry in bill.entries:
        cells: list[RenderableType] = [
            "?" if entry.bytes is None else str(entry.bytes),
            str(entry.buffers),
            f"{entry.name}: {entry.purpose}" if entry.name else entry.purpose,
            entry.source or f"line {entry.line}",
            Text(span(entry.first, entry.last), "dim"),
        ]
        if placed:
            cells.append(Text(_bar(entry, placed)))
        table.add_row(*cells)
    return table


def _bar(entry: Allocation, whole: int) -> str:
    """Where an allocation lies, one shade after the other for its buffers."""
    assert entry.offset is not None
    assert entry.bytes is not None
    cell = whole / MAP_WIDTH
    first = int(entry.offset / cell)
    stop = max(first + 1, round((entry.offset + entry.bytes) / cell))
    shades = [_BUFFERS[place * entry.buffers // (stop - first) % 2] for place in range(stop - first)]
    return "·" * first + "".join(shades) + "·" * (MAP_WIDTH - stop)
