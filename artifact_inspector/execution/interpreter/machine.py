"""The machine that runs a program over all lanes of some CTAs, for any instruction set.

Lanes run in converged groups; a group has one set of lanes of each warp. The group at the lowest address runs
first. Groups of different warps at the same address merge; groups of one warp merge only where the program
reconverges. CTAs that diverge at a branch move to a machine of their own, so that a uniform value stays one
number.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import AffineValue, is_affine_worthwhile
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.cta_memory import CtaMemory
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_partition import (
    LanePartition,
    as_array_value,
    materialize,
    write_lanes,
)
from artifact_inspector.execution.interpreter.program import DecodedProgram, ProgramStep, UndecidedPath
from artifact_inspector.execution.interpreter.reconvergence import ReconvergencePoint
from artifact_inspector.execution.interpreter.values import (
    InputNames,
    Mask,
    UnknownValue,
    Value,
    data_of,
    has_lanes,
    in_affine_form,
    invert,
    select_lanes,
    select_mask_rows,
    select_rows,
    widen_to_warps,
)

ALWAYS_TRUE = frozenset(("PT", "UPT"))
"""Predicates that are always true."""


class LaneGroup:
    """Lanes that execute together."""

    __slots__ = ("lanes", "mask", "pc", "warps")

    def __init__(self, pc: int, mask: Mask, machine: Machine) -> None:
        self.pc = pc
        self.warps, self.lanes = machine.count_warps(mask), machine.count_lanes(mask)
        self.mask: Mask = True if self.lanes == machine.rows * machine.threads else mask


class LoopHandler(Protocol):
    """Accelerates the loops of a machine."""

    def at_loop_header(self, machine: Machine) -> None:
        """Called when all lanes are back at a loop header."""

    def for_other_ctas(self) -> LoopHandler:
        """A copy for a machine with other CTAs."""


class Machine:
    """Some CTAs of a launch during the execution of a program."""

    def __init__(
        self,
        program: DecodedProgram,
        ctas: NDArray[np.int64],
        threads: int,
        memory: GlobalMemory,
        counts: StepCounters,
        names: InputNames,
        environment: Any,
        loops: LoopHandler | None = None,
    ) -> None:
        self.program = program
        self.ctas = ctas
        """Linear CTA numbers."""
        self.threads = threads
        self.memory = memory
        self.counters = counts
        self.input_names = names
        self.environment = environment
        """The instruction set's launch state: constants, special registers."""
        self.registers: dict[str, Value] = {}
        self.barriers: dict[str, Mask] = {}
        """Convergence barrier → lanes that take part."""
        self.saved_barriers: dict[str, Mask] = {}
        self.waiting: list[tuple[str, LaneGroup]] = []
        self.exited: Mask = False
        self.early_arrivals: dict[str, Any] = {}
        """CTA barrier → threads per CTA that arrived without waiting."""
        self.local_memory = CtaMemory()
        self.shared_memory = CtaMemory()
        self.active_mask: Mask = True
        self.undecided_lanes: UnknownValue | None = None
        """Lanes whose guard is unknown."""
        self.groups = [LaneGroup(0, True, self)]
        self.group = self.groups[0]
        self.step = program.steps[0]
        self.pending: list[Machine] = []
        self.reconvergence: ReconvergencePoint | None = None
        """The reconvergence point where this machine merges with CTAs that diverged."""
        self.loops = loops
        """Simulates loop iterations in parallel; None simulates them one by one."""
        self.iterations = 1
        """Loop iterations that are stacked among the CTAs."""
        self.uses_affine = is_affine_worthwhile(len(ctas), threads)
        """Whether registers may be affine values; with few lanes, arrays are as fast."""
        self._zero_lanes = np.zeros((1, threads), np.int64)
        self.traced_cta: int | None = None
        """The CTA whose trace is recorded."""
        self.trace: list[int] | None = None
        """Steps that most of its warps executed, in order; None if the CTA is not on this machine."""

    # ── Lanes ────────────────────────────────────────────────────────────────────────────────────

    @property
    def rows(self) -> int:
        """CTAs on this machine."""
        return len(self.ctas)

    @property
    def shape(self) -> tuple[int, int]:
        """CTAs and threads."""
        return len(self.ctas), self.threads

    def count_lanes(self, mask: Mask) -> int:
        """Lanes in a mask."""
        rows, threads = self.shape
        if isinstance(mask, bool):
            return rows * threads if mask else 0
        return int(np.count_nonzero(mask) * (rows // mask.shape[0]) * (threads // mask.shape[1]))

    def count_warps(self, mask: Mask) -> int:
        """Warps with a lane in a mask."""
        rows, threads = self.shape
        warp = self.program.warp_size
        if isinstance(mask, bool) or mask.shape[1] == 1:
            return self.count_lanes(mask) // warp
        warp_count = np.count_nonzero(mask.reshape(mask.shape[0], threads // warp, warp).any(axis=2))
        return int(warp_count * (rows // mask.shape[0]))

    # ── Registers ────────────────────────────────────────────────────────────────────────────────

    def read_register(self, name: str) -> Value:
        """The value of a register or predicate."""
        register_value = self.registers.get(name)
        if register_value is None:
            if name in ALWAYS_TRUE:
                return True
            unknown_value = self.input_names.unknown_value(f"uninitialized register {name}")
            return (
                UnknownValue(False, True, unknown_value.missing_inputs)
                if name.lstrip("U").startswith("P")
                else unknown_value
            )
        if register_value.__class__ is LanePartition:
            register_value = (
                register_value.value_in(self.active_mask)
                if self.step.ignores_inactive_lanes
                else register_value.materialize()
            )
        if register_value.__class__ is AffineValue:
            return register_value if self.step.accepts_affine else register_value.to_array()
        if (
            self.uses_affine
            and self.step.accepts_affine
            and register_value.__class__ is np.ndarray
            and register_value.shape[1] == 1
        ):
            return (
                AffineValue(register_value, self._zero_lanes)
                if register_value.dtype == np.int64 and len(register_value) > 1
                else register_value
            )
        return register_value

    def write_register(self, name: str, value: Value) -> None:
        """Write a register or predicate in the active lanes."""
        if self.uses_affine:
            value = in_affine_form(value, self.shape)
        if self.active_mask is not True:
            value = self._write_active_lanes(name, value)
        if self.undecided_lanes is not None:
            value = select_lanes(self.undecided_lanes, value, value)
        if self.uses_affine:
            value = in_affine_form(value, self.shape)
            self.counters.arrays += value.__class__ is np.ndarray and value.shape == self.shape
        self.registers[name] = value

    def _write_active_lanes(self, name: str, value: Value) -> Value:
        """A register with a new value in the active lanes and its old value in the others."""
        old = self.registers.get(name)
        if old is None:
            return select_lanes(self.active_mask, value, self.read_register(name))
        if (
            self.uses_affine
            and self.undecided_lanes is None
            and self.active_mask.__class__ is np.ndarray
            and len(self.active_mask) == 1
        ):
            partition = write_lanes(self.active_mask, value, old)
            if partition is not None:
                return partition
        return select_lanes(self.active_mask, value, materialize(old))

    def resolve_active(self, value: Value) -> Value:
        """A value as known if it is known in all active lanes."""
        if isinstance(value, UnknownValue) and not has_lanes(
            self.intersect(self.active_mask, np.asarray(value.unknown_bits) != 0)
        ):
            return value.data
        return value

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
        divergent = widen_to_warps(branching, self.program.warp_size) & widen_to_warps(staying, self.program.warp_size)
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
        if isinstance(condition, UnknownValue) and has_lanes(self.intersect(self.active_mask, condition.unknown_bits)):
            missing_inputs |= condition.missing_inputs
        if missing_inputs:
            raise UndecidedPath(self.step, self.input_names.names_in(missing_inputs))

    @staticmethod
    def intersect(mask: Mask, other_mask: Any) -> Mask:
        """The lanes in both masks."""
        if mask is True:
            return other_mask if isinstance(other_mask, np.ndarray) else bool(other_mask)
        return mask & other_mask

    def _split_group(self, condition: Value) -> tuple[Mask, Mask]:
        """The lanes of the group that branch, and the others; CTAs that diverge are sent off first."""
        branching = self.intersect(self.active_mask, data_of(condition))
        mask = self.group.mask
        if isinstance(branching, bool) or not branching.any():
            return (mask, False) if has_lanes(branching) else (False, mask)
        staying = np.logical_not(branching) if mask is True else mask & ~branching
        if self.rows > 1 and max(branching.shape[0], staying.shape[0]) > 1:
            outcomes = branching.any(axis=1) * 2 + staying.any(axis=1)
            outcomes = np.broadcast_to(outcomes, (self.rows,))
            distinct_outcomes = [outcome for outcome in (1, 2, 3) if (outcomes == outcome).any()]
            if len(distinct_outcomes) > 1:
                kept_outcome = distinct_outcomes[0]
                self._split_off_outcomes(outcomes, distinct_outcomes[1:])
                kept_rows = np.flatnonzero((outcomes == kept_outcome) | (outcomes == 0))
                branching, mask = select_mask_rows(branching, kept_rows), select_mask_rows(mask, kept_rows)
                staying = np.logical_not(branching) if mask is True else mask & ~branching
                self._keep_ctas(kept_rows)
        if not has_lanes(staying):
            return self.group.mask, False
        return (branching, staying) if has_lanes(branching) else (False, self.group.mask)

    def _split_off_outcomes(self, outcomes: NDArray[Any], split_outcomes: list[int]) -> None:
        """Move the CTAs of some outcomes to machines of their own, until they reconverge."""
        meeting_step = self.program.reconvergence_steps.get(self.step.index)
        has_one_group = self.loops is not None and len(self.groups) == 1 and not self.waiting
        if (
            meeting_step is not None
            and has_one_group
            and (self.reconvergence is None or self.reconvergence.step != meeting_step)
        ):
            self.reconvergence = ReconvergencePoint(meeting_step, self.reconvergence)
        for outcome in split_outcomes:
            self._split_off(np.flatnonzero(outcomes == outcome))

    def _split_off(self, rows: NDArray[Any]) -> None:
        """Move some CTAs to a machine of their own, which runs the current step again."""
        new_machine = object.__new__(Machine)
        new_machine.__dict__.update(self.__dict__)
        new_machine.registers = dict(self.registers)
        new_machine.barriers, new_machine.saved_barriers = dict(self.barriers), dict(self.saved_barriers)
        new_machine.early_arrivals = dict(self.early_arrivals)
        new_machine.local_memory, new_machine.shared_memory = (self.local_memory.copy(), self.shared_memory.copy())
        new_machine.loops = None if self.loops is None else self.loops.for_other_ctas()
        group_index = self.groups.index(self.group)
        new_machine.groups = [LaneGroup(group.pc, group.mask, self) for group in self.groups]
        new_machine.waiting = [(name, LaneGroup(group.pc, group.mask, self)) for name, group in self.waiting]
        new_machine.group = new_machine.groups[group_index]
        new_machine.group.pc = self.step.index
        new_machine._keep_ctas(rows)
        if new_machine.trace:
            new_machine.trace.pop()
        self.counters.warps_executed[self.step.index] -= new_machine.group.warps
        self.counters.threads_executed[self.step.index] -= new_machine.group.lanes
        if self.reconvergence is not None:
            self.reconvergence.missing_count += 1
        self.pending.append(new_machine)

    def _keep_ctas(self, rows: NDArray[Any]) -> None:
        """Drop all but some of the CTAs."""
        self.ctas = self.ctas[rows]
        if self.trace is not None and self.traced_cta not in self.ctas:
            self.trace = None
        self.registers = {name: select_rows(value, rows) for name, value in self.registers.items()}
        if self.uses_affine and not is_affine_worthwhile(*self.shape):
            self.uses_affine = False
            self.registers = {name: as_array_value(value) for name, value in self.registers.items()}
        self.barriers = {name: select_mask_rows(mask, rows) for name, mask in self.barriers.items()}
        self.saved_barriers = {name: select_mask_rows(mask, rows) for name, mask in self.saved_barriers.items()}
        self.exited = select_mask_rows(self.exited, rows)
        self.early_arrivals = {
            name: arrived[rows] if np.size(arrived) > 1 else arrived for name, arrived in self.early_arrivals.items()
        }
        self.local_memory.keep_rows(rows)
        self.shared_memory.keep_rows(rows)
        group_index = self.groups.index(self.group)
        groups = [LaneGroup(group.pc, select_mask_rows(group.mask, rows), self) for group in self.groups]
        self.group = groups[group_index]
        self.groups = [group for group in groups if group.warps or group is self.group]
        self.waiting = [(n, LaneGroup(g.pc, select_mask_rows(g.mask, rows), self)) for n, g in self.waiting]

    # ── Running ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> bool:
        """Run until every lane has exited; True if it reached its reconvergence point first."""
        while self.groups or self.waiting:
            if not self.groups:  # deadlock: nothing can release the waiting groups
                self.groups = [group for _, group in self.waiting]
                self.waiting = []
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
        trace = self.trace if 2 * group.warps * self.program.warp_size >= self.rows * self.threads else None
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
                self.active_mask = widen_to_warps(group.mask, self.program.warp_size) if step.is_uniform else group.mask
                counts.threads_executed[step.index] += group.lanes
            elif not self._apply_guard(step) and not step.runs_unguarded:
                if group.pc >= stop_step:
                    return
                continue
            if step.run(self) or group.pc >= stop_step:
                return

    def _apply_guard(self, step: ProgramStep) -> bool:
        """Activate the lanes whose guard holds; False if there are none."""
        assert step.guard is not None
        group = self.group
        mask = self.active_mask = widen_to_warps(group.mask, self.program.warp_size) if step.is_uniform else group.mask
        guard_value = self.read_register(step.guard)
        if step.guard_is_negated:
            guard_value = invert(guard_value)
        self.undecided_lanes = None
        if isinstance(guard_value, UnknownValue):
            unknown_lanes = self.intersect(mask, guard_value.unknown_bits)
            if has_lanes(unknown_lanes):
                self.undecided_lanes = UnknownValue(False, unknown_lanes, guard_value.missing_inputs)
            guard_value = np.logical_and(guard_value.data, np.logical_not(guard_value.unknown_bits))
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

    def _merge_groups(self, group: LaneGroup) -> LaneGroup:
        """Merge the group with groups of other warps at the same step."""
        for other_group in [
            other_group for other_group in self.groups if other_group is not group and other_group.pc == group.pc
        ]:
            warp = self.program.warp_size
            if has_lanes(self.intersect(widen_to_warps(group.mask, warp), widen_to_warps(other_group.mask, warp))):
                continue
            merged = LaneGroup(group.pc, group.mask | other_group.mask, self)
            self.groups.remove(group)
            self.groups[self.groups.index(other_group)] = merged
            group = merged
        return group
