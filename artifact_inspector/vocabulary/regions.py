"""What a region of a kernel does: the facts of one region."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.analysis.overlap.waits import depths_for_loads
from artifact_inspector.analysis.resources.intensity import Intensity
from artifact_inspector.facts.kernel import StageFacts, WaitFacts
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.model.region import RegionKind
from artifact_inspector.model.verdict import Verdict
from artifact_inspector.vocabulary.fact import Absent, Category, Column, Fact, Found, Of, Subject, Value
from artifact_inspector.vocabulary.whole import matrix_unit_lost, threads_of


def _layout(of: Subject) -> Value:
    """The verdict with its distance and groups, None where it is not known."""
    assert of.region is not None
    return None if of.region.verdict is Verdict.UNKNOWN else of.region.layout


# -- waits and matrix work -------------------------------------------------------------


def _waits(of: Subject) -> Found:
    work, stage, region = of.work, of.stage, of.region
    if work is None or stage is None or region is None:
        return Absent.ABSENT
    here = stage.waits_in(region.id)
    for_loads = [wait for wait in here if wait.is_for_loads]
    if for_loads:
        return tuple(_wait_words(for_loads))
    return ("first use of the register",) if work.in_flight.max_loads and not here else Absent.ABSENT


def _wait_words(waits: Sequence[WaitFacts]) -> Iterator[str]:
    """`cp.async.wait_group 4`, `s_waitcnt vmcnt 14…0 ×16`, each kind of wait once."""
    for op in dict.fromkeys(wait.op for wait in waits):
        same = [wait.depth for wait in waits if wait.op == op]
        depths = sorted({depth for depth in same if depth is not None}, reverse=True)
        said = f"{depths[0]}…{depths[-1]}" if len(depths) > 2 else " and ".join(map(str, depths))
        yield f"{op} {said}".rstrip() + (f" ×{len(same)}" if len(same) > 1 else "")


def _works(of: Subject) -> tuple[MatrixWork, ...]:
    work = of.work
    if work is None or of.region is None or of.region.is_left_over or _is_peeled(of):
        return ()
    return work.matrix


def _is_peeled(of: Subject) -> bool:
    """True for straight-line code whose matrix work is that of a loop, peeled off by the compiler."""
    first = of.kernel.stages.get(Stage.TTIR)
    if of.region is None or of.region.kind is RegionKind.LOOP or first is None:
        return False
    own = first.work.get(of.region.id)
    return (own is None or not own.matrix) and first.has_matrix


def _matrix(of: Subject) -> Found:
    """Matrix instructions of one iteration of the source, of a loop whose body the compiler copied."""
    counts: Counter[str] = Counter()
    for work in _works(of):
        op = work.matrix
        many = "s" if work.issuers != 1 else ""
        by = "" if op is None or work.issuers is None else f" by {work.issuers} {op.issuer}{many}"
        counts[work.op if op is None else f"{op.op} {op.shape} ({op.types}){by}"] += work.count
    said = tuple(f"{_each(of, count):g} × {op}" for op, count in counts.items())
    return said or Absent.ABSENT


def _matrix_count(of: Subject) -> Found:
    if of.work is None or of.region is None or _is_peeled(of):
        return Absent.ABSENT
    return _each(of, of.region.matrix)


def _flop(of: Subject) -> Found:
    flop = [found.flop for found in _works(of)]
    if not flop:
        return Absent.ABSENT
    return None if None in flop else _each(of, sum(one or 0 for one in flop))


def _fused(of: Subject) -> Found:
    region = of.region
    if region is None or of.work is None or not region.fused or _works(of):
        return Absent.ABSENT
    asked = any(_has_dot(facts, region.id) for facts in of.kernel.stages.values())
    return region.fused if asked else Absent.ABSENT


def _has_dot(facts: StageFacts, region: str) -> bool:
    work = facts.work.get(region)
    return facts.stage.order <= Stage.TTGIR.order and work is not None and bool(work.matrix)


def _loaded(of: Subject) -> Found:
    work = _work_of(of)
    return Absent.ABSENT if work is None else work.loaded


def _per_byte(of: Subject) -> Found:
    work = _work_of(of)
    return Absent.ABSENT if work is None else round(work.flop_per_byte, 1)


def _work_of(of: Subject) -> Intensity | None:
    region = of.region
    return None if region is None or of.work is None else of.kernel.intensity(region.id)


def _trips(of: Subject) -> Found:
    """By the first stage that tells: what is left of a loop that was unrolled runs less often."""
    region = of.region
    if region is None or of.work is None:
        return Absent.ABSENT
    for stage in (Stage.TTIR, Stage.TTGIR):
        facts = of.kernel.stages.get(stage)
        work = None if facts is None else facts.work.get(region.id)
        if work is not None:
            return Absent.ABSENT if work.trips is None else work.trips.passes
    return Absent.ABSENT


# -- loads in flight -------------------------------------------------------------------


def _flying(of: Subject) -> InFlight | None:
    flying = None if of.work is None else of.work.in_flight
    return None if flying is None or flying.max_loads == 0 else flying


def _loads_in_flight(of: Subject) -> Found:
    flying = _flying(of)
    return Absent.ABSENT if flying is None else flying.max_loads


def _bytes_in_flight(of: Subject) -> Found:
    flying, threads = _flying(of), threads_of(of.kernel)
    if flying is None:
        return Absent.ABSENT
    each = flying.max_bytes_per_thread
    return None if each is None or threads is None else each * threads


def _covered(of: Subject) -> Found:
    share = None if of.work is None else of.work.in_flight.compute_covered
    is_loop = of.region is not None and of.region.kind is RegionKind.LOOP
    return round(100 * share) if share is not None and is_loop else Absent.ABSENT


def _copies(of: Subject) -> Found:
    region = of.region
    if region is None or region.kind is not RegionKind.LOOP:
        return Absent.ABSENT
    return _each(of, region.count(EventKind.ASYNC_COPY)) or Absent.ABSENT


def _pipelined(name: str) -> Callable[[Subject], Found]:
    def find(of: Subject) -> Found:
        pipeline = None if of.region is None else of.kernel.pipelines.get(of.region.id)
        if pipeline is None or pipeline.kind is None:
            return Absent.ABSENT
        value: Value = getattr(pipeline, name)
        return Absent.ABSENT if value is None else value

    return find


def _each(of: Subject, count: int | float) -> int | float:
    """Of one iteration of the source."""
    assert of.region is not None
    value = Fraction(count) / of.region.unrolled_by
    return int(value) if value.denominator == 1 else float(value)


def _of_region(name: str) -> Callable[[Subject], Found]:
    def find(of: Subject) -> Value:
        value: Value = getattr(of.region, name)
        return value

    return find


def _depths(of: Subject) -> tuple[int, ...]:
    """Of the waits for loads."""
    assert of.stage is not None
    assert of.region is not None
    return depths_for_loads(of.stage.waits_in(of.region.id))


def _in_flight(name: str) -> Callable[[Subject], Found]:
    def find(of: Subject) -> Value:
        value: Value = None if of.work is None else getattr(of.work.in_flight, name)
        return value

    return find


def _recorded(
    record: str, category: Category, label: str, unit: str, find: Callable[[Subject], Found]
) -> Fact:
    """What flat records say of a region in figures, and reports in sentences."""
    return Fact(record, category, label, unit, _R, find, is_row=False, record=record)


_C, _R = Category, Of.REGION

OF_REGION_AT_STAGE = (
    Fact("verdict.{step}", _C.VERDICT, "verdict at {step}", "", Of.REGION_AT_STAGE, _layout, brief="order"),
)
"""What is said of a region at every stage."""

OF_REGION = (
    _recorded("matrix", _C.MMA, "matrix instructions", "in the code", _of_region("matrix")),
    _recorded("fused", _C.MMA, "multiply-adds", "in the code", _of_region("fused")),
    _recorded("waits_for_loads", _C.WAITS, "waits for loads", "", lambda of: len(_depths(of))),
    _recorded(
        "least_wait_depth", _C.WAITS, "what the strictest wait leaves", "in flight",
        lambda of: min(_depths(of), default=None),
    ),
    _recorded("max_loads_in_flight", _C.IN_FLIGHT, "loads in flight", "at most", _in_flight("max_loads")),
    _recorded(
        "max_bytes_in_flight", _C.IN_FLIGHT, "bytes in flight", "B per thread",
        _in_flight("max_bytes_per_thread"),
    ),
    _recorded(
        "compute_covered", _C.IN_FLIGHT, "compute behind loads", "share", _in_flight("compute_covered")
    ),
    _recorded("signature", _C.INSTRUCTIONS, "events", "letters in text order", _of_region("signature")),
    Fact("waits", _C.WAITS, "waits for loads", "", _R, _waits),
    Fact(
        "mma", _C.MMA, "matrix instructions", "per iteration × issuers", _R, _matrix, brief="MMA",
        costs=matrix_unit_lost,
    ),
    Fact(
        "mma.count", _C.MMA, "matrix instructions", "per iteration", _R, _matrix_count, is_row=False,
        column=Column("mma", "MMA", "matrix instructions per iteration", 5),
    ),
    Fact("mma.flop", _C.MMA, "FLOP", "per CTA and iteration", _R, _flop),
    Fact("trips", _C.INSTRUCTIONS, "passes", "of the loop, by constants of the program", _R, _trips),
    Fact("loads.iteration", _C.LOADS, "loads of the program", "B per CTA and iteration", _R, _loaded),
    Fact(
        "intensity", _C.LOADS, "arithmetic intensity", "FLOP per byte loaded", _R, _per_byte,
        "FLOP of the dots for each byte that a pass loads, wherever that comes from",
        column=Column("intensity", "F/B", "FLOP of the dots per byte that the loop loads", 9),
        record="flop_per_byte",
    ),
    Fact(
        "mma.fused", _C.MMA, "multiply-adds in place of MMAs", "in the code", _R, _fused, brief="FMA",
        costs=matrix_unit_lost,
    ),
    Fact("in_flight.loads", _C.IN_FLIGHT, "loads in flight, at most", "", _R, _loads_in_flight),
    Fact(
        "in_flight.bytes", _C.IN_FLIGHT, "bytes in flight, at most", "B per CTA", _R, _bytes_in_flight,
        column=Column("flight", "flight", "B in flight per CTA, at most", 6), brief="in flight",
    ),
    Fact("in_flight.covered", _C.IN_FLIGHT, "compute behind loads in flight", "%", _R, _covered),
    Fact("copies", _C.LOADS, "copies to shared memory", "per iteration", _R, _copies),
    Fact("pipeline.kind", _C.WAITS, "pipelined by", "", _R, _pipelined("kind")),
    Fact("pipeline.buffers", _C.WAITS, "buffers", "", _R, _pipelined("buffers")),
    Fact(
        "pipeline.commits", _C.WAITS, "groups committed", "per iteration", _R,
        _pipelined("commits_per_iteration"),
    ),
    Fact(
        "pipeline.depth", _C.WAITS, "wait depth", "left in flight", _R, _pipelined("wait_depth"),
        column=Column("wait", "wait", "what the strictest wait for loads leaves in flight", 3),
        brief="wait depth",
    ),
    Fact(
        "pipeline.iterations", _C.WAITS, "iterations in flight", "behind the wait", _R,
        _pipelined("iterations_in_flight"),
        column=Column("iterations", "iters", "iterations in flight behind it", 4), brief="iters",
    ),
)  # fmt: skip
"""What a region does in the last text."""
