"""Lanes of a warp touch more global memory than they use.

Memory moves in sectors of 32 bytes. Lanes with distant addresses take one sector each.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), and a source line requests at
least twice the sectors that its bytes would fill if they were contiguous. These are at least a tenth of
all sectors.

**What it is likely to cost.** The L1 and the L2 move unused bytes, and so does device memory unless other
warps use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, nothing
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import LinePrediction, Prediction

LEAST_FACTOR, LEAST_SHARE = 2, 0.1


def _look(prediction: Prediction) -> Iterator[Remark]:
    total = sum(line.sectors or 0 for line in prediction.by_line)
    places: dict[str, list[LinePrediction]] = {}
    for line in prediction.by_line:
        if line.sectors:
            places.setdefault(line.source or "the kernel", []).append(line)
    for place, lines in places.items():
        found = sum(line.sectors or 0 for line in lines)
        ideal = sum(line.sectors_ideal or 0 for line in lines)
        if not ideal or found < LEAST_FACTOR * ideal or found - ideal < LEAST_SHARE * total:
            continue
        yield Remark(
            f"{place}: {found:,} sectors of global memory where {ideal:,} hold the bytes "
            f"({ideal / found:.0%} of what is moved is used)",
            Stage.SASS,
            tuple(line.line for line in lines),
            tuple(dict.fromkeys(line.source for line in lines if line.source)),
        )


RULE = Rule("AI017", "uncoalesced-access", Severity.WARNING, Consequence.OTHER, nothing, __doc__, _look)
