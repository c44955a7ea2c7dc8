"""A load moves few bytes at a time, because the IR proves too little for more.

A thread can load 16 bytes at once. An address that nothing says is aligned, a stride that is not known to
be 1, a mask that may part neighbours, addresses taken modulo a number: each of them forbids it.

**When it is said.** A load statement is narrower than 16 bytes at the last stage, and something other than
the size of its tile or its layout limits it to that width. Bytes, width and the argument in question are
named.

**What it is likely to cost.** More instructions for the same bytes; below 4 bytes also no asynchronous
copy, hence no pipelining on NVIDIA.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.access.load_widths import Reason
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Remark, Rule, Severity

WIDEST = 16
OF_THE_TILE = frozenset({Reason.TILE, Reason.LAYOUT, Reason.SCALAR})


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    stage = next(iter(kernel.stages), None)
    for load in kernel.widths:
        causes = [cause for cause in load.causes if cause.reason not in OF_THE_TILE]
        if load.width is None or load.width >= WIDEST or not causes:
            continue
        name = f"{load.name} " if load.name else "a load "
        why = "; ".join(
            cause.reason.value + (f" ({cause.name})" if cause.name else "") for cause in dict.fromkeys(causes)
        )
        count = sum(load.widths.values())
        times = f" ({count} instructions)" if count > 1 else ""
        yield Remark(
            f"{name}moves {load.width} B per thread at a time{times}: {why}",
            stage,
            (load.line, *(cause.line for cause in causes if cause.line != load.line)),
            () if load.source is None else (load.source,),
        )


RULE = Rule("AI006", "narrow-loads", Severity.WARNING, _look, __doc__)
