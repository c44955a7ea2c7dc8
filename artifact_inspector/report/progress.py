"""Progress of long work on standard error: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from artifact_inspector.report.console import make_console, write_lines

if TYPE_CHECKING:
    from rich.progress import Progress

DELAY_SECONDS = 1.0
"""Seconds before a bar is shown."""
LINE_SECONDS = 20.0
"""Seconds between two lines where standard error is no terminal."""


@contextmanager
def progress_bar(
    total: int | Callable[[], int], verb: str, *, is_streamed: bool = False
) -> Iterator[Callable[[str], None]]:
    """A function to call with the name of each item before its work starts.

    Args:
        total: the number of items, or a function that returns it once it is known.
        is_streamed: results are printed meanwhile. A terminal shows no bar, unless they are written to a file.

    A terminal shows a bar after a second. A pipe gets a line every 20 seconds: logs and agents see that work goes on.
    """
    shown_at = time.monotonic()
    started_items = 0
    bar: Progress | None = None

    def advance(name: str) -> None:
        nonlocal started_items, bar, shown_at
        item_count = total if isinstance(total, int) else total()
        seconds = time.monotonic() - shown_at
        is_terminal = sys.stderr.isatty()
        if bar is None and seconds > DELAY_SECONDS and is_terminal and not (is_streamed and not _writes_to_file()):
            bar = _start(verb)
        if bar is not None:
            room = max(bar.console.width - 64, 16)  # the bar and the count take 64 columns
            bar.update(bar.task_ids[0], completed=started_items, total=item_count, name=name[:room])
        elif seconds > LINE_SECONDS and not is_terminal:
            shown_at += seconds
            write_lines(f"{verb} {started_items + 1:,} of {item_count:,}: {name}\n", sys.stderr)
        started_items += 1

    try:
        yield advance
    finally:
        if bar is not None:
            bar.stop()


def _writes_to_file() -> bool:
    """Whether standard output is a file, where no bar is in the way of what is printed."""
    return stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)


def _start(verb: str) -> Progress:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    text, name = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[name]"))
    bar = Progress(text, BarColumn(), MofNCompleteColumn(), name, console=make_console(sys.stderr), transient=True)
    bar.add_task(verb, total=None, name="")
    bar.start()
    return bar
