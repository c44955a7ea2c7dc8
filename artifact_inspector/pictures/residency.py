"""The schedule of the resident warps of an SM, from a model: what each warp does, and how busy units are."""

from __future__ import annotations

from artifact_inspector.execution.timing.residency import WORKING_ACTIVITIES, Activity, Residency, WarpTimeline
from artifact_inspector.pictures._canvas import Canvas, cut_text, width_of

MARGIN, LEFT, TOP, ROW, GAP = 14, 104, 74, 13, 5
MAX_ROWS = 32
UNITS = ("tensor", "fma", "alu", "xu", "double", "lsu", "l2", "dram")
MIN_BUSY_SHARE = 0.02
"""Least share of busy time of a unit that is drawn."""
STRIP = 24

ACTIVITY_STYLES = {
    Activity.LOADS: ("L", "load"), Activity.MATRIX: ("M", "matrix"), Activity.ARITHMETIC: ("F", "float"),
    Activity.SHARED: ("s", "shared"), Activity.ISSUE: ("i", "other"), Activity.MEMORY: ("W", "wait"),
    Activity.BARRIER: ("B", "barrier"),
}  # fmt: skip
"""Letter and colour family of each activity; waits are thin bars."""


def residency(model: Residency, *, width: float = 960, style: bool = True) -> str:
    """The resident warps of a launch as SVG."""
    canvas = Canvas()
    room = width - 2 * MARGIN
    ctas = "1 CTA" if model.resident_ctas == 1 else f"{model.resident_ctas} CTAs"
    title = f"{model.kernel} · {ctas} of {model.warps_per_cta} warps on one SM of {model.gpu}"
    canvas.text(MARGIN, 20, cut_text(title, room, 13), "head")
    canvas.text(MARGIN, 36, cut_text("model, not measured: the first CTAs, in modelled cycles", room), "alarm")
    summary = "no warp waits for global memory"
    if model.hidden_wait_share is not None:
        summary = (
            f"latency hidden: in {model.hidden_wait_share:.0%} of the cycles in which a warp waits for global memory, "
            "another one computes or uses shared memory"
        )
    canvas.text(MARGIN, 51, cut_text(summary, room), "accent")
    scale = (width - LEFT - MARGIN) / (model.cycles or 1)
    y = _draw_axis(canvas, model, scale, width)
    y = _draw_lanes(canvas, model, scale, y)
    y = _draw_units(canvas, model, width, y + 8)
    y = _draw_legend(canvas, model, width, y + 4)
    return canvas.render(width, y + 8, f"Resident warps of {model.kernel}, a model", summary, style=style)


def _draw_axis(canvas: Canvas, model: Residency, scale: float, width: float) -> float:
    step = 1
    while model.cycles / step > 8:
        step = step * 5 // 2 if str(step)[0] == "2" else step * 2
    canvas.text(MARGIN, TOP - 6, "cycles", "small faint")
    for cycle in range(0, int(model.cycles) + 1, step):
        x = LEFT + cycle * scale
        canvas.line(x, TOP - 4, x, TOP, "line rule")
        if x + width_of(f"{cycle:,}", 9) / 2 < width:
            canvas.text(x, TOP - 6, f"{cycle:,}", "small faint", "middle")
    return float(TOP) + 3


def _draw_lanes(canvas: Canvas, model: Residency, scale: float, y: float) -> float:
    ctas = min(model.resident_ctas, MAX_ROWS)
    warps = max(1, min(model.warps_per_cta, MAX_ROWS // ctas))
    for cta in range(ctas):
        for lane in (warp_lane for warp_lane in model.timelines if warp_lane.cta == cta and warp_lane.warp < warps):
            if lane.warp == 0:
                canvas.text(MARGIN, y + 10, f"CTA {cta}", "small bold")
            canvas.text(LEFT - 6, y + 10, f"warp {lane.warp}", "small faint", "end")
            with canvas.group(_describe_lane(lane, model.cycles)):
                _draw_lane(canvas, lane, scale, y)
            y += ROW
        y += GAP
    if (ctas, warps) != (model.resident_ctas, model.warps_per_cta):
        note = f"drawn: {warps} of {model.warps_per_cta} warps of {ctas} of {model.resident_ctas} CTAs"
        canvas.text(LEFT, y + 8, note, "small alarm")
        y += 13
    return y


def _draw_lane(canvas: Canvas, lane: WarpTimeline, scale: float, y: float) -> None:
    for span in lane.spans:
        letter, family = ACTIVITY_STYLES[span.activity]
        x, long = LEFT + span.start * scale, (span.end - span.start) * scale
        inset = 0 if span.activity in WORKING_ACTIVITIES else 3.5
        canvas.rect(x, y + inset, long, ROW - 2 - 2 * inset, family)
        if long >= (22 if inset else 11):
            if inset:
                canvas.rect(x + long / 2 - 5, y, 10, ROW - 2, family)
            canvas.text(x + long / 2, y + 8.5, letter, "ink small", "middle")


def _describe_lane(lane: WarpTimeline, cycles: float) -> str:
    sorted_cycles = sorted(lane.cycles.items(), key=lambda row: -row[1])
    texts = [f"{spent:,.0f} {activity.value}" for activity, spent in sorted_cycles]
    return f"CTA {lane.cta}, warp {lane.warp}, of {cycles:,.0f} cycles: " + "; ".join(texts)


def _draw_units(canvas: Canvas, model: Residency, width: float, y: float) -> float:
    """Draw how busy each unit is over time; returns the bottom."""
    for unit in UNITS:
        shares = model.unit_utilization.get(unit, ())
        mean = sum(shares) / len(shares) if shares else 0.0
        if mean < MIN_BUSY_SHARE:
            continue
        step = (width - LEFT - MARGIN) / len(shares)
        base = y + STRIP - 5
        canvas.text(LEFT - 6, base - 8, unit, "small bold", "end")
        canvas.text(LEFT - 6, base + 1, f"{mean:.0%} busy", "small faint", "end")
        heights = [base - (STRIP - 8) * share for share in shares]
        path = f"M{LEFT} {base:.1f}" + "".join(
            f"V{top:.1f}H{LEFT + (n + 1) * step:.1f}" for n, top in enumerate(heights)
        )
        with canvas.group(f"{unit}: busy {mean:.0%} of the time", focus=False):
            canvas.path(f"{path}V{base:.1f}Z", "area")
            canvas.line(LEFT, base, width - MARGIN, base, "line rule")
        y += STRIP
    return y


def _draw_legend(canvas: Canvas, model: Residency, width: float, y: float) -> float:
    x, y = float(MARGIN), y + 6
    used = {span.activity for lane in model.timelines for span in lane.spans}
    for activity, (letter, family) in ACTIVITY_STYLES.items():
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
    if model.modelled_instructions < model.warp_instructions:
        notes.append(
            f"drawn: the first {model.modelled_instructions:,} of {model.warp_instructions:,} instructions of each warp"
        )
    return canvas.notes((*notes, *model.notes), MARGIN, y + 13, width) - 13
