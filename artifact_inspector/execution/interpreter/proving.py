"""Loop iterations in parallel: predict the state of each, run all at once, and prove the prediction.

`Guess` extrapolates the state changes of earlier iterations and sets up the states in which the next ones
would begin. They run as if they were further CTAs. If each ends in the state in which the next began, the
result equals sequential execution: by induction, since the first begins in the actual state. Counters and
touched memory are buffered until then, and discarded if any state differs.

Some registers do not change by a constant, such as the unused upper half of an address. They start
unpredicted; the end of each iteration then supplies the value for the next, and all run again until nothing
changes.

The proof fails if iterations diverge, store to a tensor whose values were given, leave tensors, or have more
unknown values in parallel than one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.changes import (
    Change,
    Foreseen,
    Name,
    Recorded,
    follow_on,
    foresee,
    is_bool,
    is_same,
    is_same_unknown,
    state_of,
)
from artifact_inspector.execution.interpreter.counters import Spent
from artifact_inspector.execution.interpreter.lanes import Mask, Unknown, Value, rows_of
from artifact_inspector.execution.interpreter.machine import Group, Machine
from artifact_inspector.execution.interpreter.pieces import Pieces, lacks, together
from artifact_inspector.execution.interpreter.program import ODD_OPERANDS, Undecided
from artifact_inspector.execution.interpreter.rehearsal import Refused, Rehearsal
from artifact_inspector.execution.interpreter.scratch import Full, Scratch
from artifact_inspector.execution.interpreter.shifted import Shifted

FEWEST = 6
"""Fewest iterations for which it is worthwhile."""
MOST_SHARED = 1 << 25
"""Most bytes of shared memory that are copied for all iterations."""

_MOST_TURNS = 6
"""Most runs until the irregular registers settle."""


class _Parted(Exception):  # noqa: N818 - no error: the iterations before it can run in parallel
    """Iterations diverge."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row}")
        self.row = row


class _Trial(Machine):
    """The machine on which iterations run as if they were further CTAs."""

    def _part(self, ways: NDArray[Any], _kinds: list[int]) -> None:
        raise _Parted(int(np.flatnonzero(ways != ways[0])[0]))

    def go_round(self, header: int) -> bool:
        """Run until all lanes are back at the loop header; False if they do not arrive."""
        while self.groups:
            self._run_lowest()
            if len(self.groups) == 1 and not self.waiting and self.groups[0].pc == header:
                return self.group.pc <= self.step.index
            masks = [group.mask for group in self.groups] + [group.mask for _, group in self.waiting]
            if self.way is not None and any(isinstance(m, np.ndarray) and len(m) > 1 for m in masks):
                return False
        return False


class Guess:
    """A hypothesis about the next iterations of a loop.

    Args:
        machine: at the beginning of the first.
        changes: of the iterations, repeated cyclically.
        count: number of iterations.
        steps: most steps of one iteration.
        odd: registers whose change is not an addition.
    """

    def __init__(
        self, machine: Machine, changes: Sequence[Change], count: int, steps: int, odd: Iterable[Name] = ()
    ) -> None:
        self.machine, self.count, self.steps = machine, count, steps
        state = state_of(machine)
        self.odd: dict[Name, Value] = {name: None for name in odd if state.get(name) is not None}
        """Irregular register → its value at the beginning of each iteration, once observed."""
        self.guessed: dict[Name, Foreseen] = {}
        for name in dict.fromkeys(name for change in changes for name in change.added):
            if name in self.odd:
                continue
            zero = False if is_bool(state[name]) else 0
            added = [change.added.get(name, zero) for change in changes]
            self.guessed[name] = foresee(state[name], added, count, machine.rows)

    def run(self, *, settle: bool = True) -> int:
        """Run the iterations; if all of them are proven, the machine continues after them.

        Args:
            settle: whether mispredicted registers may be settled by running again.

        Returns:
            Number of proven iterations; if not all are, the number that is worth trying next.
        """
        machine = self.machine
        held = machine.shared.data
        if held is not None and len(held) > 1 and self.count * held.size > MOST_SHARED:
            return 0  # a single row shared by all CTAs is not copied
        names = machine.names.count()
        for _ in range(_MOST_TURNS):
            rehearsal = Rehearsal(machine.memory, machine.rows)
            trial = self._trial(rehearsal)
            given: dict[Name, Value] = {**trial.registers, **trial.local.words}
            proven = self._go_round(trial)
            is_new = machine.names.count() > names
            machine.names.forget(names)
            if proven < self.count:
                return proven
            if self._begin_as_ended(trial):
                proven = self._proven(trial, given)
                if proven >= FEWEST or not self.disagreed or not settle:
                    break
                self._begin_oddly(trial)
        else:
            return 0
        if proven < self.count:
            return proven
        if is_new:  # sequential execution must name missing inputs first
            return 0
        self._commit(trial, rehearsal, given)
        return proven

    def _begin_oddly(self, trial: _Trial) -> None:
        """Treat mispredicted registers as irregular: start iterations with the end values of earlier ones."""
        self.odd.update(dict.fromkeys(self.disagreed))
        for name in self.disagreed:
            self.guessed.pop(name, None)
        self._begin_as_ended(trial)

    def _begin_as_ended(self, trial: _Trial) -> bool:
        """Start each iteration with the irregular registers of the one before it; True if nothing changed."""
        ended = state_of(trial)
        state = state_of(self.machine)
        same = True
        for name, began in self.odd.items():
            begins = follow_on(state[name], ended.get(name), self.machine.shape, self.count)
            same = same and began is not None and is_same(began, begins)
            self.odd[name] = begins
        return same

    def _go_round(self, trial: _Trial) -> int:
        """Run all iterations; returns how many take the same path."""
        machine, counts = self.machine, self.machine.counts
        try:
            if not trial.go_round(machine.groups[0].pc):
                return 0
        except _Parted as parted:
            return min(parted.row // machine.rows, self.count - 1)
        except (Undecided, Spent, Refused, Full, *ODD_OPERANDS):
            return 0
        if trial.counts.outside or any(why & ~counts.why.get(at, 0) for at, why in trial.counts.why.items()):
            return 0
        return self.count if self._is_as_before(trial) else 0

    def _trial(self, rehearsal: Rehearsal) -> _Trial:
        machine, count = self.machine, self.count
        trial = object.__new__(_Trial)
        trial.__dict__.update(machine.__dict__)
        trial.ctas, trial.trips = np.tile(machine.ctas, count), count
        trial.memory = rehearsal
        trial.counts = machine.counts.beside(self.steps)
        trial.barriers = {name: self._tile(mask) for name, mask in machine.barriers.items()}
        trial.saved = {name: self._tile(mask) for name, mask in machine.saved.items()}
        trial.exited = self._tile(machine.exited)
        trial.arrivals = {name: self._tile_told(told) for name, told in machine.arrivals.items()}
        trial.registers = Recorded(
            {name: self._begin(name, held) for name, held in machine.registers.items()}
        )
        trial.local, trial.shared = Scratch(), machine.shared.copy()
        trial.local.words = {at: self._begin(at, held) for at, held in machine.local.words.items()}
        trial.shared.most = MOST_SHARED
        trial.shared.repeat(count)
        trial.way = None if machine.way is None else []
        trial.loops = None
        trial.waiting, trial.pending = [], []
        trial.groups = [Group(machine.groups[0].pc, self._tile(machine.groups[0].mask), trial)]
        trial.group = trial.groups[0]
        return trial

    def _tile(self, mask: Mask) -> Mask:
        if isinstance(mask, np.ndarray) and mask.ndim and len(mask) > 1:
            return np.tile(mask, (self.count, 1))
        return mask

    def _tile_told(self, told: Any) -> Any:
        return np.tile(told, self.count) if np.size(told) > 1 else told

    def _begin(self, name: Name, held: Value) -> Value:
        """A register at the beginning of all iterations."""
        if name in self.guessed:
            return rows_of(self.guessed[name].all, np.arange(self.count * self.machine.rows))
        if self.odd.get(name) is not None:
            return self.odd[name]
        if isinstance(held, Unknown):
            return Unknown(self._tile(held.data), self._tile(held.bad), held.why)
        if isinstance(held, (Shifted, Pieces)):
            return held.keep(np.tile(np.arange(self.machine.rows), self.count))
        return self._tile(held)

    def _is_as_before(self, trial: _Trial) -> bool:
        """Whether everything but registers is unchanged: lane masks, barriers, shared memory."""
        machine = self.machine
        masks = [(trial.groups[0].mask, machine.groups[0].mask), (trial.exited, machine.exited)]
        for now, before in ((trial.barriers, machine.barriers), (trial.saved, machine.saved)):
            if now.keys() != before.keys():
                return False
            masks += [(now[name], before[name]) for name in now]
        if any(np.any(np.not_equal(now, self._tile(was))) for now, was in masks):
            return False
        if trial.arrivals.keys() != machine.arrivals.keys() or any(
            np.any(told != self._tile_told(machine.arrivals[name])) for name, told in trial.arrivals.items()
        ):
            return False
        return _is_same_shared(trial.shared, machine.shared, self.count)

    def _proven(self, trial: _Trial, given: Mapping[Name, Value]) -> int:
        """The number of leading iterations that began in the state in which the one before them ended."""
        registers = trial.registers
        assert isinstance(registers, Recorded)
        self.disagreed: list[Name] = []
        if trial.local.words.keys() != self.machine.local.words.keys():
            return 0
        ended: dict[Name, Value] = {**dict(registers), **trial.local.words}
        self.carried: set[Name] = {*registers.read, *trial.local.words}
        proven = self.count
        after = np.arange(self.machine.rows, (self.count + 1) * self.machine.rows)
        for name in self.carried:
            got = ended.get(name)
            if name in self.odd:
                continue
            if name in self.guessed:
                want: Value = rows_of(self.guessed[name].all, after)
            else:
                want = given.get(name)
            agreed = self._agreed(got, want)
            if agreed < FEWEST:
                self.disagreed.append(name)
            proven = min(proven, agreed)
        if not proven:
            return 0
        before = state_of(self.machine)
        for name, held in ended.items():  # no value may be less known than in sequential execution
            if held is given.get(name) or not lacks(held):
                continue
            new: Unknown = together(held)
            was = together(before.get(name))
            if not isinstance(was, Unknown) or new.why & ~was.why or np.any(new.bad != self._tile(was.bad)):
                return 0
        return proven

    def _agreed(self, got: Value, want: Value) -> int:
        """The number of leading iterations after which a register is as predicted."""
        if got is want:
            return self.count
        if isinstance(got, Pieces) and isinstance(want, Pieces) and got.is_cut_as(want):
            return min(self._agreed(a.value, b.value) for a, b in zip(got.parts, want.parts, strict=True))
        got, want = together(got), together(want)
        if is_same_unknown(got, want):
            return self.count
        if got is None or want is None or isinstance(got, Unknown) or isinstance(want, Unknown):
            return 0
        if is_bool(got) is not is_bool(want):
            return 0
        wrong = np.asarray(got != want)
        if not wrong.any():
            return self.count
        rows = wrong.any(axis=1) if wrong.ndim == 2 and len(wrong) > 1 else np.ones(1, bool)
        return int(rows.argmax()) // self.machine.rows

    def _commit(self, trial: _Trial, rehearsal: Rehearsal, given: Mapping[Name, Value]) -> None:
        """Apply the buffered counters and accesses, and continue after the last iteration."""
        machine = self.machine
        machine.counts.add(trial.counts, self.count, machine.step)
        rehearsal.perform()
        if machine.way is not None and trial.way is not None:
            machine.way.extend(trial.way * self.count)
        last = np.arange((self.count - 1) * machine.rows, self.count * machine.rows)

        def behind(name: Name, got: Value, old: Value) -> Value:
            if name in self.guessed and name in self.carried:
                return self.guessed[name].last
            if got is given.get(name):
                return old
            return rows_of(got, last)

        machine.registers = {
            name: behind(name, got, machine.registers.get(name))
            for name, got in dict(trial.registers).items()
        }
        machine.shared.why |= trial.shared.why
        words = machine.local.words
        machine.local.words = {at: behind(at, got, words[at]) for at, got in trial.local.words.items()}


def _is_same_shared(now: Scratch, before: Scratch, count: int) -> bool:
    if now.data is None or before.data is None:
        return now.data is before.data
    if now.data.shape[1] != before.data.shape[1] or now.known is None or before.known is None:
        return False
    was = before.copy()
    was.repeat(count)
    return bool((now.known == was.known).all() and ((now.data == was.data) | (was.known == 0)).all())
