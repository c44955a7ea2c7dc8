"""Many lanes are switched off where memory is accessed.

**When it is said.** A launch was run on paper (`inspect-kernel predict`), and of the lanes of its loads,
stores and copies in global memory at least a quarter is switched off: blocks that stand over the edge of a
tensor, or values that several lanes hold and one stores.

**What it is likely to cost.** The instructions are issued all the same; what such blocks compute is thrown
away.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, nothing

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

LEAST_SHARE = 0.25


def _look(prediction: Prediction) -> Iterator[Remark]:
    off, lanes = prediction.counters.masked_lanes, prediction.counters.memory_lanes
    if off and lanes and off >= LEAST_SHARE * lanes:
        yield Remark(
            f"{off:,} of {lanes:,} lanes of accesses to global memory are switched off ({off / lanes:.0%})",
            None,
        )


RULE = Rule("AI018", "lanes-switched-off", Severity.NOTE, Consequence.REST, nothing, __doc__, _look)
