"""Registers or shared memory leave room for less than half of the warps.

A multiprocessor could hold more warps of a leaner kernel.

**When it is said.** The occupancy on the kernel's target is known, it is less than a half, and registers or
shared memory alone allow no more blocks.

**What it is likely to cost.** Fewer warps to switch to while one waits. A kernel that keeps enough loads in
flight by itself (a deep pipeline, clustered loads) may need no more.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Remark, Rule, Severity

ENOUGH = 0.5


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    held, taken = kernel.occupancy, kernel.resources
    if held is None or not held.blocks or held.share is None or held.share >= ENOUGH:
        return
    limits = [name for name in held.limited_by if name in ("registers", "shared memory")]
    if not limits:
        return
    used = {
        "registers": f"{taken.registers.value} registers per thread",
        "shared memory": f"{taken.shared.value} bytes of shared memory",
    }
    why = " and ".join(used[name] for name in limits)
    other = min((most for name, most in held.allowed.items() if name not in held.limited_by), default=None)
    more = "" if other is None else f"; everything else would allow {other}"
    yield Remark(
        f"{held.warps} of {held.warps_at_most} warps per {held.unit}: {why} allow {held.blocks} "
        f"block{'s' if held.blocks != 1 else ''}{more}",
        None,
    )


RULE = Rule("AI008", "occupancy-limited", Severity.NOTE, _look, __doc__)
