"""What a function does to its loads in flight, as short lists of events, one for each block.

A register is followed by name from its load to the first instruction that uses it. A move that only
renames, splits or joins registers is no use: it costs the machine nothing, and the value is waited for
where something is done with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.analysis.barriers import BarrierArray, find_arrays
from artifact_inspector.analysis.regions import Code
from artifact_inspector.analysis.rounds import LOADS
from artifact_inspector.model import EventKind, Flow, Language, Module, Queue, Transfer, Wait

__all__ = ["Commit", "Event", "Issue", "Moves", "Reads", "WaitFor", "find_memory_events"]


class Issue(NamedTuple):
    """A memory operation enters a queue."""

    transfer: Transfer
    is_load: bool
    """False for a store, an atomic or a spill, which only takes a place in the queue."""
    registers: tuple[str, ...] = ()
    """What it loads into, where its first use completes it."""
    joins: bool = False
    """True for a further load of one statement: inline assembly with several gives one value."""
    array: BarrierArray | None = None
    """The barriers it arrives at, where one completes it; None where they cannot be told."""


class Commit(NamedTuple):
    """A group of copies is closed, or the next phase of a barrier is opened."""

    queue: Queue
    expects: Transfer | None = None
    """What the barrier is told to expect."""
    array: BarrierArray | None = None


class WaitFor(NamedTuple):
    """A wait that loads may complete at."""

    wait: Wait
    array: BarrierArray | None = None


class Reads(NamedTuple):
    """Registers that are used, or overwritten by something that is no load."""

    names: frozenset[str]


class Moves(NamedTuple):
    """Values that take other names, all at once."""

    pairs: tuple[tuple[str, tuple[str, ...]], ...]
    """Target and sources."""
    always: bool = True
    """False where the targets may keep what they hold."""


class Event(NamedTuple):
    """Something that happens to the operations in flight."""

    at: int
    """Index of the instruction."""
    what: Issue | Commit | WaitFor | Reads | Moves


_ASKED = LOADS | {
    EventKind.GLOBAL_STORE,
    EventKind.ATOMIC,
    EventKind.LOCAL_LOAD,
    EventKind.LOCAL_STORE,
    EventKind.COMMIT,
    EventKind.WAIT,
}
"""Stores, atomics and spills take places in the queues of some targets."""
_IN_ORDER = frozenset({Queue.LOADS, Queue.COPIES, Queue.TENSORS})
_COMPLETES = _IN_ORDER | {Queue.GROUP, Queue.PHASE}
"""Queues whose waits loads complete at."""

_VALUE = re.compile(r'%(?:"[^"]*"|[\w.$-]+(?:#\d+)?)')
_RENAMES = re.compile(r"(?:mov\.\w+|phi|freeze|bitcast|(?:extract|insert)(?:value|element)|shufflevector)$")


def find_memory_events(code: Code, module: Module, language: Language) -> list[tuple[Event, ...]]:
    """The events of every block, in the order of its instructions."""
    asked: dict[int, Issue | Commit | WaitFor] = {}
    barriers: dict[int, str | None] = {}
    for index, instruction in enumerate(code.function.instructions):
        kind = instruction.kind
        if kind not in _ASKED:
            continue
        if kind is EventKind.WAIT:
            wait = language.wait(instruction, module)
            if wait is not None and wait.queue in _COMPLETES:
                asked[index] = WaitFor(wait)
                if wait.queue is Queue.PHASE:
                    barriers[index] = wait.barrier
        elif kind is EventKind.COMMIT:
            queue = language.commit(instruction)
            if queue is Queue.GROUP or queue is Queue.PHASE:
                expects = language.transfer(instruction, module)
                asked[index] = Commit(queue, expects)
                if expects is not None:
                    barriers[index] = expects.barrier
        else:
            transfer = language.transfer(instruction, module)
            is_load = kind in LOADS
            if transfer is not None and (is_load or transfer.queue in _IN_ORDER):
                asked[index] = Issue(transfer, is_load)
                if transfer.queue is Queue.PHASE:
                    barriers[index] = transfer.barrier
    if any(isinstance(asked[index], Issue) for index in barriers):
        for index, array in find_arrays(code, module, language, barriers).items():
            asked[index] = asked[index]._replace(array=array)
    events: dict[int, list[Event]] = {}
    for index, what in (*_register_events(code, asked), *asked.items()):
        events.setdefault(index, []).append(Event(index, what))
    blocks: list[list[Event]] = [[] for _ in code.function.blocks]
    for index in sorted(events):
        blocks[code.flow.block_of[index]] += events[index]
    return [tuple(found) for found in blocks]


def _register_events(
    code: Code, asked: dict[int, Issue | Commit | WaitFor]
) -> Iterator[tuple[int, Reads | Moves]]:
    """Where the registers that loads fill are used, moved and overwritten; the loads are told theirs."""
    instructions, flow = code.function.instructions, code.flow
    statement, registers = (0, ""), tuple[str, ...]()
    loads: dict[int, tuple[str, ...]] = {}
    for index, what in asked.items():
        if isinstance(what, Issue) and what.transfer.queue is Queue.USE:
            instruction = instructions[index]
            joins = statement == (instruction.line, instruction.text)
            if not joins:
                statement, registers = (instruction.line, instruction.text), instruction.operands.results
            loads[index] = registers
            asked[index] = what._replace(registers=registers, joins=joins)
    if not loads:
        return
    watched, moves = _follow(code, {name for names in loads.values() for name in names})
    begins = min(flow.position[_outermost_start(code, index)] for index in loads)
    names_in = _VALUE.findall
    for block in flow.order:
        start, stop = code.function.blocks[block].start, code.function.blocks[block].stop
        if start == stop or flow.position[stop - 1] < begins:
            continue
        used: set[str] = set()  # since they were last filled: a further use completes nothing
        phis: list[tuple[str, tuple[str, ...]]] = []
        for index in range(start, stop):
            instruction = instructions[index]
            names = names_in(instruction.text)
            if watched.isdisjoint(names):
                continue
            move, fills = moves.get(index), loads.get(index, ())
            if move is None:
                reads = watched.intersection(names).difference(used, fills)
            else:
                handed = {name for target, sources in move.pairs for name in (target, *sources)}
                reads = watched.intersection(names).difference(used, handed)
            if reads:
                yield index, Reads(frozenset(reads))
                used |= reads
            if move is None:
                used.difference_update(fills)
                continue
            used.difference_update(target for target, _ in move.pairs)
            if instruction.opcode == "phi":
                phis += move.pairs
            else:
                yield index, move
        if phis:
            yield start, Moves(tuple(phis))


def _follow(code: Code, filled: set[str]) -> tuple[set[str], dict[int, Moves]]:
    """All names that the values of some registers take, and the moves that give them."""
    instructions = code.function.instructions
    mentions: dict[str, list[int]] = {}
    for index, instruction in enumerate(instructions):
        if instruction.kind is EventKind.MOVE and _RENAMES.match(instruction.opcode):
            for name in _VALUE.findall(instruction.text):
                mentions.setdefault(name, []).append(index)
    handed: dict[str, list[Flow]] = {}
    for flow in code.function.flows:
        handed.setdefault(flow.source, []).append(flow)
    watched, pending = set(filled), list(filled)
    moved: dict[int, Moves] = {}
    while pending:
        name = pending.pop()
        targets: list[str] = []
        for index in mentions.get(name, ()):
            if index not in moved:
                results, reads = instructions[index].operands
                moved[index] = Moves(
                    tuple((result, reads) for result in results), instructions[index].guard is None
                )
            if any(name in sources for _, sources in moved[index].pairs):
                targets += [target for target, _ in moved[index].pairs]
        targets += [flow.target for flow in handed.get(name, ())]
        new = [target for target in targets if target not in watched]
        watched.update(new)
        pending += new
    for flow in code.function.flows:
        if flow.source in watched or flow.target in watched:
            earlier = moved[flow.at].pairs if flow.at in moved else ()
            moved[flow.at] = Moves((*earlier, (flow.target, (flow.source,))))
    return watched, moved


def _outermost_start(code: Code, index: int) -> int:
    """The first instruction of the outermost loop around an instruction, or of its block."""
    flow = code.flow
    block, loop = flow.block_of[index], flow.loop_at(index)
    while loop is not None:
        block, loop = flow.loops[loop].header, flow.loops[loop].parent
    return code.function.blocks[block].start
