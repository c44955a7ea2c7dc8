"""A page with a table whose rows open detail pages: a cache, two caches, the variants of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from artifact_inspector.report.html.code import LinkedCode
from artifact_inspector.report.html.rendering import compressed_element, data_element, render_page
from artifact_inspector.report.html.table import TableData, Tally

MAX_DETAILS = 40
"""Most kernels with detail pages; with more kernels, the page has the table only."""
ID_LENGTH = 12
"""Characters of a hash in the id of a detail page."""


@dataclass(frozen=True, slots=True)
class DetailPage:
    """The detail page of a row."""

    id: str
    markup: Markup
    code: LinkedCode


@dataclass(frozen=True, slots=True)
class ListSection:
    """A collapsible list below the table."""

    head: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TablePage:
    """The content of a page with a table."""

    title: str
    heading: str
    sentences: tuple[str, ...] = ()
    tallies: tuple[Tally, ...] = ()
    table: TableData | None = None
    asides: tuple[ListSection, ...] = ()
    problems: tuple[str, ...] = ()
    pivot: object = None
    """The pivot table of variants; None for none."""


def render_pages(content: TablePage, details: Sequence[DetailPage], *, is_single: bool = False) -> str:
    """The HTML of the page.

    Args:
        is_single: show the only detail page without the table.
    """
    data_elements = [data_element("about", {"leaves": [detail.id for detail in details], "alone": is_single})]
    data_elements += [] if content.table is None else [data_element("table", content.table)]
    data_elements += [] if content.pivot is None else [data_element("pivot", content.pivot)]
    for detail in details:
        data_elements += [
            compressed_element(f"page-{detail.id}", str(detail.markup)),
            compressed_element(f"code-{detail.id}", detail.code),
        ]
    return render_page("book.html", content.title, book=content, shows=bool(details), parts=data_elements)


def name_details(hashes: Sequence[str]) -> list[str]:
    """The ids of detail pages: short hashes; copies of one entry are numbered.

    Example:
        >>> name_details(["9578fe4ce156c3ab", "9578fe4ce156c3ab", "<x>"])
        ['9578fe4ce156', '9578fe4ce156-2', 'x']
    """
    counts: dict[str, int] = {}
    names = []
    for digest in hashes:
        name = "".join(c for c in digest if c.isalnum() and c.isascii())[:ID_LENGTH] or "kernel"
        counts[name] = counts.get(name, 0) + 1
        names.append(name if counts[name] == 1 else f"{name}-{counts[name]}")
    return names
