"""The warp partitions of a warp-specialised kernel."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.overlap.partitions import PartitionFacts


def partitions_block(partitions: Sequence[PartitionFacts]) -> RenderableType | None:
    """A row for each partition; None if the kernel is not warp-specialised."""
    if not partitions:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("partition", no_wrap=True)
    for heading in ("warps", "registers", "requested", "loads", "MMA", "barriers"):
        table.add_column(heading, no_wrap=True, justify="right")
    for partition in partitions:
        numbers = (
            partition.warps,
            partition.registers,
            partition.registers_requested,
            partition.loads,
            partition.matrix,
            partition.barriers,
        )
        table.add_row(partition.name, *("–" if number is None else str(number) for number in numbers))
    return Group(Text("warp partitions", "bold"), Padding(table, (0, 0, 0, 2)))
