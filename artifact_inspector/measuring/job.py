"""What goes over the pipe between the command and the process with the GPU: plain values only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from artifact_inspector.errors import InspectorError
from artifact_inspector.measuring.measurement import Device, Measurement


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to measure."""

    kernel: str
    """Its name: of the reference kernel, or of the function in `file`."""
    module: str
    """Of a reference kernel; empty for a file."""
    file: str | None
    workload: str | None
    """The function of the file that makes the workload; None leaves it to the name."""
    configs: str | None
    """`all`, a number, or None for the kernel's own choice."""
    directory: str
    """The cache directory to compile into."""
    milliseconds: float
    """Time to spend on measuring a configuration."""


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one configuration."""

    of: int
    """Configurations of this kernel."""
    measured: Measurement
    """Without its facts: whoever asked reads the files."""
    function: str
    """The Python function that was compiled."""
    directory: str
    """Where to."""
    launches: tuple[dict[str, Any], ...] = ()
    """What it launched, as `compiling.arguments` writes it, with the `hash` of the compiled kernel."""


Answer = Device | Row | InspectorError
"""The GPU and what drives it, then the rows; an error is why nothing (more) is measured."""
