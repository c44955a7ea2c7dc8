"""Two caches: every kernel of one held against its like in the other, and how much each changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from artifact_inspector.comparison.cause import Reason, lines_of
from artifact_inspector.comparison.consequence import differing_facts, is_minor, rank_of
from artifact_inspector.comparison.fact_pair import FactPair, PairSide
from artifact_inspector.comparison.headline import Headline, describe_decisive, headlines_of_pair
from artifact_inspector.comparison.likeness import Likeness, kinds_of, likeness_of
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    Matching,
    find_differences,
    match,
)
from artifact_inspector.comparison.pair import Pair, compare_kernels
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact, Problem
from artifact_inspector.model import Consequence
from artifact_inspector.model.text import split_option_values
from artifact_inspector.vocabulary.fact import Sign
from artifact_inspector.vocabulary.names import STEPS, step_of
from artifact_inspector.vocabulary.rows import CATEGORIES


class Degree(Enum):
    """How much a kernel changed."""

    IDENTICAL = "identical"
    """Every text and binary that both have is the same to the byte."""
    BENIGN = "benign"
    """Names, line numbers, numbering of registers or metadata: the same program."""
    CODE = "code"
    """Texts or binaries differ in more than that, and no fact does."""
    CHANGED = "changed"
    """Facts differ."""
    UNKNOWN = "unknown"
    """No file of one has its like in the other, and no fact that both tell differs."""


GATES = (*CATEGORIES, "code", "gone", "new", "any")
"""What a comparison can be asked to fail on: a category of facts, any change of text, a kernel that is
gone or new, or anything at all."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kernel on both sides."""

    left: Candidate
    right: Candidate
    degree: Degree
    differences: tuple[Difference, ...]
    compared_facts: tuple[FactPair, ...]
    """All facts of both; empty where the texts already say that nothing differs."""
    pair: Pair | None
    """None also where one side is a record of facts."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Region by its name → its line in the source, on the right."""
    reason: Reason | None = None
    """What explains it, where one side is a record of facts; of a pair, the pair tells."""
    first_difference: str = ""
    """The first kind of file that differs, as `ttgir`; empty if none does or the files are unknown."""
    headlines: tuple[Headline, ...] = ()
    """The decisive fact with its evidence, then the first worse fact of each other category."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What could not be compared."""
        return self.lacking if self.pair is None else self.pair.notes

    @property
    def lacking(self) -> tuple[str, ...]:
        """Kinds of files that one side alone has; nothing where one side is a record of facts."""
        ours, theirs = kinds_of(self.left.artifact), kinds_of(self.right.artifact)
        if not ours or not theirs:
            return ()
        lacks = ((PairSide.LEFT, theirs.keys() - ours.keys()), (PairSide.RIGHT, ours.keys() - theirs.keys()))
        return tuple(f"the {side} one has no {', '.join(sorted(kinds))}" for side, kinds in lacks if kinds)

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """Those that differ, most telling first."""
        return differing_facts(self.compared_facts)

    @property
    def categories(self) -> tuple[str, ...]:
        """What the differing facts are about, most telling first."""
        return tuple(dict.fromkeys(fact.category for fact in self.facts))

    @property
    def worse_facts(self) -> tuple[FactPair, ...]:
        """Facts that got worse, most telling first."""
        return tuple(fact for fact in self.facts if fact.direction is Sign.WORSE)

    @property
    def direction(self) -> Sign:
        """The direction of the decisive fact; neutral if no fact is better or worse, or only by a minor count."""
        return next((fact.direction for fact in self.facts if not is_minor(fact)), Sign.NEUTRAL)

    @property
    def headline(self) -> Headline | None:
        """The decisive fact with its evidence; None if no fact is better or worse."""
        return self.headlines[0] if self.headlines else None

    def failing_headline(self, gates: Collection[str], *, is_strict: bool = True) -> Headline | None:
        """The decisive fact among those that fail; None if only the text of the code does.

        Args:
            gates: the gates that fail.
            is_strict: as in `failures`.
        """
        failing = [
            fact for fact in (self.facts if is_strict else self.worse_facts) if fact.category in gates or "any" in gates
        ]
        if not failing:
            return None
        by_key = {headline.fact.key: headline for headline in self.headlines}
        plain = Headline(failing[0], describe_decisive(failing[0], self.facts), None, "", "")
        return by_key.get(failing[0].key, plain)

    def failures(self, gates: Collection[str], *, is_strict: bool = True) -> tuple[str, ...]:
        """Those of some gates that this kernel fails, in their order.

        Args:
            gates: categories, `code` or `any`.
            is_strict: fail on every difference; else only on facts that got worse, and on `code`.
        """
        failed = {fact.category for fact in (self.facts if is_strict else self.worse_facts)}
        if self.degree in (Degree.CODE, Degree.CHANGED):
            failed |= {"code"}
            failed |= {"any"} if is_strict or failed - {"code"} else set()
        return tuple(gate for gate in GATES if gate in gates and gate in failed)

    @property
    def severity(self) -> tuple[int, ...]:
        """Sorts the worst first."""
        if self.degree is Degree.CHANGED:
            worst = min((rank_of(fact) for fact in self.facts), default=Consequence.OTHER.rank)
            return (0, worst, *(CATEGORIES.index(name) for name in self.categories))
        rest = (Degree.CODE, Degree.UNKNOWN, Degree.BENIGN, Degree.IDENTICAL)
        return (1 + rest.index(self.degree),)


class Sides(NamedTuple):
    """How a report speaks of two sides."""

    left: str = "on the left"
    right: str = "on the right"
    benign: str = "differ in names and line numbers only"


TWO_CACHES = Sides()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Two caches, compared."""

    changes: tuple[Change, ...]
    """Worst first."""
    matching: Matching
    problems: tuple[tuple[str, Problem], ...]
    """What could not be read, each with its side."""
    sides: Sides = TWO_CACHES

    def count(self, degree: Degree) -> int:
        """Kernels that changed that much."""
        return sum(change.degree is degree for change in self.changes)

    @property
    def by_category(self) -> dict[str, int]:
        """Category → kernels whose facts differ in it, most telling first."""
        counts = Counter(name for change in self.changes for name in change.categories)
        return {name: counts[name] for name in CATEGORIES if counts[name]}

    @property
    def is_same(self) -> bool:
        """True where nothing but names, places and numbering differs."""
        alone = self.matching.left or self.matching.right or self.matching.ambiguous
        return not alone and all(x.degree in (Degree.IDENTICAL, Degree.BENIGN) for x in self.changes)

    def failures(self, gates: Collection[str], *, is_strict: bool = True) -> tuple[str, ...]:
        """Those of some gates that fail, in their order; `is_strict` is that of `Change.failures`."""
        shut = {gate for change in self.changes for gate in change.failures(GATES, is_strict=is_strict)}
        shut |= {"gone", "any"} if self.matching.left else set()
        shut |= {"new", "any"} if self.matching.right else set()
        shut |= {"gone", "any"} if self.matching.ambiguous else set()
        return tuple(gate for gate in GATES if gate in gates and gate in shut)


def parse_gates(words: Iterable[str]) -> tuple[str, ...]:
    """Gates of repeated or comma-separated options.

    Raises:
        UsageError: a word is none.
    """
    found = [word.lower() for word in split_option_values(words)]
    for name in found:
        if name not in GATES:
            raise UsageError(f"{name!r} is nothing to fail on.", f"There are {', '.join(GATES)}.")
    return tuple(found)


def compare_corpora(
    left: Iterable[Artifact],
    right: Iterable[Artifact],
    inspect: Callable[[Artifact], KernelFacts],
    *,
    across: Collection[Axis] = (),
    progress: Callable[[str], None] | None = None,
    together: bool = False,
    always: bool = False,
) -> Corpus:
    """Match the kernels of two sides and compare each pair.

    Args:
        inspect: makes facts of a kernel; asked only where texts differ.
        across: what may differ between two kernels of a pair.
        progress: is told of each kernel beforehand.
        together: the two sides are one kernel each, chosen by hand: they are compared whatever they differ
            in.
        always: inspect even those whose texts are the same.
    """
    left, right = tuple(left), tuple(right)
    matching = match(left, right, tuple(Axis) if together else across)
    if together and not matching.pairs:
        pair = (Candidate(left[0]), Candidate(right[0]))
        matching = Matching((pair,), (), (), (), matching.across)
    changes = []
    problems: dict[tuple[str, Problem], None] = {}
    for one, other in matching.pairs:
        if progress is not None:
            progress(one.artifact.display_name)
        change = compare_candidates(one, other, inspect, always=always)
        if change.pair is not None:
            for side, kernel in ((PairSide.LEFT, change.pair.left), (PairSide.RIGHT, change.pair.right)):
                problems.update(dict.fromkeys((side, problem) for problem in kernel.problems))
        changes.append(change)
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
    pair = _compare_alike(left, right, inspect)
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
    )


def _compare_alike(left: Candidate, right: Candidate, inspect: Callable[[Artifact], KernelFacts]) -> Pair:
    """Compare two kernels by the stages that both have.

    A stage tells what later ones are measured by: with one that the other lacks, a kernel is told by another
    measure.
    """
    found = inspect(left.artifact), inspect(right.artifact)
    here, there = ({step_of(stage) for stage in kernel.stages} for kernel in found)
    both = here & there
    if not both or here == there:
        return compare_kernels(*found, (left, right))
    ours, theirs = (_limited(kernel, both, inspect) for kernel in found)
    lacking = tuple(
        f"the {side} one has no {', '.join(step for step in STEPS if step in lacks)} that could be read"
        for side, lacks in ((PairSide.LEFT, there - here), (PairSide.RIGHT, here - there))
        if lacks
    )
    pair = compare_kernels(ours, theirs)
    return replace(pair, notes=(*lacking, *pair.notes))


def _limited(kernel: KernelFacts, steps: Collection[str], inspect: Callable[[Artifact], KernelFacts]) -> KernelFacts:
    beyond = {stage.value for stage in kernel.stages if step_of(stage) not in steps}
    files = {suffix: path for suffix, path in kernel.artifact.files.items() if suffix not in beyond}
    return kernel if len(files) == len(kernel.artifact.files) else inspect(replace(kernel.artifact, files=files))


def _compare_files(left: Artifact, right: Artifact) -> tuple[Degree, str]:
    """The degree by the files that both have, and the first kind that differs; PTX and AMDGCN are one kind."""
    theirs = kinds_of(right)
    both = [kind for kind in kinds_of(left) if kind in theirs]
    if not both:
        return Degree.UNKNOWN, ""
    has_other_launch = None not in (left.shared_bytes, right.shared_bytes) and left.shared_bytes != right.shared_bytes
    degree = Degree.IDENTICAL
    for kind in both:
        found = likeness_of(left, right, kind)
        if found in (Likeness.DIFFERENT, Likeness.UNREADABLE):
            return Degree.CODE, kind
        degree = Degree.BENIGN if found is Likeness.ALIKE else degree
    return (Degree.CODE, "") if has_other_launch else (degree, "")
