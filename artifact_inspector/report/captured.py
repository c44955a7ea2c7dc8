"""The kernels captured from a program: a row for each kernel and target, failures and notes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.compiling import ProgramRun
from artifact_inspector.compiling.ask.captured import CapturedKernel, merge_notes
from artifact_inspector.hardware.targets import Target

HASH_CHARACTERS = 6


def captured_table(runs: Sequence[ProgramRun], out: Path) -> RenderableType:
    """Kernels by target with their launches, then compiler errors, resource limits and notes."""
    kernels = [kernel for run in runs for kernel in run.kernels]
    targets = ", ".join(run.target.arch for run in runs)
    if not kernels:
        return Group(Text(f"No kernel captured for {targets}", "bold"), *_notes(runs))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for heading, right in (
        ("kernel", False), ("hash", False), ("target", False), ("warps", True), ("stages", True),
        ("constants", False), ("launches", True), ("grid", False), ("launched at", False),
    ):  # fmt: skip
        folds = heading in ("constants", "launched at")  # what distinguishes variants is never cut
        table.add_column(heading, justify="right" if right else "left", no_wrap=not folds, overflow="fold")
    words = [f"{name}={value}" for kernel in kernels for name, value in kernel.constexprs.items()]
    table.columns[5].min_width = min(max(map(len, words), default=0), MOST_OF_A_CONSTANT)
    table.columns[-1].min_width = LEAST_OF_A_PLACE
    for kernel in kernels:
        table.add_row(*_row(kernel))
    done = sum(kernel.directory is not None for kernel in kernels)
    parts: list[RenderableType] = [
        Text(f"{done} of {len(kernels)} kernels captured for {targets} into {out}", "bold"), "", table
    ]  # fmt: skip
    refused: dict[str, list[str]] = {}
    for kernel in kernels:
        if kernel.message is not None:
            refused.setdefault(kernel.message, []).append(f"{kernel.name} for {kernel.target}")
    for message, names in refused.items():
        whose = f"{', '.join(dict.fromkeys(names))} failed to compile:"
        parts.append(Text(f"\n{whose}", "bold red"))
        parts.append(Padding(Text(message), (0, 0, 0, 2)))
    short = list(dict.fromkeys(f"{k.name} for {k.target} {k.shortage}" for k in kernels if k.shortage))
    if short:
        parts.append(Text("\nCompiled, but too large to launch:", "bold"))
        parts.extend(Padding(Text(line), (0, 0, 0, 2)) for line in short)
    return Group(*parts, *_notes(runs))


def failures(runs: Sequence[ProgramRun]) -> RenderableType:
    """Failures of the program, with its output if it was not printed yet."""
    parts: list[RenderableType] = []
    for run in runs:
        ended = f"The program exited with status {run.status} for {run.target}."
        if run.status:
            if run.output.strip():
                parts.append(Text(run.output.rstrip()))
            parts.append(Text(ended, "bold red"))
        if run.problem is not None and (run is runs[0] or run.problem != runs[0].problem):
            parts.append(Text(run.problem[0], "bold"))
            if run.problem[1] is not None:
                parts.append(Text(run.problem[1]))
    return Group(*parts)


MOST_OF_A_CONSTANT = 24
"""Most characters of a constant that stay on one line."""
LEAST_OF_A_PLACE = 16


def _row(kernel: CapturedKernel) -> list[RenderableType]:
    options = kernel.options
    constants = " ".join(f"{name}={value}" for name, value in kernel.constexprs.items())
    times = sum(launch.times for launch in kernel.launches)
    grids = list(dict.fromkeys("×".join(map(str, _trimmed(launch.grid))) for launch in kernel.launches))
    places = list(dict.fromkeys(launch.place for launch in kernel.launches)) or [kernel.compiled_for.line]
    refused = kernel.hash is None
    return [
        Text(kernel.name),
        Text("failed", "magenta") if refused else Text((kernel.hash or "")[:HASH_CHARACTERS], "dim"),
        Text(kernel.target.arch),
        Text(str(options.get("num_warps", ""))),
        Text(str(options.get("num_stages", ""))),
        Text(constants),
        Text(str(times) if times else "tuning" if kernel.benchmarked else "none"),
        Text(_first(grids)),
        Text(_first(places), "dim"),
    ]


def _trimmed(grid: Sequence[int]) -> list[int]:
    """A grid without trailing ones."""
    sizes = list(grid)
    while len(sizes) > 1 and sizes[-1] == 1:
        sizes.pop()
    return sizes


def _first(found: Sequence[str]) -> str:
    return "" if not found else found[0] if len(found) == 1 else f"{found[0]} +{len(found) - 1}"


def _notes(runs: Sequence[ProgramRun]) -> list[RenderableType]:
    places: dict[tuple[str, tuple[Target, ...]], list[str]] = {}
    for note in merge_notes(note for run in runs for note in run.notes):
        found = places.setdefault((note.text, note.targets), [])
        found.extend([] if note.place is None else [note.place])
    if not places:
        return []
    grid = Table.grid(padding=(0, 2, 0, 0))
    for (text, targets), found in places.items():
        whose = "" if len(targets) == len(runs) else f"{', '.join(map(str, targets))}: "
        grid.add_row(Text("note", "dim"), Text(f"{whose}{text} {', '.join(found)}".rstrip()))
    return [Text(""), grid]
