"""Registers are kept in memory.

The kernel needs more than it may have; what does not fit is written to memory and read back.

**When it is said.** The cubin has spill stores or loads (`STL`, `LDL` of spill slots), or the AMDGCN
metadata counts spilled vector registers.

**What it is likely to cost.** Memory traffic and latency inside the kernel. A few bytes outside the loop
cost little; in the loop they are paid in every iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import Switch, SwitchKind, more_warps, shallower

MOST_REGISTERS = 255
"""Of a thread of NVIDIA's GPUs. Source: CUDA C++ Programming Guide, Compute Capabilities."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    taken = kernel.resources
    stores, reloads = taken.spill_bytes.value, taken.reload_bytes.value
    if not stores and not reloads:
        return
    registers = "" if taken.registers.value is None else f" at {taken.registers.value} registers per thread"
    read = "" if reloads is None else f", {reloads} bytes read back"
    yield Remark(
        f"{stores} bytes of registers per thread are spilled{read}{registers} ({taken.spill_bytes.source})",
        None,
    )


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    most = kernel.artifact.metadata.get("maxnreg")
    if isinstance(most, int) and most < MOST_REGISTERS:
        yield Switch(SwitchKind.OPTION, "maxnreg", MOST_REGISTERS)
    yield from more_warps(kernel)
    yield from shallower(kernel)


RULE = Rule(
    "AI007", "register-spill", Severity.WARNING, Consequence.SPILLS, _look, __doc__, switches=_switches
)
