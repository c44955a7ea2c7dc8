"""HTML pages: collect what they show while the files of a kernel are available, and write them."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

from artifact_inspector.cli._loading import OpenedKernels, cached_lookup, has_facts
from artifact_inspector.cli._output import write_line
from artifact_inspector.facts.fact_index import read_kernels
from artifact_inspector.facts.kept_diagnosis import attach, read_kept_diagnoses
from artifact_inspector.facts.kernel import KernelFacts, read_everything
from artifact_inspector.files.index import index_opener
from artifact_inspector.files.sources import read_python_source
from artifact_inspector.files.writer import write_text
from artifact_inspector.report.html import MAX_DETAILS, KernelView, ReadSource, Sources, view_kernel, view_row
from artifact_inspector.report.progress import progress_bar


def view_kernels(
    opened: OpenedKernels, *, index: bool = True, directory: Path | None = None
) -> tuple[list[KernelFacts], list[KernelView]]:
    """Kernels, and what the page of each shows; no pictures and code for more than `MAX_DETAILS` kernels.

    Args:
        directory: of the source files; the working directory if None.
    """
    artifacts, disassemble = opened.artifacts, opened.disassemble
    if len(artifacts) > MAX_DETAILS:
        return list(opened.inspect(_view_row, index=index, packs=True)), []
    views: list[KernelView] = []
    read_file = local_sources(directory)
    diagnoses = read_kept_diagnoses(artifacts, index_opener(lambda notice: None)) if index else {}

    def view(kernel: KernelFacts) -> None:
        attach(kernel, diagnoses)
        read_everything(kernel)
        views.append(view_kernel(kernel, Sources(read_file), disassemble))

    with progress_bar(len(artifacts), "reading") as advance:
        lookup = cached_lookup(disassemble, lambda artifact: advance(artifact.display_name), index=index)
        # the views keep objects that cannot come from another process
        return list(read_kernels(artifacts, view, replace(lookup, cores=1))), views


def _view_row(kernel: KernelFacts) -> None:
    view_row(kernel)
    has_facts(kernel)


def local_sources(directory: Path | None) -> ReadSource:
    """A reader of source files below a directory; the working directory if None."""
    return partial(read_python_source, root=directory or Path.cwd())


def write_page(out: Path, page: str) -> None:
    """Write a page, and print its size on standard error."""
    write_text(out, page)
    write_line(f"{out}: {len(page.encode()) / 1e6:.1f} MB", sys.stderr)
