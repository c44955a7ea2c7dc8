"""The last wave of CTAs leaves most of the GPU idle.

**When it is reported.** A launch was simulated (`inspect-kernel predict`), its CTAs take at most eight waves, and the
last wave is less than half full. It may be the only one.

**What it is likely to cost.** The last wave takes as long as a full one if all CTAs take equally long.

**What to do.** Choose a tile with which CTAs fill whole waves, split the reduction over CTAs (split-K), or write a
persistent kernel.
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
    if order is None or order.wave_count > MOST_WAVES:
        return
    last = order.waves[-1].ctas
    if 2 * last < order.ctas_per_wave:
        size = f"{order.ctas_per_wave} CTAs ({order.basis})"
        wave = f"the last of {order.wave_count} waves" if order.wave_count > 1 else "the only wave"
        yield Remark(f"{wave} has {last} of {size}", None)


RULE = Rule("AI019", "tail-wave", Severity.NOTE, Consequence.OTHER, report_nothing, __doc__, _look)
