"""Bytes and FLOP of a matrix product, and the share of the peaks that a measured time reaches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.analysis.access.traffic import Traffic
from artifact_inspector.hardware.peaks import Peaks, unit_of_type

GIB, GB, TERA = 2**30, 10**9, 10**12


_BEYOND = "above the peak: check the time and the GPU"


def describe_traffic(
    traffic: Traffic, types: Sequence[str], seconds: float | None, peaks: Peaks | None
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
    moved, done = rate / GB, flops / TERA
    share = "" if peaks is None else f", {rate / peaks.bandwidth:.0%} of {peaks.bandwidth / GB:g} GB/s"
    yield f"{traffic.total} B ÷ {seconds:g} s = {rate / GIB:.0f} GiB/s = {moved:.0f} GB/s{share}"
    unit = unit_of_type(types[0])
    most = peaks.flops_of(unit) if peaks is not None and unit else None
    share = "" if most is None else f", {flops / most[1]:.0%} of {most[1] / TERA:g} TFLOP/s in {most[0]}"
    yield f"{done:.3g} TFLOP/s{share}"
    if peaks is None:
        return
    if most is None:
        if rate > peaks.bandwidth:
            yield _BEYOND
        return
    ridge, own = most[1] / peaks.bandwidth, traffic.flop / traffic.total
    bound = "compute" if own > ridge else "memory"
    reached = max(flops / most[1], rate / peaks.bandwidth)
    beyond = f"; {_BEYOND}" if reached > 1 else ""
    yield (
        f"{bound}-bound: {reached:.0%} of the peak of {peaks.product}, whose ridge is at {ridge:.0f} "
        f"FLOP/B{beyond}"
    )
