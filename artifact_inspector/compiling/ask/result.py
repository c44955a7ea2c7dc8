"""What became of one kernel for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifact_inspector.hardware.targets import Target


@dataclass(frozen=True, slots=True)
class CompileResult:
    """What became of one kernel for one target."""

    kernel: str
    """Name of the reference kernel, as in `REFERENCE_KERNELS`, else of the Triton function."""
    target: Target
    seconds: float
    """What the compile took; 0 where the cache had it."""
    directory: Path | None
    """The entry in the cache; None when the compiler refused."""
    message: str | None
    """What the compiler said when it refused, else None."""
    remedy: str | None = None
    """What can be done about it, where that is known."""
    place: str = ""
    """Where the kernel stands, as it was asked for: `FILE.py:KERNEL`, or the name of a reference kernel."""
    triton: str | None = None
    """The version that compiled."""
    config: str | None = None
    """The autotuner's configuration, in words."""
    cached: bool = False
    """Whether it was in the cache already."""
    usage: bool = False
    """Whether the request was refused, not the kernel."""
    types: tuple[str, ...] = ()
    """Of the arguments that are no constants, in the notation of a signature."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """As Triton was given them; what is missing is at Triton's default."""
    details: str | None = None
    """All that the compiler printed when it refused: with MLIR errors, the module."""
