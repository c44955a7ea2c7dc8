"""Runs steps in a forked process that ends at a time limit, and keeps the results of those that ended before."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

from artifact_inspector.files.lifetime import kill_with_parent

StepResult = TypeVar("StepResult")


def collect_within(seconds: float, steps: Callable[[], Iterator[StepResult]]) -> tuple[list[StepResult], bool]:
    """The results of the steps that ended in time, and whether all did.

    A compiler and a simulation cannot be interrupted, but their process can. Without fork there is no limit.

    Args:
        steps: its results are pickled.
    """
    if "fork" not in multiprocessing.get_all_start_methods() or multiprocessing.current_process().daemon:
        return list(steps()), True
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_send_results, args=(sender, steps, os.getpid()))
    process.start()
    sender.close()
    results: list[StepResult] = []
    deadline = time.monotonic() + seconds
    try:
        while receiver.poll(max(0.0, deadline - time.monotonic())):
            results.append(receiver.recv())
    except EOFError:
        process.join()
    finally:
        process.kill()
        process.join()
        receiver.close()
    return results, process.exitcode == 0


def _send_results(sender: Connection, steps: Callable[[], Iterator[object]], parent: int) -> None:
    kill_with_parent(parent)
    for result in steps():
        sender.send(result)
