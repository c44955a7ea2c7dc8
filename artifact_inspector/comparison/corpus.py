"""Comparison of two caches: each kernel with its counterpart, and how much it changed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import NamedTuple

from artifact_inspector.comparison.cause import ChangeReason, Explanation, lines_of
from artifact_inspector.comparison.consequence import differing_facts, is_minor, rank_of
from artifact_inspector.comparison.decisive_phrases import describe_decisive
from artifact_inspector.comparison.fact_pair import FactPair, PairSide
from artifact_inspector.comparison.headline import Headline, headlines_of_pair
from artifact_inspector.comparison.likeness import Likeness, kinds_of, lacking_kinds, likeness_of
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    Matching,
    ProgramReader,
    find_differences,
    match,
    pair_by_name,
)
from artifact_inspector.comparison.pair import Comparison, compare_kernels
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.comparison.sign import ELSEWHERE
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.selection import read_program
from artifact_inspector.files.artifact import Artifact, Problem
from artifact_inspector.model import Consequence
from artifact_inspector.model.text import split_option_values
from artifact_inspector.vocabulary.fact import Sign
from artifact_inspector.vocabulary.names import step_of
from artifact_inspector.vocabulary.rows import CATEGORIES


class Degree(Enum):
    """How much a kernel changed."""

    IDENTICAL = "identical"
    """All texts and binaries that both have are identical."""
    BENIGN = "benign"
    """Names, line numbers, numbering of registers or metadata: the same program."""
    CODE = "code"
    """Texts or binaries differ in more than that, but no fact does."""
    CHANGED = "changed"
    """Facts differ."""
    UNKNOWN = "unknown"
    """The two have no kind of file in common, and no common fact differs."""


TIME = "time"
GATES = (TIME, *CATEGORIES, "code", "gone", "new", "any")
"""What a comparison can fail on: a predicted time, a category of facts, any code, a missing or new kernel, any."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kernel on both sides."""

    left: Candidate
    right: Candidate
    degree: Degree
    differences: tuple[Difference, ...]
    compared_facts: tuple[FactPair, ...]
    """All facts of both; empty if the texts prove that nothing differs."""
    pair: Comparison | None
    """None if one side is a record of facts."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Name of a region → its source line, on the right."""
    explanation: Explanation | None = None
    """What explains some facts, if one side is a record of facts; `pair` explains others."""
    first_difference: str = ""
    """The first kind of file that differs, as `ttgir`; empty if none does or the files are unknown."""
    headlines: tuple[Headline, ...] = ()
    """The decisive fact with its evidence, then the first worse fact of each other category."""
    problems: tuple[tuple[PairSide, Problem], ...] = ()
    """Unreadable files, each with its side."""
    price: PairPrice | None = None
    """The predicted times of a launch of both; None without a launch."""

    @property
    def reason(self) -> ChangeReason | None:
        """What explains the change, if one side is a record of facts; `pair` explains others."""
        return None if self.explanation is None else self.explanation.reason

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be compared."""
        return self.lacking if self.pair is None else self.pair.notes

    @property
    def lacking(self) -> tuple[str, ...]:
        """Kinds of files that only one side has, if known; why facts of a record were not compared."""
        ours, theirs = self.left.kinds, self.right.kinds
        lacks = lacking_kinds(ours, theirs) if ours and theirs else ()
        name = self.left.side_name
        files = [f"the {name if side is PairSide.LEFT else side} kernel has no {kinds}" for side, kinds in lacks]
        facts = () if self.pair is not None else self.compared_facts
        return (*files, *dict.fromkeys(fact.reason for fact in facts if fact.is_left_out and fact.reason != ELSEWHERE))

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """Those that differ, the most important first."""
        return differing_facts(self.compared_facts)

    @property
    def categories(self) -> tuple[str, ...]:
        """Categories of the differing facts, the most important first."""
        return tuple(dict.fromkeys(fact.category for fact in self.facts))

    @property
    def worse_facts(self) -> tuple[FactPair, ...]:
        """Facts that got worse or unknown, most important first; no minor counts, none that a better one outweighs."""
        major = [fact for fact in self.facts if not is_minor(fact)]
        best = min((rank_of(x) for x in major if x.direction is Sign.BETTER), default=Consequence.OTHER.rank)
        worse = [fact for fact in major if fact.direction is Sign.WORSE and rank_of(fact) <= best]
        return tuple(fact for fact in self.facts if fact.unknown or fact in worse)

    @property
    def direction(self) -> Sign:
        """By the predicted time where it is known, else by the decisive fact; neutral without one."""
        if self.price is not None and self.price.direction is not None:
            return self.price.direction
        return self.headlines[0].fact.direction if self.headlines else Sign.NEUTRAL

    @property
    def headline(self) -> Headline | None:
        """The decisive fact of the change's direction; the decisive fact of all if none has it; None without one.

        A fact of less than a pipeline or matrix unit gives way to the one that explains most of the predicted time.
        """
        first = self.headlines[0] if self.headlines else None
        of_direction = next((one for one in self.headlines if one.fact.direction is self.direction), first)
        ratio = None if self.price is None else self.price.ratio
        if of_direction is None or ratio is None or not _is_small(of_direction, ratio):
            return of_direction
        priced = [fact for fact in self.facts if fact.direction is self.direction and _explains(fact.price, ratio)]
        decisive = max(priced, key=lambda fact: abs(math.log(fact.price or 1)), default=None)
        return of_direction if decisive is None else self._headline_of(decisive)

    def _headline_of(self, fact: FactPair) -> Headline:
        plain = Headline(fact, describe_decisive(fact, self.facts, fact.region), None, "", "")
        return next((one for one in self.headlines if one.fact.key == fact.key), plain)

    @property
    def sentence(self) -> str:
        """The decisive fact; a predicted time of another direction comes first. Empty if nothing is decisive."""
        headline, price, direction = self.headline, self.price, self.direction
        lead = "" if direction is Sign.NEUTRAL else f"{direction.capitalize()}: "
        if price is None or price.ratio is None:
            return "" if headline is None else headline.describe(lead)
        conflicts = price.decisive_conflicts
        if conflicts is not None and (headline is None or not _explains(headline.fact.price, price.ratio)):
            return f"{lead}{conflicts}."
        cause = price.cause
        if headline is not None and headline.fact.direction is direction:
            phrase = cause[0] if cause is not None and _explains(cause[1], price.ratio) else price.new_limit
            if phrase and _is_small(headline, price.ratio):
                fact = headline.fact._replace(price=None)
                headline = headline._replace(fact=fact, phrase=phrase, source=None, reason="")
            return headline.describe(lead, price.ratio, price.standing)
        work = "" if cause is None else f": {cause[0]}"
        lead = f"{direction.capitalize()}: {price.ratio:.2f}× the old predicted time{price.standing}{work}"
        if headline is not None:
            if direction is Sign.NEUTRAL:  # the price of one fact would contradict it: others make up for it
                headline = headline._replace(fact=headline.fact._replace(price=None))
            return headline.describe(f"{lead}, {headline.contrast} ")
        return f"{lead}." if work or direction is Sign.NEUTRAL else f"{lead}; no single fact explains it."

    def with_price(self, price: PairPrice | None) -> Change:
        """The change with the predicted times of both, and with the prices of its facts."""
        prices = {} if price is None else price.facts
        if self.pair is None or not prices:
            return replace(self, price=price)
        facts = tuple(fact._replace(price=prices.get(fact.key)) for fact in self.compared_facts)
        pair = replace(self.pair, facts=tuple(fact._replace(price=prices.get(fact.key)) for fact in self.pair.facts))
        headlines = headlines_of_pair(pair, self.first_difference)
        return replace(self, compared_facts=facts, pair=pair, headlines=headlines, price=price)

    def failing_headline(self, gates: Collection[str], *, is_strict: bool = True) -> Headline | None:
        """The decisive fact among those that fail; None if only the text does, or no fact explains the time."""
        if TIME in self.failures(gates, is_strict=is_strict):
            return self.headline
        failing = [
            fact for fact in (self.facts if is_strict else self.worse_facts) if fact.category in gates or "any" in gates
        ]
        return self._headline_of(failing[0]) if failing else None

    def describe_failure(self, gates: Collection[str], *, is_strict: bool = True) -> str:
        """What fails, as a sentence with its cause; empty if only the text of the code does."""
        if self.price is not None and TIME in self.failures(gates, is_strict=is_strict):
            return f"{self.sentence} {self.price.phrases[0]}."
        headline = self.failing_headline(gates, is_strict=is_strict)
        return "" if headline is None else headline.sentence

    def failures(self, gates: Collection[str], *, is_strict: bool = True) -> tuple[str, ...]:
        """Those of some gates that this kernel fails, in their order.

        With the gate `time`, a predicted time decides, not known facts: fewer stages take less and run longer.

        Args:
            gates: `time`, categories, `code` or `any`.
            is_strict: fail on every difference; else only on what got worse, and on `code`.
        """
        lost = {fact.category for fact in self.facts if fact.unknown}
        failed = lost | {fact.category for fact in (self.facts if is_strict else self.worse_facts)}
        direction = None if self.price is None else self.price.direction
        if direction is not None and TIME in gates and not is_strict:
            failed = lost
        if direction is Sign.WORSE or (is_strict and direction is Sign.BETTER):
            failed |= {TIME}
        if self.degree in (Degree.CODE, Degree.CHANGED):
            failed |= {"code"}
            failed |= {"any"} if is_strict or failed - {"code"} else set()
        return tuple(gate for gate in GATES if gate in gates and gate in failed)

    @property
    def severity(self) -> tuple[int, ...]:
        """Sorts the worst first."""
        if self.degree is Degree.CHANGED:
            is_worse = self.headline is not None and self.headline.fact.direction is Sign.WORSE
            worst = min((rank_of(fact) for fact in self.facts if fact.differs), default=Consequence.OTHER.rank)
            return (0, not is_worse, worst, *(CATEGORIES.index(name) for name in self.categories))
        degrees = (Degree.CODE, Degree.UNKNOWN, Degree.BENIGN, Degree.IDENTICAL)
        return (1 + degrees.index(self.degree),)


def _is_small(headline: Headline, ratio: float) -> bool:
    """Whether a fact is less than a pipeline or matrix unit, and its price is not most of a ratio of times."""
    return rank_of(headline.fact) >= Consequence.ACCESS.rank and not _explains(headline.fact.price, ratio)


def _explains(factor: float | None, ratio: float) -> bool:
    """Whether a factor has the direction of a ratio of times, and is most of it."""
    return bool(factor) and ratio != 1 and 2 * math.log(factor or 1) / math.log(ratio) > 1


class Sides(NamedTuple):
    """What a report calls the two sides."""

    left: str = "on the left"
    right: str = "on the right"
    benign: str = "differ in names and line numbers only"

    def describe_ambiguity(self, left: Sequence[Candidate], right: Sequence[Candidate]) -> str:
        """That several pairs of some kernels are possible, and what would tell them apart, if a side lacks it."""
        text = f"not compared: {len(left)} {self.left} match {len(right)} {self.right}"
        bare = [name for name, side in zip(self, (left, right), strict=False) if not any(x.options for x in side)]
        return f"{text} (those {' and '.join(bare)} have no metadata, so their options are unknown)" if bare else text


TWO_CACHES = Sides()
Comparer = Callable[[Candidate, Candidate, Callable[[Artifact], KernelFacts]], Change]
"""Compares one pair; the last argument computes the facts of a kernel."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """Two caches, compared."""

    changes: tuple[Change, ...]
    """Worst first."""
    matching: Matching
    problems: tuple[tuple[str, Problem], ...]
    """Unreadable files, each with its side."""
    sides: Sides = TWO_CACHES

    def count(self, degree: Degree) -> int:
        """Kernels that changed that much."""
        return sum(change.degree is degree for change in self.changes)

    @property
    def by_category(self) -> dict[str, int]:
        """Category → kernels whose facts differ in it, the most important first."""
        counts = Counter(name for change in self.changes for name in change.categories)
        return {name: counts[name] for name in CATEGORIES if counts[name]}

    @property
    def is_same(self) -> bool:
        """True if nothing but names, locations and numbering differs."""
        unmatched = self.matching.left or self.matching.right or self.matching.ambiguous
        return not unmatched and all(x.degree in (Degree.IDENTICAL, Degree.BENIGN) for x in self.changes)

    def failures(self, gates: Collection[str], *, is_strict: bool = True) -> tuple[str, ...]:
        """Those of some gates that fail, in their order; `is_strict` is that of `Change.failures`."""
        failing = {gate for change in self.changes for gate in change.failures(gates, is_strict=is_strict)}
        failing |= {"gone", "any"} if self.matching.left or self.matching.ambiguous else set()
        failing |= {"new", "any"} if self.matching.right else set()
        return tuple(gate for gate in GATES if gate in gates and gate in failing)


def parse_gates(values: Iterable[str]) -> tuple[str, ...]:
    """Gates of repeated or comma-separated options.

    Raises:
        UsageError: a value is no gate.
    """
    gates = [value.lower() for value in split_option_values(values)]
    for name in gates:
        if name not in GATES:
            raise UsageError(f"Unknown gate {name!r} for --fail-on.", f"Expected one of {', '.join(GATES)}.")
    return tuple(gates)


def compare_corpora(
    left: Iterable[Artifact],
    right: Iterable[Artifact],
    inspect: Callable[[Artifact], KernelFacts],
    *,
    across: Collection[Axis] = (),
    progress: Callable[[str], None] | None = None,
    is_one_pair: bool = False,
    pairs_by_name: bool = False,
    always: bool = False,
    find_program: ProgramReader = read_program,
    compare: Comparer | None = None,
) -> Corpus:
    """Match the kernels of two sides and compare each pair.

    Args:
        inspect: computes the facts of a kernel; called only if texts differ.
        across: what may differ between two kernels of a pair.
        progress: called with the name of each kernel before it is compared.
        is_one_pair: each side is one selected kernel: the two are compared even if they differ in everything.
        pairs_by_name: also pair kernels that only share name and target, as `pair_by_name` does.
        always: inspect even those whose texts are the same.
        find_program: finds arguments and tiles of a kernel.
        compare: compares one pair; `compare_candidates` by default.
    """
    left, right = tuple(left), tuple(right)
    compare = compare or partial(compare_candidates, always=always)
    matching = match(left, right, tuple(Axis) if is_one_pair else across, find_program)
    if is_one_pair and not matching.pairs:
        pair = (Candidate(left[0]), Candidate(right[0]))
        matching = Matching((pair,), (), (), (), matching.across)
    if pairs_by_name:
        matching = pair_by_name(matching)
    changes = []
    for candidate, counterpart in matching.pairs:
        if progress is not None:
            progress(candidate.artifact.display_name)
        changes.append(compare(candidate, counterpart, inspect))
    problems = dict.fromkeys(problem for change in changes for problem in change.problems)
    changes.sort(key=lambda change: (change.severity, str(change.left)))
    return Corpus(tuple(changes), matching, tuple(problems))


def compare_candidates(
    left: Candidate, right: Candidate, inspect: Callable[[Artifact], KernelFacts], *, always: bool = False
) -> Change:
    """Compare one pair; `inspect` and `always` are those of `compare_corpora`."""
    differences = find_differences(left, right)
    degree, first_difference = _compare_files(left.artifact, right.artifact)
    if degree in (Degree.IDENTICAL, Degree.BENIGN) and not always:
        return Change(left, right, degree, differences, (), None)
    pair = _compare_common_stages(left, right, inspect)
    changed = any(fact.differs for fact in pair.facts)
    lines = lines_of(pair.right) if changed else {}
    headlines = headlines_of_pair(pair, first_difference)
    return Change(
        left,
        right,
        Degree.CHANGED if changed else degree,
        differences,
        pair.facts,
        pair,
        lines,
        first_difference=first_difference,
        headlines=headlines,
        problems=tuple(
            (side, problem)
            for side, kernel in ((PairSide.LEFT, pair.left), (PairSide.RIGHT, pair.right))
            for problem in kernel.problems
        ),
    )


def _compare_common_stages(left: Candidate, right: Candidate, inspect: Callable[[Artifact], KernelFacts]) -> Comparison:
    """Compare two kernels by the stages that both have.

    Later stages are compared with the first: an additional first stage would change the reference.
    """
    kernels = inspect(left.artifact), inspect(right.artifact)
    our_steps, their_steps = ({step_of(stage) for stage in kernel.stages} for kernel in kernels)
    both = our_steps & their_steps
    if not both or our_steps == their_steps:
        return compare_kernels(*kernels, (left, right))
    ours, theirs = (limit_stages(kernel, both, inspect) for kernel in kernels)
    lacks = lacking_kinds(our_steps, their_steps)
    lacking = (f"the {side} kernel has no {steps} that could be read" for side, steps in lacks)
    pair = compare_kernels(ours, theirs)
    return replace(pair, notes=(*lacking, *pair.notes))


def limit_stages(
    kernel: KernelFacts, steps: Collection[str], inspect: Callable[[Artifact], KernelFacts]
) -> KernelFacts:
    """The facts of a kernel without its stages after or before some."""
    beyond = {stage.value for stage in kernel.stages if step_of(stage) not in steps}
    files = {suffix: path for suffix, path in kernel.artifact.files.items() if suffix not in beyond}
    return kernel if len(files) == len(kernel.artifact.files) else inspect(replace(kernel.artifact, files=files))


def _compare_files(left: Artifact, right: Artifact) -> tuple[Degree, str]:
    """The degree by the files that both have, and the first kind that differs; PTX and AMDGCN are one kind."""
    theirs = kinds_of(right.files)
    both = [kind for kind in kinds_of(left.files) if kind in theirs]
    if not both:
        return Degree.UNKNOWN, ""
    has_other_launch = None not in (left.shared_bytes, right.shared_bytes) and left.shared_bytes != right.shared_bytes
    degree = Degree.IDENTICAL
    for kind in both:
        likeness = likeness_of(left, right, kind)
        if likeness in (Likeness.DIFFERENT, Likeness.UNREADABLE):
            return Degree.CODE, kind
        degree = Degree.BENIGN if likeness is Likeness.ALIKE else degree
    return (Degree.CODE, "") if has_other_launch else (degree, "")
