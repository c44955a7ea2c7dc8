"""The last wave of CTAs leaves most of the GPU idle.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), its CTAs take two to eight
waves, and the last wave is less than half full.

**What it is likely to cost.** The last wave takes as long as a full one if all CTAs take equally long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from artifact_inspector.findings._rule import Consequence, Remark, Rule, Severity, report_nothing

if TYPE_CHECKING:
    from artifact_inspector.execution.prediction import Prediction

MOST_WAVES = 8


def _look(prediction: Prediction) -> Iterator[Remark]:
    order = prediction.cta_order
    if order is None or not 2 <= order.wave_count <= MOST_WAVES:
        return
    last = order.waves[-1].ctas
    if 2 * last < order.ctas_per_wave:
        size = f"{order.ctas_per_wave} CTAs ({order.basis})"
        yield Remark(f"the last of {order.wave_count} waves has {last} of {size}", None)


RULE = Rule("AI019", "tail-wave", Severity.NOTE, Consequence.OTHER, report_nothing, __doc__, _look)
