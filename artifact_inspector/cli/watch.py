"""`inspect-kernel watch CACHE`: show kernels as a program compiles them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from artifact_inspector.cli._app import app
from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.cli._options import CacheDirectory, Json, NoIndex
from artifact_inspector.cli._reading import recalling
from artifact_inspector.errors import UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, View

MOST_PAUSE = 3600.0
"""Longest pause between two polls, in seconds; `time.sleep` refuses very large numbers."""
SHARE = 10
"""The pause is at least this many times the duration of a poll: a large cache is polled less often."""

Show = Callable[["Sequence[KernelFacts]"], None]


@app.command()
def watch(
    cache: CacheDirectory = None,
    all: Annotated[
        bool, typer.Option("--all", metavar="", help="Show the kernels that are already in the cache first.")
    ] = False,
    idle: Annotated[
        float | None,
        typer.Option("--idle", metavar="SECONDS", help="Stop after SECONDS without a new kernel.", min=0),
    ] = None,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", help="Poll the cache every SECONDS.", min=0.01)
    ] = 0.5,
    json: Json = False,
    no_index: NoIndex = False,
) -> None:
    """Show kernels as a program compiles them: a table on a terminal, one line each in a pipe."""
    with exit_codes(json=json):
        from artifact_inspector.files.cache import default_directory

        root = (default_directory() if cache is None else cache).expanduser()
        if root.is_file():
            raise UsageError(
                f"{root} is a file, not a cache directory.", "Give the directory that contains it."
            )
        started, came = time.monotonic(), []
        with _shown(root, json=json) as (view, show):
            try:
                for kernels in _arriving(root, view, every, idle, known=not all, index=not no_index):
                    came += kernels
                    show(came)
            except KeyboardInterrupt:  # the usual way to stop watching
                pass
        if not json:
            from artifact_inspector.report.console import show as write_report
            from artifact_inspector.report.watching import WatchSummary

            write_report(WatchSummary(came, time.monotonic() - started), sys.stdout)


def _arriving(
    root: Path, view: View | None, every: float, idle: float | None, *, known: bool, index: bool
) -> Iterator[list[KernelFacts]]:
    """The new kernels of each poll, until no kernel arrives for `idle` seconds."""
    from artifact_inspector.facts.fact_index import read_kernels
    from artifact_inspector.files.arrivals import Arrivals

    arrivals, how = Arrivals(root, known=known), recalling(None, index=index)
    last = time.monotonic()
    while True:
        begun = time.monotonic()
        arrived = arrivals.look()
        took = time.monotonic() - begun
        if arrived:
            yield list(read_kernels(arrived, view, how))
        if arrived or arrivals.is_moving:
            last = time.monotonic()
        elif idle is not None and time.monotonic() - last >= idle:
            return
        time.sleep(min(max(every, SHARE * took), MOST_PAUSE))


@contextmanager
def _shown(root: Path, *, json: bool) -> Iterator[tuple[View | None, Show]]:
    """The view that is read of each kernel, and a function that prints all kernels so far."""
    from artifact_inspector.report.text import CacheReport

    if json:
        yield None, _one_by_one(lambda kernel: _as_json(root, kernel))
    elif not sys.stdout.isatty():
        from artifact_inspector.report.watching import line_of

        yield CacheReport.view, _one_by_one(line_of)
    else:
        from rich.live import Live

        from artifact_inspector.report.console import Printable, make_console
        from artifact_inspector.report.watching import WatchReport

        with Live(
            Printable(WatchReport((), str(root))), console=make_console(sys.stdout), auto_refresh=False
        ) as live:
            yield (
                CacheReport.view,
                lambda came: live.update(Printable(WatchReport(came, str(root))), refresh=True),
            )


def _one_by_one(told: Callable[[KernelFacts], str]) -> Show:
    """A function that prints one line for each kernel it has not printed yet."""
    from artifact_inspector.report.console import write

    written = 0

    def show(came: Sequence[KernelFacts]) -> None:
        nonlocal written
        for kernel in came[written:]:
            write(f"{told(kernel)}\n", sys.stdout)
        written = len(came)

    return show


def _as_json(root: Path, kernel: KernelFacts) -> str:
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.cache import kernel_document
    from artifact_inspector.report.json.watched import WatchedDocument

    document = WatchedDocument(cache=root, kernel=kernel_document(kernel))
    return as_text(document, sys.stdout.encoding, indent=None).rstrip("\n")
