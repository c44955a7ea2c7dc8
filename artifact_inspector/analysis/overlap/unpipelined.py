"""Why a loop is not pipelined, or not all of it, as far as the IR proves it.

A cause is one of the pipeliner's own conditions that the loop, or each of its loads, does not meet. A
loop that meets them all and is not pipelined has no known cause.

Source: Triton, lib/Dialect/TritonGPU/Transforms/Pipeliner/AssignLatencies.cpp (`preCondition`,
`isSmallLoad`, `loadOpsToIndirectionLevel`, `assignLatencies`; until 3.2 MatmulLoopPipeline.cpp);
third_party/nvidia/backend/compiler.py (no pipeliner before sm_80); third_party/amd/backend/compiler.py
(3.0 and 3.1 pipeline at num_stages 0 only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.analysis.overlap.buffers import LoopBuffers
from artifact_inspector.analysis.overlap.loop_form import LoopForm, LoopLoad
from artifact_inspector.analysis.overlap.waits import iterations_left, least_depth
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, Queue, Stage, TritonVersion, Vendor, Verdict

_FIRST_CP_ASYNC = 80
"""PTX ISA, cp.async: requires sm_80 or higher."""
_LEAST_COPY = 32
"""Bits: cp.async copies 4, 8 or 16 bytes, and Triton pipelines no narrower load for any target."""
_NOTHING_TO_DO = {
    "no-loads": "the loop itself loads nothing",
    "no-compute": "no load of the loop feeds a compute",
}


class Evidence(NamedTuple):
    """A line that a statement rests on."""

    stage: Stage
    line: int


class Cause(NamedTuple):
    """Why something is as it is, and the lines that prove it."""

    words: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class AskedLoop:
    """A loop through the stages, and what was asked for it."""

    num_stages: int | None
    """Of the compile."""
    target: Target | None
    version: TritonVersion | None
    facts: Mapping[Stage, RegionFacts]
    buffers: Mapping[Stage, LoopBuffers]
    stage: Stage
    """The last one that has it."""

    @property
    def region(self) -> RegionFacts:
        """Its facts at the last stage."""
        return self.facts[self.stage]

    @property
    def last(self) -> LoopBuffers:
        """What it does at the last stage."""
        return self.buffers[self.stage]

    @property
    def tiles(self) -> LoopBuffers | None:
        """What it does behind the pipeliner."""
        return self.buffers.get(Stage.TTGIR)

    @property
    def first_stage(self) -> Stage:
        """The first one that has it."""
        return min(self.buffers, key=lambda found: found.order)

    @property
    def program(self) -> LoopForm | None:
        """Its form as written; None for a loop that a compiler made from another."""
        return self.buffers[self.first_stage].form

    @property
    def is_alone(self) -> bool:
        """True where TTGIR has no loop inside it."""
        return self.tiles is not None and self.tiles.form is not None and self.tiles.form.inner is None

    @property
    def own(self) -> int | None:
        """The number of stages that the loop itself asks for.

        Warp specialisation leaves a 0 of its own on the loops that it makes; in TTGIR alone that is no
        question.
        """
        asked = None if self.program is None else self.program.asked
        return asked if asked or self.first_stage is Stage.TTIR else None

    @property
    def asked(self) -> int | None:
        """The number of stages that holds for it."""
        return self.num_stages if self.own is None else self.own


def find_cause(loop: AskedLoop) -> tuple[Cause | None, tuple[str, ...]]:
    """Why a loop, or some of its loads, are not pipelined, and what else there is to say.

    No cause for a loop all of whose loads run ahead, one of unknown verdict, and one that meets every
    condition that is known.
    """
    verdict = loop.region.verdict
    if verdict in _NOTHING_TO_DO:
        return Cause(_NOTHING_TO_DO[verdict]), ()
    if not verdict.is_of_order and verdict not in (Verdict.SERIAL, Verdict.PARTLY_PIPELINED):
        return None, ()
    if loop.program is None:
        return None, ("the loop is not in the program: a compiler made it from another",)
    if loop.program.flattens and loop.is_alone:
        return None, ("made one with the loop inside it: what is left here runs where that one has no turn",)
    cause = None if verdict is Verdict.PARTLY_PIPELINED else _cause_in_loop(loop, loop.program)
    if cause is not None:
        return cause, ()
    late = _late_loads(loop, loop.program)
    causes = [cause for load in late if (cause := _cause_of(loop, load)) is not None]
    words = tuple(dict.fromkeys(cause.words for cause in causes))
    if len(causes) < len(late) or not causes:
        return None, (*words, "no cause was found in the IR")
    return Cause("; ".join(words), tuple(line for cause in causes for line in cause.evidence)), ()


def find_loss(loop: AskedLoop) -> Cause | None:
    """A wait that leaves iterations in flight in TTGIR, where the last stage waits for all."""
    tiles = loop.tiles
    drains = tuple(Evidence(loop.stage, wait.line) for wait in loop.last.copy_waits if wait.depth == 0)
    if tiles is None or not drains or loop.stage is Stage.TTGIR:
        return None
    each = len(tiles.copies) if tiles.queue is Queue.TENSORS else tiles.commits.get(Queue.GROUP, 0)
    planned = least_depth(tiles.copy_waits)
    left = iterations_left(planned, each)
    if not left:
        return None
    line = min(wait.line for wait in tiles.copy_waits if wait.depth == planned)
    return Cause(
        f"ttgir leaves {planned} ÷ {each} = {left} iterations in flight at its wait, "
        f"{loop.stage.value} waits for all",
        (Evidence(Stage.TTGIR, line), *drains),
    )


def _cause_in_loop(loop: AskedLoop, form: LoopForm) -> Cause | None:
    """What keeps every load of the loop from being pipelined."""
    at_loop = (Evidence(loop.first_stage, form.line),)
    if _wants_zero(loop):
        if loop.asked:
            return Cause(
                f"Triton {loop.version} pipelines for AMD at num_stages 0 only, asked were {loop.asked}"
            )
    elif loop.asked is not None and loop.asked <= 1:
        if loop.own is None:
            return Cause(f"num_stages {loop.asked} asks for no pipelining")
        return Cause(f"the loop itself asks for none: tt.num_stages = {loop.own}", at_loop)
    arch = None if loop.target is None else loop.target.arch
    if arch is not None and arch.vendor is Vendor.NVIDIA and arch.number < _FIRST_CP_ASYNC:
        return Cause(f"{loop.target} has no asynchronous copy (cp.async comes with sm_80)")
    if not form.is_counted:
        return Cause("it is no counted loop: only `for` loops are pipelined", at_loop)
    if form.inner is not None and not loop.is_alone:
        inner = Evidence(loop.first_stage, form.inner)
        return Cause("another loop stands in it: only innermost loops are pipelined", (inner,))
    if loop.own is None and not loop.buffers[loop.first_stage].matrix and form.rounds:
        return Cause(
            "no dot in the loop: Triton pipelines other loads only where the loop itself asks for stages "
            "(`tl.range(num_stages=…)`)",
            at_loop,
        )
    # The pipeliner saw the loop of TTGIR; the canonicaliser may have taken such values out of TTIR's.
    tiles = loop.tiles
    if tiles is not None and tiles.form is not None and tiles.form.old_values is not None:
        line = Evidence(Stage.TTGIR, tiles.form.old_values)
        return Cause("it hands a value on unchanged to the iteration after next", (line,))
    return None


def _wants_zero(loop: AskedLoop) -> bool:
    """Triton 3.0 and 3.1 pipeline for AMD where num_stages is 0, and only there."""
    on_amd = loop.target is not None and loop.target.backend is Backend.HIP
    return on_amd and loop.version is not None and loop.version.release in ((3, 0), (3, 1))


def _late_loads(loop: AskedLoop, form: LoopForm) -> list[LoopLoad]:
    """The load statements that serve their own iteration."""
    if len(form.rounds) != len(loop.region.rounds):
        return []
    late: list[LoopLoad] = []
    for loads, found in zip(form.rounds, loop.region.rounds, strict=True):
        if len(found.distances) != len(loads):
            return []
        late += [load for load, d in zip(loads, found.distances, strict=True) if d == 0]
    return late


def _cause_of(loop: AskedLoop, load: LoopLoad) -> Cause | None:
    at = (Evidence(loop.first_stage, load.line),)
    if load.conditional:
        return Cause(
            f"{load.label} stands under a branch of the loop, and only loads of the body itself are "
            "pipelined",
            at,
        )
    if not load.levels:
        # Triton, AssignLatencies.cpp: of a dot, what A and B are made of, not what it adds to.
        words = f"{load.label} goes into nothing that a dot of the loop multiplies"
        return Cause(words, at) if loop.own is None else None
    if len(load.levels) > 1:
        return Cause(f"{load.label} feeds dots both itself and through loads that it addresses", at)
    level = min(load.levels)
    if loop.asked is not None and level and level >= loop.asked - 1:
        return Cause(
            f"{load.label} addresses loads of a dot, and num_stages {loop.asked} has no stage for that", at
        )
    for stage in (Stage.TTGIR, loop.stage):
        bits, line = _width(loop, stage, load)
        if 0 < bits < _LEAST_COPY:
            return Cause(
                f"{load.label} moves {bits} bits at a time, and a copy moves {_LEAST_COPY} or more",
                (*at, Evidence(stage, line)),
            )
    return None


def _width(loop: AskedLoop, stage: Stage, load: LoopLoad) -> tuple[int, int]:
    """Bits that one access of a load moves at most, 0 where it is not found, and the line."""
    if stage not in loop.buffers or load.chain is None:
        return 0, 0
    widths = loop.buffers[stage].widths
    # PTX keeps one or two frames of a chain.
    return next((widths[found] for n in (None, 2, 1) if (found := load.chain[:n]) in widths), (0, 0))
