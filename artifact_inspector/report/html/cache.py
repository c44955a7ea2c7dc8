"""The page of a cache: what there is of each kind, every kernel in a row, and each kernel behind its row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Cache
from artifact_inspector.report.html.book import MOST_LEAVES, Book, Leaf, bind, name_leaves
from artifact_inspector.report.html.kernel import leaf_of
from artifact_inspector.report.html.sources import ReadSource
from artifact_inspector.report.html.table import kernel_table, tallies
from artifact_inspector.report.words import plural
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in

__all__ = ["cache_page", "kernel_leaves"]


def cache_page(
    cache: Cache, kernels: Sequence[KernelFacts], read: ReadSource, disassemble: Disassemble | None = None
) -> str:
    """One file: of a single kernel its page, of several a table with their pages, of many the table.

    Args:
        kernels: those to show.
        read: gives the text of a file of the user's code.
    """
    compiled = [Compiled(kernel.artifact, kernel.program) for kernel in kernels]
    labels = label_forms(compiled, vary_in(cache.entries))
    leaves = list(kernel_leaves(kernels, labels, read, disassemble))
    ids = [leaf.id for leaf in leaves] or [""] * len(kernels)
    alone = len(kernels) == 1
    count = f"{len(kernels)} {plural('kernel', len(kernels))}"
    book = Book(
        kernels[0].artifact.display_name if alone else f"{count} in {cache.root.name}",
        f"{count} in {cache.root}",
        tallies=tallies(kernels),
        table=kernel_table(kernels, ids, labels),
        problems=tuple(f"{found.path}: {found.problem}" for found in cache.problems),
    )
    return bind(book, leaves, alone=alone)


def kernel_leaves(
    kernels: Sequence[KernelFacts],
    labels: Sequence[str],
    read: ReadSource,
    disassemble: Disassemble | None,
) -> Iterator[Leaf]:
    """A leaf for each kernel; none where they are too many."""
    if len(kernels) <= MOST_LEAVES:
        names = name_leaves([kernel.artifact.hash for kernel in kernels])
        for kernel, name, label in zip(kernels, names, labels, strict=True):
            yield leaf_of(kernel, name, label, read, disassemble)
