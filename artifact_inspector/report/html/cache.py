"""The page of a cache: counts, a table of kernels, and a detail page for each kernel."""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Cache
from artifact_inspector.report.html.kernel import KernelView, make_detail
from artifact_inspector.report.html.table import kernel_table, tallies
from artifact_inspector.report.html.table_page import DetailPage, TablePage, name_details, render_pages
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms


def cache_page(cache: Cache, kernels: Sequence[KernelFacts], views: Sequence[KernelView]) -> str:
    """The HTML of a cache: a single kernel's page, a table with detail pages, or the table only.

    Args:
        kernels: the kernels to show.
        views: their detail pages; empty for the table only.
    """
    compiled = [Compiled(kernel.artifact, kernel.program) for kernel in kernels]
    labels = label_forms(compiled, find_varying(cache.entries))
    details = make_details(kernels, labels, views)
    is_single = len(kernels) == 1 and bool(views)
    count = f"{len(kernels)} {plural('kernel', len(kernels))}"
    book = TablePage(
        kernels[0].artifact.display_name if is_single else f"{count} in {cache.container or cache.root.name}",
        f"{count} in {cache.title}",
        tallies=tallies(kernels),
        table=kernel_table(kernels, [leaf.id for leaf in details] or [""] * len(kernels), labels),
        problems=tuple(f"{problem.path}: {problem.problem}" for problem in cache.problems),
    )
    return render_pages(book, details, is_single=is_single)


def make_details(
    kernels: Sequence[KernelFacts], labels: Sequence[str], views: Sequence[KernelView]
) -> list[DetailPage]:
    """A detail page for each view."""
    names = name_details([kernel.artifact.hash for kernel in kernels])
    return [make_detail(*arguments) for arguments in zip(views, names, labels, strict=False)]
