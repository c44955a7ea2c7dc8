"""The loops of a machine: if a few iterations predict the next ones, these are simulated in parallel.

Most loop-carried registers grow by a constant in each iteration, or periodically if a pipeline cycles through
its buffers. That is a hypothesis; `proving` proves it before its counters are used. Unproven iterations run
sequentially. After failures, a loop is tried less often.
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
"""Most lanes of all iterations in parallel; this costs about as much as the numpy calls for one warp."""
MOST_OF_SUMS = 1 << 21
"""The same if registers are affine values, whose cost does not depend on the number of lanes."""
_FEW_ARRAYS = 64
"""Fewest steps per register that is not affine; such registers are computed for all lanes of all iterations.
"""
MOST_HELD = 1 << 26
"""Most bytes of registers that are not affine, over all parallel iterations. The working set is several times
as large."""
MOST_PERIOD = 8
"""Longest period of a pipeline's buffers, in iterations."""
_MOST_UNSETTLED = 2
"""Failures after which irregular registers are no longer settled."""
_MORE = 4
"""Most steps of an iteration, relative to the last one; a longer one was not as predicted."""


class _Loop:
    """Observations of one loop."""

    def __init__(self) -> None:
        self.failed = 0
        """Consecutive wrong hypotheses."""
        self.wait = 0
        """Iterations to run sequentially before the next hypothesis."""
        self.carried: set[Name] | None = None
        """Loop-carried state: what an iteration reads that an earlier one wrote."""
        self.settled: set[Name] = set()
        """Irregular registers that parallel runs settled."""
        self.unsettled = 0
        """Parallel runs that did not settle, less those that did."""
        self.settles = True
        """Whether irregular registers are still settled."""
        self.learned: list[Change] = []
        """Proven changes of the state, repeated cyclically."""
        self.learned_at = 0
        """Iterations that had been observed before the first of these."""
        self.trips = 0
        """Consecutive iterations of that proof; 0 if there is none."""
        self.restart()

    def restart(self) -> None:
        """Reset: the loop is entered again, or behaves differently than before."""
        self.state: dict[Name, Value] | None = None
        self.changes: list[Change] = []
        self.odd: dict[Name, int] = {}
        """Irregular register → how often it changed."""
        self.seen = 0
        """Iterations since the reset."""
        self.begun = 0
        """Steps spent when the last iteration began."""
        self.steps = 0
        """Steps of the last iteration."""
        self.mask: Mask = True
        self.ctas: NDArray[np.int64] | None = None

    @property
    def mostly_odd(self) -> set[Name]:
        """Irregular registers, ignoring those of the first iteration only."""
        if not self.settles:
            return set()
        return self.settled | {name for name, times in self.odd.items() if times > 1}

    def foresee(self) -> tuple[list[Change], set[Name]]:
        """The predicted changes of the next iterations, in order, and the irregular registers.

        Empty if there is no prediction.
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
    """The period of a sequence; 0 if it does not repeat."""
    for period in range(1, min(MOST_PERIOD, len(turns) - 1) + 1):
        if all(turns[at] == turns[at - period] for at in range(period, len(turns))):
            return period
    return 0


class Loops:
    """The loops of a machine's program, by header."""

    def __init__(self) -> None:
        self._loops: dict[int, _Loop] = {}

    def fresh(self) -> Loops:
        """A copy for other CTAs: it keeps what was learned and drops the current state."""
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
        """Handle a machine whose lanes are all back at a loop header."""
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
    """Run as many iterations as can be proven; whether there were any.

    Args:
        machine: at the beginning of an iteration.
        loop: its loop.
        changes: predicted changes of the next iterations.
        odd: irregular registers.
        room: most iterations in parallel.
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
    """Record the state change since the last iteration; False if there is none to compare."""
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
    """Bytes of a register stored as arrays; 0 for numbers and affine values."""
    parts = (value.data, value.bad) if isinstance(value, Unknown) else (value,)
    return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
