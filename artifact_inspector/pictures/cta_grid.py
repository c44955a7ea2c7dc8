"""The CTAs of a launch: the tile that each writes, its wave, and the bytes each wave reads."""

from __future__ import annotations

from itertools import groupby

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.order import CtaOrder, Wave
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.pictures._canvas import Canvas, cut
from artifact_inspector.pictures._colours import CYCLE

MARGIN, TOP, SIDE = 14, 64, 380
MOST_TILES = 128
"""Most rows and columns of drawn tiles."""
MOST_WAVES, MOST_OTHERS = 12, 8
STRIP = 7


def cta_grid(prediction: Prediction, *, width: float = 960, style: bool = True) -> str:
    """The grid of a launch as SVG.

    Raises:
        UsageError: its CTAs write no grid of tiles, or their waves are unknown.
    """
    order, name = prediction.cta_order, prediction.kernel
    if order is None:
        raise UsageError(f"The waves of the CTAs of {name} are unknown.", "Pass --gpu or --ctas-per-wave.")
    if not order.tiles:
        raise UsageError(f"The CTAs of {name} do not write a grid of tiles.")
    canvas = Canvas()
    title = f"{name} · {len(order.tiles):,} CTAs, {order.ctas_per_wave:,} in a wave ({order.basis})"
    canvas.text(MARGIN, 20, cut(title, width - 2 * MARGIN, 13), "head")
    canvas.text(MARGIN, 38, "cell: tile that a CTA writes, with the number of its wave", "small faint")
    bottom = _grid(canvas, order)
    bottom = max(bottom, _waves(canvas, order, MARGIN + SIDE + 40, width))
    summary = (
        f"{order.waves_in_all} waves; the first reads {order.waves[0].distinct_bytes_read:,} distinct bytes "
        f"of {order.waves[0].bytes_asked:,} requested"
    )
    return canvas.render(width, bottom + 14, f"CTAs of {name}", summary, style=style)


def _grid(canvas: Canvas, order: CtaOrder) -> float:
    """Draw the tiles by row and column; returns the bottom."""
    wave_of = {tile: place // order.ctas_per_wave for place, tile in enumerate(order.tiles)}
    rows, columns = (1 + max(tile[axis] for tile in order.tiles) for axis in (0, 1))
    shown = (min(rows, MOST_TILES), min(columns, MOST_TILES))
    cell = min(34.0, SIDE / max(shown))
    left = MARGIN + STRIP + 3
    first = {tile for tile, wave in wave_of.items() if wave == 0}
    for row in range(shown[0]):
        y = TOP + row * cell
        for wave, run in groupby(range(shown[1]), key=lambda column: wave_of.get((row, column), -1)):
            cells = list(run)
            where = f"row {row}, columns {cells[0]} to {cells[-1]}"
            with canvas.told(f"wave {wave + 1}: {where}", focus=False):
                canvas.rect(
                    left + cells[0] * cell, y, len(cells) * cell, cell, f"box edge {CYCLE[wave % len(CYCLE)]}"
                )
                if cell >= 10:
                    for column in cells:
                        x = left + (column + 0.5) * cell
                        canvas.text(x, y + cell / 2 + 3, str(wave + 1), "ink small", "middle")
    if cell < 10:
        _number_waves(canvas, wave_of, shown, (left, TOP, cell))
    for row in sorted({row for row, _ in first if row < shown[0]}):
        canvas.rect(MARGIN, TOP + row * cell + 1, STRIP, cell - 2, "solid")
    for column in sorted({column for _, column in first if column < shown[1]}):
        canvas.rect(left + column * cell + 1, TOP - STRIP - 3, cell - 2, STRIP, "solid")
    y = TOP + shown[0] * cell + 16
    canvas.text(MARGIN, y, "dark marks at the edges: rows and columns of tiles in wave 1", "small faint")
    if (rows, columns) != shown:
        y += 13
        canvas.text(MARGIN, y, f"drawn: {shown[0]} × {shown[1]} of {rows} × {columns} tiles", "small alarm")
    return y


def _number_waves(
    canvas: Canvas,
    wave_of: dict[tuple[int, int], int],
    shown: tuple[int, int],
    place: tuple[float, float, float],
) -> None:
    """Draw one number in the middle of each wave if the cells are too small for numbers."""
    left, top, cell = place
    tiles: dict[int, list[tuple[int, int]]] = {}
    for (row, column), wave in wave_of.items():
        if row < shown[0] and column < shown[1]:
            tiles.setdefault(wave, []).append((row, column))
    for wave, held in tiles.items():
        if len(held) * cell * cell >= 200:
            x, y = (sum(tile[axis] for tile in held) / len(held) + 0.5 for axis in (1, 0))
            canvas.text(left + x * cell, top + y * cell + 4, str(wave + 1), "ink bold", "middle")


def _waves(canvas: Canvas, order: CtaOrder, left: float, width: float) -> float:
    """Draw the bytes that each wave reads and requests, then the bytes of other orders."""
    full, y = width - MARGIN - left, 58.0
    most = max((wave.bytes_asked for wave in order.waves), default=1) or 1
    canvas.text(left, y, "bytes read by each wave: distinct, of requested", "bold")
    y += 8
    for number, wave in enumerate(order.waves[:MOST_WAVES], 1):
        with canvas.told(f"wave {number}: {_reads(wave)}"):
            canvas.rect(left, y, full * wave.bytes_asked / most, 15, "box edge other")
            canvas.rect(
                left,
                y,
                full * wave.distinct_bytes_read / most,
                15,
                f"box edge {CYCLE[(number - 1) % len(CYCLE)]}",
            )
            canvas.text(left + 4, y + 11, cut(f"{number}  {_reads(wave)}", full - 8, 9), "ink small")
        y += 19
    if order.waves_in_all > MOST_WAVES:
        canvas.text(left, y + 9, f"… and {order.waves_in_all - MOST_WAVES} more waves", "small faint")
        y += 14
    y += 22
    if order.others:
        canvas.text(left, y, "distinct bytes of all waves, by CTA order", "bold")
        y += 8
        ways = [("this order", order.distinct_bytes_read)]
        ways += [(other.name, other.distinct_bytes_read) for other in order.others[:MOST_OTHERS]]
        most = max(amount for _, amount in ways) or 1
        for name, amount in ways:
            family = "load" if name == "this order" else "other"
            canvas.rect(left, y, full * amount / most, 15, f"box edge {family}")
            canvas.text(left + 4, y + 11, cut(f"{name}  {_size(amount)}", full - 8, 9), "ink small")
            y += 19
    if order.fits_l2:
        said = "everything fits in L2, so the order matters little"
        canvas.text(left, y + 12, cut(said, full, 9), "small faint")
        y += 14
    return y


def _reads(wave: Wave) -> str:
    said = f"{_size(wave.distinct_bytes_read)} of {_size(wave.bytes_asked)}"
    if wave.distinct_tiles is None or wave.tiles_asked is None:
        return said
    return f"{said}, {wave.distinct_tiles:,} of {wave.tiles_asked:,} tiles"


def _size(amount: int) -> str:
    for size, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if amount >= size:
            return f"{amount / size:.1f} {unit}"
    return f"{amount} B"
