"""The page of a cache: counts, a table of kernels, and a detail page for each kernel."""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Cache
from artifact_inspector.report.html.book import Book, Leaf, bind, name_leaves
from artifact_inspector.report.html.kernel import KernelView, leaf_of
from artifact_inspector.report.html.table import kernel_table, tallies
from artifact_inspector.report.words import plural
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in


def cache_page(cache: Cache, kernels: Sequence[KernelFacts], views: Sequence[KernelView]) -> str:
    """The HTML of a cache: a single kernel's page, a table with detail pages, or the table only.

    Args:
        kernels: the kernels to show.
        views: their detail pages; empty for the table only.
    """
    compiled = [Compiled(kernel.artifact, kernel.program) for kernel in kernels]
    labels = label_forms(compiled, vary_in(cache.entries))
    leaves = bind_leaves(kernels, labels, views)
    alone = len(kernels) == 1 and bool(views)
    count = f"{len(kernels)} {plural('kernel', len(kernels))}"
    book = Book(
        kernels[0].artifact.display_name if alone else f"{count} in {cache.root.name}",
        f"{count} in {cache.root}",
        tallies=tallies(kernels),
        table=kernel_table(kernels, [leaf.id for leaf in leaves] or [""] * len(kernels), labels),
        problems=tuple(f"{found.path}: {found.problem}" for found in cache.problems),
    )
    return bind(book, leaves, alone=alone)


def bind_leaves(
    kernels: Sequence[KernelFacts], labels: Sequence[str], views: Sequence[KernelView]
) -> list[Leaf]:
    """A detail page for each view."""
    names = name_leaves([kernel.artifact.hash for kernel in kernels])
    return [leaf_of(*each) for each in zip(views, names, labels, strict=False)]
