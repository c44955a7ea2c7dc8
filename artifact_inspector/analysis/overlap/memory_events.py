"""The effect of a function on its loads in flight: a short list of events for each block.

A register is followed by name from its load to the first instruction that uses it. A move that only
renames, splits or joins registers does not count as a use: it needs no machine instruction, and the wait
happens at the next use.
"""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.overlap.barriers import BarrierArray, find_arrays
from artifact_inspector.model import (
    LOADS,
    EventKind,
    Instruction,
    Issuer,
    Language,
    Module,
    Queue,
    Stage,
    Trait,
    Transfer,
    Wait,
)


class Issue(NamedTuple):
    """A memory operation or asynchronous matrix operation that enters a queue."""

    transfer: Transfer
    is_load: bool
    """False for a store, an atomic or a spill, which only occupies a slot of the queue."""
    registers: tuple[str, ...] = ()
    """The destination registers, if the first use completes the load. Empty if they are never used."""
    counter: int | None = None
    """The scoreboard that counts the load until its data arrives (SASS)."""
    joins: bool = False
    """True for a further load of one statement: inline assembly with several loads gives one value."""
    array: BarrierArray | None = None
    """The barriers that it arrives at, if one completes it; None if unknown."""
    closes: bool = False
    """True for the last operation of a group that no commit closes (SASS: `HGMMA … gsb0`)."""


class Commit(NamedTuple):
    """Closes a group of copies, or opens the next phase of a barrier."""

    queue: Queue
    expects: Transfer | None = None
    """The bytes that the barrier is set to expect."""
    array: BarrierArray | None = None


class WaitFor(NamedTuple):
    """A wait that may complete loads."""

    wait: Wait
    array: BarrierArray | None = None


class Reads(NamedTuple):
    """Registers that are used, or overwritten by an instruction that is not a load."""

    names: frozenset[str]


class Clears(NamedTuple):
    """An instruction that waits until some scoreboards are zero (SASS)."""

    counters: frozenset[int]


class Moves(NamedTuple):
    """Simultaneous renames of values."""

    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    """Target and sources."""
    always: bool = True
    """False if the targets may keep their old values."""


class Event(NamedTuple):
    """An event that affects the operations in flight."""

    at: int
    """Index of the instruction."""
    what: Issue | Commit | WaitFor | Reads | Moves | Clears


_ASKED = LOADS | {
    EventKind.GLOBAL_STORE,
    EventKind.ATOMIC,
    EventKind.LOCAL_LOAD,
    EventKind.LOCAL_STORE,
    EventKind.COMMIT,
    EventKind.WAIT,
    EventKind.MATRIX,
}
"""Stores, atomics and spills occupy slots in the queues of some targets."""
_MULTIPLY = Transfer(None, Queue.MATRIX)

_UNTOLD = Transfer(None, None)
Asked = Issue | Commit | WaitFor


def find_memory_events(code: Code, module: Module, language: Language) -> list[tuple[Event, ...]]:
    """The events of every block, in the order of its instructions."""
    asked: dict[int, Asked] = {}
    barriers: dict[int, str | None] = {}
    """Instruction that signals a barrier → the value that names the barrier."""
    # Machine code without its encoding does not show what an instruction waits for.
    mute = module.stage is Stage.SASS and not code.function.controls
    for index in sorted(code.find(_ASKED)):
        found = _read(code.function.instructions[index], module, language, mute=mute)
        if found is not None:
            asked[index], is_at_barrier, barrier = found
            if is_at_barrier:
                barriers[index] = barrier
    if not any(isinstance(what, Issue) and what.transfer is _MULTIPLY for what in asked.values()):
        # Commits and waits of matrix operations that are not tracked.
        asked = {index: what for index, what in asked.items() if not _of_matrix(what)}
    if any(isinstance(asked[index], Issue) for index in barriers):
        for index, array in find_arrays(code, module, language, barriers).items():
            asked[index] = asked[index]._replace(array=array)
    followed: list[tuple[int, Reads | Moves | Clears]] = []
    followed += _follow_counters(code, asked) if code.function.controls else _follow_registers(code, asked)
    events: dict[int, list[Event]] = {}
    for index, what in (*followed, *asked.items()):
        events.setdefault(index, []).append(Event(index, what))
    blocks: list[list[Event]] = [[] for _ in code.function.blocks]
    for index in sorted(events):
        blocks[code.flow.block_of[index]] += events[index]
    return [tuple(block_events) for block_events in blocks]


def _read(
    instruction: Instruction, module: Module, language: Language, *, mute: bool
) -> tuple[Asked, bool, str | None] | None:
    """The event of an instruction, whether it uses a barrier, and the value that names the barrier."""
    kind = instruction.kind
    if kind is EventKind.WAIT:
        return _read_wait(instruction, module, language)
    if kind is EventKind.COMMIT:
        return _read_commit(instruction, module, language)
    if kind is EventKind.MATRIX:
        matrix = language.matrix(instruction, module)
        if matrix is None or matrix.issuer != Issuer.WARPGROUP:
            return None
        closes = language.commit(instruction) is Queue.MATRIX
        return Issue(_MULTIPLY, is_load=False, closes=closes), False, None
    transfer = language.transfer(instruction, module) or _UNTOLD
    if mute and transfer.queue is Queue.USE:
        transfer = _UNTOLD
    is_load = kind in LOADS
    if is_load or (transfer.queue is not None and transfer.queue.is_counted_singly):
        return Issue(transfer, is_load), transfer.queue is Queue.PHASE, transfer.barrier
    return None


def _read_wait(
    instruction: Instruction, module: Module, language: Language
) -> tuple[Asked, bool, str | None] | None:
    wait = language.wait(instruction, module)
    if wait is None:
        return None
    is_grouped = wait.queue is Queue.MATRIX and wait.depth is not None
    if not (wait.queue.completes_loads or is_grouped):
        return None
    return WaitFor(wait), wait.queue is Queue.PHASE, wait.barrier


def _read_commit(
    instruction: Instruction, module: Module, language: Language
) -> tuple[Asked, bool, str | None] | None:
    queue = language.commit(instruction)
    if queue is Queue.MATRIX:
        return Commit(queue), False, None
    if queue is not Queue.GROUP and queue is not Queue.PHASE:
        return None
    expects = language.transfer(instruction, module)
    return Commit(queue, expects), expects is not None, None if expects is None else expects.barrier


def _of_matrix(what: Asked) -> bool:
    queue = what.wait.queue if isinstance(what, WaitFor) else isinstance(what, Commit) and what.queue
    return queue is Queue.MATRIX


def _follow_counters(code: Code, asked: dict[int, Asked]) -> list[tuple[int, Clears]]:
    """The instructions that wait for the scoreboards of register loads."""
    controls = code.function.controls
    used: set[int] = set()
    for index, what in asked.items():
        counter = controls[index].write_barrier
        if isinstance(what, Issue) and what.transfer.queue is Queue.USE and counter is not None:
            asked[index] = what._replace(counter=counter)
            used.add(counter)
    found = []
    for index, control in enumerate(controls):
        waited = frozenset(counter for counter in used if control.wait_mask >> counter & 1)
        if waited:
            found.append((index, Clears(waited)))
    return found


def _follow_registers(code: Code, asked: dict[int, Asked]) -> list[tuple[int, Reads | Moves]]:
    """Uses, moves and overwrites of load destinations. Also records the destinations in the loads."""
    loads = _filled(code, asked)
    if not loads:
        return []
    moves = _Moves(code, {name for _, names in loads.values() for name in names})
    found = _register_events(code, {index: names for index, (_, names) in loads.items()}, moves)
    used = moves.sources_of({name for _, what in found if isinstance(what, Reads) for name in what.names})
    for index, (joins, names) in loads.items():
        what = asked[index]
        assert isinstance(what, Issue)
        asked[index] = what._replace(registers=() if used.isdisjoint(names) else names, joins=joins)
    return found


def _filled(code: Code, asked: dict[int, Asked]) -> dict[int, tuple[bool, tuple[str, ...]]]:
    """For each register load: whether it joins the previous load of its statement, and its destinations."""
    found: dict[int, tuple[bool, tuple[str, ...]]] = {}
    line, registers = 0, tuple[str, ...]()
    for index, what in asked.items():
        if isinstance(what, Issue) and what.transfer.queue is Queue.USE:
            before, line = (line, registers), code.function.instructions[index].line
            registers = code.operands(index).results
            found[index] = (before == (line, registers), registers)
    return found


def _register_events(
    code: Code, loads: dict[int, tuple[str, ...]], moves: _Moves
) -> list[tuple[int, Reads | Moves]]:
    instructions, flow = code.function.instructions, code.flow
    names_in = code.language.mentions
    begins = min(flow.position[_outermost_start(code, index)] for index in loads)
    events: list[tuple[int, Reads | Moves]] = []
    watched, known = moves.watched, moves.mentioned
    is_of_others = watched.isdisjoint
    for block in flow.order:
        start, stop = code.function.blocks[block].start, code.function.blocks[block].stop
        if start == stop or flow.position[stop - 1] < begins:
            continue
        used: set[str] = set()  # since they were last written: a further use completes nothing
        phis: list[tuple[str, tuple[str, ...]]] = []
        for index in range(start, stop):
            names = known[index] if index in known else names_in(instructions[index])
            if is_of_others(names):
                continue
            move, changed = moves.move(index, names), loads.get(index, ())
            if move is not None:
                changed = tuple(target for target, _ in move.pairs)
                reads = watched.intersection(names).difference(used, changed, *(s for _, s in move.pairs))
            else:
                reads = watched.intersection(names).difference(used, changed)
            if reads:
                events.append((index, Reads(frozenset(reads))))
                used |= reads
            used.difference_update(changed)
            if move is not None:
                if code.has(index, Trait.JOINS_BLOCKS):
                    phis += move.pairs
                else:
                    events.append((index, move))
        if phis:
            events.append((start, Moves(tuple(phis))))
    return events


class _Moves:
    """The registers that may hold loaded values, and the moves between them."""

    def __init__(self, code: Code, filled: set[str]) -> None:
        self._code = code
        self.mentioned = {
            index: code.mentions(index)
            for index in code.of_kind.get(EventKind.MOVE, ())
            if code.has(index, Trait.RENAMES)
        }
        """The names in instructions that may be moves."""
        # An instruction with a single name has only a result and reads nothing.
        moves = [(index, names) for index, names in self.mentioned.items() if len(names) > 1]
        self.watched = watched = set(filled)
        self.at: dict[int, Moves] = {}
        known = 0
        while known < len(watched):  # repeated for values that a loop carries
            known = len(watched)
            for index, names in moves:
                if watched.isdisjoint(names):
                    continue
                if index not in self.at:
                    self.at[index] = self._read(index, names)
                for target, sources in self.at[index].pairs:
                    if not watched.isdisjoint(sources):
                        watched.add(target)
            watched.update(flow.target for flow in code.function.flows if flow.source in watched)
        for flow in code.function.flows:
            if flow.source in self.watched or flow.target in self.watched:
                earlier = self.at[flow.at].pairs if flow.at in self.at else ()
                self.at[flow.at] = Moves((*earlier, (flow.target, (flow.source,))))

    def move(self, index: int, names: list[str]) -> Moves | None:
        """The move that an instruction performs; None if it is not a move."""
        if index not in self.at and len(names) == 1 and index in self.mentioned:
            self.at[index] = self._read(index, names)
        return self.at.get(index)

    def _read(self, index: int, names: list[str]) -> Moves:
        results, reads = self._code.operands(index)
        always = self._code.function.instructions[index].guard is None
        return Moves(tuple((result, reads) for result in results), always)

    def sources_of(self, names: set[str]) -> set[str]:
        """Some names and all names that their values may have had before."""
        sources: dict[str, set[str]] = {}
        for move in self.at.values():
            for target, before in move.pairs:
                sources.setdefault(target, set()).update(before)
        found, pending = set(names), list(names)
        while pending:
            new = sources.get(pending.pop(), set()) - found
            found |= new
            pending += new
        return found


def _outermost_start(code: Code, index: int) -> int:
    """The first instruction of the outermost loop around an instruction, or of its block."""
    flow = code.flow
    block, loop = flow.block_of[index], flow.loop_at(index)
    while loop is not None:
        block, loop = flow.loops[loop].header, flow.loops[loop].parent
    return code.function.blocks[block].start
