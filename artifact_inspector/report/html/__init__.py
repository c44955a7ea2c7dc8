"""HTML reports: one self-contained file, without network or server.

Python collects the content from facts and rows of the vocabulary; templates only lay it out. Text from a
cache is not trusted: templates escape it, and scripts read it as JSON.
"""

from __future__ import annotations

from artifact_inspector.report.html.kernel import KernelView, make_detail, view_kernel
from artifact_inspector.report.html.pages import cache_page, corpus_page, matrix_page, view_row
from artifact_inspector.report.html.sources import NO_SOURCES, ReadSource, Sources
from artifact_inspector.report.html.table_page import MAX_DETAILS, name_details

__all__ = [
    "MAX_DETAILS", "NO_SOURCES", "KernelView", "ReadSource", "Sources", "cache_page", "corpus_page", "make_detail",
    "matrix_page", "name_details", "view_kernel", "view_row",
]  # fmt: skip
