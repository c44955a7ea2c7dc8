"""What a matrix product moves, as JSON: `bandwidth --json`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.analysis.access.matrix_traffic import MatrixTraffic
from artifact_inspector.hardware.peaks import Peaks, peak_type
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape


@dataclass(frozen=True, slots=True, kw_only=True)
class BandwidthDocument(Document):
    """What a matrix product moves: `inspect-kernel bandwidth MxK@KxN --json`."""

    document: Literal["bandwidth"] = "bandwidth"
    traffic: MatrixTraffic
    seconds: float | None
    """The time that was given."""
    bytes_per_second: float | None
    flop_per_second: float | None
    share_of_peak: float | None
    """Of the bandwidth that was given as the peak."""
    flop_per_byte: float
    share_of_arithmetic: float | None
    """Of the peak of the device that was named, in the first type."""


define_shape(MatrixTraffic, "m n k bytes=total bytes_of=bytes flop", without="bits")
define_shape(BandwidthDocument, inline="traffic")


def traffic_document(
    traffic: MatrixTraffic, types: Sequence[str], seconds: float | None, peaks: Peaks | None
) -> BandwidthDocument:
    """The count, and what a time makes of it; the arithmetic's peak is that of the first type."""
    rate = None if seconds is None else traffic.bandwidth(seconds)
    flops = None if seconds is None else traffic.flop / seconds
    unit = peak_type(types[0])
    peak = peaks.peak_for_type(unit) if peaks is not None and unit else None
    return BandwidthDocument(
        traffic=traffic,
        seconds=seconds,
        bytes_per_second=rate,
        flop_per_second=flops,
        share_of_peak=None if rate is None or peaks is None else rate / peaks.bandwidth,
        flop_per_byte=traffic.flop / traffic.total,
        share_of_arithmetic=None if flops is None or peak is None else flops / peak[1],
    )
