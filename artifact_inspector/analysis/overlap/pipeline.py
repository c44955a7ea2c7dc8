"""How deep a loop is pipelined: stages requested, buffers, commits, waits, and loads in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.analysis.overlap.buffers import LoopBuffers
from artifact_inspector.analysis.overlap.unpipelined import (
    AskedLoop,
    Evidence,
    find_cause,
    find_loss,
)
from artifact_inspector.analysis.overlap.waits import iterations_left, least_depth, two_places
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, PipelineKind, Queue, Stage, TritonVersion, Verdict

_RUNS_AHEAD = frozenset({"pipelined", "partly pipelined", "warp-specialised"})


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a loop is pipelined at its last stage, and why it is not."""

    num_stages: int | None
    """Requested by the loop itself, or else by the compilation."""
    kind: PipelineKind | None
    """How its loads run ahead: `cp.async groups`, `TMA + mbarrier`, `direct to LDS` (AMD), `register
    prefetch`, or `groups of copies` if the target is unknown. None if they do not.
    """
    overlaps_matrix: bool
    """A matrix operation stays in flight while the next iteration starts (`wgmma.wait_group 1`)."""
    buffers: int | None
    """Maximum number of tiles in one of its allocations, from TTGIR."""
    commits_per_iteration: int | None
    """Groups of copies committed, or barrier phases armed, in one source iteration."""
    wait_depth: int | None
    """N of the strictest wait for loads or copies in the loop: the number of younger ones left in flight.
    None if a barrier phase or the first use of a register completes them.
    """
    iterations_in_flight: float | None
    """Source iterations whose copies are still in flight after that wait: N ÷ members of its queue per
    iteration.
    """
    distance: int | tuple[int, int] | None
    """Source iterations that the loads run ahead."""
    prologue: float | None
    """Source iterations whose copies are before the loop."""
    epilogue_line: int | None
    """The wait after the loop that leaves nothing in flight."""
    trips: int | None
    """Trip count of the program's loop, if its bounds are constants."""
    why_not: str | None
    """Why the loop, or some of its loads, is not pipelined, or not as deep as in TTGIR."""
    evidence: tuple[Evidence, ...]
    """The lines that prove it."""
    notes: tuple[str, ...]


def explain_pipeline(
    *,
    num_stages: int | None,
    target: Target | None,
    version: TritonVersion | None,
    facts: Mapping[Stage, RegionFacts],
    buffers: Mapping[Stage, LoopBuffers],
) -> Pipeline | None:
    """The pipeline of one region.

    None for a region that is not a loop at its last stage, that only the compiler made, or that no stage
    after the pipeliner has.

    Args:
        num_stages: of the compilation (from its metadata).
        version: of Triton, if known.
        facts: the region at each stage that has it.
        buffers: the loop at each stage that has it.
    """
    if not facts or not buffers:
        return None
    stage = max(facts, key=lambda found: found.order)
    if stage is Stage.TTIR or stage not in buffers or not facts[stage].in_program:
        return None
    return _Explanation(AskedLoop(num_stages, target, version, facts, buffers, stage)).explain()


class _Explanation:
    def __init__(self, loop: AskedLoop) -> None:
        self.loop = loop
        self.stage = loop.stage
        self.region = loop.region
        self.last = loop.last
        self.tiles = loop.tiles
        self.notes: list[str] = []

    def explain(self) -> Pipeline:
        runs_ahead = self.region.verdict in _RUNS_AHEAD
        kind = self._kind() if runs_ahead else None
        asynchronous = kind not in (None, PipelineKind.REGISTERS)
        # The copies and waits directly in an outer loop are the prologue of the loop inside it.
        own = runs_ahead or self.loop.program is None or self.loop.program.inner is None
        depth = least_depth(self.last.copy_waits) if own else None
        commits = self._commits() if asynchronous else None
        in_flight = self._in_flight(depth, commits) if runs_ahead else None
        cause, more = find_cause(self.loop)
        if cause is None and in_flight == 0:
            cause = find_loss(self.loop)
        if asynchronous and depth == 0 and self.loop.asked == 2:
            self.notes.append("num_stages 2 leaves 2 - 2 = 0 iterations in flight at the wait")
        if kind is not None:
            self.notes += self._departures(kind, in_flight)
        self.notes += more
        return Pipeline(
            num_stages=self.loop.asked,
            kind=kind,
            overlaps_matrix=any(w.queue is Queue.MATRIX and w.depth for w in self.last.waits),
            buffers=self._tiles() if own else None,
            commits_per_iteration=commits,
            wait_depth=depth,
            iterations_in_flight=in_flight,
            distance=self.region.distance,
            prologue=self._prologue() if asynchronous else None,
            epilogue_line=self.last.drain if asynchronous else None,
            trips=None if self.loop.program is None else self.loop.program.trips,
            why_not=None if cause is None else cause.words,
            evidence=() if cause is None else cause.evidence,
            notes=tuple(self.notes),
        )

    # -- how loads run ahead -----------------------------------------------------------

    def _kind(self) -> PipelineKind | None:
        if self.last.copies:
            if self.last.queue is Queue.PHASE:
                return PipelineKind.TENSORS
            if self.loop.target is None:
                return PipelineKind.COPIES
            return PipelineKind.DIRECT if self.loop.target.backend is Backend.HIP else PipelineKind.GROUPS
        if self.region.verdict is Verdict.WARP_SPECIALISED:
            self.notes.append("its copies are in another partition")
            return None
        if self.tiles is not None and self.tiles.copies:
            self.notes.append(
                "the asynchronous copies of TTGIR became loads and stores to shared memory at "
                f"{self.stage.value}: each load is waited for in the iteration that issues it"
            )
        if Stage.TTIR in self.loop.facts and self.loop.facts[Stage.TTIR].distance is not None:
            self.notes.append("the program itself prefetches")
        return PipelineKind.REGISTERS

    def _tiles(self) -> int | None:
        buffers = () if self.tiles is None else self.tiles.buffers
        counts = tuple(found.tiles for found in buffers)
        if len(set(counts)) > 1:
            self.notes.append(f"its buffers hold {min(counts)} to {max(counts)} tiles")
        size = sum(found.tiles * found.bytes for found in buffers)
        most = None if self.loop.target is None else self.loop.target.limits.shared_per_block
        if most is not None and size > most:
            self.notes.append(f"its buffers take {size} bytes, but a block of {self.loop.target} has {most}")
        return max(counts, default=None)

    def _commits(self) -> int | None:
        """Commits per source iteration.

        Read from the last stage, or from TTGIR if LLVM unrolled unevenly or dropped commits.
        """
        for stage in (self.stage, Stage.TTGIR):
            found, region = self.loop.buffers.get(stage), self.loop.facts.get(stage)
            if found is None or region is None or not found.copies:
                continue
            queue = found.queue
            groups = 0 if queue is None else found.commits.get(queue, 0)
            if groups and groups % region.unrolled_by == 0:
                return groups // region.unrolled_by
        return None

    def _in_flight(self, depth: int | None, commits: int | None) -> float | None:
        queue = self.last.queue
        if queue is Queue.PHASE:
            return self._phases_in_flight()
        if depth is None:
            return None
        if queue is Queue.GROUP:
            each: float | None = commits
        else:
            each = self.last.members / self.region.unrolled_by
        return iterations_left(depth, each)

    def _phases_in_flight(self) -> float | None:
        """Iterations in flight for a barrier phase, from the position of the TTGIR copies.

        A phase has no depth. A wait before the computes is for the iteration's own data. Copies before it
        are `distance` iterations ahead; those after it will be.
        """
        distance, tiles = self.region.distance, self.tiles
        if not isinstance(distance, int) or tiles is None or not tiles.phases:
            return None
        first = min(tiles.phases)
        if tiles.matrix and max(tiles.matrix) < first:
            return None
        if max(tiles.copies) < first:
            return distance
        return distance - 1 if min(tiles.copies) > first else None

    def _departures(self, kind: PipelineKind, in_flight: float | None) -> Iterator[str]:
        """Reasons why the distance is not the iterations in flight plus one.

        The additional iteration is the one that the wait completes and the following computes use.
        """
        distance, tiles = self.region.distance, self.tiles
        ahead = max(distance) if isinstance(distance, tuple) else distance
        if ahead is None or in_flight == ahead - 1:
            return
        if in_flight is None:
            if kind is PipelineKind.TENSORS:
                yield "a barrier phase has no depth, and the position of its copies does not show it"
        elif kind is PipelineKind.REGISTERS:
            yield (
                "its loads are waited for in the iteration that issues them: data loaded "
                f"{ahead} {_iterations(ahead)} ahead is held in registers, not in flight"
            )
        elif in_flight == ahead and tiles is not None and _stand_before(tiles.copies, tiles.wait_lines):
            yield "its copies are before the wait, so one more iteration is in flight after it"
        elif in_flight == ahead - 2 and tiles is not None and _stand_before(tiles.matrix, tiles.reads):
            yield "its tiles are read from shared memory one iteration before they are multiplied"
        elif in_flight < ahead - 1:
            yield (
                f"its wait is stricter than the computes after it need: of {ahead} iterations ahead, "
                f"{ahead - 1 - in_flight:g} are already in shared memory"
            )
        else:
            yield (
                f"{ahead} {_iterations(ahead)} ahead and {in_flight:g} in flight do not differ by one, "
                "and no cause was found in the IR"
            )

    def _prologue(self) -> float | None:
        tiles, region = self.tiles, self.loop.facts.get(Stage.TTGIR)
        if tiles is None or region is None or not tiles.copies:
            return None
        return two_places(len(tiles.front) * region.unrolled_by / len(tiles.copies))


def _stand_before(first: Sequence[int], then: Sequence[int]) -> bool:
    """True if all lines of one sequence are before all lines of another."""
    return bool(first) and bool(then) and max(first) < min(then)


def _iterations(count: float) -> str:
    return "iteration" if count == 1 else "iterations"
