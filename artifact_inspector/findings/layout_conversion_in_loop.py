"""A loop converts the layout of a tensor in every iteration without need.

A conversion through shared memory is a store, a barrier and a load.

**When it is reported.** TTGIR has a `ttg.convert_layout` that every iteration of a loop runs, and that goes through
shared memory or may do so. Either it converts a loop-invariant value and could be hoisted, or the loop has no dot and
no inner loop and converts to or from the layout of a dot outside it. Such a conversion has at least 1 KiB, and at
least a quarter of what the loop loads. In other loops, dots, loads and stores need their own layouts.

**What it is likely to cost.** Shared-memory traffic of twice the tensor, and barriers between the warps, in every
iteration.

**What to do.** Load and convert a loop-invariant value before the loop. Otherwise try other values of `num_warps` and
other tiles, which have other layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import EventKind, RegionKind, Stage

MUCH = 4
"""Loops that load more than this many times the converted bytes are not reported."""
LEAST = 1024
"""Bytes: smaller conversions are vectors, such as the sums of rows."""
LOOP_INVARIANT = "of loop-invariant values, which could be converted before the loop"
FOR_OUTER_DOT = "for the layout of a dot outside the loop; the loop itself has no dot"


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    facts = kernel.stages.get(Stage.TTGIR)
    if facts is None:
        return
    outer_loops = {region.parent for region in facts.regions if region.kind is RegionKind.LOOP}
    conversions_by_reason: dict[str, dict[str, list[LayoutConversion]]] = {}
    for region in facts.regions:
        work = facts.work.get(region.id)
        if work is None or region.kind is not RegionKind.LOOP or not region.count(EventKind.LAYOUT_CONVERSION):
            continue
        conversions = [
            conversion
            for conversion in work.conversions
            if conversion.through_shared is not False and conversion.is_unconditional
        ]
        invariant = [conversion for conversion in conversions if not conversion.is_loop_variant]
        of_dots = [conversion for conversion in conversions if conversion.is_for_dots]
        size = sum(conversion.bytes for conversion in of_dots)
        loaded = sum(size * times for size, times in work.accesses.tiles.items() if size)
        if invariant:
            conversions_by_reason.setdefault(LOOP_INVARIANT, {})[region.id] = invariant
        elif region.id not in outer_loops and not work.matrix and size >= max(LEAST, loaded / MUCH):
            conversions_by_reason.setdefault(FOR_OUTER_DOT, {})[region.id] = of_dots
    for reason, loops in conversions_by_reason.items():
        yield _remark(loops, reason)


def _remark(loops: Mapping[str, list[LayoutConversion]], reason: str) -> Remark:
    all_conversions = [conversion for conversions in loops.values() for conversion in conversions]
    counts = "; ".join(
        f"{name}: {len(conversions)} layout conversion{'s' if len(conversions) > 1 else ''} of "
        f"{sum(conversion.bytes for conversion in conversions)} B in total in every iteration"
        for name, conversions in loops.items()
    )
    changes = ", ".join(dict.fromkeys(conversion.change for conversion in all_conversions))
    likely = "" if all(conversion.through_shared for conversion in all_conversions) else "probably "
    return Remark(
        f"{counts}, {likely}through shared memory ({changes}), {reason}",
        Stage.TTGIR,
        tuple(conversion.line for conversion in all_conversions),
        tuple(dict.fromkeys(conversion.source for conversion in all_conversions if conversion.source is not None)),
    )


RULE = Rule("AI009", "layout-conversion-in-loop", Severity.NOTE, Consequence.OTHER, _look, __doc__)
