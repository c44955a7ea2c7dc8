"""The page of a cache: what there is of each kind, every kernel in a row, and each kernel behind its row."""

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
    """One file: of a single kernel its page, of several a table with their pages, of many the table.

    Args:
        kernels: those to show.
        views: of each, what its own page shows; none for the table alone.
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
    """A leaf for each view."""
    names = name_leaves([kernel.artifact.hash for kernel in kernels])
    return [leaf_of(*each) for each in zip(views, names, labels, strict=False)]
