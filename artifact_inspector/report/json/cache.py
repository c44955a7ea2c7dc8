"""Kernels and their cache as JSON: `--json`, and only their findings: `findings --json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from artifact_inspector.analysis.access.cache_policies import CachePolicy
from artifact_inspector.analysis.access.load_widths import LoadWidth, NarrowCause
from artifact_inspector.analysis.overlap.partitions import PartitionFacts
from artifact_inspector.analysis.shared.shared_memory_usage import Allocation, SharedMemoryUsage
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.autotuning import EntryTiming
from artifact_inspector.files.cache import Artifact, Cache, OtherFile, Problem
from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.findings import find_findings
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Stage
from artifact_inspector.report.json._document import Document, each_once
from artifact_inspector.report.json._encoding import TextExamples, define_shape
from artifact_inspector.report.json._facts import FactValues, fact_values
from artifact_inspector.report.json._finding import Finding
from artifact_inspector.report.json.resources import ResourcesDocument, resources_document
from artifact_inspector.report.json.stages import StageDocument, Verdict, stage_document
from artifact_inspector.vocabulary.finding_facts import findings_of

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel

define_shape(PartitionFacts, "name warps registers", without="events")
define_shape(
    LoadWidth, "line source called_from=source.called_from name masked width widths causes", empty="name", title="Load"
)
define_shape(NarrowCause, empty="name")
define_shape(CachePolicy, "line source called_from=source.called_from store=is_store requested applied lost")
define_shape(
    Allocation,
    "bytes buffers line source called_from=source.called_from purpose name scratch=is_scratch live",
    without="first last role dot",
    empty="name",
)
define_shape(
    SharedMemoryUsage,
    "declared peak is_accounted unexplained_bytes note",
    without="entries",
    empty="note",
    title="Accounted",
)
define_shape(
    CompilerRemark,
    types={
        "tool": Annotated[str, TextExamples(("triton", "ptxas"))],
        "kind": Annotated[str, TextExamples(("remark", "warning", "error", "advisory"))],
    },
    title="Remark",
)
define_shape(
    Artifact,
    "name=display_name symbol=name hash directory state target triton_version num_warps num_stages shared_bytes",
    without="stem files metadata constants is_assembled",
    types={"state": Annotated[str, TextExamples(("complete", "binary-only", "partial"))]},
)


@dataclass(frozen=True, slots=True)
class KernelDocument:
    """The facts of one kernel."""

    artifact: Artifact
    resources: ResourcesDocument
    shared_allocations: tuple[Allocation, ...]
    shared_usage: SharedMemoryUsage | None
    """Null without TTGIR."""
    partitions: tuple[PartitionFacts, ...]
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
    facts: FactValues
    """Every fact by key, as comparisons show them; those of a region follow its name (`loop1.waits`)."""
    timings: tuple[EntryTiming, ...]
    """Times measured by Triton's autotuner, by key."""
    problems: tuple[Problem, ...]


define_shape(KernelDocument, inline="artifact")


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheDocument(Document):
    """All facts of the selected kernels of a cache: `inspect-kernel CACHE [NAME] --json`."""

    document: Literal["cache"] = "cache"
    kernels: tuple[KernelDocument, ...]
    other_files: tuple[OtherFile, ...]
    """Files that are not part of a kernel. They are listed, but not read."""
    problems: tuple[Problem, ...]
    """Those of the cache and of all kernels, each once."""


def cache_document(
    cache: Cache | None,
    kernels: Sequence[KernelFacts],
    problems: Iterable[Problem] = (),
    others: Sequence[Target] = (),
    of_kernels: Iterable[Problem] = (),
) -> CacheDocument:
    """Kernels as they were chosen, with every problem of the cache and of theirs.

    Args:
        others: further targets to give the occupancy for.
        of_kernels: problems of kernels that are written apart.
    """
    of_cache = () if cache is None else cache.problems
    return CacheDocument(
        kernels=tuple(kernel_document(kernel, others) for kernel in kernels),
        other_files=() if cache is None else cache.others,
        problems=each_once([*problems, *of_cache, *of_kernels, *(p for k in kernels for p in k.problems)]),
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
    principal = kernel.principal_region
    return KernelDocument(
        artifact=kernel.artifact,
        resources=resources_document(kernel, others, elsewhere),
        shared_allocations=() if kernel.bill is None else kernel.bill.entries,
        shared_usage=kernel.bill,
        partitions=kernel.partitions,
        loads=kernel.widths,
        cache_policies=kernel.policies,
        findings=findings_of(kernel),
        remarks=kernel.remarks,
        stages={stage: stage_document(kernel, facts) for stage, facts in kernel.stages.items()},
        main_region=kernel.principal,
        verdict=kernel.verdict,
        phrase=None if principal is None else principal.phrase,
        changed_at=kernel.changed_at,
        changes=kernel.changed,
        facts=fact_values(kernel),
        timings=tuple(timings),
        problems=each_once(kernel.problems),
    )


@dataclass(frozen=True, slots=True)
class KernelFindings:
    """One kernel with its findings."""

    artifact: Artifact
    findings: tuple[Finding, ...]


define_shape(
    KernelFindings,
    "name=artifact.display_name hash=artifact.hash directory=artifact.directory target=artifact.target.arch",
    without="artifact",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingsDocument(Document):
    """Likely problems of each kernel: `inspect-kernel findings --json`."""

    document: Literal["findings"] = "findings"
    kernels: tuple[KernelFindings, ...]
    problems: tuple[Problem, ...]
    """What could not be read; nothing was found there."""


def findings_document(kernels: Sequence[KernelFacts], problems: Iterable[Problem] = ()) -> FindingsDocument:
    """Kernels with their findings and nothing else.

    Args:
        problems: those of the cache; the kernels' own are added.
    """
    return FindingsDocument(
        kernels=tuple(KernelFindings(kernel.artifact, find_findings(kernel)) for kernel in kernels),
        problems=each_once([*problems, *(findings for kernel in kernels for findings in kernel.problems)]),
    )
