"""Two caches: every kernel of one held against its like in the other, and how much each changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from artifact_inspector.comparison.cause import ChangeReason
from artifact_inspector.comparison.consequence import rank_of
from artifact_inspector.comparison.likeness import Likeness, kinds_of, likeness_of
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    Matching,
    find_differences,
    match,
)
from artifact_inspector.comparison.pair import Comparison, FactPair, PairSide, compare_kernels
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Artifact, Problem
from artifact_inspector.model import Consequence
from artifact_inspector.model.text import split_option_values
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
    pair: Comparison | None
    """None also where one side is a record of facts."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Region by its name → its line in the source, on the right."""
    reason: ChangeReason | None = None
    """What explains it, where one side is a record of facts; of a pair, the pair tells."""

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
        differing = [fact for fact in self.compared_facts if fact.differs]
        return tuple(sorted(differing, key=lambda x: (rank_of(x), CATEGORIES.index(x.category))))

    @property
    def categories(self) -> tuple[str, ...]:
        """What the differing facts are about, most telling first."""
        return tuple(dict.fromkeys(fact.category for fact in self.facts))

    def failures(self, gates: Collection[str]) -> tuple[str, ...]:
        """Those of some gates that this kernel shuts, in their order."""
        failing = set(self.categories)
        if self.degree in (Degree.CODE, Degree.CHANGED):
            failing |= {"code", "any"}
        return tuple(gate for gate in GATES if gate in gates and gate in failing)

    @property
    def severity(self) -> tuple[int, ...]:
        """Sorts the worst first."""
        if self.degree is Degree.CHANGED:
            worst = min((rank_of(fact) for fact in self.facts), default=Consequence.OTHER.rank)
            return (0, worst, *(CATEGORIES.index(name) for name in self.categories))
        degrees = (Degree.CODE, Degree.UNKNOWN, Degree.BENIGN, Degree.IDENTICAL)
        return (1 + degrees.index(self.degree),)


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
        unmatched = self.matching.left or self.matching.right or self.matching.ambiguous
        return not unmatched and all(x.degree in (Degree.IDENTICAL, Degree.BENIGN) for x in self.changes)

    def failures(self, gates: Collection[str]) -> tuple[str, ...]:
        """Those of some gates that are shut, in their order."""
        failing = {gate for change in self.changes for gate in change.failures(GATES)}
        failing |= {"gone", "any"} if self.matching.left else set()
        failing |= {"new", "any"} if self.matching.right else set()
        failing |= {"gone", "any"} if self.matching.ambiguous else set()
        return tuple(gate for gate in GATES if gate in gates and gate in failing)


def parse_gates(values: Iterable[str]) -> tuple[str, ...]:
    """Gates of repeated or comma-separated options.

    Raises:
        UsageError: a word is none.
    """
    gates = [value.lower() for value in split_option_values(values)]
    for name in gates:
        if name not in GATES:
            raise UsageError(f"{name!r} is nothing to fail on.", f"There are {', '.join(GATES)}.")
    return tuple(gates)


def compare_corpora(
    left: Iterable[Artifact],
    right: Iterable[Artifact],
    inspect: Callable[[Artifact], KernelFacts],
    *,
    across: Collection[Axis] = (),
    progress: Callable[[str], None] | None = None,
    is_one_pair: bool = False,
    always: bool = False,
) -> Corpus:
    """Match the kernels of two sides and compare each pair.

    Args:
        inspect: makes facts of a kernel; asked only where texts differ.
        across: what may differ between two kernels of a pair.
        progress: is told of each kernel beforehand.
        is_one_pair: the two sides are one kernel each, chosen by hand: they are compared whatever they differ
            in.
        always: inspect even those whose texts are the same.
    """
    left, right = tuple(left), tuple(right)
    matching = match(left, right, tuple(Axis) if is_one_pair else across)
    if is_one_pair and not matching.pairs:
        pair = (Candidate(left[0]), Candidate(right[0]))
        matching = Matching((pair,), (), (), (), matching.across)
    changes = []
    problems: dict[tuple[str, Problem], None] = {}
    for candidate, counterpart in matching.pairs:
        if progress is not None:
            progress(candidate.artifact.display_name)
        change = compare_candidates(candidate, counterpart, inspect, always=always)
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
    degree = _find_degree(left.artifact, right.artifact)
    if degree in (Degree.IDENTICAL, Degree.BENIGN) and not always:
        return Change(left, right, degree, differences, (), None)
    pair = _compare_common_stages(left, right, inspect)
    changed = any(fact.differs for fact in pair.facts)
    return Change(left, right, Degree.CHANGED if changed else degree, differences, pair.facts, pair)


def _compare_common_stages(left: Candidate, right: Candidate, inspect: Callable[[Artifact], KernelFacts]) -> Comparison:
    """Compare two kernels by the stages that both have.

    A stage tells what later ones are measured by: with one that the other lacks, a kernel is told by another
    measure.
    """
    kernels = inspect(left.artifact), inspect(right.artifact)
    our_steps, their_steps = ({step_of(stage) for stage in kernel.stages} for kernel in kernels)
    both = our_steps & their_steps
    if not both or our_steps == their_steps:
        return compare_kernels(*kernels, (left, right))
    ours, theirs = (_limit_stages(kernel, both, inspect) for kernel in kernels)
    lacking = tuple(
        f"the {side} one has no {', '.join(step for step in STEPS if step in lacks)} that could be read"
        for side, lacks in ((PairSide.LEFT, their_steps - our_steps), (PairSide.RIGHT, our_steps - their_steps))
        if lacks
    )
    pair = compare_kernels(ours, theirs)
    return replace(pair, notes=(*lacking, *pair.notes))


def _limit_stages(
    kernel: KernelFacts, steps: Collection[str], inspect: Callable[[Artifact], KernelFacts]
) -> KernelFacts:
    beyond = {stage.value for stage in kernel.stages if step_of(stage) not in steps}
    files = {suffix: path for suffix, path in kernel.artifact.files.items() if suffix not in beyond}
    return kernel if len(files) == len(kernel.artifact.files) else inspect(replace(kernel.artifact, files=files))


def _find_degree(left: Artifact, right: Artifact) -> Degree:
    """By the files that both have; PTX and AMDGCN are two files of one kind."""
    theirs = kinds_of(right)
    both = [kind for kind in kinds_of(left) if kind in theirs]
    if not both:
        return Degree.UNKNOWN
    if None not in (left.shared_bytes, right.shared_bytes) and left.shared_bytes != right.shared_bytes:
        return Degree.CODE
    degree = Degree.IDENTICAL
    for kind in both:
        likeness = likeness_of(left, right, kind)
        if likeness in (Likeness.DIFFERENT, Likeness.UNREADABLE):
            return Degree.CODE
        degree = Degree.BENIGN if likeness is Likeness.ALIKE else degree
    return degree
