"""The ranking of launches by modelled cost, fastest first, with the terms of each score."""

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
"""Most terms of a launch that are printed, the largest first."""
LEAST_SHARE = 0.05
"""Share of the score below which a term is not printed."""


@dataclass(frozen=True, slots=True)
class RankingReport:
    """A ranking."""

    found: Sequence[Ranked]
    refused: Sequence[Refused] = ()
    """Candidates that do not compile."""
    problems: Sequence[str] = ()
    """The problem that each launch computes, by index; empty if all compute the same."""
    notes: Sequence[str] = ()
    """What was ignored in the launch record."""

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
    "The score ranks launches; it does not predict times. Measure the first five.\n"
    "score: modelled cost relative to the first launch, on an otherwise idle GPU\n"
    "terms: share of the cost for which a unit is busy (issue, alu, fma, xu, lsu, tensor, l2, dram)\n"
    "path: critical path of one CTA × waves"
)


def _contest(found: Sequence[Ranked]) -> Iterator[Table | Text]:
    """The launches of one problem, best first."""
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
            yield Text(f"cannot launch: {_name(row)}: one CTA needs more than an SM has")
        elif row.score is None and row.same_as is None:
            lacking.append(Refused(_name(row), f"unknown inputs: {', '.join(row.unknown)}"))
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
    """The names of launches with the same machine code: `w=4 stages=2|3` if one word differs.

    Example:
        >>> _together(["w=4 stages=2", "w=4 stages=3"]), _together(["a=1 b=1", "a=2 b=2", "a=3 b=3"])
        ('w=4 stages=2|3', 'a=1 b=1 and 2 identical binaries')
    """
    words = [name.split() for name in names]
    columns = [list(dict.fromkeys(column)) for column in zip(*words, strict=False)]
    alike = len({len(row) for row in words}) == 1 and sum(len(column) > 1 for column in columns) == 1
    if len(names) > 1 and not alike:
        return f"{names[0]} and {len(names) - 1} identical {_binaries(len(names) - 1)}"
    return " ".join(
        "|".join([column[0], *(word.partition("=")[2] for word in column[1:])]) for column in columns
    )


def _spread(rows: Sequence[Ranked], twins: int) -> str:
    first, last = rows[0].score or 1.0, rows[-1].score or 1.0
    counted = "1 launch" if len(rows) == 1 else f"{len(rows)} launches"
    counted += f" and {twins} identical {_binaries(twins)}" if twins else ""
    close = sum(1 for row in rows if (row.score or 0.0) <= 1.05 * first)
    near = f"; {close} within 5 % of the first" if close > 1 else ""
    return counted if len(rows) == 1 else f"{counted}; the last costs {last / first:.1f}× the first{near}"


def _binaries(count: int) -> str:
    return "binary" if count == 1 else "binaries"


def _refusals(what: str, refused: Sequence[Refused]) -> Iterator[Text]:
    """Each reason once, with the first launch and the number of others."""
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
        yield Text(f"{_name(row)}: incomplete score: {', '.join(row.unknown[:3])} unknown")
    for note in dict.fromkeys(note for row in found for note in row.notes):
        yield Text(note)
