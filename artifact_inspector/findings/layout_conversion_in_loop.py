"""A loop converts the layout of a tensor in every iteration without need.

A conversion through shared memory is a store, a barrier and a load.

**When it is reported.** TTGIR has a `ttg.convert_layout` that every iteration of a loop runs, and that
goes through shared memory or may do so. Either it converts a loop-invariant value and could be hoisted,
or the loop has no dot and no inner loop and converts to or from the layout of a dot outside it. Such a
conversion has at least 1 KiB, and at least a quarter of what the loop loads. In other loops, dots, loads
and stores need their own layouts.

**What it is likely to cost.** Shared-memory traffic of twice the tensor, and barriers between the warps,
in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import RegionKind, Stage

MUCH = 4
"""Where a loop loads no more than so many times what it converts, converting is a part of what it does."""
LEAST = 1024
"""Bytes: less is the vector of a row's sums."""
SAME = "of what the loop does not change"
ELSEWHERE = "for the layout of a dot outside the loop, which has none of its own"


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    facts = kernel.stages.get(Stage.TTGIR)
    if facts is None:
        return
    around = {region.parent for region in facts.regions if region.kind is RegionKind.LOOP}
    told: dict[str, dict[str, list[LayoutConversion]]] = {}
    for region in facts.regions:
        work = facts.work.get(region.id)
        if work is None or region.kind is not RegionKind.LOOP:
            continue
        found = [one for one in work.conversions if one.through_shared is not False and one.is_unconditional]
        same = [one for one in found if not one.is_loop_variant]
        of_dots = [one for one in found if one.is_for_dots]
        size = sum(one.bytes for one in of_dots)
        loaded = sum(size * times for size, times in work.accesses.tiles.items() if size)
        if same:
            told.setdefault(SAME, {})[region.id] = same
        elif region.id not in around and not work.matrix and size >= max(LEAST, loaded / MUCH):
            told.setdefault(ELSEWHERE, {})[region.id] = of_dots
    for why, loops in told.items():
        yield _remark(loops, why)


def _remark(loops: Mapping[str, list[LayoutConversion]], reason: str) -> Remark:
    all_of = [one for found in loops.values() for one in found]
    counts = "; ".join(
        f"{name}: {len(found)} layout conversion{'s' if len(found) > 1 else ''} of "
        f"{sum(one.bytes for one in found)} B in all in every iteration"
        for name, found in loops.items()
    )
    changes = ", ".join(dict.fromkeys(one.change for one in all_of))
    unsure = "" if all(one.through_shared for one in all_of) else ", as far as can be told"
    return Remark(
        f"{counts} through shared memory{unsure} ({changes}), {reason}",
        Stage.TTGIR,
        tuple(one.line for one in all_of),
        tuple(dict.fromkeys(one.source for one in all_of if one.source is not None)),
    )


RULE = Rule("AI009", "layout-conversion-in-loop", Severity.NOTE, Consequence.OTHER, _look, __doc__)
