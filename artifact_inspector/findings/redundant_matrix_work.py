"""The matrix instructions do more work than the dots need.

The tile is smaller than an instruction and is padded, or several warps compute the same part.

**When it is reported.** `count × flop × issuers` of the last stage is more than `2·M·N·K` of the dots, and the layout
explains the factor. One finding names all such dots of a kernel.

**What it is likely to cost.** Matrix work by the reported factor. It costs nothing where memory is the limit.

**What to do.** Choose a tile that is at least as large as the instruction in each dimension, and fewer warps for small
tiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.matrix.work_balance import BalanceReason
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, find_dots


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    groups: dict[str, list[str]] = {}
    for name, identity in kernel.identities.items():
        if identity.reason is BalanceReason.REDUNDANT:
            groups.setdefault(identity.explanation, []).append(name)
    names = [name for group in groups.values() for name in group]
    dots = [find_dots(kernel, name, kernel.identities[name].redundant) for name in names]
    if dots:
        yield Remark(
            "; ".join(f"{', '.join(group)}: {explanation}" for explanation, group in groups.items()),
            dots[0][0],
            tuple(dict.fromkeys(line for _, lines, _ in dots for line in lines)),
            tuple(dict.fromkeys(source for *_, sources in dots for source in sources)),
        )


RULE = Rule("AI014", "redundant-matrix-work", Severity.NOTE, Consequence.MATRIX, _look, __doc__)
