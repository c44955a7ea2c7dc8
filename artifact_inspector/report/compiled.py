"""What came of compiling kernels: a row for each kernel and target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.report.json import SCHEMA_VERSION
from artifact_inspector.targets import Target

__all__ = ["Compiled", "compiled_document", "compiled_table", "refusals"]


class Compiled(Protocol):
    """One kernel compiled for one target, or refused."""

    @property
    def kernel(self) -> str:
        """Name of the reference kernel."""

    @property
    def target(self) -> Target:
        """What it was compiled for."""

    @property
    def seconds(self) -> float:
        """Wall time."""

    @property
    def directory(self) -> Path | None:
        """The entry in the cache; None where the compiler refused."""

    @property
    def message(self) -> str | None:
        """What the compiler said to that."""


def compiled_table(rows: Sequence[Compiled], out: Path) -> RenderableType:
    """Kernels by target with the time each took, then the compiler's refusals."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, right in (("kernel", False), ("target", False), ("seconds", True), ("entry", False)):
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for row in rows:
        entry = Text("refused", "magenta") if row.directory is None else Text(row.directory.name, "dim")
        table.add_row(Text(row.kernel), row.target.arch, f"{row.seconds:.1f}", entry)
    done = sum(row.directory is not None for row in rows)
    return Group(Text(f"{done} of {len(rows)} compiled into {out}", "bold"), "", table, *_refused(rows))


def refusals(rows: Sequence[Compiled]) -> RenderableType:
    """The compiler's refusals alone."""
    return Group(*_refused(rows))


def compiled_document(rows: Sequence[Compiled]) -> dict[str, Any]:
    """The same as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
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


def _refused(rows: Sequence[Compiled]) -> list[RenderableType]:
    found: list[RenderableType] = []
    for row in rows:
        if row.directory is None:
            found.append(Text(f"\n{row.kernel} for {row.target.arch} was refused:", "bold red"))
            found.append(Padding(Text(row.message or "no reason was given"), (0, 0, 0, 2)))
    return found
