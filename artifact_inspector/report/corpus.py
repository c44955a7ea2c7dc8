"""Two caches compared, or a cache and a baseline: the summary first, then each kernel, worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from artifact_inspector.comparison.baseline import NOT_RECORDED, Baseline
from artifact_inspector.comparison.cause import ChangeReason
from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.corpus import TIME, Change, Corpus, Degree
from artifact_inspector.comparison.decisive_phrases import describe_values, value_text
from artifact_inspector.comparison.matching import Axis, Candidate, Difference, Facet, Matching, match_candidates
from artifact_inspector.comparison.pair import Comparison
from artifact_inspector.comparison.regressions import KernelOutcome, Regressions
from artifact_inspector.model import Consequence
from artifact_inspector.report.diff import describe_divergence
from artifact_inspector.report.fact_groups import STYLES
from artifact_inspector.report.layout import WrappedTexts, indented
from artifact_inspector.report.phrases import plural
from artifact_inspector.version import __version__
from artifact_inspector.vocabulary.fact import Category, Sign
from artifact_inspector.vocabulary.rows import CATEGORIES
from artifact_inspector.vocabulary.variant_labels import Compiled, find_varying, label_forms

MAX_CANDIDATES = 12
MAX_FACTS = 5
MAX_NOTES = 6
_LISTED_DEGREES = (Degree.CHANGED, Degree.CODE, Degree.UNKNOWN)
"""Degrees that are listed kernel by kernel."""


@dataclass(frozen=True, slots=True)
class CorpusReport:
    """The comparison of two caches."""

    corpus: Corpus
    gates: Sequence[str]
    """The facts to fail on; empty for any difference."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        corpus = self.corpus
        yield WrappedTexts(summarise_corpus(corpus), "bold")
        if corpus.by_category:
            yield WrappedTexts([f"{name} {count}" for name, count in corpus.by_category.items()])
        if corpus.matching.across:
            yield Text(f"across {', '.join(axis.value for axis in Axis if axis in corpus.matching.across)}", "dim")
        for sentence in describe_gates(corpus, self.gates):
            yield Text(sentence, "bold yellow")
        yield from _kernels([change for change in corpus.changes if change.degree in _LISTED_DEGREES])
        for sentence in describe_unmatched(corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        for sentence in describe_uncompared(corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        if corpus.problems:
            count = len(corpus.problems)
            yield Text(f"\n{count} {plural('problem', count)}", "bold red")
            for side, problem in corpus.problems[:MAX_CANDIDATES]:
                yield indented(f"{side} {problem.path}: {problem.problem}")
            if count > MAX_CANDIDATES:
                yield Text(f"  and {count - MAX_CANDIDATES} more; --json lists all", "dim")


def summarise_corpus(corpus: Corpus) -> list[str]:
    """The number of kernels of each degree of change, and of kernels without a match."""
    count = len(corpus.changes)
    texts = [f"{count} {plural('kernel', count)} compared"]
    descriptions = {
        Degree.IDENTICAL: "identical",
        Degree.BENIGN: corpus.sides.benign,
        Degree.CODE: "with different code but equal facts",
        Degree.CHANGED: "changed",
        Degree.UNKNOWN: "without a common file to compare",
    }
    texts += [
        f"{corpus.count(degree)} {description}" for degree, description in descriptions.items() if corpus.count(degree)
    ]
    signs = Counter(change.direction for change in corpus.changes)
    texts += [f"{signs[sign]} {sign}" for sign in (Sign.WORSE, Sign.BETTER) if signs[sign]]
    matching = corpus.matching
    for side, side_name in ((matching.left, corpus.sides.left), (matching.right, corpus.sides.right)):
        texts += [f"{len(side)} only {side_name}"] if side else []
    ambiguous_count = sum(len(group) for groups in matching.ambiguous for group in groups)
    texts += [f"{ambiguous_count} ambiguous"] if ambiguous_count else []
    return texts


def describe_gates(corpus: Corpus, gates: Sequence[str], *, is_strict: bool = True) -> Iterator[str]:
    """The gates that fail."""
    failures = corpus.failures(gates, is_strict=is_strict)
    if failures:
        yield describe_failures(failures)


def describe_failures(failures: Sequence[str]) -> str:
    """`Failed: 2 gates (waits, mma).`."""
    return f"Failed: {len(failures)} {plural('gate', len(failures))} ({', '.join(failures)})."


def describe_unmatched(corpus: Corpus) -> Iterator[str]:
    """Kernels without a match, one paragraph per side."""
    matching, (left_name, right_name, _) = corpus.matching, corpus.sides
    for side_name, side in ((left_name, matching.left), (right_name, matching.right)):
        if side:
            yield f"{len(side)} only {side_name}\n" + _list_candidates(side)
    if matching.left and matching.right and (option := _find_axis(matching)):
        yield f"{option} of these"
    if len(matching.ambiguous) > MAX_CANDIDATES:
        yield f"{len(matching.ambiguous)} groups of kernels have several matches; the first {MAX_CANDIDATES}:"
    for left, right in matching.ambiguous[:MAX_CANDIDATES]:
        yield f"{corpus.sides.describe_ambiguity(left, right)}\n{_list_candidates((*left, *right))}"


def describe_uncompared(corpus: Corpus) -> Iterator[str]:
    """Stages that could not be compared, in one paragraph."""
    counts = Counter(note for change in corpus.changes for note in change.lacking)
    if counts:
        lines = [f"  {note} ({count} {plural('kernel', count)})" for note, count in counts.most_common(MAX_NOTES)]
        omitted = len(counts) - MAX_NOTES
        yield "\n".join(["not compared", *lines, *([f"  and {omitted} more"] if omitted > 0 else [])])


def describe_candidates(candidates: Sequence[Candidate]) -> str:
    """The kernels that match, as a remedy of an error."""
    return f"Select one by hash (CACHE:HASH) or with --left and --right:\n{_list_candidates(candidates)}"


def suggest_axes(matching: Matching, axes: Sequence[Axis]) -> str:
    """The option that would let kernels match, as a remedy of an error."""
    if option := _find_axis(matching, axes):
        return f"{option}."
    return f"Left:\n{_list_candidates(matching.left)}\nRight:\n{_list_candidates(matching.right)}"


def _find_axis(matching: Matching, axes: Sequence[Axis] = ()) -> str:
    """`--across target would match 2`: the first axis that would match some unmatched kernels; empty without one."""
    left = [*matching.left, *(x for group, _ in matching.ambiguous for x in group)]
    right = [*matching.right, *(x for _, group in matching.ambiguous for x in group)]
    # Pairs across targets may also differ in num_stages, so the configuration is tried first.
    for axis in (Axis.CONFIG, Axis.VERSION, Axis.TARGET, Axis.SOURCE):
        if axis not in matching.across:
            matching_pairs = match_candidates(left, right, frozenset((*matching.across, *axes, axis)))
            count = len(matching_pairs.pairs) + len(matching_pairs.ambiguous)
            if count:
                return f"--across {axis.value} would match {count}"
    return ""


def describe_change(change: Change) -> Iterator[str]:
    """The changes of one kernel as short sentences, the worst first."""
    pair, has_order = change.pair, False
    explanation = change.explanation
    reason = "" if explanation is None else _describe_reason(explanation.reason)
    if change.sentence:
        yield change.sentence
    if change.price is not None and change.price.ratio is not None:
        yield f"{change.price.phrases[0]}."
    headline = change.headline
    if headline is not None and explanation is not None and headline.fact.category in explanation.categories:
        is_repeated = bool(headline.reason) and explanation.reason.description.endswith(headline.reason)
        if not is_repeated:
            yield f"because {reason}"
        reason = ""
    if reason:
        yield reason
    for fact in change.facts:
        if rank_of(fact) >= Consequence.ORDER.rank and pair is not None and not has_order:
            yield from _describe_divergences(pair)
            has_order = True
        is_headline = headline is not None and fact.key == headline.fact.key
        if not is_headline and (pair is None or fact.category != Category.VERDICT):
            sign = "" if fact.direction is Sign.NEUTRAL else f"{fact.direction}: "
            yield f"{sign}{describe_values(fact)}"
    if pair is not None and not has_order:
        yield from _describe_divergences(pair)


def _describe_reason(reason: ChangeReason) -> str:
    evidence = f" ({reason.evidence})" if reason.evidence else ""
    return f"{reason.description}{evidence}" + (f"  {reason.source}" if reason.source else "")


def _describe_divergences(pair: Comparison) -> Iterator[str]:
    return filter(None, (describe_divergence(pair, region) for region in pair.regions))


def _kernels(changes: Sequence[Change]) -> Iterator[RenderableType]:
    versions = len({change.right.artifact.triton_version for change in changes}) > 1
    compiled = [Compiled(change.right.artifact, change.right.program) for change in changes]
    labels = label_forms(compiled, find_varying(form.artifact for form in compiled))
    for change, label in zip(changes, labels, strict=True):
        sentences = list(describe_change(change))
        omitted = len(sentences) - MAX_FACTS
        lines = sentences[:MAX_FACTS] + ([f"and {omitted} more"] if omitted > 0 else [])
        lines = lines or [_NO_FACTS[change.degree], *(f"not compared: {x}" for x in change.notes)]
        head = Text(overflow="fold").append(change.right.artifact.display_name, "bold")
        head.append(f"  {_describe_candidate(change.right, label, version=versions)}", "dim")
        difference_text = _describe_differences(change.differences)
        head.append(f"  {difference_text}" if difference_text else "", "dim")
        yield ""
        yield head
        yield indented(f"changed: {', '.join(change.categories) or change.degree.value}", "bold")
        yield from (indented(line) for line in lines)


_NO_FACTS = {
    Degree.CODE: "the code differs in more than names, but every fact is equal",
    Degree.UNKNOWN: "the two have no file in common to compare",
}


def _describe_candidate(candidate: Candidate, label: str, *, version: bool) -> str:
    artifact = candidate.artifact
    description = [candidate.target or "target unknown"]
    description += [f"Triton {artifact.triton_version or 'unknown'}"] if version else []
    return f"{', '.join(description)} {label} {artifact.hash[:8]}".replace("  ", " ")


def _describe_differences(differences: Sequence[Difference]) -> str:
    """The differences between the two kernels of a pair: version, options, tiles."""
    texts = [f"{x.facet} {value_text(x.left)} → {value_text(x.right)}" for x in differences if x.facet != Facet.TILES]
    texts += ["other tiles"] if any(x.facet == Facet.TILES for x in differences) else []
    return ", ".join(texts[:3]) + (" …" if len(texts) > 3 else "")


def _list_candidates(candidates: Sequence[Candidate]) -> str:
    variants = [Compiled(x.artifact, x.program) for x in candidates[:MAX_CANDIDATES]]
    labels = label_forms(variants, find_varying(form.artifact for form in variants))
    lines = [f"  {candidate.describe(label)}" for candidate, label in zip(candidates, labels, strict=False)]
    omitted = len(candidates) - MAX_CANDIDATES
    return "\n".join([*lines, f"  and {omitted} more"] if omitted > 0 else lines)


_NO_TIME = "the baseline has no time of it"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Whether the check passed, then the changes, worst first."""

    baseline: Baseline
    corpus: Corpus
    gates: Sequence[str]
    is_strict: bool = False
    """True to fail on any change of a gated fact."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        failures = self.corpus.failures(self.gates, is_strict=self.is_strict)
        if failures:
            text = f"{describe_failures(failures)}{self._describe_cause()}"
            if not self.corpus.changes:
                question = "No kernel of the cache is in the baseline. Is the baseline of another cache?"
                text += f" {question if self.corpus.matching.right else 'The cache has no kernel.'}"
            yield Text(text, "bold red", overflow="fold")
        elif self.gates:
            verb = "changed" if self.is_strict else "got worse"
            judge = "predicted time" if self._passed_by_time() else "checked fact"
            yield Text(f"Passed: no {judge} {verb} ({', '.join(self.gates)}).", "bold green")
            others = [gate for gate in self.corpus.failures(CATEGORIES, is_strict=False) if gate not in self.gates]
            if others and not self.is_strict:
                yield Text(
                    f"Facts that are not checked got worse: {', '.join(others)}. --fail-on any checks them.", "yellow"
                )
        else:
            yield Text("Passed: no gates are set.", "bold green")
        yield from _baseline_notes(self.baseline)
        yield from map(Text, self._describe_judges())
        facts = (fact for change in self.corpus.changes for fact in change.compared_facts)
        titles = dict.fromkeys(fact.title for fact in facts if fact.reason == NOT_RECORDED and fact.right is not None)
        if titles:
            text = f"Not in the baseline, so not compared: {', '.join(titles)}. Record it again to check them."
            yield Text(text, "yellow", overflow="fold")
        yield CorpusReport(self.corpus, ())

    def _describe_judges(self) -> Iterator[str]:
        """Which kernels that differ passed by predicted time though facts got worse; which have no predicted time."""
        yield from self._passed_by_time()
        problems: Counter[str] = Counter()
        if TIME in self.gates and not self.is_strict:
            for change in self.corpus.changes:
                if (price := change.price) is None or price.ratio is None:
                    problems[_NO_TIME if price is None else price.problem] += change.degree in _LISTED_DEGREES
        for problem, count in (+problems).items():
            yield f"Judged by facts, not by predicted time: {count} {plural('kernel', count)} ({problem})."

    def _passed_by_time(self) -> list[str]:
        """Kernels whose predicted time is not worse, although facts are."""
        if TIME not in self.gates or self.is_strict:
            return []
        facts, lines = [gate for gate in self.gates if gate != TIME], []
        for change in self.corpus.changes:
            if (price := change.price) is None or price.ratio is None or price.direction is Sign.WORSE:
                continue
            if worse := change.failures(facts, is_strict=False):
                passes = f"{change.right.artifact.display_name} passes with {price.ratio:.2f}× the predicted time"
                lines.append(f"{passes}, although facts got worse: {', '.join(worse)}.")
        return lines

    def _describe_cause(self) -> str:
        """What fails of the worst kernel that does; empty if kernels are only missing or new."""
        artifacts = [change.right.artifact for change in self.corpus.changes]
        is_one_target = len({artifact.target for artifact in artifacts}) == 1
        for change, artifact in zip(self.corpus.changes, artifacts, strict=True):
            if failure := change.describe_failure(self.gates, is_strict=self.is_strict):
                return f" {artifact.display_name}{'' if is_one_target else f' on {artifact.target}'}: {failure}"
        return ""


def _baseline_notes(baseline: Baseline) -> Iterator[Text]:
    if baseline.generator != __version__:
        yield Text(
            f"The baseline was recorded by inspect-kernel {baseline.generator}; this is {__version__}. "
            "Facts that are not reported any more count as changed.",
            "yellow",
        )


@dataclass(frozen=True, slots=True)
class RegressReport:
    """The totals, then each kernel that changed."""

    regressions: Regressions
    show_all: bool = False
    """True to list kernels that are neither better nor worse too."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        regressions = self.regressions
        worse = regressions.count(Sign.WORSE)
        yield Text(summarise_outcomes(regressions), STYLES[Sign.WORSE] if worse else "bold", overflow="fold")
        listed = [
            outcome for outcome in regressions.outcomes if self.show_all or outcome.change.direction is not Sign.NEUTRAL
        ]
        if listed and all(outcome.change.price is None for outcome in listed):
            yield Text("Judged by facts, not by predicted times: --prices adds them.", "dim", overflow="fold")
        forms = [Compiled(outcome.change.right.artifact, outcome.change.right.program) for outcome in listed]
        labels = label_forms(forms, find_varying(form.artifact for form in forms))
        labelled = zip(listed, labels, strict=True)
        for sentence, outcomes in groupby(labelled, key=lambda pair: describe_outcome(pair[0])):
            (outcome, label), *others = outcomes
            candidate = outcome.change.right
            yield ""
            head = Text(candidate.artifact.display_name, "bold", overflow="fold")
            head.append(f"  {candidate.target or 'target unknown'} {label} {candidate.artifact.hash[:12]}", "dim")
            yield head
            yield indented(sentence, STYLES[outcome.change.direction])
            if others:
                entries = [other.change.right.artifact for other, _ in others]
                names = [f"{entry.display_name} {entry.hash[:6]}" for entry in entries]
                omitted = [f"{len(names) - MAX_CANDIDATES} more"] if len(names) > MAX_CANDIDATES else []
                yield indented(f"the same in {', '.join([*names[:MAX_CANDIDATES], *omitted])}", "dim")
        for sentence in describe_unmatched(regressions.corpus):
            yield Text(f"\n{sentence}", overflow="fold")
        for side, problem in regressions.corpus.problems:
            yield Text(f"{side} {problem.path}: {problem.problem}", "bold red", overflow="fold")


def summarise_outcomes(regressions: Regressions) -> str:
    """The totals, such as `12 kernels compared: 2 worse, 1 better, 3 neutral, 6 unchanged`."""
    count = len(regressions.corpus.changes)
    counts = [f"{regressions.count(sign)} {sign}" for sign in Sign]
    totals = [*counts, f"{regressions.unchanged} unchanged"]
    sides = zip(
        regressions.corpus.sides, (regressions.corpus.matching.left, regressions.corpus.matching.right), strict=False
    )
    totals += [f"{len(unmatched)} only {name}" for name, unmatched in sides if unmatched]
    return f"{count} {plural('kernel', count)} compared: {', '.join(totals)}."


def describe_outcome(outcome: KernelOutcome) -> str:
    """A sentence each: the cause with its line and origin, the predicted time, the pass, and what helps."""
    change = outcome.change
    cause = change.sentence
    if not cause and change.headline is None and change.degree is not Degree.CODE:
        listed = ", ".join(dict.fromkeys(fact.title for fact in change.facts[:4]))
        cause = f"No fact differs except {listed}." if listed else "No file is comparable."
    tries = [
        f"{remedy.change} ({remedy.gain:.2f}× faster{'' if remedy.verified else ', not verified'})"
        for remedy in outcome.remedies
    ]
    sentences = (
        cause or "The code differs, but no fact does.",
        *(() if change.price is None else change.price.phrases),
        *outcome.passes,
        *outcome.trials,
        *([f"try {', '.join(tries)}"] if tries else []),
        *filter(None, [outcome.untried]),
    )
    return " ".join(f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in sentences)
