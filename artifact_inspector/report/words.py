"""Phrases that reports share: verdicts, order changes, counts, line ranges. Text only, no layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from artifact_inspector.analysis.order.facts import Note, RegionFacts, RoundFacts
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.model import EventKind, SourceLine, Stage, Verdict
from artifact_inspector.vocabulary.letters import LETTERS


def span(first: int | None, last: int | None) -> str:
    """A range of lines, `12–15`; a dash if there is none."""
    if first is None or last is None:
        return "–"
    # Execution order can differ from line order.
    low, high = min(first, last), max(first, last)
    return str(low) if low == high else f"{low}–{high}"


def cut_signature(signature: str, width: int) -> str:
    """A signature of at most `width` columns; runs in the middle are replaced by their count.

    Example:
        >>> cut_signature("L1 F1 L2 F2 L3 F3 L4 F4", 20)
        'L1 F1 … 5 runs … F4'
    """
    if len(signature) <= width:
        return signature
    runs = signature.split()
    head, tail = 0, len(runs)
    while True:
        # add one run, alternately at the front and at the end, while the text fits
        longer = (head + 1, tail) if head <= len(runs) - tail else (head, tail - 1)
        if len(_cut(runs, *longer)) > width or longer[0] >= longer[1]:
            return _cut(runs, head, tail)
        head, tail = longer


def _cut(runs: list[str], head: int, tail: int) -> str:
    return " ".join([*runs[:head], f"… {tail - head} runs …", *runs[tail:]])


def mma_count(kernel: KernelFacts) -> str:
    """Matrix instructions in the main loop, `8 of 24` if the file has more.

    `0, FMA 1024` if the dots were lowered to fused multiply-adds; these are counted in the whole file.
    """
    last, region = kernel.last, kernel.principal_region
    if last is None:
        return "–"
    total = last.counts[EventKind.MATRIX.count_name]
    here = last.region(kernel.principal or "")
    if not total and any(facts.counts[EventKind.MATRIX.count_name] for facts in kernel.stages.values()):
        fused = sum(found.fused for found in last.regions)
        return f"0, FMA {fused}" if fused else "0"
    inside = 0 if region is None else region.matrix
    return str(total) if here is None or inside == total else f"{inside} of {total}"


def plural(word: str, count: float) -> str:
    """The singular or plural of a word: `2 groups of stores`."""
    if count == 1:
        return word
    head, gap, rest = word.partition(" of ")
    return (head[:-1] + "ie" if head.endswith("y") else head) + "s" + gap + rest


def join_words(words: Sequence[str]) -> str:
    """A list in a sentence.

    Example:
        >>> join_words(["blocks", "warps", "registers"])
        'blocks, warps and registers'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


_MEANINGS = {
    "interleaved": "each round loads after the previous round has computed",
    "clustered": "all rounds load before the first compute",
    "staggered": "each round loads before the computes of the d rounds before it",
    "grouped": "the rounds in one brace load together, before any of them computes",
    "mixed": "a share f of each round's loads is before the previous round's computes, a share g after them",
    "single": "one round of loads and computes, so there is no order to compare",
    "serial": "each iteration loads and then uses its loads: no overlap inside a warp",
    "pipelined": "the loop loads d iterations ahead of its computes",
    "partly pipelined": "some loads run d iterations ahead of their computes, others do not",
    "unrolled": "the loop is fully unrolled at this stage",
    "gone": "the loads remain, but their compute was folded away (a multiply by −1 becomes an xor)",
    "warp-specialised": "some warps load, others compute",
    "no-loads": "no loads of its own",
    "no-compute": "no floating-point instruction uses the loaded values",
    "unknown": "the loads or computes of a round were not recognized; the note gives the reason",
}
VERDICTS = tuple(_MEANINGS)
"""Every verdict that a region can have."""


TERMS = {
    "round": "a group of loads and the math that uses them",
    "main loop": "the loop whose verdict stands for the kernel in lists; without a loop, the main region",
    "in flight": "most loads issued but not yet waited for, and their bytes per thread",
    "overlap": "share of compute issued while a load is in flight",
    "ahead": "iterations between a load and its compute",
}
"""Terms of the report on a kernel → their definitions."""


def describe_verdict(verdict: str) -> str | None:
    """The definition of a verdict; None for an unknown word."""
    return _MEANINGS.get(verdict)


def describe_changes(kernel: KernelFacts, region_id: str) -> Iterator[tuple[str, str]]:
    """How a region changed from stage to stage, as (label, stage and compiler component).

    The label is `changed` if the order of rounds changed, otherwise the new verdict.
    """
    before: tuple[Stage, RegionFacts] | None = None
    ordered: RegionFacts | None = None
    lost = False
    for stage, facts in kernel.stages.items():
        region = facts.region(region_id)
        if region is None:
            continue
        if region.verdict is Verdict.UNKNOWN:  # the next stage is compared with the last known one
            if not lost:
                yield "unknown", f"at {stage.value}"
            lost = True
            continue
        lost = False
        if before is not None and before[1].verdict != region.verdict:
            next_to = stage.order == before[0].order + 1
            where = f"at {stage.value} ({stage.made_by})"
            if not next_to:
                where = f"between {before[0].value} and {stage.value}"
            if not region.verdict.is_of_order or ordered is None:
                yield region.verdict, f"{where}, {before[1].phrase} before"
            elif region.changed is None:
                yield "order change unknown", f"{where}: {ordered.phrase} before, {region.phrase} now"
            elif region.changed:
                yield "changed", f"{ordered.phrase} → {region.phrase} {where}"
        before = stage, region
        ordered = region if region.verdict.is_of_order else ordered


def describe_notes(notes: Iterable[Note]) -> list[str]:
    """Notes as text; equal notes about several rounds are merged.

    Example:
        >>> describe_notes([Note("moved", 1), Note("moved", 2), Note("cut off")])
        ['rounds 1, 2: moved', 'cut off']
    """
    rounds: dict[str, list[int]] = {}
    for note in notes:
        rounds.setdefault(note.said, []).extend([] if note.round is None else [note.round])
    return [
        f"{plural('round', len(numbers))} {', '.join(map(str, numbers))}: {said}" if numbers else said
        for said, numbers in rounds.items()
    ]


def describe_unknown(stages: Iterable[StageFacts]) -> str | None:
    """The number and opcodes of unclassified instructions; None if there are none."""
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


def statements(item: RoundFacts) -> list[str]:
    """The load statements of a round: `a gemv.py:20`, `b :21`."""
    said = shortened(item.sources)
    if item.names and len(item.names) == len(item.sources):
        return [f"{name} {place}" for name, place in zip(item.names, said, strict=True)]
    return [*item.names, *said] or ["–"]


def shortened(places: Iterable[str]) -> list[str]:
    """Source lines, without the file name if it equals the previous one."""
    said = []
    before = ""
    for place in places:
        file = place.file if isinstance(place, SourceLine) else place.rpartition(":")[0]
        said.append(place[len(file) :] if file == before else place)
        before = file
    return said


def describe_target(kernel: KernelFacts) -> str:
    """The architecture and some products that have it."""
    target = kernel.artifact.target
    if target is None:
        return "target unknown"
    names = ", ".join(target.marketing[:3])
    return f"{target.arch} ({names})" if names else target.arch


def legend(signatures: Iterable[str]) -> list[str]:
    """The letters of some signatures and what they stand for."""
    runs = [run for signature in signatures for run in signature.split()]
    present = {run[0] for run in runs}
    said = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind.letter in present]
    longest = max(runs, key=lambda run: int(run[1:] or "1"), default="")
    return [*said, f"{longest} = {longest[1:]} {longest[0]} in a row"] if longest[1:] > "1" else said


def describe_counts(stage: StageFacts) -> list[str]:
    """The number of instructions of each kind that a file has."""
    found = [(stage.counts.get(kind.count_name, 0), name) for kind, name in LETTERS.items()]
    return [f"{count} {plural(name, count)}" for count, name in found if count]
