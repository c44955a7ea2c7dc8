"""Launches in order, the fastest first, with the terms that put them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.execution.timing.ranking import Ranked
from artifact_inspector.execution.timing.trying import Refused

MOST_TERMS = 5
"""Terms of a launch that are told, the largest first."""
LEAST_SHARE = 0.05
"""Of the score, below which a term is not told."""


@dataclass(frozen=True, slots=True)
class RankingReport:
    """A ranking."""

    found: Sequence[Ranked]
    refused: Sequence[Refused] = ()
    """What does not compile."""
    problems: Sequence[str] = ()
    """What each launch computes, by its place; empty where all are of one problem."""
    notes: Sequence[str] = ()
    """What of the record was not used."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        problems: dict[str, list[Ranked]] = {}
        for row in sorted(self.found, key=lambda row: row.launch) if self.problems else ():
            problems[self.problems[row.launch]] = []
        for row in self.found:
            problems.setdefault(self.problems[row.launch] if self.problems else "", []).append(row)
        for place, (problem, rows) in enumerate(problems.items()):
            if problem:
                yield Padding(Text(problem, style="bold"), (1 if place else 0, 0, 0, 0))
            yield from _contest(rows)
        yield from _refusals("not compiled", self.refused)
        yield from _notes(self.found)
        yield from (Text(note) for note in self.notes)
        if any(row.score is not None for row in self.found):
            yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")


_KEY = (
    "a ranking, not a forecast: the score is the cost over that of the first, on a GPU with nothing else to "
    "do. Terms are shares of it: units kept busy (issue, alu, fma, xu, lsu, tensor), traffic (l2, dram), the "
    "launch of CTAs, and path: waves × one CTA on its own. Time the first five."
)


def _contest(found: Sequence[Ranked]) -> Iterator[Table | Text]:
    """The launches of one problem, the best first."""
    scored = [row for row in found if row.score is not None and row.same_as is None]
    if scored:
        twins: dict[int, list[str]] = {}
        for row in found:
            if row.same_as is not None:
                twins.setdefault(row.same_as, []).append(_name(row))
        yield _table(scored, twins)
        yield Text(_spread(scored, sum(map(len, twins.values()))))
    lacking: list[Refused] = []
    for row in found:
        if not row.fits:
            yield Text(f"out: {_name(row)}: an SM cannot hold one CTA of it, so the launch would fail")
        elif row.score is None and row.same_as is None:
            lacking.append(Refused(_name(row), f"it depends on {', '.join(row.unknown)}"))
    yield from _refusals("not ranked", lacking)


def _table(rows: Sequence[Ranked], twins: Mapping[int, Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#", justify="right")
    table.add_column("score", justify="right")
    table.add_column("launch", overflow="fold")
    table.add_column("bound by")
    table.add_column("terms", overflow="fold")
    table.add_column("CTAs/SM", justify="right")
    table.add_column("waves", justify="right")
    best = rows[0].score or 1.0
    for place, row in enumerate(rows, 1):
        assert row.score is not None
        terms = sorted(row.terms.items(), key=lambda term: -term[1])[:MOST_TERMS]
        shares = [(name, cycles / row.score) for name, cycles in terms]
        told = [f"{name} {share:.0%}" for name, share in shares if share > LEAST_SHARE]
        table.add_row(
            str(place),
            f"{row.score / best:.2f}×",
            _together([_name(row), *twins.get(row.launch, ())]),
            row.binding or "",
            ", ".join(told),
            str(row.blocks),
            str(row.waves),
        )
    return table


def _name(row: Ranked) -> str:
    return row.label or row.hash[:12]


def _together(names: Sequence[str]) -> str:
    """The names of launches that are the same: `w=4 stages=2|3` where one word differs.

    Example:
        >>> _together(["w=4 stages=2", "w=4 stages=3"]), _together(["a=1 b=1", "a=2 b=2", "a=3 b=3"])
        ('w=4 stages=2|3', 'a=1 b=1 and 2 of the same code')
    """
    words = [name.split() for name in names]
    columns = [list(dict.fromkeys(column)) for column in zip(*words, strict=False)]
    alike = len({len(row) for row in words}) == 1 and sum(len(column) > 1 for column in columns) == 1
    if not alike:
        return names[0] + (f" and {len(names) - 1} of the same code" if len(names) > 1 else "")
    return " ".join(
        "|".join([column[0], *(word.partition("=")[2] for word in column[1:])]) for column in columns
    )


def _spread(rows: Sequence[Ranked], twins: int) -> str:
    first, last = rows[0].score or 1.0, rows[-1].score or 1.0
    counted = "1 launch" if len(rows) == 1 else f"{len(rows)} launches"
    counted += f", {twins} more of the same machine code" if twins else ""
    close = sum(1 for row in rows if (row.score or 0.0) <= 1.05 * first)
    near = f"; {close} within 5 % of the first" if close > 1 else ""
    return f"{counted}, spread {last / first:.1f}×{near}"


def _refusals(what: str, refused: Sequence[Refused]) -> Iterator[Text]:
    """Each reason once."""
    for message, labels in _by_message(refused).items():
        more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Text(f"{what}: {labels[0]}{more}: {message}")


def _by_message(refused: Sequence[Refused]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for label, message in refused:
        found.setdefault(message, []).append(label)
    return found


def _notes(found: Sequence[Ranked]) -> Iterator[Text]:
    lacking = [row for row in found if row.score is not None and row.unknown]
    for row in lacking[:3]:
        yield Text(f"{_name(row)}: the score lacks what depends on {', '.join(row.unknown[:3])}")
    for note in dict.fromkeys(note for row in found for note in row.notes):
        yield Text(note)
