"""The comparison of two caches: the summary first, then each kernel, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.corpus import Change, Corpus, Degree
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    Facet,
    Matching,
    match_candidates,
)
from artifact_inspector.comparison.pair import Pair
from artifact_inspector.model import Consequence
from artifact_inspector.report.diff import describe_fact, describe_parting, value_text
from artifact_inspector.report.layout import Pieces
from artifact_inspector.report.words import plural
from artifact_inspector.vocabulary.fact import Category
from artifact_inspector.vocabulary.forms import Compiled, label_forms, vary_in

MOST_CANDIDATES = 12
MOST_FACTS = 5
MOST_NOTES = 6
_TOLD = (Degree.CHANGED, Degree.CODE, Degree.UNKNOWN)
"""Degrees that are listed kernel by kernel."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """The comparison of two caches."""

    corpus: Corpus
    gates: Sequence[str]
    """The facts to fail on; empty for any difference."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        corpus = self.corpus
        yield Pieces(summary_pieces(corpus), "bold")
        if corpus.by_category:
            yield Pieces([f"{name} {count}" for name, count in corpus.by_category.items()])
        for sentence in _allowed(corpus.matching):
            yield Text(sentence, "dim")
        for sentence in describe_gates(corpus, self.gates):
            yield Text(sentence, "bold yellow")
        told = [change for change in corpus.changes if change.degree in _TOLD]
        yield from _kernels(told)
        for sentence in describe_lonely(corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        for sentence in describe_uncompared(corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        if corpus.problems:
            count = len(corpus.problems)
            yield Text(f"\n{count} {plural('problem', count)}", "bold red")
            for side, problem in corpus.problems[:MOST_CANDIDATES]:
                yield Padding(
                    Text(f"{side} {problem.path}: {problem.problem}", overflow="fold"), (0, 0, 0, 2)
                )
            if count > MOST_CANDIDATES:
                yield Text(f"  and {count - MOST_CANDIDATES} more; --json lists all", "dim")


def summary_pieces(corpus: Corpus) -> list[str]:
    """The number of kernels of each degree of change, and of kernels without a match."""
    count = len(corpus.changes)
    said = [f"{count} {plural('kernel', count)} compared"]
    words = {
        Degree.IDENTICAL: "identical",
        Degree.BENIGN: corpus.sides.benign,
        Degree.CODE: "with different code but equal facts",
        Degree.CHANGED: "changed",
        Degree.UNKNOWN: "without a common file to compare",
    }
    said += [f"{corpus.count(degree)} {word}" for degree, word in words.items() if corpus.count(degree)]
    matching = corpus.matching
    for side, where in ((matching.left, corpus.sides.left), (matching.right, corpus.sides.right)):
        said += [f"{len(side)} only {where}"] if side else []
    open_ = sum(len(group) for groups in matching.ambiguous for group in groups)
    said += [f"{open_} ambiguous"] if open_ else []
    return said


def describe_gates(corpus: Corpus, gates: Sequence[str]) -> Iterator[str]:
    """The gates that fail."""
    failures = corpus.failures(gates)
    if failures:
        yield describe_failures(failures)


def describe_failures(failures: Sequence[str]) -> str:
    """`Failed: 2 gates (waits, mma).`."""
    return f"Failed: {len(failures)} {plural('gate', len(failures))} ({', '.join(failures)})."


def describe_lonely(corpus: Corpus) -> Iterator[str]:
    """Kernels without a match, one paragraph per side."""
    matching, (here, there, _) = corpus.matching, corpus.sides
    for where, side in ((here, matching.left), (there, matching.right)):
        if side:
            yield f"only {where}\n" + _listed(side)
    fitting = _axis_that_fits(matching) if matching.left and matching.right else None
    if fitting is not None:
        axis, count = fitting
        yield f"--across {axis.value} would match {count} of these"
    for left, right in matching.ambiguous:
        yield f"not compared: {len(left)} {here} match {len(right)} {there}\n" + _listed((*left, *right))


def describe_uncompared(corpus: Corpus) -> Iterator[str]:
    """Stages that could not be compared, in one paragraph."""
    counts = Counter(note for change in corpus.changes for note in change.lacking)
    if counts:
        lines = [
            f"  {note} ({count} {plural('kernel', count)})" for note, count in counts.most_common(MOST_NOTES)
        ]
        more = len(counts) - MOST_NOTES
        yield "\n".join(["not compared", *lines, *([f"  and {more} more"] if more > 0 else [])])


def describe_candidates(found: Sequence[Candidate]) -> str:
    """The kernels that match, as a remedy of an error."""
    return f"Select one by hash (CACHE:HASH) or with --left and --right:\n{_listed(found)}"


def suggest_axes(matching: Matching, axes: Sequence[Axis]) -> str:
    """The option that would let kernels match, as a remedy of an error."""
    fitting = _axis_that_fits(matching, axes)
    if fitting is not None:
        axis, count = fitting
        return f"--across {axis.value} would match {count}."
    return f"Left:\n{_listed(matching.left)}\nRight:\n{_listed(matching.right)}"


def _axis_that_fits(matching: Matching, axes: Sequence[Axis] = ()) -> tuple[Axis, int] | None:
    """The first axis that would match some unmatched kernels, and the number of pairs."""
    left = [*matching.left, *(x for group, _ in matching.ambiguous for x in group)]
    right = [*matching.right, *(x for _, group in matching.ambiguous for x in group)]
    # Pairs across targets may also differ in num_stages, so the configuration is tried first.
    for axis in (Axis.CONFIG, Axis.VERSION, Axis.TARGET, Axis.SOURCE):
        if axis not in matching.across:
            found = match_candidates(left, right, frozenset((*matching.across, *axes, axis)))
            count = len(found.pairs) + len(found.ambiguous)
            if count:
                return axis, count
    return None


def describe_changes_of(change: Change) -> Iterator[str]:
    """The changes of one kernel as short sentences, the worst first."""
    pair, told = change.pair, False
    if change.reason is not None:
        words, evidence, source = change.reason
        yield f"because {words}" + (f" ({evidence})" if evidence else "") + (f"  {source}" if source else "")
    for fact in change.facts:
        if rank_of(fact) >= Consequence.ORDER.rank and pair is not None and not told:
            yield from _partings(pair)
            told = True
        if pair is None or fact.category != Category.VERDICT:
            yield describe_fact(fact)
    if pair is not None and not told:
        yield from _partings(pair)


def _partings(pair: Pair) -> Iterator[str]:
    return filter(None, (describe_parting(pair, region) for region in pair.regions))


def _kernels(changes: Sequence[Change]) -> Iterator[RenderableType]:
    """Each kernel with its target and variant, then its changes."""
    versions = len({change.left.artifact.triton_version for change in changes}) > 1
    compiled = [Compiled(change.right.artifact, change.right.program) for change in changes]
    labels = label_forms(compiled, vary_in(form.artifact for form in compiled))
    for change, label in zip(changes, labels, strict=True):
        said = list(describe_changes_of(change))
        more = len(said) - MOST_FACTS
        lines = said[:MOST_FACTS] + ([f"and {more} more"] if more > 0 else [])
        lines = lines or [_NOTHING_TO_SAY[change.degree], *(f"not compared: {x}" for x in change.notes)]
        head = Text(overflow="fold").append(change.left.artifact.display_name, "bold")
        head.append(f"  {_which(change.left, label, version=versions)}", "dim")
        other = _otherwise(change.differences)
        head.append(f"  {other}" if other else "", "dim")
        yield ""
        yield head
        yield _indented(f"changed: {', '.join(change.categories) or change.degree.value}", "bold")
        yield from (_indented(line) for line in lines)


def _indented(line: str, style: str = "") -> Padding:
    return Padding(Text(line, style, overflow="fold"), (0, 0, 0, 2))


_NOTHING_TO_SAY = {
    Degree.CODE: "the code differs in more than names, but every fact is equal",
    Degree.UNKNOWN: "the two have no file in common to compare",
}


def _which(candidate: Candidate, label: str, *, version: bool) -> str:
    artifact = candidate.artifact
    said = [candidate.target or "target unknown"]
    said += [f"Triton {artifact.triton_version or 'unknown'}"] if version else []
    return f"{', '.join(said)} {label} {artifact.hash[:8]}".replace("  ", " ")


def _otherwise(differences: Sequence[Difference]) -> str:
    """The differences between the two kernels of a pair: version, options, tiles."""
    said = [
        f"{x.what} {value_text(x.left)} → {value_text(x.right)}" for x in differences if x.what != Facet.TILES
    ]
    said += ["other tiles"] if any(x.what == Facet.TILES for x in differences) else []
    return ", ".join(said[:3]) + (" …" if len(said) > 3 else "")


def _allowed(matching: Matching) -> Iterator[str]:
    if matching.across:
        names = ", ".join(axis.value for axis in Axis if axis in matching.across)
        yield f"across {names}"


def _listed(found: Sequence[Candidate]) -> str:
    shown = [Compiled(x.artifact, x.program) for x in found[:MOST_CANDIDATES]]
    labels = label_forms(shown, vary_in(form.artifact for form in shown))
    lines = [f"  {candidate.told(label)}" for candidate, label in zip(found, labels, strict=False)]
    more = len(found) - MOST_CANDIDATES
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)
