"""One function for many values, on as many processors as there are."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from artifact_inspector.errors import InspectorError

Found = TypeVar("Found")

_job: Callable[[int], Any] | None = None


def map_forked(function: Callable[[int], Found], numbers: Sequence[int], processors: int) -> Iterator[Found]:
    """What a function makes of each number, as they come, by processes that are forked from this one.

    Args:
        function: may be a closure: a fork has it already.
        numbers: to call it with, in this order.
        processors: processes at a time; with one, or where nothing can be forked, this process does it.

    Raises:
        InspectorError: the function did.
    """
    global _job
    if processors < 2 or len(numbers) < 2 or "fork" not in multiprocessing.get_all_start_methods():
        yield from map(function, numbers)
        return
    _job = function
    try:
        with multiprocessing.get_context("fork").Pool(min(processors, len(numbers))) as pool:
            for found, error in pool.imap_unordered(_run, numbers):
                if error is not None:
                    raise error
                yield found
    finally:
        _job = None


def _run(number: int) -> tuple[Any, InspectorError | None]:
    assert _job is not None
    try:
        return _job(number), None
    except InspectorError as error:
        return None, error
