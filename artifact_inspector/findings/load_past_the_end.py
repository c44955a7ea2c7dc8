"""A load is masked on no side where its tile passes the end.

Where a block stands over the edge of a tensor, what such a load reads lies behind the edge: of another row,
of another tensor, or of nobody.

**When it is said.** The mask of another access compares an index of the tile with an end that the arguments
give; the load is addressed by the same index, and its own mask, if it has one, does not ask for it. Nothing
is said of a load that only some paths run (full tiles, where the last one is taken apart), of an index that
was taken modulo the end, and of an end that is a multiple of the tile.

**What it is likely to cost.** Nothing, where the tensor is padded to whole tiles or what was read is thrown
away. Else wrong results (a NaN behind the edge survives a multiplication by zero), or a fault of memory.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.access.tile_ends import Unmasked
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    groups: dict[tuple[tuple[str, ...], bool], list[Unmasked]] = {}
    for load in kernel.unmasked:
        groups.setdefault((load.ends, load.masked), []).append(load)
    for (ends, is_masked), group in groups.items():
        names = ", ".join(dict.fromkeys(load.name or "a load" for load in group))
        kind = "with a mask that does not ask" if is_masked else "without a mask"
        lines = [line for load in group for line in (load.line, *load.compares)]
        yield Remark(
            f"{names} {'are' if len(group) > 1 else 'is'} read {kind} for {' or '.join(ends)}, by an index "
            "that is masked there elsewhere: a tile that passes the end reads what lies behind it",
            next(iter(kernel.stages), None),
            tuple(dict.fromkeys(lines)),
            tuple(dict.fromkeys(load.source for load in group if load.source is not None)),
        )


RULE = Rule("AI025", "load-past-the-end", Severity.WARNING, Consequence.REST, _look, __doc__)
