"""Changes of the machine state from one loop iteration to the next, and the states that they predict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.affine import AffineValue, is_int_array, to_affine
from artifact_inspector.execution.interpreter.lane_partition import (
    MOST_PARTS,
    LanePartition,
    LaneSubset,
    Register,
    materialize,
    select_rows,
    value_in_lanes,
)
from artifact_inspector.execution.interpreter.state import MachineState, merge_register
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Plain,
    UnknownValue,
    Value,
    in_affine_form,
    is_entirely_unknown,
)

StateName: TypeAlias = "str | int"
"""A register, or the address of a word of local memory."""


class RecordedRegisters(dict[str, Register]):
    """Registers that record which of them were read before they were written."""

    def __init__(self, registers: Mapping[str, Register]) -> None:
        super().__init__(registers)
        self.read_names: set[str] = set()
        self.written_names: set[str] = set()

    def get(self, name: str, default: Register | None = None) -> Register | None:  # type: ignore[override]
        """The value of a register."""
        if name not in self.written_names:
            self.read_names.add(name)
        return super().get(name, default)

    def __getitem__(self, name: str) -> Register:
        if name not in self.written_names:
            self.read_names.add(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, value: Register) -> None:
        self.written_names.add(name)
        super().__setitem__(name, value)


def machine_state(machine: MachineState) -> dict[StateName, Register]:
    """The state of all lanes of a machine: registers, and words of local memory."""
    state: dict[StateName, Register] = dict(machine.registers.items())
    state.update(machine.local_memory.lane_words.items())
    return state


class StateChange:
    """The amount that one iteration adds to each register."""

    __slots__ = ("increments", "irregular", "key")

    def __init__(self, added: dict[StateName, Plain], odd: Sequence[StateName] = ()) -> None:
        self.increments = added
        """Modulo 2³²; for a predicate, whether it flips. Unchanged registers are absent."""
        self.irregular = odd
        """Registers whose change is not an addition."""
        self.key = {
            name: (value.shape, value.tobytes()) if isinstance(value, np.ndarray) else value
            for name, value in added.items()
        }


def find_state_change(
    old_state: Mapping[StateName, Register], new_state: Mapping[StateName, Register], names: Iterable[StateName]
) -> StateChange:
    """How registers changed between two states."""
    increments: dict[StateName, Plain] = {}
    irregular: list[StateName] = []
    for name in names:
        old, new = old_state.get(name), new_state.get(name)
        if old is new or have_equal_known_bits(old, new):
            continue
        increment = _increment(old, new)
        if increment is None or isinstance(increment, AffineValue):
            irregular.append(name)
        elif np.any(increment):
            increments[name] = increment.item() if isinstance(increment, np.generic) else increment
    return StateChange(increments, irregular)


def _increment(old: Register | None, new: Register | None) -> Known | None:
    """What was added, or whether a predicate flips; None if either is no number."""
    if old is None or new is None or isinstance(old, _NO_NUMBERS) or isinstance(new, _NO_NUMBERS):
        return None
    if is_predicate(old) is not is_predicate(new):
        return None
    if is_predicate(old):
        return np.not_equal(old, new)
    increment = np.subtract(new, old) & FULL
    simplest = to_affine(increment) if is_int_array(increment) else increment
    return increment if isinstance(simplest, AffineValue) else simplest


_NO_NUMBERS = (UnknownValue, LanePartition)


def have_equal_known_bits(a: Register | None, b: Register | None) -> bool:
    """Whether two registers, or predicates, have the same known bits with the same values."""
    if not isinstance(a, UnknownValue) or not isinstance(b, UnknownValue) or a.missing_inputs != b.missing_inputs:
        return False
    if is_entirely_unknown(a) and is_entirely_unknown(b):
        return True
    every = True if is_predicate(a.unknown_bits) else FULL
    return bool(
        np.all(np.equal(a.unknown_bits, b.unknown_bits))
        and np.all(np.equal(a.data, b.data) | np.equal(a.unknown_bits, every))
    )


def is_predicate(value: Register) -> bool:
    """Whether a value is a predicate."""
    return value.dtype == np.bool_ if isinstance(value, (np.ndarray, np.generic)) else isinstance(value, bool)


def chain_iterations(first: Register, end_values: Register, shape: tuple[int, int], count: int) -> Register:
    """The values with which iterations begin: each begins with what the one before it ended with.

    Args:
        first: value before the first iteration.
        end_values: value after each iteration, one block of CTAs per iteration.
        shape: CTAs and lanes of one iteration.
    """
    counts = shape[0], (count - 1) * shape[0]
    chained: tuple[Register, ...] = first, select_rows(end_values, np.arange(counts[1]))
    if isinstance(end_values, LanePartition):
        masks = [mask for mask, _ in end_values.subsets]
        chained = tuple(
            LanePartition(tuple(LaneSubset(mask, value_in_lanes(part, mask)) for mask in masks)) for part in chained
        )
    return merge_register(chained, counts, (count * shape[0], shape[1]))


def have_equal_values(a: Register, b: Register) -> bool:
    """Whether two registers hold the same, as far as known."""
    if isinstance(a, LanePartition) and isinstance(b, LanePartition) and a.has_same_subsets(b):
        return all(have_equal_values(x.value, y.value) for x, y in zip(a.subsets, b.subsets, strict=True))
    a, b = materialize(a), materialize(b)
    if isinstance(a, UnknownValue) or isinstance(b, UnknownValue):
        return have_equal_known_bits(a, b)
    return bool(np.all(np.equal(a, b)))


class PredictedRegister(NamedTuple):
    """The predicted values of a register in the next iterations."""

    all_values: Register
    """At the beginning of each iteration and after the last, one block of CTAs per iteration."""
    final_value: Value
    """After the last iteration."""


def with_cta_numbers(value: Register, shape: tuple[int, int]) -> Register:
    """A register that differs between lanes as an affine value, if it is one: iterations add to the numbers of CTAs."""
    if isinstance(value, np.ndarray) and value.dtype == np.int64 and value.shape == (1, shape[1]):
        return AffineValue(np.zeros((shape[0], 1), np.int64), value.astype(np.int64, copy=False))
    return value if isinstance(value, LanePartition) else in_affine_form(value, shape)


def predict_register(value: Register, changes: Sequence[Plain], count: int, ctas: int) -> PredictedRegister:
    """A register at the beginning of each of the next iterations, and after the last.

    Args:
        value: at the beginning of the first.
        changes: additions of the iterations, repeated cyclically.
        ctas: CTAs of the register.
    """
    assert not isinstance(value, (UnknownValue, LanePartition))
    cta_values = value.rows if isinstance(value, AffineValue) else value
    start = np.asarray(cta_values)[None] if np.ndim(cta_values) else np.asarray(cta_values).reshape(1, 1, 1)
    iterations = np.arange(count + 1).reshape(-1, 1, 1)
    cycles, phase = np.divmod(iterations, len(changes))
    change_arrays = [np.atleast_2d(np.asarray(change)) for change in changes]
    shape = np.broadcast_shapes(*(change.shape for change in change_arrays))
    steps = np.stack([np.broadcast_to(change, shape) for change in change_arrays])
    if start.dtype == np.bool_:
        flips = np.logical_xor.accumulate(steps, axis=0)
        prefix_sums = np.concatenate([np.zeros((1, *shape), bool), flips])
        predicted = start ^ prefix_sums[phase.ravel()] ^ (flips[-1] & (cycles % 2 == 1))
    else:
        sums = np.cumsum(steps, axis=0, dtype=np.int64)
        prefix_sums = np.concatenate([np.zeros((1, *shape), np.int64), sums])
        predicted = (start + prefix_sums[phase.ravel()] + cycles * (sums[-1] & FULL)) & FULL
    final_value = predicted[-1].item() if predicted[-1].size == 1 else predicted[-1]
    stacked = np.broadcast_to(predicted, (count + 1, ctas, predicted.shape[2])).reshape(-1, predicted.shape[2])
    if not isinstance(value, AffineValue):
        return PredictedRegister(stacked, final_value)
    if predicted.shape[2] > 1:
        return PredictedRegister((stacked + value.lanes) & FULL, (final_value + value.lanes) & FULL)
    return PredictedRegister(*(AffineValue(x, value.lanes) & FULL for x in (stacked, np.atleast_2d(final_value))))


def predict_lane_sets(
    value: Register, changes: Sequence[Plain], count: int, shape: tuple[int, int]
) -> PredictedRegister | None:
    """The same as a lane partition, if few sets of lanes change alike, in all CTAs; None otherwise.

    An elected lane of one warp counts stages: as one array, each iteration would have all lanes of all CTAs.
    """
    arrays = [np.atleast_2d(np.asarray(change)) for change in changes]
    if any(len(array) > 1 or array.dtype == np.bool_ for array in arrays) or all(x.shape[1] == 1 for x in arrays):
        return None
    columns = np.concatenate([np.broadcast_to(array, (1, shape[1])) for array in arrays])
    _, firsts, set_of_lane = np.unique(columns, axis=1, return_index=True, return_inverse=True)
    if len(firsts) > MOST_PARTS:
        return None
    all_parts, final_parts = [], []
    for number, first in enumerate(firsts.tolist()):
        mask = (set_of_lane == number).reshape(1, -1)
        own_value = with_cta_numbers(value_in_lanes(value, mask), shape)
        predicted = predict_register(own_value, columns[:, first].tolist(), count, shape[0])
        all_parts.append(LaneSubset(mask, materialize(predicted.all_values)))
        final_parts.append(LaneSubset(mask, predicted.final_value))
    return PredictedRegister(LanePartition(tuple(all_parts)), LanePartition(tuple(final_parts)).materialize())
