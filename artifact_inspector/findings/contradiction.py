"""Two files of one kernel say different things of one fact.

The number of warps, the target, the shared memory: metadata, text and binary should agree.

**When it is said.** The metadata, the text and the binary are compared; each figure that differs is one
finding, with both places. The report shows both and averages neither.

**What it is likely to mean.** The entry was put together from two compiles, edited, or written by another
version than it claims; or this tool reads one of the two wrongly. Figures that rest on the fact are in
doubt.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for found in kernel.contradictions:
        yield Remark(f"{found.sentence} ({found.places[0]}; {found.places[1]})", None)


RULE = Rule("AI012", "contradiction", Severity.WARNING, Consequence.REST, _look, __doc__)
