"""A page with a table on top and a leaf behind each row: of one cache, of two, of the forms of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from artifact_inspector.report.html.code import Code
from artifact_inspector.report.html.page import data, packed, page
from artifact_inspector.report.html.table import Table, Tally

MOST_LEAVES = 40
"""Kernels whose own pages stand in a page; of more, it is the table alone."""
DIGITS = 12
"""Of a hash, in what a page calls a kernel."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """What stands behind a row."""

    id: str
    markup: Markup
    code: Code


@dataclass(frozen=True, slots=True)
class Aside:
    """What stands below the table, a sentence with its list."""

    head: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """What a page with a table says."""

    title: str
    heading: str
    sentences: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()
    table: Table | None = None
    asides: tuple[Aside, ...] = ()
    problems: tuple[str, ...] = ()
    pivot: object = None
    """Rows × columns of one figure at a time; None for none."""


def bind(book: Book, leaves: Sequence[Leaf], *, alone: bool = False) -> str:
    """The whole page.

    Args:
        alone: there is one leaf, and it is all that the page shows.
    """
    parts = [data("about", {"leaves": [leaf.id for leaf in leaves], "alone": alone})]
    parts += [] if book.table is None else [data("table", book.table)]
    parts += [] if book.pivot is None else [data("pivot", book.pivot)]
    for leaf in leaves:
        parts += [packed(f"page-{leaf.id}", str(leaf.markup)), packed(f"code-{leaf.id}", leaf.code)]
    return page("book.html", book.title, book=book, shows=bool(leaves), parts=parts)


def name_leaves(hashes: Sequence[str]) -> list[str]:
    """What a page calls each kernel: its hash, shortly; copies of one entry are numbered.

    Example:
        >>> name_leaves(["9578fe4ce156c3ab", "9578fe4ce156c3ab", "<x>"])
        ['9578fe4ce156', '9578fe4ce156-2', 'x']
    """
    seen: dict[str, int] = {}
    names = []
    for digest in hashes:
        name = "".join(c for c in digest if c.isalnum() and c.isascii())[:DIGITS] or "kernel"
        seen[name] = seen.get(name, 0) + 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names
