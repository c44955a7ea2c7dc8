"""A warp's access to shared memory: lanes × banks, and the wavefront that serves each word."""

from __future__ import annotations

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.banks import BANKS, Turn, count_access, find_groups, take_turns
from artifact_inspector.execution.interpreter.counters import WarpAccess
from artifact_inspector.execution.prediction import Line, Prediction, SharedAccess
from artifact_inspector.execution.totals import NOT_OF_AMD
from artifact_inspector.pictures._canvas import Canvas, cut
from artifact_inspector.pictures._colours import CYCLE

MARGIN, LEFT, TOP = 14, 112, 84
WIDEST, ROW = 26, 15
"""Pixels of a bank and of a lane."""
BARS = 46
"""Most pixels of the bars below."""


def find_access(prediction: Prediction, place: str | None = None) -> SharedAccess:
    """The access with the most bank conflicts.

    Args:
        place: a source line, `kernel.py:39` or `39`, or a line of machine code, `sass:1146`; None for any.

    Raises:
        UsageError: there is no such access.
    """
    name, known = prediction.kernel, prediction.shared_accesses
    if prediction.is_amd:
        raise UsageError(f"Bank conflicts of {name} are unknown: {NOT_OF_AMD['shared_wavefronts']}.")
    if not known:
        raise UsageError(
            f"No load, store or atomic of {name} with known addresses accesses shared memory in this launch."
        )
    fits = [one for one in known if place is None or _stands_at(one.line, place)]
    if not fits:
        places = ", ".join(dict.fromkeys(one.line.source or _machine_line(one.line) for one in known))
        raise UsageError(f"No access to shared memory at {place}.", f"There are accesses at {places}.")
    return fits[0]


def _stands_at(line: Line, place: str) -> bool:
    """Whether a line is at a place; a bare number is a source line if the source is known."""
    own = _machine_line(line)
    return f":{line.source or own}".endswith(f":{place}") or place == own


def _machine_line(line: Line) -> str:
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
    line, warp = access.line, access.warp
    turns = take_turns(warp)
    found, ideal = count_access(warp)
    canvas = Canvas()
    source = f" · {line.source}" if line.source else ""
    title = f"{prediction.kernel} · {line.opcode}{source} · {line.stage} line {line.line}"
    canvas.text(MARGIN, 20, cut(title, width - 2 * MARGIN, 13), "head")
    taking = sum(address is not None for address in warp.addresses)
    each = f"{warp.size} {'byte' if warp.size == 1 else 'bytes'}"
    of = "lane" if warp.served == 32 else "matrix row"
    said = (
        f"{found} {_wavefronts(found)}, {ideal} without conflicts: warp {warp.warp} of CTA {warp.cta}, "
        f"{taking} lanes, {each} per {of}"
    )
    canvas.text(MARGIN, 38, cut(said, width - 2 * MARGIN), "alarm bold" if found > ideal else "bold")
    canvas.text(MARGIN, 54, cut(_launch(access), width - 2 * MARGIN, 9), "small faint")
    column = min(float(WIDEST), (width - LEFT - MARGIN) / BANKS)
    bottom = _lanes(canvas, warp, turns, column)
    bottom = _busy(canvas, turns, bottom, column)
    for note in _notes(warp):
        canvas.text(MARGIN, bottom, cut(note, width - 2 * MARGIN, 9), "small faint")
        bottom += 13
    return canvas.render(width, bottom, f"Bank conflicts of {line.opcode}", said, style=style)


def _launch(access: SharedAccess) -> str:
    """The wavefronts of all warps of the launch at this line."""
    line = access.line
    if line.wavefronts is None or line.wavefronts_ideal is None:
        return "wavefronts of all warps: unknown, because some addresses are unknown"
    return (
        f"all warps of the launch: {line.wavefronts:,} {_wavefronts(line.wavefronts)}, "
        f"{line.wavefronts_ideal:,} without conflicts; one warp is drawn"
    )


def _wavefronts(count: int) -> str:
    return "wavefront" if count == 1 else "wavefronts"


def _lanes(canvas: Canvas, warp: WarpAccess, turns: tuple[Turn, ...], column: float) -> float:
    """Draw a row for each lane, with a box at each bank that it accesses; returns the bottom."""
    height, right = ROW * len(warp.addresses), LEFT + BANKS * column
    canvas.text(MARGIN, TOP - 6, "lane  address", "small faint")
    for bank in range(BANKS + 1):
        x = LEFT + bank * column
        canvas.line(x, TOP, x, TOP + height, "line rule dotted")
        if bank < BANKS:
            canvas.text(x + column / 2, TOP - 6, str(bank), "small faint", "middle")
    canvas.text(LEFT, TOP - 18, "bank", "small faint")
    asked: dict[int, list[Turn]] = {}
    for turn in turns:
        asked.setdefault(turn.lane, []).append(turn)
    for lane, address in enumerate(warp.addresses):
        y = float(TOP + lane * ROW)
        where = "masked" if address is None else f"{address:#x}"
        canvas.text(MARGIN, y + 11, f"{lane:>2}", "small")
        canvas.text(MARGIN + 34, y + 11, where, "small faint" if address is None else "small")
        if lane in asked:
            with canvas.told(f"lane {lane} at {where}: {_say(asked[lane])}"):
                for turn in asked[lane]:
                    x = LEFT + turn.bank * column
                    family = CYCLE[turn.wavefront % len(CYCLE)]
                    canvas.rect(x + 1, y + 1, column - 2, ROW - 2, f"box edge {family}", round_=2)
                    canvas.text(x + column / 2, y + 11, str(turn.wavefront + 1), "ink small", "middle")
    for group in find_groups(warp):
        y = TOP + group.start * ROW
        canvas.line(MARGIN, y, right, y, "line edge")
    canvas.line(MARGIN, TOP + height, right, TOP + height, "line edge")
    return float(TOP + height)


def _say(turns: list[Turn]) -> str:
    """The banks and wavefronts of a lane."""
    banks = [turn.bank for turn in turns]
    waves = sorted({turn.wavefront + 1 for turn in turns})
    asked = f"bank {banks[0]}" if len(banks) == 1 else f"banks {banks[0]} to {banks[-1]}"
    return f"{asked}, {_wavefronts(len(waves))} {', '.join(map(str, waves))}"


def _busy(canvas: Canvas, turns: tuple[Turn, ...], top: float, column: float) -> float:
    """Draw the number of wavefronts of each bank as bars; returns the bottom."""
    busy: dict[int, set[int]] = {}
    for turn in turns:
        busy.setdefault(turn.bank, set()).add(turn.wavefront)
    most = max(map(len, busy.values()), default=1)
    canvas.text(MARGIN, top + 16, "wavefronts", "small")
    canvas.text(MARGIN, top + 27, "per bank", "small")
    for bank, waves in busy.items():
        x, tall = LEFT + bank * column, BARS * len(waves) / most
        with canvas.told(f"bank {bank}: {len(waves)} {_wavefronts(len(waves))}", focus=False):
            canvas.rect(x + 2, top + 6, column - 4, tall, "box edge other")
            canvas.text(x + column / 2, top + 6 + tall + 10, str(len(waves)), "small", "middle")
    return top + BARS + 36


def _notes(warp: WarpAccess) -> list[str]:
    """The legend."""
    notes = [
        "box: a 4-byte word that a lane accesses, with its wavefront; a bank serves one word per wavefront",
    ]
    if warp.operands:
        notes.append("atomics: lanes that access the same word are served in separate wavefronts")
        if warp.operands > 1:
            notes.append(f"each of the {warp.operands} operands takes these wavefronts once")
    else:
        notes.append("lanes that access the same word share a wavefront: the same number in one column")
    if len(find_groups(warp)) > 1:
        notes.append("horizontal lines separate groups of lanes that never share a wavefront")
    notes.append("the number of wavefronts matches measurements; their order within a bank is unknown")
    return notes
