"""Measure kernels on the GPU of this machine, and inspect the compiled kernels.

Every kernel runs in its own process, so that a crash costs only its own rows. The processes run one after
another, so that none disturbs the times of another.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifact_inspector.compiling.ask.manifest import add_to_manifest
from artifact_inspector.compiling.ask.request import parse_configs
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CacheError, DeviceError, InspectorError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import open_cache
from artifact_inspector.measuring import gpu_process
from artifact_inspector.measuring.measurement import Bench, Job, JobMessage, MeasuredDevice, Measurement, MeasurementRow

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

TIME_LIMIT_SECONDS = 300.0
"""Seconds that creating a workload may take, or compiling, checking and timing one configuration."""
MILLISECONDS = 100.0


def plan_jobs(
    kernel_paths: Sequence[str],
    out_dir: Path,
    *,
    configs: str | None = None,
    workload: str | None = None,
    milliseconds: float = MILLISECONDS,
) -> list[Job]:
    """A job for each named kernel: a reference kernel or FILE.py:KERNEL; no name means all reference kernels.

    Raises:
        UsageError: an unknown kernel, a missing file, or a wrong number of configurations.
    """
    if configs is not None:
        parse_configs(configs)
    jobs = []
    for kernel_path in dict.fromkeys(kernel_paths or REFERENCE_KERNELS):
        file, colon, name = kernel_path.rpartition(":")
        if colon and file.endswith(".py"):
            if not Path(file).is_file():
                raise UsageError(f"There is no file {file}.", "Name a kernel as FILE.py:KERNEL.")
            module, path = "", str(Path(file).resolve())
        elif kernel_path.endswith(".py"):
            remedy = f"Name one of its kernels: {kernel_path}:KERNEL."
            raise UsageError(f"{kernel_path} names a file but no kernel.", remedy)
        elif kernel_path in REFERENCE_KERNELS:
            name, module, path = kernel_path, REFERENCE_KERNELS[kernel_path], None
        else:
            remedy = f"Expected FILE.py:KERNEL for your own kernel, or one of {', '.join(REFERENCE_KERNELS)}."
            raise UsageError(f"Unknown reference kernel {kernel_path!r}.", remedy)
        if module and workload is not None:
            raise UsageError("--workload is for a FILE.py:KERNEL.", f"{kernel_path} has a workload of its own.")
        directory = str(out_dir.resolve() / name)
        jobs.append(Job(name, module, path, workload, configs, directory, milliseconds))
    return jobs


def measure(
    jobs: Sequence[Job],
    *,
    disassemble: Callable[[Path], Disassemble | None] = lambda directory: None,
    progress: Callable[[str], None] | None = None,
    time_limit: float = TIME_LIMIT_SECONDS,
) -> Bench:
    """Launch, check and time every job, and inspect the compiled kernels.

    Args:
        disassemble: returns a disassembler for the kernels of a directory, or None.
        progress: called with each kernel's name before it is measured.
        time_limit: seconds for one configuration.

    Raises:
        DeviceError: there is no GPU to launch on.
        UsageError: a file has no such kernel or workload.
        CompileError: a file cannot be imported.
    """
    # with torch already imported, if possible
    is_preloaded = "forkserver" in multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if is_preloaded else "spawn")
    if is_preloaded:
        # imported once, before the processes are forked; neither import uses the GPU
        context.set_forkserver_preload(["torch", "triton", gpu_process.__name__])
    device: MeasuredDevice | None = None
    rows: list[Measurement] = []
    for job in jobs:
        if progress is not None:
            progress(job.kernel)
        for message in _run_job(context, job, time_limit):
            if isinstance(message, MeasuredDevice):
                device = device or message
            elif isinstance(message, InspectorError):
                raise message
            else:
                rows.append(replace(message.measurement, facts=_read_facts(message, disassemble)))
                if message.launches and device is not None:
                    target = {"target": str(device.target)}
                    launches = [{**launch, **target} for launch in message.launches]
                    add_to_manifest(Path(message.directory), (), launches)
    if device is None:
        raise DeviceError("The process that launches kernels ended before it found a GPU.")
    return Bench(device, tuple(rows))


def _run_job(context: Any, job: Job, time_limit: float) -> Iterator[JobMessage]:
    """Yield the messages of one job's process, and an error row if it dies or exceeds the time limit."""
    receiver: Connection
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=gpu_process.run_job, args=(job, sender), daemon=True)
    child.start()
    sender.close()
    received_rows, expected, has_device = 0, 1, False
    try:
        while received_rows < expected:
            if not receiver.poll(time_limit):
                yield _failed_row(job, f"took longer than {time_limit:g} s")
                return
            try:
                message: JobMessage = receiver.recv()
            except EOFError:
                child.join(10)
                if has_device:
                    yield _failed_row(job, f"the process that launched it ended with {child.exitcode}")
                return
            yield message
            if isinstance(message, InspectorError):
                return
            has_device = True
            if isinstance(message, MeasurementRow):
                received_rows, expected = received_rows + 1, message.config_count
    finally:
        receiver.close()
        child.join(0.0 if received_rows < expected else 10.0)
        if child.is_alive():
            child.kill()
            child.join()


def _failed_row(job: Job, message: str) -> MeasurementRow:
    return MeasurementRow(1, Measurement(job.kernel, "", {}, message=message), job.kernel, job.directory)


def _read_facts(row: MeasurementRow, disassemble: Callable[[Path], Disassemble | None]) -> KernelFacts | None:
    """The facts of the kernel that was compiled into the directory of a row; None if there is none."""
    directory = Path(row.directory)
    if row.measurement.message is not None:
        return None
    try:
        entries = [entry for entry in open_cache(directory).entries if entry.stem == row.function]
    except CacheError:
        return None
    return inspect_artifact(entries[-1], disassemble(directory)) if entries else None
