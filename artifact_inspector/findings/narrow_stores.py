"""A store moves few bytes at a time, because the IR proves too little for more.

A thread can store 16 bytes at once. What keeps a load narrow keeps a store narrow too: an address that
nothing says is aligned, a stride that is not known to be 1, a mask that may part neighbours, addresses
taken modulo a number.

**When it is said.** As of loads (AI006): a store statement moves 4 bytes at a time or fewer, 16 or more in
all, and something other than the size of its tile or its layout limits it to that width.

**What it is likely to cost.** More instructions, and more requests to the memory, for the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import divisible
from artifact_inspector.findings.narrow_loads import find_narrow


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    yield from find_narrow(kernel, kernel.store_widths, "store")


RULE = Rule(
    "AI022",
    "narrow-stores",
    Severity.WARNING,
    Consequence.REST,
    _look,
    __doc__,
    switches=lambda kernel: divisible(kernel.store_widths),
)
