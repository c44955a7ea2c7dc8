"""Values of warps: one number for all lanes of a warp."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    IntArray,
    Known,
    Mask,
    Plain,
    as_plain_array,
    broadcast_mask,
    broadcast_value,
)

_Data = TypeVar("_Data", np.int64, np.bool_)


def repeat_in_warps(machine: Machine, values: NDArray[_Data]) -> NDArray[_Data] | int:
    """Numbers of warps, shape (CTAs or 1, warps), repeated in all lanes; one number if all are equal."""
    first = values.flat[0]
    return first.item() if (values == first).all() else np.repeat(values, machine.warp_size, axis=1)


def first_of_warps(machine: Machine, value: Known, mask: Mask) -> Plain:
    """The value of the first lane of each warp that is in a mask, or of lane 0 if none is."""
    plain = as_plain_array(value)
    if not isinstance(plain, np.ndarray) or plain.shape[1] == 1:
        return plain
    rows = len(plain) if isinstance(mask, bool) else max(len(plain), len(mask))
    first = broadcast_mask(mask, (rows, machine.threads)).reshape(rows, -1, machine.warp_size).argmax(axis=2)
    warp_values = broadcast_value(plain, (rows, machine.threads)).reshape(rows, -1, machine.warp_size)
    first_values: IntArray = np.take_along_axis(warp_values, first[:, :, None], axis=2)[:, :, 0]
    return repeat_in_warps(machine, first_values)
