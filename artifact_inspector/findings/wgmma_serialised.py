"""A loop waits for all of its wgmma in every iteration.

After `wgmma.wait_group 0` nothing is left in flight: the tensor cores and the rest of the loop take turns.

**When it is said.** A loop that issues `wgmma` holds a `wgmma.wait_group` of depth 0 at the last stage.

**What it is likely to cost.** The matrix unit idles while the loop computes on the result and issues the
next. Where the result is needed in the same iteration (attention's softmax) the wait cannot go; overlap
then has to come from other warps.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, dots_of
from artifact_inspector.model import RegionKind, WaitPurpose


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    for region in last.regions:
        work = last.work.get(region.id)
        if work is None or not work.matrix or region.kind is not RegionKind.LOOP:
            continue
        waits = [w for w in last.waits_in(region.id) if w.purpose is WaitPurpose.MATRIX]
        # Beside a wait that leaves groups in flight, one of 0 stands on a path of its own (an epilogue).
        if waits and all(wait.depth == 0 for wait in waits):
            yield Remark(
                f"{region.id}: {waits[0].written(0)} leaves no wgmma in flight behind it",
                last.stage,
                tuple(wait.line for wait in waits),
                dots_of(kernel, region.id)[2],
            )


RULE = Rule("AI010", "wait-in-loop-serialises-wgmma", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__)
