"""What reports say in words: waits, changes, counts. Text only, no layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from artifact_inspector.analysis.order import RegionFacts
from artifact_inspector.inspection import KernelFacts, StageFacts, WaitFacts
from artifact_inspector.model import EventKind, Stage

__all__ = [
    "commits_per_iteration",
    "cut_signature",
    "describe_changes",
    "describe_copies",
    "describe_counts",
    "describe_target",
    "describe_unknown",
    "describe_waits",
    "legend",
    "letter_counts",
    "load_depths",
    "mma_count",
    "span",
]

_GROUPS, _LOADS, _COPIES, _MATRIX, _STORES, _PHASE = range(6)
_WAITS_FOR = (
    (re.compile(r"cp\.async\.wait_|(?:ttg|triton_gpu)\.async_wait|wait\.asyncmark"), _GROUPS),
    (re.compile(r"s_waitcnt|s_wait_loadcnt|amdg\.s_waitcnt|amdg\.memory_counter|rocdl\.s\.waitcnt"), _LOADS),
    (re.compile(r"s_wait_asynccnt|s_wait_tensorcnt|amdg\.async_"), _COPIES),
    (re.compile(r"wgmma|tcgen05|.*dot_wait"), _MATRIX),
    (re.compile(r"cp\.async\.bulk|.*(?:bulk|store)_(?:token_)?wait"), _STORES),
)
_OF_LOADS = (_GROUPS, _LOADS, _COPIES)


def span(first: int | None, last: int | None) -> str:
    """A range of lines; a dash where there is none."""
    if first is None or last is None:
        return "–"
    return str(first) if first == last else f"{first}–{last}"


def letter_counts(signature: str) -> Counter[str]:
    """Events of each letter in a signature.

    Example:
        >>> letter_counts("W1 A4 K1 A1 K1")["A"]
        5
    """
    counts: Counter[str] = Counter()
    for run in signature.split():
        counts[run[0]] += int(run[1:])
    return counts


def cut_signature(signature: str, width: int) -> str:
    """A signature of at most `width` columns: runs in the middle give way to their number.

    Example:
        >>> cut_signature("L1 F1 L2 F2 L3 F3 L4 F4", 20)
        'L1 F1 … 5 runs … F4'
    """
    if len(signature) <= width:
        return signature
    runs = signature.split()
    head, tail = 0, len(runs)
    while True:
        # one more run, alternately from the front and from the end, as long as all fits
        longer = (head + 1, tail) if head <= len(runs) - tail else (head, tail - 1)
        if len(_cut(runs, *longer)) > width or longer[0] >= longer[1]:
            return _cut(runs, head, tail)
        head, tail = longer


def _cut(runs: list[str], head: int, tail: int) -> str:
    return " ".join([*runs[:head], f"… {tail - head} runs …", *runs[tail:]])


def mma_count(kernel: KernelFacts) -> str:
    """Matrix instructions of the principal region, and of the whole file where those are more.

    A dot that was lowered to scalar arithmetic shows how many float instructions there are instead.
    """
    last, region = kernel.last, kernel.principal_region
    if last is None:
        return "–"
    total = last.counts[EventKind.MATRIX.count_name]
    inside = 0 if region is None else region.matrix
    if not total and any(facts.counts[EventKind.MATRIX.count_name] for facts in kernel.stages.values()):
        return f"0, FMA {last.counts[EventKind.FLOAT.count_name]}"
    if last.region(kernel.principal or "") is None or inside == total:
        return str(total)
    return f"{inside} of {total}"


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


def commits_per_iteration(kernel: KernelFacts, region: RegionFacts) -> int:
    """Groups of copies committed in one source iteration of a loop.

    The tensor-level stage tells best: further down the matrix operations commit groups of their own.
    """
    if Stage.TTGIR in kernel.stages:
        above = kernel.stages[Stage.TTGIR].region(region.id)
        if above is not None:
            return letter_counts(above.signature)["K"] // above.unrolled_by
    return letter_counts(region.signature)["K"] // region.unrolled_by


def describe_copies(kernel: KernelFacts, region: RegionFacts) -> str | None:
    """How much one iteration of a loop copies and commits, and where the copies stand."""
    if region.kind != "loop":
        return None
    counts = letter_counts(region.signature)
    parts = []
    if counts["A"]:
        copies = counts["A"] / region.unrolled_by
        parts.append(f"{copies:g} {_plural('copy', copies)} per iteration")
        commits = commits_per_iteration(kernel, region)
        if commits:
            parts.append(f"in {commits} committed {_plural('group', commits)}")
    if region.copies_stand is not None:
        what = "standing" if parts else "the loads for later iterations stand"
        parts.append(f"{what} {region.copies_stand} the computes")
    return ", ".join(parts) or None


def describe_waits(kernel: KernelFacts, stage: StageFacts, region: RegionFacts) -> Iterator[str]:
    """A sentence for each kind and depth of wait in a region."""
    waits = [wait for wait in stage.waits if wait.region == region.id]
    for op in dict.fromkeys(wait.op for wait in waits):
        same = [wait for wait in waits if wait.op == op]
        depths = sorted({wait.depth for wait in same if wait.depth is not None}, reverse=True)
        if len(depths) > 2:
            text = f"{_written(op, f'{depths[0]}…{depths[-1]}')} {_lines(same)}"
            yield f"{text}: each lets that many younger {_unit(op, 2)} stay in flight; 0 waits for all"
            continue
        for depth in depths if depths else (None,):
            at = [wait for wait in same if wait.depth == depth]
            text = op if depth is None else _written(op, str(depth))
            yield f"{text} {_lines(at)}: {_explain(kernel, region, op, depth)}"


def _explain(kernel: KernelFacts, region: RegionFacts, op: str, depth: int | None) -> str:
    purpose = _purpose(op)
    if depth is None:
        if purpose == _PHASE:
            return "until the phase of a barrier is over, which the copies that signal it complete"
        return (
            "waits for what was issued before"
            if purpose in _OF_LOADS
            else f"for {_unit(op, 2)}, not for loads"
        )
    unit = _unit(op, depth)
    if depth == 0:
        told = f"every {_unit(op, 1)} issued before must be complete"
        if purpose not in _OF_LOADS:
            return told
        return told + (": it drains the pipeline in every iteration" if region.kind == "loop" else "")
    told = f"the {'' if depth == 1 else f'{depth} '}youngest {unit} may stay in flight"
    if purpose != _GROUPS or region.kind != "loop":
        return told
    commits = commits_per_iteration(kernel, region)
    if not commits:
        return told
    ahead = depth / commits
    sum_ = f"{depth} ÷ {commits} = {ahead:g} {_plural('iteration', ahead)}"
    return f"{told}; at {commits} per iteration that is {sum_}"


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
    return _plural(_UNITS[_purpose(op)], count)


def _plural(word: str, count: float) -> str:
    if count == 1:
        return word
    head, gap, rest = word.partition(" of ")
    return (head[:-1] + "ie" if head.endswith("y") else head) + "s" + gap + rest


def _written(op: str, depth: str) -> str:
    return f"{op}({depth})" if op.endswith("cnt") and " " in op else f"{op} {depth}"


def _lines(waits: list[WaitFacts]) -> str:
    lines = [wait.line for wait in waits]
    if len(lines) == 1:
        return f"(line {lines[0]})"
    if len(lines) <= 3:
        return f"(lines {', '.join(map(str, lines))})"
    return f"(×{len(lines)}, lines {span(lines[0], lines[-1])})"


def describe_changes(kernel: KernelFacts, region_id: str) -> Iterator[tuple[str, bool]]:
    """What became of a region from stage to stage: (sentence, whether the order of rounds changed)."""
    before: RegionFacts | None = None
    for stage, facts in kernel.stages.items():
        region = facts.region(region_id)
        if region is None:
            continue
        if before is not None and before.verdict != region.verdict:
            yield (
                f"{before.phrase} → {region.phrase} at {stage.value}, by {stage.made_by}",
                kernel.changed.get(region_id) is stage,
            )
        before = region


def describe_unknown(stages: Iterable[StageFacts]) -> str | None:
    """How many instructions are of no known kind, and which; None when there are none."""
    total = 0
    unknown: Counter[str] = Counter()
    for stage in stages:
        total += stage.instructions
        unknown.update(stage.unknown)
    if not unknown:
        return None
    named = [f"{opcode} ×{count}" for opcode, count in unknown.most_common(8)]
    more = f" and {len(unknown) - 8} more opcodes" if len(unknown) > 8 else ""
    return f"{sum(unknown.values())} of {total} instructions unclassified: {', '.join(named)}{more}"


def describe_target(kernel: KernelFacts) -> str:
    """Architecture and the products that have it."""
    target = kernel.artifact.target
    if target is None:
        return "target unknown"
    names = ", ".join(target.marketing[:3])
    return f"{target.arch} ({names})" if names else target.arch


_LETTERS = {
    EventKind.GLOBAL_LOAD: "global load",
    EventKind.ASYNC_COPY: "async copy",
    EventKind.COMMIT: "commit",
    EventKind.WAIT: "wait",
    EventKind.SHARED_LOAD: "shared load",
    EventKind.SHARED_STORE: "shared store",
    EventKind.MATRIX: "matrix op",
    EventKind.FLOAT: "float op",
    EventKind.BARRIER: "barrier",
    EventKind.LAYOUT_CONVERSION: "layout conversion",
    EventKind.SCHEDULE_HINT: "schedule hint",
    EventKind.GLOBAL_STORE: "global store",
    EventKind.ATOMIC: "atomic",
    EventKind.UNKNOWN: "unclassified",
}


def legend(letters: Iterable[str]) -> list[str]:
    """What the letters of some signatures stand for."""
    present = set(letters)
    return [f"{kind.letter} {name}" for kind, name in _LETTERS.items() if kind.letter in present]


def describe_counts(stage: StageFacts) -> list[str]:
    """How many instructions of each kind a file has, where it has any."""
    found = [(stage.counts.get(kind.count_name, 0), name) for kind, name in _LETTERS.items()]
    return [f"{count} {_plural(name, count)}" for count, name in found if count]
