"""Kernels read on all cores: the largest first, so that no core waits long for the last one."""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from artifact_inspector.facts import kernel_reading
from artifact_inspector.facts.kernel import KernelFacts, View
from artifact_inspector.facts.lazy import FactSource
from artifact_inspector.facts.modules import BINARY_OF, Disassemble
from artifact_inspector.facts.reading import TextCache
from artifact_inspector.files.cache import Artifact, MemoryFile
from artifact_inspector.files.cluster import map_jobs
from artifact_inspector.files.lifetime import end_with_parent, prepare_workers
from artifact_inspector.files.reader import read_content
from artifact_inspector.files.records import artifact_size
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

WORTHWHILE = 1_500_000
"""Bytes of files below which starting further processes costs more than they save."""
WINDOW = 64
"""Kernels of which the largest are read first."""
CHUNK = 32
"""Kernels of one job on a cluster."""
AHEAD = 3
"""Kernels that are handed to each process in advance."""
_work: tuple[Sequence[Artifact], Any, Any, TextCache] | None = None
"""What the processes of a pool inherit: kernels, view, disassembler, shared texts."""


def find_facts(
    artifacts: Sequence[Artifact],
    indices: Sequence[int],
    view: View,
    disassemble: Disassemble | None,
    cores: int | None = None,
) -> Iterator[tuple[int, bytes]]:
    """What a view reads of the kernels at some places, as text, each with its place; in any order.

    A text is empty where the kernel is to be read by this process.

    Args:
        cores: processes at most; one means none but this.
    """
    processes = 1  # elsewhere: a process that inherits nothing would take the time to import everything
    if sys.platform == "linux":
        processes = min(len(os.sched_getaffinity(0)) if cores is None else cores, len(indices))
    sizes = {index: artifact_size(artifacts[index]) or 0 for index in indices} if processes > 1 else {}
    if processes <= 1 or sum(sizes.values()) < WORTHWHILE:
        yield from ((index, b"") for index in indices)
        return
    done: set[int] = set()
    for index, text in _run_pool(artifacts, _order_by_size(indices, sizes), view, disassemble, processes):
        done.add(index)
        yield index, text
    for index in indices:
        if index not in done:  # a process was killed
            yield index, b""


def find_cluster_facts(
    kernels: Iterator[Artifact], indices: Sequence[int], view: View, disassemble: Disassemble | None, scheduler: str
) -> Iterator[tuple[int, bytes]]:
    """As `find_facts`, on the workers of a Dask scheduler. This process reads what no worker could.

    Args:
        kernels: those at the places `indices`, as workers can read them.
    """
    chunks = [indices[start : start + CHUNK] for start in range(0, len(indices), CHUNK)]
    jobs = ((list(islice(kernels, len(chunk))), view, disassemble) for chunk in chunks)
    for number, texts in map_jobs(scheduler, _compute_chunk, jobs):
        chunk = chunks[number]
        yield from zip(chunk, [b""] * len(chunk) if isinstance(texts, BaseException) else texts, strict=True)


def _compute_chunk(job: tuple[Sequence[Artifact], View, Disassemble | None]) -> list[bytes]:
    artifacts, view, disassemble = job
    texts = TextCache()
    return [_facts_text(artifact, view, disassemble, texts) if is_readable(artifact) else b"" for artifact in artifacts]


def with_absolute_paths(artifact: Artifact) -> Artifact:
    """The kernel with paths that a process in another directory can open."""
    files = {suffix: file.absolute() if isinstance(file, Path) else file for suffix, file in artifact.files.items()}
    return replace(artifact, files=files)


def with_contents(artifact: Artifact) -> Artifact:
    """The kernel with its files in memory, for a machine that lacks them; unchanged if one cannot be read."""
    try:
        files = {suffix: MemoryFile(file.name, read_content(file)) for suffix, file in artifact.files.items()}
    except OSError:
        return artifact
    return replace(artifact, files=files)


def is_readable(artifact: Artifact) -> bool:
    """Whether this machine has the files of a kernel: a worker may lack the directory."""
    return all(file.is_file() for file in artifact.files.values() if isinstance(file, Path))


def _run_pool(
    artifacts: Sequence[Artifact], indices: Sequence[int], view: View, disassemble: Disassemble | None, processes: int
) -> Iterator[tuple[int, bytes]]:
    """Texts of a pool, as they come; it ends early where a process of it is killed."""
    import multiprocessing  # one process does without these, which take 10 ms
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    global _work
    _work = (artifacts, view, disassemble, TextCache())
    for stage in Stage:
        if any(stage.value in artifact.files for artifact in artifacts):
            format_of(stage)  # imported once, for all that inherit it
    if any(suffix in artifact.files for artifact in artifacts for suffix in BINARY_OF.values()):
        from artifact_inspector.files import binaries

        _ = binaries
    gc.freeze()  # pages that no process writes to stay shared
    try:
        fork = multiprocessing.get_context("fork")
        prepare_workers()
        with ProcessPoolExecutor(processes, fork, _start_worker) as pool:
            yield from _collect_results(pool, indices, AHEAD * processes)
    except BrokenProcessPool:
        return
    finally:
        _work = None
        gc.unfreeze()


def _start_worker() -> None:
    """Prepare a process of the pool."""
    gc.disable()  # nothing read is in a cycle
    end_with_parent()


def _collect_results(pool: ProcessPoolExecutor, indices: Sequence[int], ahead: int) -> Iterator[tuple[int, bytes]]:
    from concurrent.futures import FIRST_COMPLETED, wait

    waiting: dict[Future[bytes], int] = {}
    pending = deque(indices)
    try:
        while pending or waiting:
            while pending and len(waiting) < ahead:
                index = pending.popleft()
                waiting[pool.submit(_compute_facts, index)] = index
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                yield waiting.pop(future), future.result()
    finally:
        for future in waiting:
            future.cancel()


def _order_by_size(indices: Sequence[int], sizes: Mapping[int, int]) -> list[int]:
    """Places in the order in which they are read: of each window the largest first.

    A kernel that is read early is kept until its turn, so the largest of all do not come first.
    """
    windows = (indices[start : start + WINDOW] for start in range(0, len(indices), WINDOW))
    return [index for window in windows for index in sorted(window, key=lambda at: -sizes[at])]


def _compute_facts(index: int) -> bytes:
    """The facts that a view reads of a kernel, as text."""
    assert _work is not None
    artifacts, view, disassemble, texts = _work
    return _facts_text(artifacts[index], view, disassemble, texts)


def _facts_text(artifact: Artifact, view: View, disassemble: Disassemble | None, texts: TextCache) -> bytes:
    source = FactSource(artifact, b"", disassemble, texts)
    view(KernelFacts.on_demand(source, artifact=artifact))
    source.let_go()
    return source.text()


_ = kernel_reading  # imported for the processes that inherit it
