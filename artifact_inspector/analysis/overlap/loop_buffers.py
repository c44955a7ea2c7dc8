"""The copies, commits and waits of each loop of a stage, and the buffers that the copies write.

Every stage is read in the same way. Buffers exist only in tensor-level IR after the pipeliner (TTGIR).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.overlap.loop_properties import LoopProperties, find_loop_properties
from artifact_inspector.analysis.overlap.waits import WaitFacts, find_wait
from artifact_inspector.model import EventKind, Instruction, Queue, Stage, TensorType, Trait
from artifact_inspector.model.encoding import LayoutKind
from artifact_inspector.model.shared import SharedRole

_WRITES = (EventKind.ASYNC_COPY, EventKind.SHARED_STORE)
_SHARED_KINDS = frozenset({*_WRITES, EventKind.SHARED_LOAD, EventKind.MATRIX, EventKind.WAIT})
_VIEWS = (SharedRole.BUFFER, SharedRole.VIEW)
_COLLECTED_KINDS = _SHARED_KINDS | {EventKind.GLOBAL_LOAD, EventKind.COMMIT}


class Buffer(NamedTuple):
    """An allocation of shared memory that a loop's copies pass through."""

    line: int
    name: str
    """The SSA value."""
    tiles: int
    """Number of tiles: the leading extent if the allocation is indexed, else 1."""
    bytes: int
    """Of one tile, without padding."""


@dataclass(frozen=True, slots=True)
class LoopBuffers:
    """Memory operations of one loop at one stage. Lines are those of the stage's file."""

    properties: LoopProperties | None
    """In tensor-level IR only."""
    buffers: tuple[Buffer, ...]
    copies: tuple[int, ...]
    """Lines of the asynchronous copies in the loop."""
    loads: tuple[int, ...]
    """Lines of the loads into registers in the loop."""
    stores: tuple[int, ...]
    """Lines of the stores to shared memory in the loop."""
    reads: tuple[int, ...]
    """Lines of the loads from shared memory in the loop."""
    matrix: tuple[int, ...]
    """Lines of the matrix operations in the loop."""
    commits: dict[Queue, int]
    """Groups that one pass through the body commits, or barrier phases that it arms."""
    waits: tuple[WaitFacts, ...]
    """In the loop, in execution order."""
    phases: tuple[int, ...]
    """Lines of the waits in the loop for the barriers that its copies arrive at. TTGIR only."""
    copies_before_loop: tuple[int, ...]
    """Lines of the asynchronous copies into its buffers before the loop, or before the loop around it."""
    drain_line: int | None
    """Line of the wait after the loop that leaves nothing in flight."""
    widths: dict[Chain, tuple[int, int]]
    """For loads into registers, by source location: the widest possible access in bits, and its line.

    In TTGIR this is the contiguous data of one thread; at the last stage it is the access itself. LLVM IR gives no
    answer, because AMD's loads are split there and merged later.
    """

    @property
    def queue(self) -> Queue | None:
        """The queue that its loads or copies complete in, from its commits and waits."""
        queues = [q for q in (Queue.GROUP, Queue.PHASE) if self.copies and self.commits.get(q)]
        queues += [wait.queue for wait in self.waits if wait.queue.completes_loads and wait.queue is not Queue.PHASE]
        return next(iter(queues), Queue.PHASE if any(wait.queue is Queue.PHASE for wait in self.waits) else None)

    @property
    def members(self) -> int:
        """Loads and copies that one iteration adds to a queue that counts single operations."""
        return len(self.copies) + (len(self.loads) if self.queue is Queue.LOADS else 0)

    @property
    def wait_lines(self) -> tuple[int, ...]:
        """Lines of the waits for its copies. If the copies arrive at barriers, the waits for these."""
        return self.phases or tuple(wait.line for wait in self.copy_waits)

    @property
    def copy_waits(self) -> tuple[WaitFacts, ...]:
        """The waits for its loads or copies."""
        return tuple(wait for wait in self.waits if wait.queue is self.queue)


def find_loop_buffers(code: FunctionCode, regions: Sequence[Region]) -> dict[str, LoopBuffers]:
    """Memory operations of each loop of a function, by the region's id.

    A loop that only the compiler made (a spin on a barrier) belongs to the loop of the program around it and has no
    entry of its own.
    """
    loops = {region.loop: region for region in regions if region.loop is not None}
    if not loops:
        return {}
    home = {
        loop: next((o for o in code.flow.enclosing(loop) if loops[o].reference is not None), loop) for loop in loops
    }
    events_by_loop = {loop: _LoopEvents() for loop in loops if home[loop] == loop}
    for index in code.find(_COLLECTED_KINDS):
        loop = code.flow.loop_at(index)
        if loop is not None:
            events_by_loop[home[loop]].gather(index, code.instructions[index], code)
    memory = _SharedAllocations(code) if code.module.stage is Stage.TTGIR else None
    tensors = code.module.stage.order <= Stage.TTGIR.order
    drains = _DrainWaits(code)
    described: dict[str, LoopBuffers] = {}
    for loop, events in events_by_loop.items():
        region = loops[loop]
        properties = find_loop_properties(code, region) if tensors else None
        described[region.id] = events.describe(code, loop, properties, memory, drains)
    return described


@dataclass(frozen=True, slots=True)
class _LoopEvents:
    """The relevant instructions of one loop, by index."""

    of_kind: defaultdict[EventKind, list[int]] = field(default_factory=lambda: defaultdict(list))
    commits: Counter[Queue] = field(default_factory=Counter)
    waits: list[tuple[int, WaitFacts]] = field(default_factory=list)

    def gather(self, index: int, instruction: Instruction, code: FunctionCode) -> None:
        if instruction.kind is EventKind.COMMIT:
            queue = code.language.commit(instruction)
            if queue is not None:
                self.commits[queue] += 1
        elif instruction.kind is EventKind.WAIT:
            wait = find_wait(instruction, code)
            if wait is not None:
                self.waits.append((index, wait))
        else:
            self.of_kind[instruction.kind].append(index)

    def describe(
        self,
        code: FunctionCode,
        loop: int,
        properties: LoopProperties | None,
        memory: _SharedAllocations | None,
        drains: _DrainWaits,
    ) -> LoopBuffers:
        instructions, of_kind = code.instructions, self.of_kind
        copies, loads = of_kind[EventKind.ASYNC_COPY], of_kind[EventKind.GLOBAL_LOAD]
        stores, reads = of_kind[EventKind.SHARED_STORE], of_kind[EventKind.SHARED_LOAD]
        matrix = of_kind[EventKind.MATRIX]
        used = {} if memory is None else memory.buffers_of(loop, [*copies, *stores, *reads, *matrix])
        widths: dict[Chain, tuple[int, int]] = {}
        for index in loads if code.module.stage is not Stage.LLIR else ():
            width = _access_width(instructions[index], code)
            chain = code.chains.get(index)
            if width and chain is not None:
                widths[chain] = max(widths.get(chain, (0, 0)), (width, instructions[index].line))

        def lines(indices: list[int]) -> tuple[int, ...]:
            return tuple(instructions[index].line for index in indices)

        return LoopBuffers(
            properties=properties,
            buffers=tuple(used.values()),
            copies=lines(copies),
            loads=lines(loads),
            stores=lines(stores),
            reads=lines(reads),
            matrix=lines(matrix),
            commits=dict(self.commits),
            waits=tuple(wait for _, wait in self.waits),
            phases=() if memory is None else lines(memory.waits_for(copies, [index for index, _ in self.waits])),
            copies_before_loop=() if memory is None else lines(memory.copies_before_loop(loop, used.keys())),
            drain_line=drains.line_after_loop(loop),
            widths=widths,
        )


class _DrainWaits:
    """The copies of a function and the waits that leave nothing in flight, in execution order."""

    def __init__(self, code: FunctionCode) -> None:
        self._code, flow = code, code.flow
        self._copies = code.find(frozenset({EventKind.ASYNC_COPY}))
        self._waits: defaultdict[int | None, list[tuple[int, int]]] = defaultdict(list)
        """Position and line of each wait of depth 0, by the innermost loop that contains it."""
        for index in code.find(frozenset({EventKind.WAIT})):
            wait = find_wait(code.instructions[index], code)
            if wait is not None and wait.queue.completes_loads and wait.depth == 0:
                self._waits[flow.loop_at(index)].append((flow.position[index], wait.line))

    def line_after_loop(self, number: int) -> int | None:
        """Line of the first wait of depth 0 after a loop, before any copy for another loop."""
        flow = self._code.flow
        loop = flow.loops[number]
        start = self._code.start_position(loop.blocks)
        waits = self._waits[loop.parent]  # waits inside a later loop belong to that loop
        first = bisect_left(waits, (start, 0))
        if first == len(waits):
            return None
        position, line = waits[first]
        between = (copy for copy in self._copies if start <= flow.position[copy] < position)
        return line if all(flow.block_of[copy] in loop.blocks for copy in between) else None


def _access_width(load: Instruction, code: FunctionCode) -> int:
    """Bits of the widest access that a load can be; 0 if unknown."""
    if code.module.stage is not Stage.TTGIR:
        moved = code.language.transfer(load, code.module)
        return 0 if moved is None or moved.is_per_block or moved.bytes is None else 8 * moved.bytes
    for tensor_type in code.language.tensor_types(load, code.module):
        chain = () if tensor_type.encoding is None or tensor_type.is_memory else tensor_type.encoding.chain
        blocked = next((layout for layout in chain if layout.kind is LayoutKind.BLOCKED), None)
        if blocked is not None and blocked.size_per_thread and blocked.order:
            fastest = blocked.order[0]
            return blocked.size_per_thread[fastest] * tensor_type.bits if fastest < len(blocked.size_per_thread) else 0
    return 0


class _SharedAllocations:
    """The shared-memory allocations of a function, and the ones that each operation uses."""

    def __init__(self, code: FunctionCode) -> None:
        self.code = code
        self.tiles: dict[int, TensorType] = {}
        """Allocated type by the allocation's instruction. Barriers are left out."""
        self.names: dict[int, str] = {}
        self.indexed: set[int] = set()
        """Allocations of several tiles that are selected by an index."""
        self.touched: dict[int, tuple[int, ...]] = {}
        """The allocations that a copy, a matrix operation, or a load or store of shared memory uses."""
        self.signals: dict[int, int] = {}
        """The allocation of the barrier that a copy arrives at or a wait waits for."""
        self._values = code.values
        self._root: dict[int, int] = {}
        """Value → the allocation that it refers to."""
        self._collect()

    def buffers_of(self, loop: int, indices: Sequence[int]) -> dict[int, Buffer]:
        """The allocations that the data of a loop passes through.

        These are the allocations that the loop copies or stores to, and those of several tiles of which it reads one.
        If there are none, those that it allocates in each iteration. A tile that was written before the loop and is
        only read in it (attention's queries) is excluded, and so is one that holds a result of the loop.
        """
        instructions, flow = self.code.instructions, self.code.flow
        uses = [(index, root) for index in indices for root in self.touched.get(index, ())]
        roots = {root for index, root in uses if instructions[index].kind in _WRITES or root in self.indexed}
        roots = roots or {root for _, root in uses if flow.encloses(loop, flow.loop_at(root))}
        buffers: dict[int, Buffer] = {}
        for root in sorted(roots):
            tile = self.tiles[root]
            count = tile.shape[0] if root in self.indexed else 1
            buffers[root] = Buffer(instructions[root].line, self.names[root], count, tile.size // max(1, count))
        return buffers

    def waits_for(self, copies: Sequence[int], waits: Sequence[int]) -> list[int]:
        """The waits that wait for a barrier of one of the copies."""
        barriers = {self.signals[index] for index in copies if index in self.signals}
        return [index for index in waits if self.signals.get(index) in barriers]

    def copies_before_loop(self, loop: int, roots: Set[int]) -> list[int]:
        """Asynchronous copies into some allocations directly before a loop.

        If there are none, those before the loop around it: its last part fills the buffers for the next iteration (a
        persistent kernel's tile loop).
        """
        instructions, flow = self.code.instructions, self.code.flow
        copies = [
            index
            for index, touched in self.touched.items()
            if instructions[index].kind is EventKind.ASYNC_COPY and not roots.isdisjoint(touched)
        ]
        for inner in flow.enclosing(loop):
            start, parent = self.code.blocks[flow.loops[inner].header].start, flow.loops[inner].parent
            front = [index for index in copies if index < start and flow.loop_at(index) == parent]
            if front:
                return front
        return []

    def _collect(self) -> None:
        for index, instruction in enumerate(self.code.instructions):
            role = self.code.language.shared_use(instruction).role
            if role is SharedRole.ALLOCATION:
                if not self.code.has_trait(index, Trait.AT_BARRIER):
                    self._allocate(index, instruction)
            elif instruction.kind in _SHARED_KINDS:
                self._touch(index, instruction, role)
            elif instruction.kind is EventKind.MOVE and role in _VIEWS:
                self._view(index, instruction, role)
            for source, target, _, back in self._values.flows[index]:
                if source in self._root and not back:
                    self._root[target] = self._root[source]

    def _allocate(self, index: int, instruction: Instruction) -> None:
        types = self.code.language.tensor_types(instruction, self.code.module)
        results = self._values.results[index]
        if not results or not types:
            return
        self._root[results[0]] = index
        if types[-1].bits != 64 or types[-1].shape[-1] != 1:  # otherwise it holds barriers
            self.tiles[index] = types[-1]
            self.names[index] = instruction.operands.results[0]

    def _touch(self, index: int, instruction: Instruction, role: SharedRole) -> None:
        reads, results = self._values.reads[index].values(), self._values.results[index]
        all_roots = dict.fromkeys(self._root[value] for value in reads if value in self._root)
        roots = tuple(root for root in all_roots if root in self.tiles)
        if instruction.kind in (EventKind.ASYNC_COPY, EventKind.WAIT):
            self.signals.update((index, root) for root in all_roots if root not in self.tiles)
        if not roots or instruction.kind is EventKind.WAIT:
            return
        # Only a matrix operation uses several.
        self.touched[index] = roots if instruction.kind is EventKind.MATRIX else roots[:1]
        if role in _VIEWS and results:
            self._root[results[0]] = roots[0]  # until 2.3 the buffer is a value
            self.indexed.add(roots[0])

    def _view(self, index: int, instruction: Instruction, role: SharedRole) -> None:
        reads, results = self._values.reads[index].values(), self._values.results[index]
        root = next((self._root[value] for value in reads if value in self._root), None)
        if root is None or not results:
            return
        self._root[results[0]] = root
        types = self.code.language.tensor_types(instruction, self.code.module) if role is SharedRole.BUFFER else ()
        if types and root in self.tiles and len(types[-1].shape) < len(self.tiles[root].shape):
            self.indexed.add(root)
