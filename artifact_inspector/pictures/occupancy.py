"""Occupancy as bars: the blocks that each resource allows, and the limiting resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from artifact_inspector.errors import UsageError
from artifact_inspector.pictures._canvas import Canvas, cut

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel import KernelFacts

MARGIN, LEFT, BAR, PITCH = 14, 130, 16, 24
ROOM = 150
"""Pixels right of the bars, for their labels."""


def occupancy_bars(kernel: KernelFacts, *, width: float = 640, style: bool = True) -> str:
    """The bars of a kernel as SVG.

    Raises:
        UsageError: its resources or its target are unknown.
    """
    found, name = kernel.occupancy, kernel.artifact.display_name
    if found is None or not found.allowed:
        raise UsageError(f"The occupancy limits of {name} are unknown.")
    canvas = Canvas()
    canvas.text(MARGIN, 20, cut(f"{name} · occupancy", width - 2 * MARGIN, 13), "head")
    if found.blocks is None:
        said = f"unknown (needs {', '.join(found.missing)})"
    else:
        share = "" if found.share is None else f" ({found.share:.0%})"
        blocks = "block" if found.blocks == 1 else "blocks"
        said = (
            f"{found.blocks} {blocks}, {found.warps} of {found.warps_at_most} warps per {found.unit}{share}"
        )
    canvas.text(MARGIN, 38, cut(said, width - 2 * MARGIN, 11), "accent")
    most = max(1, *found.allowed.values())
    full, y = width - LEFT - ROOM, 52.0
    for resource, blocks_allowed in sorted(found.allowed.items(), key=lambda row: row[1]):
        binds = resource in found.limited_by
        length = full * blocks_allowed / most
        words = f"{blocks_allowed}" + (" ← limit" if binds else "")
        with canvas.told(f"{resource}: {blocks_allowed} blocks{', the limit' if binds else ''}"):
            canvas.text(LEFT - 8, y + 12, resource, "bold" if binds else "", "end")
            canvas.rect(LEFT, y, max(2, length), BAR, f"box edge {'wait' if binds else 'other'}", round_=2)
            canvas.text(LEFT + length + 6, y + 12, words, "bold alarm" if binds else "")
        if found.blocks:
            for block in range(1, min(blocks_allowed, 64)):
                x = LEFT + full * block / most
                canvas.line(x, y, x, y + BAR, "line edge dotted")
        y += PITCH
    canvas.text(MARGIN, y + 10, f"blocks per {found.unit} that each resource alone allows", "small faint")
    return canvas.render(width, y + 18, f"Occupancy of {name}", said, style=style)
