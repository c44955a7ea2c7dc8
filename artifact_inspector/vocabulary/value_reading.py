"""Reads numbers back from the worded values of facts: widths, wait depths, matrix instructions, verdicts.

The words are those that `region_facts` and `file_facts` compose, so baselines of older versions are read too.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from artifact_inspector.model import MatrixUnit, OrderVerdict
from artifact_inspector.vocabulary.fact import Value

_WIDTH = re.compile(r"(\d+) ×(\d+)")
_DEPTHS = re.compile(r"(\S+) (\d+)(?:(?:…| and )(\d+))?(?: ×\d+)?")
_MATRIX = re.compile(r"[\d.]+ × (\S+) \S+ \(([^()]*)\)")
_BITS = re.compile(r"[a-z]+(\d+)", re.I)
_UNITS = (MatrixUnit.TCGEN05, MatrixUnit.WGMMA, MatrixUnit.WMMA, MatrixUnit.MFMA, MatrixUnit.MMA)
"""Longer names first: `wgmma` contains `mma`."""
_GENERATIONS = {MatrixUnit.MMA: 1, MatrixUnit.WGMMA: 2, MatrixUnit.TCGEN05: 3}


class MatrixWords(NamedTuple):
    """The matrix instructions that a value names."""

    units: frozenset[MatrixUnit]
    operand_bits: int | None
    """Bits of the widest operand element; None if a type is unknown."""

    @property
    def generation(self) -> int | None:
        """1 for mma.sync, 2 for wgmma, 3 for tcgen05; the oldest if there are several, None for AMD."""
        return min((_GENERATIONS.get(unit, 0) for unit in self.units), default=0) or None


def read_widths(value: Value) -> tuple[int, int] | None:
    """Bytes per thread, each times the width of its access, and bytes, of `("16 ×4", "4 ×1")`.

    Their ratio is the width at which a byte moves on average; few narrow accesses beside wide ones change it little.
    None if a width is unknown.
    """
    matches = [_WIDTH.fullmatch(text) for text in _texts(value)]
    if not all(matches):
        return None
    rows = [(int(match[1]), int(match[2])) for match in matches if match is not None]
    return sum(width**2 * count for width, count in rows), sum(width * count for width, count in rows)


def read_strictest_waits(value: Value) -> dict[str, int]:
    """Wait instruction → loads or groups that its strictest wait leaves in flight."""
    matches = [_DEPTHS.fullmatch(text) for text in _texts(value)]
    return {match[1]: min(int(match[2]), int(match[3] or match[2])) for match in matches if match is not None}


def read_matrix(value: Value) -> MatrixWords:
    """The units and operand types of `("64 × mma.sync m16n8k16 (f16×f16→f32) by 4 warps",)`."""
    units, bits = set(), [0]
    for match in map(_MATRIX.match, _texts(value)):
        if match is None:
            continue
        units |= {next((unit for unit in _UNITS if unit.value in match[1]), MatrixUnit.NONE)}
        elements = match[2].partition("→")[0].split("×")
        sizes = [_BITS.match(element) for element in elements]
        bits += [0 if size is None else int(size[1]) for size in sizes]
    return MatrixWords(frozenset(units), max(bits) or None)


def read_matrix_names(value: Value) -> tuple[str, ...]:
    """`("mma.sync m16n8k16",)` of `("64 × mma.sync m16n8k16 (f16×f16→f32) by 4 warps",)`."""
    return tuple(dict.fromkeys(text.partition(" × ")[2].partition(" (")[0] for text in _texts(value)))


def read_verdict(value: Value) -> OrderVerdict | None:
    """The verdict of `pipelined(2)`, without distance and groups."""
    text = value if isinstance(value, str) else ""
    matching = [verdict for verdict in OrderVerdict if text.startswith(verdict.value)]
    return max(matching, key=lambda verdict: len(verdict.value), default=None)


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()
