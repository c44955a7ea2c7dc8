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

from artifact_inspector.execution.interpreter.counters import Counts
from artifact_inspector.execution.interpreter.lanes import (
    Mask,
    Names,
    Unknown,
    Value,
    choose,
    data_of,
    invert,
    is_true,
    mask_rows,
    rows_of,
    told_apart,
    widen,
)
from artifact_inspector.execution.interpreter.meeting import Meeting
from artifact_inspector.execution.interpreter.memory import Memory
from artifact_inspector.execution.interpreter.pieces import Pieces, together, whole_of, written
from artifact_inspector.execution.interpreter.program import Program, Step, Undecided
from artifact_inspector.execution.interpreter.scratch import Scratch
from artifact_inspector.execution.interpreter.shifted import Shifted, is_worth_it

ALWAYS_TRUE = frozenset(("PT", "UPT"))
"""Predicates that are always true."""


class Group:
    """Lanes that execute together."""

    __slots__ = ("lanes", "mask", "pc", "warps")

    def __init__(self, pc: int, mask: Mask, machine: Machine) -> None:
        self.pc = pc
        self.warps, self.lanes = machine.count_warps(mask), machine.count_lanes(mask)
        self.mask: Mask = True if self.lanes == machine.rows * machine.threads else mask


class Rounds(Protocol):
    """Accelerates the loops of a machine."""

    def arrive(self, machine: Machine) -> None:
        """Called when all lanes are back at a loop header."""

    def fresh(self) -> Rounds:
        """A copy for a machine with other CTAs."""


class Machine:
    """Some CTAs of a launch during the execution of a program."""

    def __init__(
        self,
        program: Program,
        ctas: NDArray[np.int64],
        threads: int,
        memory: Memory,
        counts: Counts,
        names: Names,
        environment: Any,
        loops: Rounds | None = None,
    ) -> None:
        self.program = program
        self.ctas = ctas
        """Linear CTA numbers."""
        self.threads = threads
        self.memory = memory
        self.counts = counts
        self.names = names
        self.environment = environment
        """The instruction set's launch state: constants, special registers."""
        self.registers: dict[str, Value] = {}
        self.barriers: dict[str, Mask] = {}
        """Convergence barrier → lanes that take part."""
        self.saved: dict[str, Mask] = {}
        self.waiting: list[tuple[str, Group]] = []
        self.exited: Mask = False
        self.arrivals: dict[str, Any] = {}
        """CTA barrier → threads per CTA that arrived without waiting."""
        self.local = Scratch()
        self.shared = Scratch()
        self.on: Mask = True
        self.maybe: Unknown | None = None
        """Lanes whose guard is unknown."""
        self.groups = [Group(0, True, self)]
        self.group = self.groups[0]
        self.step = program.steps[0]
        self.pending: list[Machine] = []
        self.meeting: Meeting | None = None
        """The reconvergence point where this machine merges with CTAs that diverged."""
        self.loops = loops
        """Simulates loop iterations in parallel; None simulates them one by one."""
        self.trips = 1
        """Loop iterations that are stacked among the CTAs."""
        self.sums = is_worth_it(len(ctas), threads)
        """Whether registers may be affine values; with few lanes, arrays are as fast."""
        self._no_lanes = np.zeros((1, threads), np.int64)
        self.followed: int | None = None
        """The CTA whose trace is recorded."""
        self.way: list[int] | None = None
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
        warp = self.program.warp
        if isinstance(mask, bool) or mask.shape[1] == 1:
            return self.count_lanes(mask) // warp
        found = np.count_nonzero(mask.reshape(mask.shape[0], threads // warp, warp).any(axis=2))
        return int(found * (rows // mask.shape[0]))

    # ── Registers ────────────────────────────────────────────────────────────────────────────────

    def read(self, name: str) -> Value:
        """The value of a register or predicate."""
        found = self.registers.get(name)
        if found is None:
            if name in ALWAYS_TRUE:
                return True
            nothing = self.names.unknown(f"uninitialized register {name}")
            return Unknown(False, True, nothing.why) if name.lstrip("U").startswith("P") else nothing
        if found.__class__ is Pieces:
            found = found.within(self.on) if self.step.by_lane else found.together()
        if found.__class__ is Shifted:
            return found if self.step.sums else found.array()
        if self.sums and self.step.sums and found.__class__ is np.ndarray and found.shape[1] == 1:
            return Shifted(found, self._no_lanes) if found.dtype == np.int64 and len(found) > 1 else found
        return found

    def write(self, name: str, value: Value) -> None:
        """Write a register or predicate in the active lanes."""
        if self.sums:
            value = told_apart(value, self.shape)
        if self.on is not True:
            value = self._joined(name, value)
        if self.maybe is not None:
            value = choose(self.maybe, value, value)
        if self.sums:
            value = told_apart(value, self.shape)
            self.counts.arrays += value.__class__ is np.ndarray and value.shape == self.shape
        self.registers[name] = value

    def _joined(self, name: str, value: Value) -> Value:
        """A register with a new value in the active lanes and its old value in the others."""
        old = self.registers.get(name)
        if old is None:
            return choose(self.on, value, self.read(name))
        if self.sums and self.maybe is None and self.on.__class__ is np.ndarray and len(self.on) == 1:
            found = written(self.on, value, old)
            if found is not None:
                return found
        return choose(self.on, value, together(old))

    def settled(self, value: Value) -> Value:
        """A value as known if it is known in all active lanes."""
        if isinstance(value, Unknown) and not is_true(self._and(self.on, np.asarray(value.bad) != 0)):
            return value.data
        return value

    def unknown(self, name: str) -> Unknown:
        """A register with no known bit, and the reason."""
        return self.names.unknown(name)

    # ── Control ──────────────────────────────────────────────────────────────────────────────────

    def branch(self, taken: Value, target: int) -> bool:
        """Move the lanes whose predicate holds to another step; True if the groups changed."""
        self._settle(taken)
        if taken is True and self.on is True:
            self.group.pc = target
            return True
        before = self.group
        yes, no = self._divide(taken)
        if not is_true(yes):
            return self.group is not before
        if not is_true(no):
            self.group.pc = target
            return True
        pc = self.group.pc
        both = widen(yes, self.program.warp) & widen(no, self.program.warp)
        self.counts.divergent[self.step.index] += self.count_warps(both)
        self.groups.remove(self.group)
        self.groups += [Group(pc, no, self), Group(target, yes, self)]
        return True

    def leave(self) -> bool:
        """End the active lanes."""
        self._settle(True)
        before = self.group
        yes, no = self._divide(True)
        if not is_true(yes):
            return self.group is not before
        self.exited = yes if self.exited is False else self.exited | yes
        if is_true(no):
            self.groups[self.groups.index(self.group)] = Group(self.group.pc, no, self)
        else:
            self.groups.remove(self.group)
        return True

    def _settle(self, taken: Value) -> None:
        why = 0 if self.maybe is None else self.maybe.why
        if isinstance(taken, Unknown) and is_true(self._and(self.on, taken.bad)):
            why |= taken.why
        if why:
            raise Undecided(self.step, self.names.of(why))

    @staticmethod
    def _and(mask: Mask, other: Any) -> Mask:
        if mask is True:
            return other if isinstance(other, np.ndarray) else bool(other)
        return mask & other

    def _divide(self, taken: Value) -> tuple[Mask, Mask]:
        """The lanes of the group that branch, and the others; CTAs that diverge are sent off first."""
        yes = self._and(self.on, data_of(taken))
        mask = self.group.mask
        if isinstance(yes, bool) or not yes.any():
            return (mask, False) if is_true(yes) else (False, mask)
        no = np.logical_not(yes) if mask is True else mask & ~yes
        if self.rows > 1 and max(yes.shape[0], no.shape[0]) > 1:
            ways = yes.any(axis=1) * 2 + no.any(axis=1)
            ways = np.broadcast_to(ways, (self.rows,))
            kinds = [way for way in (1, 2, 3) if (ways == way).any()]
            if len(kinds) > 1:
                keep = kinds[0]
                self._part(ways, kinds[1:])
                here = np.flatnonzero((ways == keep) | (ways == 0))
                yes, mask = mask_rows(yes, here), mask_rows(mask, here)
                no = np.logical_not(yes) if mask is True else mask & ~yes
                self._keep(here)
        if not is_true(no):
            return self.group.mask, False
        return (yes, no) if is_true(yes) else (False, self.group.mask)

    def _part(self, ways: NDArray[Any], kinds: list[int]) -> None:
        """Move the CTAs of some outcomes to machines of their own, until they reconverge."""
        place = self.program.meets.get(self.step.index)
        is_one = self.loops is not None and len(self.groups) == 1 and not self.waiting
        if place is not None and is_one and (self.meeting is None or self.meeting.place != place):
            self.meeting = Meeting(place, self.meeting)
        for way in kinds:
            self._send_off(np.flatnonzero(ways == way))

    def _send_off(self, rows: NDArray[Any]) -> None:
        """Move some CTAs to a machine of their own, which runs the current step again."""
        other = object.__new__(Machine)
        other.__dict__.update(self.__dict__)
        other.registers = dict(self.registers)
        other.barriers, other.saved = dict(self.barriers), dict(self.saved)
        other.arrivals = dict(self.arrivals)
        other.local, other.shared = self.local.copy(), self.shared.copy()
        other.loops = None if self.loops is None else self.loops.fresh()
        at = self.groups.index(self.group)
        other.groups = [Group(group.pc, group.mask, self) for group in self.groups]
        other.waiting = [(name, Group(group.pc, group.mask, self)) for name, group in self.waiting]
        other.group = other.groups[at]
        other.group.pc = self.step.index
        other._keep(rows)
        if other.way:
            other.way.pop()
        self.counts.executed[self.step.index] -= other.group.warps
        self.counts.lanes[self.step.index] -= other.group.lanes
        if self.meeting is not None:
            self.meeting.awaited += 1
        self.pending.append(other)

    def _keep(self, rows: NDArray[Any]) -> None:
        """Drop all but some of the CTAs."""
        self.ctas = self.ctas[rows]
        if self.way is not None and self.followed not in self.ctas:
            self.way = None
        self.registers = {name: rows_of(value, rows) for name, value in self.registers.items()}
        if self.sums and not is_worth_it(*self.shape):
            self.sums = False
            self.registers = {name: whole_of(value) for name, value in self.registers.items()}
        self.barriers = {name: mask_rows(mask, rows) for name, mask in self.barriers.items()}
        self.saved = {name: mask_rows(mask, rows) for name, mask in self.saved.items()}
        self.exited = mask_rows(self.exited, rows)
        self.arrivals = {
            name: told[rows] if np.size(told) > 1 else told for name, told in self.arrivals.items()
        }
        self.local.keep(rows)
        self.shared.keep(rows)
        at = self.groups.index(self.group)
        groups = [Group(group.pc, mask_rows(group.mask, rows), self) for group in self.groups]
        self.group = groups[at]
        self.groups = [group for group in groups if group.warps or group is self.group]
        self.waiting = [(n, Group(g.pc, mask_rows(g.mask, rows), self)) for n, g in self.waiting]

    # ── Running ──────────────────────────────────────────────────────────────────────────────────

    def run(self) -> bool:
        """Run until every lane has exited; True if it reached its reconvergence point first."""
        while self.groups or self.waiting:
            if not self.groups:  # deadlock: nothing can release the waiting groups
                self.groups = [group for _, group in self.waiting]
                self.waiting = []
            is_one = len(self.groups) == 1 and not self.waiting
            if self.meeting is not None and is_one and self.groups[0].pc == self.meeting.place:
                return True
            self._run_lowest()
            went_back = self.group.pc <= self.step.index and len(self.groups) == 1
            if went_back and self.loops is not None and not self.waiting:
                self.loops.arrive(self)
        return False

    def _run_lowest(self) -> None:
        group = min(self.groups, key=attrgetter("pc"))
        if len(self.groups) > 1:
            group = self._join(group)
        self.group = group
        others = [other.pc for other in self.groups if other is not group]
        stop = min(others) if others else len(self.program.steps)
        if self.meeting is not None and group.pc < self.meeting.place < stop:
            stop = self.meeting.place
        steps, counts = self.program.steps, self.counts
        way = self.way if 2 * group.warps * self.program.warp >= self.rows * self.threads else None
        while True:
            if group.pc >= len(steps):
                raise Undecided(self.step, ("code past the end of the kernel",))
            step = self.step = steps[group.pc]
            counts.spend(step)
            if way is not None:
                way.append(step.index)
            counts.executed[step.index] += group.warps
            group.pc += 1
            if step.guard is None:
                self.maybe = None
                self.on = widen(group.mask, self.program.warp) if step.is_uniform else group.mask
                counts.lanes[step.index] += group.lanes
            elif not self._guard(step) and not step.always:
                if group.pc >= stop:
                    return
                continue
            if step.run(self) or group.pc >= stop:
                return

    def _guard(self, step: Step) -> bool:
        """Activate the lanes whose guard holds; False if there are none."""
        assert step.guard is not None
        group = self.group
        mask = self.on = widen(group.mask, self.program.warp) if step.is_uniform else group.mask
        holds = self.read(step.guard)
        if step.unless:
            holds = invert(holds)
        self.maybe = None
        if isinstance(holds, Unknown):
            bad = self._and(mask, holds.bad)
            if is_true(bad):
                self.maybe = Unknown(False, bad, holds.why)
            holds = np.logical_and(holds.data, np.logical_not(holds.bad))
        if isinstance(holds, np.ndarray):
            self.on = self._and(mask, holds)
            lanes = self.count_lanes(self.on)
            if lanes == group.lanes and not step.is_uniform:
                self.on = group.mask
        else:
            self.on = mask if holds else False
            lanes = group.lanes if holds else 0
        self.counts.lanes[step.index] += lanes
        return lanes > 0 or self.maybe is not None

    def _join(self, group: Group) -> Group:
        """Merge the group with groups of other warps at the same step."""
        for other in [other for other in self.groups if other is not group and other.pc == group.pc]:
            warp = self.program.warp
            if is_true(self._and(widen(group.mask, warp), widen(other.mask, warp))):
                continue
            joined = Group(group.pc, group.mask | other.mask, self)
            self.groups.remove(group)
            self.groups[self.groups.index(other)] = joined
            group = joined
        return group
