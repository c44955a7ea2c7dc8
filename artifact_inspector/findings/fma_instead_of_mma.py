"""A dot is computed by scalar multiply-adds, although the target has matrix instructions.

The report shows `MMA 0, FMA n`: n multiply-adds in place of matrix instructions.

**When it is reported.** The tensor-level IR has a dot in a region, the last stage has no matrix instruction there, and
the target has a matrix unit. The reason is named where the IR shows it: the types, the requested precision, the tile,
or a Triton version that does not use the unit.

**What it is likely to cost.** A multiple of the time: a matrix unit does many times the multiply-adds of the scalar
lanes per cycle.

**What to do.** Pass `input_precision="tf32"` for fp32 operands on a target with TF32, or convert the operands to fp16
or bf16. Make each side of the tile at least 16.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.matrix.work_balance import BalanceReason
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, describe_region, find_dots
from artifact_inspector.findings._switch import Switch, SwitchKind
from artifact_inspector.model import MatrixUnit


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for name, generation in kernel.generations.items():
        identity = kernel.identities.get(name)
        if (
            identity is None
            or identity.reason is not BalanceReason.SCALAR
            or generation.newest in (None, MatrixUnit.NONE)
        ):
            continue
        stage, lines, sources = find_dots(kernel, name)
        if not lines:
            continue
        reason = f": {generation.reason}" if generation.reason else ""
        yield Remark(
            f"{describe_region(name)}: the dot runs as scalar multiply-adds ({generation.description}), "
            f"but {kernel.artifact.target} has {generation.newest}{reason}",
            stage,
            lines,
            sources,
        )


def _switches(kernel: KernelFacts) -> Iterator[Switch]:
    """TF32, on targets whose matrix unit has it."""
    rates = None if kernel.artifact.target is None else kernel.artifact.target.gpu.rates
    if rates is not None and "tf32" in rates.matrix:
        yield Switch(SwitchKind.PRECISION, "input_precision", "tf32")


RULE = Rule("AI004", "fma-instead-of-mma", Severity.WARNING, Consequence.MATRIX, _look, __doc__, switches=_switches)
