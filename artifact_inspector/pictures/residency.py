"""The schedule of the resident warps of an SM, from a model: what each warp does, and how busy units are."""

from __future__ import annotations

from artifact_inspector.execution.timing.residency import WORKS, Activity, Residency, WarpLane
from artifact_inspector.pictures._canvas import Canvas, cut, width_of

MARGIN, LEFT, TOP, ROW, GAP = 14, 104, 74, 13, 5
MOST_ROWS = 32
UNITS = ("tensor", "fma", "alu", "xu", "double", "lsu", "l2", "dram")
LEAST = 0.02
"""Least share of busy time of a unit that is drawn."""
STRIP = 24

LOOKS = {
    Activity.LOADS: ("L", "load"),
    Activity.MATRIX: ("M", "matrix"),
    Activity.ARITHMETIC: ("F", "float"),
    Activity.SHARED: ("s", "shared"),
    Activity.ISSUE: ("i", "other"),
    Activity.MEMORY: ("W", "wait"),
    Activity.BARRIER: ("B", "barrier"),
}
"""Letter and colour family of each activity; waits are thin bars."""


def residency(found: Residency, *, width: float = 960, style: bool = True) -> str:
    """The resident warps of a launch as SVG."""
    canvas = Canvas()
    room = width - 2 * MARGIN
    ctas = "1 CTA" if found.ctas == 1 else f"{found.ctas} CTAs"
    title = f"{found.kernel} · {ctas} of {found.warps} warps on one SM of {found.gpu}"
    canvas.text(MARGIN, 20, cut(title, room, 13), "head")
    canvas.text(
        MARGIN,
        36,
        cut("model, not measured: the first CTAs, in modelled cycles", room),
        "alarm",
    )
    said = "no warp waits for global memory"
    if found.hidden is not None:
        said = (
            f"latency hidden: in {found.hidden:.0%} of the cycles in which a warp waits for global memory, "
            "another one computes or uses shared memory"
        )
    canvas.text(MARGIN, 51, cut(said, room), "accent")
    scale = (width - LEFT - MARGIN) / (found.cycles or 1)
    y = _axis(canvas, found, scale, width)
    y = _lanes(canvas, found, scale, y)
    y = _units(canvas, found, width, y + 8)
    y = _legend(canvas, found, width, y + 4)
    return canvas.render(width, y + 8, f"Resident warps of {found.kernel}, a model", said, style=style)


def _axis(canvas: Canvas, found: Residency, scale: float, width: float) -> float:
    """Draw the cycle axis; returns its bottom."""
    step = 1
    while found.cycles / step > 8:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    canvas.text(MARGIN, TOP - 6, "cycles", "small faint")
    for cycle in range(0, int(found.cycles) + 1, step):
        x = LEFT + cycle * scale
        canvas.line(x, TOP - 4, x, TOP, "line rule")
        if x + width_of(f"{cycle:,}", 9) / 2 < width:
            canvas.text(x, TOP - 6, f"{cycle:,}", "small faint", "middle")
    return float(TOP) + 3


def _lanes(canvas: Canvas, found: Residency, scale: float, y: float) -> float:
    """Draw rows for some warps of each CTA; returns the bottom."""
    ctas = min(found.ctas, MOST_ROWS)
    warps = max(1, min(found.warps, MOST_ROWS // ctas))
    for cta in range(ctas):
        for lane in (one for one in found.lanes if one.cta == cta and one.warp < warps):
            if lane.warp == 0:
                canvas.text(MARGIN, y + 10, f"CTA {cta}", "small bold")
            canvas.text(LEFT - 6, y + 10, f"warp {lane.warp}", "small faint", "end")
            with canvas.told(_words(lane, found.cycles)):
                _lane(canvas, lane, scale, y)
            y += ROW
        y += GAP
    if (ctas, warps) != (found.ctas, found.warps):
        shown = f"drawn: {warps} of {found.warps} warps of {ctas} of {found.ctas} CTAs"
        canvas.text(LEFT, y + 8, shown, "small alarm")
        y += 13
    return y


def _lane(canvas: Canvas, lane: WarpLane, scale: float, y: float) -> None:
    for span in lane.spans:
        letter, family = LOOKS[span.activity]
        x, long = LEFT + span.start * scale, (span.end - span.start) * scale
        if span.activity in WORKS:
            canvas.rect(x, y, long, ROW - 2, family)
        else:
            canvas.rect(x, y + 3.5, long, ROW - 9, family)
        if long >= (11 if span.activity in WORKS else 22):
            if span.activity not in WORKS:
                canvas.rect(x + long / 2 - 5, y, 10, ROW - 2, family)
            canvas.text(x + long / 2, y + 8.5, letter, "ink small", "middle")


def _words(lane: WarpLane, cycles: float) -> str:
    told = sorted(lane.cycles.items(), key=lambda row: -row[1])
    parts = [f"{spent:,.0f} {activity.value}" for activity, spent in told]
    return f"CTA {lane.cta}, warp {lane.warp}, of {cycles:,.0f} cycles: " + "; ".join(parts)


def _units(canvas: Canvas, found: Residency, width: float, y: float) -> float:
    """Draw how busy each unit is over time; returns the bottom."""
    for unit in UNITS:
        shares = found.busy.get(unit, ())
        mean = sum(shares) / len(shares) if shares else 0.0
        if mean < LEAST:
            continue
        step = (width - LEFT - MARGIN) / len(shares)
        base = y + STRIP - 5
        canvas.text(LEFT - 6, base - 8, unit, "small bold", "end")
        canvas.text(LEFT - 6, base + 1, f"{mean:.0%} busy", "small faint", "end")
        heights = [base - (STRIP - 8) * share for share in shares]
        path = f"M{LEFT} {base:.1f}" + "".join(
            f"V{top:.1f}H{LEFT + (n + 1) * step:.1f}" for n, top in enumerate(heights)
        )
        with canvas.told(f"{unit}: busy {mean:.0%} of the time", focus=False):
            canvas.path(f"{path}V{base:.1f}Z", "area")
            canvas.line(LEFT, base, width - MARGIN, base, "line rule")
        y += STRIP
    return y


def _legend(canvas: Canvas, found: Residency, width: float, y: float) -> float:
    x, y = float(MARGIN), y + 6
    used = {span.activity for lane in found.lanes for span in lane.spans}
    for activity, (letter, family) in LOOKS.items():
        if activity not in used:
            continue
        long = width_of(activity.value, 9) + 34
        if x + long > width - MARGIN and x > MARGIN:
            x, y = float(MARGIN), y + 15
        canvas.rect(x, y, 12, 11, family)
        canvas.text(x + 6, y + 8.5, letter, "ink small", "middle")
        canvas.text(x + 17, y + 8.5, activity.value, "small")
        x += long
    y += 12
    notes = ["thick: working; thin: waiting. Each interval shows its most frequent activity."]
    if found.followed < found.instructions:
        notes.append(
            f"drawn: the first {found.followed:,} of {found.instructions:,} instructions of each warp"
        )
    for note in (*notes, *found.notes):
        y += 13
        canvas.text(MARGIN, y, cut(note, width - 2 * MARGIN, 9), "small faint")
    return y
