"""A register partitioned by lanes: each set of lanes has its own value for all CTAs.

Specialized warps and elected lanes write registers that are affine in one set of lanes and another affine value in the
rest. As one array, all lanes would be computed individually. A step that runs for some lanes needs only their part.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.affine import AffineValue, as_plain_array, select_one_affine
from artifact_inspector.execution.interpreter.values import (
    BoolArray,
    IntArray,
    Known,
    Mask,
    UnknownValue,
    Value,
    is_entirely_unknown,
    move_lanes,
    select_lanes,
)

MOST_PARTS = 8
"""Most sets of lanes in one partition."""

Register: TypeAlias = "Value | LanePartition"


class LaneSubset(NamedTuple):
    """The value of some lanes."""

    mask: BoolArray
    """Shape (1, lanes)."""
    value: Value
    """Valid in these lanes."""


class LanePartition:
    """A register partitioned by lanes; the parts together cover all lanes."""

    __slots__ = ("subsets",)

    def __init__(self, subsets: tuple[LaneSubset, ...]) -> None:
        self.subsets = subsets

    def value_in(self, mask: Mask) -> Value:
        """The register, valid in some lanes."""
        if isinstance(mask, np.ndarray):
            for subset in self.subsets:
                if subset.mask is mask or (mask <= subset.mask).all():
                    return subset.value
        return self.materialize()

    def materialize(self) -> Value:
        """The register in all lanes."""
        merged = as_array_value(self.subsets[0].value)
        for subset in self.subsets[1:]:
            merged = select_lanes(subset.mask, as_array_value(subset.value), merged)
        return merged

    def has_same_subsets(self, other_partition: LanePartition) -> bool:
        """Whether another register is partitioned into the same sets of lanes in the same order."""
        return len(self.subsets) == len(other_partition.subsets) and all(
            np.array_equal(own_subset.mask, other_subset.mask)
            for own_subset, other_subset in zip(self.subsets, other_partition.subsets, strict=True)
        )


def materialize(value: Register) -> Value:
    """A register without lane partition."""
    return value.materialize() if isinstance(value, LanePartition) else value


def value_in_lanes(register: Register, mask: BoolArray) -> Value:
    """A register in some lanes, the same in all CTAs; one column if these lanes agree."""

    def column(plane: Known) -> Known:
        lanes = plane[:, mask[0]] if isinstance(plane, np.ndarray) and plane.shape[1] > 1 else None
        return plane if lanes is None or (lanes != lanes[:, :1]).any() else lanes[:, :1]

    return move_lanes(column, register.value_in(mask) if isinstance(register, LanePartition) else register)


def has_unknown_bits(value: Register) -> bool:
    """Whether a register has unknown bits."""
    if isinstance(value, LanePartition):
        return any(has_unknown_bits(subset.value) for subset in value.subsets)
    return isinstance(value, UnknownValue)


def as_array_value(value: Register) -> Value:
    """A register without lane partition and not affine."""
    value = materialize(value)
    return value._replace(data=as_plain_array(value.data)) if isinstance(value, UnknownValue) else as_plain_array(value)


def select_rows(value: Register, rows: IntArray) -> Register:
    """A register for some of the CTAs."""
    if isinstance(value, LanePartition):
        return LanePartition(tuple(LaneSubset(mask, _select_rows(part, rows)) for mask, part in value.subsets))
    return _select_rows(value, rows)


def _select_rows(value: Value, rows: IntArray) -> Value:
    if isinstance(value, UnknownValue):
        unknown_bits = as_plain_array(_select_known_rows(value.unknown_bits, rows))
        return UnknownValue(_select_known_rows(value.data, rows), unknown_bits, value.missing_inputs)
    return _select_known_rows(value, rows)


def _select_known_rows(value: Known, rows: IntArray) -> Known:
    if isinstance(value, AffineValue):
        return value.keep(rows)
    if not isinstance(value, np.ndarray):
        return value
    selected = value[rows] if value.ndim == 2 and value.shape[0] > 1 else value
    return selected.item() if selected.size == 1 else selected


def write_lanes(mask: BoolArray, value: Value, old: Register) -> Register | None:
    """A register after a write to some lanes; None if an array is the better form.

    Args:
        mask: these lanes, the same in all CTAs: shape (1, lanes).
        value: their new value.
        old: the register before.
    """
    value = value_in_lanes(value, mask)
    if not isinstance(old, LanePartition):
        if is_entirely_unknown(value) and is_entirely_unknown(old):
            return None
        if not isinstance(value, UnknownValue) and not isinstance(old, UnknownValue):
            if not varies_by_cta(value) and not varies_by_cta(old):
                return None
            if (affine_result := select_one_affine(mask, value, old)) is not None:
                return affine_result
        return LanePartition((LaneSubset(mask, value), LaneSubset(np.logical_not(mask), old)))
    lanes = mask.tobytes()
    for at, subset in enumerate(old.subsets):  # mostly lanes that were written together before
        if subset.mask is mask or subset.mask.tobytes() == lanes:
            return LanePartition((LaneSubset(mask, value), *old.subsets[:at], *old.subsets[at + 1 :]))
    remaining_subsets = []
    for subset in old.subsets:
        remaining_lanes = subset.mask if subset.mask is not mask else subset.mask & False
        if remaining_lanes is subset.mask and (overlap := remaining_lanes & mask).any():
            remaining_lanes = remaining_lanes & ~overlap
        if remaining_lanes.any():
            remaining_subsets.append(
                subset if remaining_lanes is subset.mask else LaneSubset(remaining_lanes, subset.value)
            )
    if not remaining_subsets:
        return value
    return LanePartition((LaneSubset(mask, value), *remaining_subsets)) if len(remaining_subsets) < MOST_PARTS else None


def varies_by_cta(value: Known) -> bool:
    """Whether the known values differ between CTAs."""
    return isinstance(value, AffineValue) or (isinstance(value, np.ndarray) and value.shape[0] > 1)
