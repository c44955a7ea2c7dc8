"""Targets as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypedDict

from artifact_inspector.report.json._types import Words

if TYPE_CHECKING:
    from artifact_inspector.hardware.targets import Target

__all__ = ["TargetJson", "target"]


class TargetJson(TypedDict):
    """What a kernel was compiled for."""

    backend: Annotated[str, Words(("cuda", "hip"))]
    arch: str
    """`sm_80`, `gfx942`: without the suffix and features of one compile."""
    warp_size: int
    """Lanes."""


def target(found: Target) -> TargetJson:
    """A target."""
    return {"backend": found.backend, "arch": found.arch, "warp_size": found.warp_size}
