"""The loops of a machine: if a few iterations predict the next ones, these are simulated in parallel.

Most loop-carried registers grow by a constant in each iteration, or periodically if a pipeline cycles through
its buffers. That is a hypothesis; `proving` proves it before its counters are used. Unproven iterations run
sequentially. After failures, a loop is tried less often.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import copy

import numpy as np

from artifact_inspector.execution.interpreter.induction import FEWEST_ITERATIONS, IterationHypothesis
from artifact_inspector.execution.interpreter.lane_partition import Register
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.state_changes import (
    RecordedRegisters,
    StateChange,
    StateName,
    find_state_change,
    machine_state,
)
from artifact_inspector.execution.interpreter.values import IntArray, Mask, UnknownValue

MOST_LANES = 1 << 14
"""Most lanes of all iterations in parallel; this costs about as much as the numpy calls for one warp."""
MOST_AFFINE_LANES = 1 << 21
"""The same if registers are affine values, whose cost does not depend on the number of lanes."""
_STEPS_PER_ARRAY = 64
"""Fewest steps per register that is not affine; such registers are computed for all lanes of all iterations."""
MOST_REGISTER_BYTES = 1 << 26
"""Most bytes of registers that are not affine, over all parallel iterations. The working set is several times
as large."""
MOST_PERIOD = 8
"""Longest period of a pipeline's buffers, in iterations."""
_MOST_SETTLE_FAILURES = 2
"""Failures after which irregular registers are no longer settled."""
_MOST_WASTED_RUNS = 3
"""Runs in a row after which no more iterations are tried than in the proof before; one is enough if it proves none."""
_FEWEST_EQUAL_STARTS = 3
"""Proofs in a row after which the next one begins an iteration earlier, before its first regular change is seen."""
_STEP_MARGIN = 4
"""Most steps of an iteration, relative to the last one; a longer one was not as predicted."""


class _LoopHistory:
    """Observations of one loop."""

    def __init__(self) -> None:
        self.failures = 0
        """Consecutive wrong hypotheses."""
        self.sequential_iterations = 0
        """Iterations to run sequentially before the next hypothesis."""
        self.carried_names: set[StateName] | None = None
        """Loop-carried state: what an iteration reads that an earlier one wrote."""
        self.settled_names: set[StateName] = set()
        """Irregular registers that parallel runs settled."""
        self.settle_failures = 0
        """Parallel runs that did not settle, less those that did."""
        self.may_settle = True
        """Whether irregular registers are still settled."""
        self.proven_changes: list[StateChange] = []
        """Proven changes of the state, repeated cyclically."""
        self.proven_after = 0
        """Iterations that had been observed before the first of these."""
        self.equal_starts = 0
        """Proofs in a row that began after equally many observed iterations."""
        self.early_start: int | None = None
        """Observed iterations after which a proof begins whatever the last one changed; 0 if that failed."""
        self.matched_changes = MOST_PERIOD
        """Changes that must be as in that proof before it is relied on: fewer after each success."""
        self.proven_iterations = 0
        """Consecutive iterations of that proof; 0 if there is none."""
        self.wasted_runs = 0
        """Runs in a row that found no more iterations than in the proof before."""
        self.few_arrays = True
        """Whether iterations of a few CTAs hold few registers that are not affine in iterations and lanes."""
        self.reset()

    def reset(self) -> None:
        """Reset: the loop is entered again, or behaves differently than before."""
        self.state: dict[StateName, Register] | None = None
        self.changes: list[StateChange] = []
        self.irregular_counts: dict[StateName, int] = {}
        """Irregular register → how often it changed."""
        self.observed_iterations = 0
        """Iterations since the reset."""
        self.steps_at_begin = 0
        """Steps spent when the last iteration began."""
        self.steps_taken = 0
        """Steps of the last iteration."""
        self.mask: Mask = True
        self.ctas: IntArray | None = None

    @property
    def irregular_names(self) -> set[StateName]:
        """Irregular registers, ignoring those of the first iteration only."""
        if not self.may_settle:
            return set()
        return self.settled_names | {name for name, times in self.irregular_counts.items() if times > 1}

    def predict_changes(self) -> tuple[list[StateChange], set[StateName]]:
        """The predicted changes of the next iterations, in order, and the irregular registers.

        Empty if there is no prediction.
        """
        changes, irregular = self.changes, self.irregular_names
        if not changes:
            return [], irregular
        period = len(self.proven_changes)
        matching_phases = [
            phase
            for phase in range(period)
            if all(
                change.key == self.proven_changes[(phase - distance) % period].key
                for distance, change in enumerate(reversed(changes[-min(period, self.matched_changes) :]), 1)
            )
        ]
        if self.early_start == self.observed_iterations:
            matching_phases = [(self.observed_iterations - self.proven_after) % period]
        if matching_phases:
            expected_phase = (self.observed_iterations - self.proven_after) % period
            phase = expected_phase if expected_phase in matching_phases else matching_phases[0]
            if phase == expected_phase or len(matching_phases) == 1 or len(changes) >= period:
                return self.proven_changes[phase:] + self.proven_changes[:phase], irregular
        known_period, period = period, _find_period([change.key for change in changes])
        if period and len(changes) < period + known_period:
            return [], irregular  # the loop was in another rhythm: one repetition may be a coincidence
        if period or len(changes) < FEWEST_ITERATIONS or not self.may_settle:
            return changes[-period:] if period else [], irregular
        names = dict.fromkeys(name for change in changes for name in change.increments)
        newly_irregular = {name for name in names if not _find_period([change.key.get(name) for change in changes])}
        increments = [{n: v for n, v in change.increments.items() if n not in newly_irregular} for change in changes]
        changes = [StateChange(added) for added in increments]
        period = _find_period([change.key for change in changes])
        return changes[-period:] if period else [], irregular | newly_irregular


def _find_period(sequence: Sequence[object]) -> int:
    """The period of a sequence; 0 if it does not repeat."""
    for period in range(1, min(MOST_PERIOD, len(sequence) - 1) + 1):
        if all(sequence[position] == sequence[position - period] for position in range(period, len(sequence))):
            return period
    return 0


class LoopAccelerator:
    """The loops of a machine's program, by header."""

    def __init__(self) -> None:
        self._loops: dict[int, _LoopHistory] = {}

    def for_other_ctas(self) -> LoopAccelerator:
        """A copy for other CTAs: it keeps what was learned and drops the current state."""
        accelerator = LoopAccelerator()
        for header, loop in self._loops.items():
            history = accelerator._loops[header] = copy(loop)
            history.sequential_iterations, history.matched_changes = 0, MOST_PERIOD
            increments = [added for change in loop.proven_changes for added in change.increments.values()]
            if any(isinstance(added, np.ndarray) and len(added) > 1 for added in increments):
                history.proven_changes, history.proven_after = [], 0
            history.reset()
        return accelerator

    def at_loop_header(self, machine: Machine) -> None:
        """Handle a machine whose lanes are all back at a loop header."""
        header = machine.groups[0].pc
        loop = self._loops.get(header)
        is_mostly_affine = machine.counters.arrays * _STEPS_PER_ARRAY <= machine.counters.spent
        is_mostly_affine = is_mostly_affine and (machine.uses_affine or loop is None or loop.few_arrays)
        most_iterations = (MOST_AFFINE_LANES if is_mostly_affine else MOST_LANES) // (machine.rows * machine.threads)
        if most_iterations >= FEWEST_ITERATIONS:
            most_iterations = min(
                most_iterations, MOST_REGISTER_BYTES // (1 + sum(map(_array_bytes, machine.registers.values())))
            )
        if most_iterations < FEWEST_ITERATIONS:
            return
        for inner, inner_loop in self._loops.items():
            if header < inner <= machine.step.index:
                inner_loop.reset()
        if loop is None:
            loop = self._loops[header] = _LoopHistory()
        loop.may_settle = loop.settle_failures < _MOST_SETTLE_FAILURES
        if not _observe_iteration(loop, machine):
            return
        if loop.sequential_iterations:
            loop.sequential_iterations -= 1
            return
        changes, irregular = loop.predict_changes()
        if changes and not _run_proven(machine, loop, changes, irregular, most_iterations):
            if loop.early_start == loop.observed_iterations:
                loop.early_start = 0
                return
            loop.settled_names, loop.matched_changes = set(), MOST_PERIOD
            loop.failures += 1
            loop.sequential_iterations = min(1 << loop.failures, 64)


def _run_proven(
    machine: Machine, loop: _LoopHistory, changes: list[StateChange], irregular: set[StateName], most_iterations: int
) -> bool:
    """Run as many iterations as can be proven, from the beginning of one; whether there were any."""
    completed, expected, has_diverged = 0, loop.proven_iterations - loop.observed_iterations, False
    fewest, lanes = FEWEST_ITERATIONS, machine.rows * machine.threads
    while True:
        count = min(most_iterations, max(fewest, expected - completed) if expected > completed else most_iterations)
        phase = completed % len(changes)
        rotated_changes = changes[phase:] + changes[:phase]
        has_many_lanes = count * lanes > MOST_LANES
        arrays = loop.steps_taken // _STEPS_PER_ARRAY if has_many_lanes else sys.maxsize
        steps = _STEP_MARGIN * loop.steps_taken
        hypothesis = IterationHypothesis(machine, rotated_changes, count, steps, arrays, irregular)
        proven = hypothesis.run(allows_rerun=loop.may_settle)
        if hypothesis.irregular:
            loop.settle_failures += 1 if proven < fewest else -1 if proven == count else 0
        if fewest <= proven < count:
            expected, has_diverged, loop.wasted_runs = completed + proven, True, 0
        elif hypothesis.exceeds_capacity and has_many_lanes and loop.few_arrays and not machine.uses_affine:
            loop.few_arrays, most_iterations = False, max(FEWEST_ITERATIONS, MOST_LANES // lanes)
        elif proven < count:
            if completed:
                loop.wasted_runs += 1 if proven else _MOST_WASTED_RUNS
            break
        else:
            completed, fewest = completed + count, 2
            if completed == expected:
                if has_diverged or loop.wasted_runs >= _MOST_WASTED_RUNS:
                    break
                expected += FEWEST_ITERATIONS  # maybe more than last time: a few first, which cost little if they fail
    if completed:
        loop.equal_starts = loop.equal_starts + 1 if loop.proven_after == loop.observed_iterations else 0
        if loop.equal_starts == _FEWEST_EQUAL_STARTS and loop.early_start is None:
            loop.early_start = loop.observed_iterations - 1
        loop.proven_changes, loop.proven_after, loop.failures = changes, loop.observed_iterations, 0
        loop.matched_changes = max(1, min(loop.matched_changes, len(changes)) - 1)
        loop.proven_iterations = loop.observed_iterations + completed
        loop.settled_names = set(hypothesis.irregular)
        loop.reset()
    return completed > 0


def _observe_iteration(loop: _LoopHistory, machine: Machine) -> bool:
    """Record the state change since the last iteration; False if there is none to compare."""
    mask, state, registers = machine.groups[0].mask, machine_state(machine), machine.registers
    if isinstance(registers, RecordedRegisters):
        machine.registers = dict(registers)
    is_next = loop.state is not None and loop.ctas is machine.ctas
    is_next = is_next and (loop.mask is mask or np.array_equal(loop.mask, mask))
    if is_next and loop.carried_names is None and isinstance(registers, RecordedRegisters):
        loop.carried_names = {*registers.read_names, *machine.local_memory.lane_words}
    old_state = loop.state
    steps_spent = machine.counters.spent
    loop.steps_at_begin, loop.steps_taken = steps_spent, steps_spent - loop.steps_at_begin
    if not is_next or loop.carried_names is None or old_state is None:
        loop.reset()
        loop.ctas, loop.mask, loop.state, loop.steps_at_begin = machine.ctas, mask, state, steps_spent
        if loop.carried_names is None:
            machine.registers = RecordedRegisters(registers)
        return False
    change = find_state_change(old_state, state, loop.carried_names - loop.irregular_names)
    loop.state = state
    if change.irregular:
        for name in change.irregular:
            loop.irregular_counts[name] = loop.irregular_counts.get(name, 0) + 1
        loop.changes, loop.observed_iterations = [], 0
        return False
    loop.changes = [*loop.changes[1 - 2 * MOST_PERIOD :], change]
    loop.observed_iterations += 1
    return True


def _array_bytes(value: Register) -> int:
    """Bytes of a register stored as arrays; 0 for numbers and affine values."""
    planes = (value.data, value.unknown_bits) if isinstance(value, UnknownValue) else (value,)
    return sum(plane.nbytes for plane in planes if isinstance(plane, np.ndarray))
