"""Kernels and their cache as JSON: `--json`, `watch --json`, and only their findings: `findings --json`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, get_type_hints

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.bounds_checks import CheckKind
from artifact_inspector.analysis.access.cache_policies import CachePolicy
from artifact_inspector.analysis.access.load_widths import LoadWidth, NarrowCause
from artifact_inspector.analysis.flow.loop_range import LoopRange
from artifact_inspector.analysis.matrix.generation import MatrixGeneration
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
from artifact_inspector.analysis.matrix.work_balance import WorkBalance
from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts, RoundPair
from artifact_inspector.analysis.overlap.issue_cycles import IssueEstimate
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
from artifact_inspector.analysis.overlap.partitions import BarrierFacts, PartitionFacts, PingPongSlot
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import WaitEffect
from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.analysis.resources.usage import Contradiction, ResourceFigure, Resources
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.analysis.shared.shared_memory_usage import Allocation, SharedMemoryUsage
from artifact_inspector.facts.kernel import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.files.autotuning import EntryTiming
from artifact_inspector.files.cache import Artifact, Cache, OtherFile, Problem
from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.findings import Finding, find_findings
from artifact_inspector.hardware.targets import Limits, Target
from artifact_inspector.model import Queue, Stage
from artifact_inspector.report.json._document import Document, each_once
from artifact_inspector.report.json._encoding import (
    INLINED,
    FactsByKey,
    TextExamples,
    as_text,
    define_shape,
    hidden,
    named,
    narrowed,
    null_if_empty,
    present,
    rounded,
    words,
)
from artifact_inspector.report.phrases import VERDICTS
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.rows import summarise

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel


def identity(x: Artifact) -> tuple[object, ...]:
    """Name, hash, directory and architecture of a kernel."""
    return named("name", x.display_name), x.hash, x.directory, named("target", present(x.target).arch)


def _figures(x: Resources) -> dict[str, ResourceFigure]:
    """Key → figure of a multiprocessor's resources."""
    return {
        {"static_shared": "static_shared_bytes", "shared": "shared_bytes"}.get(name, name): getattr(x, name)
        for name, kind in get_type_hints(Resources).items()
        if kind is ResourceFigure and name != "tensor_columns"
    }


define_shape(
    Resources, lambda x: (
        *(named(key, figure.value) for key, figure in _figures(x).items()),
        *hidden(x.tensor_columns, x.workgroup_processor, x.contradictions),
    ),
)  # fmt: skip
define_shape(
    Limits, lambda x: (
        named("static", x.shared_per_block_static), named("opt_in", x.shared_per_block),
        *hidden(x.matrix_unit, x.multiprocessor, x.source),
    ), title="SharedLimits",
)  # fmt: skip
define_shape(
    Occupancy, lambda x: (
        named("blocks_per_sm", x.blocks), named("warps_per_sm", x.warps), narrowed(x.limited_by, tuple[str, ...]),
        x.max_warps, narrowed(x.unit, words("SM", "CU", "WGP")), narrowed(x.blocks_by_resource, Mapping[str, int]),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FigureSources:
    """The file and field that each figure is from; for a figure that is null, why it is."""

    resources: Resources


define_shape(
    FigureSources, lambda x: (
        *(named(key, figure.source) for key, figure in _figures(x.resources).items()), *hidden(x.resources),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResourcesDocument:
    """What one kernel takes."""

    resources: Resources = field(metadata=INLINED)
    sources: FigureSources
    shared_limits: Limits | None
    occupancy: Occupancy | None
    """On the kernel's own target; null where that is not known."""
    occupancy_on: Mapping[str, Occupancy]
    """Architecture → occupancy there, for the targets of `--on`, if this same binary's figures held;
    `blocks_per_sm` is null for another vendor's, and for waves of another width."""
    occupancy_compiled_on: Mapping[str, Occupancy]
    """Architecture → occupancy of the kernel compiled for it from its TTIR. Empty for several kernels, without
    Triton, without TTIR, or if the compile fails."""
    contradictions: tuple[Contradiction, ...]


Verdict = Annotated[str, TextExamples(VERDICTS)]
"""In which order a region loads and computes."""

define_shape(WaitFacts, lambda x: (x.line, x.op, x.depth, *hidden(x.queue, x.template)))
define_shape(RoundPair, lambda x: (rounded(x.issued_before, 4), rounded(x.issued_after, 4)))
define_shape(
    WaitEffect, lambda x: (
        x.wait.line, x.wait.op, x.wait.depth,
        narrowed(x.wait.queue, words(*(queue.value for queue in Queue if queue is not Queue.TENSOR_MEMORY))),
        x.in_flight_before, x.in_flight_after, named("groups_after", x.groups),
        named("iterations_in_flight", x.iterations), *hidden(x.wait, x.drains),
    ),
)  # fmt: skip
define_shape(
    LoadsInFlight, lambda x: (
        x.max_loads, x.max_bytes_per_thread, rounded(x.compute_overlap, 4), x.distance, x.waits,
        named("drains_at", x.drains),
    ),
)  # fmt: skip
define_shape(
    MatrixWork, lambda x: (
        x.op, present(x.matrix).shape, present(x.matrix).types, x.count, named("count_along_path", x.along_path),
        present(x.matrix).flop, present(x.matrix).issuer, x.issuers, named("flop_per_pass", x.flop),
        *hidden(x.matrix, x.tiling, x.precision, x.exclusive_sources),
    ), title="Matrix",
)  # fmt: skip
define_shape(
    WorkBalance, lambda x: (
        named("expected_flop", x.expected), named("actual_flop", x.actual), x.is_balanced,
    ), title="MatrixIdentity",
)  # fmt: skip
define_shape(
    MatrixGeneration, lambda x: (
        x.used, x.newest, x.description, null_if_empty(x.reason), *hidden(x.fused, x.lines),
    ), title="MatrixGeneration",
)  # fmt: skip
define_shape(
    PingPongSlot, lambda x: (
        narrowed(x.kind, words("memory", "matrix", "mixed")), x.memory, x.matrix, x.lines,
        *hidden(x.first, x.last, x.priority),
    ),
)  # fmt: skip
define_shape(
    RoundFacts, lambda x: (
        x.loads, x.first_load, x.last_load, x.first_compute, x.last_compute, x.sources, x.called_from,
    ),
)  # fmt: skip
define_shape(LayoutConversion, lambda x: (x.line, x.source, present(x.source).called_from))
define_shape(
    RegionFacts, lambda x: (
        x.id, narrowed(x.kind, words("loop", "straight", "partition")), x.depth, x.parent, x.is_in_program, x.lines,
        x.signature, x.named_signature, narrowed(x.verdict, Verdict), x.phrase, x.distance, x.unroll_factor,
        null_if_empty(x.groups), narrowed(x.copy_position, words("before", "after", "between") | None),
        narrowed(x.basis, words("source", "dataflow")), x.pairs, x.exclusive, x.rounds, x.unassigned, x.matrix,
        x.fused_multiply_adds, x.matrix_in_flight, x.order_changed, x.notes, *hidden(x.region_notes, x.schedule),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PipelineDocument:
    """How a loop is pipelined at its last stage, and why it is not."""

    facts: Pipeline
    drains_at: tuple[int, ...]
    """Lines of the waits of the last stage that drain it."""


define_shape(
    PipelineDocument, lambda x: (
        x.facts.num_stages, x.facts.kind, x.facts.buffers, x.facts.commits_per_iteration, x.facts.wait_depth,
        x.facts.iterations_in_flight, x.facts.distance, x.facts.prologue, x.facts.epilogue_line, x.drains_at,
        x.facts.overlaps_matrix, x.facts.unpipelined_reason, x.facts.evidence, x.facts.notes, *hidden(x.facts),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RegionDocument:
    """A loop, a partition or the straight-line code of one stage."""

    facts: RegionFacts = field(metadata=INLINED)
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


define_shape(LoopRange, lambda x: (x.start, x.stop, x.step, x.trip_count))


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


define_shape(PartitionFacts, lambda x: (x.name, x.warps, x.registers, x.loops, *hidden(x.events)))
define_shape(
    LoadWidth, lambda x: (
        x.line, x.source, present(x.source).called_from, null_if_empty(x.name),
    ), title="Load",
)  # fmt: skip
define_shape(NarrowCause, lambda x: (x.reason, x.limit, null_if_empty(x.name)))
define_shape(
    CachePolicy, lambda x: (
        x.line, x.source, present(x.source).called_from, named("store", x.is_store), x.requested, x.applied, x.lost,
    ),
)  # fmt: skip
define_shape(
    Allocation, lambda x: (
        x.bytes, x.buffers, x.line, x.source, present(x.source).called_from, x.purpose, null_if_empty(x.name),
        named("scratch", x.is_scratch), x.live, *hidden(x.first, x.last, x.role, x.dot),
    ),
)  # fmt: skip
define_shape(
    SharedMemoryUsage, lambda x: (
        x.declared, x.peak, x.is_accounted, x.unexplained_bytes, null_if_empty(x.note), *hidden(x.entries),
    ), title="Accounted",
)  # fmt: skip
define_shape(
    CompilerRemark, lambda x: (
        narrowed(x.tool, words("triton", "ptxas")), narrowed(x.kind, words("remark", "warning", "error", "advisory")),
    ), title="Remark",
)  # fmt: skip
define_shape(
    Artifact, lambda x: (
        named("name", x.display_name), named("symbol", x.name), x.hash, x.directory,
        narrowed(x.state, words("complete", "binary-only", "partial")), x.target, x.triton_version, x.num_warps,
        x.num_stages, x.shared_bytes,
        *hidden(x.stem, x.files, x.metadata, x.constants, x.is_assembled, x.other_kernels),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelDocument:
    """The facts of one kernel."""

    artifact: Artifact = field(metadata=INLINED)
    resources: ResourcesDocument
    shared_allocations: tuple[Allocation, ...]
    shared_usage: SharedMemoryUsage | None
    """Null without TTGIR."""
    partitions: tuple[PartitionFacts, ...]
    partition_barriers: tuple[BarrierFacts, ...]
    """By which partitions wait for each other."""
    loads: tuple[LoadWidth, ...]
    cache_policies: tuple[CachePolicy, ...]
    findings: tuple[Finding, ...]
    remarks: tuple[CompilerRemark, ...] | None
    """Messages of the compilers; null if they were not recorded."""
    stages: Mapping[Stage, StageDocument]
    """Text stages that could be read, in compilation order."""
    main_region: str | None
    """The id of the main loop, or of the straight-line code if there is no loop."""
    verdict: Verdict | None
    """Of the main loop, in the last stage that has it."""
    phrase: str | None
    """The verdict as it is printed."""
    changed_at: Stage | None
    """The stage where the order of the main loop first changed."""
    changes: Mapping[str, Stage]
    """Region → the first stage where its order differs from the stage before."""
    facts: Annotated[Mapping[str, Value], FactsByKey]
    """Every fact by key, as comparisons show them; those of a region follow its name (`loop1.waits`)."""
    timings: tuple[EntryTiming, ...]
    """Times measured by Triton's autotuner, by key."""
    problems: tuple[Problem, ...]


@dataclass(frozen=True, kw_only=True)
class CacheDocument(Document):
    """All facts of the selected kernels of a cache: `inspect-kernel CACHE [NAME] --json`."""

    kernels: tuple[KernelDocument, ...]
    other_files: tuple[OtherFile, ...]
    """Files that are not part of a kernel. They are listed, but not read."""
    problems: tuple[Problem, ...]
    """Those of the cache and of all kernels, each once."""


def cache_document(
    cache: Cache | None, kernels: Sequence[KernelFacts], others: Sequence[Target] = (), further: Iterable[Problem] = ()
) -> CacheDocument:
    """Kernels with every problem of the cache, of theirs, and `further` ones; and their occupancy on other targets."""
    of_cache = () if cache is None else cache.problems
    return CacheDocument(
        kernels=tuple(kernel_document(kernel, others) for kernel in kernels),
        other_files=() if cache is None else cache.others,
        problems=each_once([*of_cache, *further, *(p for k in kernels for p in k.problems)]),
    )


def kernel_document(
    kernel: KernelFacts,
    others: Sequence[Target] = (),
    elsewhere: Sequence[RetargetedKernel] = (),
    timings: Sequence[EntryTiming] = (),
) -> KernelDocument:
    """What is known of one kernel.

    Args:
        others: further targets to give the occupancy for.
        elsewhere: the kernel compiled for these.
        timings: what Triton's autotuner timed of it.
    """
    principal, target = kernel.principal_region, kernel.artifact.target
    return KernelDocument(
        artifact=kernel.artifact,
        resources=ResourcesDocument(
            resources=kernel.resources,
            sources=FigureSources(kernel.resources),
            shared_limits=None if target is None else target.limits,
            occupancy=kernel.occupancy,
            occupancy_on={str(other): kernel.occupancy_on(other) for other in others},
            occupancy_compiled_on={str(x.target): x.occupancy for x in elsewhere if x.occupancy is not None},
            contradictions=kernel.contradictions,
        ),
        shared_allocations=() if kernel.bill is None else kernel.bill.entries,
        shared_usage=kernel.bill,
        partitions=kernel.partitions,
        partition_barriers=() if kernel.partition_schedule is None else kernel.partition_schedule.barriers,
        loads=kernel.widths,
        cache_policies=kernel.policies,
        findings=find_findings(kernel),
        remarks=kernel.remarks,
        stages={
            stage.stage: StageDocument(
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
            for stage in kernel.stages.values()
        },
        main_region=kernel.principal,
        verdict=kernel.verdict,
        phrase=None if principal is None else principal.phrase,
        changed_at=kernel.changed_at,
        changes=kernel.changed,
        facts={row.key: row.value for row in summarise(kernel).rows},
        timings=tuple(timings),
        problems=each_once(kernel.problems),
    )


@dataclass(frozen=True, slots=True)
class KernelFindings:
    """One kernel with its findings."""

    artifact: Artifact
    findings: tuple[Finding, ...]


define_shape(KernelFindings, lambda x: (*identity(x.artifact), *hidden(x.artifact)))


@dataclass(frozen=True, kw_only=True)
class FindingsDocument(Document):
    """Likely problems of each kernel: `inspect-kernel findings --json`."""

    kernels: tuple[KernelFindings, ...]
    problems: tuple[Problem, ...]
    """What could not be read; nothing was found there."""


def findings_document(kernels: Sequence[KernelFacts], problems: Iterable[Problem] = ()) -> FindingsDocument:
    """Kernels with their findings, and the problems of the cache and of the kernels."""
    return FindingsDocument(
        kernels=tuple(KernelFindings(kernel.artifact, find_findings(kernel)) for kernel in kernels),
        problems=each_once([*problems, *(findings for kernel in kernels for findings in kernel.problems)]),
    )


@dataclass(frozen=True, kw_only=True)
class WatchedDocument(Document):
    """A kernel that came into a cache: one line of `inspect-kernel watch --json`."""

    cache: Path
    """The directory that is watched."""
    kernel: KernelDocument


class KernelPart(NamedTuple):
    """One kernel of a document of a cache."""

    has_facts: bool
    """Whether anything about it could be read."""
    problems: Sequence[Problem]
    text: str
    """As its part of the document."""


def kernel_text(document: KernelDocument, encoding: str | None) -> str:
    """A kernel as its part of the document of a cache, for a stream of that encoding."""
    return as_text(document, encoding).rstrip("\n").replace("\n", "\n    ")


def write_cache(
    cache: Cache, kernels: Iterable[KernelPart], encoding: str | None, write: Callable[[str], None]
) -> list[bool]:
    """Write what `cache_document` says as text, each kernel as soon as it is there, so that none is kept.

    Returns:
        For each kernel whether anything about it could be read.
    """

    def around(problems: Iterable[Problem]) -> tuple[str, str]:
        head, key, tail = as_text(cache_document(cache, (), further=problems), encoding).partition('"kernels": [')
        return head + key, tail

    problems: list[Problem] = []
    kernels_have_facts: list[bool] = []
    start = around(())[0]
    for kernel in kernels:
        write(f"{start}\n    {kernel.text}")
        problems += kernel.problems
        kernels_have_facts.append(kernel.has_facts)
        start = ","
    head, tail = around(problems)
    write(f"\n  {tail}" if kernels_have_facts else head + tail)
    return kernels_have_facts
