"""Bytes and FLOP of a matrix product, and the share of the peaks that a measured time reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.analysis.access.matrix_traffic import MatrixTraffic
from artifact_inspector.hardware.peaks import Peaks, peak_type

GIB, GB, TERA = 2**30, 10**9, 10**12

_ABOVE_PEAK = "above the peak: check the time and the GPU"


def describe_traffic(
    traffic: MatrixTraffic, types: Sequence[str], seconds: float | None, peaks: Peaks | None
) -> Iterator[str]:
    """Bytes and FLOP, then the rates and the shares of the peaks.

    Args:
        types: as given on the command line.
        peaks: of the device; the compute peak is that of the first type.
    """
    a, b, c = traffic.bytes
    yield (
        f"{traffic.m}×{traffic.k} @ {traffic.k}×{traffic.n} in {', '.join(types)} moves {traffic.total} B: "
        f"a {a} + b {b} + result {c}"
    )
    yield f"{traffic.flop} FLOP, {traffic.flop / traffic.total:.3g} FLOP/B"
    if seconds is None:
        return
    rate, flops = traffic.bandwidth(seconds), traffic.flop / seconds
    share = "" if peaks is None else f", {rate / peaks.bandwidth:.0%} of {peaks.bandwidth / GB:g} GB/s"
    yield f"{traffic.total} B ÷ {seconds:g} s = {rate / GIB:.0f} GiB/s = {rate / GB:.0f} GB/s{share}"
    unit = peak_type(types[0])
    peak = peaks.peak_for_type(unit) if peaks is not None and unit else None
    share = "" if peak is None else f", {flops / peak[1]:.0%} of {peak[1] / TERA:g} TFLOP/s in {peak[0]}"
    yield f"{flops / TERA:.3g} TFLOP/s{share}"
    if peaks is not None and peak is not None:
        ridge = peak[1] / peaks.bandwidth
        bound = "compute" if traffic.flop / traffic.total > ridge else "memory"
        reached = max(flops / peak[1], rate / peaks.bandwidth)
        warning = f"; {_ABOVE_PEAK}" if reached > 1 else ""
        text = f"{bound}-bound: {reached:.0%} of the peak of {peaks.product}, whose ridge is at {ridge:.0f} FLOP/B"
        yield f"{text}{warning}"
    elif peaks is not None and rate > peaks.bandwidth:
        yield _ABOVE_PEAK
