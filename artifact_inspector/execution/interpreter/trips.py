"""The loops that a machine goes through: where a few trips tell how the next begin, these run side by side.

What a loop carries from trip to trip mostly grows by the same in each, or in every few where a pipeline goes
round its buffers. That is a guess, which `proving` proves before anything is counted by it; what is not
proven runs one by one, and the longer a loop refuses, the rarer it is tried.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.changes import Change, Name, Recorded, find_change, state_of
from artifact_inspector.execution.interpreter.lanes import Unknown
from artifact_inspector.execution.interpreter.proving import FEWEST, Guess

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.lanes import Mask, Value
    from artifact_inspector.execution.interpreter.machine import Machine

MOST_LANES = 1 << 14
"""Lanes of all trips that run side by side: so many cost about as much as the calls of numpy for one warp."""
MOST_OF_SUMS = 1 << 21
"""The same where registers are sums of what CTAs and lanes have, which costs as much for more of them."""
_FEW_ARRAYS = 64
"""Steps for each register that is no such sum, at least: those are computed lane by lane for all trips."""
MOST_HELD = 1 << 26
"""Bytes of registers of all trips that run side by side, where they are no such sums; what trips compute is
several times as much."""
MOST_PERIOD = 8
"""Trips after which a pipeline has gone round its buffers."""
_MOST_UNSETTLED = 2
"""Times that what is odd was not settled, from which on it is not tried."""
_MORE = 4
"""Times as long as the last one a trip may take: another is not what was foreseen."""


class _Loop:
    """What was seen of one loop."""

    def __init__(self) -> None:
        self.failed = 0
        """Guesses in a row that were wrong."""
        self.wait = 0
        """Trips to go one by one before the next guess."""
        self.carried: set[Name] | None = None
        """What a trip reads that one before it wrote."""
        self.settled: set[Name] = set()
        """What changes as no sum does, where trips that ran side by side settled it."""
        self.unsettled = 0
        """How much more often they did not."""
        self.settles = True
        """Whether it is tried."""
        self.learned: list[Change] = []
        """How the state changed, trip by trip and then again from the first, where that was proven."""
        self.learned_at = 0
        """Trips that had been seen before the first of these."""
        self.trips = 0
        """In a row, when that was proven; 0 where it was not."""
        self.restart()

    def restart(self) -> None:
        """The loop is entered anew, or goes on otherwise than before."""
        self.state: dict[Name, Value] | None = None
        self.changes: list[Change] = []
        self.odd: dict[Name, int] = {}
        """What changed as no sum does, and how often."""
        self.seen = 0
        """Trips since then."""
        self.begun = 0
        """Steps that had been spent when the last trip began."""
        self.steps = 0
        """That it took."""
        self.mask: Mask = True
        self.ctas: NDArray[np.int64] | None = None

    @property
    def mostly_odd(self) -> set[Name]:
        """What changes as no sum does, beyond the first trip, which is often another."""
        if not self.settles:
            return set()
        return self.settled | {name for name, times in self.odd.items() if times > 1}

    def foresee(self) -> tuple[list[Change], set[Name]]:
        """How the state will change in the next trips, in turn, and what will as no sum does.

        Empty where nothing tells.
        """
        changes, odd = self.changes, self.mostly_odd
        if not changes:
            return [], odd
        period = len(self.learned)
        turns = [
            turn
            for turn in range(period)
            if all(
                change.key == self.learned[(turn - back) % period].key
                for back, change in enumerate(reversed(changes[-period:]), 1)
            )
        ]
        if turns:
            usual = (self.seen - self.learned_at) % period
            turn = usual if usual in turns else turns[0]
            if turn == usual or len(turns) == 1 or len(changes) >= period:
                return self.learned[turn:] + self.learned[:turn], odd
        period = _period([change.key for change in changes])
        if period or len(changes) < FEWEST or not self.settles:
            return changes[-period:] if period else [], odd
        names = dict.fromkeys(name for change in changes for name in change.added)
        new = {name for name in names if not _period([change.key.get(name) for change in changes])}
        changes = [change.without(new) for change in changes]
        return changes[-_period([change.key for change in changes]) :], odd | new


def _period(turns: list[Any]) -> int:
    """After how many things they come again; 0 where they do not."""
    for period in range(1, min(MOST_PERIOD, len(turns) - 1) + 1):
        if all(turns[at] == turns[at - period] for at in range(period, len(turns))):
            return period
    return 0


class Loops:
    """The loops of a machine's program, by where they begin."""

    def __init__(self) -> None:
        self._loops: dict[int, _Loop] = {}

    def fresh(self) -> Loops:
        """The same for other CTAs: where they stand is not known, what was learned is."""
        other = Loops()
        for header, loop in self._loops.items():
            held = other._loops[header] = _Loop()
            held.failed, held.trips, held.carried = loop.failed, loop.trips, loop.carried
            held.settled, held.unsettled = loop.settled, loop.unsettled
            if all(
                np.ndim(added) == 0 or len(added) == 1 for one in loop.learned for added in one.added.values()
            ):
                held.learned, held.learned_at = loop.learned, loop.learned_at
        return other

    def arrive(self, machine: Machine) -> None:
        """A machine whose lanes all stand at the beginning of a loop that they have gone through."""
        few = machine.sums and machine.counts.arrays * _FEW_ARRAYS <= machine.counts.spent
        room = (MOST_OF_SUMS if few else MOST_LANES) // (machine.rows * machine.threads)
        if room >= FEWEST:
            room = min(room, MOST_HELD // (1 + sum(map(_bytes_of, machine.registers.values()))))
        if room < FEWEST:
            return
        header = machine.groups[0].pc
        for inner, held in self._loops.items():
            if header < inner <= machine.step.index:
                held.restart()
        loop = self._loops.get(header)
        if loop is None:
            loop = self._loops[header] = _Loop()
        loop.settles = loop.unsettled < _MOST_UNSETTLED
        if not _follow(loop, machine):
            return
        if loop.wait:
            loop.wait -= 1
            return
        changes, odd = loop.foresee()
        if changes and not _advance(machine, loop, changes, odd, room):
            loop.settled = set()
            loop.failed += 1
            loop.wait = min(1 << loop.failed, 64)


def _advance(machine: Machine, loop: _Loop, changes: list[Change], odd: set[Name], room: int) -> bool:
    """Run as many trips as can be proven; whether there were any.

    Args:
        machine: at the beginning of a trip.
        loop: that it is in.
        changes: of the next trips, in turn.
        odd: what changes as no sum does.
        room: trips that run side by side at most.
    """
    done, expected = 0, loop.trips - loop.seen
    while True:
        count = min(room, expected - done if expected > done else room)
        turn = done % len(changes)
        turned = changes[turn:] + changes[:turn]
        guess = Guess(machine, turned, count, _MORE * loop.steps, odd)
        proven = guess.run(settle=loop.settles) if count >= FEWEST else 0
        if guess.odd:
            loop.unsettled += 1 if proven < FEWEST else -1 if proven == count else 0
        if FEWEST <= proven < count:
            expected = done + proven
        elif proven < count:
            break
        else:
            done += count
            if done == expected:
                break
    if done:
        loop.learned, loop.learned_at, loop.failed, loop.trips = changes, loop.seen, 0, loop.seen + done
        loop.settled = set(guess.odd)
        loop.restart()
    return done > 0


def _follow(loop: _Loop, machine: Machine) -> bool:
    """Note how the state changed since the last trip; False where it cannot be told."""
    mask, state, registers = machine.groups[0].mask, state_of(machine), machine.registers
    if isinstance(registers, Recorded):
        machine.registers = dict(registers)
    is_next = loop.state is not None and loop.ctas is machine.ctas and _is_same_mask(loop.mask, mask)
    if is_next and loop.carried is None and isinstance(registers, Recorded):
        loop.carried = {*registers.read, *machine.local.words}
    before = loop.state
    spent = machine.counts.spent
    loop.begun, loop.steps = spent, spent - loop.begun
    if not is_next or loop.carried is None or before is None:
        loop.restart()
        loop.ctas, loop.mask, loop.state, loop.begun = machine.ctas, mask, state, spent
        if loop.carried is None:
            machine.registers = Recorded(registers)
        return False
    change = find_change(before, state, loop.carried - loop.mostly_odd)
    loop.state = state
    if change.odd:
        for name in change.odd:
            loop.odd[name] = loop.odd.get(name, 0) + 1
        loop.changes, loop.seen = [], 0
        return False
    loop.changes = [*loop.changes[1 - 2 * MOST_PERIOD :], change]
    loop.seen += 1
    return True


def _is_same_mask(a: Mask, b: Mask) -> bool:
    return a is b or (isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.array_equal(a, b))


def _bytes_of(value: Value) -> int:
    """Of what a register has lane by lane; 0 for a number and for a sum."""
    parts = (value.data, value.bad) if isinstance(value, Unknown) else (value,)
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
