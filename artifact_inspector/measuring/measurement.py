"""Jobs and results of a measurement: the device, and a row for each kernel and configuration.

The command and the process that uses the GPU exchange them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import InspectorError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.hardware.peaks import Peaks, find_peaks
from artifact_inspector.hardware.targets import Target

MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class MeasuredDevice:
    """The GPU of a measurement, its software versions, and the date."""

    date: str
    """Date of the measurement in UTC: `2026-11-21`."""
    name: str
    """Product name, from the driver."""
    target: Target
    multiprocessors: int
    cache_bytes: int | None
    """Bytes of the L2 cache, which is flushed before every launch."""
    driver: str | None
    torch: str
    triton: str

    @property
    def peaks(self) -> Peaks | None:
        """Its peak rates; None if no source gives them."""
        return find_peaks(self.name)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The measurement of one kernel in one configuration, with the facts of its files."""

    kernel: str
    size: str
    """Problem size for display."""
    config: dict[str, Any]
    """Block sizes and options that differ from the kernel's own; empty for its own configuration."""
    milliseconds: float | None = None
    """Median time of a launch in milliseconds; None if it failed."""
    spread: tuple[float, float] | None = None
    """20th and 80th percentile of the time, in milliseconds."""
    deviation: float | None = None
    """Relative error ‖result − expected‖ / ‖expected‖; None if the workload has no expected result."""
    tolerance: float | None = None
    flop: float | None = None
    bytes: float | None = None
    unit: str | None = None
    message: str | None = None
    """Why there is no time; None if it was measured."""
    facts: KernelFacts | None = None
    """Facts of the compiled kernel; None if nothing was compiled."""

    @property
    def is_wrong(self) -> bool:
        """Whether the result differs from the expected one."""
        return self.deviation is not None and not self.deviation <= (self.tolerance or 0.0)

    @property
    def verdicts(self) -> dict[str, str]:
        """Stage → full verdict of the main loop, for the stages that have it."""
        if self.facts is None or self.facts.principal is None:
            return {}
        stage_regions = ((stage.stage, stage.region(self.facts.principal)) for stage in self.facts.stages.values())
        return {stage.value: region.phrase for stage, region in stage_regions if region is not None}

    @property
    def flops(self) -> float | None:
        """Rate in FLOP/s, by the operations of the computation."""
        return _rate(self.flop, self.milliseconds)

    @property
    def bandwidth(self) -> float | None:
        """Rate in bytes/s, by the least memory traffic of the computation."""
        return _rate(self.bytes, self.milliseconds)

    def share(self, peaks: Peaks | None) -> tuple[str, float] | None:
        """The roofline bound of the workload on a device, and the reached fraction of it.

        Returns: `memory`, or the data type if its arithmetic takes longer at peak rate than the memory
            traffic, and the bound's time divided by the measured time. None if the time, cost or peak is
            unknown.
        """
        if peaks is None or not self.milliseconds:
            return None
        bounds = []
        if self.bytes is not None:
            bounds.append((self.bytes / peaks.bandwidth, MEMORY))
        bound = None if self.unit is None else peaks.peak_for_type(self.unit)
        if self.flop is not None and bound is not None:
            bounds.append((self.flop / bound[1], bound[0]))
        if not bounds:
            return None
        seconds, name = max(bounds)
        return name, seconds / (self.milliseconds / 1e3)


@dataclass(frozen=True, slots=True)
class Bench:
    """The results of a measurement."""

    device: MeasuredDevice
    rows: tuple[Measurement, ...]


def _rate(count: float | None, milliseconds: float | None) -> float | None:
    return None if count is None or not milliseconds else count / (milliseconds / 1e3)


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to measure."""

    kernel: str
    """Name of the reference kernel, or of the function in `file`."""
    module: str
    """Module of a reference kernel; empty for a file."""
    file: str | None
    workload: str | None
    """The function of the file that returns the workload; None to find it by name."""
    configs: str | None
    """`all`, a number, or None for the kernel's own choice."""
    directory: str
    """The cache directory to compile into."""
    milliseconds: float
    """Time to spend on measuring a configuration, in milliseconds."""


@dataclass(frozen=True, slots=True)
class MeasurementRow:
    """The result of one configuration."""

    config_count: int
    """Number of configurations of this kernel."""
    measurement: Measurement
    """The measurement without facts, which the calling process reads from the files."""
    function: str
    """Name of the compiled Python function."""
    directory: str
    """The cache directory."""
    launches: tuple[dict[str, Any], ...] = ()
    """Its launches in the format of `compiling.arguments`, each with the `hash` of the compiled kernel."""


JobMessage = MeasuredDevice | MeasurementRow | InspectorError
"""The device first, then the rows; an error ends the measurement."""
