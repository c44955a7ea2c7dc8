"""Compile one kernel twice: once with all IR dumps, once with all passes timed.

Source: triton's python/src/ir.cc and llvm.cc for the variables. `MLIR_DUMP_PATH` sends the MLIR dumps to a
file, which is much faster than the unbuffered standard error; Tritons without it write everything to standard
error. `DISABLE_LLVM_OPT` takes names of LLVM options. `print-module-scope` makes LLVM print whole modules,
since the dump of a single function has no source lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.environments import find_interpreter, parse_triton
from artifact_inspector.compiling.ask.process import current_interpreter, run_requests
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.hardware.targets import Target
from artifact_inspector.passes.dumps import Dump, PassTimes, read_dumps

TIME_LIMIT_SECONDS = 600.0

NoticeCallback = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DumpedCompile:
    """The output of one compile: its cache entry, and the files with its dumps and timings."""

    artifact: Artifact
    triton: str | None
    seconds: float
    """Duration of the compile without dumps."""
    dump_files: tuple[Path, ...]
    """Files with the dumps, in the order in which they were written."""
    timing_file: Path

    def dumps(self) -> Iterator[Dump]:
        """Yield the dumps one at a time."""
        for file in self.dump_files:
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from read_dumps(lines)

    def pass_times(self) -> PassTimes:
        """The durations of the passes."""
        with self.timing_file.open(encoding="utf-8", errors="replace") as lines:
            return PassTimes(lines)


def compile_with_dumps(
    request: Mapping[str, Any], target: Target, triton: str | None, directory: Path, *, notice: NoticeCallback
) -> DumpedCompile:
    """Compile one kernel for one target, with all dumps and timings.

    Args:
        request: the request as `KernelRequest.as_json` returns it; its place may also be a saved `.ttir`.
        triton: the version to compile with, as `parse_triton` reads it; by default the installed one.
        directory: an empty directory for the caches and dumps of these compiles.
        notice: called with a sentence before an environment is created, which takes a minute.

    Raises:
        UsageError, CompileError: as `compile_kernels`, with the compiler's message.
    """
    mlir, llvm, times = (directory / name for name in ("mlir.txt", "llvm.txt", "times.txt"))
    dumps = {"MLIR_ENABLE_DUMP": "1", "MLIR_DUMP_PATH": str(mlir), "LLVM_IR_ENABLE_DUMP": "1"}
    dumps["DISABLE_LLVM_OPT"] = "print-module-scope"
    timings = {"MLIR_ENABLE_TIMING": "1", "LLVM_ENABLE_TIMING": "1"}
    requests = [
        {**request, "out": str(directory / name), "environment": environment, "output": str(output)}
        for name, environment, output in (("written", dumps, llvm), ("timed", timings, times))
    ]
    entry, timing = _compile_requests(requests, target, triton, notice)
    texts = tuple(file for file in (mlir, llvm) if file.exists())
    return DumpedCompile(_open_entry(entry), entry.get("triton"), timing["seconds"], texts, times)


def compile_without_dumps(
    request: Mapping[str, Any], target: Target, triton: str | None, directory: Path, *, notice: NoticeCallback
) -> Artifact:
    """Compile one kernel for one target without dumps.

    Raises:
        UsageError, CompileError: as `compile_kernels`.
    """
    (entry,) = _compile_requests([{**request, "out": str(directory), "environment": {}}], target, triton, notice)
    return _open_entry(entry)


def _open_entry(entry: Mapping[str, Any]) -> Artifact:
    (artifact,) = open_cache(Path(entry["directory"])).entries
    return artifact


def _compile_requests(
    requests: Sequence[Mapping[str, Any]], target: Target, triton: str | None, notice: NoticeCallback
) -> list[dict[str, Any]]:
    """Compile requests for one target; returns their rows in order."""
    interpreter = current_interpreter() if triton is None else find_interpreter(*parse_triton(triton), notice=notice)
    rows: dict[int, dict[str, Any]] = {}
    worker_requests = [{**ask, "targets": [str(target)]} for ask in requests]
    for row in run_requests(interpreter, worker_requests, workers=len(worker_requests), time_limit=TIME_LIMIT_SECONDS):
        if row.get("directory") is None:
            error = UsageError if row.get("kind") == "usage" else CompileError
            raise error(row["message"], row.get("remedy"))
        rows[row["ask"]] = row
    return [rows[number] for number in sorted(rows)]
