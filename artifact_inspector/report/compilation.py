"""The kernels that were compiled, or captured from a program: a row for each kernel and target, failures and notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.compiling import CompileResult, ProgramRun
from artifact_inspector.compiling.ask.capturing import CapturedKernel, merge_notes
from artifact_inspector.hardware.targets import Target
from artifact_inspector.report.layout import plain_table, text_column


def compiled_table(rows: Sequence[CompileResult], out: Path, *, verbose: bool = False) -> RenderableType:
    """Kernels by target with their compile times, then the compiler's errors.

    Args:
        rows: the results.
        out: the cache directory they were written to.
        verbose: print the full output of the compiler on errors.
    """
    configured = any(row.config is not None for row in rows)
    versions = len({row.triton for row in rows}) > 1
    table = plain_table(text_column("kernel"), text_column("target"))
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


HASH_CHARACTERS = 6


def captured_table(runs: Sequence[ProgramRun], out: Path) -> RenderableType:
    """Kernels by target with their launches, then compiler errors, resource limits and notes."""
    kernels = [kernel for run in runs for kernel in run.kernels]
    targets = ", ".join(run.target.arch for run in runs)
    if not kernels:
        return Group(Text(f"No kernel captured for {targets}", "bold"), *_notes(runs))
    table = plain_table()
    for heading, right in (
        ("kernel", False), ("hash", False), ("target", False), ("warps", True), ("stages", True),
        ("constants", False), ("launches", True), ("grid", False), ("launched at", False),
    ):  # fmt: skip
        folds = heading in ("constants", "launched at")  # what distinguishes variants is never cut
        table.add_column(heading, justify="right" if right else "left", no_wrap=not folds, overflow="fold")
    constants = [f"{name}={value}" for kernel in kernels for name, value in kernel.constexprs.items()]
    table.columns[5].min_width = min(max(map(len, constants), default=0), MAX_CONSTANT_WIDTH)
    table.columns[-1].min_width = MIN_LOCATION_WIDTH
    for kernel in kernels:
        table.add_row(*_captured_row(kernel))
    captured = sum(kernel.directory is not None for kernel in kernels)
    renderables: list[RenderableType] = [
        Text(f"{captured} of {len(kernels)} kernels captured for {targets} into {out}", "bold"), "", table
    ]  # fmt: skip
    names_by_error: dict[str, list[str]] = {}
    for kernel in kernels:
        if kernel.message is not None:
            names_by_error.setdefault(kernel.message, []).append(f"{kernel.name} for {kernel.target}")
    for message, names in names_by_error.items():
        error_heading = f"{', '.join(dict.fromkeys(names))} failed to compile:"
        renderables.append(Text(f"\n{error_heading}", "bold red"))
        renderables.append(Padding(Text(message), (0, 0, 0, 2)))
    shortages = list(dict.fromkeys(f"{k.name} for {k.target} {k.shortage}" for k in kernels if k.shortage))
    if shortages:
        renderables.append(Text("\nCompiled, but too large to launch:", "bold"))
        renderables.extend(Padding(Text(line), (0, 0, 0, 2)) for line in shortages)
    return Group(*renderables, *_notes(runs))


def failures(runs: Sequence[ProgramRun]) -> RenderableType:
    """Failures of the program, with its output if it was not printed yet."""
    renderables: list[RenderableType] = []
    for run in runs:
        exit_message = f"The program exited with status {run.status} for {run.target}."
        if run.status:
            if run.output.strip():
                renderables.append(Text(run.output.rstrip()))
            renderables.append(Text(exit_message, "bold red"))
        if run.problem is not None and (run is runs[0] or run.problem != runs[0].problem):
            renderables.append(Text(run.problem[0], "bold"))
            if run.problem[1] is not None:
                renderables.append(Text(run.problem[1]))
    return Group(*renderables)


MAX_CONSTANT_WIDTH = 24
"""Most characters of a constant that stay on one line."""
MIN_LOCATION_WIDTH = 16


def _captured_row(kernel: CapturedKernel) -> list[RenderableType]:
    options = kernel.options
    constants = " ".join(f"{name}={value}" for name, value in kernel.constexprs.items())
    launch_count = sum(launch.count for launch in kernel.launches)
    grids = list(dict.fromkeys("×".join(map(str, _trim_grid(launch.grid))) for launch in kernel.launches))
    locations = list(dict.fromkeys(launch.location for launch in kernel.launches)) or [kernel.compiled_for.line]
    failed = kernel.hash is None
    return [
        Text(kernel.name),
        Text("failed", "magenta") if failed else Text((kernel.hash or "")[:HASH_CHARACTERS], "dim"),
        Text(kernel.target.arch),
        Text(str(options.get("num_warps", ""))),
        Text(str(options.get("num_stages", ""))),
        Text(constants),
        Text(str(launch_count) if launch_count else "tuning" if kernel.benchmark_launches else "none"),
        Text(_first_and_count(grids)),
        Text(_first_and_count(locations), "dim"),
    ]


def _trim_grid(grid: Sequence[int]) -> list[int]:
    sizes = list(grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return sizes


def _first_and_count(texts: Sequence[str]) -> str:
    return "" if not texts else texts[0] if len(texts) == 1 else f"{texts[0]} +{len(texts) - 1}"


def _notes(runs: Sequence[ProgramRun]) -> list[RenderableType]:
    locations_by_note: dict[tuple[str, tuple[Target, ...]], list[str]] = {}
    for note in merge_notes(note for run in runs for note in run.notes):
        locations = locations_by_note.setdefault((note.text, note.targets), [])
        locations.extend([] if note.location is None else [note.location])
    if not locations_by_note:
        return []
    grid = Table.grid(padding=(0, 2, 0, 0))
    for (text, targets), locations in locations_by_note.items():
        target_names = "" if len(targets) == len(runs) else f"{', '.join(map(str, targets))}: "
        grid.add_row(Text("note", "dim"), Text(f"{target_names}{text} {', '.join(locations)}".rstrip()))
    return [Text(""), grid]
