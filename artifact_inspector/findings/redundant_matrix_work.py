"""The matrix instructions do more than the dots ask for.

The tile is smaller than an instruction and is filled up, or several warps compute the same part.

**When it is said.** `count × flop × issuers` of the last stage is more than `2·M·N·K` of the dots, and the
layout explains by how much.

**What it is likely to cost.** The factor that is named, in matrix work; where memory is the limit it costs
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.matrix.identity import Reason
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, dots_of


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for name, identity in kernel.identities.items():
        if identity.reason is Reason.REDUNDANT:
            stage, lines, sources = dots_of(kernel, name)
            yield Remark(f"{name}: {identity.words}", stage, lines, sources)


RULE = Rule("AI014", "redundant-matrix-work", Severity.NOTE, Consequence.MATRIX, _look, __doc__)
