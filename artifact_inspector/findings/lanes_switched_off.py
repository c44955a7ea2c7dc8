"""Many lanes are inactive where memory is accessed.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), and at least a quarter of the lanes of its
global loads, stores and copies are inactive. Causes are blocks that pass the edge of a tensor, and values that several
lanes hold and one lane stores. Accesses without any active lane of their CTA do not count: the last iterations of a
pipeline execute such copies.

**What it is likely to cost.** The instructions are issued all the same. The results of inactive lanes are discarded.

**What to do.** Choose a block that fits the tensor, and fewer warps for small tiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

LEAST_SHARE = 0.25


def _look(prediction: Prediction) -> Iterator[Remark]:
    off, lanes = prediction.counters.masked_lanes, prediction.counters.memory_lanes
    if off and lanes and off >= LEAST_SHARE * lanes:
        yield Remark(f"{off:,} of {lanes:,} lanes of global memory accesses are inactive ({off / lanes:.0%})", None)


RULE = Rule("AI018", "lanes-switched-off", Severity.NOTE, Consequence.OTHER, report_nothing, __doc__, _look)
