"""Recorded kernels, and the comparison of a cache with them.

A record holds the identity of a kernel, its facts, and a digest of each of its files. That is enough to find the
same kernel again and to report its changes without the original cache.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any, ClassVar, NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.cause import find_reason, lines_of
from artifact_inspector.comparison.consequence import differing_facts
from artifact_inspector.comparison.corpus import TIME, Change, Corpus, Degree, Sides, limit_stages
from artifact_inspector.comparison.fact_pair import FactPair, PairSide, State
from artifact_inspector.comparison.headline import ComparedKernels, find_headlines
from artifact_inspector.comparison.likeness import kinds_of
from artifact_inspector.comparison.matching import (
    Axis,
    Candidate,
    digest_of,
    find_differences,
    match_candidates,
    pair_by_name,
)
from artifact_inspector.comparison.pair import compare_rows
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.comparison.sign import ELSEWHERE
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import BINARIES, Artifact, Problem
from artifact_inspector.files.binaries import read_loaded_sections
from artifact_inspector.files.digests import index_key, snapshot_files
from artifact_inspector.files.index import Index
from artifact_inspector.files.reader import read_file
from artifact_inspector.model import Stage
from artifact_inspector.vocabulary.fact import Sign, Value
from artifact_inspector.vocabulary.names import name_regions
from artifact_inspector.vocabulary.rows import Summary, fact_of, summarise

NOT_RECORDED = "the baseline's version did not know it"
FindDigests = Callable[[Artifact], Mapping[str, str]]
"""The digests of a kernel's files, by suffix."""
DEFAULT_GATES = (
    *(TIME, "verdict", "spills", "waits", "mma", "atomics", "shared"),
    *("occupancy", "loads", "stores", "conversions", "barriers", "gone"),
)
"""Predicted time, and facts that are stable from one build of a compiler to the next."""


class RecordedTime(NamedTuple):
    """The predicted time of a launch that was on record."""

    launch: Mapping[str, Any]
    """Grid and arguments, as in the record of a cache."""
    gpu: str | None
    """The product that was requested; None for the default one of the target."""
    microseconds: float | None
    cycles: float | None
    """Of a multiprocessor."""
    bottleneck: str | None
    """The largest term of the cost."""
    is_sampled: bool
    """Whether the microseconds are those of some CTAs; the cycles always are."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BaselineKernel(Candidate):
    """One kernel of a baseline; its artifact has no files."""

    summary: Summary
    digests: Mapping[str, str]
    """By suffix: of a stage's text without names, locations and numbering; of the loaded sections of a binary."""
    source: str | None
    """The source file, relative to the directory of the recording; only its name if it is elsewhere."""
    times: tuple[RecordedTime, ...] = ()
    """Predicted times of its launches."""
    side_name: ClassVar[str] = "recorded"

    @cached_property
    def program(self) -> KernelProgram | None:
        """Arguments and tiles as they were recorded."""
        if self.summary.signature is None or self.summary.tiles is None:
            return None
        return KernelProgram(self.summary.signature, self.summary.tiles)

    @property
    def kinds(self) -> Mapping[str, str]:
        """Its files that were recorded."""
        return kinds_of(self.digests)

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
    """The content of a baseline file."""

    generator: str
    """The version of this package that recorded it."""
    kernels: tuple[BaselineKernel, ...]
    fact_keys: frozenset[str] = frozenset()
    """Keys of the facts that its version knew; empty for files that do not list them."""

    @property
    def known_keys(self) -> frozenset[str]:
        """The keys that its version knew; those of the recorded facts for files that do not list them."""
        rows = (row for kernel in self.kernels for row in kernel.summary.rows)
        facts = (fact_of(row.key, row.region) for row in rows)
        return self.fact_keys or frozenset(fact.key for fact in facts if fact is not None)


def record(
    kernel: KernelFacts, find: Callable[[str], str | None], find_digests: FindDigests | None = None
) -> BaselineKernel:
    """The record of a kernel in a baseline.

    Args:
        find: the path of a source file from the root of the working tree; None if it is not in the tree.
        find_digests: the digests of a kernel's files, if they are stored.
    """
    artifact = kernel.artifact
    location = None if kernel.program is None else kernel.program.location
    file = None if location is None else location.file.replace("\\", "/")
    source = None if file is None else find(file) or file.rpartition("/")[2]
    digests = (find_digests or digests_of)(artifact)
    return BaselineKernel(artifact=artifact, summary=summarise(kernel), digests=digests, source=source)


@contextmanager
def stored_digests(artifacts: Iterable[Artifact], open_index: Callable[[], Index] | None) -> Iterator[FindDigests]:
    """A function that returns the digests of these kernels' files, which the index keeps."""
    if open_index is None:
        yield digests_of
        return
    snapshots = {id(artifact): snapshot for artifact in artifacts if (snapshot := snapshot_files(artifact)) is not None}
    keys = {at: index_key(snapshot.digest, b"digests") for at, snapshot in snapshots.items()}
    with open_index() as index:
        stored = index.get(keys.values())
    fresh: dict[bytes, bytes] = {}

    def find_digests(artifact: Artifact) -> Mapping[str, str]:
        key = keys.get(id(artifact))
        if key in stored:
            return dict(json.loads(stored[key]))
        digests = digests_of(artifact)
        if key is not None and snapshots[id(artifact)].is_current(artifact):
            fresh[key] = json.dumps(digests).encode()
        return digests

    yield find_digests
    if fresh:
        with open_index() as index:
            index.put(fresh)


def digests_of(artifact: Artifact) -> dict[str, str]:
    """Suffix → digest, of every text and binary that can be read."""
    digests = {stage.value: digest_of(artifact, stage) for stage in Stage}
    for suffix in BINARIES:
        if suffix in artifact.files:
            try:
                content = read_file(artifact, suffix)
            except CacheError:
                continue
            digests[suffix] = _digest_of_binary(content, suffix)
    return {suffix: digest for suffix, digest in digests.items() if digest is not None}


def _digest_of_binary(content: bytes, suffix: str) -> str:
    """Of the sections that a GPU loads; the others hold line numbers and the path of the source."""
    digest = blake2b(digest_size=16)
    try:
        for name, section in sorted(read_loaded_sections(content, suffix).items()):
            digest.update(b"%d %s %d " % (len(name.encode()), name.encode(), len(section)))
            digest.update(section)
    except CacheError:
        digest.update(content)
    return digest.hexdigest()


def compare_with_baseline(
    recorded: Sequence[BaselineKernel],
    artifacts: Iterable[Artifact],
    inspect: Callable[[Artifact], KernelFacts],
    *,
    across: Collection[Axis] = (),
    problems: Iterable[Problem] = (),
    progress: Callable[[str], None] | None = None,
    find_digests: FindDigests | None = None,
    known_keys: Collection[str] = (),
    predict: Callable[[BaselineKernel, Candidate], PairPrice | None] = lambda recorded, candidate: None,
) -> Corpus:
    """A cache compared with a baseline, which is the left side.

    If the two have no version of Triton in common, the version may differ; a different target may not, unless
    `across` allows it. A fact that was known and is unknown now counts as a difference, so its gate fails.

    Args:
        inspect: computes the facts of a kernel; called only if its files differ from the record.
        across: what may differ.
        progress: called with the name of each kernel before it is compared.
        find_digests: the digests of a kernel's files, if they are stored.
        known_keys: keys of the facts that the baseline's version knew; others are not compared. Empty for all.
        predict: the recorded time of a launch and that of the kernel; called only if its files differ.

    Raises:
        UsageError: the targets of the baseline and of the cache differ.
    """
    candidates = [Candidate(artifact) for artifact in artifacts]
    allowed = set(across)
    if {x.artifact.triton_version for x in recorded}.isdisjoint(x.artifact.triton_version for x in candidates):
        allowed.add(Axis.VERSION)
    if Axis.TARGET not in allowed:
        _check_targets(recorded, candidates)
    digests: dict[int, Mapping[str, str]] = {}
    for candidate in candidates:
        if progress is not None:
            progress(candidate.artifact.display_name)
        digests[id(candidate)] = (find_digests or digests_of)(candidate.artifact)
    same, ours, theirs = _unchanged(recorded, candidates, digests)
    matching = pair_by_name(match_candidates(ours, theirs, frozenset(allowed)))
    changes = [Change(*pair, Degree.BENIGN, (), (), None) for pair in same]
    problem_log = dict.fromkeys(("cache", problem) for problem in problems)
    for entry, counterpart in matching.pairs:
        assert isinstance(entry, BaselineKernel)
        if (
            entry.digests == digests[id(counterpart)]
            and entry.artifact.shared_bytes == counterpart.artifact.shared_bytes
        ):
            changes.append(Change(entry, counterpart, Degree.BENIGN, find_differences(entry, counterpart), (), None))
            continue
        # what was recorded at an early stage, since no later one was there, is compared at that stage
        kernel = limit_stages(inspect(counterpart.artifact), entry.summary.steps, inspect)
        problem_log.update(dict.fromkeys(("cache", problem) for problem in kernel.problems))
        degree = _compare_digests(entry, counterpart, digests[id(counterpart)])
        change = _compare_kernel(entry, counterpart, kernel, degree, known_keys)
        changes.append(change.with_price(predict(entry, counterpart)))
    changes.sort(key=lambda change: (change.severity, str(change.left)))  # whose labels need no file
    matching = replace(matching, pairs=(*same, *matching.pairs))
    sides = Sides("in the baseline", "in the cache", "as recorded")
    return Corpus(tuple(changes), matching, tuple(problem_log), sides)


def _unchanged(
    recorded: Sequence[BaselineKernel], candidates: Sequence[Candidate], digests: Mapping[int, Mapping[str, str]]
) -> tuple[list[tuple[BaselineKernel, Candidate]], list[BaselineKernel], list[Candidate]]:
    """Pairs of identical records, and the remaining kernels of both sides.

    Identical kernels are interchangeable, so any of them may be paired with any other.
    """

    def key(x: Candidate, of: Mapping[str, str]) -> Hashable:
        artifact = x.artifact
        known_by = (artifact.display_name, artifact.name, x.target, artifact.triton_version)
        return (*known_by, artifact.shared_bytes, tuple(x.options.items()), tuple(sorted(of.items())))

    unmatched: dict[Hashable, list[BaselineKernel]] = {}
    for entry in recorded:
        if entry.digests:
            unmatched.setdefault(key(entry, entry.digests), []).append(entry)
    pairs, changed = [], []
    for candidate in candidates:
        same = unmatched.get(key(candidate, digests[id(candidate)]))
        if same:
            pairs.append((same.pop(0), candidate))
        else:
            changed.append(candidate)
    done = {id(entry) for entry, _ in pairs}
    return pairs, [entry for entry in recorded if id(entry) not in done], changed


def _compare_kernel(
    recorded: BaselineKernel, candidate: Candidate, kernel: KernelFacts, degree: Degree, known_keys: Collection[str]
) -> Change:
    old, now = recorded.summary, summarise(kernel)
    fact_pairs = tuple(_mark_new(_mark_lost(fact, old, now), known_keys) for fact in compare_rows(old, now))
    degree = Degree.CHANGED if any(fact.differs for fact in fact_pairs) else degree
    differences = find_differences(recorded, candidate)
    lines = lines_of(kernel)
    explanation = find_reason(kernel, fact_pairs, name_regions(kernel), lines)
    headlines = find_headlines(differing_facts(fact_pairs), ComparedKernels(None, kernel, lines, differences))
    return Change(recorded, candidate, degree, differences, fact_pairs, None, lines, explanation, headlines=headlines)


def _compare_digests(recorded: BaselineKernel, candidate: Candidate, digests: Mapping[str, str]) -> Degree:
    """By the files that both have, as far as no fact differs."""
    both = recorded.digests.keys() & digests
    sizes = {recorded.artifact.shared_bytes, candidate.artifact.shared_bytes} - {None}
    is_same = bool(both) and len(sizes) < 2 and all(recorded.digests[suffix] == digests[suffix] for suffix in both)
    return Degree.BENIGN if is_same else Degree.CODE


def _mark_lost(fact: FactPair, recorded: Summary, now: Summary) -> FactPair:
    """Report a fact that became unknown as one that only the baseline has; not a copy of a loop's body that went."""
    if fact.state is not State.NOT_COMPARED or fact.left is None or fact.reason == ELSEWHERE:
        return fact
    has_source = fact.step in now.steps if fact.step else bool(now.options or not recorded.options)
    if fact.right is not None and has_source:
        return fact  # known on both sides, but read from other files
    return fact._replace(
        state=State.ONE_SIDED, right=None, reason="unknown now", unknown=(PairSide.RIGHT,), direction=Sign.WORSE
    )


def _mark_new(fact: FactPair, known_keys: Collection[str]) -> FactPair:
    """Do not compare a fact that the version of the baseline did not know."""
    definition = fact_of(fact.key, fact.region)
    if not known_keys or fact.left is not None or definition is None or definition.key in known_keys:
        return fact
    return fact._replace(state=State.NOT_COMPARED, reason=NOT_RECORDED, direction=Sign.NEUTRAL)


def _check_targets(recorded: Sequence[BaselineKernel], candidates: Sequence[Candidate]) -> None:
    ours, theirs = ({x.target or "an unknown target" for x in side} for side in (recorded, candidates))
    if ours and theirs and ours.isdisjoint(theirs):
        raise UsageError(
            f"The baseline is for {', '.join(sorted(ours))}, but the cache is for {', '.join(sorted(theirs))}.",
            "Record a baseline for that target, or pass --across target.",
        )
