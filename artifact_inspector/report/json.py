"""Reports as JSON, schema version 1: names and meanings stay, fields may be added.

Lines are 1-based lines of the stage's file, paths are relative to the cache directory, shares are
rounded to four places, and what is not known is null.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from artifact_inspector.findings import find_findings
from artifact_inspector.model import Stage
from artifact_inspector.report.findings import finding_document

if TYPE_CHECKING:
    from artifact_inspector.analysis.accesses import Accesses
    from artifact_inspector.analysis.cache_policies import Policy
    from artifact_inspector.analysis.conversions import Conversion
    from artifact_inspector.analysis.inflight import InFlight
    from artifact_inspector.analysis.load_widths import LoadWidth
    from artifact_inspector.analysis.matrix import MatrixWork
    from artifact_inspector.analysis.occupancy import Occupancy
    from artifact_inspector.analysis.order import RegionFacts, RoundFacts
    from artifact_inspector.analysis.partitions import PartitionFacts
    from artifact_inspector.analysis.pipeline import Pipeline
    from artifact_inspector.analysis.shared_memory import Allocation, Bill
    from artifact_inspector.cache import Cache, Problem
    from artifact_inspector.facts import KernelFacts, StageFacts
    from artifact_inspector.report.listing import ListedLine
    from artifact_inspector.targets import Target

__all__ = ["SCHEMA_VERSION", "as_text", "cache_document", "listing_document"]

SCHEMA_VERSION = 1

Document = dict[str, Any]


def as_text(document: Document, encoding: str | None) -> str:
    """The document as strict JSON, in ASCII where the stream's encoding is not UTF-8."""
    utf8 = (encoding or "").lower().replace("-", "").replace("_", "") in ("utf8", "utf8sig")
    text = json.dumps(document, indent=2, ensure_ascii=not utf8, allow_nan=False) + "\n"
    # a lone surrogate has no UTF-8; JSON can still escape it
    return text if not utf8 else "".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text)


def cache_document(
    cache: Cache | None,
    kernels: Sequence[KernelFacts],
    problems: Iterable[Problem] = (),
    others: Sequence[Target] = (),
) -> Document:
    """Kernels as they were chosen, with every problem of the cache and of theirs.

    Args:
        others: further targets to give the occupancy for.
    """
    found = [*problems, *(() if cache is None else cache.problems), *(p for k in kernels for p in k.problems)]
    return {
        "schema_version": SCHEMA_VERSION,
        "kernels": [_kernel(kernel, others) for kernel in kernels],
        "others": [] if cache is None else [{"path": x.path, "kind": x.kind} for x in cache.others],
        "problems": [{"path": x.path, "problem": x.problem} for x in dict.fromkeys(found)],
    }


def listing_document(
    kernel: KernelFacts, stage: StageFacts, region: str, lines: Sequence[ListedLine]
) -> Document:
    """The lines of one region with their events."""
    return {
        "schema_version": SCHEMA_VERSION,
        "name": kernel.artifact.display_name,
        "hash": kernel.artifact.hash,
        "stage": stage.stage.value,
        "file": stage.file,
        "region": region,
        "lines": [
            {"line": x.number, "events": x.events, "in_flight": x.in_flight, "text": x.text} for x in lines
        ],
    }


def _kernel(kernel: KernelFacts, others: Sequence[Target]) -> Document:
    artifact, target = kernel.artifact, kernel.artifact.target
    principal, changed = kernel.principal_region, kernel.changed_at
    return {
        "name": artifact.display_name,
        "symbol": artifact.name,
        "hash": artifact.hash,
        "directory": artifact.directory,
        "state": artifact.state,
        "target": None
        if target is None
        else {"backend": target.backend, "arch": target.arch, "warp_size": target.warp_size},
        "triton_version": artifact.triton_version,
        "num_warps": artifact.num_warps,
        "num_stages": artifact.num_stages,
        "shared_bytes": artifact.shared_bytes,
        "resources": _resources(kernel, others),
        "shared_bill": [] if kernel.bill is None else [_allocation(x) for x in kernel.bill.entries],
        "shared_accounted": None if kernel.bill is None else _accounted(kernel.bill),
        "partitions": [_partition(x) for x in kernel.partitions],
        "loads": [_load(x) for x in kernel.widths],
        "cache_policies": [_policy(x) for x in kernel.policies],
        "findings": [finding_document(x) for x in find_findings(kernel)],
        "stages": {stage.value: _stage(kernel, facts) for stage, facts in kernel.stages.items()},
        "principal": kernel.principal,
        "verdict": kernel.verdict,
        "phrase": None if principal is None else principal.phrase,
        "changed_at": None if changed is None else changed.value,
        "changes": {region: stage.value for region, stage in kernel.changed.items()},
        "problems": [{"path": x.path, "problem": x.problem} for x in kernel.problems],
    }


def _stage(kernel: KernelFacts, stage: StageFacts) -> Document:
    return {
        "file": stage.file,
        "instructions": stage.instructions,
        "unknown": sum(stage.unknown.values()),
        "unknown_opcodes": stage.unknown,
        "counts": stage.counts,
        "load_widths": {str(width): count for width, count in stage.accesses.load_widths.items()},
        "accesses": _accesses(stage.accesses),
        "waits": [{"line": x.line, "op": x.op, "depth": x.depth, "region": x.region} for x in stage.waits],
        "regions": [_region(region) | _work(kernel, stage, region) for region in stage.regions],
    }


def _region(region: RegionFacts) -> Document:
    distance = region.distance
    return {
        "id": region.id,
        "kind": region.kind,
        "depth": region.depth,
        "parent": region.parent,
        "in_program": region.in_program,
        "lines": list(region.lines),
        "signature": region.signature,
        "readable": region.readable,
        "verdict": region.verdict,
        "phrase": region.phrase,
        "distance": list(distance) if isinstance(distance, tuple) else distance,
        "unrolled_by": region.unrolled_by,
        "groups": region.groups or None,
        "copies_stand": region.copies_stand,
        "basis": region.basis,
        "pairs": [{"f": round(x.f, 4), "g": round(x.g, 4)} for x in region.pairs],
        "rounds": [_round(x) for x in region.rounds],
        "other": list(region.other),
        "matrix": region.matrix,
        "fused": region.fused,
        "notes": list(region.notes),
    }


def _round(item: RoundFacts) -> Document:
    return {
        "loads": item.loads,
        "first_load": item.first_load,
        "last_load": item.last_load,
        "first_compute": item.first_compute,
        "last_compute": item.last_compute,
        "sources": list(item.sources),
        "names": list(item.names),
        "shared": list(item.shared),
        "distances": list(item.distances),
    }


def _work(kernel: KernelFacts, stage: StageFacts, facts: RegionFacts) -> Document:
    """What a region does; what is said of all stages together stands with the last."""
    region = facts.id
    work = stage.work.get(region)
    # What is left of a loop that is none here stands in another region, and is counted there.
    is_left_over = facts.kind == "straight" and not region.endswith("straight")
    is_last = stage is kernel.last
    identity = kernel.identities.get(region) if is_last else None
    generation = kernel.generations.get(region) if is_last else None
    pipeline = kernel.pipelines.get(region) if stage.stage is not Stage.TTIR else None
    return {
        "in_flight": None if work is None else _in_flight(work.in_flight),
        "pipeline": None if pipeline is None else _pipeline(pipeline),
        "matrix_ops": [] if work is None or is_left_over else [_matrix(found) for found in work.matrix],
        "matrix_identity": None
        if identity is None
        else {
            "expected_flop": identity.expected,
            "found_flop": identity.found,
            "holds": identity.holds,
            "reason": identity.reason.value,
            "words": identity.words,
        },
        "load_widths": {}
        if work is None
        else {str(width): count for width, count in work.accesses.load_widths.items()},
        "bounds": {} if work is None else {kind.value: count for kind, count in work.checks.items()},
        "conversions": [] if work is None else [_conversion(x) for x in work.conversions],
        "slots": []
        if work is None
        else [
            {"kind": x.kind, "memory": x.memory, "matrix": x.matrix, "lines": [x.first, x.last]}
            for x in work.slots
        ],
        "issue": None
        if work is None or work.issue is None
        else {
            "cycles": work.issue.cycles,
            "instructions": work.issue.instructions,
            "waits": [{"line": line, "scoreboards": list(boards)} for line, boards in work.issue.waits],
        },
        "matrix_generation": None
        if generation is None
        else {
            "used": list(generation.used),
            "newest": generation.newest,
            "words": generation.words,
            "reason": generation.reason or None,
        },
    }


def _in_flight(found: InFlight) -> Document:
    return {
        "max_loads": found.max_loads,
        "max_bytes_per_thread": found.max_bytes_per_thread,
        "compute_covered": None if found.compute_covered is None else round(found.compute_covered, 4),
        "distance": None if found.distance is None else list(found.distance),
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
        "drains_at": list(found.drains),
        "levels": [list(level) for level in found.levels],
        "notes": list(found.notes),
    }


def _pipeline(found: Pipeline) -> Document:
    distance = found.distance
    return {
        "num_stages": found.num_stages,
        "kind": found.kind,
        "buffers": found.buffers,
        "commits_per_iteration": found.commits_per_iteration,
        "wait_depth": found.wait_depth,
        "iterations_in_flight": found.iterations_in_flight,
        "distance": list(distance) if isinstance(distance, tuple) else distance,
        "prologue": found.prologue,
        "epilogue_line": found.epilogue_line,
        "drains_at": list(found.drains_at),
        "overlaps_matrix": found.overlaps_matrix,
        "why_not": found.why_not,
        "evidence": [{"stage": x.stage.value, "line": x.line} for x in found.evidence],
        "notes": list(found.notes),
    }


def _matrix(work: MatrixWork) -> Document:
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
        "lines": list(work.lines),
        "sources": list(work.sources),
    }


def _resources(kernel: KernelFacts, others: Sequence[Target]) -> Document:
    taken = kernel.resources
    figures = {
        "registers": taken.registers,
        "vector_registers": taken.vector_registers,
        "accumulation_registers": taken.accumulation_registers,
        "scalar_registers": taken.scalar_registers,
        "spill_bytes": taken.spill_bytes,
        "reload_bytes": taken.reload_bytes,
        "scalar_spills": taken.scalar_spills,
        "scratch_bytes": taken.scratch_bytes,
        "static_shared_bytes": taken.static_shared,
        "shared_bytes": taken.shared,
        "warps_per_block": taken.warps_per_block,
        "barriers": taken.barriers,
    }
    target = kernel.artifact.target
    limits = None if target is None else target.limits
    return {
        **{name: figure.value for name, figure in figures.items()},
        "sources": {name: figure.source for name, figure in figures.items()},
        "shared_limits": None
        if limits is None
        else {
            "static": limits.shared_per_block_static,
            "opt_in": limits.shared_per_block,
        },
        "occupancy": None if kernel.occupancy is None else _occupancy(kernel.occupancy),
        "occupancy_on": {str(other): _occupancy(kernel.occupancy_on(other)) for other in others},
        "contradictions": [{"sentence": x.sentence, "places": list(x.places)} for x in kernel.contradictions],
    }


def _occupancy(held: Occupancy) -> Document:
    return {
        "blocks_per_sm": held.blocks,
        "warps_per_sm": held.warps,
        "limited_by": list(held.limited_by),
        "warps_at_most": held.warps_at_most,
        "unit": held.unit,
        "blocks_by_resource": dict(held.allowed),
        "missing": list(held.missing),
    }


def _allocation(entry: Allocation) -> Document:
    return {
        "bytes": entry.bytes,
        "buffers": entry.buffers,
        "line": entry.line,
        "source": entry.source,
        "purpose": entry.purpose,
        "name": entry.name or None,
        "scratch": entry.is_scratch,
        "live": [entry.first, entry.last],
        "offset": entry.offset,
    }


def _accounted(bill: Bill) -> Document:
    return {
        "declared": bill.declared,
        "peak": bill.peak,
        "accounted": bill.accounted,
        "unexplained": bill.unexplained,
        "note": bill.note or None,
    }


def _accesses(found: Accesses) -> Document:
    def histogram(widths: Mapping[int | None, int]) -> Document:
        return {"unknown" if width is None else str(width): count for width, count in widths.items()}

    return {
        "loads": histogram(found.loads),
        "copies": histogram(found.copies),
        "stores": histogram(found.stores),
        "tiles": histogram(found.tiles),
        "tile_stores": histogram(found.tile_stores),
        "predicated": found.predicated,
        "folded": found.folded,
        "cache": dict(found.cache),
    }


def _load(load: LoadWidth) -> Document:
    return {
        "line": load.line,
        "source": load.source,
        "name": load.name or None,
        "masked": load.masked,
        "width": load.width,
        "widths": {str(width): count for width, count in load.widths.items()},
        "causes": [
            {"reason": x.reason.value, "limit": x.limit, "name": x.name or None, "line": x.line}
            for x in load.causes
        ],
    }


def _policy(policy: Policy) -> Document:
    return {
        "line": policy.line,
        "source": policy.source,
        "store": policy.is_store,
        "asked": list(policy.asked),
        "found": list(policy.words),
        "lost": list(policy.lost),
        "lines": list(policy.lines),
    }


def _conversion(conversion: Conversion) -> Document:
    return {
        "line": conversion.line,
        "source": conversion.source,
        "bytes": conversion.bytes,
        "change": conversion.change,
        "crosses_warps": conversion.crosses_warps,
        "through_shared": conversion.through_shared,
    }


def _partition(found: PartitionFacts) -> Document:
    return {
        "name": found.name,
        "warps": found.warps,
        "registers": found.registers,
        "registers_requested": found.registers_requested,
        "loads": found.loads,
        "matrix": found.matrix,
        "barriers": found.barriers,
    }
