"""What atomics of SASS do to the values in memory, one lane after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from artifact_inspector.execution.interpreter.memory_access import WordUpdate
from artifact_inspector.execution.interpreter.values import IntArray
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.model.float_formats import FORMATS, FloatFormat, Rounding, bits_of, numbers_of

_INTEGER: Mapping[str, Callable[..., Any]] = {
    "ADD": np.add, "MIN": np.minimum, "MAX": np.maximum, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor, "EXCH": lambda _old, new: new, "INC": lambda old, most: np.where(old >= most, 0, old + 1),
}  # fmt: skip
_FLOAT: Mapping[str, Callable[..., Any]] = {"ADD": np.add, "MIN": np.fmin, "MAX": np.fmax}


def atomic_update(statement: SassStatement, size: int, rounding: Rounding) -> WordUpdate | None:
    """The new word of an atomic from the old one and its operands; None if the operation is not modelled.

    Args:
        size: bytes of an element of each lane.
        rounding: of sums.
    """
    modifiers = statement.modifiers
    if "CAS" in modifiers:
        return lambda old, expected, new: np.asarray(np.where(old == expected, new, old), np.int64)
    kind = next((m for m in modifiers if m in _INTEGER), None)
    if kind is None:
        return None
    if (name := next((m.split("x")[0].split("_")[0] for m in modifiers if m.startswith(("F", "BF"))), None)) in FORMATS:
        return None if kind not in _FLOAT else _float_update(kind, FORMATS[name or ""], size, rounding)
    if any(m.startswith("F64") for m in modifiers):
        return None
    bits, function = 8 * size, _INTEGER[kind]
    if any(m in modifiers for m in ("S32", "S64")) and kind in ("MIN", "MAX") and bits == 32:
        return lambda old, new: (function(_signed(old), _signed(new))) & 0xFFFFFFFF
    return lambda old, new: function(old, new) & ((1 << bits) - 1 if bits < 64 else -1)


def _signed(words: IntArray) -> IntArray:
    return (words ^ 0x80000000) - 0x80000000


def _float_update(kind: str, target: FloatFormat, size: int, rounding: Rounding) -> WordUpdate:
    def update(old: IntArray, new: IntArray) -> IntArray:
        result = np.zeros(old.shape, np.int64)
        for shift in range(0, 8 * size, target.bits):
            with np.errstate(all="ignore"):
                number = _FLOAT[kind](numbers_of(old >> shift, target), numbers_of(new >> shift, target))
            result |= bits_of(rounding.to_format(number, target), target) << shift
        return result

    return update
