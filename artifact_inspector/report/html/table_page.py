"""A page with a table of kernels to sort, filter and group, whose rows open detail pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.findings.limit import find_first
from artifact_inspector.report.html.code import LinkedCode
from artifact_inspector.report.html.rendering import compressed_element, data_element, render_page
from artifact_inspector.report.kernel_rows import Cells, make_rows
from artifact_inspector.vocabulary.fact import Absent, Direction, Value
from artifact_inspector.vocabulary.rows import columns, figure_of

UNKNOWN_CELL = "?"
"""A cell with an unknown value; an empty cell means that there is none."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column."""

    key: str
    """Name of the column in filters."""
    heading: str
    unit: str
    """Unit or explanation, shown as a tooltip of the heading."""
    is_number: bool
    """True for numbers."""
    is_group: bool = False
    """True if rows can be grouped by it."""
    is_long: bool = False
    """True if its cells hold sentences."""
    worse: str = ""
    """`more` or `less`: which numbers are worse, and therefore shaded; empty if neither."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One row."""

    id: str
    """Id of its detail page; empty for none."""
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class TableData:
    """A table that the page's script shows."""

    caption: str
    columns: tuple[TableColumn, ...]
    lines: tuple[TableRow, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of kernels for each value of a column, most frequent first."""

    key: str
    """Key of the column."""
    title: str
    counts: tuple[tuple[str, int], ...]

    @property
    def is_same(self) -> bool:
        """True if all kernels have the same value, so that rows need not repeat it."""
        return self.key in _SHARED_COLUMNS and len(self.counts) == 1


_SHARED_COLUMNS = ("target", "triton")


def kernel_table(kernels: Sequence[KernelFacts], ids: Sequence[str], labels: Sequence[str]) -> TableData:
    """A line for each kernel. `ids`: ids of their detail pages; empty for none. `labels`: of their variants."""
    rows = make_rows(kernels, labels)
    heads = [
        TableColumn(*definition, is_number=False, is_group=name in _GROUP_COLUMNS)
        for name, definition in _TEXT_COLUMNS.items()
    ]
    figures = [
        TableColumn(fact.column.name, fact.column.heading, fact.column.unit, True, worse=WORSE[fact.direction])
        for fact in columns()
        if fact.column is not None
    ]
    lines = [
        TableRow(name, (*_text_cells(row, label, kernel), *figure_cells(kernel)))
        for name, row, label, kernel in zip(ids, rows, labels, kernels, strict=True)
    ]
    return _drop_empty_columns(TableData("kernels", (*heads, *figures), tuple(lines)))


def figure_cells(kernel: KernelFacts) -> tuple[Value, ...]:
    """The cells with figures of the line of a kernel."""
    return kernel.derive("figures", lambda: tuple(_cell(figure_of(fact, kernel)) for fact in columns()))


_TEXT_COLUMNS = {
    "kernel": ("kernel", "kernel", ""),
    "variant": ("variant", "variant", "tile, data type, warps, num_stages, other constants that differ"),
    "hash": ("hash", "hash", "shortest prefix that distinguishes kernels of one name"),
    "target": ("target", "target", ""),
    "triton": ("triton", "Triton", "version that compiled it"),
    "verdict": ("verdict", "verdict", "order of loads and computes in the last stage"),
    "changed": ("changed", "changed at", "first stage that changed the order of loads and computes"),
    "limit": ("limit", "look at first", "finding with the largest cost"),
    "findings": ("findings", "findings", "codes, the most important first"),
    "state": ("state", "state", ""),
}
_GROUP_COLUMNS = frozenset({"kernel", "variant", "target", "triton", "verdict", "limit"})

WORSE = {Direction.LESS_IS_BETTER: "more", Direction.MORE_IS_BETTER: "less", Direction.NEUTRAL: ""}
"""Which numbers of a column are worse; empty if neither."""


def _text_cells(row: Cells, label: str, kernel: KernelFacts) -> tuple[Value, ...]:
    findings = find_findings(kernel)
    limit = find_first(findings)
    name, digest, target, triton, verdict, changed, state = (
        str(row[heading]) for heading in ("kernel", "hash", "target", "Triton", "verdict", "changed at", "state")
    )
    codes = tuple(dict.fromkeys(finding.code for finding in findings))
    return name, label, digest, target, triton, verdict, changed, "" if limit is None else limit.name, codes, state


def _cell(value: Value | Absent) -> Value:
    if value is Absent.ABSENT:
        return ""
    return UNKNOWN_CELL if value is None else value


def _drop_empty_columns(table: TableData) -> TableData:
    kept_columns = [
        at for at, column in enumerate(table.columns) if _is_informative(column, [x.cells[at] for x in table.lines])
    ]
    return TableData(
        table.caption,
        tuple(table.columns[at] for at in kept_columns),
        tuple(TableRow(line.id, tuple(line.cells[at] for at in kept_columns)) for line in table.lines),
    )


def _is_informative(column: TableColumn, cells: Sequence[Value]) -> bool:
    return any(cell not in ("", ()) for cell in cells) and (column.key not in _SHARED_COLUMNS or len(set(cells)) > 1)


def tallies(kernels: Sequence[KernelFacts]) -> tuple[Tally, ...]:
    """The number of kernels by target, version, verdict and finding."""
    findings = Counter(
        kind
        for kernel in kernels
        for kind in {(finding.code, finding.name): finding for finding in find_findings(kernel)}
    )
    return (
        _tally("target", "targets", (str(x.artifact.target or "unknown") for x in kernels)),
        _tally("triton", "Triton", (str(x.artifact.triton_version or "unknown") for x in kernels)),
        _tally("verdict", "verdicts", (str(kernel.verdict or "none") for kernel in kernels)),
        Tally(
            "findings", "findings", tuple((f"{code} {name}", count) for (code, name), count in findings.most_common())
        ),
    )


def _tally(key: str, title: str, values: Iterable[str]) -> Tally:
    return Tally(key, title, tuple(Counter(values).most_common()))


MAX_DETAILS = 40
"""Most kernels with pictures and code; with more, a page has the findings and the facts of its row."""
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
    findings: Mapping[str, object] = field(default_factory=dict)
    """Id of a row without a detail page → its findings."""


def render_pages(content: TablePage, details: Sequence[DetailPage], *, is_single: bool = False) -> str:
    """The HTML of the page. `is_single`: show the only detail page without the table."""
    data_elements = [
        data_element("about", {"leaves": [x.id for x in details], "alone": is_single, "brief": bool(content.findings)})
    ]
    data_elements += [] if content.table is None else [compressed_element("table", content.table)]
    data_elements += [] if content.pivot is None else [data_element("pivot", content.pivot)]
    if content.findings:
        data_elements.append(compressed_element("findings", content.findings))
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
