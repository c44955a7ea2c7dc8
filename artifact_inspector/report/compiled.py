"""What came of compiling kernels: a row for each kernel and target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

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
    place: str
    """Where it stands, as it was asked for: `FILE.py:KERNEL`, or the name of a reference kernel."""
    target: str
    """Its architecture, as `sm_80` or `gfx942`."""
    triton: str | None
    """The version that compiled."""
    config: str | None
    """The configuration of an autotuned kernel, in words."""
    types: list[str]
    """Of the arguments that are no constants, in the notation of `--signature`."""
    constants: dict[str, bool | int | float | str | list[Any] | None]
    options: dict[str, bool | int | float | str | None]
    """As Triton was given them; what is missing is at Triton's default."""
    seconds: float
    cached: bool
    """Whether the cache had it already."""
    directory: str | None
    """The entry in the cache; null when the compiler refused."""
    message: str | None
    """What the compiler said when it refused."""
    remedy: str | None


class CompiledJson(TypedDict):
    """What came of compiling kernels: `inspect-kernel compile --json`."""

    schema_version: SchemaVersion
    document: Literal["compiled"]
    compiled: list[CompiledKernelJson]


def compiled_table(rows: Sequence[CompileResult], out: Path, *, verbose: bool = False) -> RenderableType:
    """Kernels by target with the time each took, then the compiler's refusals.

    Args:
        rows: what came of each.
        out: the cache that they went to.
        verbose: print all that the compiler printed when it refused.
    """
    configured = any(row.config is not None for row in rows)
    versions = len({row.triton for row in rows}) > 1
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("kernel", no_wrap=True)
    table.add_column("target", no_wrap=True)
    if versions:
        table.add_column("triton", no_wrap=True)
    if configured:
        table.add_column("configuration")
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("entry", overflow="ellipsis")  # the one that a narrow terminal may cut
    for row in rows:
        entry = Text("refused", "magenta") if row.directory is None else Text(row.directory.name, "dim")
        entry.no_wrap = True
        cells: list[RenderableType] = [Text(row.kernel), row.target.arch]
        if versions:
            cells.append(row.triton or "")
        if configured:
            cells.append(Text(row.config or ""))
        table.add_row(*cells, "cached" if row.cached else f"{row.seconds:.1f}", entry)
    done = sum(row.directory is not None for row in rows)
    title = Text(f"{done} of {len(rows)} compiled into {out}", "bold")
    return Group(title, "", table, *_refused(rows, verbose=verbose))


def refusals(rows: Sequence[CompileResult]) -> RenderableType:
    """The compiler's refusals alone."""
    return Group(*_refused(rows, verbose=False))


def compiled_document(rows: Sequence[CompileResult]) -> CompiledJson:
    """The same as JSON."""
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "compiled",
        "compiled": [
            {
                "kernel": row.kernel,
                "place": row.place,
                "target": row.target.arch,
                "triton": row.triton,
                "config": row.config,
                "types": list(row.types),
                "constants": dict(row.constants),
                "options": dict(row.options),
                "seconds": round(row.seconds, 3),
                "cached": row.cached,
                "directory": None if row.directory is None else str(row.directory),
                "message": row.message,
                "remedy": row.remedy,
            }
            for row in rows
        ],
    }


def _refused(rows: Sequence[CompileResult], *, verbose: bool) -> list[RenderableType]:
    """Each refusal once, with all the targets that it is for."""
    alike: dict[tuple[str, str, str | None, str | None], list[CompileResult]] = {}
    for row in rows:
        if row.directory is None:
            message = (row.message or "no reason was given").replace(row.target.arch, "\0")
            alike.setdefault((row.kernel, message, row.remedy, row.triton), []).append(row)
    found: list[RenderableType] = []
    several = len({row.triton for row in rows}) > 1
    for (kernel, _, remedy, triton), same in alike.items():
        targets = ", ".join(dict.fromkeys(row.target.arch for row in same))
        by = f" by Triton {triton}" if several and triton else ""
        found.append(Text(f"\n{kernel} for {targets} was refused{by}:", "bold red"))
        found.append(Padding(Text(same[0].message or "no reason was given"), (0, 0, 0, 2)))
        if remedy:
            found.append(Padding(Text(remedy, "dim"), (0, 0, 0, 2)))
        if verbose and same[0].details:
            found.append(Padding(Text(same[0].details.rstrip()), (1, 0, 0, 2)))
    return found
