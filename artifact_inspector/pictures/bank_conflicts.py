"""A warp's access to shared memory: lanes × banks, and the wavefront that serves each word."""

from __future__ import annotations

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.banks import (
    BANKS,
    WordRequest,
    assign_wavefronts,
    count_warp_wavefronts,
    find_lane_groups,
)
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.launch_counters import NOT_ON_AMD
from artifact_inspector.execution.prediction import LinePrediction, Prediction, SharedAccess
from artifact_inspector.pictures._canvas import NUMBERED_FILLS, Canvas, cut_text

MARGIN, LEFT, TOP = 14, 112, 84
MAX_BANK_WIDTH, ROW = 26, 15
"""Pixels of a bank and of a lane."""
BARS = 46
"""Most pixels of the bars below."""


def find_access(prediction: Prediction, location: str | None = None) -> SharedAccess:
    """The access with the most bank conflicts.

    Args:
        location: a source line, `kernel.py:39` or `39`, or a line of machine code, `sass:1146`; None for any.

    Raises:
        UsageError: there is no such access.
    """
    name, accesses = prediction.kernel, prediction.shared_accesses
    if prediction.is_amd:
        raise UsageError(f"Bank conflicts of {name} are unknown: {NOT_ON_AMD['shared_wavefronts']}.")
    if not accesses:
        raise UsageError(
            f"No load, store or atomic of {name} with known addresses accesses shared memory in this launch."
        )
    matching_accesses = [access for access in accesses if location is None or _is_at(access.line, location)]
    if not matching_accesses:
        locations = ", ".join(dict.fromkeys(access.line.source or _machine_line(access.line) for access in accesses))
        raise UsageError(f"No access to shared memory at {location}.", f"There are accesses at {locations}.")
    if location is None and not matching_accesses[0].line.bank_conflicts:
        copies = [line for line in prediction.by_line if line.is_copy and line.bank_conflicts]
        locations = ", ".join(dict.fromkeys(line.source or _machine_line(line) for line in copies))
        raise UsageError(
            f"No load, store or atomic of {name} has bank conflicts"
            f"{f'; its copies do, at {locations}, and are not drawn' if copies else ''}.",
            "Pass --line LINE to draw an access without conflicts.",
        )
    return matching_accesses[0]


def _is_at(line: LinePrediction, location: str) -> bool:
    """Whether a line is at a place; a bare number is a source line if the source is known."""
    machine_line = _machine_line(line)
    return f":{line.source or machine_line}".endswith(f":{location}") or location == machine_line


def _machine_line(line: LinePrediction) -> str:
    return f"{line.stage}:{line.line}"


def bank_conflicts(
    prediction: Prediction, access: SharedAccess | None = None, *, width: float = 960, style: bool = True
) -> str:
    """An access of a launch as SVG.

    Args:
        access: one of the launch; the one with the most conflicts by default.

    Raises:
        UsageError: there is no such access.
    """
    access = access or find_access(prediction)
    line, warp = access.line, access.warp_access
    served_words = assign_wavefronts(warp)
    wavefronts, ideal = count_warp_wavefronts(warp)
    canvas = Canvas()
    source = f" · {line.source}" if line.source else ""
    title = f"{prediction.kernel} · {line.opcode}{source} · {line.stage} line {line.line}"
    canvas.text(MARGIN, 20, cut_text(title, width - 2 * MARGIN, 13), "head")
    active_lanes = sum(address is not None for address in warp.addresses)
    size_text = f"{warp.size} {'byte' if warp.size == 1 else 'bytes'}"
    unit = "lane" if warp.lanes_per_group == 32 else "matrix row"
    summary = (
        f"{wavefronts} {_wavefronts(wavefronts)}, {ideal} without conflicts: warp {warp.warp} of CTA {warp.cta}, "
        f"{active_lanes} lanes, {size_text} per {unit}"
    )
    canvas.text(MARGIN, 38, cut_text(summary, width - 2 * MARGIN), "alarm bold" if wavefronts > ideal else "bold")
    canvas.text(MARGIN, 54, cut_text(_describe_launch(access), width - 2 * MARGIN, 9), "small faint")
    column = min(float(MAX_BANK_WIDTH), (width - LEFT - MARGIN) / BANKS)
    bottom = _draw_lanes(canvas, warp, served_words, column)
    bottom = _draw_bank_bars(canvas, served_words, bottom, column)
    bottom = canvas.notes(_notes(warp), MARGIN, bottom, width)
    return canvas.render(width, bottom, f"Bank conflicts of {line.opcode}", summary, style=style)


def _describe_launch(access: SharedAccess) -> str:
    line = access.line
    if line.wavefronts is None or line.wavefronts_ideal is None:
        return "wavefronts of all warps: unknown, because some addresses are unknown"
    return (
        f"all warps of the launch: {line.wavefronts:,} {_wavefronts(line.wavefronts)}, "
        f"{line.wavefronts_ideal:,} without conflicts; one warp is drawn"
    )


def _wavefronts(count: int) -> str:
    return "wavefront" if count == 1 else "wavefronts"


def _draw_lanes(canvas: Canvas, warp: WarpAccess, served_words: tuple[WordRequest, ...], column: float) -> float:
    """Draw a row for each lane, with a box at each bank that it accesses; returns the bottom."""
    height, right = ROW * len(warp.addresses), LEFT + BANKS * column
    canvas.text(MARGIN, TOP - 6, "lane  address", "small faint")
    for bank in range(BANKS + 1):
        x = LEFT + bank * column
        canvas.line(x, TOP, x, TOP + height, "line rule dotted")
        if bank < BANKS:
            canvas.text(x + column / 2, TOP - 6, str(bank), "small faint", "middle")
    canvas.text(LEFT, TOP - 18, "bank", "small faint")
    words_by_lane: dict[int, list[WordRequest]] = {}
    for word in served_words:
        words_by_lane.setdefault(word.lane, []).append(word)
    for lane, address in enumerate(warp.addresses):
        y = float(TOP + lane * ROW)
        address_text = "masked" if address is None else f"{address:#x}"
        canvas.text(MARGIN, y + 11, f"{lane:>2}", "small")
        canvas.text(MARGIN + 34, y + 11, address_text, "small faint" if address is None else "small")
        if lane in words_by_lane:
            with canvas.group(f"lane {lane} at {address_text}: {_describe_lane(words_by_lane[lane])}"):
                for word in words_by_lane[lane]:
                    x = LEFT + word.bank * column
                    family = NUMBERED_FILLS[word.wavefront % len(NUMBERED_FILLS)]
                    canvas.rect(x + 1, y + 1, column - 2, ROW - 2, f"box edge {family}", round_=2)
                    canvas.text(x + column / 2, y + 11, str(word.wavefront + 1), "ink small", "middle")
    for group in find_lane_groups(warp):
        y = TOP + group.start * ROW
        canvas.line(MARGIN, y, right, y, "line edge")
    canvas.line(MARGIN, TOP + height, right, TOP + height, "line edge")
    return float(TOP + height)


def _describe_lane(served_words: list[WordRequest]) -> str:
    banks = [served_word.bank for served_word in served_words]
    waves = sorted({served_word.wavefront + 1 for served_word in served_words})
    bank_text = f"bank {banks[0]}" if len(banks) == 1 else f"banks {banks[0]} to {banks[-1]}"
    return f"{bank_text}, {_wavefronts(len(waves))} {', '.join(map(str, waves))}"


def _draw_bank_bars(canvas: Canvas, served_words: tuple[WordRequest, ...], top: float, column: float) -> float:
    """Draw the number of wavefronts of each bank as bars; returns the bottom."""
    wavefronts_by_bank: dict[int, set[int]] = {}
    for served_word in served_words:
        wavefronts_by_bank.setdefault(served_word.bank, set()).add(served_word.wavefront)
    peak = max(map(len, wavefronts_by_bank.values()), default=1)
    canvas.text(MARGIN, top + 16, "wavefronts", "small")
    canvas.text(MARGIN, top + 27, "per bank", "small")
    for bank, waves in wavefronts_by_bank.items():
        x, tall = LEFT + bank * column, BARS * len(waves) / peak
        with canvas.group(f"bank {bank}: {len(waves)} {_wavefronts(len(waves))}", focus=False):
            canvas.rect(x + 2, top + 6, column - 4, tall, "box edge other")
            canvas.text(x + column / 2, top + 6 + tall + 10, str(len(waves)), "small", "middle")
    return top + BARS + 36


def _notes(warp: WarpAccess) -> list[str]:
    notes = ["box: a 4-byte word that a lane accesses, with its wavefront; a bank serves one word per wavefront"]
    if warp.operands:
        notes.append("atomics: lanes that access the same word are served in separate wavefronts")
        if warp.operands > 1:
            notes.append(f"each of the {warp.operands} operands takes these wavefronts once")
    else:
        notes.append("lanes that access the same word share a wavefront: the same number in one column")
    if len(find_lane_groups(warp)) > 1:
        notes.append("horizontal lines separate groups of lanes that never share a wavefront")
    notes.append("the number of wavefronts matches measurements; their order within a bank is unknown")
    return notes
