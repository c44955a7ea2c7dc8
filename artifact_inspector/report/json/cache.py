"""Kernels and their cache as JSON: `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypedDict

from artifact_inspector.findings import find_findings
from artifact_inspector.report.json._types import (
    SCHEMA_VERSION,
    ProblemJson,
    SchemaVersion,
    StageName,
    Words,
    problem_list,
)
from artifact_inspector.report.json.findings import FindingJson, finding_document
from artifact_inspector.report.json.memory import (
    AccountedJson,
    AllocationJson,
    LoadJson,
    PolicyJson,
    accounted,
    allocation,
    load,
    policy,
)
from artifact_inspector.report.json.resources import ResourcesJson, resources
from artifact_inspector.report.json.stages import StageJson, Verdict, stage_object
from artifact_inspector.report.json.targets import TargetJson, target

if TYPE_CHECKING:
    from artifact_inspector.analysis.overlap.partitions import PartitionFacts
    from artifact_inspector.facts.kernel import KernelFacts
    from artifact_inspector.files.cache import Cache, Problem
    from artifact_inspector.files.compiler_remarks import CompilerRemark
    from artifact_inspector.hardware.targets import Target

__all__ = ["CacheJson", "KernelJson", "cache_document"]


class PartitionJson(TypedDict):
    """What one partition of a warp-specialised kernel holds; counts are static."""

    name: str
    """`default`, `partition0` …"""
    warps: int | None
    registers: int | None
    """Per thread, as the PTX sets it."""
    registers_requested: int | None
    """Per thread; null for the default partition, which gets what is left."""
    loads: int
    """Loads and asynchronous copies."""
    matrix: int
    """Matrix operations."""
    barriers: int


class RemarkJson(TypedDict):
    """What a compiler said while it compiled."""

    tool: Annotated[str, Words(("triton", "ptxas"))]
    kind: Annotated[str, Words(("remark", "warning", "error", "advisory"))]
    message: str
    code: str | None
    """ptxas's own, as `C7511`."""
    source: str | None
    """Line of the user's code."""
    called_from: list[str]
    """Where the function that holds it was called, innermost first."""
    notes: list[str]
    ptx_line: int | None
    count: int
    """How often it was said alike."""


class KernelJson(TypedDict):
    """What is known of one kernel."""

    name: str
    symbol: str
    """The kernel's symbol; Triton 2 appended the specialisation to the name."""
    hash: str
    directory: str
    """Of its entry, from the cache directory."""
    state: Annotated[str, Words(("complete", "binary-only", "partial"))]
    """`partial`: no readable metadata."""
    target: TargetJson | None
    triton_version: str | None
    """As written (3.3 and later), else told from the metadata: `2.1`, `3.0/3.1`, `3.2`."""
    num_warps: int | None
    num_stages: int | None
    shared_bytes: int | None
    """Per block, by the metadata."""
    resources: ResourcesJson
    shared_bill: list[AllocationJson]
    shared_accounted: AccountedJson | None
    """Null without TTGIR."""
    partitions: list[PartitionJson]
    loads: list[LoadJson]
    cache_policies: list[PolicyJson]
    findings: list[FindingJson]
    remarks: list[RemarkJson] | None
    """What the compilers said; null where nobody kept it."""
    stages: dict[StageName, StageJson]
    """Text stages that could be read, in compilation order."""
    principal: str | None
    """The id of the region that the kernel is known by."""
    verdict: Verdict | None
    """The principal region's, in the last stage that has it."""
    phrase: str | None
    """The verdict as it is printed."""
    changed_at: StageName | None
    """The stage where the principal region's order first changed."""
    changes: dict[str, StageName]
    """Region → the first stage where its order differs from the stage before."""
    problems: list[ProblemJson]


class OtherJson(TypedDict):
    """Something in the cache that is no kernel."""

    path: str
    kind: str


class CacheJson(TypedDict):
    """Everything that is known of the chosen kernels of a cache: `inspect-kernel CACHE [NAME] --json`."""

    schema_version: SchemaVersion
    document: Literal["cache"]
    kernels: list[KernelJson]
    others: list[OtherJson]
    """Named, never looked into."""
    problems: list[ProblemJson]
    """Those of the cache and of all kernels, each once."""


def cache_document(
    cache: Cache | None,
    kernels: Sequence[KernelFacts],
    problems: Iterable[Problem] = (),
    others: Sequence[Target] = (),
) -> CacheJson:
    """Kernels as they were chosen, with every problem of the cache and of theirs.

    Args:
        others: further targets to give the occupancy for.
    """
    found = [*problems, *(() if cache is None else cache.problems), *(p for k in kernels for p in k.problems)]
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "cache",
        "kernels": [_kernel(kernel, others) for kernel in kernels],
        "others": [] if cache is None else [{"path": x.path, "kind": x.kind} for x in cache.others],
        "problems": problem_list(found),
    }


def _kernel(kernel: KernelFacts, others: Sequence[Target]) -> KernelJson:
    artifact, principal, changed = kernel.artifact, kernel.principal_region, kernel.changed_at
    return {
        "name": artifact.display_name,
        "symbol": artifact.name,
        "hash": artifact.hash,
        "directory": artifact.directory,
        "state": artifact.state,
        "target": None if artifact.target is None else target(artifact.target),
        "triton_version": artifact.triton_version,
        "num_warps": artifact.num_warps,
        "num_stages": artifact.num_stages,
        "shared_bytes": artifact.shared_bytes,
        "resources": resources(kernel, others),
        "shared_bill": [] if kernel.bill is None else [allocation(x) for x in kernel.bill.entries],
        "shared_accounted": None if kernel.bill is None else accounted(kernel.bill),
        "partitions": [_partition(x) for x in kernel.partitions],
        "loads": [load(x) for x in kernel.widths],
        "cache_policies": [policy(x) for x in kernel.policies],
        "findings": [finding_document(x) for x in find_findings(kernel)],
        "remarks": None if kernel.remarks is None else [_remark(x) for x in kernel.remarks],
        "stages": {stage.value: stage_object(kernel, facts) for stage, facts in kernel.stages.items()},
        "principal": kernel.principal,
        "verdict": kernel.verdict,
        "phrase": None if principal is None else principal.phrase,
        "changed_at": None if changed is None else changed.value,
        "changes": {region: stage.value for region, stage in kernel.changed.items()},
        "problems": problem_list(kernel.problems),
    }


def _remark(said: CompilerRemark) -> RemarkJson:
    return {
        "tool": said.tool,
        "kind": said.kind,
        "message": said.message,
        "code": said.code,
        "source": said.source,
        "called_from": list(said.called_from),
        "notes": list(said.notes),
        "ptx_line": said.ptx_line,
        "count": said.count,
    }


def _partition(found: PartitionFacts) -> PartitionJson:
    return {
        "name": found.name,
        "warps": found.warps,
        "registers": found.registers,
        "registers_requested": found.registers_requested,
        "loads": found.loads,
        "matrix": found.matrix,
        "barriers": found.barriers,
    }
