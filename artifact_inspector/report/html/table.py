"""Kernels as a table to sort, filter and group: columns from the vocabulary, cells as values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings import find_findings
from artifact_inspector.findings.limit import find_first
from artifact_inspector.report.rows import Row, rows_of
from artifact_inspector.vocabulary.fact import Absent, Value
from artifact_inspector.vocabulary.rows import columns, figure_of

NOT_KNOWN = "?"
"""A cell whose value is not known; an empty one says that there is none."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column."""

    key: str
    """What a filter calls it."""
    heading: str
    unit: str
    """As its heading says it on request."""
    is_number: bool
    """Shaded by how large it is among the others."""
    is_group: bool = False
    """Rows can be put together by it."""
    is_long: bool = False
    """Its cells hold sentences."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row."""

    id: str
    """What the page opens when it is chosen; empty for nothing."""
    cells: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """What the page's script shows as a table."""

    caption: str
    columns: tuple[Column, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Tally:
    """How many kernels there are of each kind, most first."""

    key: str
    """The column that tells."""
    title: str
    counts: tuple[tuple[str, int], ...]

    @property
    def is_same(self) -> bool:
        """True where it is the same of all, which no row then has to repeat."""
        return self.key in _ONCE and len(self.counts) == 1


_ONCE = ("target", "triton")


def kernel_table(kernels: Sequence[KernelFacts], ids: Sequence[str], labels: Sequence[str]) -> Table:
    """A line for each kernel.

    Args:
        ids: what the page calls each; empty for one that it does not show.
        labels: of their forms.
    """
    rows = rows_of(kernels, labels)
    facts = columns()
    heads = [Column(*words, is_number=False, is_group=name in _GROUPS) for name, words in _WORDS.items()]
    figures = [
        Column(fact.column.name, fact.column.heading, fact.column.unit, is_number=True)
        for fact in facts
        if fact.column is not None
    ]
    lines = [
        Line(
            name,
            (*_words(row, label, kernel), *(_cell(figure_of(fact, kernel)) for fact in facts)),
        )
        for name, row, label, kernel in zip(ids, rows, labels, kernels, strict=True)
    ]
    return _without_empty(Table("kernels", (*heads, *figures), tuple(lines)))


_WORDS = {
    "kernel": ("kernel", "kernel", ""),
    "form": ("form", "form", "tile, type, warps, stages, and what else tells it from others"),
    "hash": ("hash", "hash", "as much of it as tells kernels of one name apart"),
    "target": ("target", "target", ""),
    "triton": ("triton", "Triton", "the version that compiled it"),
    "verdict": ("verdict", "verdict", "how its loads stand to its computes in the last stage"),
    "changed": ("changed", "changed at", "the stage where the order of loads and computes changed first"),
    "limit": ("limit", "first to look at", "the finding that costs most"),
    "findings": ("findings", "findings", "codes, the decisive first"),
    "state": ("state", "state", ""),
}
_GROUPS = frozenset({"kernel", "form", "target", "triton", "verdict", "limit"})


def _words(row: Row, label: str, kernel: KernelFacts) -> tuple[Value, ...]:
    found = find_findings(kernel)
    limit = find_first(found)
    return (
        row.name,
        label,
        row.hash,
        row.target,
        row.triton,
        str(row.verdict),
        row.changed,
        "" if limit is None else limit.name,
        tuple(dict.fromkeys(finding.code for finding in found)),
        row.state,
    )


def _cell(value: Value | Absent) -> Value:
    if value is Absent.ABSENT:
        return ""
    return NOT_KNOWN if value is None else value


def _without_empty(table: Table) -> Table:
    """Without columns that say nothing of any kernel, or the same target or version of all."""
    kept = [
        at for at, column in enumerate(table.columns) if _tells(column, [x.cells[at] for x in table.lines])
    ]
    return Table(
        table.caption,
        tuple(table.columns[at] for at in kept),
        tuple(Line(line.id, tuple(line.cells[at] for at in kept)) for line in table.lines),
    )


def _tells(column: Column, cells: Sequence[Value]) -> bool:
    told = any(cell not in ("", ()) for cell in cells)
    return told and (column.key not in _ONCE or len(set(cells)) > 1)


def tallies(kernels: Sequence[KernelFacts]) -> tuple[Tally, ...]:
    """What there is of each kind in a cache."""
    findings = Counter(
        kind for kernel in kernels for kind in {(one.code, one.name): one for one in find_findings(kernel)}
    )
    return (
        _tally("target", "targets", (str(x.artifact.target or "unknown") for x in kernels)),
        _tally("triton", "Triton", (str(x.artifact.triton_version or "unknown") for x in kernels)),
        _tally("verdict", "verdicts", (str(kernel.verdict or "none") for kernel in kernels)),
        Tally(
            "findings",
            "findings",
            tuple((f"{code} {name}", count) for (code, name), count in findings.most_common()),
        ),
    )


def _tally(key: str, title: str, words: Iterable[str]) -> Tally:
    return Tally(key, title, tuple(Counter(words).most_common()))
