"""The effect of a function on its loads in flight: a short list of events for each block.

A register is followed by name from its load to the first instruction that uses it. A move that only renames, splits or
joins registers does not count as a use: it needs no machine instruction, and the wait happens at the next use.
"""

from __future__ import annotations

from itertools import chain
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.analysis.overlap.barrier_arrays import BarrierArray, find_barrier_arrays
from artifact_inspector.model import LOADS, EventKind, Instruction, Issuer, Stage, Trait
from artifact_inspector.model.memory import Queue, Transfer, WaitOp


class IssuedOperation(NamedTuple):
    """A memory operation or asynchronous matrix operation that enters a queue."""

    transfer: Transfer
    is_load: bool
    """False for a store, an atomic or a spill, which only occupies a slot of the queue."""
    registers: tuple[str, ...] = ()
    """The destination registers, if the first use completes the load. Empty if they are never used."""
    scoreboard: int | None = None
    """The scoreboard that counts the load until its data arrives (SASS)."""
    joins_previous: bool = False
    """True for a further load of one statement: inline assembly with several loads gives one value."""
    array: BarrierArray | None = None
    """The barriers that it arrives at, if one completes it; None if unknown."""
    closes_group: bool = False
    """True for the last operation of a group that no commit closes (SASS: `HGMMA … gsb0`)."""


class GroupCommit(NamedTuple):
    """Closes a group of copies, or opens the next phase of a barrier."""

    queue: Queue
    expected_transfer: Transfer | None = None
    """The bytes that the barrier is set to expect."""
    array: BarrierArray | None = None


class QueueWait(NamedTuple):
    """A wait that may complete loads."""

    wait: WaitOp
    array: BarrierArray | None = None


class RegisterReads(NamedTuple):
    """Registers that are used, or overwritten by an instruction that is not a load."""

    names: frozenset[str]


class ScoreboardWait(NamedTuple):
    """An instruction that waits until some scoreboards are zero (SASS)."""

    scoreboards: frozenset[int]


class RegisterMoves(NamedTuple):
    """Simultaneous renames of values."""

    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    """Target and sources."""
    is_unconditional: bool = True
    """False if the targets may keep their old values."""


QueueAction = IssuedOperation | GroupCommit | QueueWait


class MemoryEvent(NamedTuple):
    """An event that affects the operations in flight."""

    instruction_index: int
    action: QueueAction | RegisterReads | RegisterMoves | ScoreboardWait


_QUEUE_KINDS = LOADS | {
    EventKind.GLOBAL_STORE, EventKind.ATOMIC, EventKind.LOCAL_LOAD, EventKind.LOCAL_STORE, EventKind.COMMIT,
    EventKind.WAIT, EventKind.MATRIX,
}  # fmt: skip
"""Stores, atomics and spills occupy slots in the queues of some targets."""
_MATRIX_TRANSFER, _UNKNOWN_TRANSFER = Transfer(None, Queue.MATRIX), Transfer(None, None)


def find_memory_events(code: FunctionCode) -> list[tuple[MemoryEvent, ...]]:
    """The events of every block, in the order of its instructions."""
    actions: dict[int, QueueAction] = {}
    barriers: dict[int, str | None] = {}
    """Instruction that signals a barrier → the value that names the barrier."""
    # Machine code without its encoding does not show what an instruction waits for.
    is_undecoded = code.module.stage is Stage.SASS and not code.function.control_codes
    for index in sorted(code.find(_QUEUE_KINDS)):
        parsed = _read_action(code.instructions[index], code, is_undecoded=is_undecoded)
        if parsed is not None:
            actions[index], is_at_barrier, barrier = parsed
            if is_at_barrier:
                barriers[index] = barrier
    if not any(isinstance(a, IssuedOperation) and a.transfer is _MATRIX_TRANSFER for a in actions.values()):
        # Commits and waits of matrix operations that are not tracked.
        actions = {index: action for index, action in actions.items() if not _is_matrix_action(action)}
    if any(isinstance(actions[index], IssuedOperation) for index in barriers):
        for index, array in find_barrier_arrays(code, barriers).items():
            actions[index] = actions[index]._replace(array=array)
    followed: list[tuple[int, RegisterReads | RegisterMoves | ScoreboardWait]] = []
    followed += _track_scoreboards(code, actions) if code.function.control_codes else _track_registers(code, actions)
    events = group_by_key((index, MemoryEvent(index, action)) for index, action in (*followed, *actions.items()))
    blocks: list[list[MemoryEvent]] = [[] for _ in code.blocks]
    for index in sorted(events):
        blocks[code.flow.block_of[index]] += events[index]
    return [tuple(block_events) for block_events in blocks]


def _read_action(
    instruction: Instruction, code: FunctionCode, *, is_undecoded: bool
) -> tuple[QueueAction, bool, str | None] | None:
    """The event of an instruction, whether it uses a barrier, and the value that names the barrier."""
    kind = instruction.kind
    if kind is EventKind.WAIT:
        wait = code.language.wait(instruction, code.module)
        if wait is None or not (wait.queue.completes_loads or (wait.queue is Queue.MATRIX and wait.depth is not None)):
            return None
        return QueueWait(wait), wait.queue is Queue.PHASE, wait.barrier
    if kind is EventKind.COMMIT:
        queue = code.language.commit(instruction)
        if queue not in (Queue.MATRIX, Queue.GROUP, Queue.PHASE):
            return None
        expects = None if queue is Queue.MATRIX else code.language.transfer(instruction, code.module)
        return GroupCommit(queue, expects), expects is not None, None if expects is None else expects.barrier
    if kind is EventKind.MATRIX:
        matrix = code.language.matrix(instruction, code.module)
        if matrix is None or matrix.issuer != Issuer.WARPGROUP:
            return None
        closes = code.language.commit(instruction) is Queue.MATRIX
        return IssuedOperation(_MATRIX_TRANSFER, is_load=False, closes_group=closes), False, None
    transfer = code.language.transfer(instruction, code.module) or _UNKNOWN_TRANSFER
    if is_undecoded and transfer.queue is Queue.USE:
        transfer = _UNKNOWN_TRANSFER
    is_load = kind in LOADS
    if is_load or (transfer.queue is not None and transfer.queue.is_counter):
        return IssuedOperation(transfer, is_load), transfer.queue is Queue.PHASE, transfer.barrier
    return None


def _is_matrix_action(action: QueueAction) -> bool:
    queue = action.wait.queue if isinstance(action, QueueWait) else isinstance(action, GroupCommit) and action.queue
    return queue is Queue.MATRIX


def _track_scoreboards(code: FunctionCode, actions: dict[int, QueueAction]) -> list[tuple[int, ScoreboardWait]]:
    """The instructions that wait for the scoreboards of register loads."""
    controls = code.function.control_codes
    used: set[int] = set()
    for index, action in actions.items():
        scoreboard = controls[index].write_barrier
        if isinstance(action, IssuedOperation) and action.transfer.queue is Queue.USE and scoreboard is not None:
            actions[index] = action._replace(scoreboard=scoreboard)
            used.add(scoreboard)
    waits = ((index, frozenset(s for s in used if c.wait_mask >> s & 1)) for index, c in enumerate(controls))
    return [(index, ScoreboardWait(waited)) for index, waited in waits if waited]


def _track_registers(
    code: FunctionCode, actions: dict[int, QueueAction]
) -> list[tuple[int, RegisterReads | RegisterMoves]]:
    """Uses, moves and overwrites of load destinations. Also records the destinations in the loads."""
    loads = _loaded_registers(code, actions)
    if not loads:
        return []
    moves = _MoveTracker(code, {name for _, names in loads.values() for name in names})
    register_events = _register_events(code, {index: names for index, (_, names) in loads.items()}, moves)
    reads = (action.names for _, action in register_events if isinstance(action, RegisterReads))
    used = moves.sources_of({name for names in reads for name in names})
    for index, (joins, names) in loads.items():
        action = actions[index]
        assert isinstance(action, IssuedOperation)
        actions[index] = action._replace(registers=() if used.isdisjoint(names) else names, joins_previous=joins)
    return register_events


def _loaded_registers(code: FunctionCode, actions: dict[int, QueueAction]) -> dict[int, tuple[bool, tuple[str, ...]]]:
    """For each register load: whether it joins the previous load of its statement, and its destinations."""
    loaded: dict[int, tuple[bool, tuple[str, ...]]] = {}
    line, registers = 0, tuple[str, ...]()
    for index, action in actions.items():
        if isinstance(action, IssuedOperation) and action.transfer.queue is Queue.USE:
            previous_load, line = (line, registers), code.instructions[index].line
            registers = code.operands(index).results
            loaded[index] = (previous_load == (line, registers), registers)
    return loaded


def _register_events(
    code: FunctionCode, loads: dict[int, tuple[str, ...]], moves: _MoveTracker
) -> list[tuple[int, RegisterReads | RegisterMoves]]:
    flow = code.flow
    begins = min(flow.position[_outermost_start(code, index)] for index in loads)
    events: list[tuple[int, RegisterReads | RegisterMoves]] = []
    watched, is_of_others = moves.watched, moves.watched.isdisjoint
    for block in flow.order:
        start, stop = code.blocks[block].start, code.blocks[block].stop
        if start == stop or flow.position[stop - 1] < begins:
            continue
        used: set[str] = set()  # since they were last written: a further use completes nothing
        phis: list[tuple[str, tuple[str, ...]]] = []
        for index in range(start, stop):
            names = moves.mentioned[index] if index in moves.mentioned else code.mentions(index)
            if is_of_others(names):
                continue
            move, changed = moves.move(index, names), loads.get(index, ())
            sources: tuple[tuple[str, ...], ...] = ()
            if move is not None:
                changed, sources = tuple(target for target, _ in move.pairs), tuple(s for _, s in move.pairs)
            reads = watched.intersection(names).difference(used, changed, *sources)
            if reads:
                events.append((index, RegisterReads(frozenset(reads))))
                used |= reads
            used.difference_update(changed)
            if move is not None:
                if code.has_trait(index, Trait.PHI):
                    phis += move.pairs
                else:
                    events.append((index, move))
        if phis:
            events.append((start, RegisterMoves(tuple(phis))))
    return events


class _MoveTracker:
    """The registers that may hold loaded values, and the moves between them."""

    def __init__(self, code: FunctionCode, filled: set[str]) -> None:
        self._code = code
        self.mentioned = {
            index: code.mentions(index)
            for index in code.of_kind.get(EventKind.MOVE, ())
            if code.has_trait(index, Trait.RENAMES)
        }
        """The names in instructions that may be moves."""
        # An instruction with a single name has only a result and reads nothing.
        moves = [(index, names) for index, names in self.mentioned.items() if len(names) > 1]
        self.watched = watched = set(filled)
        self.at: dict[int, RegisterMoves] = {}
        watched_count = 0
        while watched_count < len(watched):  # repeated for values that a loop carries
            watched_count = len(watched)
            for index, names in moves:
                if not watched.isdisjoint(names):
                    if index not in self.at:
                        self.at[index] = self._read_move(index)
                    watched.update(t for t, sources in self.at[index].pairs if not watched.isdisjoint(sources))
            watched.update(flow.target for flow in code.function.flows if flow.source in watched)
        for flow in code.function.flows:
            if flow.source in watched or flow.target in watched:
                earlier = self.at[flow.instruction_index].pairs if flow.instruction_index in self.at else ()
                self.at[flow.instruction_index] = RegisterMoves((*earlier, (flow.target, (flow.source,))))

    def move(self, index: int, names: list[str]) -> RegisterMoves | None:
        """The move that an instruction performs; None if it is not a move."""
        if index not in self.at and len(names) == 1 and index in self.mentioned:
            self.at[index] = self._read_move(index)
        return self.at.get(index)

    def _read_move(self, index: int) -> RegisterMoves:
        results, reads = self._code.operands(index)
        always = self._code.instructions[index].guard is None
        return RegisterMoves(tuple((result, reads) for result in results), always)

    def sources_of(self, names: set[str]) -> set[str]:
        """Some names and all names that their values may have had before."""
        sources = group_by_key(pair for move in self.at.values() for pair in move.pairs)
        return set(reachable(names, lambda name: chain.from_iterable(sources.get(name, ()))))


def _outermost_start(code: FunctionCode, index: int) -> int:
    """The first instruction of the outermost loop around an instruction, or of its block."""
    flow = code.flow
    headers = [flow.loops[loop].header for loop in flow.enclosing(flow.loop_at(index))]
    return code.blocks[[flow.block_of[index], *headers][-1]].start
