"""Measured kernels as JSON: `bench --json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from artifact_inspector.measuring.measurement import Bench, MeasuredDevice, Measurement
from artifact_inspector.report.json._document import Document
from artifact_inspector.report.json._encoding import define_shape

define_shape(
    MeasuredDevice,
    "date name target=target.arch multiprocessors cache_bytes driver torch triton"
    " peak_bandwidth=peaks.bandwidth peak_flops=peaks.flops peak_source=peaks.source",
    title="BenchDevice",
)


@dataclass(frozen=True, slots=True)
class BenchRow:
    """One kernel in one configuration."""

    measured: Measurement
    bound: str | None
    """What bounds it on this GPU: `memory`, or the type whose peak does."""
    share: float | None
    """Of that bound."""

    @property
    def deviation(self) -> float | None:
        """‖result − expected‖ / ‖expected‖."""
        deviation = self.measured.deviation
        return None if deviation is None else float(f"{deviation:.3g}")

    @property
    def is_correct(self) -> bool | None:
        """None where nothing says what to expect."""
        return None if self.measured.deviation is None else not self.measured.is_wrong

    @property
    def verdicts(self) -> Mapping[str, str] | None:
        """Stage → order of loads and computes in the region that the kernel is known by."""
        return None if self.measured.facts is None else self.measured.verdicts


define_shape(
    BenchRow,
    "kernel=measured.kernel size=measured.size config=measured.config milliseconds=measured.milliseconds"
    " spread=measured.spread flops=measured.flops bandwidth=measured.bandwidth bound share deviation"
    " tolerance=measured.tolerance is_correct hash=measured.facts.artifact.hash verdicts"
    " waits=measured.facts.wait_depths registers=measured.facts.resources.registers.value"
    " spill_bytes=measured.facts.resources.spill_bytes.value"
    " shared_bytes=measured.facts.resources.shared.value blocks=measured.facts.occupancy.blocks"
    " warps=measured.facts.occupancy.warps message=measured.message",
    without="measured",
    rounded={"milliseconds": 5, "spread": 5, "share": 4},
    types={"config": Mapping[str, str | int | float | bool | None]},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchDocument(Document):
    """Measured kernels beside what the compiler made of them: `inspect-kernel bench --json`."""

    document: Literal["bench"] = "bench"
    device: MeasuredDevice
    rows: tuple[BenchRow, ...]


def bench_document(bench: Bench) -> BenchDocument:
    """What was measured, as JSON."""
    return BenchDocument(device=bench.device, rows=tuple(_row(row, bench.device) for row in bench.rows))


def _row(row: Measurement, device: MeasuredDevice) -> BenchRow:
    bound, share = row.share(device.peaks) or (None, None)
    return BenchRow(row, bound, share)
