"""A register partitioned by lanes: each set of lanes has its own value for all CTAs.

Specialized warps and elected lanes write registers that are affine in one set of lanes and another affine
value in the rest. As one array, all lanes would be computed individually. A step that runs for some lanes
needs only their part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import AffineValue, as_plain_array, select_one_affine
from artifact_inspector.execution.interpreter.values import (
    Mask,
    UnknownValue,
    Value,
    is_entirely_unknown,
    select_lanes,
    select_rows,
)

MOST_PARTS = 8
"""Most sets of lanes in one partition."""


class LaneSubset(NamedTuple):
    """The value of some lanes."""

    mask: NDArray[np.bool_]
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
        if mask.__class__ is np.ndarray:
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

    def keep(self, rows: NDArray[Any]) -> LanePartition:
        """The register for some of the CTAs."""
        return LanePartition(tuple(LaneSubset(subset.mask, select_rows(subset.value, rows)) for subset in self.subsets))


def materialize(value: Value) -> Value:
    """A register without lane partition."""
    return value.materialize() if value.__class__ is LanePartition else value


def has_unknown_bits(value: Value) -> bool:
    """Whether a register has unknown bits."""
    if value.__class__ is LanePartition:
        return any(has_unknown_bits(subset.value) for subset in value.subsets)
    return value.__class__ is UnknownValue


def as_array_value(value: Value) -> Value:
    """A register without lane partition and not affine."""
    value = materialize(value)
    if value.__class__ is UnknownValue:
        return UnknownValue(as_plain_array(value.data), value.unknown_bits, value.missing_inputs)
    return as_plain_array(value)


def write_lanes(mask: NDArray[np.bool_], value: Value, old: Value) -> Value | None:
    """A register after a write to some lanes; None if an array is the better form.

    Args:
        mask: these lanes, the same in all CTAs: shape (1, lanes).
        value: their new value.
        old: the register before.
    """
    if old.__class__ is not LanePartition:
        if is_entirely_unknown(value) and is_entirely_unknown(old):
            return None
        has_unknown = value.__class__ is UnknownValue or old.__class__ is UnknownValue
        if not has_unknown and not varies_by_cta(value) and not varies_by_cta(old):
            return None
        if not has_unknown and (affine_result := select_one_affine(mask, value, old)) is not None:
            return affine_result
        return LanePartition((LaneSubset(mask, value), LaneSubset(np.logical_not(mask), old)))
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


def varies_by_cta(value: Value) -> bool:
    """Whether the known values differ between CTAs."""
    return value.__class__ is AffineValue or (isinstance(value, np.ndarray) and value.shape[0] > 1)
