"""The facts of one kernel as several Triton releases compile it, compared like two kernels of `diff`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from artifact_inspector.comparison.consequence import differing_facts
from artifact_inspector.comparison.fact_pair import FactPair
from artifact_inspector.comparison.headline import Headline, headlines_of_pair
from artifact_inspector.comparison.pair import Comparison, compare_kernels
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Artifact, MemoryFile
from artifact_inspector.files.reader import read_file
from artifact_inspector.vocabulary.fact import Sign, SignedDifference, Value
from artifact_inspector.vocabulary.rows import summarise


class ReleaseFacts:
    """Reads and compares the facts of releases; holds the kernels that were read."""

    def __init__(self) -> None:
        """No release is read yet."""
        self.kernels: dict[str, KernelFacts] = {}

    def read_values(self, release: str, artifact: Artifact) -> Mapping[str, Value]:
        """Key → value of all facts of what a release compiled."""
        # the compiler's directory is temporary, and facts are computed on demand
        files = {
            suffix: MemoryFile(f"{artifact.stem}.{suffix}", read_file(artifact, suffix)) for suffix in artifact.files
        }
        self.kernels[release] = kernel = inspect_artifact(replace(artifact, files=files))
        return summarise(kernel).facts

    def compare(self, older: str, newer: str) -> Comparison:
        """The two kernels that two releases made."""
        return compare_kernels(self.kernels[older], self.kernels[newer])

    def headline(self, older: str, newer: str) -> Headline | None:
        """The decisive fact of two releases; None if no fact got better or worse."""
        return next(iter(headlines_of_pair(self.compare(older, newer))), None)

    def facts(self, older: str, newer: str) -> tuple[FactPair, ...]:
        """The facts that differ, the decisive one first."""
        return differing_facts(self.compare(older, newer).facts)

    def find_decisive_keys(self, first: str, last: str) -> list[str]:
        """The decisive fact; all that differ if none got worse or better."""
        facts = self.facts(first, last)
        decisive = [fact.key for fact in facts if fact.direction is not Sign.NEUTRAL][:1]
        return decisive or [fact.key for fact in facts]

    def list_differences(self, older: str, newer: str) -> Iterator[SignedDifference]:
        """The facts that differ, the decisive one first."""
        for fact in self.facts(older, newer):
            yield SignedDifference(fact.key, fact.category, fact.left, fact.right, fact.direction)
