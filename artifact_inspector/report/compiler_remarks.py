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
    for remark in remarks:
        text = Text(remark.message + "".join(f"; {note}" for note in remark.notes))
        text.append(f"  {_describe_location(remark)}".rstrip(), "dim")
        style = "" if remark.kind is RemarkKind.REMARK else "yellow"
        grid.add_row(Text(remark.code or f"{remark.tool} {remark.kind}", style), text)
    return Group(Text("compiler remarks", "bold"), Padding(grid, (0, 0, 0, 2)))


def _describe_location(remark: CompilerRemark) -> str:
    fragments = [] if remark.source is None else [remark.source]
    fragments += [f"called at {caller}" for caller in remark.called_from]
    fragments += [] if remark.ptx_line is None else [f"ptx line {remark.ptx_line}"]
    return " · ".join([*fragments, *([f"×{remark.count}"] if remark.count > 1 else [])])
