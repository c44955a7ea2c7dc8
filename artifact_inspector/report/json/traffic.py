"""What a matrix product moves, as JSON: `bandwidth --json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from artifact_inspector.analysis.access.traffic import Traffic
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import shape

__all__ = ["BandwidthDocument", "traffic_document"]

GB = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthDocument(Document):
    """What a matrix product moves: `inspect-kernel bandwidth MxK@KxN --json`."""

    document: Literal["bandwidth"] = "bandwidth"
    traffic: Traffic
    seconds: float | None
    """The time that was given."""
    bytes_per_second: float | None
    flop_per_second: float | None
    share_of_peak: float | None
    """Of the bandwidth that was given as the peak."""


shape(Traffic, "m n k bytes=total bytes_of=bytes flop", without="bits")
shape(BandwidthDocument, inline="traffic")


def traffic_document(traffic: Traffic, seconds: float | None, peak: float | None) -> BandwidthDocument:
    """The count, and what a time makes of it.

    Args:
        peak: in GB/s.
    """
    rate = None if seconds is None else traffic.bandwidth(seconds)
    return BandwidthDocument(
        traffic=traffic,
        seconds=seconds,
        bytes_per_second=rate,
        flop_per_second=None if seconds is None else traffic.flop / seconds,
        share_of_peak=None if rate is None or peak is None else rate / (peak * GB),
    )
