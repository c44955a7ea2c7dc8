"""Windows of launches that are ranked: the first CTAs, whose accesses decide what is fetched from device memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.dram_traffic import record_window
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.execution.timing.sampling import SampleResults
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.reading import without_collection


class DeferredWindow(NamedTuple):
    """The first CTAs of a launch, whose accesses decide what is fetched from device memory."""

    key: str
    """Equal for launches with equal arguments and grid that make the same accesses: they differ in warps and stages.
    The largest of their windows is simulated for all."""
    ctas: int
    l2_bytes: int
    problem: int = 0
    """Equal for launches of a kernel with equal arguments."""
    sample: SampleResults | None = None
    """The sample of the launch, for its exact score."""


def load_candidate(candidate: RankingCandidate, disassemble: Disassemble | None) -> tuple[LoadedKernel, KernelLaunch]:
    """The kernel and the launch of a candidate."""
    return match_launch(load_kernel(candidate.artifact, disassemble), candidate.request, candidate.constants)


class SharedWindows:
    """The windows of launches, each simulated once for all launches that make the same accesses."""

    def __init__(
        self, candidates: Sequence[RankingCandidate], disassemble: Disassemble | None, limit: int, processors: int
    ) -> None:
        """Without any; the arguments are those of `rank_launches`."""
        self._candidates, self._disassemble, self._limit, self._processors = candidates, disassemble, limit, processors
        self.of_launch: dict[int, DeferredWindow] = {}
        """Of launches whose score is a bound."""
        self._streams: dict[str, AccessStream | None] = {}

    def record(self, launches: Sequence[int]) -> None:
        """Simulate the windows of some launches, in parts that keep all processors busy."""
        new = {key: at for at in reversed(launches) if (key := self._key_of(at)) not in self._streams}
        parts = []
        for key, at in new.items():
            largest = max(window.ctas for other, window in self.of_launch.items() if self._key_of(other) == key)
            shares = np.array_split(np.arange(largest), -(-self._processors // len(new)))
            parts += [(key, at, ctas) for ctas in shares]

        def record_part(number: int) -> tuple[str, AccessStream | None]:
            key, at, ctas = parts[number]
            with without_collection():
                loaded = load_candidate(self._candidates[at], self._disassemble)
                return key, record_window(*loaded, self.of_launch[at].l2_bytes, self._limit, ctas)

        for key, stream in map_in_processes(record_part, range(len(parts)), self._processors):
            whole = self._streams.setdefault(key, stream)
            if whole is None or stream is None:
                self._streams[key] = None
            elif whole is not stream:
                whole.merge(stream)

    def stream_of(self, launch: int) -> AccessStream | None:
        """The accesses of a recorded window; None if they depend on a missing input."""
        return self._streams[self._key_of(launch)]

    def launch_key(self, launch: int) -> str:
        """Equal for launches that may make the same accesses."""
        request, constants = self._candidates[launch].request, self._candidates[launch].constants
        return repr((request.grid, request.arguments, sorted(constants.items())))

    def _key_of(self, launch: int) -> str:
        return self.of_launch[launch].key + self.launch_key(launch)
