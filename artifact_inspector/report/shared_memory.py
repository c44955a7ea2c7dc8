"""The allocations of shared memory as a table with a map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.shared.shared_memory_usage import Allocation, SharedMemoryUsage
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.report.layout import MemoryStrip
from artifact_inspector.report.phrases import span

MAP_WIDTH = 32


def bill_block(kernel: KernelFacts) -> RenderableType | None:
    """Every allocation with its offset; None for a kernel without TTGIR or without shared memory."""
    bill = kernel.bill
    if bill is None or (not bill.entries and not bill.declared):
        return None
    head = Text("shared memory", "bold")
    if bill.declared is not None:
        head.append(f"  {bill.declared} B per block", "dim")
    if bill.is_accounted:
        head.append(", all allocated in TTGIR", "dim")
    body: list[RenderableType] = [Text("; ".join(_describe_limits(kernel)), "dim")]
    if bill.entries:
        body.append(_Entries(bill))
    if bill.note:
        body.append(Text(bill.note, "yellow"))
    return Group(head, Padding(Group(*body), (0, 0, 0, 2)))


def _describe_limits(kernel: KernelFacts) -> Iterator[str]:
    """Static shared memory, and the limits of the target."""
    static, target = kernel.resources.static_shared, kernel.artifact.target
    if static.value is not None:
        yield f"{static.value} B static ({static.source}), the rest dynamic"
    if target is None or target.limits.shared_per_block is None:
        return
    opt_in_limit, default_limit = target.limits.shared_per_block, target.limits.shared_per_block_static
    without = (
        f" ({default_limit} B without opt-in)" if default_limit is not None and default_limit != opt_in_limit else ""
    )
    yield f"limit per block on {target}: {opt_in_limit} B{without}"


@dataclass(frozen=True, slots=True)
class _Entries:
    """A row for each allocation, with the map if it fits."""

    bill: SharedMemoryUsage

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        bill = self.bill
        placed = bill.peak if all(entry.offset is not None for entry in bill.entries) else None
        width = min(MAP_WIDTH, options.max_width - 80) if placed else 0
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for heading in ("bytes", "buffers"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("for", overflow="fold")
        table.add_column("allocated at", no_wrap=True)
        table.add_column("ttgir lines", justify="right", no_wrap=True)
        if width >= 8:
            table.add_column(f"0 … {placed}", no_wrap=True)
        for entry in bill.entries:
            cells: list[RenderableType] = [
                "?" if entry.bytes is None else str(entry.bytes),
                str(entry.buffers),
                _purpose(entry),
                entry.source or f"line {entry.line}",
                Text(span(entry.first, entry.last), "dim"),
            ]
            if width >= 8 and placed:
                assert entry.offset is not None
                assert entry.bytes is not None
                cells.append(MemoryStrip(entry.offset, entry.bytes, entry.buffers, placed, width))
            table.add_row(*cells)
        yield table


def _purpose(entry: Allocation) -> str:
    """The purpose of an allocation, without the file name if the allocation is in the same file."""
    file = "" if entry.source is None else entry.source.file
    purpose = entry.purpose.replace(f"{file}:", ":") if file else entry.purpose
    return f"{entry.name}: {purpose}" if entry.name else purpose
