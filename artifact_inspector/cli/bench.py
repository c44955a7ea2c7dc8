"""`inspect-kernel bench`: run kernels on the GPU of this machine, and report what they compiled to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._exit import DIFFERENT
from artifact_inspector.cli._groups import MachineCode
from artifact_inspector.cli._output import print_json, print_report
from artifact_inspector.errors import UsageError
from artifact_inspector.files.scratch import scratch_directory

if TYPE_CHECKING:
    from artifact_inspector.facts.modules import Disassemble


def _complete_kernel(incomplete: str) -> list[str]:
    from artifact_inspector.compiling.reference import REFERENCE_KERNELS

    return [name for name in REFERENCE_KERNELS if name.startswith(incomplete)]


@command()
def bench(
    code: MachineCode,
    kernels: list[str] | None = options.argument(
        "[KERNEL]...",
        "FILE.py:KERNEL, or reference kernels. Default: all reference kernels.",
        None,
        autocompletion=_complete_kernel,
    ),
    configs: str | None = options.option("--configs all|N", "Measure all configurations, or N spread over them.", None),
    workload: str | None = options.option(
        "--workload NAME",
        "Call this function of FILE.py for the Workload. Default: KERNEL_workload, then workload.",
        None,
    ),
    milliseconds: float = options.option("--rep MS", "Measure each kernel for MS milliseconds.", 100.0, min=1.0),
    keep: options.Keep = None,
    json: options.Json = False,
) -> None:
    """Run kernels on this machine's GPU: check their results, measure their time, and report their code."""
    from artifact_inspector.cli._loading import make_disassembler
    from artifact_inspector.files.cache import open_cache
    from artifact_inspector.measuring.measure import measure, plan_jobs
    from artifact_inspector.report.bench import BenchReport
    from artifact_inspector.report.json.compiling import bench_document
    from artifact_inspector.report.progress import progress_bar

    def disassembler_of(directory: Path) -> Disassemble | None:
        """The disassembler of a cache directory."""
        if not code.sass and code.nvdisasm is None:
            return None
        return make_disassembler(open_cache(directory).entries, code.nvdisasm, sass=True)

    with _compile_directory(keep) as directory:
        jobs = plan_jobs(kernels or [], directory, configs=configs, workload=workload, milliseconds=milliseconds)
        with progress_bar(len(jobs), "measuring") as advance:
            measurements = measure(jobs, disassemble=disassembler_of, progress=advance)
    if json:
        print_json(bench_document(measurements))
    else:
        print_report(BenchReport(measurements))
    if any(row.is_wrong or row.message is not None for row in measurements.rows):
        raise typer.Exit(DIFFERENT)


@contextmanager
def _compile_directory(keep: Path | None) -> Iterator[Path]:
    """The empty directory to compile into; a temporary one by default."""
    if keep is None:
        with scratch_directory() as scratch:
            yield Path(scratch)
        return
    if keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise UsageError(f"--keep {keep} is not empty.", "Give a new or empty directory.")
    yield keep
