"""What one file of a kernel says, as JSON: its regions and what their instructions do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from artifact_inspector.analysis.access.accesses import Accesses
from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.analysis.flow.trips import Trips
from artifact_inspector.analysis.matrix.generation import Generation
from artifact_inspector.analysis.matrix.identity import Identity
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.order.facts import Pair, RegionFacts, RoundFacts
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.analysis.overlap.issue import Issue
from artifact_inspector.analysis.overlap.partitions import Slot
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import WaitEffect
from artifact_inspector.analysis.shared.conversions import Conversion
from artifact_inspector.facts.kernel import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.model import Queue, Stage
from artifact_inspector.report.json._encoding import Words, shape
from artifact_inspector.report.words import VERDICTS

Verdict = Annotated[str, Words(VERDICTS)]
"""In which order a region loads and computes."""

_QUEUES = tuple(queue.value for queue in Queue if queue is not Queue.TENSOR_MEMORY)
"""Nothing in flight is told of tensor memory."""

shape(WaitFacts, without="queue spelt")
shape(Pair, rounded={"f": 4, "g": 4})
shape(
    WaitEffect,
    "line=wait.line op=wait.op depth=wait.depth queue=wait.queue pending_before=before pending_after=after"
    " groups_after=groups iterations_in_flight=iterations",
    without="wait drains",
    types={
        "queue": Annotated[
            str, Words(tuple(queue.value for queue in Queue if queue is not Queue.TENSOR_MEMORY))
        ]
    },
)
shape(
    InFlight,
    "max_loads max_bytes_per_thread compute_covered distance waits drains_at=drains",
    rounded={"compute_covered": 4},
)
shape(
    MatrixWork,
    "op shape=matrix.shape types=matrix.types count count_along_path=along_path flop=matrix.flop"
    " issuer=matrix.issuer issuers flop_per_pass=flop",
    without="matrix tiling precision instead_of",
    title="Matrix",
)
shape(Identity, "expected_flop=expected found_flop=found holds reason words", title="MatrixIdentity")
shape(
    Generation,
    "used newest words reason",
    without="fused lines",
    empty="reason",
    title="MatrixGeneration",
)
shape(
    Slot,
    "kind memory matrix lines",
    without="first last priority",
    types={"kind": Annotated[str, Words(("memory", "matrix", "mixed"))]},
)
shape(
    RoundFacts,
    "loads first_load last_load first_compute last_compute sources called_from names shared distances",
)
shape(Conversion, "line source called_from=source.called_from")
shape(
    RegionFacts,
    "id kind depth parent in_program lines signature readable verdict phrase distance unrolled_by groups"
    " copies_stand basis pairs exclusive rounds other matrix fused changed notes",
    without="noted",
    empty="groups",
    types={
        "kind": Annotated[str, Words(("loop", "straight", "partition"))],
        "verdict": Verdict,
        "copies_stand": Annotated[str, Words(("before", "after", "between"))] | None,
        "basis": Annotated[str, Words(("source", "dataflow"))],
    },
)


@dataclass(frozen=True, slots=True)
class PipelineDocument:
    """How a loop is pipelined at its last stage, and why it is not."""

    facts: Pipeline
    drains_at: tuple[int, ...]
    """Lines of the waits of the last stage that drain it."""


_AHEAD = "num_stages kind buffers commits_per_iteration wait_depth iterations_in_flight distance prologue"
shape(
    PipelineDocument,
    " ".join(f"{name}=facts.{name}" for name in _AHEAD.split())
    + " epilogue_line=facts.epilogue_line drains_at overlaps_matrix=facts.overlaps_matrix"
    + " why_not=facts.why_not evidence=facts.evidence notes=facts.notes",
    without="facts",
)


@dataclass(frozen=True, slots=True)
class RegionDocument:
    """A loop, a partition or the straight-line code of one stage."""

    facts: RegionFacts
    in_flight: InFlight | None
    pipeline: PipelineDocument | None
    """Of a loop; the same at every stage behind TTIR."""
    matrix_ops: tuple[MatrixWork, ...]
    matrix_identity: Identity | None
    """At the last stage only."""
    load_widths: Mapping[int, int]
    """Bytes per thread → loads and copies together."""
    bounds: Mapping[Check, int]
    """What staying inside the tensors costs: kind of work → instructions."""
    conversions: tuple[Conversion, ...]
    """TTGIR only."""
    trips: Trips | None
    """Of a loop of tensor-level IR whose bounds are constants."""
    slots: tuple[Slot, ...]
    """Empty where the loop has no schedule hints."""
    issue: Issue | None
    """SASS with its encoding only."""
    matrix_generation: Generation | None
    """At the last stage only."""


shape(Trips, "start stop step passes")
shape(RegionDocument, inline="facts")


@dataclass(frozen=True, slots=True)
class StageDocument:
    """What one file says."""

    file: str
    """From the cache directory."""
    instructions: int
    unknown: int
    """Instructions of no known kind."""
    unknown_opcodes: Mapping[str, int]
    counts: Mapping[str, int]
    """Kind of event → instructions."""
    load_widths: Mapping[int, int]
    """Bytes per thread → loads and copies together."""
    accesses: Accesses
    waits: tuple[WaitFacts, ...]
    regions: tuple[RegionDocument, ...]


def stage_document(kernel: KernelFacts, stage: StageFacts) -> StageDocument:
    """One stage of a kernel."""
    return StageDocument(
        file=stage.file,
        instructions=stage.instructions,
        unknown=sum(stage.unknown.values()),
        unknown_opcodes=stage.unknown,
        counts=stage.counts,
        load_widths=stage.accesses.load_widths,
        accesses=stage.accesses,
        waits=stage.waits,
        regions=tuple(_region(kernel, stage, region) for region in stage.regions),
    )


def _region(kernel: KernelFacts, stage: StageFacts, region: RegionFacts) -> RegionDocument:
    """A region; what is said of all stages together stands with the last."""
    work = stage.work.get(region.id)
    is_last = stage is kernel.last
    pipeline = kernel.pipelines.get(region.id) if stage.stage is not Stage.TTIR else None
    return RegionDocument(
        facts=region,
        in_flight=None if work is None else work.in_flight,
        pipeline=None if pipeline is None else PipelineDocument(pipeline, kernel.drains(region.id)),
        matrix_ops=() if work is None or region.is_left_over else work.matrix,
        matrix_identity=kernel.identities.get(region.id) if is_last else None,
        load_widths={} if work is None else work.accesses.load_widths,
        bounds={} if work is None else work.checks,
        conversions=() if work is None else work.conversions,
        trips=None if work is None else work.trips,
        slots=() if work is None else work.slots,
        issue=None if work is None else work.issue,
        matrix_generation=kernel.generations.get(region.id) if is_last else None,
    )
