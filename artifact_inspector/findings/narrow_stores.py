"""A store moves few bytes per instruction, because the IR cannot prove that more is safe.

A thread can store 16 bytes at once. The causes are those of narrow loads (AI006): unknown alignment, a stride that may
differ from 1, a mask that may differ between neighbours, addresses modulo a number.

**When it is reported.** As for loads (AI006): a store statement moves at most 4 bytes at a time and at least 16 in
total, and the limit is not the size of its tile or its layout.

**What it is likely to cost.** More instructions and more memory requests for the same bytes.

**What to do.** As for loads (AI006).
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import divisible
from artifact_inspector.findings.narrow_loads import find_narrow, has_narrow


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    if has_narrow(kernel, lambda accesses: accesses.stores):
        yield from find_narrow(kernel, kernel.store_widths, "store")


RULE = Rule(
    "AI022", "narrow-stores", Severity.WARNING, Consequence.OTHER, _look, __doc__,
    switches=lambda kernel: divisible(kernel, kernel.store_widths),
)  # fmt: skip
