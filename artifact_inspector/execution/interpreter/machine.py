"""The machine that runs a program over all lanes of some CTAs, for any instruction set.

Lanes run in converged groups; a group has one set of lanes of each warp. The group at the lowest address runs first.
Groups of different warps at the same address merge; groups of one warp merge only where the program reconverges. CTAs
that diverge at a branch move to a machine of their own, so that a uniform value stays one number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import AffineValue, is_affine_worthwhile, is_int_array
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import FootprintAccess
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_partition import (
    LanePartition,
    Register,
    as_array_value,
    materialize,
    write_lanes,
)
from artifact_inspector.execution.interpreter.launch_log import LaunchLog
from artifact_inspector.execution.interpreter.program import GLOBAL_KINDS, DecodedProgram, ProgramStep, UndecidedPath
from artifact_inspector.execution.interpreter.state import LaneGroup, MachineState
from artifact_inspector.execution.interpreter.values import (
    InputNames,
    IntArray,
    Known,
    Mask,
    Plain,
    UnknownValue,
    Value,
    as_mask,
    as_plain_array,
    broadcast_mask,
    broadcast_value,
    data_of,
    has_lanes,
    in_affine_form,
    invert,
    invert_mask,
    select_lanes,
    select_mask_rows,
    widen_to_warps,
)

ALWAYS_TRUE = frozenset(("PT", "UPT"))
"""Predicates that are always true."""


UNINITIALIZED = "uninitialized register "
"""Beginning of the reason of a value that comes from a register that nothing has written."""


class LaunchEnvironment(Protocol):
    """What a launch provides to an instruction set: constants, arguments, special registers."""

    def initialize(self, machine: Machine) -> None:
        """Set what the hardware initializes before a CTA runs."""


class LoopHandler(Protocol):
    """Accelerates the loops of a machine."""

    def at_loop_header(self, machine: Machine) -> None:
        """Called when all lanes are back at a loop header."""

    def for_other_ctas(self) -> LoopHandler:
        """A copy for a machine with other CTAs."""


class ReconvergencePoint:
    """A step at which machines wait for each other.

    Args:
        outer: the enclosing reconvergence point, where the merged machine waits next.
    """

    def __init__(self, step: int, outer: ReconvergencePoint | None) -> None:
        self.step, self.outer = step, outer
        self.missing_count = 1
        """Machines that have not arrived yet."""
        self.arrived: list[Machine] = []
        """Machines that have arrived."""


_MachineT = TypeVar("_MachineT", bound="Machine")
_Data = TypeVar("_Data", np.int64, np.bool_)


class Machine(MachineState):
    """Some CTAs of a launch during the execution of a program."""

    def __init__(
        self,
        program: DecodedProgram,
        ctas: IntArray,
        threads: int,
        memory: GlobalMemory,
        counts: StepCounters,
        names: InputNames,
        environment: LaunchEnvironment,
        loops: LoopHandler | None = None,
    ) -> None:
        super().__init__(ctas, threads, program.warp_size)
        self.program, self.memory, self.counters, self.input_names = program, memory, counts, names
        self.environment = environment
        """The instruction set's launch state: constants, special registers."""
        self.loops = loops
        """Simulates loop iterations in parallel; None simulates them one by one."""
        self.groups = [LaneGroup(0, True, self)]
        self.group, self.step = self.groups[0], program.steps[0]
        self.active_mask: Mask = True
        self.undecided_lanes: UnknownValue | None = None
        """Lanes whose guard is unknown."""
        self.masks: dict[tuple[int, int], tuple[Register, Register, Mask]] = {}
        """Lanes by the identities of the two registers that hold a bit for each; with these registers."""
        self.selections: dict[int, tuple[Register, Mask, Value, Value]] = {}
        """Registers that are arrays, by identity; with the mask and the two values that they were selected from."""
        self.pending: list[Machine] = []
        self.reconvergence: ReconvergencePoint | None = None
        """The reconvergence point where this machine merges with CTAs that diverged."""
        self.iterations = 1
        """Loop iterations that are stacked among the CTAs."""
        self.uses_affine = is_affine_worthwhile(len(ctas), threads)
        """Whether registers may be affine values; with few lanes, arrays are as fast."""
        self._zero_lanes = np.zeros((1, threads), np.int64)
        self.log: LaunchLog | None = None
        self.trace: list[int] | None = None
        """Steps that most warps executed since the last part in the log, in order; None without a log."""

    def derive(self, state: MachineState, machine_type: type[_MachineT], *, uses_affine: bool) -> _MachineT:
        """A machine of the same launch at the same step with another state, without loops and without trace."""
        machine = machine_type(
            self.program, state.ctas, self.threads, self.memory, self.counters, self.input_names, self.environment
        )
        machine.uses_affine = uses_affine
        machine._adopt(state)
        machine.group, machine.step, machine.pending = machine.groups[0], self.step, self.pending
        machine.reconvergence = self.reconvergence
        return machine

    @staticmethod
    def merge_machines(machines: Sequence[Machine]) -> Machine:
        """One machine with the CTAs of several that have one group each, at the same step."""
        first, state = machines[0], MachineState.merge(machines, machines[0].uninitialized)
        merged = first.derive(state, Machine, uses_affine=is_affine_worthwhile(*state.shape))
        merged.loops = None if first.loops is None else first.loops.for_other_ctas()
        merged.log, merged.trace = first.log, None if first.trace is None else []
        return merged

    def _adopt(self, state: MachineState) -> None:
        for entry in fields(MachineState):
            setattr(self, entry.name, getattr(state, entry.name))
        if self.uses_affine and not is_affine_worthwhile(*self.shape):
            self.uses_affine = False
            self.registers = {name: as_array_value(value) for name, value in self.registers.items()}
            words = self.local_memory.lane_words
            words.update({address: as_array_value(value) for address, value in words.items()})

    @property
    def lane_numbers(self) -> IntArray:
        """Lane number of each thread within its warp."""
        return (np.arange(self.threads, dtype=np.int64) % self.warp_size).reshape(1, -1)

    def repeat_in_warps(self, values: NDArray[_Data]) -> NDArray[_Data] | int:
        """Values of warps, shape (CTAs or 1, warps), repeated in all lanes; one number if all are equal."""
        first = values.flat[0]
        return first.item() if (values == first).all() else np.repeat(values, self.warp_size, axis=1)

    def first_of_warps(self, value: Known, mask: Mask) -> Plain:
        """The value of the first lane of each warp that is in a mask, or of lane 0 if none is."""
        plain = as_plain_array(value)
        if not isinstance(plain, np.ndarray) or plain.shape[1] == 1:
            return plain
        rows = len(plain) if isinstance(mask, bool) else max(len(plain), len(mask))
        first = broadcast_mask(mask, (rows, self.threads)).reshape(rows, -1, self.warp_size).argmax(axis=2)
        warp_values = broadcast_value(plain, (rows, self.threads)).reshape(rows, -1, self.warp_size)
        first_values: IntArray = np.take_along_axis(warp_values, first[:, :, None], axis=2)[:, :, 0]
        return self.repeat_in_warps(first_values)

    # ── Registers ────────────────────────────────────────────────────────────────────────────────

    def read_register(self, name: str) -> Value:
        """The value of a register or predicate."""
        register = self.registers.get(name)
        if register is None:
            return self.uninitialized(name)
        if isinstance(register, LanePartition):
            in_active = self.step.ignores_inactive_lanes
            register = register.value_in(self.active_mask) if in_active else register.materialize()
        if isinstance(register, AffineValue):
            return register if self.step.accepts_affine else register.to_array()
        if self.uses_affine and self.step.accepts_affine and is_int_array(register) and len(register) > 1:
            return AffineValue(register, self._zero_lanes) if register.shape[1] == 1 else register
        return register

    def uninitialized(self, name: str) -> Value:
        """The value of a register or predicate that was not written."""
        if name in ALWAYS_TRUE:
            return True
        return self.unknown_result(name, f"{UNINITIALIZED}{name}")

    def unknown_result(self, name: str, reason: str) -> UnknownValue:
        """An unknown value for a register or predicate, and the reason."""
        unknown_value = self.input_names.unknown_value(reason)
        is_predicate = name.lstrip("U").startswith("P")
        return UnknownValue(False, True, unknown_value.missing_inputs) if is_predicate else unknown_value

    def write_register(self, name: str, value: Value) -> None:
        """Write a register or predicate in the active lanes."""
        if self.uses_affine:
            value = in_affine_form(value, self.shape)
        register: Register = value if self.active_mask is True else self._write_active_lanes(name, value)
        if self.undecided_lanes is not None:
            value = materialize(register)
            register = select_lanes(self.undecided_lanes, value, value)
        if self.uses_affine and not isinstance(register, LanePartition):
            register = value if register is value else in_affine_form(register, self.shape)
            self.counters.arrays += isinstance(register, np.ndarray) and register.shape == self.shape
        self.registers[name] = register

    def copy_register(self, name: str, source: str) -> None:
        """Write the value of another register in the active lanes; a copy in all lanes keeps a lane partition."""
        register = self.registers.get(source) if self.active_mask is True and self.undecided_lanes is None else None
        if isinstance(register, LanePartition):
            self.registers[name] = register
        else:
            self.write_register(name, self.read_register(source))

    def _write_active_lanes(self, name: str, value: Value) -> Register:
        """A register with a new value in the active lanes and its old value in the others."""
        old = self.registers.get(name)
        if old is None:
            return select_lanes(self.active_mask, value, self.read_register(name))
        lanes = self.active_mask if self.uses_affine and self.undecided_lanes is None else True
        if isinstance(lanes, np.ndarray) and len(lanes) == 1:
            partition = write_lanes(lanes, value, old)
            if partition is not None:
                return partition
        return select_lanes(self.active_mask, value, materialize(old))

    def resolve_active(self, value: Value) -> Value:
        """A value as known if it is known in all active lanes."""
        if isinstance(value, UnknownValue) and not self.has_unknown_lanes(value):
            return value.data
        return value

    def has_unknown_lanes(self, value: UnknownValue) -> bool:
        """Whether a value has unknown bits in an active lane."""
        return has_lanes(self.intersect(self.active_mask, value.unknown_bits))

    def unknown_value(self, name: str) -> UnknownValue:
        """A register with no known bit, and the reason."""
        return self.input_names.unknown_value(name)

    # ── Control ──────────────────────────────────────────────────────────────────────────────────

    def branch(self, condition: Value, target: int) -> bool:
        """Move the lanes whose predicate holds to another step; True if the groups changed."""
        self._require_decided(condition)
        if condition is True and self.active_mask is True:
            self.group.pc = target
            return True
        old_group = self.group
        branching, staying = self._split_group(condition)
        if not has_lanes(branching):
            return self.group is not old_group
        if not has_lanes(staying):
            self.group.pc = target
            return True
        pc = self.group.pc
        divergent = widen_to_warps(branching, self.warp_size) & widen_to_warps(staying, self.warp_size)
        self.counters.divergent_warps[self.step.index] += self.count_warps(divergent)
        self.groups.remove(self.group)
        self.groups += [LaneGroup(pc, staying, self), LaneGroup(target, branching, self)]
        return True

    def exit_lanes(self) -> bool:
        """End the active lanes."""
        self._require_decided(True)
        old_group = self.group
        exiting, staying = self._split_group(True)
        if not has_lanes(exiting):
            return self.group is not old_group
        self.exited = exiting if self.exited is False else self.exited | exiting
        if has_lanes(staying):
            self.groups[self.groups.index(self.group)] = LaneGroup(self.group.pc, staying, self)
        else:
            self.groups.remove(self.group)
        return True

    def _require_decided(self, condition: Value) -> None:
        missing_inputs = 0 if self.undecided_lanes is None else self.undecided_lanes.missing_inputs
        if isinstance(condition, UnknownValue) and self.has_unknown_lanes(condition):
            missing_inputs |= condition.missing_inputs
        if missing_inputs:
            raise UndecidedPath(self.step, self.input_names.names_in(missing_inputs))

    @staticmethod
    def intersect(mask: Mask, other_mask: Known) -> Mask:
        """The lanes in both masks."""
        other = as_mask(other_mask)
        return other if mask is True else mask if other is True else mask & other

    def _split_group(self, condition: Value) -> tuple[Mask, Mask]:
        """The lanes of the group that branch, and the others; CTAs that diverge are sent off first."""
        branching = self.intersect(self.active_mask, data_of(condition))
        mask = self.group.mask
        if isinstance(branching, bool) or not branching.any():
            return (mask, False) if has_lanes(branching) else (False, mask)
        staying = invert_mask(branching) & mask
        if self.rows > 1 and (len(branching) > 1 or np.shape(staying)[0] > 1):
            outcomes = np.broadcast_to(branching.any(axis=1) * 2 + np.any(staying, axis=1), (self.rows,))
            distinct_outcomes = [outcome for outcome in (1, 2, 3) if (outcomes == outcome).any()]
            if len(distinct_outcomes) > 1:
                self._split_off_outcomes(outcomes, distinct_outcomes[1:])
                kept_rows = np.flatnonzero((outcomes == distinct_outcomes[0]) | (outcomes == 0))
                branching, mask = select_mask_rows(branching, kept_rows), select_mask_rows(mask, kept_rows)
                staying = invert_mask(branching) & mask
                group_index = self.groups.index(self.group)
                self._adopt(self.fork(kept_rows))
                self._select_group(group_index)
        if not has_lanes(staying):
            return self.group.mask, False
        return (branching, staying) if has_lanes(branching) else (False, self.group.mask)

    def _split_off_outcomes(self, outcomes: IntArray, split_outcomes: list[int]) -> None:
        """Move the CTAs of some outcomes to machines of their own, until they reconverge."""
        meeting_step = self.program.reconvergence_steps.get(self.step.index)
        has_one_group = self.loops is not None and len(self.groups) == 1 and not self.waiting
        if (
            meeting_step is not None
            and has_one_group
            and (self.reconvergence is None or self.reconvergence.step != meeting_step)
        ):
            self.reconvergence = ReconvergencePoint(meeting_step, self.reconvergence)
        if self.log is not None:
            executed = self.group.warps, self.group.lanes
            self.trace = self.log.close(self.ctas, self.trace or [], self.step.index, executed)
        for outcome in split_outcomes:
            self._split_off(np.flatnonzero(outcomes == outcome))

    def _split_off(self, rows: IntArray) -> None:
        """Move some CTAs to a machine of their own, which runs the current step again."""
        machine = self.derive(self.fork(rows), Machine, uses_affine=self.uses_affine)
        machine.loops = None if self.loops is None else self.loops.for_other_ctas()
        machine._select_group(self.groups.index(self.group))
        machine.group.pc = self.step.index
        machine.log, machine.trace = self.log, None if self.trace is None else []
        self.counters.warps_executed[self.step.index] -= machine.group.warps
        self.counters.threads_executed[self.step.index] -= machine.group.lanes
        if self.reconvergence is not None:
            self.reconvergence.missing_count += 1
        self.pending.append(machine)

    def _select_group(self, index: int) -> None:
        """Select the group that runs, and drop the others that have no lanes."""
        self.group = self.groups[index]
        self.groups = [group for group in self.groups if group.warps or group is self.group]

    # ── Running ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> bool:
        """Run until every lane has exited; True if it reached its reconvergence point first."""
        while self.groups or self.waiting:
            if not self.groups:  # deadlock: nothing can release the waiting groups
                if self.memory.observer is not None:
                    self.memory.observer.observe_deadlock(self)
                self.groups, self.waiting = self.waiting, []
            has_one_group = len(self.groups) == 1 and not self.waiting
            if self.reconvergence is not None and has_one_group and self.groups[0].pc == self.reconvergence.step:
                return True
            self._run_lowest_group()
            went_back = self.group.pc <= self.step.index and len(self.groups) == 1
            if went_back and self.loops is not None and not self.waiting:
                self.loops.at_loop_header(self)
        return False

    def _run_lowest_group(self) -> None:
        group = min(self.groups, key=attrgetter("pc"))
        if len(self.groups) > 1:
            group = self._merge_groups(group)
        self.group = group
        others = [other_group.pc for other_group in self.groups if other_group is not group]
        stop_step = min(others) if others else len(self.program.steps)
        if self.reconvergence is not None and group.pc < self.reconvergence.step < stop_step:
            stop_step = self.reconvergence.step
        steps, counts = self.program.steps, self.counters
        trace = self.trace if 2 * group.warps * self.warp_size >= self.rows * self.threads else None
        while True:
            if group.pc >= len(steps):
                raise UndecidedPath(self.step, ("code past the end of the kernel",))
            step = self.step = steps[group.pc]
            counts.spend_step(step)
            if trace is not None:
                trace.append(step.index)
            counts.warps_executed[step.index] += group.warps
            group.pc += 1
            if step.guard is None:
                self.undecided_lanes = None
                self.active_mask = widen_to_warps(group.mask, self.warp_size) if step.is_uniform else group.mask
                counts.threads_executed[step.index] += group.lanes
            elif not self._apply_guard(step) and not step.runs_unguarded:
                if step.kind in GLOBAL_KINDS:  # it takes its place in the order of each CTA all the same
                    self.record_skipped(False)
                if group.pc >= stop_step:
                    return
                continue
            if step.run(self) or group.pc >= stop_step:
                return

    def record_skipped(self, mask: Mask) -> None:
        """Record the CTAs that execute an access without a lane of the mask: it takes its place in their order."""
        if mask is True or mask is self.group.mask or self.memory.footprints is None:
            return
        executing, active = (broadcast_mask(one, self.shape).any(axis=1) for one in (self.group.mask, mask))
        skipped = np.flatnonzero(executing & ~active)
        if skipped.size:
            no_lanes = np.empty((1, 0), np.int64)
            access = FootprintAccess(self.step.index, self.ctas[skipped], no_lanes, None, is_read=True, rows=skipped)
            self.memory.record(access)

    def _apply_guard(self, step: ProgramStep) -> bool:
        """Activate the lanes whose guard holds; False if there are none."""
        assert step.guard is not None
        group = self.group
        mask = self.active_mask = widen_to_warps(group.mask, self.warp_size) if step.is_uniform else group.mask
        guard_value = self.read_register(step.guard)
        if step.guard_is_negated:
            guard_value = invert(guard_value)
        self.undecided_lanes = None
        if isinstance(guard_value, UnknownValue):
            guard_value = self.decide_lanes(mask, guard_value)
        if isinstance(guard_value, np.ndarray):
            self.active_mask = self.intersect(mask, guard_value)
            lanes = self.count_lanes(self.active_mask)
            if lanes == group.lanes and not step.is_uniform:
                self.active_mask = group.mask
        else:
            self.active_mask = mask if guard_value else False
            lanes = group.lanes if guard_value else 0
        self.counters.threads_executed[step.index] += lanes
        return lanes > 0 or self.undecided_lanes is not None

    def decide_lanes(self, mask: Mask, predicate: UnknownValue) -> Mask:
        """Where a predicate is known to hold; lanes of a mask where it is unknown become undecided."""
        unknown_lanes = self.intersect(mask, predicate.unknown_bits)
        if has_lanes(unknown_lanes):
            self.undecided_lanes = UnknownValue(False, unknown_lanes, predicate.missing_inputs)
        return as_mask(predicate.data) & invert_mask(predicate.unknown_bits)

    def _merge_groups(self, group: LaneGroup) -> LaneGroup:
        """Merge the group with groups of other warps at the same step."""
        for other_group in [
            other_group for other_group in self.groups if other_group is not group and other_group.pc == group.pc
        ]:
            warp = self.warp_size
            if has_lanes(self.intersect(widen_to_warps(group.mask, warp), widen_to_warps(other_group.mask, warp))):
                continue
            merged = LaneGroup(group.pc, group.mask | other_group.mask, self)
            self.groups.remove(group)
            self.groups[self.groups.index(other_group)] = merged
            group = merged
        return group


def arrive_at_reconvergence(machine: Machine, *, has_reconverged: bool) -> list[Machine]:
    """Record that a machine arrived at its reconvergence point, or ended; returns the machines that continue.

    Args:
        has_reconverged: whether it is at its reconvergence point.
    """
    point = machine.reconvergence
    while point is not None:
        point.missing_count -= 1
        if has_reconverged:
            point.arrived.append(machine)
        if point.missing_count:
            return []
        continuing, point.arrived = point.arrived, []  # a cycle would keep their registers
        words = [arrived.local_memory.lane_words.keys() for arrived in continuing]
        if len(continuing) > 1 and all(keys == words[0] for keys in words):
            continuing = [machine.merge_machines(continuing)]
        for continued in continuing:
            continued.reconvergence = point.outer
        if continuing:
            if point.outer is not None:
                point.outer.missing_count += len(continuing) - 1
            return continuing
        point, has_reconverged = point.outer, False
    return []
