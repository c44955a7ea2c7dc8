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

from artifact_inspector.compiling.ask.manifest import record
from artifact_inspector.compiling.ask.request import parse_configs
from artifact_inspector.compiling.reference import REFERENCE_KERNELS
from artifact_inspector.errors import CacheError, DeviceError, InspectorError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import open_cache
from artifact_inspector.measuring import _device
from artifact_inspector.measuring.job import Answer, Job, Row
from artifact_inspector.measuring.measurement import Bench, Device, Measurement

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

TIME_LIMIT_SECONDS = 300.0
"""Seconds that creating a workload may take, or compiling, checking and timing one configuration."""
MILLISECONDS = 100.0


def plan(
    words: Sequence[str],
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
    for word in dict.fromkeys(words or REFERENCE_KERNELS):
        file, colon, name = word.rpartition(":")
        if colon and file.endswith(".py"):
            if not Path(file).is_file():
                raise UsageError(f"There is no file {file}.", "Name a kernel as FILE.py:KERNEL.")
            module, path = "", str(Path(file).resolve())
        elif word.endswith(".py"):
            raise UsageError(
                f"{word} names a file but no kernel.", f"Name one of its kernels: {word}:KERNEL."
            )
        elif word in REFERENCE_KERNELS:
            name, module, path = word, REFERENCE_KERNELS[word], None
        else:
            raise UsageError(
                f"Unknown reference kernel {word!r}.",
                f"Expected FILE.py:KERNEL for your own kernel, or one of {', '.join(REFERENCE_KERNELS)}.",
            )
        if module and workload is not None:
            raise UsageError("--workload is for a FILE.py:KERNEL.", f"{word} has a workload of its own.")
        jobs.append(
            Job(
                kernel=name,
                module=module,
                file=path,
                workload=workload,
                configs=configs,
                directory=str(out_dir.resolve() / name),
                milliseconds=milliseconds,
            )
        )
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
        jobs: the jobs, as `plan` returns them.
        disassemble: returns a disassembler for the kernels of a directory, or None.
        progress: called with each kernel's name before it is measured.
        time_limit: seconds for one configuration.

    Raises:
        DeviceError: there is no GPU to launch on.
        UsageError: a file has no such kernel or workload.
        CompileError: a file cannot be imported.
    """
    context = multiprocessing.get_context(_start_method())
    if _start_method() == "forkserver":
        # imported once, before the processes are forked; neither import uses the GPU
        context.set_forkserver_preload(["torch", "triton", _device.__name__])
    device: Device | None = None
    rows: list[Measurement] = []
    for job in jobs:
        if progress is not None:
            progress(job.kernel)
        for answer in _answers(context, job, time_limit):
            if isinstance(answer, Device):
                device = device or answer
            elif isinstance(answer, InspectorError):
                raise answer
            else:
                rows.append(replace(answer.measured, facts=_facts(answer, disassemble)))
                if answer.launches and device is not None:
                    whose = {"target": str(device.target)}
                    record(Path(answer.directory), (), [{**one, **whose} for one in answer.launches])
    if device is None:
        raise DeviceError("The process that launches kernels ended before it found a GPU.")
    return Bench(device, tuple(rows))


def _start_method() -> str:
    """How the process that uses the GPU is started: with torch already imported, if possible."""
    methods = multiprocessing.get_all_start_methods()
    return "forkserver" if "forkserver" in methods else "spawn"


def _answers(context: Any, job: Job, time_limit: float) -> Iterator[Answer]:
    """Yield the messages of one job's process, and an error row if it dies or exceeds the time limit."""
    ours: Connection
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_device.serve, args=(job, theirs), daemon=True)
    child.start()
    theirs.close()
    done, expected = 0, 1
    told_device = False
    try:
        while done < expected:
            if not ours.poll(time_limit):
                yield _failed(job, f"took longer than {time_limit:g} s")
                return
            try:
                answer: Answer = ours.recv()
            except EOFError:
                child.join(10)
                if not told_device:
                    return
                yield _failed(job, f"the process that launched it ended with {child.exitcode}")
                return
            yield answer
            if isinstance(answer, InspectorError):
                return
            told_device = True
            if isinstance(answer, Row):
                done, expected = done + 1, answer.of
    finally:
        ours.close()
        child.join(0.0 if done < expected else 10.0)
        if child.is_alive():
            child.kill()
            child.join()


def _failed(job: Job, message: str) -> Row:
    return Row(1, Measurement(job.kernel, "", {}, message=message), job.kernel, job.directory)


def _facts(row: Row, disassemble: Callable[[Path], Disassemble | None]) -> KernelFacts | None:
    """The facts of the kernel that was compiled into the directory of a row; None if there is none."""
    directory = Path(row.directory)
    if row.measured.message is not None:
        return None
    try:
        entries = open_cache(directory).entries
    except CacheError:
        return None
    own = [entry for entry in entries if entry.stem == row.function]
    return inspect_artifact(own[-1], disassemble(directory)) if own else None
