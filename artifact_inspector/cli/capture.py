"""`inspect-kernel capture`: compile every kernel that a program would launch, for any GPU, without one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._output import notice, print_json, print_next, print_report

if TYPE_CHECKING:
    from artifact_inspector.compiling import ProgramRun


@command(context_settings={"allow_interspersed_args": False})
def capture(
    command: list[str] | None = options.argument(
        "-- COMMAND...", "The program and its arguments: -- python train.py --steps 2", None
    ),
    target: options.CompileTargets = None,
    out: options.OutputDirectory = options.DEFAULT_OUTPUT,
    configs: str = options.option(
        "--configs all|N", "Compile all configurations of each autotuned kernel, or N spread over them.", "3"
    ),
    triton: str | None = options.option("--triton VERSION", "Compile with this Triton: 3.2.0, or 3.2.0=PYTHON.", None),
    launches: int | None = options.option("--launches N", "Stop each run after N launches.", None),
    seconds: float | None = options.option("--seconds S", "Stop each run after S seconds.", None),
    json: options.Json = False,
) -> None:
    """Run a program without a GPU and compile every kernel that it would launch, once per target."""
    from artifact_inspector.report.compilation import captured_table, failures
    from artifact_inspector.report.console import show
    from artifact_inspector.report.json.compiling import captured_document

    limits = {"triton": triton, "launches": launches, "seconds": seconds}
    runs = _run_program(command or [], target or options.DEMO_TARGETS, out, configs, limits)
    if any(run.status or run.problem for run in runs):
        show(failures(runs), sys.stderr)
    if json:
        print_json(captured_document(runs))
    else:
        print_report(captured_table(runs, out))
        for launched in [kernel.hash for run in runs for kernel in run.kernels if kernel.hash and kernel.launches][:1]:
            print_next("advise", out, launched[:8])
    status = next((run.status for run in runs if run.status), 0)
    nothing = not any(run.kernels for run in runs)
    refused = any(kernel.message is not None for run in runs for kernel in run.kernels)
    if status or nothing or refused:
        raise typer.Exit(status or DIFFERENT)


def _run_program(
    command: list[str], targets: list[str], out: Path, configs: str, limits: dict[str, Any]
) -> list[ProgramRun]:
    from artifact_inspector.cli._requests import target_names
    from artifact_inspector.compiling import capture_program
    from artifact_inspector.compiling.ask.request import parse_configs

    number = parse_configs(configs)
    names = target_names(targets)
    return capture_program(command, names, out, configs=None if number == "all" else number, notice=notice, **limits)
