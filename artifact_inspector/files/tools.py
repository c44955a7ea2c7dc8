"""Runs external tools on untrusted files: disassemblers and assemblers.

A tool comes from an installed package, an absolute directory on PATH, or an option, never from the inspected
directory. It runs without a shell, on a copy in a private directory, with limits on time, memory and output.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

from artifact_inspector.errors import CacheError
from artifact_inspector.files import lifetime
from artifact_inspector.files.process_limits import limit_tool
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.model.limits import TOOL_MIB, TOOL_SECONDS

WHEEL_DIRECTORIES = ("backends/nvidia/bin", "third_party/cuda/bin")
"""Where Triton's wheel has NVIDIA's tools: of 3.x and 2.x."""


def find_on_path(names: list[str]) -> Path | None:
    """The first of the named programs on PATH; relative PATH entries are ignored."""
    directories = [path for path in os.environ.get("PATH", "").split(os.pathsep) if Path(path).is_absolute()]
    programs = (shutil.which(name, path=os.pathsep.join(directories)) for name in names)
    return next((Path(directory) for directory in programs if directory is not None), None)


def package_directories(package: str) -> list[Path]:
    """The directories of an installed package, without importing it; the working directory is ignored."""
    working_directory = Path.cwd()
    installed = [path for path in sys.path if Path(path).is_absolute() and Path(path) != working_directory]
    spec = PathFinder.find_spec(package, installed)
    return [] if spec is None else [Path(root) for root in spec.submodule_search_locations or ()]


@contextlib.contextmanager
def private_copy(content: bytes, name: str) -> Iterator[Path]:
    """The content as a file in a private temporary directory."""
    with scratch_directory() as directory:
        path = Path(directory, name)
        path.write_bytes(content)
        yield path


def run_tool(command: list[str], limit: int, *, errors: bool = False, memory: float = 1.0) -> tuple[int, bytes]:
    """The exit status of a tool, and its standard output (or only its standard error).

    Args:
        memory: share of the limit on memory that a tool may use.

    Raises:
        CacheError: the tool did not start, or was stopped because of its time or output limit.
    """
    process: subprocess.Popen[bytes] | None = None
    timed_out = threading.Event()

    def stop() -> None:
        if process is not None and process.poll() is None:  # otherwise the process ID may have been reused
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def expire() -> None:
        timed_out.set()
        stop()

    timer = threading.Timer(TOOL_SECONDS.value, expire)
    timer.daemon = True  # a signal may interrupt its start, and a process waits for other threads when it ends
    try:
        with lifetime.starting_tool:
            process = _start(command, errors=errors)
            lifetime.add_tool(process.pid)
        limit_tool(process.pid, int(TOOL_MIB.value * memory))
        timer.start()
        pipe = process.stderr if errors else process.stdout
        assert pipe is not None
        with pipe:
            output = pipe.read(limit + 1)
        if len(output) > limit:
            stop()
        status = process.wait()
    finally:
        timer.cancel()
        stop()
        if process is not None:
            lifetime.remove_tool(process.pid)
    if timed_out.is_set():
        remedy = f"set {TOOL_SECONDS.variable} to wait longer"
        raise CacheError(f"{command[0]} took more than {TOOL_SECONDS.value} s: {remedy}.")
    if len(output) > limit and not errors:
        raise CacheError(f"{command[0]} printed more than expected for this file.")
    return status, output


def _start(command: list[str], *, errors: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if errors else subprocess.PIPE,
            stderr=subprocess.PIPE if errors else subprocess.DEVNULL,
            cwd=tempfile.gettempdir(),
            start_new_session=True,
        )
    except OSError as error:
        raise CacheError(f"{command[0]} did not start ({error.strerror or error}).") from error
