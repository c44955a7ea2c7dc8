"""Where a launch stands under the roof of a GPU: what bounds it, were everything else perfect.

Source: Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (CACM 52, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.execution.totals import Counters
from artifact_inspector.hardware.peaks import Peaks

_COUNTED_AS = {"bf16": "fp16", "fp6": "fp8"}
_UNITS = ("fp4", "fp8", "fp16", "tf32", "fp32")


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch under the roof of one product."""

    product: str
    unit: str
    """The type whose peak bounds its arithmetic."""
    intensity: float
    """FLOP for each distinct byte."""
    peak: float
    """FLOP/s."""
    bandwidth: float
    """Bytes/s."""

    @property
    def ridge(self) -> float:
        """FLOP for each byte where the roof turns."""
        return self.peak / self.bandwidth

    @property
    def is_bound_by_memory(self) -> bool:
        """Left of the ridge; arithmetic bounds it right of it."""
        return self.intensity <= self.ridge

    @property
    def attainable(self) -> float:
        """FLOP/s under the roof: no launch of this intensity can do more."""
        return min(self.peak, self.intensity * self.bandwidth)


def find_roofline(counters: Counters, peaks: Peaks | None) -> Roofline | None:
    """The place of a launch; None where its intensity or the product's peak is not known."""
    intensity, kinds = counters.intensity, counters.flop or {}
    if intensity is None or peaks is None or not kinds:
        return None
    main = max(kinds, key=lambda kind: kinds[kind])
    unit = _COUNTED_AS.get(main, main)
    bound = peaks.flops_of(unit) if unit in _UNITS else None
    return None if bound is None else Roofline(peaks.product, bound[0], intensity, bound[1], peaks.bandwidth)
