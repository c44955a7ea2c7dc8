"""Why a loop, or part of its loads, is not pipelined, as far as the IR proves it.

A cause is a condition of the pipeliner that the loop, or each of its loads, does not meet. If a loop meets all of them
and is not pipelined, the cause is unknown.

Source: Triton, lib/Dialect/TritonGPU/Transforms/Pipeliner/AssignLatencies.cpp (`preCondition`, `isSmallLoad`,
`loadOpsToIndirectionLevel`, `assignLatencies`; until 3.2 MatmulLoopPipeline.cpp);
third_party/nvidia/backend/compiler.py (no pipeliner before sm_80); third_party/amd/backend/compiler.py (3.0 and 3.1
pipeline at num_stages 0 only).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers
from artifact_inspector.analysis.overlap.loop_properties import LoopLoad, LoopProperties
from artifact_inspector.analysis.overlap.waits import iterations_left, least_depth
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Backend, OrderVerdict, Queue, Stage, TritonVersion, Vendor

FIRST_CP_ASYNC = 80
"""PTX ISA, cp.async: requires sm_80 or higher."""
_LEAST_COPY = 32
"""In bits. cp.async copies 4, 8 or 16 bytes, and Triton pipelines no narrower load for any target."""
_NOTHING_TO_DO = {
    "no-loads": "the loop itself has no loads",
    "no-compute": "no load of the loop feeds a compute instruction",
}


class Evidence(NamedTuple):
    """A line that supports a statement."""

    stage: Stage
    line: int


class PipelineCause(NamedTuple):
    """A reason and the lines that prove it."""

    message: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopHistory:
    """A loop at all its stages, and the pipelining requested for it."""

    num_stages: int | None
    """Of the compilation."""
    target: Target | None
    version: TritonVersion | None
    facts: Mapping[Stage, RegionFacts]
    buffers: Mapping[Stage, LoopBuffers]
    stage: Stage
    """The last stage that has it."""

    @property
    def region(self) -> RegionFacts:
        """Its facts at the last stage."""
        return self.facts[self.stage]

    @property
    def last_buffers(self) -> LoopBuffers:
        """Its memory operations at the last stage."""
        return self.buffers[self.stage]

    @property
    def ttgir_buffers(self) -> LoopBuffers | None:
        """Its memory operations after the pipeliner."""
        return self.buffers.get(Stage.TTGIR)

    @property
    def first_stage(self) -> Stage:
        """The first stage that has it."""
        return min(self.buffers, key=lambda candidate: candidate.order)

    @property
    def source_properties(self) -> LoopProperties | None:
        """Its properties as written; None for a loop that the compiler made from another."""
        return self.buffers[self.first_stage].properties

    @property
    def is_innermost(self) -> bool:
        """True if TTGIR has no loop inside it."""
        properties = None if self.ttgir_buffers is None else self.ttgir_buffers.properties
        return properties is not None and properties.inner_loop_line is None

    @property
    def loop_num_stages(self) -> int | None:
        """The number of stages that the loop itself requests.

        Warp specialisation sets 0 on the loops that it makes; a 0 that appears only in TTGIR is no request.
        """
        requested = None if self.source_properties is None else self.source_properties.requested_stages
        return requested if requested or self.first_stage is Stage.TTIR else None

    @property
    def effective_num_stages(self) -> int | None:
        """The number of stages in effect; None if the program orders the copies of the loop itself."""
        if self.num_stages is None and self.region.schedule is not None:
            return None
        return self.num_stages if self.loop_num_stages is None else self.loop_num_stages


def find_cause(loop: LoopHistory) -> tuple[PipelineCause | None, tuple[str, ...]]:
    """Why a loop, or some of its loads, is not pipelined, and further remarks.

    No cause is given for a loop whose loads all run ahead, for an unknown verdict, or if every known condition is met.
    """
    verdict = loop.region.verdict
    if loop.region.schedule is not None and loop.num_stages is None:
        return None, ()
    if verdict in _NOTHING_TO_DO:
        return PipelineCause(_NOTHING_TO_DO[verdict]), ()
    if not verdict.is_order_verdict and verdict not in (OrderVerdict.SERIAL, OrderVerdict.PARTLY_PIPELINED):
        return None, ()
    if loop.source_properties is None:
        return None, ("the loop is not in the source: the compiler made it from another loop",)
    if loop.source_properties.requests_flattening and loop.is_innermost:
        return None, ("flattened with the loop inside it: this loop runs only if the inner one has no iterations",)
    cause = None if verdict is OrderVerdict.PARTLY_PIPELINED else _cause_in_loop(loop, loop.source_properties)
    if cause is not None:
        return cause, ()
    late = _late_loads(loop, loop.source_properties)
    causes = [cause for load in late if (cause := _cause_of_load(loop, load)) is not None]
    messages = tuple(dict.fromkeys(cause.message for cause in causes))
    if len(causes) < len(late) or not causes:
        return None, (*messages, "no cause was found in the IR")
    return PipelineCause("; ".join(messages), tuple(line for cause in causes for line in cause.evidence)), ()


def find_lost_pipelining(loop: LoopHistory) -> PipelineCause | None:
    """A wait that leaves iterations in flight in TTGIR but waits for all of them at the last stage."""
    tiles = loop.ttgir_buffers
    drains = tuple(Evidence(loop.stage, wait.line) for wait in loop.last_buffers.copy_waits if wait.depth == 0)
    if tiles is None or not drains or loop.stage is Stage.TTGIR:
        return None
    per_iteration = len(tiles.copies) if tiles.queue is Queue.TENSORS else tiles.commits.get(Queue.GROUP, 0)
    planned = least_depth(tiles.copy_waits)
    remaining = iterations_left(planned, per_iteration)
    if not remaining:
        return None
    line = min(wait.line for wait in tiles.copy_waits if wait.depth == planned)
    return PipelineCause(
        f"TTGIR leaves {planned} ÷ {per_iteration} = {remaining} iterations in flight at its wait, "
        f"but {loop.stage.value} waits for all of them",
        (Evidence(Stage.TTGIR, line), *drains),
    )


def _cause_in_loop(loop: LoopHistory, properties: LoopProperties) -> PipelineCause | None:
    """The reason why no load of the loop is pipelined."""
    at_loop, stages = (Evidence(loop.first_stage, properties.line),), loop.effective_num_stages
    on_amd = loop.target is not None and loop.target.backend is Backend.HIP
    if on_amd and loop.version is not None and loop.version.release in ((3, 0), (3, 1)):
        if stages:
            message = f"Triton {loop.version} pipelines for AMD only at num_stages 0, requested were {stages}"
            return PipelineCause(message)
    elif stages is not None and stages <= 1:
        if loop.loop_num_stages is None:
            return PipelineCause(f"num_stages {stages} requests no pipelining")
        return PipelineCause(f"the loop itself requests no pipelining: tt.num_stages = {loop.loop_num_stages}", at_loop)
    arch = None if loop.target is None else loop.target.arch
    if arch is not None and arch.vendor is Vendor.NVIDIA and arch.number < FIRST_CP_ASYNC:
        return PipelineCause(f"{loop.target} has no asynchronous copy (cp.async requires sm_80)")
    if not properties.is_counted:
        return PipelineCause("not a counted loop: only `for` loops are pipelined", at_loop)
    if properties.inner_loop_line is not None and not loop.is_innermost:
        inner = Evidence(loop.first_stage, properties.inner_loop_line)
        return PipelineCause("contains another loop: only innermost loops are pipelined", (inner,))
    if loop.loop_num_stages is None and not loop.buffers[loop.first_stage].matrix and properties.rounds:
        message = "no dot in the loop: Triton pipelines other loads only if the loop itself requests stages "
        return PipelineCause(message + "(`tl.range(num_stages=…)`)", at_loop)
    # The pipeliner saw the loop of TTGIR; the canonicaliser may have removed such values from TTIR's.
    seen = None if loop.ttgir_buffers is None else loop.ttgir_buffers.properties
    if seen is None or seen.unchanged_value_line is None:
        return None
    message = "a loop-carried value is passed on unchanged, so a dependence spans two iterations"
    return PipelineCause(message, (Evidence(Stage.TTGIR, seen.unchanged_value_line),))


def _late_loads(loop: LoopHistory, properties: LoopProperties) -> list[LoopLoad]:
    """The load statements that serve their own iteration."""
    if len(properties.rounds) != len(loop.region.rounds):
        return []
    late: list[LoopLoad] = []
    for loads, round_facts in zip(properties.rounds, loop.region.rounds, strict=True):
        if len(round_facts.distances) != len(loads):
            return []
        late += [load for load, d in zip(loads, round_facts.distances, strict=True) if d == 0]
    return late


def _cause_of_load(loop: LoopHistory, load: LoopLoad) -> PipelineCause | None:
    at, stages = (Evidence(loop.first_stage, load.line),), loop.effective_num_stages
    if load.is_conditional:
        message = f"{load.label} is under a branch of the loop, and only unconditional loads are pipelined"
        return PipelineCause(message, at)
    if not load.levels and loop.loop_num_stages is None:
        # Triton, AssignLatencies.cpp: only the operands A and B of a dot count, not the accumulator.
        return PipelineCause(f"{load.label} feeds no operand A or B of a dot in the loop", at)
    if len(load.levels) > 1:
        return PipelineCause(f"{load.label} feeds dots both directly and through loads that it addresses", at)
    level = min(load.levels, default=0)
    if stages is not None and level and level >= stages - 1:
        message = f"{load.label} addresses loads of a dot, and num_stages {stages} has no stage for it"
        return PipelineCause(message, at)
    for stage in (Stage.TTGIR, loop.stage):
        bits, line = _load_width(loop, stage, load)
        if 0 < bits < _LEAST_COPY:
            message = f"{load.label} is {bits} bits wide, but an asynchronous copy needs at least {_LEAST_COPY}"
            return PipelineCause(message, (*at, Evidence(stage, line)))
    return None


def _load_width(loop: LoopHistory, stage: Stage, load: LoopLoad) -> tuple[int, int]:
    """Maximum bits of one access of a load, 0 if not found, and the line."""
    if stage not in loop.buffers or load.chain is None:
        return 0, 0
    widths = loop.buffers[stage].widths
    # PTX keeps one or two frames of a chain.
    return next((widths[visible_chain] for n in (None, 2, 1) if (visible_chain := load.chain[:n]) in widths), (0, 0))
