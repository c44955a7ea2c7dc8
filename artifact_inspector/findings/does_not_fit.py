"""No block fits on a multiprocessor of the target.

A launch fails.

**When it is reported.** The occupancy on the target is 0 blocks. The message names the exceeded resource.

**What it is likely to cost.** The launch returns an error. An autotuner silently skips such a configuration.

**What to do.** Take less of the named resource: a smaller tile or a lower `num_stages` for shared memory, a smaller
tile or fewer warps for registers.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity
from artifact_inspector.findings._switch import shallower
from artifact_inspector.model import Resource


def _look(kernel: KernelFacts) -> Iterator[Remark]:
    occupancy, target = kernel.occupancy, kernel.artifact.target
    if occupancy is None or target is None or occupancy.blocks != 0:
        return
    if Resource.WARPS in occupancy.limited_by and Resource.SHARED not in occupancy.limited_by:
        return  # reported as too-many-threads
    message = f"no block fits on {target}, limited by {' and '.join(occupancy.limited_by)}"
    limit = target.limits.shared_per_block
    if Resource.SHARED in occupancy.limited_by and limit is not None:
        message += f" ({kernel.resources.shared.value} bytes requested, {limit} available)"
    yield Remark(message, None)


RULE = Rule("AI013", "does-not-fit", Severity.WARNING, Consequence.FIT, _look, __doc__, switches=shallower)
