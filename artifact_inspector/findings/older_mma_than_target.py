"""The kernel uses an older generation of matrix instructions than the target has.

An example is `mma.sync` on a target with `wgmma` or `tcgen05`.

**When it is reported.** A region uses one family of matrix instructions, and the newest family of the target is
another. The reason is named where the IR shows it: a tile with fewer rows than the newest instruction takes. Tiles of
16 rows, the minimum for a dot, are not reported: such a kernel was written for few rows.

**What it is likely to cost.** The older instructions reach only a part of the rate of the newest unit.

**What to do.** Use a tile of at least 64 rows and at least 4 warps, and a release of Triton that knows the target.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, describe_region, find_dots
from artifact_inspector.findings._switch import more_warps
from artifact_inspector.model import Stage

FEWEST_ROWS = 16
"""Of a dot. Source: Triton, `min_dot_size` of third_party/nvidia/backend/compiler.py."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    for name, generation in kernel.generations.items():
        if last is None or not generation.used or generation.is_newest is not False:
            continue
        if _has_fewest_rows(kernel, name):
            continue
        reason = f": {generation.reason}" if generation.reason else ""
        lines = () if generation.lines is None else generation.lines[:1]
        text = f"{describe_region(name)}: {generation.description}{reason}"
        yield Remark(text, last.stage, lines, find_dots(kernel, name)[2])


def _has_fewest_rows(kernel: KernelFacts, region: str) -> bool:
    facts = kernel.stages.get(Stage.TTGIR)
    work = None if facts is None else facts.work.get(region)
    shapes = [dot.matrix for dot in work.matrix] if work is not None else []
    return bool(shapes) and all(shape is not None and shape.m <= FEWEST_ROWS for shape in shapes)


RULE = Rule("AI005", "older-mma-than-target", Severity.WARNING, Consequence.MATRIX, _look, __doc__, switches=more_warps)
