"""A register that sets of lanes hold for reasons of their own: of each set a value for all CTAs.

Warps that do different work, and lanes that are elected, leave registers that are a sum of what CTAs and
lanes have for those lanes, and another sum for the others. As one array of all lanes they would have to be
computed one by one; a step that runs for some lanes asks only for what these hold.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import Mask, Unknown, Value, choose, is_spoiled, rows_of
from artifact_inspector.execution.interpreter.shifted import Shifted, join, whole

MOST = 8
"""Sets of lanes that are told apart."""


class Piece(NamedTuple):
    """What some lanes hold."""

    mask: NDArray[np.bool_]
    """Shape (1, lanes)."""
    value: Value
    """Right in these lanes."""


class Pieces:
    """A register of several pieces, whose lanes together are all."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Piece, ...]) -> None:
        self.parts = parts

    def within(self, mask: Mask) -> Value:
        """The register, right in some lanes."""
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
        """Whether another register has pieces of the same lanes in the same order."""
        return len(self.parts) == len(other.parts) and all(
            np.array_equal(mine.mask, its.mask) for mine, its in zip(self.parts, other.parts, strict=True)
        )

    def keep(self, rows: NDArray[Any]) -> Pieces:
        """The same of some of the CTAs."""
        return Pieces(tuple(Piece(part.mask, rows_of(part.value, rows)) for part in self.parts))


def together(value: Value) -> Value:
    """A register that is not in pieces."""
    return value.together() if value.__class__ is Pieces else value


def lacks(value: Value) -> bool:
    """Whether something of a register is not known."""
    if value.__class__ is Pieces:
        return any(lacks(part.value) for part in value.parts)
    return value.__class__ is Unknown


def whole_of(value: Value) -> Value:
    """A register that is neither in pieces nor a sum."""
    value = together(value)
    if value.__class__ is Unknown:
        return Unknown(whole(value.data), value.bad, value.why)
    return whole(value)


def written(mask: NDArray[np.bool_], value: Value, old: Value) -> Value | None:
    """A register of which some lanes are written anew; None where that is best told lane by lane.

    Args:
        mask: these lanes, the same in all CTAs: shape (1, lanes).
        value: that they get.
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
    """Whether CTAs hold something else than each other, of what is known."""
    return value.__class__ is Shifted or (isinstance(value, np.ndarray) and value.shape[0] > 1)
