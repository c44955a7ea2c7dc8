"""Pictures that a notebook shows with the text."""

from __future__ import annotations

from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.model import Stage
from artifact_inspector.pictures.timeline import timeline

WIDTH = 760
MAX_LANES = 2
"""Lanes of the picture: TTGIR and the last stage."""


def small_timeline(kernel: KernelFacts, region: str | None = None) -> str:
    """The timeline in TTGIR and in the last stage of the region, as SVG; empty if nothing can be drawn."""
    region_stages = [stage for stage, facts in kernel.stages.items() if region is None or facts.region(region)]
    lanes = [stage for stage in region_stages if stage is Stage.TTGIR or stage is region_stages[-1]]
    try:
        return timeline(kernel, region, lanes[-MAX_LANES:], width=WIDTH) if lanes else ""
    except UsageError:
        return ""
