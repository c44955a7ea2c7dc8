"""`inspect-kernel watch CACHE`: show kernels as a program compiles them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from artifact_inspector.cli import _options as options
from artifact_inspector.cli._app import command
from artifact_inspector.cli._output import write_line
from artifact_inspector.errors import CacheError, UsageError

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts, View

MAX_PAUSE = 3600.0
"""Longest pause between two polls, in seconds; `time.sleep` refuses very large numbers."""
MIN_PAUSE_RATIO = 10
"""The pause is at least this many times the duration of a poll: a large cache is polled less often."""

Show = Callable[["Sequence[KernelFacts]"], None]


@command()
def watch(
    cache: options.CacheDirectory = None,
    all: bool = options.option("--all", "Show the kernels that are already in the cache first.", False),
    idle: float | None = options.option("--idle SECONDS", "Stop after SECONDS without a new kernel.", None, min=0),
    every: float = options.option("--every SECONDS", "Poll the cache every SECONDS.", 0.5, min=0.01),
    json: options.Json = False,
    scheduler: str | None = options.option(
        "--scheduler ADDRESS", "Send new kernels to the workers of this Dask scheduler, which read them.", None
    ),
    no_index: options.NoIndex = False,
) -> None:
    """Show kernels as a program compiles them: a table on a terminal, one line each in a pipe."""
    from artifact_inspector.files.cache import default_directory
    from artifact_inspector.report.console import show as write_report
    from artifact_inspector.report.watch import WatchSummary

    root = (default_directory() if cache is None else cache).expanduser()
    if root.is_file():
        raise UsageError(f"{root} is a file, not a cache directory.", "Give the directory that contains it.")
    started, kernels_so_far = time.monotonic(), []
    with _make_display(root, json=json) as (view, show):
        try:
            for kernels in _new_kernels(root, view, every, idle, scheduler, skip_existing=not all, index=not no_index):
                kernels_so_far += kernels
                show(kernels_so_far)
        except KeyboardInterrupt:  # the usual way to stop watching
            pass
    if not json:
        write_report(WatchSummary(kernels_so_far, time.monotonic() - started), sys.stdout)


def _new_kernels(
    root: Path,
    view: View | None,
    every: float,
    idle: float | None,
    scheduler: str | None,
    *,
    skip_existing: bool,
    index: bool,
) -> Iterator[list[KernelFacts]]:
    """The new kernels of each poll, until no kernel arrives for `idle` seconds."""
    from artifact_inspector.cli._loading import cached_lookup
    from artifact_inspector.facts.fact_index import read_kernels
    from artifact_inspector.files.polling import CachePoller

    arrivals = CachePoller(root, skip_existing=skip_existing)
    lookup = replace(cached_lookup(None, index=index), scheduler=scheduler, sends_files=True)
    last_change = time.monotonic()
    while True:
        poll_start = time.monotonic()
        artifacts = arrivals.poll()
        poll_seconds = time.monotonic() - poll_start
        if artifacts:
            try:
                kernels = list(read_kernels(artifacts, view, lookup))
            except CacheError as error:
                if lookup.scheduler is None:
                    raise
                write_line(f"{error.message} New kernels are read here.", sys.stderr)
                lookup = replace(lookup, scheduler=None)
                kernels = list(read_kernels(artifacts, view, lookup))
            yield kernels
        if artifacts or arrivals.has_pending_changes:
            last_change = time.monotonic()
        elif idle is not None and time.monotonic() - last_change >= idle:
            return
        time.sleep(min(max(every, MIN_PAUSE_RATIO * poll_seconds), MAX_PAUSE))


@contextmanager
def _make_display(root: Path, *, json: bool) -> Iterator[tuple[View | None, Show]]:
    """The view that is read of each kernel, and a function that prints all kernels so far."""
    from artifact_inspector.report.cache_report import CacheReport

    if json:
        yield None, _print_each_once(lambda kernel: _as_json(root, kernel))
    elif not sys.stdout.isatty():
        from artifact_inspector.report.watch import line_of

        yield CacheReport.view, _print_each_once(line_of)
    else:
        from rich.live import Live

        from artifact_inspector.report.console import Printable, make_console
        from artifact_inspector.report.watch import WatchReport

        with Live(Printable(WatchReport((), str(root))), console=make_console(sys.stdout), auto_refresh=False) as live:
            yield (
                CacheReport.view,
                lambda kernels: live.update(Printable(WatchReport(kernels, str(root))), refresh=True),
            )


def _print_each_once(format_kernel: Callable[[KernelFacts], str]) -> Show:
    """A function that prints one line for each kernel it has not printed yet."""
    from artifact_inspector.report.console import write

    count = 0

    def show(kernels: Sequence[KernelFacts]) -> None:
        nonlocal count
        for kernel in kernels[count:]:
            write(f"{format_kernel(kernel)}\n", sys.stdout)
        count = len(kernels)

    return show


def _as_json(root: Path, kernel: KernelFacts) -> str:
    from artifact_inspector.report.json import as_text
    from artifact_inspector.report.json.cache import WatchedDocument, kernel_document

    document = WatchedDocument(cache=root, kernel=kernel_document(kernel))
    return as_text(document, sys.stdout.encoding, indent=None).rstrip("\n")
