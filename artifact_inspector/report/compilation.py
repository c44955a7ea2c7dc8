"""The results of compiling kernels: a row for each kernel and target."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.compiling import CompileResult


def compiled_table(rows: Sequence[CompileResult], out: Path, *, verbose: bool = False) -> RenderableType:
    """Kernels by target with their compile times, then the compiler's errors.

    Args:
        rows: the results.
        out: the cache directory they were written to.
        verbose: print the full output of the compiler on errors.
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
    table.add_column("entry", overflow="ellipsis")  # the only column that a narrow terminal cuts
    for row in rows:
        entry = Text("failed", "magenta") if row.directory is None else Text(row.directory.name, "dim")
        entry.no_wrap = True
        cells: list[RenderableType] = [Text(row.kernel), row.target.arch]
        if versions:
            cells.append(row.triton or "")
        if configured:
            cells.append(Text(row.config or ""))
        table.add_row(*cells, "cached" if row.is_cached else f"{row.seconds:.1f}", entry)
    compiled_count = sum(row.directory is not None for row in rows)
    title = Text(f"{compiled_count} of {len(rows)} compiled into {out}", "bold")
    return Group(title, "", table, *_error_blocks(rows, verbose=verbose))


def compile_errors(rows: Sequence[CompileResult]) -> RenderableType:
    """The compiler's errors only."""
    return Group(*_error_blocks(rows, verbose=False))


def _error_blocks(rows: Sequence[CompileResult], *, verbose: bool) -> list[RenderableType]:
    """Each compiler error once, with its targets."""
    results_by_error: dict[tuple[str, str, str | None, str | None], list[CompileResult]] = {}
    for row in rows:
        if row.directory is None:
            message = (row.message or "no reason given").replace(row.target.arch, "\0")
            results_by_error.setdefault((row.kernel, message, row.remedy, row.triton), []).append(row)
    blocks: list[RenderableType] = []
    has_versions = len({row.triton for row in rows}) > 1
    for (kernel, _, remedy, triton), results in results_by_error.items():
        targets = ", ".join(dict.fromkeys(row.target.arch for row in results))
        by = f" with Triton {triton}" if has_versions and triton else ""
        blocks.append(Text(f"\n{kernel} failed to compile for {targets}{by}:", "bold red"))
        blocks.append(Padding(Text(results[0].message or "no reason given"), (0, 0, 0, 2)))
        if remedy:
            blocks.append(Padding(Text(remedy, "dim"), (0, 0, 0, 2)))
        if verbose and results[0].details and results[0].details.strip() != (results[0].message or "").strip():
            blocks.append(Padding(Text(results[0].details.rstrip()), (1, 0, 0, 2)))
    return blocks
