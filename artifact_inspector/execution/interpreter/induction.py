"""Loop iterations in parallel: predict the state of each, run all at once, and prove the prediction.

`IterationHypothesis` extrapolates the state changes of earlier iterations and sets up the states in which the next ones
would begin. They run as if they were further CTAs. If each ends in the state in which the next began, the result equals
sequential execution: by induction, since the first begins in the actual state. Counters and touched memory are buffered
until then, and discarded if any state differs.

Some registers do not change by a constant, such as the unused upper half of an address. They start unpredicted; the end
of each iteration then supplies the value for the next, and all run again until nothing changes.

The proof fails if iterations diverge, store to a tensor whose values were given, leave tensors, or have more unknown
values in parallel than one by one.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from artifact_inspector.execution.interpreter.affine import is_affine_worthwhile
from artifact_inspector.execution.interpreter.counters import StepLimitReached
from artifact_inspector.execution.interpreter.cta_memory import CapacityExceeded, CtaMemory
from artifact_inspector.execution.interpreter.global_memory import Journal, OrderDependent
from artifact_inspector.execution.interpreter.lane_partition import (
    LanePartition,
    Register,
    as_array_value,
    has_unknown_bits,
    materialize,
    select_rows,
    value_in_lanes,
)
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import MALFORMED_OPERAND_ERRORS, UndecidedPath
from artifact_inspector.execution.interpreter.state import MachineState
from artifact_inspector.execution.interpreter.state_changes import (
    PredictedRegister,
    RecordedRegisters,
    StateChange,
    StateName,
    chain_iterations,
    have_equal_known_bits,
    have_equal_values,
    is_predicate,
    machine_state,
    predict_lane_sets,
    predict_register,
    with_cta_numbers,
)
from artifact_inspector.execution.interpreter.values import (
    IntArray,
    Known,
    UnknownValue,
    Value,
    in_affine_form,
    missing_inputs_of,
    unknown_bits_of,
)

FEWEST_ITERATIONS = 6
"""Fewest iterations for which it is worthwhile."""
MOST_SHARED_BYTES = 1 << 25
"""Most bytes of shared memory that are copied for all iterations."""

_MOST_RERUNS = 6
"""Most runs until the irregular registers settle."""


class _IterationsDiverged(Exception):  # noqa: N818 - no error: the iterations before it can run in parallel
    """Iterations diverge."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row}")
        self.row = row


class _SpeculativeMachine(Machine):
    """The machine on which iterations run as if they were further CTAs.

    Every iteration may hold other values in a register whose lanes are partly unknown. Such an array has all lanes of
    all iterations: with many of them the iterations cost more than one by one (a scan: 16 s instead of 0.3 s).
    """

    has_exact_trace = False
    remaining_arrays = sys.maxsize
    """Arrays with unknown lanes that may still be written."""

    def write_register(self, name: str, value: Value) -> None:
        """Write a register in the active lanes.

        Raises:
            CapacityExceeded: too many registers are arrays with unknown lanes.
        """
        super().write_register(name, value)
        register = self.registers[name]
        if isinstance(register, UnknownValue) and np.shape(register.data) == self.shape:
            self.remaining_arrays -= 1
            if self.remaining_arrays < 0:
                raise CapacityExceeded

    def _split_off_outcomes(self, outcomes: IntArray, _kinds: list[int]) -> None:
        raise _IterationsDiverged(int(np.flatnonzero(outcomes != outcomes[0])[0]))

    def run_iteration(self, header: int) -> bool:
        """Run until all lanes are back at the loop header; False if they do not arrive."""
        while self.groups:
            self._run_lowest_group()
            if len(self.groups) == 1 and not self.waiting and self.groups[0].pc == header:
                return self.group.pc <= self.step.index
            masks = [group.mask for group in (*self.groups, *self.waiting)]
            if self.has_exact_trace and any(isinstance(m, np.ndarray) and len(m) > 1 for m in masks):
                return False
        return False


class IterationHypothesis:
    """A hypothesis about the next iterations of a loop.

    Args:
        machine: at the beginning of the first.
        changes: of the iterations, repeated cyclically.
        steps: most steps of one iteration.
        arrays: most arrays with unknown lanes that all iterations write.
        odd: registers whose change is not an addition.
    """

    def __init__(
        self,
        machine: Machine,
        changes: Sequence[StateChange],
        count: int,
        steps: int,
        arrays: int = sys.maxsize,
        odd: Iterable[StateName] = (),
    ) -> None:
        self.machine, self.count, self.step_limit, self.array_limit = machine, count, steps, arrays
        self.exceeds_capacity = False
        """Whether the iterations write more arrays than allowed: fewer of them may do."""
        state = machine_state(machine)
        self.irregular: dict[StateName, Register | None] = {name: None for name in odd if state.get(name) is not None}
        """Irregular register → its value at the beginning of each iteration, once observed."""
        self.predicted: dict[StateName, PredictedRegister] = {}
        uses_affine = is_affine_worthwhile(count * machine.rows, machine.threads)
        for name in dict.fromkeys(name for change in changes for name in change.increments):
            if name in self.irregular:
                continue
            zero = False if is_predicate(state[name]) else 0
            added = [change.increments.get(name, zero) for change in changes]
            value = with_cta_numbers(state[name], machine.shape) if uses_affine else state[name]
            by_lanes = predict_lane_sets(value, added, count, machine.shape) if uses_affine else None
            self.predicted[name] = by_lanes or predict_register(value, added, count, machine.rows)

    def run(self, *, allows_rerun: bool = True) -> int:
        """Run the iterations; if all of them are proven, the machine continues after them.

        Args:
            allows_rerun: whether mispredicted registers may be settled by running again.

        Returns:
            Number of proven iterations; if not all are, the number that is worth trying next.
        """
        machine = self.machine
        shared_content = machine.shared_memory.content
        if (
            shared_content is not None
            and len(shared_content) > 1
            and self.count * shared_content.size > MOST_SHARED_BYTES
        ):
            return 0  # a single row shared by all CTAs is not copied
        input_count = machine.input_names.count()
        for _ in range(_MOST_RERUNS):
            speculative = self._make_speculative()
            initial_state = machine_state(speculative)
            with machine.memory.speculate() as journal:
                proven = self._run_iterations(speculative)
            has_new_inputs = machine.input_names.count() > input_count
            machine.input_names.truncate(input_count)
            if proven < self.count:
                return proven
            if self._chain_irregular(speculative):
                proven = self._count_proven(speculative, initial_state)
                if proven >= min(FEWEST_ITERATIONS, self.count) or not self.mispredicted or not allows_rerun:
                    break
                self.irregular.update(dict.fromkeys(self.mispredicted))  # they start with the ends of the iterations
                for name in self.mispredicted:
                    self.predicted.pop(name, None)
                self._chain_irregular(speculative)
        else:
            return 0
        if proven < self.count:
            return proven
        if has_new_inputs:  # sequential execution must name missing inputs first
            return 0
        self._commit(speculative, journal, initial_state)
        return proven

    def _chain_irregular(self, trial: _SpeculativeMachine) -> bool:
        """Start each iteration with the irregular registers of the one before it; True if nothing changed."""
        ended = machine_state(trial)
        state = machine_state(self.machine)
        is_stable = True
        for name, old_values in self.irregular.items():
            new_values = chain_iterations(state[name], ended[name], self.machine.shape, self.count)
            is_stable = is_stable and old_values is not None and have_equal_values(old_values, new_values)
            self.irregular[name] = new_values
        return is_stable

    def _run_iterations(self, trial: _SpeculativeMachine) -> int:
        """Run all iterations; returns how many take the same path."""
        machine, counts = self.machine, self.machine.counters
        try:
            if not trial.run_iteration(machine.groups[0].pc):
                return 0
        except _IterationsDiverged as divergence:
            return min(divergence.row // machine.rows, self.count - 1)
        except CapacityExceeded:
            self.exceeds_capacity = True
            return 0
        except (UndecidedPath, StepLimitReached, OrderDependent, *MALFORMED_OPERAND_ERRORS):
            return 0
        if trial.counters.out_of_bounds or any(
            missing_inputs & ~counts.missing_inputs.get(step_index, 0)
            for step_index, missing_inputs in trial.counters.missing_inputs.items()
        ):
            return 0
        return self.count if self._is_other_state_unchanged(trial) else 0

    def _make_speculative(self) -> _SpeculativeMachine:
        machine, rows = self.machine, np.arange(self.count * self.machine.rows)
        begins = {name: select_rows(register.all_values, rows) for name, register in self.predicted.items()}
        begins |= {name: values for name, values in self.irregular.items() if values is not None}
        uses_affine = is_affine_worthwhile(len(rows), machine.threads)
        if uses_affine and not machine.uses_affine:
            own_rows = rows % machine.rows
            for name, register in machine_state(machine).items():
                if name not in begins and not isinstance(register, LanePartition):
                    begins[name] = select_rows(in_affine_form(register, machine.shape), own_rows)
        state = machine.tile(self.count, begins)
        trial = machine.derive(state, _SpeculativeMachine, uses_affine=uses_affine)
        trial.counters = machine.counters.speculative_copy(self.step_limit)
        trial.registers = RecordedRegisters(trial.registers)
        trial.shared_memory.byte_limit, trial.remaining_arrays = MOST_SHARED_BYTES, self.array_limit
        trial.trace = None if machine.trace is None else []
        trial.has_exact_trace = machine.log is not None and machine.log.is_exact
        trial.iterations, trial.pending = self.count, []
        return trial

    def _is_other_state_unchanged(self, trial: _SpeculativeMachine) -> bool:
        """Whether everything but registers is unchanged: lane masks, barriers, shared memory."""
        expected = self.machine.tile(self.count, dict.fromkeys(machine_state(self.machine), 0))
        new_masks, old_masks = _control_masks(trial), _control_masks(expected)
        return (
            new_masks.keys() == old_masks.keys()
            and all(np.all(np.equal(mask, old_masks[name])) for name, mask in new_masks.items())
            and _is_shared_unchanged(trial.shared_memory, expected.shared_memory)
        )

    def _count_proven(self, trial: _SpeculativeMachine, initial_state: Mapping[StateName, Register]) -> int:
        """The number of leading iterations that began in the state in which the one before them ended."""
        registers = trial.registers
        assert isinstance(registers, RecordedRegisters)
        self.mispredicted: list[StateName] = []
        if trial.local_memory.lane_words.keys() != self.machine.local_memory.lane_words.keys():
            return 0
        ended = machine_state(trial)
        self.carried_names: set[StateName] = {*registers.read_names, *trial.local_memory.lane_words}
        proven = self.count
        later_rows = np.arange(self.machine.rows, (self.count + 1) * self.machine.rows)
        for name in self.carried_names:
            if name in self.irregular:
                continue
            is_predicted = name in self.predicted
            expected = (
                select_rows(self.predicted[name].all_values, later_rows) if is_predicted else initial_state.get(name)
            )
            agreed = self._count_agreeing(ended.get(name), expected)
            if agreed < min(FEWEST_ITERATIONS, self.count):
                self.mispredicted.append(name)
            proven = min(proven, agreed)
        if not proven:
            return 0
        old_state, rows = machine_state(self.machine), np.tile(np.arange(self.machine.rows), self.count)
        for name, end_value in ended.items():  # no value may be less known than in sequential execution
            if end_value is initial_state.get(name) or not has_unknown_bits(end_value):
                continue
            new, old = materialize(end_value), materialize(select_rows(old_state.get(name, 0), rows))
            if missing_inputs_of(new) & ~missing_inputs_of(old) or np.any(unknown_bits_of(new) != unknown_bits_of(old)):
                return 0
        return proven

    def _count_agreeing(self, actual: Register | None, expected: Register | None) -> int:
        """The number of leading iterations after which a register is as predicted."""
        if actual is expected:
            return self.count
        if isinstance(actual, LanePartition) and isinstance(expected, LanePartition):
            agreed = min(
                self._count_agreeing(value_in_lanes(actual, mask), value_in_lanes(value, mask))
                for mask, value in expected.subsets
            )
            if agreed == self.count or actual.has_same_subsets(expected):
                return agreed
        if actual is None or expected is None:
            return 0
        actual, expected = materialize(actual), materialize(expected)
        if have_equal_known_bits(actual, expected):
            return self.count
        if isinstance(actual, UnknownValue) or isinstance(expected, UnknownValue):
            return 0
        if is_predicate(actual) is not is_predicate(expected):
            return 0
        mismatch = np.asarray(actual != expected)
        if not mismatch.any():
            return self.count
        rows = mismatch.any(axis=1) if mismatch.ndim == 2 and len(mismatch) > 1 else np.ones(1, bool)
        return int(rows.argmax()) // self.machine.rows

    def _commit(
        self, trial: _SpeculativeMachine, journal: Journal, initial_state: Mapping[StateName, Register]
    ) -> None:
        """Apply the counters and accesses, and continue after the last iteration."""
        machine = self.machine
        machine.counters.add(trial.counters, self.count, machine.step)
        machine.memory.commit(journal, machine.rows)
        if machine.trace is not None and trial.trace is not None:
            machine.trace.extend(trial.trace * self.count)
        last_rows = np.arange((self.count - 1) * machine.rows, self.count * machine.rows)
        old_state = machine_state(machine)

        def final_value(name: StateName, end_value: Register) -> Register:
            if name in self.predicted and name in self.carried_names:
                value = self.predicted[name].final_value
                return value if machine.uses_affine else as_array_value(value)
            if end_value is initial_state.get(name):
                return old_state[name]
            last = select_rows(end_value, last_rows)
            return last if machine.uses_affine else as_array_value(last)

        machine.registers = {name: final_value(name, end_value) for name, end_value in dict(trial.registers).items()}
        machine.shared_memory.missing_inputs |= trial.shared_memory.missing_inputs
        machine.local_memory.lane_words = {
            address: materialize(final_value(address, end_value))
            for address, end_value in trial.local_memory.lane_words.items()
        }


def _control_masks(state: MachineState) -> dict[tuple[str, str], Known]:
    """Lane masks and arrivals by kind and name."""
    return {
        ("group", ""): state.groups[0].mask, ("exited", ""): state.exited,
        **{("barrier", name): mask for name, mask in state.barriers.items()},
        **{("saved", name): mask for name, mask in state.saved_barriers.items()},
        **{("arrived", name): arrived for name, arrived in state.early_arrivals.items()},
    }  # fmt: skip


def _is_shared_unchanged(new: CtaMemory, old: CtaMemory) -> bool:
    if new.content is None or old.content is None:
        return new.content is old.content
    if new.content.shape[1] != old.content.shape[1] or new.known_marks is None or old.known_marks is None:
        return False
    is_equal = (new.content == old.content) | (old.known_marks == 0)
    return bool((new.known_marks == old.known_marks).all() and is_equal.all())
