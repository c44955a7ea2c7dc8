"""Triton's own value for a GPU, and ours for it."""

from __future__ import annotations

from typing import Any

from artifact_inspector.hardware.targets import Target, parse_target


def target_of(target: Any) -> Target:
    """Our value for Triton's."""
    return parse_target(f"{target.backend}:{target.arch}")


def gpu_target(target: Target) -> Any:
    """Triton's value for ours."""
    from triton.backends.compiler import GPUTarget

    arch = target.arch.number if target.backend == "cuda" else target.arch
    return GPUTarget(target.backend, arch, target.warp_size)
