"""Programs and comparisons of kernels in the result cache: a stopped or repeated comparison goes on there.

Two caches of 3,000 kernels: a repeated `regress` takes a third of the processor time that it takes from stored facts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.comparison.corpus import Change, Degree, compare_candidates
from artifact_inspector.comparison.fact_pair import FactPair, PairSide
from artifact_inspector.comparison.headline import Headline
from artifact_inspector.comparison.matching import Candidate, Difference
from artifact_inspector.facts.encoding import read_section, write_section
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.selection import read_program
from artifact_inspector.files.artifact import Artifact, Problem
from artifact_inspector.files.digests import index_key, snapshot_files
from artifact_inspector.files.index import Index

VALUES_PER_WRITE = 32  # which a stopped comparison compares again at most


class _StoredChange(NamedTuple):
    """A change without its kernels, and without facts that are equal."""

    degree: Degree
    differences: tuple[Difference, ...]
    compared_facts: tuple[FactPair, ...]
    lines: Mapping[str, int]
    first_difference: str
    headlines: tuple[Headline, ...]
    problems: tuple[tuple[PairSide, Problem], ...]


class PairStore:
    """Reads and writes values of some kernels; a context, whose end writes the last ones."""

    def __init__(self, artifacts: Iterable[Artifact], open_index: Callable[[], Index]) -> None:
        """Open the index, and read what it has of these kernels' programs."""
        self._index = open_index()
        self._snapshots = {artifact: snapshot_files(artifact) for artifact in artifacts}
        self._fresh: dict[bytes, bytes] = {}
        keys = [self._key(b"program", artifact) for artifact in self._snapshots]
        self._programs = self._index.get(key for key in keys if key is not None)

    def __enter__(self) -> PairStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._write(0)
        self._index.close()

    def find_program(self, artifact: Artifact, problems: list[Problem]) -> KernelProgram | None:
        """What `read_program` returns."""
        key = self._key(b"program", artifact)
        if key in self._programs:
            return _decode(KernelProgram | None, self._programs[key])  # type: ignore[no-any-return]
        program = read_program(artifact, problems)
        if not problems:
            self._keep(key, program, artifact)
        return program

    def compare(self, left: Candidate, right: Candidate, inspect: Callable[[Artifact], KernelFacts]) -> Change:
        """What `compare_candidates` returns, with the facts that differ only."""
        key = self._key(b"change", left.artifact, right.artifact)
        for stored in () if key is None else self._index.get([key]).values():
            return Change(left, right, **_decode(_StoredChange, stored)._asdict(), pair=None)
        change = compare_candidates(left, right, inspect)
        change = replace(change, compared_facts=change.facts, pair=None)
        values = (getattr(change, name) for name in _StoredChange._fields)
        self._keep(key, _StoredChange(*values), left.artifact, right.artifact)
        return change

    def _key(self, purpose: bytes, *artifacts: Artifact) -> bytes | None:
        snapshots = [self._snapshots[artifact] for artifact in artifacts]
        states = [snapshot.digest for snapshot in snapshots if snapshot is not None]
        return index_key(b"".join(states), purpose) if len(states) == len(snapshots) else None

    def _keep(self, key: bytes | None, value: object, *artifacts: Artifact) -> None:
        snapshots = [(self._snapshots[artifact], artifact) for artifact in artifacts]
        is_current = all(snapshot is not None and snapshot.is_current(of) for snapshot, of in snapshots)
        if key is not None and is_current:  # a program may write to the cache meanwhile
            self._fresh[key] = write_section(value).encode()
            self._write(VALUES_PER_WRITE)

    def _write(self, most: int) -> None:
        if len(self._fresh) > most:
            self._index.put(self._fresh)
            self._fresh.clear()


def _decode(kind: Any, stored: bytes) -> Any:
    return read_section(kind, stored.decode())
