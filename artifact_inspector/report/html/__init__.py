"""Reports to look at: one HTML file that opens from the disk, with no network and no server.

What a page says is put together here from facts and rows of the vocabulary; templates lay it out, and say
nothing of their own. Whatever a cache holds is text: templates escape it, and what scripts read is JSON.
"""

from __future__ import annotations

from artifact_inspector.report.html.book import MOST_LEAVES, name_leaves
from artifact_inspector.report.html.cache import cache_page
from artifact_inspector.report.html.corpus import corpus_page
from artifact_inspector.report.html.kernel import KernelView, leaf_of, view_kernel
from artifact_inspector.report.html.matrix import matrix_page
from artifact_inspector.report.html.sources import NO_SOURCES, ReadSource, Sources

__all__ = [
    "MOST_LEAVES",
    "NO_SOURCES",
    "KernelView",
    "ReadSource",
    "Sources",
    "cache_page",
    "corpus_page",
    "leaf_of",
    "matrix_page",
    "name_leaves",
    "view_kernel",
]
