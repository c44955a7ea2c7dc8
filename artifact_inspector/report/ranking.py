"""The ranking of launches by modelled cost, fastest first, with the terms of each score."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.execution.timing.ranking import BOUND_NOTE, LATENCY_TERM, RankedLaunch
from artifact_inspector.execution.timing.variations import FailedConfiguration

MAX_TERMS = 5
"""Most terms of a launch that are printed, the largest first."""
MIN_SHARE = 0.05
"""Share of the score below which a term is not printed."""


@dataclass(frozen=True, slots=True)
class RankingReport:
    """A ranking."""

    rows: Sequence[RankedLaunch]
    failures: Sequence[FailedConfiguration] = ()
    """Candidates that do not compile."""
    problems: Sequence[str] = ()
    """The problem that each launch computes, by index; empty if all compute the same."""
    notes: Sequence[str] = ()
    """What was ignored in the launch record."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        problems: dict[str, list[RankedLaunch]] = {}
        for row in sorted(self.rows, key=lambda row: row.launch) if self.problems else ():
            problems[self.problems[row.launch]] = []
        for row in self.rows:
            problems.setdefault(self.problems[row.launch] if self.problems else "", []).append(row)
        for index, (problem, rows) in enumerate(problems.items()):
            if problem:
                yield Padding(Text(problem, style="bold"), (1 if index else 0, 0, 0, 0))
            yield from _rank_problem(rows)
        yield from _list_failures("not compiled", self.failures)
        yield from _notes(self.rows)
        yield from (Text(note) for note in self.notes)
        if any(row.score is not None for row in self.rows):
            yield Padding(Text(_KEY), (1, 0, 0, 0), style="dim")


_KEY = (
    "The score ranks launches; it does not predict times. Measure the first five.\n"
    "score: modelled cost relative to the first launch, on an otherwise idle GPU\n"
    "terms: share of the cost for which a unit is busy (issue, alu, fma, xu, lsu, tensor, l2, dram)\n"
    "latency: critical path of one CTA × waves"
)


def _rank_problem(rows: Sequence[RankedLaunch]) -> Iterator[Table | Text]:
    """The launches of one problem, best first."""
    scored = [row for row in rows if row.score is not None and row.identical_to is None]
    if scored:
        identical_binaries: dict[int, list[str]] = {}
        for row in rows:
            if row.identical_to is not None:
                identical_binaries.setdefault(row.identical_to, []).append(_name(row))
        yield _table(scored, identical_binaries)
        yield Text(_describe_spread(scored, sum(map(len, identical_binaries.values()))))
    unranked: list[FailedConfiguration] = []
    for row in rows:
        if not row.fits:
            yield Text(f"cannot launch: {_name(row)}: one CTA needs more than an SM has")
        elif row.score is None and row.identical_to is None:
            unranked.append(FailedConfiguration(_name(row), f"unknown inputs: {', '.join(row.missing_inputs)}"))
    yield from _list_failures("not ranked", unranked)


def _table(rows: Sequence[RankedLaunch], identical_binaries: Mapping[int, Sequence[str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("#", justify="right")
    table.add_column("score", justify="right")
    table.add_column("launch", overflow="fold")
    table.add_column("bound by")
    table.add_column("terms", overflow="fold")
    table.add_column("CTAs/SM", justify="right")
    table.add_column("waves", justify="right")
    best = rows[0].score or 1.0
    for position, row in enumerate(rows, 1):
        assert row.score is not None
        terms = sorted(row.terms.items(), key=lambda term: -term[1])[:MAX_TERMS]
        shares = [(_name_term(name), cycles / row.score) for name, cycles in terms]
        term_texts = [f"{name} {share:.0%}" for name, share in shares if share > MIN_SHARE]
        table.add_row(
            str(position),
            f"{'≥' if BOUND_NOTE in row.notes else ''}{row.score / best:.2f}×",
            _merge_names([_name(row), *identical_binaries.get(row.launch, ())]),
            _name_term(row.bottleneck or ""),
            ", ".join(term_texts),
            str(row.blocks),
            str(row.waves),
        )
    return table


def _name_term(term: str) -> str:
    return "latency" if term == LATENCY_TERM else term


def _name(row: RankedLaunch) -> str:
    return row.label or row.hash[:12]


def _merge_names(names: Sequence[str]) -> str:
    """The names of launches with the same machine code: `w=4 stages=2|3` if one word differs.

    Example:
        >>> _merge_names(["w=4 stages=2", "w=4 stages=3"]), _merge_names(["a=1 b=1", "a=2 b=2", "a=3 b=3"])
        ('w=4 stages=2|3', 'a=1 b=1 and 2 identical binaries')
    """
    words_by_name = [name.split() for name in names]
    columns = [list(dict.fromkeys(column)) for column in zip(*words_by_name, strict=False)]
    differ_in_one_word = (
        len({len(row) for row in words_by_name}) == 1 and sum(len(column) > 1 for column in columns) == 1
    )
    if len(names) > 1 and not differ_in_one_word:
        return f"{names[0]} and {len(names) - 1} identical {_binary_noun(len(names) - 1)}"
    return " ".join(
        "|".join([column[0], *(label_word.partition("=")[2] for label_word in column[1:])]) for column in columns
    )


def _describe_spread(rows: Sequence[RankedLaunch], identical_count: int) -> str:
    first, last = rows[0].score or 1.0, rows[-1].score or 1.0
    counted = "1 launch" if len(rows) == 1 else f"{len(rows)} launches"
    counted += f" and {identical_count} identical {_binary_noun(identical_count)}" if identical_count else ""
    close = sum(1 for row in rows if (row.score or 0.0) <= 1.05 * first)
    near = f"; {close} within 5 % of the first" if close > 1 else ""
    return counted if len(rows) == 1 else f"{counted}; the last costs {last / first:.1f}× the first{near}"


def _binary_noun(count: int) -> str:
    return "binary" if count == 1 else "binaries"


def _list_failures(prefix: str, failures: Sequence[FailedConfiguration]) -> Iterator[Text]:
    """Each reason once, with the first launch and the number of others."""
    for message, labels in _by_message(failures).items():
        others = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
        yield Text(f"{prefix}: {labels[0]}{others}: {message}")


def _by_message(failures: Sequence[FailedConfiguration]) -> dict[str, list[str]]:
    labels_by_message: dict[str, list[str]] = {}
    for label, message in failures:
        labels_by_message.setdefault(message, []).append(label)
    return labels_by_message


def _notes(rows: Sequence[RankedLaunch]) -> Iterator[Text]:
    incomplete = [row for row in rows if row.score is not None and row.missing_inputs]
    for row in incomplete[:3]:
        yield Text(f"{_name(row)}: incomplete score: {', '.join(row.missing_inputs[:3])} unknown")
    for note in dict.fromkeys(note for row in rows for note in row.notes):
        yield Text(note)
