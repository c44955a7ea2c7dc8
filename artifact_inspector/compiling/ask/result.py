"""The result of compiling one kernel for one target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from artifact_inspector.hardware.targets import Target


@dataclass(frozen=True, slots=True)
class CompileResult:
    """The result of compiling one kernel for one target."""

    kernel: str
    """Name of the reference kernel in `REFERENCE_KERNELS`, or of the Triton function."""
    target: Target
    seconds: float
    """Duration of the compile; 0 for a cache hit."""
    directory: Path | None
    """Directory of the cache entry; None if the compiler refused the kernel."""
    message: str | None
    """The compiler's error message; None if it compiled."""
    remedy: str | None = None
    """What to do about the error, if known."""
    kernel_path: str = ""
    """The kernel as requested: `FILE.py:KERNEL`, or the name of a reference kernel."""
    triton: str | None = None
    """Version of the Triton that compiled it."""
    config: str | None = None
    """The autotuner's configuration as text: `BLOCK=64 num_warps=4`."""
    is_cached: bool = False
    """Whether the entry was already in the cache."""
    is_usage_error: bool = False
    """Whether the error is in the request, not in the kernel."""
    types: tuple[str, ...] = ()
    """Signature entries of the arguments that are not constants."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options passed to Triton; the others have Triton's defaults."""
    details: str | None = None
    """Output of a compiler that refused the kernel: with an MLIR error, the whole module."""
