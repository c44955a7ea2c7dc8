"""Calls one function for many values in parallel processes."""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from statistics import median
from typing import Any, TypeVar

from artifact_inspector.errors import CacheError, InspectorError
from artifact_inspector.files.lifetime import end_with_parent, prepare_workers

JobResult = TypeVar("JobResult")

_Job = tuple[Any, InspectorError | None, float]
"""Result, error and seconds of a call."""
_job: Callable[[int], Any] | None = None


def map_in_processes(
    function: Callable[[int], JobResult], numbers: Sequence[int], processors: int, *, patience: float | None = None
) -> Iterator[JobResult]:
    """The results of a function for each number, in order of completion, from forked processes.

    Args:
        function: may be a closure: forked processes inherit it.
        numbers: its arguments, in order.
        processors: processes at a time; with one, or if fork is not available, this process runs them.
        patience: calls that take so many times the median are stopped, and have no result, if nothing else is to do.

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
        others = {*multiprocessing.active_children()}
        with ProcessPoolExecutor(min(processors, len(numbers)), fork_context, _begin_worker) as pool:
            jobs = [pool.submit(_run_job, number) for number in numbers]
            workers = {*multiprocessing.active_children()} - others
            try:
                for job_result, error in _completed(jobs, processors, patience):
                    if error is not None:
                        raise error
                    yield job_result
            finally:  # the pool's thread must end before the interpreter does, so leaving the block waits for it
                is_stopped = not all(job.done() for job in jobs)
                for job in jobs:
                    job.cancel()
                for worker in workers if is_stopped else ():
                    worker.terminate()
    except BrokenProcessPool:
        raise CacheError(
            "A process that simulated a launch was killed.", "Memory may be too small for this many processes."
        ) from None
    finally:
        _job = None


def _begin_worker() -> None:
    gc.freeze()  # a collection would copy the pages of the parent's objects
    gc.disable()
    end_with_parent()


def _completed(
    jobs: Sequence[Future[_Job]], processors: int, patience: float | None
) -> Iterator[tuple[Any, InspectorError | None]]:
    """Result and error of each job, in order of completion, without the jobs that are stopped."""
    starts, pending = [time.perf_counter()] * min(processors, len(jobs)), {*jobs}
    seconds: list[float] = []
    while pending:
        timeout = None
        if patience is not None and len(starts) == len(jobs) < 2 * len(seconds):  # the others wait for nothing else
            last_start = max(start for start, job in zip(starts, jobs, strict=True) if job in pending)
            timeout = max(0.0, last_start + patience * median(seconds) - time.perf_counter())
        done, pending = wait(pending, timeout, FIRST_COMPLETED)
        if not done:
            return
        for job in done:
            starts += [time.perf_counter()] * (len(starts) < len(jobs))
            job_result, error, took = job.result()
            seconds.append(took)
            yield job_result, error


def _run_job(number: int) -> _Job:
    assert _job is not None
    start = time.perf_counter()
    try:
        return _job(number), None, time.perf_counter() - start
    except InspectorError as error:
        return None, error, time.perf_counter() - start
