"""What a matrix product moves, and what a measured time makes of it, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.analysis.access.traffic import Traffic

__all__ = ["describe_traffic"]

GIB, GB = 2**30, 10**9


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
