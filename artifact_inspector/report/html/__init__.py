"""HTML reports: one self-contained file, without network or server.

Python collects the content from facts and rows of the vocabulary; templates only lay it out. Text from a
cache is not trusted: templates escape it, and scripts read it as JSON.
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
