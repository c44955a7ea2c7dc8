"""A loop loads data in the same iteration that computes on it.

None of its loads, or only some of them, are prefetched, although `num_stages` requests it. Or a program that orders
its copies itself (Gluon, TLX) computes on each copy in the iteration that issues it.

**When it is reported.** A loop of the program has loads that run no iteration ahead, and the IR shows the reason. Not
reported are loops without a known reason, loops without a dot at `num_stages` 1 or at the default, and loops for AMD
GPUs with several dots at `num_stages` 1, as attention often has there. Remainders of unrolled loops, warp-specialised
loops, loops around these, loops without a dot around pipelined ones, as of persistent kernels, and loops flattened into
an inner loop are not reported either. Loops with the same reason share one finding.

**What it is likely to cost.** Every iteration waits for the latency of memory. Only other warps can hide it.

**What to do.** Remove the reason that the message names. Widen loads below 4 bytes (AI006). Load an index one
iteration before the load that uses it. Then a `num_stages` of 3 or more prefetches; `findings --try` shows whether it
does.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, find_dots
from artifact_inspector.model import Backend, OrderVerdict, RegionKind
from artifact_inspector.model.region import RegionId

UNPIPELINED = frozenset({verdict for verdict in OrderVerdict if verdict.is_order_verdict}) | {
    OrderVerdict.SERIAL,
    OrderVerdict.PARTLY_PIPELINED,
}

_AHEAD = frozenset({OrderVerdict.PIPELINED, OrderVerdict.WARP_SPECIALISED, OrderVerdict.OVERLAPPED})
"""A loop that is so at any stage is not reported: no copy moves back."""

BY_DEFAULT = {Backend.CUDA: 3, Backend.HIP: 2}
"""Triton, third_party/nvidia and third_party/amd, backend/compiler.py: `num_stages` of the options."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    ahead = {r.id for stage in kernel.stages.values() for r in stage.regions if r.verdict in _AHEAD}
    of_program = (r for r in (last.regions if last else ()) if r.kind is RegionKind.LOOP and r.is_in_program)
    late = {r.id for r in of_program if r.verdict in UNPIPELINED} - ahead
    if last is None or not late:
        return
    yield from _serial_by_hand(last, ahead)
    outer_loops, target = _around(kernel, ahead), kernel.artifact.target
    default_stages = None if target is None else BY_DEFAULT[target.backend]
    groups: dict[tuple[bool, str, bool, int], list[tuple[RegionFacts, Pipeline]]] = {}
    for name, pipeline in kernel.pipelines.items():
        region = last.region(name)
        if region is None or name not in late:
            continue
        requested, dots = pipeline.num_stages or 0, find_dots(kernel, name)[1]
        is_usual = requested == 1 and default_stages != BY_DEFAULT[Backend.CUDA] and len(dots) != 1
        if requested < 1 or is_usual or (not dots and requested in (1, default_stages)):
            continue
        if pipeline.unpipelined_reason is None or RegionId.parse(name).loop_id in outer_loops:
            continue
        key = (region.verdict is OrderVerdict.PARTLY_PIPELINED, pipeline.unpipelined_reason, bool(dots), requested)
        groups.setdefault(key, []).append((region, pipeline))
    for (partly, reason, has_dots, requested), similar in groups.items():
        problem = "not all of its loads are pipelined" if partly else "not pipelined"
        problem += f" (num_stages {requested})" if requested > 1 else ""
        evidence = [evidence_line for _, pipeline in similar for evidence_line in pipeline.evidence]
        stages = {evidence_line.stage for evidence_line in evidence}
        stage = stages.pop() if len(stages) == 1 else last.stage
        lines = [evidence_line.line for evidence_line in evidence if evidence_line.stage is stage]
        sources = dict.fromkeys(
            s for region, _ in similar for evidence_line in region.rounds for s in evidence_line.sources
        )
        yield Remark(
            f"{', '.join(region.id for region, _ in similar)}: {problem}: {reason}",
            stage,
            tuple(dict.fromkeys(lines)) or tuple(region.lines[0] for region, _ in similar),
            tuple(sources),
            is_minor=not has_dots or requested == 1,  # as requested
        )


def _serial_by_hand(last: StageFacts, ahead: set[str]) -> Iterator[Remark]:
    """Loops whose own schedule overlaps nothing: followed copy by copy."""
    for region in last.regions:
        is_followed = region.schedule is not None and bool(region.schedule.distances)
        if region.verdict is OrderVerdict.SERIAL and is_followed and region.id not in ahead:
            yield Remark(
                f"{region.id}: every copy is waited for in the iteration that issues it, and nothing overlaps with the "
                "wait. Allocate another buffer and barrier, and issue the next copies before the wait",
                last.stage,
                region.lines[:1],
                tuple(dict.fromkeys(source for located_round in region.rounds for source in located_round.sources)),
            )


def _around(kernel: KernelFacts, ahead: set[str]) -> set[str | None]:
    """The loops of the program around those that run ahead, as of persistent kernels: without a dot of their own."""
    first, last = next(iter(kernel.stages.values()), None), kernel.last
    if last is None or first is None:
        return set()
    specialised = {region.id for region in last.regions if region.verdict is OrderVerdict.WARP_SPECIALISED}
    multiplying = {name for name, work in first.work.items() if work.matrix}  # later, they have copies of inner dots
    around = {region.parent for region in first.regions if region.id in ahead} - multiplying
    return around | {region.parent for region in first.regions if region.id in specialised}


RULE = Rule("AI003", "not-pipelined", Severity.WARNING, Consequence.IN_FLIGHT, _look, __doc__)
