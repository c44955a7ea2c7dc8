"""Convert between Triton's `GPUTarget` and our `Target`."""

from __future__ import annotations

from typing import Any

from artifact_inspector.hardware.targets import Target, parse_target


def from_gpu_target(target: Any) -> Target:
    """The `Target` of a Triton `GPUTarget`."""
    return parse_target(f"{target.backend}:{target.arch}")


def to_gpu_target(target: Target) -> Any:
    """The Triton `GPUTarget` of a `Target`."""
    from triton.backends.compiler import GPUTarget

    arch = target.arch.number if target.backend == "cuda" else target.arch
    return GPUTarget(target.backend, arch, target.warp_size)
