"""Runs a function on the workers of a Dask scheduler; every machine needs this package and the same paths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from artifact_inspector.errors import CacheError, InspectorError
from artifact_inspector.version import __version__

CONNECT_SECONDS = 10.0
"""Seconds to wait for a scheduler."""
JOBS_PER_THREAD = 3
"""Jobs that are handed out in advance, so that no thread waits and the scheduler keeps few."""
RETRIES = 3
"""Runs of a job that fails, on any worker; Dask itself moves the jobs of a worker that ends."""


def connect(scheduler: str, error: type[InspectorError] = CacheError) -> tuple[Any, Any]:
    """A client of a scheduler, and `as_completed`.

    Args:
        scheduler: its address, `tcp://host:8786`.
        error: what to raise if Dask is not installed, or the scheduler does not respond.
    """
    try:
        from distributed import Client, as_completed
    except ImportError:
        raise error(
            "Dask is not installed.", "Install the extra: pip install '.[dask]' in a clone of the repository."
        ) from None
    try:
        open_client: Any = Client  # the library has no types for it
        return open_client(scheduler, timeout=CONNECT_SECONDS), as_completed
    except (OSError, ValueError) as problem:
        raise error(
            f"No Dask scheduler responds at {scheduler}: {problem}.",
            "Start one with `dask scheduler`, and `dask worker` on each machine.",
        ) from problem


def map_jobs(scheduler: str, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """The number of each job with its result, or with the exception that its last try ended in; in any order.

    Raises:
        CacheError: there is no scheduler, or it ended.
    """
    client, as_completed = connect(scheduler)
    numbers: dict[Any, int] = {}
    pending = iter(enumerate(jobs))
    with closing(client):
        finished = as_completed()

        def submit(count: int) -> None:
            for number, job in islice(pending, count):
                future = client.submit(_run, __version__, function, job, pure=False, retries=RETRIES)
                numbers[future] = number
                finished.add(future)

        submit(JOBS_PER_THREAD * (sum(client.nthreads().values()) or 1))
        try:
            for future in finished:
                problem = future.exception()
                yield numbers.pop(future), future.result() if problem is None else problem
                submit(1)
        except (OSError, RuntimeError) as problem:
            raise CacheError(f"The Dask scheduler at {scheduler} ended: {problem}.", "Run the command again.") from None
        finally:
            client.cancel(list(numbers))


def _run(version: str, function: Callable[[Any], Any], job: Any) -> Any:
    if version != __version__:
        raise CacheError(f"A worker has version {__version__} of this package, the caller {version}.")
    return function(job)
