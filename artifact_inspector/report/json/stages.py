"""What one file of a kernel says, as JSON: its regions and what their instructions do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.analysis.flow.loop_range import LoopRange
from artifact_inspector.analysis.matrix.generation import MatrixGeneration
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.matrix.work_balance import WorkBalance
from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts, RoundPair
from artifact_inspector.analysis.overlap.issue_cycles import IssueEstimate
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.partitions import PingPongSlot
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import WaitEffect
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.facts.kernel import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.model import Queue, Stage
from artifact_inspector.report.json._encoding import TextExamples, define_shape
from artifact_inspector.report.phrases import VERDICTS

Verdict = Annotated[str, TextExamples(VERDICTS)]
"""In which order a region loads and computes."""

_QUEUES = tuple(queue.value for queue in Queue if queue is not Queue.TENSOR_MEMORY)
"""Tensor memory is not included."""

define_shape(WaitFacts, without="queue template")
define_shape(RoundPair, rounded={"issued_before": 4, "issued_after": 4})
define_shape(
    WaitEffect,
    "line=wait.line op=wait.op depth=wait.depth queue=wait.queue in_flight_before in_flight_after"
    " groups_after=groups iterations_in_flight=iterations",
    without="wait drains",
    types={
        "queue": Annotated[str, TextExamples(tuple(queue.value for queue in Queue if queue is not Queue.TENSOR_MEMORY))]
    },
)
define_shape(
    LoadsInFlight,
    "max_loads max_bytes_per_thread compute_overlap distance waits drains_at=drains",
    rounded={"compute_overlap": 4},
)
define_shape(
    MatrixWork,
    "op shape=matrix.shape types=matrix.types count count_along_path=along_path flop=matrix.flop"
    " issuer=matrix.issuer issuers flop_per_pass=flop",
    without="matrix tiling precision exclusive_sources",
    title="Matrix",
)
define_shape(
    WorkBalance, "expected_flop=expected actual_flop=actual is_balanced reason explanation", title="MatrixIdentity"
)
define_shape(
    MatrixGeneration, "used newest description reason", without="fused lines", empty="reason", title="MatrixGeneration"
)
define_shape(
    PingPongSlot,
    "kind memory matrix lines",
    without="first last priority",
    types={"kind": Annotated[str, TextExamples(("memory", "matrix", "mixed"))]},
)
define_shape(
    RoundFacts, "loads first_load last_load first_compute last_compute sources called_from names shared distances"
)
define_shape(LayoutConversion, "line source called_from=source.called_from")
define_shape(
    RegionFacts,
    "id kind depth parent is_in_program lines signature named_signature verdict phrase distance unroll_factor groups"
    " copy_position basis pairs exclusive rounds unassigned matrix fused_multiply_adds order_changed notes",
    without="region_notes",
    empty="groups",
    types={
        "kind": Annotated[str, TextExamples(("loop", "straight", "partition"))],
        "verdict": Verdict,
        "copy_position": Annotated[str, TextExamples(("before", "after", "between"))] | None,
        "basis": Annotated[str, TextExamples(("source", "dataflow"))],
    },
)


@dataclass(frozen=True, slots=True)
class PipelineDocument:
    """How a loop is pipelined at its last stage, and why it is not."""

    facts: Pipeline
    drains_at: tuple[int, ...]
    """Lines of the waits of the last stage that drain it."""


_AHEAD = "num_stages kind buffers commits_per_iteration wait_depth iterations_in_flight distance prologue"
define_shape(
    PipelineDocument,
    " ".join(f"{name}=facts.{name}" for name in _AHEAD.split())
    + " epilogue_line=facts.epilogue_line drains_at overlaps_matrix=facts.overlaps_matrix"
    + " unpipelined_reason=facts.unpipelined_reason evidence=facts.evidence notes=facts.notes",
    without="facts",
)


@dataclass(frozen=True, slots=True)
class RegionDocument:
    """A loop, a partition or the straight-line code of one stage."""

    facts: RegionFacts
    in_flight: LoadsInFlight | None
    pipeline: PipelineDocument | None
    """Of a loop; the same at every stage behind TTIR."""
    matrix_ops: tuple[MatrixWork, ...]
    matrix_balance: WorkBalance | None
    """At the last stage only."""
    load_widths: Mapping[int, int]
    """Bytes per thread → loads and copies together."""
    bounds: Mapping[CheckKind, int]
    """What staying inside the tensors costs: kind of work → instructions."""
    conversions: tuple[LayoutConversion, ...]
    """TTGIR only."""
    trips: LoopRange | None
    """Of a loop of tensor-level IR whose bounds are constants."""
    slots: tuple[PingPongSlot, ...]
    """Empty where the loop has no schedule hints."""
    issue: IssueEstimate | None
    """SASS with its encoding only."""
    matrix_generation: MatrixGeneration | None
    """At the last stage only."""


define_shape(LoopRange, "start stop step trip_count")
define_shape(RegionDocument, inline="facts")


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
    accesses: AccessCounts
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
    """A region; facts of all stages are listed with the last stage."""
    work = stage.work.get(region.id)
    is_last = stage is kernel.last
    pipeline = kernel.pipelines.get(region.id) if stage.stage is not Stage.TTIR else None
    return RegionDocument(
        facts=region,
        in_flight=None if work is None else work.in_flight,
        pipeline=None if pipeline is None else PipelineDocument(pipeline, kernel.drains(region.id)),
        matrix_ops=() if work is None or region.is_dissolved_loop else work.matrix,
        matrix_balance=kernel.identities.get(region.id) if is_last else None,
        load_widths={} if work is None else work.accesses.load_widths,
        bounds={} if work is None else work.checks,
        conversions=() if work is None else work.conversions,
        trips=None if work is None else work.trips,
        slots=() if work is None else work.slots,
        issue=None if work is None else work.issue,
        matrix_generation=kernel.generations.get(region.id) if is_last else None,
    )
