"""Lanes of a warp touch more global memory than they use.

Memory moves in sectors of 32 bytes. Lanes with distant addresses take one sector each.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), and a source line requests at least twice
the sectors that its bytes would fill if they were contiguous. These are at least a tenth of all sectors.

**What it is likely to cost.** The L1 and the L2 move unused bytes, and so does device memory unless other warps use
them.

**What to do.** Let neighbouring lanes access neighbouring elements: index the contiguous dimension with `tl.arange`,
as the last one of the tile. To use the tile the other way round, load it so and transpose it (`tl.trans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import LinePrediction, Prediction

LEAST_FACTOR, LEAST_SHARE = 2, 0.1


def _look(prediction: Prediction) -> Iterator[Remark]:
    total = sum(line.sectors or 0 for line in prediction.by_line)
    lines_by_source: dict[str, list[LinePrediction]] = {}
    for line in prediction.by_line:
        if line.sectors:
            lines_by_source.setdefault(line.source or "the kernel", []).append(line)
    for source, lines in lines_by_source.items():
        sectors = sum(line.sectors or 0 for line in lines)
        ideal = sum(line.sectors_ideal or 0 for line in lines)
        if not ideal or sectors < LEAST_FACTOR * ideal or sectors - ideal < LEAST_SHARE * total:
            continue
        yield Remark(
            f"{source}: {sectors:,} sectors of global memory instead of {ideal:,}: "
            f"{ideal / sectors:.0%} of the moved bytes are used",
            Stage.SASS,
            tuple(line.line for line in lines),
            tuple(dict.fromkeys(line.source for line in lines if line.source)),
        )


RULE = Rule("AI017", "uncoalesced-access", Severity.WARNING, Consequence.OTHER, report_nothing, __doc__, _look)
