"""Changes of the machine state from one loop iteration to the next, and the states that they predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    bits_unknown,
    condense,
    data_of,
    is_spoiled,
    rows_of,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.pieces import Pieces, whole_of
from artifact_inspector.execution.interpreter.shifted import Shifted, stacked_sums

Name: TypeAlias = Any
"""A register (`str`), or the address of a word of local memory (`int`)."""


class Recorded(dict[str, Value]):
    """Registers that record which of them were read before they were written."""

    def __init__(self, held: Mapping[str, Value]) -> None:
        super().__init__(held)
        self.read: set[str] = set()
        self.written: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a register."""
        if name not in self.written:
            self.read.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Any:
        if name not in self.written:
            self.read.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Any) -> None:
        self.written.add(name)
        super().__setitem__(name, value)


def state_of(machine: Machine) -> dict[Name, Value]:
    """The state of all lanes of a machine: registers, and words of local memory."""
    return {**machine.registers, **machine.local.words}


class Change:
    """The amount that one iteration adds to each register."""

    __slots__ = ("added", "key", "odd")

    def __init__(self, added: dict[Name, Any], odd: Sequence[Name] = ()) -> None:
        self.added = added
        """Modulo 2³²; for a predicate, whether it flips. Unchanged registers are absent."""
        self.odd = odd
        """Registers whose change is not an addition."""
        self.key = {
            name: (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
            for name, value in added.items()
        }

    def without(self, names: set[Name]) -> Change:
        """The same change without some registers."""
        return Change({name: value for name, value in self.added.items() if name not in names})


def find_change(before: Mapping[Name, Value], after: Mapping[Name, Value], names: Iterable[Name]) -> Change:
    """How registers changed between two states."""
    found: dict[Name, Any] = {}
    odd: list[Name] = []
    for name in names:
        old, new = before.get(name), after.get(name)
        if old is new or is_same_unknown(old, new):
            continue
        if _is_no_number(old) or _is_no_number(new) or is_bool(old) is not is_bool(new):
            odd.append(name)
            continue
        added = _added(old, new)
        if added.__class__ is Shifted:
            odd.append(name)
        elif np.any(added):
            found[name] = added.item() if isinstance(added, np.generic) else added
    return Change(found, odd)


def _added(old: Known, new: Known) -> Known:
    return np.not_equal(old, new) if is_bool(old) else np.subtract(new, old) & FULL


def _is_no_number(value: Value) -> bool:
    return value is None or isinstance(value, (Unknown, Pieces))


def is_same_unknown(a: Value, b: Value) -> bool:
    """Whether two registers, or predicates, have the same known bits with the same values."""
    if not isinstance(a, Unknown) or not isinstance(b, Unknown) or a.why != b.why:
        return False
    if is_spoiled(a) and is_spoiled(b):
        return True
    every = True if is_bool(a.bad) else FULL
    return bool(np.all(np.equal(a.bad, b.bad)) and np.all(np.equal(a.data, b.data) | np.equal(a.bad, every)))


def is_bool(value: Value) -> bool:
    """Whether a value is a predicate."""
    return value.dtype == np.bool_ if isinstance(value, (np.ndarray, np.generic)) else isinstance(value, bool)


def follow_on(first: Value, ended: Value, shape: tuple[int, int], count: int) -> Value:
    """The values with which iterations begin: each begins with what the one before it ended with.

    Args:
        first: value before the first iteration.
        ended: value after each iteration, one block of CTAs per iteration.
        shape: CTAs and lanes of one iteration.
        count: number of iterations.
    """
    rows = shape[0]
    if not any(isinstance(value, (Unknown, Pieces)) for value in (first, ended)):
        kept = rows_of(ended, np.arange((count - 1) * rows))
        sums = stacked_sums((first, kept), (rows, (count - 1) * rows))
        if sums is not None:
            return sums
    first, ended = whole_of(first), whole_of(ended)
    data = _stacked(data_of(first), data_of(ended), shape, count)
    if not isinstance(first, Unknown) and not isinstance(ended, Unknown):
        return data
    bad = _stacked(bits_unknown(first), bits_unknown(ended), shape, count)
    if data.dtype == np.bool_:
        bad = bad != 0
    why = [value.why for value in (first, ended) if isinstance(value, Unknown)]
    return condense(Unknown(data, bad, why[0] | why[-1])) if bad.any() else data


def _stacked(first: Any, ended: Any, shape: tuple[int, int], count: int) -> NDArray[Any]:
    rows, lanes = shape
    of = np.broadcast_to(np.asarray(ended), (count * rows, lanes))[: (count - 1) * rows]
    return np.concatenate([np.broadcast_to(np.asarray(first), shape), of])


def is_same(a: Value, b: Value) -> bool:
    """Whether two registers hold the same, as far as known."""
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        return is_same_unknown(a, b)
    return bool(np.all(np.equal(a, b)))


class Foreseen(NamedTuple):
    """The predicted values of a register in the next iterations."""

    all: Value
    """At the beginning of each iteration and after the last, one block of CTAs per iteration."""
    last: Value
    """After the last iteration."""


def foresee(value: Value, changes: list[Any], count: int, ctas: int) -> Foreseen:
    """A register at the beginning of each of the next iterations, and after the last.

    Args:
        value: at the beginning of the first.
        changes: additions of the iterations, repeated cyclically.
        count: number of iterations.
        ctas: CTAs of the register.
    """
    of = value.rows if value.__class__ is Shifted else value
    start = np.asarray(of).reshape((1, 1, 1) if np.ndim(of) == 0 else (1, *of.shape))
    trips = np.arange(count + 1).reshape(-1, 1, 1)
    rounds, place = np.divmod(trips, len(changes))
    held = [
        np.asarray(change).reshape((1, 1) if np.ndim(change) == 0 else change.shape) for change in changes
    ]
    shape = np.broadcast_shapes(*(change.shape for change in held))
    steps = np.stack([np.broadcast_to(change, shape) for change in held])
    if start.dtype == np.bool_:
        turned = np.logical_xor.accumulate(steps, axis=0)
        before = np.concatenate([np.zeros((1, *shape), bool), turned])
        found = start ^ before[place.ravel()] ^ (turned[-1] & (rounds % 2 == 1))
    else:
        sums = np.cumsum(steps, axis=0, dtype=np.int64)
        before = np.concatenate([np.zeros((1, *shape), np.int64), sums])
        found = (start + before[place.ravel()] + rounds * (sums[-1] & FULL)) & FULL
    last = found[-1].item() if found[-1].size == 1 else found[-1]
    whole = np.broadcast_to(found, (count + 1, ctas, found.shape[2])).reshape(-1, found.shape[2])
    if value.__class__ is not Shifted:
        return Foreseen(whole, last)
    if found.shape[2] > 1:
        return Foreseen((whole + value.lanes) & FULL, (last + value.lanes) & FULL)
    return Foreseen(Shifted(whole, value.lanes) & FULL, Shifted(last, value.lanes) & FULL)
