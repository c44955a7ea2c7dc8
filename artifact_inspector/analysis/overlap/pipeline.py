"""How deep a loop is pipelined: stages requested, buffers, commits, waits, and loads in flight."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers
from artifact_inspector.analysis.overlap.pipeline_causes import Evidence, LoopHistory, find_cause, find_lost_pipelining
from artifact_inspector.analysis.overlap.waits import iterations_left, least_depth, round_iterations
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, OrderVerdict, PipelineKind, Queue, Stage, TritonVersion

RUNS_AHEAD = frozenset({"pipelined", "partly pipelined", "warp-specialised"})
"""Verdicts of loops whose loads run ahead."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How a loop is pipelined at its last stage, and why it is not."""

    num_stages: int | None
    """Requested by the loop itself, or else by the compilation."""
    kind: PipelineKind | None
    """How its loads run ahead: `cp.async groups`, `TMA + mbarrier`, `direct to LDS` (AMD), `register prefetch`, or
    `groups of copies` if the target is unknown. None if they do not.
    """
    overlaps_matrix: bool
    """A matrix operation stays in flight while the next iteration starts (`wgmma.wait_group 1`)."""
    buffers: int | None
    """Maximum number of tiles in one of its allocations, from TTGIR."""
    commits_per_iteration: int | None
    """Groups of copies committed, or barrier phases armed, in one source iteration."""
    wait_depth: int | None
    """N of the strictest wait for loads or copies in the loop: the number of younger ones left in flight. None if a
    barrier phase or the first use of a register completes them.
    """
    iterations_in_flight: float | None
    """Source iterations whose copies are still in flight after that wait: N ÷ members of its queue per iteration."""
    distance: int | tuple[int, int] | None
    """Source iterations that the loads run ahead."""
    prologue: float | None
    """Source iterations whose copies are before the loop."""
    epilogue_line: int | None
    """The wait after the loop that leaves nothing in flight."""
    trip_count: int | None
    """Trip count of the program's loop, if its bounds are constants."""
    unpipelined_reason: str | None
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

    None for a region that is not a loop at its last stage, that only the compiler made, or that no stage after the
    pipeliner has.

    Args:
        num_stages: of the compilation (from its metadata).
        facts: the region at each stage that has it.
        buffers: the loop at each stage that has it.
    """
    if not facts or not buffers:
        return None
    stage = max(facts, key=lambda candidate: candidate.order)
    if stage is Stage.TTIR or stage not in buffers or not facts[stage].is_in_program:
        return None
    return _Explanation(LoopHistory(num_stages, target, version, facts, buffers, stage)).explain()


class _Explanation:
    def __init__(self, loop: LoopHistory) -> None:
        self.loop, self.stage, self.region = loop, loop.stage, loop.region
        self.last, self.tiles = loop.last_buffers, loop.ttgir_buffers
        self.notes: list[str] = []

    def explain(self) -> Pipeline:
        runs_ahead, properties = self.region.verdict in RUNS_AHEAD, self.loop.source_properties
        kind = self._kind() if runs_ahead else None
        asynchronous = kind not in (None, PipelineKind.REGISTERS)
        # The copies and waits directly in an outer loop are the prologue of the loop inside it.
        counts_waits = runs_ahead or properties is None or properties.inner_loop_line is None
        depth = least_depth(self.last.copy_waits) if counts_waits else None
        commits = self._commits() if asynchronous else None
        in_flight = self._in_flight(depth, commits) if runs_ahead else None
        cause, remarks = find_cause(self.loop)
        if cause is None and in_flight == 0:
            cause = find_lost_pipelining(self.loop)
        if asynchronous and depth == 0 and self.loop.effective_num_stages == 2:
            self.notes.append("num_stages 2 leaves 2 - 2 = 0 iterations in flight at the wait")
        if kind is not None:
            self.notes += self._distance_remarks(kind, in_flight)
        self.notes += remarks
        return Pipeline(
            num_stages=self.loop.effective_num_stages,
            kind=kind,
            overlaps_matrix=any(w.queue is Queue.MATRIX and w.depth for w in self.last.waits),
            buffers=self._tiles() if counts_waits else None,
            commits_per_iteration=commits,
            wait_depth=depth,
            iterations_in_flight=in_flight,
            distance=self.region.distance,
            prologue=self._prologue() if asynchronous else None,
            epilogue_line=self.last.drain_line if asynchronous else None,
            trip_count=None if properties is None else properties.trip_count,
            unpipelined_reason=None if cause is None else cause.message,
            evidence=() if cause is None else cause.evidence,
            notes=tuple(self.notes),
        )

    def _kind(self) -> PipelineKind | None:
        if self.last.copies:
            if self.last.queue is Queue.PHASE:
                return PipelineKind.TENSORS
            if self.loop.target is None:
                return PipelineKind.COPIES
            return PipelineKind.DIRECT if self.loop.target.backend is Backend.HIP else PipelineKind.GROUPS
        if self.region.verdict is OrderVerdict.WARP_SPECIALISED:
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
        counts = tuple(buffer.tiles for buffer in buffers)
        if len(set(counts)) > 1:
            self.notes.append(f"its buffers hold {min(counts)} to {max(counts)} tiles")
        size = sum(buffer.tiles * buffer.bytes for buffer in buffers)
        max_shared_bytes = None if self.loop.target is None else self.loop.target.limits.shared_per_block
        if max_shared_bytes is not None and size > max_shared_bytes:
            target = self.loop.target
            self.notes.append(f"its buffers take {size} bytes, but a block of {target} has {max_shared_bytes}")
        return max(counts, default=None)

    def _commits(self) -> int | None:
        """Commits per source iteration, from TTGIR if LLVM unrolled unevenly or dropped commits."""
        for stage in (self.stage, Stage.TTGIR):
            loop_buffers, region = self.loop.buffers.get(stage), self.loop.facts.get(stage)
            if loop_buffers is None or region is None or not loop_buffers.copies:
                continue
            queue = loop_buffers.queue
            groups = 0 if queue is None else loop_buffers.commits.get(queue, 0)
            if groups and groups % region.unroll_factor == 0:
                return groups // region.unroll_factor
        return None

    def _in_flight(self, depth: int | None, commits: int | None) -> float | None:
        queue = self.last.queue
        if queue is Queue.PHASE:
            return self._phases_in_flight()
        per_iteration: float | None = commits
        if queue is not Queue.GROUP:
            per_iteration = self.last.members / self.region.unroll_factor
        return iterations_left(depth, per_iteration)

    def _phases_in_flight(self) -> float | None:
        """Iterations in flight for a barrier phase, from the position of the TTGIR copies.

        A phase has no depth. A wait before the computes is for the iteration's own data. Copies before it are
        `distance` iterations ahead; those after it will be.
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

    def _distance_remarks(self, kind: PipelineKind, in_flight: float | None) -> Iterator[str]:
        """Reasons why the distance is not the iterations in flight plus one.

        The additional iteration is the one that the wait completes and the following computes use.
        """
        distance, tiles = self.region.distance, self.tiles
        ahead = max(distance) if isinstance(distance, tuple) else distance
        if ahead is None or in_flight == ahead - 1:
            return
        iterations = f"{ahead} {'iteration' if ahead == 1 else 'iterations'} ahead"
        if in_flight is None:
            if kind is PipelineKind.TENSORS:
                yield "a barrier phase has no depth, and the position of its copies does not show it"
        elif kind is PipelineKind.REGISTERS:
            buffers = 0 if tiles is None else max((buffer.tiles for buffer in tiles.buffers), default=0)
            is_shared = buffers > 1 and self.last.stores
            where_held = f"waits in shared memory ({buffers} buffers)" if is_shared else "is held in registers"
            issue = "its loads are waited for in the iteration that issues them"
            yield f"{issue}: data loaded {iterations} {where_held}, not in flight"
        elif in_flight == ahead and tiles is not None and _all_before(tiles.copies, tiles.wait_lines):
            yield "its copies are before the wait, so one more iteration is in flight after it"
        elif in_flight == ahead - 2 and tiles is not None and _all_before(tiles.matrix, tiles.reads):
            yield "its tiles are read from shared memory one iteration before they are multiplied"
        elif in_flight < ahead - 1:
            yield (
                f"its wait is stricter than the computes after it need: of {ahead} iterations ahead, "
                f"{ahead - 1 - in_flight:g} are already in shared memory"
            )
        else:
            yield f"{iterations} and {in_flight:g} in flight do not differ by one, and no cause was found in the IR"

    def _prologue(self) -> float | None:
        tiles, region = self.tiles, self.loop.facts.get(Stage.TTGIR)
        if tiles is None or region is None or not tiles.copies:
            return None
        return round_iterations(len(tiles.copies_before_loop) * region.unroll_factor / len(tiles.copies))


def _all_before(first: Sequence[int], then: Sequence[int]) -> bool:
    """True if all lines of one sequence are before all lines of another."""
    return bool(first) and bool(then) and max(first) < min(then)
