"""The page of a cache: what there is of each kind, every kernel in a row, and each kernel behind its row."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.cache import Cache
from artifact_inspector.report.html.kernel import lay_out, view_kernel
from artifact_inspector.report.html.page import data, packed, page
from artifact_inspector.report.html.sources import ReadSource, Sources
from artifact_inspector.report.html.table import kernel_table, tallies
from artifact_inspector.report.words import plural
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in

__all__ = ["MOST_SHOWN", "cache_page"]

MOST_SHOWN = 40
"""Kernels whose own pages stand in a page; of more, it is the table alone."""
DIGITS = 12
"""Of a hash, in what a page calls a kernel."""


def cache_page(
    cache: Cache, kernels: Sequence[KernelFacts], read: ReadSource, disassemble: Disassemble | None = None
) -> str:
    """One file: of a single kernel its page, of several a table with their pages, of many the table.

    Args:
        kernels: those to show.
        read: gives the text of a file of the user's code.
    """
    names = _names(kernels)
    shows = len(kernels) <= MOST_SHOWN
    labels = label_forms(
        [Compiled(kernel.artifact, kernel.program) for kernel in kernels], vary_in(cache.entries)
    )
    parts: list[Markup] = []
    if shows:
        for kernel, name, label in zip(kernels, names, labels, strict=True):
            view = view_kernel(kernel, name, label, Sources(read), disassemble)
            parts += [packed(f"page-{name}", str(lay_out(view))), packed(f"code-{name}", view.code)]
    table = kernel_table(kernels, names if shows else [""] * len(kernels), labels)
    count = f"{len(kernels)} {plural('kernel', len(kernels))}"
    alone = len(kernels) == 1
    return page(
        "cache.html",
        kernels[0].artifact.display_name if alone else f"{count} in {cache.root.name}",
        heading=f"{count} in {cache.root}",
        tallies=tallies(kernels),
        problems=[f"{found.path}: {found.problem}" for found in cache.problems],
        shows=shows,
        parts=[
            data("table", table),
            data("about", {"kernels": names if shows else [], "alone": alone}),
            *parts,
        ],
    )


def _names(kernels: Sequence[KernelFacts]) -> list[str]:
    """What a page calls each kernel: its hash, shortly; copies of one entry are numbered."""
    seen: dict[str, int] = {}
    names = []
    for kernel in kernels:
        name = "".join(c for c in kernel.artifact.hash if c.isalnum() and c.isascii())[:DIGITS] or "kernel"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
