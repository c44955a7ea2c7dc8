"""Registers or shared memory limit the occupancy to less than half.

A multiprocessor could run more warps of a kernel that takes less.

**When it is reported.** The occupancy is known and below one half, and only one of registers and shared memory limits
it. One more block adds at least a third more warps at a small price: an eighth less of the resource for a third more
warps, three sixteenths for half as many more, a quarter for twice as many. Not reported are kernels that hide latency
otherwise: pipelined or warp-specialised loops with matrix work.

**What it is likely to cost.** Fewer warps to switch to during a wait. A kernel with enough loads in flight (clustered
loads, a deep prefetch) may need no more.

**What to do.** Limit the registers (`maxnreg`, on AMD `waves_per_eu`), or use a smaller tile. For shared memory, lower
`num_stages`. `findings --try` compiles the limits and reports spills.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from math import ceil

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import Switch, fewer_registers, shallower
from artifact_inspector.model import OrderVerdict, Resource

SUFFICIENT = 0.5
MIN_GAIN = Fraction(1, 3)
"""Of the warps: a smaller gain makes no measurable difference."""
PRICE = Fraction(3, 8)
"""Of the used amount, for each doubling of the blocks."""
WITHIN_REACH = Fraction(1, 4)
"""Of the used amount: saving more takes a different kernel."""
LATENCY_HIDING = frozenset({OrderVerdict.PIPELINED, OrderVerdict.PARTLY_PIPELINED, OrderVerdict.WARP_SPECIALISED})


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    occupancy, resources, region = kernel.occupancy, kernel.resources, kernel.principal_region
    if occupancy is None or not occupancy.blocks or occupancy.ratio is None or occupancy.ratio >= SUFFICIENT:
        return
    if region is not None and region.matrix > 0 and region.verdict in LATENCY_HIDING:
        return  # matrix work hides the latency of its loads
    fewer = _limit_for_one_more(kernel, occupancy)
    if fewer is None:
        return
    used, allowed = (
        (f"{resources.registers.value} registers per thread", f"{fewer} registers")
        if occupancy.limited_by == (Resource.REGISTERS,)
        else (f"{resources.shared.value} bytes of shared memory", f"{fewer} bytes")
    )
    yield Remark(
        f"{occupancy.warps} of {occupancy.max_warps} warps per {occupancy.unit}: {used} allow {occupancy.blocks} "
        f"block{'s' if occupancy.blocks != 1 else ''}; {allowed} would allow {occupancy.blocks + 1}",
        None,
    )


def _limit_for_one_more(kernel: KernelFacts, occupancy: Occupancy) -> int | None:
    """The most of the one resource that limits for one more block to fit; None if the gain is too small."""
    target, resources = kernel.artifact.target, kernel.resources
    unit = None if target is None else target.limits.multiprocessor
    if unit is None or not occupancy.blocks or Fraction(1, occupancy.blocks) < MIN_GAIN:
        return None
    if occupancy.limited_by == (Resource.REGISTERS,):
        figure, step = resources.registers, unit.register_unit
    elif occupancy.limited_by == (Resource.SHARED,):
        figure, step = resources.shared, unit.shared_unit
    else:
        return None
    used = figure.value or 0
    least = used * (1 - min(WITHIN_REACH, PRICE / occupancy.blocks))
    for value in range((used - 1) // step * step, ceil(least) - 1, -step):
        smaller = figure._replace(value=value)
        reduced = (
            replace(resources, registers=smaller)
            if figure is resources.registers
            else replace(resources, shared=smaller)
        )
        occupancy_with = replace(kernel, resources=reduced).occupancy
        if occupancy_with is not None and (occupancy_with.blocks or 0) > occupancy.blocks:
            return value
    return None


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    occupancy = kernel.occupancy
    fewer = None if occupancy is None else _limit_for_one_more(kernel, occupancy)
    if occupancy is None or fewer is None:
        return
    yield from (fewer_registers(kernel, fewer) if occupancy.limited_by == (Resource.REGISTERS,) else shallower(kernel))


RULE = Rule("AI008", "occupancy-limited", Severity.NOTE, Consequence.OCCUPANCY, _look, __doc__, switches=_switches)
