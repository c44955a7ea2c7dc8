"""How deep a loop is pipelined, from what was asked to what is in flight, and why where it is not.

A cause is stated only where the IR proves it: one of the pipeliner's own conditions that the loop, or
each of its loads, does not meet. A loop that meets them all and is not pipelined has no known cause.

Source: Triton, lib/Dialect/TritonGPU/Transforms/Pipeliner/AssignLatencies.cpp (`preCondition`,
`isSmallLoad`, `loadOpsToIndirectionLevel`, `assignLatencies`; until 3.2 MatmulLoopPipeline.cpp);
third_party/nvidia/backend/compiler.py (no pipeliner before sm_80); third_party/amd/backend/compiler.py
(3.0 and 3.1 pipeline at num_stages 0 only).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.buffers import LoopBuffers
from artifact_inspector.analysis.loop_form import LoopLoad
from artifact_inspector.analysis.order import ORDER_VERDICTS, RegionFacts
from artifact_inspector.model import Queue, Stage
from artifact_inspector.targets import Target

__all__ = ["Evidence", "Pipeline", "explain_pipeline"]

_FIRST_CP_ASYNC = 80
"""PTX ISA, cp.async: requires sm_80 or higher."""
_LEAST_COPY = 32
"""Bits: cp.async copies 4, 8 or 16 bytes, and Triton pipelines no narrower load for any target."""
_RUNS_AHEAD = frozenset({"pipelined", "partly pipelined", "warp-specialised"})
_NOTHING_TO_DO = {
    "no-loads": "the loop itself loads nothing",
    "no-compute": "no load of the loop feeds a compute",
}


class Evidence(NamedTuple):
    """A line that a statement rests on."""

    stage: Stage
    line: int


class _Cause(NamedTuple):
    words: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """One loop's pipeline at its last stage."""

    num_stages: int | None
    """Asked for: by the loop itself, else by the compile."""
    kind: str | None
    """How its loads run ahead: `cp.async groups`, `TMA + mbarrier`, `direct to LDS` (AMD),
    `register prefetch`, `groups of copies` where the target is unknown; None where they do not."""
    overlaps_matrix: bool
    """A matrix operation stays in flight while the next iteration begins (`wgmma.wait_group 1`)."""
    buffers: int | None
    """Tiles that the most-buffered of its allocations holds, from TTGIR."""
    commits_per_iteration: int | None
    """Groups of copies committed, or barrier phases armed, in one source iteration."""
    wait_depth: int | None
    """N of the strictest wait for loads or copies in the loop: how many younger ones it leaves in
    flight; None where a barrier phase or the first use of a register tells."""
    iterations_in_flight: float | None
    """Source iterations whose copies are still in flight behind that wait: N ÷ members of its queue
    per iteration."""
    distance: int | tuple[int, int] | None
    """Source iterations that the loads run ahead."""
    prologue: float | None
    """Source iterations whose copies stand in front of the loop."""
    epilogue_line: int | None
    """The wait behind the loop that leaves nothing in flight."""
    drains_at: tuple[int, ...]
    """Lines of the waits of depth 0 among them."""
    why_not: str | None
    """Why it is not pipelined, or not all of its loads, or not as deep as TTGIR has it."""
    evidence: tuple[Evidence, ...]
    """The lines that prove it."""
    notes: tuple[str, ...]


def explain_pipeline(
    *,
    num_stages: int | None,
    target: Target | None,
    version: str | None,
    facts: Mapping[Stage, RegionFacts],
    buffers: Mapping[Stage, LoopBuffers],
) -> Pipeline | None:
    """The pipeline of one region.

    None for a region that is no loop at its last stage, that only the compiler made, or that no stage
    behind the pipeliner has.

    Args:
        num_stages: of the compile (its metadata).
        version: of Triton, where it is known (`3.6.0`).
        facts: the region at each stage that has it.
        buffers: the loop at each stage that has it.
    """
    if not facts or not buffers:
        return None
    stage = max(facts, key=lambda found: found.order)
    if stage is Stage.TTIR or stage not in buffers or not facts[stage].in_program:
        return None
    return _Explanation(num_stages, target, version, facts, buffers, stage).explain()


class _Explanation:
    def __init__(
        self,
        num_stages: int | None,
        target: Target | None,
        version: str | None,
        facts: Mapping[Stage, RegionFacts],
        buffers: Mapping[Stage, LoopBuffers],
        stage: Stage,
    ) -> None:
        self.target = target
        self.version = version
        self.facts = facts
        self.buffers = buffers
        self.stage = stage
        self.region = facts[stage]
        self.last = buffers[stage]
        self.tiles = buffers.get(Stage.TTGIR)
        self.first_stage = min(buffers, key=lambda found: found.order)
        self.program = buffers[self.first_stage].form
        # A pass that splits the loop writes a number of its own into later stages.
        self.own = None if self.program is None else self.program.asked
        self.asked = num_stages if self.own is None else self.own
        self.notes: list[str] = []

    def explain(self) -> Pipeline:
        runs_ahead = self.region.verdict in _RUNS_AHEAD
        kind = self._kind() if runs_ahead else None
        asynchronous = kind not in (None, "register prefetch")
        # What an outer loop copies and waits for by itself is the prologue of the loop inside it.
        own = runs_ahead or self.program is None or self.program.inner is None
        waits = [(w.depth, w.line) for w in self.last.copy_waits if w.depth is not None] if own else []
        depth = min((depth for depth, _ in waits), default=None)
        commits = self._commits() if asynchronous else None
        in_flight = self._in_flight(depth, commits) if runs_ahead else None
        cause = self._why_not() or self._lost(in_flight)
        if asynchronous and depth == 0 and self.asked == 2:
            self.notes.append("num_stages 2 leaves 2 - 2 = 0 iterations in flight at the wait")
        return Pipeline(
            num_stages=self.asked,
            kind=kind,
            overlaps_matrix=any(w.queue is Queue.MATRIX and w.depth for w in self.last.waits),
            buffers=self._tiles() if own else None,
            commits_per_iteration=commits,
            wait_depth=depth,
            iterations_in_flight=in_flight,
            distance=self.region.distance,
            prologue=self._prologue() if asynchronous else None,
            epilogue_line=self.last.drain if asynchronous else None,
            drains_at=tuple(line for depth, line in waits if depth == 0) if runs_ahead else (),
            why_not=None if cause is None else cause.words,
            evidence=() if cause is None else cause.evidence,
            notes=tuple(self.notes),
        )

    # -- how it runs ahead -------------------------------------------------------------

    def _kind(self) -> str | None:
        if self.last.copies:
            if self.last.queue is Queue.PHASE:
                return "TMA + mbarrier"
            if self.target is None:
                return "groups of copies"
            return "direct to LDS" if self.target.backend == "hip" else "cp.async groups"
        if self.region.verdict == "warp-specialised":
            self.notes.append("its copies stand in another partition")
            return None
        if self.tiles is not None and self.tiles.copies:
            self.notes.append(
                f"the asynchronous copies of ttgir are loads and stores to shared memory at "
                f"{self.stage.value}: what is loaded ahead is waited for in the iteration that loads it"
            )
        first = self.facts[min(self.facts, key=lambda found: found.order)]
        if first.distance is not None:
            self.notes.append("the program itself loads ahead")
        return "register prefetch"

    def _tiles(self) -> int | None:
        counts = () if self.tiles is None else tuple(found.tiles for found in self.tiles.buffers)
        if len(set(counts)) > 1:
            self.notes.append(f"its allocations hold {min(counts)} to {max(counts)} tiles")
        return max(counts, default=None)

    def _commits(self) -> int | None:
        """Of the last stage, or of the tensor-level one where LLVM unrolled unevenly or drops commits."""
        for stage in (self.stage, Stage.TTGIR):
            found, region = self.buffers.get(stage), self.facts.get(stage)
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
            members = len(self.last.copies)
            if queue is Queue.LOADS:
                members += len(self.last.loads)
            each = members / self.region.unrolled_by
        return _number(depth / each) if each else None

    def _phases_in_flight(self) -> float | None:
        """A phase names no depth; what has been copied behind the one waited for tells it.

        The wait stands in front of the computes that take the phase's data, so that the copies in
        front of it are `distance` iterations ahead of it, those behind one less.
        """
        distance = self.region.distance
        if not isinstance(distance, int) or not self.last.copies or not self.last.copy_waits:
            return None
        first = min(wait.line for wait in self.last.copy_waits)
        return distance if max(self.last.copies) < first else distance - 1

    def _prologue(self) -> float | None:
        tiles, region = self.tiles, self.facts.get(Stage.TTGIR)
        if tiles is None or region is None or not tiles.copies:
            return None
        return _number(len(tiles.front) * region.unrolled_by / len(tiles.copies))

    # -- why it does not ---------------------------------------------------------------

    def _lost(self, in_flight: float | None) -> _Cause | None:
        """A wait that leaves iterations in flight in TTGIR, and nothing at the last stage."""
        tiles = self.tiles
        if in_flight != 0 or tiles is None or self.stage is Stage.TTGIR:
            return None
        each = len(tiles.copies) if tiles.queue is Queue.TENSORS else tiles.commits.get(Queue.GROUP, 0)
        waits = [(w.depth, w.line) for w in tiles.copy_waits if w.depth is not None]
        if not waits or not each or min(waits)[0] == 0:
            return None
        planned, line = min(waits)
        drains = tuple(Evidence(self.stage, w.line) for w in self.last.copy_waits if w.depth == 0)
        return _Cause(
            f"ttgir leaves {planned} ÷ {each} = {_number(planned / each)} iterations in flight at its wait, "
            f"{self.stage.value} waits for all",
            (Evidence(Stage.TTGIR, line), *drains),
        )

    def _why_not(self) -> _Cause | None:
        verdict = self.region.verdict
        if verdict in _NOTHING_TO_DO:
            return _Cause(_NOTHING_TO_DO[verdict])
        if verdict not in ORDER_VERDICTS and verdict not in ("serial", "partly pipelined"):
            return None  # all of it runs ahead, or what it does is not known
        if self.program is None:
            self.notes.append("the loop is not in the program: a compiler made it from another")
            return None
        cause = self._cause_in_loop() or self._cause_in_loads()
        if cause is None:
            self.notes.append("no cause was found in the IR")
        return cause

    def _cause_in_loop(self) -> _Cause | None:
        """What keeps every load of the loop from being pipelined."""
        if self.region.verdict == "partly pipelined":
            return None
        if self._wants_zero():
            if self.asked:
                return _Cause(
                    f"Triton {self.version} pipelines for AMD at num_stages 0 only, asked were {self.asked}"
                )
        elif self.asked is not None and self.asked <= 1:
            if self.own is None:
                return _Cause(f"num_stages {self.asked} asks for no pipelining")
            return _Cause(f"the loop itself asks for none: tt.num_stages = {self.own}", self._at_loop())
        number = re.fullmatch(r"sm_(\d+)", "" if self.target is None else self.target.arch)
        if number is not None and int(number[1]) < _FIRST_CP_ASYNC:
            return _Cause(f"{self.target} has no asynchronous copy (cp.async comes with sm_80)")
        form = self.program
        assert form is not None
        if not form.is_counted:
            return _Cause("it is no counted loop: only `for` loops are pipelined", self._at_loop())
        if form.inner is not None:
            inner = Evidence(self.first_stage, form.inner)
            return _Cause("another loop stands in it: only innermost loops are pipelined", (inner,))
        if self.own is None and not self.buffers[self.first_stage].matrix and form.rounds:
            return _Cause(
                "no dot in the loop: Triton pipelines other loads only where the loop itself asks for "
                "stages (`tl.range(num_stages=…)`)",
                self._at_loop(),
            )
        if self.tiles is not None and self.tiles.form is not None:
            line = self.tiles.form.old_values
            if line is not None and not self.tiles.copies:
                return _Cause(
                    "it hands a value on unchanged to the iteration after next",
                    (Evidence(Stage.TTGIR, line),),
                )
        return None

    def _wants_zero(self) -> bool:
        """Triton 3.0 and 3.1 pipeline for AMD where num_stages is 0, and only there."""
        return (
            self.target is not None
            and self.target.backend == "hip"
            and self.version is not None
            and self.version.startswith(("3.0", "3.1"))
        )

    def _at_loop(self) -> tuple[Evidence, ...]:
        return () if self.program is None else (Evidence(self.first_stage, self.program.line),)

    def _cause_in_loads(self) -> _Cause | None:
        """Why each load that serves its own iteration does; None unless every one of them has a cause."""
        late = self._late_loads()
        causes = [cause for load in late if (cause := self._cause_of(load)) is not None]
        words = tuple(dict.fromkeys(cause.words for cause in causes))
        if len(causes) < len(late) or not causes:
            self.notes += words
            return None
        return _Cause("; ".join(words), tuple(line for cause in causes for line in cause.evidence))

    def _late_loads(self) -> list[LoopLoad]:
        form = self.program
        if form is None or len(form.rounds) != len(self.region.rounds):
            return []
        late: list[LoopLoad] = []
        for loads, found in zip(form.rounds, self.region.rounds, strict=True):
            distances = found.distances or (0,) * len(loads)
            if len(distances) != len(loads):
                return []
            late += [load for load, d in zip(loads, distances, strict=True) if d == 0]
        return late

    def _cause_of(self, load: LoopLoad) -> _Cause | None:
        at = (Evidence(self.first_stage, load.line),)
        if load.conditional:
            return _Cause(
                f"{load.label} stands under a branch of the loop, and only loads of the body itself are "
                "pipelined",
                at,
            )
        if not load.levels:
            return _Cause(f"{load.label} feeds no dot of the loop", at) if self.own is None else None
        if len(load.levels) > 1:
            return _Cause(f"{load.label} feeds dots both itself and through loads that it addresses", at)
        level = min(load.levels)
        if self.asked is not None and level and level >= self.asked - 1:
            return _Cause(
                f"{load.label} addresses loads of a dot, and num_stages {self.asked} has no stage for that",
                at,
            )
        for stage in (Stage.TTGIR, self.stage):
            bits, line = self._width(stage, load)
            if 0 < bits < _LEAST_COPY:
                return _Cause(
                    f"{load.label} moves {bits} bits at a time, and a copy moves {_LEAST_COPY} or more",
                    (*at, Evidence(stage, line)),
                )
        return None

    def _width(self, stage: Stage, load: LoopLoad) -> tuple[int, int]:
        """Bits that one access of a load moves at most, 0 where it is not found, and the line."""
        if stage not in self.buffers or load.chain is None:
            return 0, 0
        widths = self.buffers[stage].widths
        # PTX keeps one or two frames of a chain.
        return next((widths[found] for n in (None, 2, 1) if (found := load.chain[:n]) in widths), (0, 0))


def _number(value: float) -> float:
    """The value, as an int where it is whole."""
    return int(value) if value == int(value) else round(value, 2)
