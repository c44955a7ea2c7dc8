"""A progress bar on standard error for work that takes longer than a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_SECONDS = 1.0
"""Seconds before anything is shown."""
_BAR_COLUMNS, _MIN_NAME = 64, 16
"""Columns that the bar takes besides the name, and least columns of the name."""


@contextmanager
def progress_bar(total: int | Callable[[], int], verb: str) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each item before its work starts.

    Args:
        total: the number of items, or a function that returns it once it is known.

    Nothing is shown in the first second, or if standard error is not a terminal.
    """
    started = time.monotonic()
    started_items = 0
    bar: Progress | None = None
    task: TaskID | None = None

    def advance(name: str) -> None:
        nonlocal started_items, bar, task
        if bar is None and time.monotonic() - started > DELAY_SECONDS and sys.stderr.isatty():
            bar, task = _start(verb)
        if bar is not None and task is not None:
            item_count = total if isinstance(total, int) else total()
            room = max(bar.console.width - _BAR_COLUMNS, _MIN_NAME)
            bar.update(task, completed=started_items, total=item_count, name=name[:room])
        started_items += 1

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _start(verb: str) -> tuple[Progress, TaskID]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from artifact_inspector.report.console import make_console

    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[name]}", markup=False),
        console=make_console(sys.stderr),
        transient=True,
    )
    task = bar.add_task(verb, total=None, name="")
    bar.start()
    return bar, task
