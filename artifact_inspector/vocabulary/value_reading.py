"""Reads numbers back from the worded values of facts: widths, wait depths, matrix instructions, verdicts.

The words are those that `region_facts` and `file_facts` compose, so baselines of older versions are read too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.model import MatrixUnit, OrderVerdict, SourceLine
from artifact_inspector.vocabulary.fact import Value

MINOR_SHARE = 0.1
"""Relative change of a count or a mean width up to which it is minor."""
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


def read_widths(*values: Value) -> Mapping[int, int] | None:
    """Bytes per thread → instructions, of `("16 ×4", "4 ×1")`; None if a width is unknown."""
    counts: Counter[int] = Counter()
    for text in (text for value in values for text in _texts(value)):
        match = _WIDTH.fullmatch(text)
        if match is None:
            return None
        counts[int(match[1])] += int(match[2])
    return counts


def compare_widths(left: Mapping[int, float], right: Mapping[int, float]) -> tuple[float, float] | None:
    """The mean width of both sides; None if a side has no access.

    It is the width at which a byte moves on average: few narrow accesses beside wide ones change it little. If it is
    nearly equal, but one side has more instructions for no more bytes, it is the mean over instructions: a prologue
    repeats asynchronous copies, and none of the loads that replace them. Without some of the wide accesses, the others
    are no narrower: the means are equal then.
    """
    sizes = [sum(width * count for width, count in side.items()) for side in (left, right)]
    counts = [sum(side.values()) for side in (left, right)]
    if not all(sizes):
        return None
    old, new = (sum(w * w * n for w, n in side.items()) / size for side, size in zip((left, right), sizes, strict=True))
    lower, higher = (left, right) if old < new else (right, left)
    if all(count <= higher.get(width, 0) for width, count in lower.items()):
        return old, old
    has_more = counts[1] > counts[0]
    are_in_vain = sizes[1] <= sizes[0] if has_more else sizes[1] >= sizes[0]
    is_clear = are_in_vain and abs(counts[1] - counts[0]) > MINOR_SHARE * max(counts)
    if is_clear and abs(new - old) <= MINOR_SHARE * max(old, new):
        return sizes[0] / counts[0], sizes[1] / counts[1]
    return old, new


def find_common_widths(
    left: Sequence[LoadWidth], right: Sequence[LoadWidth], *, are_stores: bool
) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """Width → weight of the statements known on both sides: AMD loads scalars by instructions of their own.

    Stores have equal bytes on both sides, since more lanes share them. Lanes may repeat loads, which costs.
    """
    sides: list[dict[SourceLine | None, Counter[int]]] = [{}, {}]
    for statements, counts_by_source in zip((left, right), sides, strict=True):
        for statement in statements:
            source = None if statement.width is None else statement.source
            counts_by_source.setdefault(source, Counter()).update(statement.widths)
    weights: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for source in (sides[0].keys() & sides[1].keys()) - {None}:
        counts = [side[source] for side in sides]
        sizes = [sum(width * count for width, count in widths.items()) for widths in counts]
        for widths, size, weight in zip(counts, sizes, weights, strict=True):
            share = sum(sizes) / size if are_stores and all(sizes) else 1.0
            for width, instructions in widths.items():
                weight[width] = weight.get(width, 0.0) + instructions * share
    return weights


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
