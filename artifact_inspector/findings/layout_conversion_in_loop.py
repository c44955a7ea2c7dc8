"""A loop changes the layout of a tensor in every iteration.

Through shared memory, that is a store, a barrier and a load.

**When it is said.** TTGIR has a `ttg.convert_layout` in a loop that goes through shared memory, or of which
that cannot be told. Conversions of less than a sixteenth of what the loop loads are left out: the vector of
a row's sums beside tiles.

**What it is likely to cost.** Shared-memory traffic of twice the tensor and barriers between the warps, in
every iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model import RegionKind, Stage

LITTLE = 16
"""Times as much that the loop loads: what is converted beside it is the vector of a row's sums."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    facts = kernel.stages.get(Stage.TTGIR)
    if facts is None:
        return
    for region in facts.regions:
        work = facts.work.get(region.id)
        if work is None or region.kind is not RegionKind.LOOP:
            continue
        found = [conversion for conversion in work.conversions if conversion.through_shared is not False]
        if not found:
            continue
        size = sum(conversion.bytes for conversion in found)
        if size * LITTLE < sum(
            bytes_of * times for bytes_of, times in work.accesses.tiles.items() if bytes_of
        ):
            continue
        changes = ", ".join(dict.fromkeys(conversion.change for conversion in found))
        unsure = "" if all(conversion.through_shared for conversion in found) else ", as far as can be told"
        sources = dict.fromkeys(c.source for c in found if c.source is not None)
        yield Remark(
            f"{region.id}: {len(found)} layout conversion{'s' if len(found) > 1 else ''} of {size} B in all "
            f"in every iteration through shared memory{unsure} ({changes})",
            Stage.TTGIR,
            tuple(conversion.line for conversion in found),
            tuple(sources),
        )


RULE = Rule("AI009", "layout-conversion-in-loop", Severity.NOTE, Consequence.REST, _look, __doc__)
