"""Scalar registers are spilled to lanes of vector registers.

AMD's compiler writes a scalar without a register into one lane of a vector register, and reads it back from there. No
memory is involved, so the count of spilled bytes does not include it.

**When it is reported.** The AMDGCN metadata counts at least 32 spilled scalar registers, a third of what a wave has.

**What it is likely to cost.** A vector instruction (`v_writelane`, `v_readlane`) for each write and each use, in every
iteration of a loop. The vector registers for them may reduce the occupancy.

**What to do.** Use fewer values that are uniform across threads: pointers, strides, masks of guarded loads.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity

MANY = 32
LANES = 64
"""Scalars that one vector register holds (gfx9; half as many where a wave has 32 lanes)."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    spilled, scalar_registers = kernel.resources.scalar_spills, kernel.resources.scalar_registers
    count = spilled.value or 0
    if count < MANY:
        return
    lanes = LANES if kernel.artifact.target is None else kernel.artifact.target.warp_size
    available_note = "" if scalar_registers.value is None else f", of {scalar_registers.value} that a wave has"
    yield Remark(
        f"{count} scalar registers are spilled to lanes of vector registers{available_note} ({spilled.source}): "
        f"{-(-count // lanes)} vector registers or more hold them",
        None,
    )


RULE = Rule("AI021", "scalar-spill", Severity.WARNING, Consequence.SPILLS, _look, __doc__)
