"""Registers are spilled to memory.

The kernel needs more registers than a thread can have. The others are written to memory and read back.

**When it is reported.** The cubin has spill stores or loads (`STL`, `LDL` of spill slots), or the AMDGCN metadata
counts spilled vector registers. Together they move at least 128 bytes per thread; LLVM's spills are assumed to be read
back once. Loops of machine code with spills are named, with their number per iteration. Less than 512 bytes in a
kernel without a loop is a note.

**What it is likely to cost.** Memory traffic and latency inside the kernel: once outside loops, in every iteration
inside them.

**What to do.** Use a smaller tile or more warps. Raise or remove `maxnreg`. On AMD, lower `waves_per_eu`. Keep fewer
tensors alive inside the loop.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import Switch, SwitchKind, more_warps, shallower
from artifact_inspector.model import EventKind, RegionKind

LEAST, MUCH = 128, 512
"""Bytes per thread, stored and read back: fewer are a few registers, served by the L1."""
MOST_REGISTERS = 255
"""Of a thread of NVIDIA's GPUs. Source: CUDA C++ Programming Guide, Compute Capabilities."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    resources = kernel.resources
    stores, reloads = resources.spill_bytes.value, resources.reload_bytes.value
    moved = (stores or 0) + ((stores or 0) if reloads is None else reloads)
    if moved < LEAST:
        return
    regions = () if kernel.last is None else kernel.last.regions
    is_paid_once = bool(regions) and all(region.kind is not RegionKind.LOOP for region in regions)
    per_trip = "".join(
        f". {region.id} spills or reloads {count} times per iteration"
        for region in regions
        if region.kind is RegionKind.LOOP
        and (count := region.count(EventKind.LOCAL_LOAD) + region.count(EventKind.LOCAL_STORE))
    )
    note = ". All spills are outside loops: each thread pays once" if is_paid_once else per_trip
    registers = "" if resources.registers.value is None else f" at {resources.registers.value} registers per thread"
    reload_note = "" if reloads is None else f", {reloads} bytes are reloaded"
    yield Remark(
        f"{stores} bytes per thread spill to memory{reload_note}{registers} ({resources.spill_bytes.source}){note}",
        None,
        is_minor=is_paid_once and moved < MUCH,
    )


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    limit = kernel.artifact.metadata.get("maxnreg")
    if isinstance(limit, int) and limit < MOST_REGISTERS:
        yield Switch(SwitchKind.OPTION, "maxnreg", MOST_REGISTERS)
    waves = kernel.artifact.metadata.get("waves_per_eu")
    if isinstance(waves, int) and waves > 1:  # a request for occupancy, which limits registers
        yield Switch(SwitchKind.OPTION, "waves_per_eu", 1)
    yield from more_warps(kernel)
    yield from shallower(kernel)


RULE = Rule("AI007", "register-spill", Severity.WARNING, Consequence.SPILLS, _look, __doc__, switches=_switches)
