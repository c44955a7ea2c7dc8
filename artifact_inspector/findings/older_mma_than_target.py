"""The matrix instructions are of an older generation than the target's newest.

`mma.sync`, for example, where the target has `wgmma` or `tcgen05`.

**When it is said.** A region uses one family of matrix instructions and the target's newest is another. The
reason is named where the IR tells it: a tile with fewer rows than the newest instruction takes.

**What it is likely to cost.** The older instructions run, at a part of the newest unit's rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, dots_of


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    for name, generation in kernel.generations.items():
        if last is None or not generation.used or generation.is_newest is not False:
            continue
        why = f": {generation.reason}" if generation.reason else ""
        lines = () if generation.lines is None else generation.lines[:1]
        yield Remark(f"{name}: {generation.words}{why}", last.stage, lines, dots_of(kernel, name)[2])


RULE = Rule("AI005", "older-mma-than-target", Severity.WARNING, Consequence.MATRIX, _look, __doc__)
