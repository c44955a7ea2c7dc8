"""What one file of a kernel says, as JSON: its regions and what their instructions do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.analysis.matrix.identity import Reason
from artifact_inspector.model import Queue, Stage
from artifact_inspector.report.json._types import Lines, StageName, Words
from artifact_inspector.report.json.memory import AccessesJson, accesses, load_widths
from artifact_inspector.report.words import VERDICTS

if TYPE_CHECKING:
    from artifact_inspector.analysis.matrix.generation import Generation
    from artifact_inspector.analysis.matrix.identity import Identity
    from artifact_inspector.analysis.matrix.work import MatrixWork
    from artifact_inspector.analysis.order.verdict import RegionFacts, RoundFacts
    from artifact_inspector.analysis.overlap.inflight import InFlight
    from artifact_inspector.analysis.overlap.issue import Issue
    from artifact_inspector.analysis.overlap.pipeline import Pipeline
    from artifact_inspector.analysis.shared.conversions import Conversion
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts

__all__ = ["StageJson", "Verdict", "stage_object"]

Verdict = Annotated[str, Words(VERDICTS)]
"""In which order a region loads and computes."""
QueueName = Annotated[str, Words(tuple(queue.value for queue in Queue))]
Distance = int | Lines | None
"""Source iterations that loads run ahead: a number, the least and the most where they differ, or null."""


class WaitJson(TypedDict):
    """One wait instruction."""

    line: int
    op: str
    """As people write it: `cp.async.wait_group`, `s_waitcnt vmcnt`."""
    depth: int | None
    """How many younger loads, or groups of copies, it leaves in flight; null where a barrier phase tells."""
    region: str
    """The id of the region that it stands in."""


class PairJson(TypedDict):
    """Two neighbouring rounds, r and r+1."""

    f: float
    """Share of the loads of r+1 that stand in front of the first compute of r."""
    g: float
    """Share that stand behind the last compute of r."""


class RoundJson(TypedDict):
    """Loads that belong together, and the computes on them."""

    loads: int
    """Load instructions."""
    first_load: int | None
    last_load: int | None
    first_compute: int | None
    last_compute: int | None
    sources: tuple[str, ...]
    """Lines of its load statements in the user's code, `file.py:line`."""
    names: tuple[str, ...]
    """What the IR calls the loaded values."""
    shared: tuple[str, ...]
    """Those of its statements whose data later rounds use too."""
    distances: tuple[int, ...]
    """Iterations that each statement loads ahead."""


class WaitEffectJson(TypedDict):
    """What a wait finds in flight in its queue, and what it leaves."""

    line: int
    op: str
    depth: int | None
    queue: QueueName
    pending_before: int
    """Loads of its queue in flight in front of it."""
    pending_after: int
    groups_after: int | None
    """Groups, or phases of its barriers, that it leaves; null where the queue counts single loads."""
    iterations_in_flight: float | None
    """Iterations of the loop whose copies it may leave in flight."""


class InFlightJson(TypedDict):
    """The loads in flight in a region; of a loop in its steady state."""

    max_loads: int | None
    """Most load instructions issued and not complete."""
    max_bytes_per_thread: float | None
    """Most bytes of such loads for each thread; null where the width of some load is not known."""
    compute_covered: float | None
    """Share of the region's matrix and float instructions that are issued while a load is in flight."""
    distance: tuple[int, int] | None
    """Instructions between issue and completion of its loads, least and most."""
    waits: list[WaitEffectJson]
    drains_at: tuple[int, ...]
    """Lines of the waits inside a loop behind which no load is in flight."""
    levels: tuple[tuple[int, int], ...]
    """Line and loads in flight after it, in execution order, where the number changes."""
    notes: tuple[str, ...]


class EvidenceJson(TypedDict):
    """A line that proves what is said."""

    stage: StageName
    line: int


class PipelineJson(TypedDict):
    """How a loop is pipelined, and why it is not."""

    num_stages: int | None
    """Asked for: by the loop itself, else by the compile."""
    kind: str | None
    """How its loads run ahead: `cp.async groups`, `TMA + mbarrier`, `direct to LDS`, `register prefetch` …;
    null where they do not."""
    buffers: int | None
    """Tiles that the most-buffered of its allocations holds."""
    commits_per_iteration: int | None
    """Groups of copies committed, or barrier phases armed, in one iteration of the source."""
    wait_depth: int | None
    """How many younger copies the strictest wait of the loop leaves in flight; null for a barrier phase."""
    iterations_in_flight: float | None
    """Iterations of the source whose copies are still in flight behind that wait."""
    distance: Distance
    """Iterations of the source that the loads run ahead."""
    prologue: float | None
    """Iterations of the source whose copies stand in front of the loop."""
    epilogue_line: int | None
    """The wait behind the loop that leaves nothing in flight."""
    drains_at: tuple[int, ...]
    """Lines of the waits of depth 0 in the loop."""
    overlaps_matrix: bool
    """A matrix operation stays in flight while the next iteration begins."""
    why_not: str | None
    """Why it is not pipelined, or not all of its loads, or not as deep as asked."""
    evidence: list[EvidenceJson]
    notes: tuple[str, ...]


class MatrixJson(TypedDict):
    """Matrix operations of a region that are of one opcode, shape and types."""

    op: str
    """`mma.sync`, `wgmma.mma_async`, `v_mfma`, `tt.dot` …"""
    shape: str | None
    """`m16n8k16`, with `×4` where one issue computes four products; null where the text does not say."""
    types: str | None
    """Of a, b and the result: `f16×f16→f32`."""
    count: int
    """Static instructions."""
    count_along_path: int
    """Most of them on one path through the region: fewer where they are alternatives."""
    flop: int | None
    """Operations of one issue: two for each multiply-add."""
    issuer: str | None
    """Who issues it together: `warp`, `warpgroup`, `CTA`, `CTA pair`, `wavefront`, `block`."""
    issuers: int | None
    """How many of those a block has."""
    flop_per_pass: int | None
    """Operations of one pass through the region by the whole block: count × flop × issuers."""
    lines: Lines
    sources: tuple[str, ...]
    """Lines of the user's code, `file.py:line`."""


class MatrixIdentityJson(TypedDict):
    """Whether the matrix instructions of a region do the work of the program's dots."""

    expected_flop: int
    """2·M·N·K over the dots of one pass."""
    found_flop: int | None
    """count × flop × issuers over the matrix instructions."""
    holds: bool | None
    """Null where one side is unknown, or there is nothing to compare."""
    reason: Annotated[str, Words(tuple(reason.value for reason in Reason))]
    words: str


class MatrixGenerationJson(TypedDict):
    """Which generation of matrix unit a region uses, beside the newest of its target."""

    used: tuple[str, ...]
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`; empty where there is no matrix instruction."""
    newest: str | None
    words: str
    reason: str | None
    """Why it is not the newest, as far as the IR tells."""


class ConversionJson(TypedDict):
    """One layout conversion."""

    line: int
    source: str | None
    """`file.py:line` of the user's code."""
    bytes: int
    """Of the whole tensor, for the whole block."""
    change: str
    """Kinds of the two layouts: `blocked → dot operand`."""
    crosses_warps: bool | None
    through_shared: bool | None


class SlotJson(TypedDict):
    """What stands between two schedule hints of a loop."""

    kind: Annotated[str, Words(("memory", "matrix", "mixed"))]
    memory: int
    """Memory operations."""
    matrix: int
    """Matrix operations."""
    lines: Lines


class IssueWaitJson(TypedDict):
    """An instruction that waits for scoreboards."""

    line: int
    scoreboards: tuple[int, ...]
    """0 to 5: those that must be clear."""


class IssueJson(TypedDict):
    """One pass of one warp through a region, by the control codes of its machine code."""

    cycles: int
    """What issuing takes when nothing has to be waited for: the sum of the stall counts."""
    instructions: int
    waits: list[IssueWaitJson]


class RegionJson(TypedDict):
    """A loop, a partition or the straight-line code of one stage."""

    id: str
    """`loop@98`, `straight`, `partition0` …: the same at every stage."""
    kind: Annotated[str, Words(("loop", "straight", "partition"))]
    depth: int
    """Loops around it, itself included."""
    parent: str | None
    in_program: bool
    """False for a loop that only the compiler made."""
    lines: Lines
    signature: str
    """Its events in text order, as letters with their number: `W1 B1 s8 M16`."""
    readable: str
    """The signature with the names of what is loaded, where the IR tells."""
    verdict: Verdict
    phrase: str
    """The verdict as it is printed, with its distance, groups or shares."""
    distance: Distance
    """Iterations of the source that the loads run ahead."""
    unrolled_by: int
    groups: str | None
    """For `grouped`: which rounds were loaded together, as `{1 2}{3}`."""
    copies_stand: Annotated[str, Words(("before", "after", "between"))] | None
    """In a pipelined loop: where copies stand, by the direct computes."""
    basis: Annotated[str, Words(("source", "dataflow"))]
    """By what its rounds were found: source places, else the flow of data."""
    pairs: list[PairJson]
    rounds: list[RoundJson]
    other: tuple[str, ...]
    """Places of loads and computes that belong to no round."""
    matrix: int
    """Matrix instructions."""
    fused: int
    """Fused multiply-adds: what a dot becomes where no matrix operation does it."""
    notes: tuple[str, ...]
    in_flight: InFlightJson | None
    pipeline: PipelineJson | None
    """Of a loop; the same at every stage behind TTIR."""
    matrix_ops: list[MatrixJson]
    matrix_identity: MatrixIdentityJson | None
    """At the last stage only."""
    load_widths: dict[str, int]
    """Bytes per thread → loads and copies together."""
    bounds: dict[Annotated[str, Words(tuple(check.value for check in Check))], int]
    """What staying inside the tensors costs: kind of work → instructions."""
    conversions: list[ConversionJson]
    """TTGIR only."""
    slots: list[SlotJson]
    """Empty where the loop has no schedule hints."""
    issue: IssueJson | None
    """SASS with its encoding only."""
    matrix_generation: MatrixGenerationJson | None
    """At the last stage only."""


class StageJson(TypedDict):
    """What one file says."""

    file: str
    """From the cache directory."""
    instructions: int
    unknown: int
    """Instructions of no known kind."""
    unknown_opcodes: dict[str, int]
    counts: dict[str, int]
    """Kind of event → instructions."""
    load_widths: dict[str, int]
    """Bytes per thread → loads and copies together."""
    accesses: AccessesJson
    waits: list[WaitJson]
    regions: list[RegionJson]


def stage_object(kernel: KernelFacts, stage: StageFacts) -> StageJson:
    """One stage of a kernel."""
    return {
        "file": stage.file,
        "instructions": stage.instructions,
        "unknown": sum(stage.unknown.values()),
        "unknown_opcodes": dict(stage.unknown),
        "counts": dict(stage.counts),
        "load_widths": load_widths(stage.accesses),
        "accesses": accesses(stage.accesses),
        "waits": [{"line": x.line, "op": x.op, "depth": x.depth, "region": x.region} for x in stage.waits],
        "regions": [_region(kernel, stage, region) for region in stage.regions],
    }


def _region(kernel: KernelFacts, stage: StageFacts, region: RegionFacts) -> RegionJson:
    """A region; what is said of all stages together stands with the last."""
    work = stage.work.get(region.id)
    # What is left of a loop that is none here stands in another region, and is counted there.
    is_left_over = region.kind == "straight" and not region.id.endswith("straight")
    is_last = stage is kernel.last
    identity = kernel.identities.get(region.id) if is_last else None
    generation = kernel.generations.get(region.id) if is_last else None
    pipeline = kernel.pipelines.get(region.id) if stage.stage is not Stage.TTIR else None
    return {
        "id": region.id,
        "kind": region.kind,
        "depth": region.depth,
        "parent": region.parent,
        "in_program": region.in_program,
        "lines": region.lines,
        "signature": region.signature,
        "readable": region.readable,
        "verdict": region.verdict,
        "phrase": region.phrase,
        "distance": region.distance,
        "unrolled_by": region.unrolled_by,
        "groups": region.groups or None,
        "copies_stand": region.copies_stand,
        "basis": region.basis,
        "pairs": [{"f": round(x.f, 4), "g": round(x.g, 4)} for x in region.pairs],
        "rounds": [_round(x) for x in region.rounds],
        "other": region.other,
        "matrix": region.matrix,
        "fused": region.fused,
        "notes": region.notes,
        "in_flight": None if work is None else _in_flight(work.in_flight),
        "pipeline": None if pipeline is None else _pipeline(pipeline),
        "matrix_ops": [] if work is None or is_left_over else [_matrix(found) for found in work.matrix],
        "matrix_identity": None if identity is None else _identity(identity),
        "load_widths": {} if work is None else load_widths(work.accesses),
        "bounds": {} if work is None else {kind.value: count for kind, count in work.checks.items()},
        "conversions": [] if work is None else [_conversion(x) for x in work.conversions],
        "slots": []
        if work is None
        else [
            {"kind": x.kind, "memory": x.memory, "matrix": x.matrix, "lines": (x.first, x.last)}
            for x in work.slots
        ],
        "issue": None if work is None or work.issue is None else _issue(work.issue),
        "matrix_generation": None if generation is None else _generation(generation),
    }


def _round(item: RoundFacts) -> RoundJson:
    return {
        "loads": item.loads,
        "first_load": item.first_load,
        "last_load": item.last_load,
        "first_compute": item.first_compute,
        "last_compute": item.last_compute,
        "sources": item.sources,
        "names": item.names,
        "shared": item.shared,
        "distances": item.distances,
    }


def _in_flight(found: InFlight) -> InFlightJson:
    return {
        "max_loads": found.max_loads,
        "max_bytes_per_thread": found.max_bytes_per_thread,
        "compute_covered": None if found.compute_covered is None else round(found.compute_covered, 4),
        "distance": found.distance,
        "waits": [
            {
                "line": x.line,
                "op": x.op,
                "depth": x.depth,
                "queue": x.queue.value,
                "pending_before": x.before,
                "pending_after": x.after,
                "groups_after": x.groups,
                "iterations_in_flight": x.iterations,
            }
            for x in found.waits
        ],
        "drains_at": found.drains,
        "levels": found.levels,
        "notes": found.notes,
    }


def _pipeline(found: Pipeline) -> PipelineJson:
    return {
        "num_stages": found.num_stages,
        "kind": found.kind,
        "buffers": found.buffers,
        "commits_per_iteration": found.commits_per_iteration,
        "wait_depth": found.wait_depth,
        "iterations_in_flight": found.iterations_in_flight,
        "distance": found.distance,
        "prologue": found.prologue,
        "epilogue_line": found.epilogue_line,
        "drains_at": found.drains_at,
        "overlaps_matrix": found.overlaps_matrix,
        "why_not": found.why_not,
        "evidence": [{"stage": x.stage.value, "line": x.line} for x in found.evidence],
        "notes": found.notes,
    }


def _matrix(work: MatrixWork) -> MatrixJson:
    op = work.matrix
    return {
        "op": work.op,
        "shape": None if op is None else op.shape,
        "types": None if op is None else op.types,
        "count": work.count,
        "count_along_path": work.along_path,
        "flop": None if op is None else op.flop,
        "issuer": None if op is None else op.issuer,
        "issuers": work.issuers,
        "flop_per_pass": work.flop,
        "lines": work.lines,
        "sources": work.sources,
    }


def _identity(found: Identity) -> MatrixIdentityJson:
    return {
        "expected_flop": found.expected,
        "found_flop": found.found,
        "holds": found.holds,
        "reason": found.reason.value,
        "words": found.words,
    }


def _generation(found: Generation) -> MatrixGenerationJson:
    return {
        "used": found.used,
        "newest": found.newest,
        "words": found.words,
        "reason": found.reason or None,
    }


def _conversion(conversion: Conversion) -> ConversionJson:
    return {
        "line": conversion.line,
        "source": conversion.source,
        "bytes": conversion.bytes,
        "change": conversion.change,
        "crosses_warps": conversion.crosses_warps,
        "through_shared": conversion.through_shared,
    }


def _issue(found: Issue) -> IssueJson:
    return {
        "cycles": found.cycles,
        "instructions": found.instructions,
        "waits": [{"line": line, "scoreboards": boards} for line, boards in found.waits],
    }
