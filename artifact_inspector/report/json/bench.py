"""Measured kernels as JSON: `bench --json`."""

from __future__ import annotations

from typing import Literal, TypedDict

from artifact_inspector.measuring.measurement import Bench, Device, Measurement
from artifact_inspector.report.json._types import SCHEMA_VERSION, SchemaVersion

__all__ = ["BenchJson", "bench_document"]


class BenchDeviceJson(TypedDict):
    """The GPU that kernels were measured on, when, and what drove it."""

    date: str
    """Day of the measurement, in UTC: `2026-11-21`."""
    name: str
    """As its driver calls it."""
    target: str
    """Its architecture, as `sm_90`."""
    multiprocessors: int
    cache_bytes: int | None
    """Of the L2 cache, which is emptied before every launch."""
    driver: str | None
    torch: str
    triton: str
    peak_bandwidth: float | None
    """Bytes/s, by its maker."""
    peak_flops: dict[str, float] | None
    """FLOP/s by type, without sparsity, by its maker."""
    peak_source: str | None


class BenchRowJson(TypedDict):
    """One kernel in one configuration."""

    kernel: str
    size: str
    """What was computed, in words."""
    config: dict[str, str | int | float | bool | None]
    """Blocks and options other than the kernel's own."""
    milliseconds: float | None
    """Median of a launch; null where it failed."""
    spread: tuple[float, float] | None
    """Milliseconds, 20th and 80th percentile."""
    flops: float | None
    """FLOP/s, of the operations that the result takes."""
    bandwidth: float | None
    """Bytes/s, of the least traffic that the result takes."""
    bound: str | None
    """What bounds it on this GPU: `memory`, or the type whose peak does."""
    share: float | None
    """Of that bound."""
    deviation: float | None
    """‖result − expected‖ / ‖expected‖."""
    tolerance: float | None
    right: bool | None
    """Null where nothing says what to expect."""
    hash: str | None
    """Of what was compiled; null where nothing was."""
    verdicts: dict[str, str] | None
    """Stage → order of loads and computes in the region that the kernel is known by."""
    waits: tuple[int, ...] | None
    """Depths of that region's waits for loads in the last stage."""
    registers: int | None
    """Per thread."""
    spill_bytes: int | None
    """Per thread."""
    shared_bytes: int | None
    """Per block."""
    blocks: int | None
    """That fit on a multiprocessor."""
    warps: int | None
    """Of those blocks."""
    message: str | None
    """Why there is no time."""


class BenchJson(TypedDict):
    """Measured kernels beside what the compiler made of them: `inspect-kernel bench --json`."""

    schema_version: SchemaVersion
    document: Literal["bench"]
    device: BenchDeviceJson
    rows: list[BenchRowJson]


def bench_document(bench: Bench) -> BenchJson:
    """What was measured, as JSON."""
    device, peaks = bench.device, bench.device.peaks
    return {
        "schema_version": SCHEMA_VERSION,
        "document": "bench",
        "device": {
            "date": device.date,
            "name": device.name,
            "target": device.target.arch,
            "multiprocessors": device.multiprocessors,
            "cache_bytes": device.cache_bytes,
            "driver": device.driver,
            "torch": device.torch,
            "triton": device.triton,
            "peak_bandwidth": None if peaks is None else peaks.bandwidth,
            "peak_flops": None if peaks is None else dict(peaks.flops),
            "peak_source": None if peaks is None else peaks.source,
        },
        "rows": [_row_document(row, device) for row in bench.rows],
    }


def _row_document(row: Measurement, device: Device) -> BenchRowJson:
    facts = row.facts
    share = row.share(device.peaks)
    held = None if facts is None else facts.occupancy
    return {
        "kernel": row.kernel,
        "size": row.size,
        "config": row.config,
        "milliseconds": _rounded(row.milliseconds),
        "spread": None if row.spread is None else (round(row.spread[0], 5), round(row.spread[1], 5)),
        "flops": row.flops,
        "bandwidth": row.bandwidth,
        "bound": None if share is None else share[0],
        "share": None if share is None else round(share[1], 4),
        "deviation": None if row.deviation is None else float(f"{row.deviation:.3g}"),
        "tolerance": row.tolerance,
        "right": None if row.deviation is None else not row.wrong,
        "hash": None if facts is None else facts.artifact.hash,
        "verdicts": None if facts is None else row.verdicts,
        "waits": None if facts is None else facts.wait_depths,
        "registers": None if facts is None else facts.resources.registers.value,
        "spill_bytes": None if facts is None else facts.resources.spill_bytes.value,
        "shared_bytes": None if facts is None else facts.resources.shared.value,
        "blocks": None if held is None else held.blocks,
        "warps": None if held is None else held.warps,
        "message": row.message,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
