"""The CTAs of a launch: the tile that each writes, its wave, and the bytes each wave reads."""

from __future__ import annotations

from itertools import groupby

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.cta_order import CtaOrder, Wave
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.pictures._canvas import NUMBERED_FILLS, Canvas, cut_text

MARGIN, TOP, SIDE = 14, 64, 380
MAX_TILES = 128
"""Most rows and columns of drawn tiles."""
MAX_WAVES, MAX_OTHER_ORDERS = 12, 8
STRIP = 7


def cta_grid(prediction: Prediction, *, width: float = 960, style: bool = True) -> str:
    """The grid of a launch as SVG.

    Raises:
        UsageError: its CTAs write no grid of tiles, or their waves are unknown.
    """
    order, name = prediction.cta_order, prediction.kernel
    if order is None:
        raise UsageError(
            f"The waves of the CTAs of {name} are unknown.",
            "Pass --ctas-per-wave, or --gpu for a kernel whose registers are known: it has a cubin.",
        )
    if not order.tiles:
        raise UsageError(f"The CTAs of {name} do not write a grid of tiles.")
    canvas = Canvas()
    title = f"{name} · {len(order.tiles):,} CTAs, {order.ctas_per_wave:,} in a wave ({order.basis})"
    canvas.text(MARGIN, 20, cut_text(title, width - 2 * MARGIN, 13), "head")
    canvas.text(MARGIN, 38, "cell: tile that a CTA writes, with the number of its wave", "small faint")
    bottom = _draw_grid(canvas, order)
    bottom = max(bottom, _draw_waves(canvas, order, MARGIN + SIDE + 40, width))
    summary = (
        f"{order.wave_count} waves; the first reads {order.waves[0].distinct_bytes_read:,} distinct bytes "
        f"of {order.waves[0].bytes_requested:,} requested"
    )
    return canvas.render(width, bottom + 14, f"CTAs of {name}", summary, style=style)


def _draw_grid(canvas: Canvas, order: CtaOrder) -> float:
    """Draw the tiles by row and column; returns the bottom."""
    wave_of = {tile: index // order.ctas_per_wave for index, tile in enumerate(order.tiles)}
    rows, columns = (1 + max(tile[axis] for tile in order.tiles) for axis in (0, 1))
    shown_size = (min(rows, MAX_TILES), min(columns, MAX_TILES))
    cell = min(34.0, SIDE / max(shown_size))
    left = MARGIN + STRIP + 3
    first = {tile for tile, wave in wave_of.items() if wave == 0}
    for row in range(shown_size[0]):
        y = TOP + row * cell
        for wave, run in groupby(range(shown_size[1]), key=lambda column: wave_of.get((row, column), -1)):
            cells = list(run)
            tile_range = f"row {row}, columns {cells[0]} to {cells[-1]}"
            with canvas.group(f"wave {wave + 1}: {tile_range}", focus=False):
                fill = f"box edge {NUMBERED_FILLS[wave % len(NUMBERED_FILLS)]}"
                canvas.rect(left + cells[0] * cell, y, len(cells) * cell, cell, fill)
                if cell >= 10:
                    for column in cells:
                        x = left + (column + 0.5) * cell
                        canvas.text(x, y + cell / 2 + 3, str(wave + 1), "ink small", "middle")
    if cell < 10:
        _number_waves(canvas, wave_of, shown_size, left, cell)
    for row in sorted({row for row, _ in first if row < shown_size[0]}):
        canvas.rect(MARGIN, TOP + row * cell + 1, STRIP, cell - 2, "solid")
    for column in sorted({column for _, column in first if column < shown_size[1]}):
        canvas.rect(left + column * cell + 1, TOP - STRIP - 3, cell - 2, STRIP, "solid")
    y = TOP + shown_size[0] * cell + 16
    canvas.text(MARGIN, y, "dark marks at the edges: rows and columns of tiles in wave 1", "small faint")
    if (rows, columns) != shown_size:
        y += 13
        canvas.text(MARGIN, y, f"drawn: {shown_size[0]} × {shown_size[1]} of {rows} × {columns} tiles", "small alarm")
    return y


def _number_waves(
    canvas: Canvas, wave_of: dict[tuple[int, int], int], shown_size: tuple[int, int], left: float, cell: float
) -> None:
    """Draw one number in the middle of each wave if the cells are too small for numbers."""
    tiles: dict[int, list[tuple[int, int]]] = {}
    for (row, column), wave in wave_of.items():
        if row < shown_size[0] and column < shown_size[1]:
            tiles.setdefault(wave, []).append((row, column))
    for wave, wave_tiles in tiles.items():
        if len(wave_tiles) * cell * cell >= 200:
            x, y = (sum(tile[axis] for tile in wave_tiles) / len(wave_tiles) + 0.5 for axis in (1, 0))
            canvas.text(left + x * cell, TOP + y * cell + 4, str(wave + 1), "ink bold", "middle")


def _draw_waves(canvas: Canvas, order: CtaOrder, left: float, width: float) -> float:
    """Draw the bytes that each wave reads and requests, then the bytes of other orders."""
    full, y = width - MARGIN - left, 58.0
    peak = max((wave.bytes_requested for wave in order.waves), default=1) or 1
    canvas.text(left, y, "bytes read by each wave: distinct, of requested", "bold")
    y += 8
    for number, wave in enumerate(order.waves[:MAX_WAVES], 1):
        with canvas.group(f"wave {number}: {_describe_reads(wave)}"):
            canvas.rect(left, y, full * wave.bytes_requested / peak, 15, "box edge other")
            fill = f"box edge {NUMBERED_FILLS[(number - 1) % len(NUMBERED_FILLS)]}"
            canvas.rect(left, y, full * wave.distinct_bytes_read / peak, 15, fill)
            canvas.text(left + 4, y + 11, cut_text(f"{number}  {_describe_reads(wave)}", full - 8, 9), "ink small")
        y += 19
    if order.wave_count > MAX_WAVES:
        canvas.text(left, y + 9, f"… and {order.wave_count - MAX_WAVES} more waves", "small faint")
        y += 14
    y += 22
    if order.alternatives:
        canvas.text(left, y, "distinct bytes of all waves, by CTA order", "bold")
        y += 8
        orders = [("this order", order.distinct_bytes_read)]
        orders += [(other.name, other.distinct_bytes_read) for other in order.alternatives[:MAX_OTHER_ORDERS]]
        peak = max(amount for _, amount in orders) or 1
        for name, amount in orders:
            family = "load" if name == "this order" else "other"
            canvas.rect(left, y, full * amount / peak, 15, f"box edge {family}")
            canvas.text(left + 4, y + 11, cut_text(f"{name}  {_format_size(amount)}", full - 8, 9), "ink small")
            y += 19
    if order.fits_l2:
        note = "everything fits in L2, so the order matters little"
        canvas.text(left, y + 12, cut_text(note, full, 9), "small faint")
        y += 14
    return y


def _describe_reads(wave: Wave) -> str:
    text = f"{_format_size(wave.distinct_bytes_read)} of {_format_size(wave.bytes_requested)}"
    if wave.distinct_tiles is None or wave.tiles_requested is None:
        return text
    return f"{text}, {wave.distinct_tiles:,} of {wave.tiles_requested:,} tiles"


def _format_size(amount: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if amount >= size:
            return f"{amount / size:.1f} {unit}"
    return f"{amount} B"
