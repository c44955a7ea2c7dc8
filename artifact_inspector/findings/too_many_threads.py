"""A block has more threads than the target allows.

The launch fails.

**When it is reported.** The warps of a block times the lanes of a warp exceed the limit of the target.

**What it is likely to cost.** The launch returns an error. LLVM writes the limit into the file, so its register counts
are those of a smaller block.

**What to do.** Use fewer warps (`num_warps`).
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import Switch, SwitchKind
from artifact_inspector.hardware.gpu import MAX_THREADS_PER_BLOCK


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    warps, target = kernel.resources.warps_per_block, kernel.artifact.target
    if target is None or warps.value is None or warps.value * target.warp_size <= MAX_THREADS_PER_BLOCK:
        return
    requested = f"{warps.value * target.warp_size} threads ({warps.value} warps of {target.warp_size})"
    yield Remark(
        f"a block requests {requested}, but {target} allows {MAX_THREADS_PER_BLOCK}: the launch fails ({warps.source})",
        None,
    )


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    target = kernel.artifact.target
    if target is not None:
        yield Switch(SwitchKind.OPTION, "num_warps", MAX_THREADS_PER_BLOCK // target.warp_size)


RULE = Rule("AI020", "too-many-threads", Severity.WARNING, Consequence.LAUNCH, _look, __doc__, switches=_switches)
