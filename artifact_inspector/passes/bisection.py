"""Find the Triton release in which a fact changed, and the passes that made it before and after."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from artifact_inspector.compiling.ask.environments import releases_between
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.model import Stage
from artifact_inspector.passes.compiled import Notice
from artifact_inspector.passes.observation import What, observe
from artifact_inspector.passes.subject import Subject, trace_passes
from artifact_inspector.passes.trace import Change, PassTrace, Step
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.names import step_of

_TOLD_BY = (Stage.TTGIR, Stage.LLIR, Stage.PTX, Stage.AMDGCN)


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of compiling with one release."""

    triton: str
    values: Mapping[str, Value]
    """Stage and fact (`ttgir straight.verdict`) → value; empty if the compiler refused the kernel."""
    message: str | None
    """The compiler's error message; None if it compiled."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact whose value differs in the newer release."""

    stage: str
    key: str
    before: Value
    after: Value
    older_pass: tuple[Step, Change] | None
    """The last pass of the older release that changed it; null if none did."""
    newer_pass: tuple[Step, Change] | None


@dataclass(frozen=True, slots=True)
class Bisection:
    """The release in which a kernel's facts changed."""

    kernel: str
    target: str
    what: tuple[What, ...]
    tried: tuple[Tried, ...]
    """The compiled releases in order; releases that the search skipped are missing."""
    changed: tuple[str, str] | None
    """The last release with the facts of the first, and the next one; null if all agree."""
    differences: tuple[Difference, ...]
    """Earliest stage first."""


def bisect(
    subject: Subject,
    wanted: Collection[What],
    releases: Sequence[str],
    *,
    notice: Notice = lambda sentence: None,
    progress: Callable[[str], None] = lambda release: None,
) -> Bisection:
    """Find the release in which the facts of a kernel changed, by bisection if only two ends are given.

    A release that refuses the kernel is recorded, and the search continues with its neighbours.

    Args:
        subject: the kernel.
        wanted: the facts.
        releases: two ends, between which the known releases are bisected, or all releases to compile.
        notice: called with a sentence before an environment is created.
        progress: called with each release before it is compiled.

    Raises:
        UsageError: fewer than two releases.
        CompileError: one of the ends refuses the kernel.
    """
    if len(releases) < 2:
        raise UsageError("A bisection needs two releases.", "Give --between 3.2.0,3.3.1, or more releases.")
    line = list(releases) if len(releases) > 2 else list(releases_between(*releases))
    search = _Search(subject, frozenset(wanted), notice, progress)
    first, last = search.of(line[0]), search.of(line[-1])
    for end in (first, last):
        if end.message is not None:
            raise CompileError(f"Triton {end.triton} refuses the kernel: {end.message}", "Choose other ends.")
    changed = search.between(line, is_list=len(releases) > 2)
    tried = tuple(search.known[one] for one in line if one in search.known)
    differences: tuple[Difference, ...] = ()
    if changed is not None:
        differences = search.differences(*changed)
    return Bisection(
        subject.name or PurePath(subject.ask["place"]).name,
        str(subject.target),
        tuple(wanted),
        tried,
        changed,
        differences,
    )


class _Search:
    def __init__(
        self,
        subject: Subject,
        wanted: frozenset[What],
        notice: Notice,
        progress: Callable[[str], None],
    ) -> None:
        self.subject, self.wanted, self.notice, self.progress = subject, wanted, notice, progress
        self.known: dict[str, Tried] = {}
        self.traces: dict[str, PassTrace] = {}

    def of(self, release: str) -> Tried:
        """Compile the kernel with a release, once."""
        if release not in self.known:
            self.progress(release)
            try:
                with self.subject.compiled_alone(self.notice, release) as artifact:
                    values = {
                        f"{step_of(stage)} {key}": fact.value
                        for stage in _TOLD_BY
                        if stage.value in artifact.files
                        for key, fact in observe(artifact, stage, None, self.wanted).items()
                        if not fact.by_names  # names of values differ between releases
                    }
                self.known[release] = Tried(release, values, None)
            except CompileError as error:
                self.known[release] = Tried(release, {}, error.message)
        return self.known[release]

    def between(self, line: Sequence[str], *, is_list: bool) -> tuple[str, str] | None:
        """The two neighbouring releases that differ, among those that compile the kernel."""
        if is_list:
            for release in line:
                self.of(release)
            told = [release for release in line if self.known[release].message is None]
            pairs = pairwise(told)
            return next(((a, b) for a, b in pairs if self.known[a].values != self.known[b].values), None)
        low, high = 0, len(line) - 1
        if self.of(line[low]).values == self.of(line[high]).values:
            return None
        open_ = list(range(low + 1, high))
        while open_:
            at = open_[len(open_) // 2]
            found = self.of(line[at])
            if found.message is not None:
                open_.remove(at)
                continue
            if found.values == self.known[line[low]].values:
                low = at
            else:
                high = at
            open_ = [one for one in open_ if low < one < high]
        return line[low], line[high]

    def differences(self, older: str, newer: str) -> tuple[Difference, ...]:
        """The facts that differ, each with the pass of either release that made it."""
        before, after = self.known[older].values, self.known[newer].values
        found = []
        for name in dict.fromkeys((*before, *after)):
            if before.get(name) == after.get(name):
                continue
            stage, _, key = name.partition(" ")
            found.append(
                Difference(
                    stage,
                    key,
                    before.get(name),
                    after.get(name),
                    self._trace(older).last_change({key}, stage),
                    self._trace(newer).last_change({key}, stage),
                )
            )
        return tuple(found)

    def _trace(self, release: str) -> PassTrace:
        if release not in self.traces:
            self.traces[release] = trace_passes(self.subject, self.wanted, triton=release, notice=self.notice)
        return self.traces[release]
