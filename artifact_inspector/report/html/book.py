"""A page with a table whose rows open detail pages: a cache, two caches, the variants of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from artifact_inspector.report.html.code import Code
from artifact_inspector.report.html.page import data, packed, page
from artifact_inspector.report.html.table import Table, Tally

MOST_LEAVES = 40
"""Most kernels with detail pages; with more kernels, the page has the table only."""
DIGITS = 12
"""Characters of a hash in the id of a detail page."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The detail page of a row."""

    id: str
    markup: Markup
    code: Code


@dataclass(frozen=True, slots=True)
class Aside:
    """A collapsible list below the table."""

    head: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Book:
    """The content of a page with a table."""

    title: str
    heading: str
    sentences: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()
    table: Table | None = None
    asides: tuple[Aside, ...] = ()
    problems: tuple[str, ...] = ()
    pivot: object = None
    """The pivot table of variants; None for none."""


def bind(book: Book, leaves: Sequence[Leaf], *, alone: bool = False) -> str:
    """The HTML of the page.

    Args:
        alone: show the only detail page without the table.
    """
    parts = [data("about", {"leaves": [leaf.id for leaf in leaves], "alone": alone})]
    parts += [] if book.table is None else [data("table", book.table)]
    parts += [] if book.pivot is None else [data("pivot", book.pivot)]
    for leaf in leaves:
        parts += [packed(f"page-{leaf.id}", str(leaf.markup)), packed(f"code-{leaf.id}", leaf.code)]
    return page("book.html", book.title, book=book, shows=bool(leaves), parts=parts)


def name_leaves(hashes: Sequence[str]) -> list[str]:
    """The ids of detail pages: short hashes; copies of one entry are numbered.

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
