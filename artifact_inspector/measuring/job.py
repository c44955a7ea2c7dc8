"""The messages between the command and the process that uses the GPU; plain values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import InspectorError
from artifact_inspector.measuring.measurement import MeasuredDevice, Measurement


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
