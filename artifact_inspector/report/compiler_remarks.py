"""Remarks and warnings of the compilers about a kernel, by source line."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.model import RemarkKind


def remarks_block(remarks: Sequence[CompilerRemark] | None) -> RenderableType | None:
    """A row for each remark; None if there is none, or if the compiler output was not recorded."""
    if not remarks:
        return None
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for said in remarks:
        text = Text(said.message + "".join(f"; {note}" for note in said.notes))
        text.append(f"  {_place(said)}".rstrip(), "dim")
        style = "" if said.kind is RemarkKind.REMARK else "yellow"
        grid.add_row(Text(said.code or f"{said.tool} {said.kind}", style), text)
    return Group(Text("compiler remarks", "bold"), Padding(grid, (0, 0, 0, 2)))


def _place(said: CompilerRemark) -> str:
    parts = [] if said.source is None else [said.source]
    parts += [f"called at {place}" for place in said.called_from]
    parts += [] if said.ptx_line is None else [f"ptx line {said.ptx_line}"]
    return " · ".join([*parts, *([f"×{said.count}"] if said.count > 1 else [])])
