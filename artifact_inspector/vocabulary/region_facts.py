"""Facts of a region: its order at every stage, and its work in the last text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import depths_for_loads
from artifact_inspector.analysis.resources.intensity import Intensity
from artifact_inspector.facts.kernel import WaitFacts
from artifact_inspector.model import Consequence, EventKind, PipelineKind, Stage
from artifact_inspector.model.region import RegionKind
from artifact_inspector.model.verdict import OrderVerdict
from artifact_inspector.vocabulary.fact import (
    Absent,
    Category,
    Direction,
    FactColumn,
    RegionSubject,
    Unit,
    Value,
    region_at_stage_fact,
    region_fact,
)
from artifact_inspector.vocabulary.file_facts import matrix_unit_changed, matrix_unit_lost
from artifact_inspector.vocabulary.kernel_facts import threads_of
from artifact_inspector.vocabulary.value_reading import read_strictest_waits, read_verdict

Property = TypeVar("Property")
MANY_ELEMENTS = 16
"""Shared accesses of one element per iteration that cost more than narrower accesses to global memory (as AI024)."""


def _pipeline_lost(left: Value, right: Value) -> Consequence:
    runs_ahead = [verdict is not None and verdict.runs_ahead for verdict in map(read_verdict, (left, right))]
    return Consequence.DRAIN if runs_ahead[0] is not runs_ahead[1] else Consequence.ORDER


def _drains(left: Value, right: Value) -> Consequence:
    """For what a wait leaves in flight: nothing on one side only."""
    return Consequence.DRAIN if (not left) != (not right) else Consequence.IN_FLIGHT


def _waits_drain(left: Value, right: Value) -> Consequence:
    drains = [set(read_strictest_waits(value).values()) == {0} for value in (left, right)]
    return Consequence.DRAIN if drains[0] != drains[1] else Consequence.IN_FLIGHT


def _by_element(left: Value, right: Value) -> Consequence:
    counts = [value if isinstance(value, int | float) else 0 for value in (left, right)]
    is_many = abs(counts[1] - counts[0]) >= MANY_ELEMENTS
    return Consequence.OPERANDS if is_many else Consequence.OTHER


def _pipeline_changed(left: Value, right: Value) -> Consequence:
    if None in (left, right):
        return Consequence.DRAIN
    is_asynchronous = [kind != PipelineKind.REGISTERS for kind in (left, right)]
    return Consequence.ASYNCHRONY if is_asynchronous[0] != is_asynchronous[1] else Consequence.IN_FLIGHT


@region_at_stage_fact(
    "verdict.{step}", "verdict at {step}", category=Category.VERDICT, brief="order", costs=_pipeline_lost
)
def verdict(of: RegionSubject) -> str | None:
    """The verdict with its distance and groups; None where it is unknown."""
    return None if of.region.verdict is OrderVerdict.UNKNOWN else of.region.verdict_text


@region_fact("matrix", "matrix instructions", Unit.IN_CODE, category=Category.MMA, is_row=False, record="matrix")
def matrix_instructions(of: RegionSubject) -> int:
    """Matrix instructions."""
    return of.region.matrix


@region_fact("fused", "multiply-adds", Unit.IN_CODE, category=Category.MMA, is_row=False, record="fused")
def multiply_adds(of: RegionSubject) -> int:
    """Fused multiply-adds."""
    return of.region.fused_multiply_adds


@region_fact("waits_for_loads", "waits for loads", category=Category.WAITS, is_row=False, record="waits_for_loads")
def waits_for_loads(of: RegionSubject) -> int:
    """Waits for loads."""
    return len(_wait_depths(of))


@region_fact(
    "least_wait_depth", "what the strictest wait leaves", Unit.IN_FLIGHT, category=Category.WAITS,
    direction=Direction.MORE_IS_BETTER, is_row=False, record="least_wait_depth",
)  # fmt: skip
def least_wait_depth(of: RegionSubject) -> int | None:
    """Loads that the strictest wait leaves in flight."""
    return min(_wait_depths(of), default=None)


def _wait_depths(of: RegionSubject) -> tuple[int, ...]:
    return depths_for_loads(of.stage.waits_in(of.region.id))


@region_fact(
    "max_loads_in_flight", "loads in flight", Unit.AT_MOST, category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER, is_row=False, record="max_loads_in_flight",
)  # fmt: skip
def max_loads(of: RegionSubject) -> int | None:
    """Loads in flight, at most."""
    return None if of.work is None else of.work.in_flight.max_loads


@region_fact(
    "max_bytes_in_flight", "bytes in flight", Unit.BYTES_PER_THREAD, category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER, is_row=False, record="max_bytes_in_flight",
)  # fmt: skip
def max_bytes(of: RegionSubject) -> int | float | None:
    """Bytes in flight for each thread, at most."""
    return None if of.work is None else of.work.in_flight.max_bytes_per_thread


@region_fact(
    "compute_overlap", "compute behind loads", Unit.SHARE, category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER, is_row=False, record="compute_overlap",
)  # fmt: skip
def overlap_share(of: RegionSubject) -> float | None:
    """Share of compute that is issued while a load is in flight."""
    return None if of.work is None else of.work.in_flight.compute_overlap


@region_fact("signature", "events", Unit.LETTERS, category=Category.INSTRUCTIONS, is_row=False, record="signature")
def signature(of: RegionSubject) -> str:
    """Events in text order, as letters with their number."""
    return of.region.signature


@region_fact("waits", "waits for loads", category=Category.WAITS, costs=_waits_drain)
def waits(of: RegionSubject) -> tuple[str, ...] | Absent:
    """Each kind of wait for loads, with what it leaves in flight."""
    if of.work is None:
        return Absent.ABSENT
    of_region = of.stage.waits_in(of.region.id)
    for_loads = [wait for wait in of_region if wait.is_for_loads]
    if for_loads:
        return tuple(_describe_waits(for_loads))
    waits_by_use = of.work.in_flight.max_loads and not of_region
    return ("first use of the register",) if waits_by_use else Absent.ABSENT


def _describe_waits(waits: Sequence[WaitFacts]) -> Iterator[str]:
    """`cp.async.wait_group 4`, `s_waitcnt vmcnt 14…0 ×16`, each kind of wait once."""
    for op in dict.fromkeys(wait.op for wait in waits):
        same = [wait.depth for wait in waits if wait.op == op]
        depths = sorted({depth for depth in same if depth is not None}, reverse=True)
        depth_range = f"{depths[0]}…{depths[-1]}" if len(depths) > 2 else " and ".join(map(str, depths))
        yield f"{op} {depth_range}".rstrip() + (f" ×{len(same)}" if len(same) > 1 else "")


@region_fact(
    "mma", "matrix instructions", Unit.PER_ITERATION_AND_ISSUERS, category=Category.MMA, brief="MMA",
    costs=matrix_unit_changed,
)  # fmt: skip
def matrix(of: RegionSubject) -> tuple[str, ...] | Absent:
    """Matrix instructions of one iteration of the source, by kind."""
    counts: Counter[str] = Counter()
    for work in _matrix_work(of):
        op = work.matrix
        plural = "s" if work.issuers != 1 else ""
        by = "" if op is None or work.issuers is None else f" by {work.issuers} {op.issuer}{plural}"
        counts[work.op if op is None else f"{op.op} {op.shape} ({op.types}){by}"] += work.count
    descriptions = tuple(f"{per_iteration(of, count):g} × {op}" for op, count in counts.items())
    return descriptions or Absent.ABSENT


@region_fact(
    "mma.count", "matrix instructions", Unit.PER_ITERATION, category=Category.MMA, is_row=False,
    column=FactColumn("mma", "MMA", "matrix instructions per iteration", 5),
)  # fmt: skip
def matrix_count(of: RegionSubject) -> int | float | Absent:
    """Matrix instructions of one iteration of the source."""
    if of.work is None or _is_peeled(of):
        return Absent.ABSENT
    return per_iteration(of, of.region.matrix)


@region_fact("mma.flop", "FLOP", Unit.PER_BLOCK_AND_ITERATION, category=Category.MMA)
def flop(of: RegionSubject) -> int | float | Absent | None:
    """FLOP of the matrix instructions of one iteration."""
    flops = [work.flop for work in _matrix_work(of)]
    if not flops:
        return Absent.ABSENT
    return None if None in flops else per_iteration(of, sum(flop or 0 for flop in flops))


def _matrix_work(of: RegionSubject) -> tuple[MatrixWork, ...]:
    if of.work is None or of.region.is_dissolved_loop or _is_peeled(of):
        return ()
    return of.work.matrix


@region_fact(
    "mma.elements",
    "shared accesses of single elements",
    Unit.PER_ITERATION,
    category=Category.MMA,
    direction=Direction.LESS_IS_BETTER,
    costs=_by_element,
)
def element_accesses(of: RegionSubject) -> int | float | Absent:
    """Instructions that move 2 bytes or less of shared memory per lane, in a region with matrix instructions.

    Without those that store what a load of one element fetched: they follow from that load.
    """
    if not _matrix_work(of) or of.work is None or of.work.element_accesses is None:
        return Absent.ABSENT
    loads = sum(count for width, count in of.work.accesses.loads.items() if width is not None and width <= 2)
    return per_iteration(of, max(0, of.work.element_accesses - loads)) or Absent.ABSENT


def _is_peeled(of: RegionSubject) -> bool:
    """True for straight-line code whose matrix work is that of a loop, peeled off by the compiler."""
    first = of.kernel.stages.get(Stage.TTIR)
    if of.region.kind is RegionKind.LOOP or first is None:
        return False
    work = first.work.get(of.region.id)
    return (work is None or not work.matrix) and first.has_matrix


def per_iteration(of: RegionSubject, count: int | float) -> int | float:
    """Of one iteration of the source, for a loop whose body the compiler copied."""
    value = Fraction(count) / of.region.unroll_factor
    return int(value) if value.denominator == 1 else float(value)


@region_fact("trips", "passes", Unit.PASSES, category=Category.INSTRUCTIONS)
def trips(of: RegionSubject) -> int | Absent | None:
    """Passes of a loop with constant bounds, by the first stage that has it.

    What is left of a loop that was unrolled runs less often.
    """
    if of.work is None:
        return Absent.ABSENT
    for stage in (Stage.TTIR, Stage.TTGIR):
        facts = of.kernel.stages.get(stage)
        work = None if facts is None else facts.work.get(of.region.id)
        if work is not None:
            return Absent.ABSENT if work.trips is None else work.trips.trip_count
    return Absent.ABSENT


@region_fact(
    "loads.iteration", "loads of the program", Unit.BYTES_PER_BLOCK_AND_ITERATION, category=Category.LOADS,
    direction=Direction.LESS_IS_BETTER,
)  # fmt: skip
def loaded_bytes(of: RegionSubject) -> int | float | Absent | None:
    """Bytes that one iteration loads."""
    intensity = _intensity(of)
    return Absent.ABSENT if intensity is None else intensity.loaded


@region_fact(
    "intensity", "arithmetic intensity", Unit.FLOP_PER_BYTE, category=Category.LOADS,
    direction=Direction.MORE_IS_BETTER,
    reading="FLOP of the dots for each byte that a pass loads, wherever that comes from",
    column=FactColumn("intensity", "F/B", "FLOP of the dots per byte that the loop loads", 9),
    record="flop_per_byte",
)  # fmt: skip
def intensity(of: RegionSubject) -> float | Absent:
    """FLOP of the dots for each byte that a pass loads."""
    work_intensity = _intensity(of)
    return Absent.ABSENT if work_intensity is None else round(work_intensity.flop_per_byte, 1)


def _intensity(of: RegionSubject) -> Intensity | None:
    return None if of.work is None else of.kernel.intensity(of.region.id)


@region_fact(
    "mma.fused", "multiply-adds in place of MMAs", Unit.IN_CODE, category=Category.MMA,
    direction=Direction.LESS_IS_BETTER, brief="FMA", costs=matrix_unit_lost,
)  # fmt: skip
def fused(of: RegionSubject) -> int | Absent:
    """Multiply-adds of a region whose dots no matrix instruction does."""
    if of.work is None or not of.region.fused_multiply_adds or of.work.matrix:  # of an unrolled loop too
        return Absent.ABSENT
    stages = [of.kernel.stages[stage] for stage in (Stage.TTIR, Stage.TTGIR) if stage in of.kernel.stages]
    work = stages[0].work.get(of.region.id) if stages else None  # later stages peel dots off a loop
    has_dot = work is not None and bool(work.matrix)
    return of.region.fused_multiply_adds if has_dot else Absent.ABSENT


@region_fact(
    "in_flight.loads", "loads in flight, at most", category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER,
)  # fmt: skip
def loads_in_flight(of: RegionSubject) -> int | Absent | None:
    """Loads in flight, at most."""
    in_flight = _in_flight(of)
    return Absent.ABSENT if in_flight is None else in_flight.max_loads


@region_fact(
    "in_flight.bytes", "bytes in flight, at most", Unit.BYTES_PER_BLOCK, category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER, column=FactColumn("flight", "flight", "B in flight per CTA, at most", 6),
    brief="in flight",
)  # fmt: skip
def bytes_in_flight(of: RegionSubject) -> int | float | Absent | None:
    """Bytes in flight for a block, at most."""
    in_flight, threads = _in_flight(of), threads_of(of.kernel)
    if in_flight is None:
        return Absent.ABSENT
    per_thread = in_flight.max_bytes_per_thread
    return None if per_thread is None or threads is None else per_thread * threads


def _in_flight(of: RegionSubject) -> LoadsInFlight | None:
    in_flight = None if of.work is None else of.work.in_flight
    return None if in_flight is None or in_flight.max_loads == 0 else in_flight


@region_fact(
    "in_flight.overlap", "compute behind loads in flight", Unit.PERCENT, category=Category.IN_FLIGHT,
    direction=Direction.MORE_IS_BETTER,
)  # fmt: skip
def overlap_percentage(of: RegionSubject) -> int | Absent:
    """Overlap: share of compute that is issued while a load is in flight."""
    share = None if of.work is None else of.work.in_flight.compute_overlap
    is_loop = of.region.kind is RegionKind.LOOP
    return round(100 * share) if share is not None and is_loop else Absent.ABSENT


@region_fact("copies", "copies to shared memory", Unit.PER_ITERATION, category=Category.LOADS)
def copies(of: RegionSubject) -> int | float | Absent:
    """Asynchronous copies to shared memory of one iteration."""
    if of.region.kind is not RegionKind.LOOP:
        return Absent.ABSENT
    return per_iteration(of, of.region.count(EventKind.ASYNC_COPY)) or Absent.ABSENT


def _of_pipeline(of: RegionSubject, read: Callable[[Pipeline], Property | None]) -> Property | Absent:
    """A property of the pipeline; absent where the loop is not pipelined, or the property unknown."""
    pipeline = of.kernel.pipelines.get(of.region.id)
    value = None if pipeline is None or pipeline.kind is None else read(pipeline)
    return Absent.ABSENT if value is None else value


@region_fact("pipeline.kind", "pipelined by", category=Category.WAITS, costs=_pipeline_changed)
def pipeline_kind(of: RegionSubject) -> str | Absent:
    """What the pipeline is made of."""
    return _of_pipeline(of, lambda pipeline: pipeline.kind)


@region_fact("pipeline.buffers", "buffers", category=Category.WAITS, direction=Direction.MORE_IS_BETTER)
def pipeline_buffers(of: RegionSubject) -> int | Absent:
    """Tiles that the buffers hold."""
    return _of_pipeline(of, lambda pipeline: pipeline.buffers)


@region_fact("pipeline.commits", "groups committed", Unit.PER_ITERATION, category=Category.WAITS)
def pipeline_commits(of: RegionSubject) -> int | float | Absent:
    """Groups of copies that one iteration commits."""
    return _of_pipeline(of, lambda pipeline: pipeline.commits_per_iteration)


@region_fact(
    "pipeline.depth", "wait depth", Unit.LEFT_IN_FLIGHT, category=Category.WAITS,
    direction=Direction.MORE_IS_BETTER,
    column=FactColumn("wait", "wait", "what the strictest wait for loads leaves in flight", 3),
    brief="wait depth", costs=_drains,
)  # fmt: skip
def pipeline_depth(of: RegionSubject) -> int | Absent:
    """Loads or groups that the strictest wait for loads leaves in flight."""
    return _of_pipeline(of, lambda pipeline: pipeline.wait_depth)


@region_fact(
    "pipeline.iterations", "iterations in flight", Unit.BEHIND_THE_WAIT, category=Category.WAITS,
    direction=Direction.MORE_IS_BETTER,
    column=FactColumn("iterations", "iters", "iterations in flight behind it", 4), brief="iters", costs=_drains,
)  # fmt: skip
def pipeline_iterations(of: RegionSubject) -> int | float | Absent:
    """Iterations that are in flight after the wait."""
    return _of_pipeline(of, lambda pipeline: pipeline.iterations_in_flight)
