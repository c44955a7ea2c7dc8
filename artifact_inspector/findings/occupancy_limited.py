"""Registers or shared memory leave room for less than half of the warps.

A multiprocessor could hold more warps of a leaner kernel.

**When it is said.** The occupancy on the kernel's target is known, it is less than a half, and registers or
shared memory alone allow no more blocks; one more block fits with a quarter less of them; and nothing
else hides the latency of memory: a loop of matrix work that runs ahead with its loads, or whose warps are
specialised, is meant to hold few warps.

**What it is likely to cost.** Fewer warps to switch to while one waits. A kernel that keeps enough loads in
flight by itself (clustered loads, a deep prefetch) may need no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import Switch, fewer_registers, shallower
from artifact_inspector.model import Resource, Verdict
from artifact_inspector.model.figure import Figure

ENOUGH = 0.5
WITHIN_REACH = 0.75
"""Of what is used: more than a quarter is another kernel."""
HIDING = frozenset({Verdict.PIPELINED, Verdict.PARTLY_PIPELINED, Verdict.WARP_SPECIALISED})


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    held, taken = kernel.occupancy, kernel.resources
    if held is None or not held.blocks or held.share is None or held.share >= ENOUGH or _hides(kernel):
        return
    limits = [name for name in held.limited_by if name in (Resource.REGISTERS, Resource.SHARED)]
    shed = _for_one_more(kernel, held)
    if not limits or shed is None:
        return
    used = {
        Resource.REGISTERS: f"{taken.registers.value} registers per thread",
        Resource.SHARED: f"{taken.shared.value} bytes of shared memory",
    }
    why = " and ".join(used[name] for name in limits)
    yield Remark(
        f"{held.warps} of {held.warps_at_most} warps per {held.unit}: {why} allow {held.blocks} "
        f"block{'s' if held.blocks != 1 else ''}; {shed} would allow {held.blocks + 1}",
        None,
    )


def _hides(kernel: KernelFacts) -> bool:
    """True where the kernel's main loop hides the latency of its loads behind matrix work by itself."""
    region = kernel.principal_region
    return region is not None and region.matrix > 0 and region.verdict in HIDING


def _for_one_more(kernel: KernelFacts, held: Occupancy) -> str | None:
    """What a block may take for one more of them to fit; None where that is out of reach."""
    target, taken = kernel.artifact.target, kernel.resources
    unit = None if target is None else target.limits.multiprocessor
    if unit is None:
        return None
    parts = []
    if Resource.REGISTERS in held.limited_by:
        fewer = _most(kernel, held, taken.registers, unit.register_unit, Resource.REGISTERS)
        parts.append(None if fewer is None else f"{fewer} registers")
    if Resource.SHARED in held.limited_by:
        fewer = _most(kernel, held, taken.shared, unit.shared_unit, Resource.SHARED)
        parts.append(None if fewer is None else f"{fewer} bytes")
    known = [part for part in parts if part is not None]
    return " and ".join(known) if len(known) == len(parts) else None


def _most(kernel: KernelFacts, held: Occupancy, figure: Figure, step: int, name: Resource) -> int | None:
    """The most of one resource that lets one more block fit; None where that is out of reach."""
    used, taken = figure.value or 0, kernel.resources
    for value in range((used - 1) // step * step, int(used * WITHIN_REACH), -step):
        other = figure._replace(value=value)
        is_register = name is Resource.REGISTERS
        leaner = replace(taken, registers=other) if is_register else replace(taken, shared=other)
        found = replace(kernel, resources=leaner).occupancy
        if found is not None and found.allowed.get(name, 0) > (held.blocks or 0):
            return value
    return None


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    held, target = kernel.occupancy, kernel.artifact.target
    unit = None if target is None else target.limits.multiprocessor
    if held is None or unit is None:
        return
    if Resource.REGISTERS in held.limited_by:
        fewer = _most(kernel, held, kernel.resources.registers, unit.register_unit, Resource.REGISTERS)
        yield from () if fewer is None else fewer_registers(kernel, fewer)
    if Resource.SHARED in held.limited_by:
        yield from shallower(kernel)


RULE = Rule(
    "AI008", "occupancy-limited", Severity.NOTE, Consequence.OCCUPANCY, _look, __doc__, switches=_switches
)
