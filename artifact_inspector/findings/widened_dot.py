"""A dot multiplies wider elements than its operands are loaded with.

The program converts the operands before the product, as in `tl.dot(a.to(tl.float32), b.to(tl.float32))`.

**When it is reported.** In the first tensor-level IR, both operands of a dot are loaded with fewer bits than it
multiplies, and the matrix unit of the target multiplies the loaded type at least 1.5 times as fast. It is a note if
one operand is computed, as the probabilities of an attention are: it would have to be rounded.

**What it is likely to cost.** The ratio of the rates, at most; twice the shared memory for the operands, and their
conversion in every iteration.

**What to do.** Pass the operands as they are loaded: `tl.dot(a, b)` sums in fp32 anyway. Round a computed operand with
`.to(v.dtype)` if the accuracy allows it.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.matrix.generation import FIRST_LAID_OUT_CAPABILITY
from artifact_inspector.analysis.matrix.widened_operands import WidenedDot
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.hardware.products import RATE_NAMES
from artifact_inspector.model import Vendor

LEAST_GAIN = 1.5
ALL_BY_FMA = (3, 4)
"""From this release on, dots of GPUs without `cp.async` become multiply-adds; 3.2 had mma.sync for sm_75."""


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    for dot in kernel.widened_dots:
        gain = _gain(kernel, dot)
        if gain is not None and gain < LEAST_GAIN:
            continue
        faster = "" if gain is None else f": {kernel.artifact.target} multiplies {dot.loaded} {gain:.3g} times as fast"
        loaded = "one operand is loaded" if dot.is_one_computed else "its operands are loaded"
        yield Remark(
            f"the dot multiplies {dot.multiplied}, but {loaded} as {dot.loaded}{faster}",
            next(iter(kernel.stages), None),
            (dot.line,),
            () if dot.source is None else (dot.source,),
            is_minor=dot.is_one_computed,
        )


def _gain(kernel: KernelFacts, dot: WidenedDot) -> float | None:
    """How many times as fast the target multiplies the loaded type; None if a rate is unknown."""
    target, last = kernel.artifact.target, kernel.last
    rates = None if target is None else target.gpu.rates
    if rates is None or last is None or target is None:
        return None
    version = kernel.artifact.triton_version
    is_old = target.arch.vendor is Vendor.NVIDIA and target.arch.number < FIRST_LAID_OUT_CAPABILITY
    if is_old and version is not None and version.since(ALL_BY_FMA):  # whatever the dots multiply
        return 0.0
    works = [work for region in last.work.values() for work in region.matrix if dot.source in work.sources]
    types = {work.matrix.operands[0] for work in works if work.matrix is not None}
    multiplied = next(iter(types), dot.multiplied) if len(types) < 2 else dot.multiplied
    rate = rates.matrix.get(RATE_NAMES.get(multiplied, multiplied)) if works else rates.fma32
    narrow = rates.matrix.get(RATE_NAMES.get(dot.loaded, dot.loaded), 0)
    return None if rate is None else narrow / rate


RULE = Rule("AI026", "widened-dot", Severity.WARNING, Consequence.MATRIX, _look, __doc__)
