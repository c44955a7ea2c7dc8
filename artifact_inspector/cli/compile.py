"""`inspect-kernel compile` and `demo`: compile kernels for any GPU, without one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import DIFFERENT, USAGE, exit_codes
from artifact_inspector.cli._listing import print_cache
from artifact_inspector.cli._options import (
    DEFAULT_OUTPUT,
    DEMO_TARGETS,
    Const,
    DemoTargets,
    Json,
    OutputDirectory,
    Signature,
    Stages,
    TritonOptions,
    Warps,
)
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


@app.command()
def compile(
    kernels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KERNEL]...",
            help="FILE.py:KERNEL, module:KERNEL or a reference kernel. Default: all reference kernels.",
            autocompletion=_complete_kernel,
        ),
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="GPU",
            help="Compile for these GPUs: sm_75,gfx90a,MI300X ...",
            autocompletion=_complete_target,
        ),
    ] = None,
    signature: Signature = None,
    const: Const = None,
    num_warps: Warps = None,
    num_stages: Stages = None,
    option: TritonOptions = None,
    configs: Annotated[
        str | None,
        typer.Option(
            "--configs",
            metavar="all|N",
            help="Compile all configurations of an autotuned kernel, or N of them. Default: the first.",
        ),
    ] = None,
    triton: Annotated[
        list[str] | None,
        typer.Option(
            "--triton",
            metavar="VERSION",
            help="Compile with these Tritons: 3.2.0,3.9.0; 3.2.0=PYTHON names an interpreter that has it.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", help="Run N compiles at a time. Default: one per processor."),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option("--scheduler", metavar="ADDRESS", help="Compile on the workers of this Dask scheduler."),
    ] = None,
    out: OutputDirectory = DEFAULT_OUTPUT,
    json: Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", metavar="", help="Print the whole output of a compiler that failed.")
    ] = False,
) -> None:
    """Compile Triton kernels for any GPU. No GPU needed."""
    with exit_codes(json=json):
        from artifact_inspector.report.compilation import compiled_table
        from artifact_inspector.report.json.compiling import CompiledDocument

        requests = read_requests(kernels or [], signature, const, num_warps, num_stages, option, configs)
        if jobs is not None and jobs < 1:
            raise UsageError(f"--jobs is {jobs}.", "Expected 1 or more.")
        rows = _compile_requests(requests, target or DEMO_TARGETS, out, jobs, triton or [], scheduler)
        if json:
            print_json(CompiledDocument(compiled=tuple(rows)))
        else:
            _raise_request_error(rows)
            print_report(compiled_table(rows, out, verbose=verbose))
        if configs is not None:
            _report_untuned(rows)
        _exit_on_failures(rows)


@app.command()
def demo(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Part of a kernel's name or hash.")] = None,
    out: OutputDirectory = DEFAULT_OUTPUT,
    json: Json = False,
    target: DemoTargets = None,
) -> None:
    """Compile eight reference kernels for a T4 and an MI250X, and show them. No GPU needed."""
    with exit_codes(json=json):
        from artifact_inspector.compiling import DEMO_KERNELS
        from artifact_inspector.report.compilation import compile_errors
        from artifact_inspector.report.console import show

        rows = _compile_requests(read_requests(DEMO_KERNELS), target or DEMO_TARGETS, out, None, [], None)
        print_cache(out, name, target or [], [], None, [], None, json=json, ir=False, sass=False)
        if any(row.directory is None for row in rows):
            show(compile_errors(rows), sys.stderr)
        _exit_on_failures(rows)


def read_requests(
    kernels: Sequence[str],
    signature: str | None = None,
    const: Sequence[str] | None = None,
    num_warps: int | None = None,
    num_stages: int | None = None,
    option: Sequence[str] | None = None,
    configs: str | None = None,
) -> list[KernelRequest]:
    """The compile requests that the options describe.

    Raises:
        UsageError: the options contradict each other.
    """
    from artifact_inspector.compiling import REFERENCE_KERNELS, ConstantText, KernelRequest
    from artifact_inspector.compiling.ask.request import parse_configs

    for kernel in kernels:
        if re.fullmatch(r"[A-Za-z_]\w*=.*", kernel):
            raise UsageError(f"{kernel} is not a kernel.", f"Write --const {kernel}, or --option {kernel}.")
    if (signature is not None or const) and len(kernels) != 1:
        raise UsageError(
            f"--signature and --const describe one kernel; {len(kernels) or 'all'} are requested.",
            "Give one kernel, as FILE.py:KERNEL.",
        )
    number = None if configs is None else parse_configs(configs)
    pipeline_options = {"num_warps": num_warps, "num_stages": num_stages}
    options = {name: value for name, value in pipeline_options.items() if value is not None}
    options |= {name: _parse_value(text) for name, text in _parse_pairs("--option", option or ())}
    constants = {name: ConstantText(text) for name, text in _parse_pairs("--const", const or ())}
    names = list(dict.fromkeys(kernels)) or list(REFERENCE_KERNELS)
    return [KernelRequest(name, signature, constants, options, number) for name in names]


def _parse_pairs(option: str, texts: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of repeated or comma-separated NAME=VALUE."""
    from artifact_inspector.compiling.signature import parse_signature

    for text in texts:
        for name, value in parse_signature(text):
            if name is None:
                raise UsageError(f"{option} {text!r} is not NAME=VALUE.", f"Write for example {option} NAME=64.")
            yield name, value


def _parse_value(text: str) -> Any:
    from artifact_inspector.compiling.signature import MISSING, read_literal

    value = read_literal(text)
    return text if value is MISSING else value


def _compile_requests(
    requests: Sequence[KernelRequest],
    targets: list[str],
    out: Path,
    jobs: int | None,
    tritons: Sequence[str],
    scheduler: str | None,
) -> Sequence[CompileResult]:
    from artifact_inspector.compiling import compile_kernels
    from artifact_inspector.facts.selection import parse_targets
    from artifact_inspector.model.text import split_option_values
    from artifact_inspector.report.progress import progress_bar

    target_names = [str(target) for target in parse_targets(targets)]
    total = len(requests) * len(target_names)

    def set_total(number: int) -> None:
        nonlocal total
        total = number

    with progress_bar(lambda: total, "compiling") as advance:
        return compile_kernels(
            requests,
            target_names,
            out,
            tritons=split_option_values(tritons),
            workers=jobs,
            scheduler=scheduler,
            notice=notice,
            progress=lambda row: advance(f"{row.kernel} {row.target}"),
            planned=set_total,
        )


def _raise_request_error(rows: Sequence[CompileResult]) -> None:
    """Raise a UsageError if every kernel failed for the same fault of the request."""
    if rows and all(row.is_usage_error for row in rows) and len({row.message for row in rows}) == 1:
        raise UsageError(rows[0].message or "", rows[0].remedy)


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
