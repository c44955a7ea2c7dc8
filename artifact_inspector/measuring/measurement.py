"""What a run of measurements found: the device, and a row for each kernel and configuration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.peaks import Peaks, find_peaks
from artifact_inspector.hardware.targets import Target

MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Device:
    """The GPU that kernels were measured on, when, and what drove it."""

    date: str
    """Day of the measurement, in UTC: `2026-11-21`."""
    name: str
    """As its driver calls it."""
    target: Target
    multiprocessors: int
    cache_bytes: int | None
    """Of the L2 cache, which is emptied before every launch."""
    driver: str | None
    torch: str
    triton: str

    @property
    def peaks(self) -> Peaks | None:
        """What it can do at most; None where no source says."""
        return find_peaks(self.name)


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel in one configuration: what was measured of it, and what its files say."""

    kernel: str
    size: str
    """What was computed, in words."""
    config: dict[str, Any]
    """Blocks and options other than the kernel's own; empty for its own."""
    milliseconds: float | None = None
    """Median of a launch; None where it failed."""
    spread: tuple[float, float] | None = None
    """Milliseconds, 20th and 80th percentile."""
    deviation: float | None = None
    """‖result − expected‖ / ‖expected‖; None where nothing says what to expect."""
    tolerance: float | None = None
    flop: float | None = None
    bytes: float | None = None
    unit: str | None = None
    message: str | None = None
    """Why there is no time."""
    facts: KernelFacts | None = None
    """None where nothing was compiled."""

    @property
    def wrong(self) -> bool:
        """True where the result is not the expected one."""
        return self.deviation is not None and not self.deviation <= (self.tolerance or 0.0)

    @property
    def verdicts(self) -> dict[str, str]:
        """Stage → verdict in full of the region that the kernel is known by, where the stage has it."""
        if self.facts is None or self.facts.principal is None:
            return {}
        found = ((stage.stage, stage.region(self.facts.principal)) for stage in self.facts.stages.values())
        return {stage.value: region.phrase for stage, region in found if region is not None}

    @property
    def flops(self) -> float | None:
        """FLOP/s, of the operations that the result takes."""
        return _rate(self.flop, self.milliseconds)

    @property
    def bandwidth(self) -> float | None:
        """Bytes/s, of the least traffic that the result takes."""
        return _rate(self.bytes, self.milliseconds)

    def share(self, peaks: Peaks | None) -> tuple[str, float] | None:
        """What bounds the workload on a device, and how much of that bound is reached.

        Returns:
            `memory`, or the type whose arithmetic takes longer at its peak than the memory traffic does,
            and the bound's time over the measured one; None where time, cost or peak is not known.
        """
        if peaks is None or not self.milliseconds:
            return None
        bounds = []
        if self.bytes is not None:
            bounds.append((self.bytes / peaks.bandwidth, MEMORY))
        found = None if self.unit is None else peaks.flops_of(self.unit)
        if self.flop is not None and found is not None:
            bounds.append((self.flop / found[1], found[0]))
        if not bounds:
            return None
        seconds, name = max(bounds)
        return name, seconds / (self.milliseconds / 1e3)


@dataclass(frozen=True, slots=True)
class Bench:
    """What a run of measurements found."""

    device: Device
    rows: tuple[Measurement, ...]


def _rate(count: float | None, milliseconds: float | None) -> float | None:
    return None if count is None or not milliseconds else count / (milliseconds / 1e3)
