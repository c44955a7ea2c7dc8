"""Phrases that reports share: verdicts, order changes, counts, line ranges. Text only, no layout."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from artifact_inspector.analysis.order.region_facts import RegionFacts, RegionNote, RoundFacts
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.facts.outline import ROW_LOADS
from artifact_inspector.model import EventKind, OrderVerdict, SourceLine, Stage
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
        if len(_elide_runs(runs, *longer)) > width or longer[0] >= longer[1]:
            return _elide_runs(runs, head, tail)
        head, tail = longer


def _elide_runs(runs: list[str], head: int, tail: int) -> str:
    return " ".join([*runs[:head], f"… {tail - head} runs …", *runs[tail:]])


def mma_count(kernel: KernelFacts) -> str:
    """Matrix instructions in the main loop, `8 of 24` if the file has more.

    `0, FMA 1024` if the dots were lowered to fused multiply-adds; these are counted in the whole file.
    """
    last, region = kernel.last, kernel.principal_region
    if last is None:
        return "–"
    total = last.counts[EventKind.MATRIX.count_name]
    main_facts = last.region(kernel.principal or "")
    if not total and any(facts.counts[EventKind.MATRIX.count_name] for facts in kernel.stages.values()):
        fused = sum(region_facts.fused_multiply_adds for region_facts in last.regions)
        return f"0, FMA {fused}" if fused else "0"
    main_count = 0 if region is None else region.matrix
    return str(total) if main_facts is None or main_count == total else f"{main_count} of {total}"


def plural(singular: str, count: float) -> str:
    """The singular or plural of a word: `2 groups of stores`."""
    if count == 1:
        return singular
    head, gap, suffix = singular.partition(" of ")
    return (head[:-1] + "ie" if head.endswith("y") else head) + "s" + gap + suffix


def join_words(items: Sequence[str]) -> str:
    """A list in a sentence.

    Example:
        >>> join_words(["blocks", "warps", "registers"])
        'blocks, warps and registers'
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


_MEANINGS = {
    "interleaved": "each round loads after the previous round has computed",
    "clustered": "all rounds load before the first compute",
    "staggered": "each round loads before the computes of the d rounds before it",
    "grouped": "the rounds in one brace load together, before any of them computes",
    "mixed": "a share f of each round's loads is before the previous round's computes, a share g after them",
    "single": "one round of loads and computes, so there is no order to compare",
    "serial": "each iteration loads and then uses its loads: no overlap inside a warp",
    "overlapped": "each iteration waits for its own loads while the previous matrix operations still run",
    "pipelined": "the loop loads d iterations ahead of its computes",
    "partly pipelined": "some loads run d iterations ahead of their computes, others do not",
    "unrolled": "the loop is fully unrolled at this stage",
    "gone": "the loads remain, but their compute was folded away (a multiply by −1 becomes an xor)",
    "warp-specialised": "some warps load, others compute",
    "no-loads": "no loads of its own",
    "no-compute": "no floating-point instruction uses the loaded values",
    "unknown": "the file is truncated, or a load or compute was not recognized; the note says which",
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


def describe_verdict(verdict: str, stage: Stage | None = None) -> str | None:
    """The definition of a verdict, as far as it holds at a stage; None for an unknown word."""
    if stage is Stage.TTIR and verdict == OrderVerdict.SERIAL.value:
        return "each iteration loads and then uses its loads; pipelining comes after this stage"
    return _MEANINGS.get(verdict)


def describe_changes(kernel: KernelFacts, region_id: str) -> Iterator[tuple[str, str]]:
    """How a region changed from stage to stage, as (label, stage and compiler component).

    The label is `changed` if the order of rounds changed, otherwise the new verdict.
    """
    previous: tuple[Stage, RegionFacts] | None = None
    last_ordered: RegionFacts | None = None
    is_unknown = False
    for stage, facts in kernel.stages.items():
        region = facts.region(region_id)
        if region is None:
            continue
        if region.verdict is OrderVerdict.UNKNOWN:  # the next stage is compared with the last known one
            if not is_unknown:
                yield "unknown", f"at {stage.value}"
            is_unknown = True
            continue
        is_unknown = False
        if previous is not None and previous[1].verdict != region.verdict:
            is_adjacent = stage.order == previous[0].order + 1
            change_location = f"at {stage.value} ({stage.producer})"
            if not is_adjacent:
                change_location = f"between {previous[0].value} and {stage.value}"
            if not region.verdict.is_order_verdict or last_ordered is None:
                yield region.verdict, f"{change_location}, {previous[1].phrase} before"
            elif region.order_changed is None:
                yield ("order change unknown", f"{change_location}: {last_ordered.phrase} before, {region.phrase} now")
            elif region.order_changed:
                yield "changed", f"{last_ordered.phrase} → {region.phrase} {change_location}"
        previous = stage, region
        last_ordered = region if region.verdict.is_order_verdict else last_ordered


def describe_notes(notes: Iterable[RegionNote]) -> list[str]:
    """Notes as text; equal notes about several rounds are merged.

    Example:
        >>> describe_notes([RegionNote("moved", 1), RegionNote("moved", 2), RegionNote("cut off")])
        ['rounds 1, 2: moved', 'cut off']
    """
    rounds: dict[str, list[int]] = {}
    for note in notes:
        rounds.setdefault(note.message, []).extend([] if note.round is None else [note.round])
    return [
        f"{plural('round', len(numbers))} {', '.join(map(str, numbers))}: {text}" if numbers else text
        for text, numbers in rounds.items()
    ]


def count_unknown(kernel: KernelFacts) -> tuple[int, Counter[str]]:
    """The instructions of all stages, and how often each unclassified opcode occurs."""

    def count() -> tuple[int, Counter[str]]:
        unknown: Counter[str] = Counter()
        for stage in kernel.stages.values():
            unknown.update(stage.unknown)
        return sum(stage.instructions for stage in kernel.stages.values()), unknown

    return kernel.derive("unknown", count)


def describe_unknown(kernels: Iterable[KernelFacts]) -> str | None:
    """The number and opcodes of unclassified instructions; None if there are none."""
    total = 0
    unknown: Counter[str] = Counter()
    for instructions, counts in map(count_unknown, kernels):
        total += instructions
        unknown.update(counts)
    if not unknown:
        return None
    named = [f"{opcode} ×{count}" for opcode, count in unknown.most_common(8)]
    ellipsis = f" and {len(unknown) - 8} more opcodes" if len(unknown) > 8 else ""
    return f"{sum(unknown.values())} of {total} instructions unclassified: {', '.join(named)}{ellipsis}"


def load_statements(item: RoundFacts) -> list[str]:
    """The load statements of a round: `a gemv.py:20`, `b :21`."""
    locations = shorten_locations(item.sources)
    if item.names and len(item.names) == len(item.sources):
        return [f"{name} {location}" for name, location in zip(item.names, locations, strict=True)]
    return [*item.names, *locations] or ["–"]


def shorten_locations(locations: Iterable[str]) -> list[str]:
    """Source lines, without the file name if it equals the previous one."""
    shortened_locations = []
    previous_file = ""
    for location in locations:
        file = location.file if isinstance(location, SourceLine) else location.rpartition(":")[0]
        shortened_locations.append(location[len(file) :] if file == previous_file else location)
        previous_file = file
    return shortened_locations


def describe_target(kernel: KernelFacts) -> str:
    """The architecture and some products that have it."""
    target = kernel.artifact.target
    if target is None:
        return "target unknown"
    names = ", ".join(target.product_names[:3])
    return f"{target.arch} ({names})" if names else target.arch


def legend(signatures: Iterable[str]) -> list[str]:
    """The letters of some signatures and what they stand for."""
    runs = [run for signature in signatures for run in signature.split()]
    present = {run[0] for run in runs}
    texts = [f"{kind.letter} {name}" for kind, name in LETTERS.items() if kind.letter in present]
    longest = max(runs, key=lambda run: int(run[1:] or "1"), default="")
    return [*texts, f"{longest} = {longest[1:]} {longest[0]} in a row"] if longest[1:] > "1" else texts


def describe_counts(stage: StageFacts) -> list[str]:
    """The number of instructions of each kind that a file has."""
    counts = [(kind, stage.counts.get(kind.count_name, 0), name) for kind, name in LETTERS.items()]
    rows = stage.counts.get(ROW_LOADS, 0)
    return [
        f"{count} {plural(name, count)}" + (f" ({rows} ldmatrix)" if rows and kind is EventKind.SHARED_LOAD else "")
        for kind, count, name in counts
        if count
    ]


def format_us(us: float) -> str:
    """Microseconds with two or three digits.

    Example:
        >>> [format_us(us) for us in (3.14159, 41.27, 1234.5)]
        ['3.1', '41', '1,234']
    """
    return f"{us:.1f}" if us < 10 else f"{us:,.0f}"
