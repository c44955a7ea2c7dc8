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

    # plain strings: Triton's key for AMD has the `repr` of the target
    arch = target.arch.number if target.backend == "cuda" else str(target.arch)
    return GPUTarget(str(target.backend), arch, target.warp_size)
