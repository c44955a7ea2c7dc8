"""Launches in order, the fastest first, with the terms that put them there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        for message, labels in _by_message(self.refused).items():
            more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
            yield Text(f"not compiled: {labels[0]}{more}: {message}")
        yield from _notes(self.found)
        yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")


_KEY = (
    "a ranking, not a forecast: the score is the cost over that of the first, on a GPU with nothing else to "
    "do. Terms are shares of it: units kept busy (issue, alu, fma, xu, lsu, tensor), traffic (l2, dram), the "
    "launch of CTAs, and path: waves × one CTA on its own. Time the first five."
)


def _contest(found: Sequence[Ranked]) -> Iterator[Table | Text]:
    """The launches of one problem, the best first."""
    scored = [row for row in found if row.score is not None]
    if scored:
        yield _table(scored)
        yield Text(_spread(scored))
    for row in found:
        if not row.fits:
            yield Text(f"out: {_name(row)}: an SM cannot hold one CTA of it, so the launch would fail")
        elif row.score is None:
            yield Text(f"not ranked: {_name(row)}: it depends on {', '.join(row.unknown)}")


def _table(rows: Sequence[Ranked]) -> Table:
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
            _name(row),
            row.binding or "",
            ", ".join(told),
            str(row.blocks),
            str(row.waves),
        )
    return table


def _name(row: Ranked) -> str:
    return row.label or row.hash[:12]


def _spread(rows: Sequence[Ranked]) -> str:
    first, last = rows[0].score or 1.0, rows[-1].score or 1.0
    counted = "1 launch" if len(rows) == 1 else f"{len(rows)} launches"
    close = sum(1 for row in rows if (row.score or 0.0) <= 1.05 * first)
    near = f"; {close} within 5 % of the first" if close > 1 else ""
    return f"{counted}, spread {last / first:.1f}×{near}"


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
