"""The loads, stores and copies of a stage: width, condition and cache policy.

Each memory instruction is read once. Counts for a file, a region or a source line are sums over these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain
from artifact_inspector.model import LOADS, EventKind, Language, Module, Transfer
from artifact_inspector.model.condition import ConditionRole, LaneChange, Masking

MOVES = LOADS | {EventKind.GLOBAL_STORE}


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """One load, store or asynchronous copy of global memory."""

    index: int
    """Its instruction."""
    block: int
    """Its basic block."""
    line: int
    """In the file of the stage."""
    kind: EventKind
    transfer: Transfer | None
    """What it moves; None if the format does not show it."""
    predicated: bool
    """A thread may skip it: a guard, a mask operand, or a branch around it."""
    decided_at: int | None
    """The instruction that lets a thread skip it, if it is another one: a branch, or a saved mask."""
    folded: bool
    """Its mask, if any, is part of an operand: a buffer offset that is out of bounds for inactive lanes,
    or a `cp.async` size of 0.
    """
    chain: Chain | None
    """Its source location; None also if it carries the location of another access."""

    @property
    def width(self) -> int | None:
        """Bytes per thread; None for a tile, or if the text does not say."""
        return None if self.transfer is None or self.transfer.of_block else self.transfer.bytes


@dataclass(frozen=True, slots=True)
class Accesses:
    """Counts of memory accesses of a file or region, by width: bytes per thread → instructions."""

    loads: Mapping[int | None, int]
    """Loads into registers; None for an unknown width."""
    copies: Mapping[int | None, int]
    """Copies by each thread from global to shared memory."""
    stores: Mapping[int | None, int]
    tiles: Mapping[int | None, int]
    """Loads and copies of a tile for the whole block (TMA, and all of tensor-level IR): bytes of the tile
    → instructions.
    """
    tile_stores: Mapping[int | None, int]
    predicated: int
    """Accesses that a thread may skip."""
    folded: int
    """Accesses with the mask, if any, in an operand: buffer accesses, `cp.async` with a size."""
    cache: Mapping[str, int]
    """Cache modifiers and eviction policies as written → instructions."""

    @property
    def load_widths(self) -> dict[int, int]:
        """Bytes per thread → number of loads and copies, widest first. Unknown widths are left out."""
        joined = Counter(self.loads) + Counter(self.copies)
        return {width: joined[width] for width in sorted((w for w in joined if w is not None), reverse=True)}

    @property
    def total(self) -> int:
        """Number of accesses."""
        histograms = (self.loads, self.copies, self.stores, self.tiles, self.tile_stores)
        return sum(sum(histogram.values()) for histogram in histograms)


def find_accesses(code: Code, module: Module, language: Language) -> tuple[MemoryAccess, ...]:
    """Every load, store and asynchronous copy of global memory, in text order."""
    function, flow = code.function, code.flow
    found: list[MemoryAccess] = []
    moves = sorted(code.find(MOVES))
    if not moves:
        return ()
    guards = _Guards(code, moves, language)
    for index in moves:
        instruction = function.instructions[index]
        decided_at = guards.decided_at(index)
        masking = language.conditions.masking(instruction)
        has_own = Masking.OWN in masking and instruction.guard not in guards.always
        found.append(
            MemoryAccess(
                index=index,
                block=flow.block_of[index],
                line=instruction.line,
                kind=instruction.kind,
                transfer=language.transfer(instruction, module),
                predicated=decided_at is not None or has_own,
                decided_at=decided_at,
                folded=Masking.FOLDED in masking,
                chain=None if index in function.followers else code.chain(index),
            )
        )
    return tuple(found)


def count_accesses(accesses: Iterable[MemoryAccess]) -> Accesses:
    """The counts of some accesses.

    The accesses of a region are those whose `block` is among the region's blocks.
    """
    loads: Counter[int | None] = Counter()
    copies: Counter[int | None] = Counter()
    stores: Counter[int | None] = Counter()
    tiles: Counter[int | None] = Counter()
    tile_stores: Counter[int | None] = Counter()
    cache: Counter[str] = Counter()
    predicated = folded = 0
    of_kind = {EventKind.GLOBAL_LOAD: loads, EventKind.ASYNC_COPY: copies, EventKind.GLOBAL_STORE: stores}
    for access in accesses:
        is_store = access.kind is EventKind.GLOBAL_STORE
        if access.transfer is not None and access.transfer.of_block:
            (tile_stores if is_store else tiles)[access.transfer.bytes] += 1
        else:
            of_kind[access.kind][access.width] += 1
        predicated += access.predicated
        folded += access.folded
        if access.transfer is not None:
            cache.update(access.transfer.cache)
    return Accesses(
        dict(loads),
        dict(copies),
        dict(stores),
        dict(tiles),
        dict(tile_stores),
        predicated,
        folded,
        dict(cache),
    )


class StageAccesses(NamedTuple):
    """A function at one stage with its accesses."""

    code: Code
    module: Module
    language: Language
    accesses: tuple[MemoryAccess, ...]

    def at(self, access: MemoryAccess) -> list[MemoryAccess]:
        """The accesses at the source location of another stage's access; empty if it is unknown."""
        chain = self.code.visible(access.chain)
        return [other for other in self.accesses if other.chain == chain] if chain else []


class _Guards:
    """The instructions of a function that a thread may skip."""

    def __init__(self, code: Code, moves: Iterable[int], language: Language) -> None:
        self.code = code
        conditions = language.conditions
        instructions, blocks = code.function.instructions, code.function.blocks
        guarded = any(instructions[index].guard is not None for index in moves)
        asked = code.with_opcode(conditions.takes_part) if guarded else ()
        self.always = {
            instructions[index].operands.results[0]
            for index in asked
            if conditions.role(instructions[index]) is ConditionRole.TRUE
        }
        """Predicates that are always true."""
        entries: dict[int, list[int]] = {}
        for block in blocks:
            for successor in block.successors:
                entries.setdefault(successor, []).append(block.index)
        self.entries = entries
        """Block → its predecessors."""
        self.detours = {
            block.index: entries[block.index][0]
            for block in blocks
            if len(block.successors) == 1
            and len(entries.get(block.index, ())) == 1
            and block.successors[0] in blocks[entries[block.index][0]].successors
        }
        """Blocks that a branch may skip → the block with that branch."""
        asked = code.with_opcode(conditions.may_change_lanes) if conditions.has_lanes else ()
        lanes = ((index, conditions.lanes(instructions[index])) for index in asked)
        changes = {index: change for index, change in lanes if change is not None}
        self.changes = list(changes)
        """Instructions that narrow or restore AMD's lane mask (exec)."""
        self.narrowing = {index for index, change in changes.items() if change is LaneChange.NARROWS}
        self.narrowed = self._narrowed_at_entry() if self.changes else {}
        """Block → the instruction that narrowed the lane mask at its start; None if the mask is full."""

    def decided_at(self, index: int) -> int | None:
        """The instruction that disables lanes for another, or the branch around it; None for neither."""
        block = self.code.flow.block_of[index]
        if self.changes:
            place = bisect_left(self.changes, index) - 1
            narrowing = self.narrowed.get(block)
            if place >= 0 and self.changes[place] >= self.code.function.blocks[block].start:
                narrowing = self._narrowing(self.changes[place])
            if narrowing is not None:
                return narrowing
        return self.code.function.blocks[self.detours[block]].stop - 1 if block in self.detours else None

    def _narrowing(self, change: int) -> int | None:
        return change if change in self.narrowing else None

    def _narrowed_at_entry(self) -> dict[int, int | None]:
        """The narrowing instruction in effect at the start of each block.

        LLVM omits branches around short code, so the mask shows more than the blocks.

        **Source**: SILowerControlFlow.cpp, SIOptimizeExecMasking.cpp and SIPreEmitPeephole.cpp.
        """
        blocks = self.code.function.blocks
        entry: dict[int, int | None] = {}
        leaving: dict[int, int | None] = {}
        for block in self.code.flow.order:
            # Back edges are ignored: a loop restores the mask.
            before = [leaving[b] for b in self.entries.get(block, ()) if b in leaving]
            entry[block] = None if not before or None in before else before[0]
            place = bisect_left(self.changes, blocks[block].stop) - 1
            within = place >= 0 and self.changes[place] >= blocks[block].start
            leaving[block] = self._narrowing(self.changes[place]) if within else entry[block]
        return entry
