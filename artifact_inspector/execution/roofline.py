"""Roofline: whether memory or arithmetic limits a launch, if everything else were perfect.

Source: Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (CACM 52, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.execution.launch_counters import Counters
from artifact_inspector.hardware.peaks import Peaks

_PEAK_TYPE_OF = {"bf16": "fp16", "fp6": "fp8"}
_PEAK_TYPES = ("fp4", "fp8", "fp16", "tf32", "fp32")


@dataclass(frozen=True, slots=True)
class Roofline:
    """A launch under the roofline of one GPU."""

    gpu: str
    peak_type: str
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
    def is_memory_bound(self) -> bool:
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
    main_type = max(kinds, key=lambda kind: kinds[kind])
    peak_type = _PEAK_TYPE_OF.get(main_type, main_type)
    peak = peaks.peak_for_type(peak_type) if peak_type in _PEAK_TYPES else None
    return None if peak is None else Roofline(peaks.product, peak[0], intensity, peak[1], peaks.bandwidth)
