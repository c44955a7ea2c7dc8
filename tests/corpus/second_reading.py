"""A second reading of a verdict: from the line and the figures that the report shows, by docs/verdicts.md alone.

    python tests/corpus/second_reading.py [--sass] CACHE…

holds every region of every kernel in some caches against it, cubins disassembled with `--sass`, and prints what
departs.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.facts.inspection import inspect_cache
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import find_findings
from artifact_inspector.model import OrderVerdict, PipelineKind

ORDERED = {
    OrderVerdict.INTERLEAVED,
    OrderVerdict.CLUSTERED,
    OrderVerdict.STAGGERED,
    OrderVerdict.GROUPED,
    OrderVerdict.MIXED,
}


def departures(kernel: KernelFacts) -> Iterator[tuple[str, str, str, str]]:
    """What departs from the contract: the rule, the stage, the region, and the figures."""
    before: dict[str, RegionFacts] = {}
    for stage, facts in kernel.stages.items():
        for region in facts.regions:
            for rule, said in (*_of_line(region), *_of_places(region)):
                yield rule, stage.value, region.id, said
            if region.order_changed:
                for said in _of_change(before.get(region.id), region):
                    yield "change", stage.value, region.id, said
            if region.verdict in ORDERED:
                before[region.id] = region
    yield from _of_news(kernel)
    yield from _of_distances(kernel)


def _words(region: RegionFacts) -> list[str]:
    """The line as `L` for a load and `C` for a compute."""
    return ["L" if "(" in word else "C" for word in re.sub(r"\([^)]*\)", "()", region.named_signature).split()]


def _of_line(region: RegionFacts) -> Iterator[tuple[str, str]]:
    """What the verdict says against the line beside it."""
    line = "".join(_words(region))
    verdict, said = region.verdict, f"{region.phrase}: {region.named_signature}"
    turns = len(re.findall(r"C+L", line))
    own = [found for found in region.rounds if found.loads and found.first_compute is not None]
    if region.unroll_factor > 1 or len(own) < len(region.rounds):
        return  # one copy is judged; a round of another loop's loads has none here
    if verdict is OrderVerdict.CLUSTERED and turns:
        yield "line", said
    if verdict in (OrderVerdict.INTERLEAVED, OrderVerdict.STAGGERED, OrderVerdict.GROUPED) and not turns:
        yield "line", said
    if verdict is OrderVerdict.SINGLE and len(region.rounds) > 1 and not region.exclusive:
        yield "line", said


def _of_places(region: RegionFacts) -> Iterator[tuple[str, str]]:
    """What the verdict says against the lines between which each round loads and computes."""
    if region.verdict not in ORDERED or region.unroll_factor > 1:
        return
    spans = [
        (found.first_compute or 0, number, found)
        for number, found in enumerate(region.rounds, 1)
        if found.loads and found.first_compute is not None
    ]
    spans.sort(key=lambda span: span[:2])
    if region.exclusive:
        return  # which rounds are neighbours on some path, the lines do not tell
    if any(first < (found.first_load or 0) for first, _, found in spans):
        return  # the text is not in the order in which it runs
    letters = [_letter(one, other) for (_, _, one), (_, _, other) in pairwise(spans)]
    if not letters:
        yield "places", f"{region.phrase} of fewer than two rounds"
        return
    if "M" in letters:
        expected = {OrderVerdict.MIXED}
    elif set(letters) == {"I"}:
        expected = {OrderVerdict.INTERLEAVED}
    elif set(letters) == {"I", "C"}:
        expected = {OrderVerdict.GROUPED}
    elif max(found.last_load or 0 for *_, found in spans) < spans[0][0]:
        expected = {OrderVerdict.CLUSTERED}
    else:
        expected = {OrderVerdict.STAGGERED}
    if region.verdict not in expected:
        yield "places", f"{region.phrase} but {' '.join(letters)}: {region.named_signature}"
    for brace in re.findall(r"\{([^}]*)\}", region.groups):
        held = [region.rounds[int(number) - 1] for number in brace.split()]
        first = min(found.first_load or 0 for found in held)
        last = max(found.last_load or 0 for found in held)
        ends = [end for *_, found in spans for end in (found.first_compute, found.last_compute)]
        if len(held) > 1 and any(first < (end or 0) < last for end in ends):
            yield "braces", f"{{{brace}}} with a compute in between: {region.named_signature}"


def _letter(one: RoundFacts, other: RoundFacts) -> str:
    if (other.first_load or 0) > (one.last_compute or 0):
        return "I"
    return "C" if (other.last_load or 0) < (one.first_compute or 0) else "M"


def _of_change(was: RegionFacts | None, now: RegionFacts) -> Iterator[str]:
    """A change that is told of other statements than those of the stage before."""
    if was is None:
        yield f"{now.phrase}, and no order before"
        return
    if was.phrase == now.phrase:
        yield f"{was.phrase} twice"
    if [found.sources for found in was.rounds] != [found.sources for found in now.rounds]:
        yield "other statements"
    for region in (was, now):
        if any(not found.loads or found.first_compute is None for found in region.rounds):
            yield f"a round of {region.phrase} lacks its loads or computes"


def _of_news(kernel: KernelFacts) -> Iterator[tuple[str, str, str, str]]:
    """Loads that a finding says stand together, with a compute between them."""
    last = kernel.last
    for finding in find_findings(kernel):
        name, _, said = finding.remark.message.partition(": ")
        if finding.code != "AI001" or last is None or "are issued together (" not in said:
            continue
        region = last.region(name)
        if region is not None and region.unroll_factor == 1 and re.search("LC+L", "".join(_words(region))):
            yield "news", last.stage.value, name, f"{said}: {region.named_signature}"


def _of_distances(kernel: KernelFacts) -> Iterator[tuple[str, str, str, str]]:
    """A distance that is not the iterations in flight and one more, and no cause beside it."""
    for name, pipeline in kernel.pipelines.items():
        if pipeline.kind in (None, PipelineKind.REGISTERS) or pipeline.distance is None:
            continue
        far = max(pipeline.distance) if isinstance(pipeline.distance, tuple) else pipeline.distance
        if pipeline.iterations_in_flight != far - 1 and not pipeline.notes and pipeline.unpipelined_reason is None:
            said = f"{far} ahead, {pipeline.iterations_in_flight} in flight"
            yield "distance", kernel.last.stage.value if kernel.last else "", name, said


def main(caches: list[str]) -> int:
    """Prints what departs in some caches, and how much was held against the second reading."""
    tally: Counter[str] = Counter()
    shares: Counter[OrderVerdict] = Counter()
    sass = "--sass" in caches
    for cache in [name for name in caches if name != "--sass"]:
        opened = open_cache(Path(cache))
        disassemble = make_disassembler(list(opened.entries), None, sass=sass)
        for kernel in inspect_cache(opened, disassemble=disassemble):
            tally["kernels"] += 1
            for facts in kernel.stages.values():
                shares.update(region.verdict for region in facts.regions)
                tally["changes"] += sum(bool(region.order_changed) for region in facts.regions)
                tally["changes unknown"] += sum(region.order_changed is None for region in facts.regions)
            where = f"{cache}/{kernel.artifact.directory} {kernel.artifact.name} {kernel.artifact.target}"
            for rule, stage, region, said in departures(kernel):
                tally[f"departs: {rule}"] += 1
                print(f"{rule:8} {where} {stage} {region}: {said}")
    print(dict(tally))
    ordered = sum(shares[verdict] for verdict in ORDERED)
    print(f"{sum(shares.values())} verdicts, {ordered} of order, {Fraction(shares[OrderVerdict.UNKNOWN])} unknown")
    return int(any(rule.startswith("departs") for rule in tally))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
