"""What goes over the pipe between the command and the process with the GPU: plain values only."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

__all__ = ["Answer", "DeviceAnswer", "ErrorAnswer", "Job", "RowAnswer"]


class Job(TypedDict):
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


class DeviceAnswer(TypedDict):
    """The GPU and what drives it."""

    kind: Literal["device"]
    name: str
    arch: str
    multiprocessors: int
    cache_bytes: int | None
    driver: str | None
    torch: str
    triton: str


class RowAnswer(TypedDict):
    """What became of one configuration."""

    kind: Literal["row"]
    of: int
    """Configurations of this kernel."""
    function: str
    """The Python function that was compiled."""
    size: str
    config: dict[str, Any]
    flop: float | None
    bytes: float | None
    unit: str | None
    tolerance: float | None
    directory: str
    milliseconds: float | None
    spread: tuple[float, float] | None
    deviation: float | None
    message: str | None
    launches: list[dict[str, Any]]
    """What it launched, as `compiling.arguments` writes it, with the `hash` of the compiled kernel."""


class ErrorAnswer(TypedDict):
    """Why nothing (more) is measured."""

    kind: Literal["error"]
    type: str
    message: str
    remedy: str | None


Answer = DeviceAnswer | RowAnswer | ErrorAnswer
