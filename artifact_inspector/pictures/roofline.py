"""The roofline: the peak rate of launches at their arithmetic intensity."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.roofline import Roofline
from artifact_inspector.pictures._canvas import NUMBERED_FILLS, Canvas, cut_text

MARGIN, LEFT, TOP, TALL = 14, 84, 44, 300


def roofline(launches: Sequence[tuple[str, Roofline]], *, width: float = 720, style: bool = True) -> str:
    """Launches on the roofline of one GPU as SVG; points lie on the roof because no time was measured.

    Args:
        launches: names and roofline positions, all for one GPU.

    Raises:
        UsageError: there is no launch.
    """
    if not launches:
        raise UsageError("No launch has a known intensity and a GPU with known peaks.", "Pass --gpu.")
    roof = launches[0][1]
    canvas = Canvas()
    title = f"{roof.gpu} · {roof.peak / 1e12:g} TFLOP/s {roof.peak_type}, {roof.bandwidth / 1e12:g} TB/s"
    canvas.text(MARGIN, 20, cut_text(title, width - 2 * MARGIN, 13), "head")
    xs = [position.intensity for _, position in launches if position.intensity > 0] or [roof.ridge]
    low, high = floor(log10(min(*xs, roof.ridge) / 3)), ceil(log10(max(*xs, roof.ridge) * 1.5))
    top, bottom = log10(roof.peak) + 0.15, log10(roof.bandwidth) + low
    right = width - MARGIN

    def x_of(intensity: float) -> float:
        return LEFT + (right - LEFT) * (log10(intensity) - low) / (high - low)

    def y_of(rate: float) -> float:
        return TOP + TALL * (top - log10(rate)) / (top - bottom)

    for power in range(ceil(low), floor(high) + 1):
        x = x_of(10.0**power)
        canvas.line(x, TOP, x, TOP + TALL, "line rule dotted")
        canvas.text(x, TOP + TALL + 14, f"{10.0**power:g}", "small faint", "middle")
    for power in range(ceil(bottom), floor(top) + 1):
        y = y_of(10.0**power)
        canvas.line(LEFT, y, right, y, "line rule dotted")
        canvas.text(LEFT - 6, y + 3, _format_rate(10.0**power), "small faint", "end")
    canvas.text((LEFT + right) / 2, TOP + TALL + 28, "FLOP per distinct byte", "small", "middle")
    start = 10.0**low
    ridge, flat = x_of(roof.ridge), y_of(roof.peak)
    canvas.path(f"M{LEFT} {y_of(start * roof.bandwidth):.1f}L{ridge:.1f} {flat:.1f}H{right:.1f}", "thick edge")
    canvas.text(ridge, flat - 8, f"ridge at {roof.ridge:.0f}", "small faint", "middle")
    y = TOP + TALL + 50.0
    for number, (name, position) in enumerate(launches, 1):
        family = NUMBERED_FILLS[(number - 1) % len(NUMBERED_FILLS)]
        bound = "memory" if position.is_memory_bound else "compute"
        summary_line = (
            f"{name}: {position.intensity:.3g} FLOP/B, at most {_format_rate(position.attainable)}FLOP/s, {bound}-bound"
        )
        if position.intensity > 0:
            x, point_y = x_of(position.intensity), y_of(position.attainable)
            with canvas.group(summary_line):
                canvas.line(x, point_y, x, TOP + TALL, "line go dashed")
                canvas.rect(x - 8, point_y - 8, 16, 16, f"box edge {family}", round_=8)
                canvas.text(x, point_y + 3.5, str(number), "ink small", "middle")
        canvas.text(MARGIN, y, cut_text(f"{number}  {summary_line}", width - 2 * MARGIN), "")
        y += 16
    canvas.text(
        MARGIN, y + 2, "counters from a simulated launch; points show the peak, not a measured rate", "small faint"
    )
    return canvas.render(width, y + 12, f"Roofline of {roof.gpu}", "; ".join(name for name, _ in launches), style=style)


def _format_rate(rate: float) -> str:
    for size, letter in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if rate >= size:
            return f"{rate / size:.3g} {letter}"
    return f"{rate:.3g}"
