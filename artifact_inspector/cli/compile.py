"""`inspect-kernel compile` and `demo`: compile kernels for any GPU, without one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT, USAGE
from artifact_inspector.cli._groups import CompileOptions, ListOptions, MachineCode, Selection
from artifact_inspector.cli._output import notice, print_json, print_report
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.compiling import CompileResult, KernelRequest


def _complete_kernel(incomplete: str) -> list[str]:
    from artifact_inspector.compiling.reference import REFERENCE_KERNELS

    # an empty answer leaves completion to the shell, which completes files
    return [name for name in REFERENCE_KERNELS if incomplete and name.startswith(incomplete)]


def _complete_target(incomplete: str) -> list[str]:
    from artifact_inspector.hardware.targets import KNOWN_TARGETS

    leading, comma, last = incomplete.rpartition(",")
    return [leading + comma + target.arch for target in KNOWN_TARGETS if target.arch.startswith(last)]


@command()
def compile(
    compiling: CompileOptions,
    kernels: list[str] | None = options.argument(
        "[KERNEL]...",
        "FILE.py:KERNEL, module:KERNEL or a reference kernel. Default: all reference kernels.",
        None,
        autocompletion=_complete_kernel,
    ),
    target: list[str] | None = options.option(
        "--target -t GPU", "Compile for these GPUs: sm_75,gfx90a,MI300X ...", None, autocompletion=_complete_target
    ),
    configs: options.Configs = None,
    triton: list[str] | None = options.option(
        "--triton VERSION",
        "Compile with these Tritons: 3.2.0,3.9.0; 3.2.0=PYTHON names an interpreter that has it.",
        None,
    ),
    jobs: int | None = options.option("--jobs -j N", "Run N compiles at a time. Default: one per processor.", None),
    scheduler: str | None = options.option(
        "--scheduler ADDRESS", "Compile on the workers of this Dask scheduler.", None
    ),
    out: options.OutputDirectory = options.DEFAULT_OUTPUT,
    json: options.Json = False,
    verbose: bool = options.option("--verbose -v", "Print the whole output of a compiler that failed.", False),
) -> None:
    """Compile Triton kernels for any GPU. No GPU needed."""
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.files.inductor_output import kernel_paths
    from artifact_inspector.report.compilation import compiled_table
    from artifact_inspector.report.json.compiling import CompiledDocument

    paths = [path for kernel in kernels or [] for path in kernel_paths(Path(kernel)) or [kernel]]
    requests = read_requests(paths, compiling, configs)
    if jobs is not None and jobs < 1:
        raise UsageError(f"--jobs is {jobs}.", "Expected 1 or more.")
    rows = _compile_requests(requests, target or options.DEMO_TARGETS, out, jobs, triton or [], scheduler)
    if json:
        print_json(CompiledDocument(compiled=tuple(rows)))
    else:
        # every kernel failed for the same fault of the request
        if rows and all(row.is_usage_error for row in rows) and len({row.message for row in rows}) == 1:
            raise UsageError(rows[0].message or "", rows[0].remedy)
        print_report(compiled_table(rows, out, verbose=verbose))
    if configs is not None:
        _report_untuned(rows)
    _exit_on_failures(rows)


@command()
def demo(
    name: str | None = options.argument("NAME", options.NAME_HELP, None),
    out: options.OutputDirectory = options.DEFAULT_OUTPUT,
    json: options.Json = False,
    target: options.ReadTargets = None,
) -> None:
    """Compile eight reference kernels for a T4 and an MI250X, and show them. No GPU needed."""
    from artifact_inspector.cli._listing import print_cache
    from artifact_inspector.cli._requests import read_requests
    from artifact_inspector.compiling import DEMO_KERNELS
    from artifact_inspector.report.compilation import compile_errors
    from artifact_inspector.report.console import show

    rows = _compile_requests(read_requests(DEMO_KERNELS), target or options.DEMO_TARGETS, out, None, [], None)
    print_cache(Selection(out, name, target), MachineCode(), ListOptions(json=json))
    if any(row.directory is None for row in rows):
        show(compile_errors(rows), sys.stderr)
    _exit_on_failures(rows)


def _compile_requests(
    requests: Sequence[KernelRequest],
    targets: list[str],
    out: Path,
    jobs: int | None,
    tritons: Sequence[str],
    scheduler: str | None,
) -> Sequence[CompileResult]:
    from artifact_inspector.cli._requests import target_names
    from artifact_inspector.compiling import compile_kernels
    from artifact_inspector.model.text import split_option_values
    from artifact_inspector.report.progress import progress_bar

    names = target_names(targets)
    total = len(requests) * len(names)

    def set_total(number: int) -> None:
        nonlocal total
        total = number

    with progress_bar(lambda: total, "compiling") as advance:
        return compile_kernels(
            requests,
            names,
            out,
            tritons=split_option_values(tritons),
            workers=jobs,
            scheduler=scheduler,
            notice=notice,
            progress=lambda row: advance(f"{row.kernel} {row.target}"),
            planned=set_total,
        )


def _report_untuned(rows: Sequence[CompileResult]) -> None:
    """Print which kernels have no autotuning configurations."""
    from artifact_inspector.report.console import write

    untuned = dict.fromkeys(row.kernel for row in rows if row.config is None and row.directory is not None)
    if untuned:
        has = "has" if len(untuned) == 1 else "have"
        write(f"{', '.join(untuned)} {has} no autotuning configurations; --configs does not apply.\n", sys.stderr)


def _exit_on_failures(rows: Sequence[CompileResult]) -> None:
    if any(row.directory is None for row in rows):
        raise typer.Exit(USAGE if all(row.is_usage_error for row in rows) else DIFFERENT)
