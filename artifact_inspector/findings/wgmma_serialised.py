"""A loop waits for all of its wgmma in every iteration.

After `wgmma.wait_group 0` nothing is in flight: the tensor cores and the rest of the loop alternate.

**When it is reported.** All `wgmma` waits of a loop have depth 0 at the last stage, and nothing else in the loop needs
the wait. A float operation might use the result (the softmax of attention), and a store to shared memory might write
the next operand (unpacked weights): loops with either are not reported. Neither are loops whose wgmma runs while they
wait for their copies.

**What it is likely to cost.** The matrix unit idles between the wait and the next `wgmma`. One or more `wgmma` in
flight would keep it busy.

**What to do.** The message says what fits. With fewer than three stages, `num_stages=3` may keep one in flight. A
partition of a warp-specialised kernel waits before it hands its buffer back, which the compiler decides. Otherwise look
for integer operations that use the accumulator inside of the loop, and move them behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, find_dots
from artifact_inspector.model import EventKind, RegionKind, WaitPurpose

NEEDING = (EventKind.FLOAT, EventKind.SHARED_STORE)
"""What may need the result of a `wgmma`, or the memory that it reads."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    last = kernel.last
    if last is None:
        return
    lines_by_region: dict[str, tuple[int, ...]] = {}
    wait_text = ""
    for region in last.regions:
        work = last.work.get(region.id)
        if work is None or region.kind is not RegionKind.LOOP or any(map(region.count, NEEDING)):
            continue
        if region.matrix_in_flight:
            continue
        waits = [w for w in last.waits_in(region.id) if w.purpose is WaitPurpose.MATRIX]
        # With another wait that leaves groups in flight, a wait of 0 is on a separate path (an epilogue).
        if work.matrix and waits and all(wait.depth == 0 for wait in waits):
            lines_by_region[region.id] = tuple(wait.line for wait in waits)
            wait_text = waits[0].format_with_depth(0)
    if lines_by_region:
        sources = dict.fromkeys(source for name in lines_by_region for source in find_dots(kernel, name)[2])
        yield Remark(
            f"{', '.join(lines_by_region)}: {wait_text} leaves no wgmma in flight{_explain(kernel)}",
            last.stage,
            tuple(line for lines in lines_by_region.values() for line in lines),
            tuple(sources),
        )


def _explain(kernel: KernelFacts) -> str:
    """The reason that fits the kernel, if one is known."""
    if kernel.partitions:
        return "; the partition waits for it before it hands its buffer back"
    stages = kernel.num_stages
    return f"; num_stages is {stages}, 3 or more may keep one in flight" if stages in (1, 2) else ""


RULE = Rule("AI010", "wait-in-loop-serialises-wgmma", Severity.NOTE, Consequence.IN_FLIGHT, _look, __doc__)
