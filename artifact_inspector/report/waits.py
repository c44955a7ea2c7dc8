"""What a region's waits and copies mean, in words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.analysis.order import RegionFacts
from artifact_inspector.inspection import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.model import Stage
from artifact_inspector.report.words import letter_counts, plural, span

__all__ = ["commits_per_iteration", "describe_copies", "describe_waits", "load_depths"]

_GROUPS, _LOADS, _COPIES, _MATRIX, _STORES, _PHASE = range(6)
_WAITS_FOR = (
    (re.compile(r"cp\.async\.wait_|(?:ttg|triton_gpu)\.async_wait|wait\.asyncmark"), _GROUPS),
    (re.compile(r"s_waitcnt|s_wait_loadcnt|amdg\.s_waitcnt|amdg\.memory_counter|rocdl\.s\.waitcnt"), _LOADS),
    (re.compile(r"s_wait_asynccnt|s_wait_tensorcnt|amdg\.async_"), _COPIES),
    (re.compile(r"wgmma|tcgen05|.*dot_wait"), _MATRIX),
    (re.compile(r"cp\.async\.bulk|.*(?:bulk|store)_(?:token_)?wait"), _STORES),
)
_OF_LOADS = (_GROUPS, _LOADS, _COPIES)


def load_depths(kernel: KernelFacts) -> str:
    """Depths of the principal region's waits for loads and copies; `phase` where a barrier tells."""
    last = kernel.last
    if last is None:
        return "–"
    waits = [w for w in last.waits if w.region == kernel.principal]
    depths = sorted({w.depth for w in waits if w.depth is not None and _purpose(w.op) in _OF_LOADS})
    if depths:
        return span(depths[0], depths[-1])
    return "phase" if any(_purpose(w.op) == _PHASE for w in waits) else "–"


def commits_per_iteration(kernel: KernelFacts, region: RegionFacts) -> int | None:
    """Groups of copies committed in one source iteration of a loop; None where it cannot be told.

    Matrix operations and barriers have commits of their own, but only a group of copies is
    committed right behind its copies. A stage that mixes them asks the tensor-level one.
    """
    above = kernel.stages[Stage.TTGIR].region(region.id) if Stage.TTGIR in kernel.stages else None
    for one in (region, above):
        groups = 0 if one is None else _groups(one.signature)
        if one is not None and groups and groups % one.unrolled_by == 0:
            return groups // one.unrolled_by
    return None


def _groups(signature: str) -> int:
    """Commits behind copies; 0 when there are others too."""
    groups = 0
    before = ""
    for run in signature.split():
        if run[0] == "K":
            if before != "A":
                return 0
            groups += int(run[1:])
        before = run[0]
    return groups


def describe_copies(kernel: KernelFacts, region: RegionFacts) -> str | None:
    """How much one iteration of a loop copies and commits, and where the copies stand."""
    if region.kind != "loop":
        return None
    parts = []
    copies = letter_counts(region.signature)["A"] / region.unrolled_by
    if copies:
        parts.append(f"{copies:g} {plural('copy', copies)} per iteration")
        commits = commits_per_iteration(kernel, region)
        if commits is not None:
            parts.append(f"in {commits} committed {plural('group', commits)}")
    if region.copies_stand is not None:
        what = "standing" if parts else "the loads for later iterations stand"
        parts.append(f"{what} {region.copies_stand} the computes")
    return ", ".join(parts) or None


def describe_waits(kernel: KernelFacts, stage: StageFacts, *regions: RegionFacts) -> Iterator[str]:
    """A sentence for each kind and depth of wait in some regions that belong together."""
    names = [region.id for region in regions]
    waits = [wait for wait in stage.waits if wait.region in names]
    for op in dict.fromkeys(wait.op for wait in waits):
        same = [wait for wait in waits if wait.op == op]
        depths = sorted({wait.depth for wait in same if wait.depth is not None}, reverse=True)
        if len(depths) > 2:
            text = f"{_written(op, f'{depths[0]}…{depths[-1]}')} {_lines(same)}"
            all_ = "; 0 waits for all" if depths[-1] == 0 else ""
            yield f"{text}: each lets as many younger {_unit(op, 2)} stay in flight as it says{all_}"
            continue
        for depth in depths if depths else (None,):
            at = [wait for wait in same if wait.depth == depth]
            text = op if depth is None else _written(op, str(depth))
            yield f"{text} {_lines(at)}: {_explain(kernel, regions[0], op, depth)}"


def _explain(kernel: KernelFacts, region: RegionFacts, op: str, depth: int | None) -> str:
    purpose = _purpose(op)
    if depth is None:
        if purpose == _PHASE:
            return "waits until all that a barrier expects has come: copies that land, warps that arrive"
        of_loads = purpose in _OF_LOADS
        return "waits for what was issued before" if of_loads else f"waits for {_unit(op, 2)}, not for loads"
    if depth == 0:
        told = f"every {_unit(op, 1)} issued before must be complete"
        ahead = purpose in _OF_LOADS and region.distance is not None
        return told + (": it drains the pipeline in every iteration" if ahead else "")
    told = f"lets {depth} younger {_unit(op, depth)} stay in flight"
    commits = commits_per_iteration(kernel, region) if purpose == _GROUPS and region.kind == "loop" else None
    if commits is None:
        return told
    ahead_by = f"{depth / commits:.2g}"
    iterations = plural("iteration", depth / commits)
    return (
        f"{told}; at {commits} committed per iteration that is {depth} ÷ {commits} = {ahead_by} {iterations}"
    )


def _purpose(op: str) -> int:
    return next((purpose for pattern, purpose in _WAITS_FOR if pattern.match(op)), _PHASE)


_UNITS = {
    _GROUPS: "group",
    _LOADS: "vector-memory load",
    _COPIES: "copy",
    _MATRIX: "group of matrix operations",
    _STORES: "group of stores",
    _PHASE: "phase",
}


def _unit(op: str, count: int) -> str:
    return plural(_UNITS[_purpose(op)], count)


def _written(op: str, depth: str) -> str:
    return f"{op}({depth})" if op.endswith("cnt") and " " in op else f"{op} {depth}"


def _lines(waits: list[WaitFacts]) -> str:
    lines = [wait.line for wait in waits]
    if len(lines) == 1:
        return f"(line {lines[0]})"
    if len(lines) <= 3:
        return f"(lines {', '.join(map(str, lines))})"
    return f"(×{len(lines)}, lines {span(lines[0], lines[-1])})"
