"""Calls one function for many values in parallel processes."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from artifact_inspector.errors import CacheError, InspectorError
from artifact_inspector.files.lifetime import end_with_parent, prepare_workers

JobResult = TypeVar("JobResult")

_job: Callable[[int], Any] | None = None


def map_in_processes(
    function: Callable[[int], JobResult], numbers: Sequence[int], processors: int
) -> Iterator[JobResult]:
    """The results of a function for each number, in order of completion, from forked processes.

    Args:
        function: may be a closure: forked processes inherit it.
        numbers: its arguments, in order.
        processors: processes at a time; with one, or if fork is not available, this process runs them.

    Raises:
        CacheError: a process was killed.
        InspectorError: raised by the function.
    """
    global _job
    is_daemon = multiprocessing.current_process().daemon  # as a Dask worker is: it may start no process
    if is_daemon or processors < 2 or len(numbers) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(function, numbers)
        return
    _job = function
    try:
        fork_context = multiprocessing.get_context("fork")
        prepare_workers()
        with ProcessPoolExecutor(min(processors, len(numbers)), fork_context, end_with_parent) as pool:
            try:
                for done in as_completed([pool.submit(_run_job, number) for number in numbers]):
                    job_result, error = done.result()
                    if error is not None:
                        raise error
                    yield job_result
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    except BrokenProcessPool:
        raise CacheError(
            "A process that simulated a launch was killed.", "Memory may be too small for this many processes."
        ) from None
    finally:
        _job = None


def _run_job(number: int) -> tuple[Any, InspectorError | None]:
    assert _job is not None
    try:
        return _job(number), None
    except InspectorError as error:
        return None, error
