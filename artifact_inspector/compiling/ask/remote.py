"""Compile on other machines: a Dask scheduler distributes the jobs, and the cache entries are sent back.

Every machine needs this package, the requested Triton, and the kernels' files under the same paths. Only the
calling machine writes the cache directory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.ask.environments import find_interpreter
from artifact_inspector.compiling.ask.process import current_interpreter, run_requests
from artifact_inspector.compiling.publishing import publish, staging_directory
from artifact_inspector.errors import CompileError
from artifact_inspector.files.cluster import connect
from artifact_inspector.files.scratch import scratch_directory

CHUNKS_PER_THREAD = 4
"""Jobs are grouped, so that Triton is not imported for each; several chunks per thread balance the load."""
Files = Mapping[str, bytes]


def run_remote_requests(
    scheduler: str,
    version: tuple[str, Path | None] | None,
    requests: Sequence[Mapping[str, Any]],
    *,
    time_limit: float,
    planned: Callable[[int], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Compile requests on the workers of a Dask scheduler and yield rows in the format of `results`.

    Cached entries and invalid requests are handled in this process.

    Args:
        scheduler: its address, `tcp://host:8786`.
        version: of Triton, and its Python on every machine, if one is given; None for the installed Triton.

    Raises:
        CompileError: Dask is not installed, or the scheduler does not respond.
    """
    interpreter = current_interpreter() if version is None else find_interpreter(*version)
    pending: dict[tuple[int, str], dict[str | None, int]] = {}
    lookup_rows = run_requests(
        interpreter, [{**ask, "look": True} for ask in requests], workers=1, time_limit=time_limit, planned=planned
    )
    for row in lookup_rows:
        if row.get("pending"):
            pending.setdefault((row["ask"], row["target"]), {})[row["config"]] = row["index"]
        else:
            yield row
    if not pending:
        return
    jobs = [(number, {**requests[number], "targets": [target]}) for number, target in pending]
    client, as_completed = connect(scheduler, CompileError)
    futures: list[Any] = []
    try:
        threads = sum(client.nthreads().values()) or 1
        size = max(1, -(-len(jobs) // (threads * CHUNKS_PER_THREAD)))
        chunks = [jobs[start : start + size] for start in range(0, len(jobs), size)]
        futures = [client.submit(_compile_chunk, chunk, version, time_limit, pure=False) for chunk in chunks]
        for future in as_completed(futures):
            for number, row, files in future.result():
                index = pending[number, row["target"]].get(row.get("config"))
                if index is not None:  # otherwise a configuration that the cache already has
                    yield {**row, "ask": number, "index": index, **_store_entry(row, files, requests[number]["out"])}
    finally:
        client.cancel(futures)
        client.close()


def _compile_chunk(
    jobs: Sequence[tuple[int, Mapping[str, Any]]], version: tuple[str, Path | None] | None, time_limit: float
) -> list[tuple[int, dict[str, Any], Files]]:
    """Compile one chunk in a thread of a Dask worker, one kernel at a time; returns rows with their files."""
    interpreter = current_interpreter() if version is None else find_interpreter(*version)
    numbers = [number for number, _ in jobs]
    with scratch_directory() as out:
        requests = [{**ask, "out": out} for _, ask in jobs]
        rows: list[tuple[int, dict[str, Any], Files]] = []
        for row in run_requests(interpreter, requests, workers=1, time_limit=time_limit):
            directory = row.get("directory")
            paths = () if directory is None else Path(directory).iterdir()
            rows.append((numbers[row["ask"]], row, {path.name: path.read_bytes() for path in paths if path.is_file()}))
    return rows


def _store_entry(row: Mapping[str, Any], files: Files, out: str) -> dict[str, Any]:
    """Write the files of an entry into the cache; returns the row's new `directory`."""
    if row.get("directory") is None:
        return {}
    name = Path(row["directory"]).name
    staging = staging_directory(Path(out))
    (staging / name).mkdir()
    for file, content in files.items():
        (staging / name / file).write_bytes(content)
    directory = publish(staging, name, Path(out))
    (staging / name).rmdir()
    staging.rmdir()
    return {"directory": str(directory)}
