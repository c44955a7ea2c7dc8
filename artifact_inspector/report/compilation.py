"""The kernels that were compiled, or captured from a program: a row for each kernel and target, failures and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.compiling import CompileResult, ProgramRun
from artifact_inspector.compiling.ask.capturing import CapturedKernel, merge_notes
from artifact_inspector.hardware.targets import Target
from artifact_inspector.report.kernel_rows import shorten
from artifact_inspector.report.layout import plain_table, text_column


def compiled_table(rows: Sequence[CompileResult], out: Path, *, verbose: bool = False) -> RenderableType:
    """Kernels by target with their compile times, then the compiler's errors.

    Args:
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


def captured_table(runs: Sequence[ProgramRun], out: Path) -> RenderableType:
    """Kernels by target with their launches, then compiler errors, resource limits and notes."""
    kernels = [kernel for run in runs for kernel in run.kernels]
    targets = ", ".join(run.target.arch for run in runs)
    if not kernels:
        return Group(Text(f"No kernel captured for {targets}", "bold"), *_notes(runs))
    rows = [*_count_tuned(kernels)]
    optional = {"target": len(runs) > 1, "tuned": any(tuned for _, tuned in rows)}
    headings = [heading for heading in _HEADINGS if optional.get(heading, True)]
    table = plain_table()
    for heading in headings:
        folds = heading in ("kernel", "variant", "launched at")  # what distinguishes variants is never cut
        is_number = heading in ("launches", "tuned")
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=not folds, overflow="fold")
    for at, width in ((headings.index("variant"), MIN_VARIANT_WIDTH), (0, MIN_NAME_WIDTH), (-1, MIN_LOCATION_WIDTH)):
        table.columns[at].min_width = width
    varying = _find_varying_constants(kernels)
    for kernel, tuned in rows:
        cells = _captured_row(kernel, varying.get(kernel.name, ()), tuned)
        table.add_row(*(cell for heading, cell in zip(_HEADINGS, cells, strict=True) if heading in headings))
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


_HEADINGS = ("kernel", "hash", "target", "variant", "launches", "tuned", "grid", "launched at")
HASH_CHARACTERS = 6
MIN_NAME_WIDTH, MAX_NAME_WIDTH = 16, 34
MIN_VARIANT_WIDTH = 12
MIN_LOCATION_WIDTH = 16


def _count_tuned(kernels: Sequence[CapturedKernel]) -> Iterator[tuple[CapturedKernel, int]]:
    """Each kernel with the number of configurations that its autotuner did not choose, which have no row."""
    launched = {(kernel.name, kernel.target) for kernel in kernels if kernel.launches}
    tuned = Counter((kernel.name, kernel.target) for kernel in kernels if kernel.hash and not kernel.launches)
    for kernel in kernels:
        key = kernel.name, kernel.target
        if kernel.launches or not kernel.hash or key not in launched:
            yield kernel, tuned.pop(key, 0) if kernel.launches else 0


def _find_varying_constants(kernels: Sequence[CapturedKernel]) -> Mapping[str, Collection[str]]:
    """Kernel → its constants that differ between its variants."""
    values: dict[str, dict[str, set[str]]] = {}
    for kernel in kernels:
        for name, value in kernel.constexprs.items():
            values.setdefault(kernel.name, {}).setdefault(name, set()).add(value)
    return {kernel: [name for name, own in names.items() if len(own) > 1] for kernel, names in values.items()}


def _captured_row(kernel: CapturedKernel, varying: Collection[str], tuned: int) -> list[RenderableType]:
    options = (("w", "num_warps"), ("s", "num_stages"))
    variant = [f"{letter}{kernel.options[name]}" for letter, name in options if name in kernel.options]
    constants = [(name, value) for name, value in kernel.constexprs.items() if name in varying]
    variant += [name if value == "True" else f"{name}={value}" for name, value in constants if value != "False"]
    launch_count = sum(launch.count for launch in kernel.launches)
    grids = list(dict.fromkeys("×".join(map(str, _trim_grid(launch.grid))) for launch in kernel.launches))
    callers = list(dict.fromkeys(launch.caller for launch in kernel.launches)) or [kernel.compiled_for.caller]
    return [
        Text(shorten(kernel.name, MAX_NAME_WIDTH)),
        Text("failed", "magenta") if kernel.hash is None else Text(kernel.hash[:HASH_CHARACTERS], "dim"),
        Text(kernel.target.arch),
        Text(" ".join(variant)),
        Text(str(launch_count) if launch_count else "tuning" if kernel.benchmark_launches else "none"),
        Text(f"+{tuned}" if tuned else ""),
        Text(_first_and_count(grids)),
        Text(_first_and_count(callers), "dim"),
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
