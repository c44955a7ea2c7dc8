"""What came of compiling kernels: a row for each kernel and target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypedDict

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.compiling import CompileResult
from artifact_inspector.report.json import SCHEMA_VERSION, SchemaVersion

__all__ = ["CompiledJson", "compiled_document", "compiled_table", "refusals"]


class CompiledKernelJson(TypedDict):
    """What became of one kernel for one target."""

    kernel: str
    target: str
    """Its architecture, as `sm_80` or `gfx942`."""
    seconds: float
    directory: str | None
    """The entry in the cache; null when the compiler refused."""
    message: str | None
    """What the compiler said when it refused."""


class CompiledJson(TypedDict):
    """What came of compiling kernels: `inspect-kernel compile --json`."""

    schema_version: SchemaVersion
    document: Literal["compiled"]
    compiled: list[CompiledKernelJson]


def compiled_table(rows: Sequence[CompileResult], out: Path) -> RenderableType:
    """Kernels by target with the time each took, then the compiler's refusals."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, right in (("kernel", False), ("target", False), ("seconds", True), ("entry", False)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        entry = Text("refused", "magenta") if row.directory is None else Text(row.directory.name, "dim")
        table.add_row(Text(row.kernel), row.target.arch, f"{row.seconds:.1f}", entry)
    done = sum(row.directory is not None for row in rows)
    return Group(Text(f"{done} of {len(rows)} compiled into {out}", "bold"), "", table, *_refused(rows))


def refusals(rows: Sequence[CompileResult]) -> RenderableType:
    """The compiler's refusals alone."""
    return Group(*_refused(rows))


def compiled_document(rows: Sequence[CompileResult]) -> CompiledJson:
    """The same as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "compiled",
        "compiled": [
            {
                "kernel": row.kernel,
                "target": row.target.arch,
                "seconds": round(row.seconds, 3),
                "directory": None if row.directory is None else str(row.directory),
                "message": row.message,
            }
            for row in rows
        ],
    }


def _refused(rows: Sequence[CompileResult]) -> list[RenderableType]:
    found: list[RenderableType] = []
    for row in rows:
        if row.directory is None:
            found.append(Text(f"\n{row.kernel} for {row.target.arch} was refused:", "bold red"))
            found.append(Padding(Text(row.message or "no reason was given"), (0, 0, 0, 2)))
    return found
