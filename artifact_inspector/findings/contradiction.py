"""Two files of one kernel disagree on a fact.

Metadata, text and binary should agree on the number of warps, the target and the shared memory.

**When it is reported.** The figures of the metadata, the text and the binary are compared. Each difference is one
finding, with both sources. The report shows both values.

**What it is likely to mean.** The entry was combined from two compiles, edited, or written by another version of
Triton than it claims. Or this tool misreads one of the files. Figures that depend on the fact are in doubt.

**What to do.** Compile the kernel again into an empty cache. If the files still disagree, report it with
`inspect-kernel repro`.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for contradiction in kernel.contradictions:
        yield Remark(f"{contradiction.message} ({contradiction.locations[0]}; {contradiction.locations[1]})", None)


RULE = Rule("AI012", "contradiction", Severity.WARNING, Consequence.OTHER, _look, __doc__)
