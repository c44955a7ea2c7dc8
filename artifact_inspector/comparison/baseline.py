"""Kernels as they were once recorded, and a cache held against them.

A record holds what a kernel is known by, its facts, and a digest of each of its files: enough to find the
same kernel again and to say what became of it, without the cache that it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.cause import find_reason, lines_of
from artifact_inspector.comparison.consequence import differing_facts
from artifact_inspector.comparison.corpus import Change, Corpus, Degree, Sides
from artifact_inspector.comparison.fact_pair import FactPair, PairSide, State
from artifact_inspector.comparison.headline import ComparedKernels, find_headlines
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    digest_of,
    find_differences,
    match_candidates,
)
from artifact_inspector.comparison.pair import compare_rows
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import BINARIES, Artifact, Problem
from artifact_inspector.files.binaries import read_loaded_sections
from artifact_inspector.files.reader import read_file
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.fact import Sign, Value
from artifact_inspector.vocabulary.names import name_regions
from artifact_inspector.vocabulary.rows import Summary, summarise

DEFAULT_GATES = ("verdict", "spills", "waits", "mma", "shared", "gone")
"""What does not shift by itself from one build of a compiler to the next."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Recorded(Candidate):
    """One kernel of a baseline; its artifact has no files."""

    summary: Summary
    digests: Mapping[str, str]
    """By suffix: of a stage's text without names, places and numbering; of what a GPU loads of a binary."""
    source: str | None
    """The file that it was compiled from, from the directory that it was recorded in; only its name where
    it does not lie there."""

    @cached_property
    def program(self) -> KernelProgram | None:
        """Arguments and tiles as they were recorded."""
        if self.summary.signature is None or self.summary.tiles is None:
            return None
        return KernelProgram(self.summary.signature, self.summary.tiles)

    @cached_property
    def fingerprint(self) -> str | None:
        """Of the canonical TTIR."""
        return self.digests.get(Stage.TTIR.value)

    @cached_property
    def options(self) -> dict[str, Value]:
        """As they were recorded."""
        return dict(self.summary.options)


@dataclass(frozen=True, slots=True)
class Baseline:
    """What a baseline file says."""

    generator: str
    """The version of this package that recorded it."""
    kernels: tuple[Recorded, ...]


def record(kernel: KernelFacts, find: Callable[[str], str | None]) -> Recorded:
    """A kernel as a baseline keeps it.

    Args:
        find: the path of a source file from the root of the working tree; None for one that is not there.
    """
    artifact = kernel.artifact
    place = None if kernel.program is None else kernel.program.location
    file = None if place is None else place.file.replace("\\", "/")
    source = None if file is None else find(file) or file.rpartition("/")[2]
    return Recorded(artifact=artifact, summary=summarise(kernel), digests=digests_of(artifact), source=source)


def digests_of(artifact: Artifact) -> dict[str, str]:
    """Suffix → digest, of every text and binary that can be read."""
    found = {stage.value: digest_of(artifact, stage) for stage in Stage}
    for suffix in BINARIES:
        if suffix in artifact.files:
            try:
                content = read_file(artifact, suffix)
            except CacheError:
                continue
            found[suffix] = _digest_of_binary(content, suffix)
    return {suffix: digest for suffix, digest in found.items() if digest is not None}


def _digest_of_binary(content: bytes, suffix: str) -> str:
    """Of what a GPU is given: the rest tells the lines and the path of the program."""
    digest = blake2b(digest_size=16)
    try:
        for name, section in sorted(read_loaded_sections(content, suffix).items()):
            digest.update(b"%d %s %d " % (len(name.encode()), name.encode(), len(section)))
            digest.update(section)
    except CacheError:
        digest.update(content)
    return digest.hexdigest()


def compare_with_baseline(
    recorded: Sequence[Recorded],
    artifacts: Iterable[Artifact],
    inspect: Callable[[Artifact], KernelFacts],
    *,
    across: Collection[Axis] = (),
    problems: Iterable[Problem] = (),
    progress: Callable[[str], None] | None = None,
) -> Corpus:
    """A cache held against a baseline: the left side is the baseline.

    A new version of Triton is what a baseline is held against most, so where the two have no version in
    common, that may differ unasked; another target may not. A fact that was known and is not known any
    more differs: a gate that nobody can look through is shut.

    Args:
        inspect: makes facts of a kernel; asked only where its files are not those recorded.
        across: what may differ.
        problems: of the cache.
        progress: is told of each kernel beforehand.

    Raises:
        UsageError: the baseline is of other targets.
    """
    found = [Candidate(artifact) for artifact in artifacts]
    allowed = set(across)
    if {x.artifact.triton_version for x in recorded}.isdisjoint(x.artifact.triton_version for x in found):
        allowed.add(Axis.VERSION)
    if Axis.TARGET not in allowed:
        _refuse_other_targets(recorded, found)
    digests: dict[int, Mapping[str, str]] = {}
    for candidate in found:
        if progress is not None:
            progress(candidate.artifact.display_name)
        digests[id(candidate)] = digests_of(candidate.artifact)
    same, ours, theirs = _unchanged(recorded, found, digests)
    matching = match_candidates(ours, theirs, frozenset(allowed))
    changes = [Change(*pair, Degree.BENIGN, (), (), None) for pair in same]
    told = dict.fromkeys(("cache", problem) for problem in problems)
    for one, other in matching.pairs:
        assert isinstance(one, Recorded)
        if one.digests == digests[id(other)] and one.artifact.shared_bytes == other.artifact.shared_bytes:
            changes.append(Change(one, other, Degree.BENIGN, find_differences(one, other), (), None))
            continue
        kernel = inspect(other.artifact)
        told.update(dict.fromkeys(("cache", problem) for problem in kernel.problems))
        changes.append(_change(one, other, kernel))
    changes.sort(key=lambda change: (change.severity, str(change.right)))
    matching = replace(matching, pairs=(*same, *matching.pairs))
    sides = Sides("in the baseline", "in the cache", "as recorded")
    return Corpus(tuple(changes), matching, tuple(told), sides)


def _unchanged(
    recorded: Sequence[Recorded], candidates: Sequence[Candidate], digests: Mapping[int, Mapping[str, str]]
) -> tuple[list[tuple[Recorded, Candidate]], list[Recorded], list[Candidate]]:
    """Pairs that are the same in all that is known of them, and what is left of both sides.

    Of several kernels that are all the same, any is the like of any: they need no telling apart.
    """

    def key(x: Candidate, of: Mapping[str, str]) -> Hashable:
        artifact = x.artifact
        known_by = (artifact.display_name, artifact.name, x.target, artifact.triton_version)
        return (*known_by, artifact.shared_bytes, tuple(x.options.items()), tuple(sorted(of.items())))

    left: dict[Hashable, list[Recorded]] = {}
    for one in recorded:
        if one.digests:
            left.setdefault(key(one, one.digests), []).append(one)
    pairs, rest = [], []
    for other in candidates:
        alike = left.get(key(other, digests[id(other)]))
        if alike:
            pairs.append((alike.pop(0), other))
        else:
            rest.append(other)
    done = {id(one) for one, _ in pairs}
    return pairs, [one for one in recorded if id(one) not in done], rest


def _change(recorded: Recorded, candidate: Candidate, kernel: KernelFacts) -> Change:
    held = tuple(_lost(fact) for fact in compare_rows(recorded.summary, summarise(kernel)))
    degree = Degree.CHANGED if any(fact.differs for fact in held) else Degree.CODE
    differences = find_differences(recorded, candidate)
    lines = lines_of(kernel)
    reason = find_reason(kernel, held, name_regions(kernel), lines)
    headlines = find_headlines(differing_facts(held), ComparedKernels(None, kernel, lines, differences))
    return Change(recorded, candidate, degree, differences, held, None, lines, reason, headlines=headlines)


def _lost(fact: FactPair) -> FactPair:
    """A fact that is not known any more as one that only the baseline has."""
    if fact.state is not State.NOT_COMPARED or fact.left is None:
        return fact
    return fact._replace(
        state=State.ONE_SIDED,
        right=None,
        why="not known any more",
        unknown=(PairSide.RIGHT,),
        direction=Sign.WORSE,
    )


def _refuse_other_targets(recorded: Sequence[Recorded], candidates: Sequence[Candidate]) -> None:
    ours, theirs = ({x.target or "no known target" for x in side} for side in (recorded, candidates))
    if ours and theirs and ours.isdisjoint(theirs):
        raise UsageError(
            f"The baseline is of {', '.join(sorted(ours))}, the cache of {', '.join(sorted(theirs))}.",
            "Record one of that target, or compare the two: --across target.",
        )
