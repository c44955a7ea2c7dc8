"""What a matrix product moves, and what a measured time makes of it, in words and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypedDict

from artifact_inspector.analysis.access.traffic import Traffic
from artifact_inspector.report.json import SCHEMA_VERSION, SchemaVersion

__all__ = ["BandwidthJson", "describe_traffic", "traffic_document"]

GIB, GB = 2**30, 10**9


class BandwidthJson(TypedDict):
    """What a matrix product moves: `inspect-kernel bandwidth MxK@KxN --json`."""

    schema_version: SchemaVersion
    document: Literal["bandwidth"]
    m: int
    n: int
    k: int
    bytes: int
    """Of a, b and the result, each once."""
    bytes_of: tuple[int, int, int]
    """Of a, of b and of the result."""
    flop: int
    seconds: float | None
    """The time that was given."""
    bytes_per_second: float | None
    flop_per_second: float | None
    share_of_peak: float | None
    """Of the bandwidth that was given as the peak."""


def describe_traffic(
    traffic: Traffic, types: Sequence[str], seconds: float | None, peak: float | None
) -> Iterator[str]:
    """The count, then what a time makes of it.

    Args:
        types: as they were given.
        peak: in GB/s.
    """
    a, b, c = traffic.bytes
    yield (
        f"{traffic.m}×{traffic.k} @ {traffic.k}×{traffic.n} in {', '.join(types)} moves {traffic.total} B: "
        f"a {a} + b {b} + result {c}, each once"
    )
    yield f"{traffic.flop} FLOP, {traffic.flop / traffic.total:.3g} per byte"
    if seconds is None:
        return
    rate = traffic.bandwidth(seconds)
    share = "" if peak is None else f", {rate / (peak * GB):.0%} of {peak:g} GB/s"
    rates = f"{rate / GIB:.0f} GiB/s = {rate / GB:.0f} GB/s"
    yield f"{traffic.total} B ÷ {seconds:g} s = {rates}{share}"
    yield f"{traffic.flop / seconds / 1e12:.3g} TFLOP/s"


def traffic_document(traffic: Traffic, seconds: float | None, peak: float | None) -> BandwidthJson:
    """The same as a document."""
    rate = None if seconds is None else traffic.bandwidth(seconds)
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "bandwidth",
        "m": traffic.m,
        "n": traffic.n,
        "k": traffic.k,
        "bytes": traffic.total,
        "bytes_of": traffic.bytes,
        "flop": traffic.flop,
        "seconds": seconds,
        "bytes_per_second": rate,
        "flop_per_second": None if seconds is None else traffic.flop / seconds,
        "share_of_peak": None if rate is None or peak is None else rate / (peak * GB),
    }
