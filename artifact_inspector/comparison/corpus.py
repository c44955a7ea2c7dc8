"""Two caches: every kernel of one held against its like in the other, and how much each changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from artifact_inspector.cache import BINARIES, Artifact, Problem, read_stage
from artifact_inspector.comparison.canonical import canonical
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    Difference,
    Matching,
    find_differences,
    match,
)
from artifact_inspector.comparison.pair import FactPair, Pair, compare_kernels
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.summary import CATEGORIES

__all__ = ["GATES", "Change", "Corpus", "Degree", "Sides", "compare_corpora", "parse_gates"]


class Degree(Enum):
    """How much a kernel changed."""

    IDENTICAL = "identical"
    """Every text and binary is the same to the byte."""
    BENIGN = "benign"
    """Names, line numbers, numbering of registers or metadata: the same program."""
    CODE = "code"
    """The text differs in more than that, and no fact does."""
    CHANGED = "changed"
    """Facts differ."""


GATES = (*CATEGORIES, "code", "gone", "new", "any")
"""What a comparison can be asked to fail on: a category of facts, any change of text, a kernel that is
gone or new, or anything at all."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kernel in both caches."""

    left: Candidate
    right: Candidate
    degree: Degree
    differences: tuple[Difference, ...]
    held: tuple[FactPair, ...]
    """All facts of both; empty where the texts already say that nothing differs."""
    pair: Pair | None
    """None also where one side is a record of facts."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Region by its name → its line in the source, on the right."""

    @property
    def facts(self) -> tuple[FactPair, ...]:
        """What differs, most telling first."""
        found = [fact for fact in self.held if fact.differs]
        return tuple(sorted(found, key=lambda fact: CATEGORIES.index(fact.category)))

    @property
    def categories(self) -> tuple[str, ...]:
        """What the differing facts are about, most telling first."""
        return tuple(dict.fromkeys(fact.category for fact in self.facts))

    def failures(self, gates: Collection[str]) -> tuple[str, ...]:
        """Those of some gates that this kernel shuts, in their order."""
        shut = set(self.categories)
        if self.degree in (Degree.CODE, Degree.CHANGED):
            shut |= {"code", "any"}
        return tuple(gate for gate in GATES if gate in gates and gate in shut)

    @property
    def severity(self) -> tuple[int, ...]:
        """Sorts the worst first."""
        if self.degree is Degree.CHANGED:
            return (0, *(CATEGORIES.index(name) for name in self.categories))
        return (1 + (Degree.CODE, Degree.BENIGN, Degree.IDENTICAL).index(self.degree),)


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

    def failures(self, gates: Collection[str]) -> tuple[str, ...]:
        """Those of some gates that are shut, in their order."""
        shut = {gate for change in self.changes for gate in change.failures(GATES)}
        shut |= {"gone", "any"} if self.matching.left else set()
        shut |= {"new", "any"} if self.matching.right else set()
        shut |= {"gone", "any"} if self.matching.ambiguous else set()
        return tuple(gate for gate in GATES if gate in gates and gate in shut)


def parse_gates(words: Iterable[str]) -> tuple[str, ...]:
    """Gates of repeated or comma-separated options.

    Raises:
        UsageError: a word is none.
    """
    found = [part.strip().lower() for word in words for part in word.split(",") if part.strip()]
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
        change = _compare(one, other, inspect, always=always)
        if change.pair is not None:
            for side, kernel in (("left", change.pair.left), ("right", change.pair.right)):
                problems.update(dict.fromkeys((side, problem) for problem in kernel.problems))
        changes.append(change)
    changes.sort(key=lambda change: (change.severity, str(change.left)))
    return Corpus(tuple(changes), matching, tuple(problems))


def _compare(
    one: Candidate, other: Candidate, inspect: Callable[[Artifact], KernelFacts], *, always: bool
) -> Change:
    differences = find_differences(one, other)
    degree = _degree(one.artifact, other.artifact)
    if degree is not Degree.CODE and not always:
        return Change(one, other, degree, differences, (), None)
    pair = compare_kernels(inspect(one.artifact), inspect(other.artifact))
    changed = any(fact.differs for fact in pair.facts)
    return Change(one, other, Degree.CHANGED if changed else degree, differences, pair.facts, pair)


def _degree(one: Artifact, other: Artifact) -> Degree:
    """By the texts alone: identical, benign, or more than that."""
    stages = [stage for stage in Stage if stage.value in one.files or stage.value in other.files]
    if any(stage.value not in one.files or stage.value not in other.files for stage in stages):
        return Degree.CODE
    binaries = [suffix for suffix in BINARIES if suffix in one.files and suffix in other.files]
    try:
        same = all(
            one.files[suffix].read_bytes() == other.files[suffix].read_bytes()
            for suffix in (*(stage.value for stage in stages), *binaries)
        )
        if same and one.shared_bytes == other.shared_bytes:
            return Degree.IDENTICAL
        if not stages:
            return Degree.CODE
        texts = (
            [canonical(read_stage(artifact, stage.value).source.text, stage) for artifact in (one, other)]
            for stage in stages
        )
        alike = all(ours == theirs for ours, theirs in texts)
    except (OSError, CacheError):
        return Degree.CODE  # whoever reads it next says what is wrong
    return Degree.BENIGN if alike and one.shared_bytes == other.shared_bytes else Degree.CODE
