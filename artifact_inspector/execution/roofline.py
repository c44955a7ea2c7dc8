"""Roofline: whether memory or arithmetic limits a launch, if everything else were perfect.

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
    """A launch under the roofline of one GPU."""

    product: str
    unit: str
    """The type whose peak limits its arithmetic."""
    intensity: float
    """FLOP per distinct byte."""
    peak: float
    """FLOP/s."""
    bandwidth: float
    """Bytes/s."""

    @property
    def ridge(self) -> float:
        """FLOP per byte at the ridge point."""
        return self.peak / self.bandwidth

    @property
    def is_bound_by_memory(self) -> bool:
        """Whether it is left of the ridge point; right of it, arithmetic is the limit."""
        return self.intensity <= self.ridge

    @property
    def attainable(self) -> float:
        """FLOP/s under the roofline, the upper limit at this intensity."""
        return min(self.peak, self.intensity * self.bandwidth)


def find_roofline(counters: Counters, peaks: Peaks | None) -> Roofline | None:
    """The roofline of a launch; None if its intensity or the peak of the GPU is unknown."""
    intensity, kinds = counters.intensity, counters.flop or {}
    if intensity is None or peaks is None or not kinds:
        return None
    main = max(kinds, key=lambda kind: kinds[kind])
    unit = _COUNTED_AS.get(main, main)
    bound = peaks.flops_of(unit) if unit in _UNITS else None
    return None if bound is None else Roofline(peaks.product, bound[0], intensity, bound[1], peaks.bandwidth)
