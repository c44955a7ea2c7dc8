"""A load has no mask for an end that another access is masked for.

Where a tile passes the edge of a tensor, the load reads past it: another row, another tensor, or unmapped memory.

**When it is reported.** The mask of another access compares an index with an end that the arguments give. The load
uses the same index, and its own mask does not check that end. Not reported are a load that only some paths run, an
index taken modulo the end, an end that is a multiple of the tile, and an end `K` that a constant `EVEN_K` or
`DIVISIBLE_K` declares to be one.

**What it is likely to cost.** Nothing if the tensor is padded to whole tiles, or if the values are discarded.
Otherwise wrong results (a NaN past the edge survives a multiplication by zero), or a memory fault.

**What to do.** Add the bound to the mask of the load, with `other=0.0`. Or pad the tensor to whole tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.access.missing_masks import MissingMask
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.model.text import find_even_extents


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    declared = find_even_extents(kernel.artifact.constants) if kernel.unmasked else set()
    groups: dict[tuple[tuple[str, ...], bool], list[MissingMask]] = {}
    for load in kernel.unmasked:
        if declared.issuperset(end.lower() for end in load.ends):
            continue
        groups.setdefault((load.ends, load.masked), []).append(load)
    for (ends, is_masked), group in groups.items():
        names = ", ".join(dict.fromkeys(load.name or "a load" for load in group))
        verb = "have" if len(group) > 1 else "has"
        lack = "a mask that does not check" if is_masked else "no mask for"
        lines = [line for load in group for line in (load.line, *load.compares)]
        yield Remark(
            f"possible out-of-bounds read: {names} {verb} {lack} {' or '.join(ends)}, but another access "
            "with the same index is masked there. The last tile reads past the end",
            next(iter(kernel.stages), None),
            tuple(dict.fromkeys(lines)),
            tuple(dict.fromkeys(load.source for load in group if load.source is not None)),
        )


RULE = Rule("AI025", "load-past-the-end", Severity.WARNING, Consequence.OTHER, _look, __doc__)
