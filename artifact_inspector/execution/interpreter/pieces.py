"""A register partitioned by lanes: each set of lanes has its own value for all CTAs.

Specialized warps and elected lanes write registers that are affine in one set of lanes and another affine
value in the rest. As one array, all lanes would be computed individually. A step that runs for some lanes
needs only their part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import Mask, Unknown, Value, choose, is_spoiled, rows_of
from artifact_inspector.execution.interpreter.shifted import Shifted, join, whole

MOST = 8
"""Most sets of lanes in one partition."""


class Piece(NamedTuple):
    """The value of some lanes."""

    mask: NDArray[np.bool_]
    """Shape (1, lanes)."""
    value: Value
    """Valid in these lanes."""


class Pieces:
    """A register partitioned by lanes; the parts together cover all lanes."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Piece, ...]) -> None:
        self.parts = parts

    def within(self, mask: Mask) -> Value:
        """The register, valid in some lanes."""
        if mask.__class__ is np.ndarray:
            for part in self.parts:
                if part.mask is mask or (mask <= part.mask).all():
                    return part.value
        return self.together()

    def together(self) -> Value:
        """The register in all lanes."""
        found = whole_of(self.parts[0].value)
        for part in self.parts[1:]:
            found = choose(part.mask, whole_of(part.value), found)
        return found

    def is_cut_as(self, other: Pieces) -> bool:
        """Whether another register is partitioned into the same sets of lanes in the same order."""
        return len(self.parts) == len(other.parts) and all(
            np.array_equal(mine.mask, its.mask) for mine, its in zip(self.parts, other.parts, strict=True)
        )

    def keep(self, rows: NDArray[Any]) -> Pieces:
        """The register for some of the CTAs."""
        return Pieces(tuple(Piece(part.mask, rows_of(part.value, rows)) for part in self.parts))


def together(value: Value) -> Value:
    """A register without lane partition."""
    return value.together() if value.__class__ is Pieces else value


def lacks(value: Value) -> bool:
    """Whether a register has unknown bits."""
    if value.__class__ is Pieces:
        return any(lacks(part.value) for part in value.parts)
    return value.__class__ is Unknown


def whole_of(value: Value) -> Value:
    """A register without lane partition and not affine."""
    value = together(value)
    if value.__class__ is Unknown:
        return Unknown(whole(value.data), value.bad, value.why)
    return whole(value)


def written(mask: NDArray[np.bool_], value: Value, old: Value) -> Value | None:
    """A register after a write to some lanes; None if an array is the better form.

    Args:
        mask: these lanes, the same in all CTAs: shape (1, lanes).
        value: their new value.
        old: the register before.
    """
    if old.__class__ is not Pieces:
        if is_spoiled(value) and is_spoiled(old):
            return None
        unknown = value.__class__ is Unknown or old.__class__ is Unknown
        if not unknown and not differs(value) and not differs(old):
            return None
        if not unknown and (found := join(mask, value, old)) is not None:
            return found
        return Pieces((Piece(mask, value), Piece(np.logical_not(mask), old)))
    kept = []
    for part in old.parts:
        left = part.mask if part.mask is not mask else part.mask & False
        if left is part.mask and (both := left & mask).any():
            left = left & ~both
        if left.any():
            kept.append(part if left is part.mask else Piece(left, part.value))
    if not kept:
        return value
    return Pieces((Piece(mask, value), *kept)) if len(kept) < MOST else None


def differs(value: Value) -> bool:
    """Whether the known values differ between CTAs."""
    return value.__class__ is Shifted or (isinstance(value, np.ndarray) and value.shape[0] > 1)
