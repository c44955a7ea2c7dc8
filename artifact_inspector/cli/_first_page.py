"""The first rows of a large cache on a terminal, while the others are read.

A list is sorted by cost, so its first row needs every kernel: half a minute for 10,000.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Group
from rich.text import Text

from artifact_inspector.facts.fact_index import ReadOptions, read_kernels
from artifact_inspector.files.cache import open_first
from artifact_inspector.report.cache_report import CacheReport
from artifact_inspector.report.console import show

FEWEST_DIRECTORIES = 1000
_PAGE = 12


def print_first_page(path: Path | None) -> None:
    """Print kernels of the first directories, in the order of their names, to standard error, a terminal."""
    first = open_first(path, FEWEST_DIRECTORIES, _PAGE)
    if first is None or not first[0].entries:
        return
    cache, count = first
    kernels = list(read_kernels(cache.entries, CacheReport.view, ReadOptions(cores=1)))
    heading = Text(f"The first {_PAGE} of {count:,} directories, by name; the list by cost follows.\n", "dim")
    show(Group(heading, CacheReport(cache, kernels, is_narrowed=False, is_sorted=True)), sys.stderr)
