"""`inspect-kernel check-memory`: memory errors and races of launches, found without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import PlainCommand, command
from artifact_inspector.cli._exit import DIFFERENT, UNREADABLE, USAGE
from artifact_inspector.cli._groups import LaunchOptions
from artifact_inspector.cli._output import notice, print_json, print_report, write_line
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.memory_checks.problems import MemoryReport

FORMATS = ("text", "json", "sarif", "junit", "github")
_PROGRAM = "program after --"


class _ProgramCommand(PlainCommand):
    """A command whose arguments behind `--` are a program to run."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            ctx.meta[_PROGRAM] = args[args.index("--") + 1 :]
            args = args[: args.index("--")]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", "CACHE [NAME] | -- COMMAND..."]


@command("check-memory", cls=_ProgramCommand)
def check_memory(
    ctx: typer.Context,
    launches: LaunchOptions,
    cache: Path | None = options.argument(
        "CACHE", "A cache with recorded launches. Give it, or -- and a program.", None
    ),
    name: str | None = options.argument("NAME", options.NAME_HELP, None),
    target: options.CompileTargets = None,
    keep: options.Keep = None,
    configs: str = options.option("--configs all|N", "With a program: configurations of each autotuned kernel.", "1"),
    triton: str | None = options.option(
        "--triton VERSION", "With a program: compile with this Triton, such as 3.2.0.", None
    ),
    most_launches: int | None = options.option("--launches N", "With a program: stop it after N launches.", None),
    seconds: float | None = options.option("--seconds S", "With a program: stop it after S seconds.", None),
    kernel: str | None = options.option(
        "--kernel FILE.py:KERNEL", "Import this file, and print a patch that adds its missing masks.", None
    ),
    values: bool = options.option(
        "--values", "Compare the stores with Triton's interpreter. With a program, it runs every launch.", False
    ),
    sizes: bool = options.option(
        "--sizes", "Also search other sizes of each launch for the smallest that leaves a tensor.", False
    ),
    budget: options.Budget = None,
    json: options.Json = False,
    format: str = options.option("--format -f FORMAT", "Print as text, json, sarif, junit or github.", "text"),
) -> None:
    """Find memory errors and races of launches by simulation. No GPU needed.

    Exits 1 if there is an error, 2 if the program failed without a kernel, 3 if something is undecided, else 0.
    """
    format = "json" if json else format
    with ExitStack() as stack:
        options.require_format(format, FORMATS)
        program: list[str] | None = ctx.meta.get(_PROGRAM)
        reports: list[MemoryReport] = []
        if program is not None:
            if cache is not None:
                raise UsageError(f"Both a cache ({cache}) and a program are given.", "Give one of them.")
            limits = {"triton": triton, "launches": most_launches, "seconds": seconds, "interprets": values}
            cache, reports = _capture(stack, program, target or options.DEMO_TARGETS[:1], keep, configs, limits)
        elif cache is None:
            raise UsageError("There is no cache and no program to check.", "Write check-memory -- python program.py.")
        selected = target if program is None else None
        checks = {"compares_values": values, "searches_sizes": sizes}
        if cache is not None:
            reports = _check(cache, name, selected, launches, budget, kernel, **checks) + reports
        _print(reports, format)


def _capture(
    stack: ExitStack, program: list[str], target: list[str], keep: Path | None, configs: str, limits: dict[str, Any]
) -> tuple[Path | None, list[MemoryReport]]:
    """Run a program; returns the cache of its kernels, and what failed to compile or run as undecided."""
    from artifact_inspector.api.memory_errors import undecided_report
    from artifact_inspector.compiling import capture_program
    from artifact_inspector.compiling.ask.request import parse_configs
    from artifact_inspector.facts.selection import parse_targets
    from artifact_inspector.files.scratch import scratch_directory
    from artifact_inspector.report.compilation import failures
    from artifact_inspector.report.console import show

    out = keep if keep is not None else Path(stack.enter_context(scratch_directory())) / "captured"
    number = parse_configs(configs)
    targets = [str(parsed) for parsed in parse_targets(target)]
    runs = capture_program(program, targets, out, configs=None if number == "all" else number, notice=notice, **limits)
    if any(run.status or run.problem for run in runs):
        show(failures(runs), sys.stderr)
    if any(run.status for run in runs) and not any(run.kernels for run in runs):
        raise typer.Exit(USAGE)
    failed = [
        undecided_report(kernel.name, kernel.target.arch, f"not compiled: {kernel.message}{_hint(kernel.message)}")
        for run in runs
        for kernel in run.kernels
        if kernel.message is not None
    ]
    failed += [
        undecided_report("the program", run.target.arch, reason)
        for run in runs
        for reason, applies in (
            (f"it exited with status {run.status}", bool(run.status)),
            ("its time was over before its end", any(note.text.endswith(" s.") for note in run.notes)),
        )
        if applies
    ]
    return out if any(kernel.directory is not None for run in runs for kernel in run.kernels) else None, failed


def _hint(message: str) -> str:
    """The option that compiles a kernel that the installed Triton refuses; else empty."""
    return "\nCompile with an older Triton: --triton 3.2.0." if "Block pointers have been removed" in message else ""


def _check(
    path: Path,
    name: str | None,
    target: list[str] | None,
    launches: LaunchOptions,
    budget: str | None,
    kernel: str | None,
    *,
    compares_values: bool,
    searches_sizes: bool,
) -> list[MemoryReport]:
    """The memory errors of the requested launches, else of those recorded in the cache."""
    from artifact_inspector.api.memory_errors import check_launches
    from artifact_inspector.cli._budget import budget_seconds
    from artifact_inspector.cli._launches import launch_disassembler, requested_pairs
    from artifact_inspector.cli._loading import open_cache_or_fail
    from artifact_inspector.execution.interpreter.budget import limit_simulation
    from artifact_inspector.facts.selection import parse_filters
    from artifact_inspector.report.progress import progress_bar

    pairs = requested_pairs(launches, open_cache_or_fail(path), name, parse_filters(target or []))
    disassemble = launch_disassembler(pairs, launches.nvdisasm)
    with progress_bar(len(pairs), "checking") as advance, limit_simulation(budget_seconds(budget)):
        reports = check_launches(
            pairs,
            disassemble,
            steps=launches.steps,
            compares_values=compares_values,
            searches_sizes=searches_sizes,
            progress=lambda entry: advance(entry.display_name),
        )
    if kernel is None:
        return reports
    from artifact_inspector.api.mask_remedy import with_mask_patch

    reports = [with_mask_patch(*one, kernel, disassemble) for one in zip(pairs, reports, strict=True)]
    if not any(report.patch for report in reports):
        write_line(f"The kernels of {path} were checked; {kernel} is read only for a patch.", sys.stderr)
    return reports


def _print(reports: Sequence[MemoryReport], format: str) -> None:
    """Print the errors, and exit with the code of the outcome."""
    from artifact_inspector.api.memory_errors import overall_status
    from artifact_inspector.files.sources import find_source
    from artifact_inspector.report.console import write
    from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
    from artifact_inspector.report.json.prediction import memory_check_document
    from artifact_inspector.report.memory_check import MemoryCheckReport, memory_junit, memory_remarks, memory_rules

    status = overall_status(reports)
    if format == "text":
        print_report(MemoryCheckReport(reports))
    elif format == "json":
        print_json(memory_check_document(reports, status))
    elif format == "junit":
        write(memory_junit(reports), sys.stdout)
    else:
        remarks = memory_remarks(reports, lambda file: find_source(file, Path.cwd()))
        if format == "sarif":
            print_json(sarif_document(memory_rules(), remarks))
        else:
            write(workflow_commands(remarks), sys.stdout, commands=True)
    if status != "clean":
        raise typer.Exit(DIFFERENT if status == "error" else UNREADABLE)
