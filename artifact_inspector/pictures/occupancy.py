"""Occupancy as bars: the blocks that each resource allows, and the limiting resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifact_inspector.errors import UsageError
from artifact_inspector.pictures._canvas import Canvas, cut_text

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, LEFT, BAR, PITCH = 14, 130, 16, 24
LABEL_WIDTH = 150
"""Pixels right of the bars, for their labels."""


def occupancy_bars(kernel: KernelFacts, *, width: float = 640, style: bool = True) -> str:
    """The bars of a kernel as SVG.

    Raises:
        UsageError: its resources or its target are unknown.
    """
    occupancy, name = kernel.occupancy, kernel.artifact.display_name
    if occupancy is None or not occupancy.blocks_by_resource:
        raise UsageError(f"The occupancy limits of {name} are unknown.")
    canvas = Canvas()
    canvas.text(MARGIN, 20, cut_text(f"{name} · occupancy", width - 2 * MARGIN, 13), "head")
    if occupancy.blocks is None:
        summary = f"unknown (needs {', '.join(occupancy.missing)})"
    else:
        share = "" if occupancy.ratio is None else f" ({occupancy.ratio:.0%})"
        blocks = "block" if occupancy.blocks == 1 else "blocks"
        summary = (
            f"{occupancy.blocks} {blocks}, {occupancy.warps} of {occupancy.max_warps} warps per {occupancy.unit}{share}"
        )
    canvas.text(MARGIN, 38, cut_text(summary, width - 2 * MARGIN, 11), "accent")
    max_blocks = max(1, *occupancy.blocks_by_resource.values())
    full, y = width - LEFT - LABEL_WIDTH, 52.0
    for resource, blocks_allowed in sorted(occupancy.blocks_by_resource.items(), key=lambda row: row[1]):
        is_limit = resource in occupancy.limited_by
        length = full * blocks_allowed / max_blocks
        label = f"{blocks_allowed}" + (" ← limit" if is_limit else "")
        with canvas.group(f"{resource}: {blocks_allowed} blocks{', the limit' if is_limit else ''}"):
            canvas.text(LEFT - 8, y + 12, resource, "bold" if is_limit else "", "end")
            canvas.rect(LEFT, y, max(2, length), BAR, f"box edge {'wait' if is_limit else 'other'}", round_=2)
            canvas.text(LEFT + length + 6, y + 12, label, "bold alarm" if is_limit else "")
        if occupancy.blocks:
            for block in range(1, min(blocks_allowed, 64)):
                x = LEFT + full * block / max_blocks
                canvas.line(x, y, x, y + BAR, "line edge dotted")
        y += PITCH
    canvas.text(MARGIN, y + 10, f"blocks per {occupancy.unit} that each resource allows by itself", "small faint")
    return canvas.render(width, y + 18, f"Occupancy of {name}", summary, style=style)
