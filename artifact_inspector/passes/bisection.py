"""Find the Triton release in which a fact changed, and the passes that made it before and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath
from typing import Protocol

from artifact_inspector.compiling.ask.environments import releases_between
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage
from artifact_inspector.passes.dump_facts import Topic, read_dump_facts, topic_of
from artifact_inspector.passes.dumped_compile import NoticeCallback
from artifact_inspector.passes.subject import TraceSubject, trace_passes
from artifact_inspector.passes.trace import FactChange, PassRun, PassTrace
from artifact_inspector.vocabulary.fact import Sign, SignedDifference, Value
from artifact_inspector.vocabulary.names import FactKey, step_of

_COMPARED_STAGES = (Stage.TTGIR, Stage.LLIR, Stage.PTX, Stage.AMDGCN)


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """The result of compiling with one release."""

    triton: str
    values: Mapping[str, Value]
    """Stage and fact (`ttgir straight.verdict`) → value; empty if the compiler refused the kernel."""
    message: str | None
    """The compiler's error message; None if it compiled."""


@dataclass(frozen=True, slots=True)
class ReleaseDifference:
    """A fact whose value differs in the newer release."""

    stage: str
    key: str
    older_value: Value
    newer_value: Value
    older_pass: tuple[PassRun, FactChange] | None
    """The last pass of the older release that changed it; null if none did."""
    newer_pass: tuple[PassRun, FactChange] | None
    direction: Sign = Sign.NEUTRAL
    """Whether the newer release is better or worse in it; neutral where only some topics are compared."""


class ReleaseComparer(Protocol):
    """Reads and compares all facts of releases."""

    def read_values(self, release: str, artifact: Artifact) -> Mapping[str, Value]:
        """Key → value of all facts of what a release compiled."""

    def find_decisive_keys(self, first: str, last: str) -> Collection[str]:
        """The facts that decide whether the last release differs from the first."""

    def list_differences(self, older: str, newer: str) -> Iterable[SignedDifference]:
        """The facts that differ between two releases, the decisive one first."""


@dataclass(frozen=True, slots=True)
class Bisection:
    """The release in which a kernel's facts changed."""

    kernel: str
    target: str
    topics: tuple[Topic, ...]
    """The topics that were compared; empty if all facts of comparisons were."""
    releases: tuple[ReleaseResult, ...]
    """The compiled releases in order; releases that the search skipped are missing."""
    changed_between: tuple[str, str] | None
    """The last release with the facts of the first, and the next one; null if all agree."""
    differences: tuple[ReleaseDifference, ...]
    """Earliest stage first."""


def bisect(
    subject: TraceSubject,
    topics: Collection[Topic],
    releases: Sequence[str],
    *,
    notice: NoticeCallback = lambda sentence: None,
    progress: Callable[[str], None] = lambda release: None,
    comparer: ReleaseComparer | None = None,
) -> Bisection:
    """Find the release in which the facts of a kernel changed, by bisection if only two ends are given.

    A release that refuses the kernel is recorded, and the search continues with its neighbours.

    Args:
        releases: two ends, between which the known releases are bisected, or all releases to compile.
        comparer: compares all facts instead of those of `topics`.

    Raises:
        UsageError: fewer than two releases.
        CompileError: one of the ends refuses the kernel.
    """
    if len(releases) < 2:
        raise UsageError("A bisection needs two releases.", "Give --between 3.2.0,3.3.1, or more releases.")
    release_line = list(releases) if len(releases) > 2 else list(releases_between(*releases))
    search = _ReleaseSearch(subject, frozenset(topics), notice, progress, comparer)
    first, last = search.result_of(release_line[0]), search.result_of(release_line[-1])
    for end in (first, last):
        if end.message is not None:
            raise CompileError(f"Triton {end.triton} refuses the kernel: {end.message}", "Choose other ends.")
    if comparer is not None:
        search.decisive_keys = comparer.find_decisive_keys(first.triton, last.triton)
    changed = search.find_change(release_line, is_list=len(releases) > 2)
    tried = tuple(search.results[release] for release in release_line if release in search.results)
    differences = () if changed is None else search.find_differences(*changed)
    name = subject.name or PurePath(subject.request["place"]).name
    compared_topics = () if comparer is not None else tuple(topics)
    return Bisection(name, str(subject.target), compared_topics, tried, changed, differences)


class _ReleaseSearch:
    def __init__(
        self,
        subject: TraceSubject,
        topics: frozenset[Topic],
        notice: NoticeCallback,
        progress: Callable[[str], None],
        comparer: ReleaseComparer | None,
    ) -> None:
        self.subject, self.topics, self.notice, self.progress = subject, topics, notice, progress
        self.comparer = comparer
        self.decisive_keys: Collection[str] | None = None
        """Facts that a release must share with another one to count as equal; None for all."""
        self.results: dict[str, ReleaseResult] = {}
        self.traces: dict[str, PassTrace] = {}

    def result_of(self, release: str) -> ReleaseResult:
        if release not in self.results:
            self.progress(release)
            try:
                with self.subject.compile_without_dumps(self.notice, release) as artifact:
                    comparer = self.comparer
                    values = comparer.read_values(release, artifact) if comparer else self._read_values(artifact)
                self.results[release] = ReleaseResult(release, values, None)
            except CompileError as error:
                self.results[release] = ReleaseResult(release, {}, error.message)
        return self.results[release]

    def _read_values(self, artifact: Artifact) -> Mapping[str, Value]:
        return {
            f"{step_of(stage)} {key}": fact.value
            for stage in _COMPARED_STAGES
            if stage.value in artifact.files
            for key, fact in read_dump_facts(artifact, stage, None, self.topics).items()
            if not fact.by_names  # names of values differ between releases
        }

    def _has_equal_facts(self, older: str, newer: str) -> bool:
        values = self.results[older].values, self.results[newer].values
        if self.decisive_keys is None:
            return values[0] == values[1]
        return all(values[0].get(key) == values[1].get(key) for key in self.decisive_keys)

    def find_change(self, line: Sequence[str], *, is_list: bool) -> tuple[str, str] | None:
        """The two neighbouring releases that differ, among those that compile the kernel."""
        if is_list:
            for release in line:
                self.result_of(release)
            pairs = pairwise(release for release in line if self.results[release].message is None)
            return next(((a, b) for a, b in pairs if not self._has_equal_facts(a, b)), None)
        low, high = 0, len(line) - 1
        if self._has_equal_facts(line[low], line[high]):
            return None
        untested = list(range(low + 1, high))
        while untested:
            middle = untested[len(untested) // 2]
            middle_result = self.result_of(line[middle])
            if middle_result.message is not None:
                untested.remove(middle)
                continue
            if self._has_equal_facts(line[low], line[middle]):
                low = middle
            else:
                high = middle
            untested = [index for index in untested if low < index < high]
        return line[low], line[high]

    def find_differences(self, older: str, newer: str) -> tuple[ReleaseDifference, ...]:
        """The facts that differ, each with the pass of either release that made it."""
        if self.comparer is not None:
            signed = self.comparer.list_differences(older, newer)
            return tuple(self._attribute(difference, older, newer) for difference in signed)
        older_values, newer_values = self.results[older].values, self.results[newer].values
        differences = []
        for name in dict.fromkeys((*older_values, *newer_values)):
            values = older_values.get(name), newer_values.get(name)
            if values[0] != values[1]:
                stage, _, key = name.partition(" ")
                traces = self._trace(older), self._trace(newer)
                passes = traces[0].last_change({key}, stage), traces[1].last_change({key}, stage)
                differences.append(ReleaseDifference(stage, key, *values, *passes))
        return tuple(differences)

    def _attribute(self, difference: SignedDifference, older: str, newer: str) -> ReleaseDifference:
        key, category, older_value, newer_value, direction = difference
        fact_key, topic = FactKey(key), topic_of(category)
        passes: tuple[tuple[PassRun, FactChange] | None, tuple[PassRun, FactChange] | None] = (None, None)
        if topic is not None and topic in self.topics:
            keys, traces = {fact_key.without_step}, (self._trace(older), self._trace(newer))
            passes = traces[0].last_change(keys, fact_key.step), traces[1].last_change(keys, fact_key.step)
        return ReleaseDifference(fact_key.step or "", key, older_value, newer_value, *passes, direction)

    def _trace(self, release: str) -> PassTrace:
        if release not in self.traces:
            self.traces[release] = trace_passes(self.subject, self.topics, triton=release, notice=self.notice)
        return self.traces[release]
