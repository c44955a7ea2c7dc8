"""The loads, stores and copies of a stage: width, condition and cache policy.

Each memory instruction is read once. Counts for a file, a region or a source line are sums over these.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.access.swap_loops import find_swap_loops
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.model import LOADS, AccessOperands, EventKind, Transfer
from artifact_inspector.model.condition import ConditionRole, LaneChange, Masking

MEMORY_KINDS = LOADS | {EventKind.GLOBAL_STORE}


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
    is_predicated: bool
    """A thread may skip it: a guard, a mask operand, or a branch around it."""
    guard_index: int | None
    """The instruction that lets a thread skip it, if it is another one: a branch, or a saved mask."""
    is_mask_folded: bool
    """Its mask, if any, is part of an operand: a buffer offset that is out of bounds for inactive lanes, or a
    `cp.async` size of 0.
    """
    chain: Chain | None
    """Its source location; None also if it carries the location of another access."""

    @property
    def width(self) -> int | None:
        """Bytes per thread; None for a tile, or if the text does not say."""
        return None if self.transfer is None or self.transfer.is_per_block else self.transfer.bytes


@dataclass(frozen=True, slots=True)
class AccessCounts:
    """Counts of memory accesses of a file or region, by width: bytes per thread → instructions."""

    loads: Mapping[int | None, int]
    """Loads into registers; None for an unknown width."""
    copies: Mapping[int | None, int]
    """Copies by each thread from global to shared memory."""
    stores: Mapping[int | None, int]
    tiles: Mapping[int | None, int]
    """Loads and copies of a tile for the whole block (TMA, and all of tensor-level IR): bytes of the tile →
    instructions.
    """
    tile_stores: Mapping[int | None, int]
    predicated: int
    """Accesses that a thread may skip."""
    folded_masks: int
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


def find_accesses(code: FunctionCode) -> tuple[MemoryAccess, ...]:
    """Every load, store and asynchronous copy of global memory, in text order.

    Without the loads of compare-and-swap loops: they belong to the atomic.
    """
    function, flow = code.function, code.flow
    accesses: list[MemoryAccess] = []
    of_atomics = {load for loop in code.compute_once(find_swap_loops) for load in loop.loads}
    access_indices = sorted(set(code.find(MEMORY_KINDS)) - of_atomics)
    if not access_indices:
        return ()
    guards = _GuardAnalysis(code, access_indices)
    for index in access_indices:
        instruction = function.instructions[index]
        guard_index = guards.guard_of(index)
        masking = code.language.conditions.masking(instruction)
        has_own = Masking.DIRECT in masking and instruction.guard not in guards.always_true
        accesses.append(
            MemoryAccess(
                index=index,
                block=flow.block_of[index],
                line=instruction.line,
                kind=instruction.kind,
                transfer=code.language.transfer(instruction, code.module),
                is_predicated=guard_index is not None or has_own,
                guard_index=guard_index,
                is_mask_folded=Masking.FOLDED in masking,
                chain=None if index in function.clause_followers else code.chain(index),
            )
        )
    return tuple(accesses)


def count_accesses(accesses: Iterable[MemoryAccess]) -> AccessCounts:
    """The counts of some accesses: for a region, of those whose `block` is among the region's blocks."""
    loads, copies, stores, tiles, tile_stores = (Counter[int | None]() for _ in range(5))
    cache: Counter[str] = Counter()
    predicated = folded = 0
    of_kind = {EventKind.GLOBAL_LOAD: loads, EventKind.ASYNC_COPY: copies, EventKind.GLOBAL_STORE: stores}
    for access in accesses:
        is_store = access.kind is EventKind.GLOBAL_STORE
        if access.transfer is not None and access.transfer.is_per_block:
            (tile_stores if is_store else tiles)[access.transfer.bytes] += 1
        else:
            of_kind[access.kind][access.width] += 1
        predicated += access.is_predicated
        folded += access.is_mask_folded
        if access.transfer is not None:
            cache.update(access.transfer.cache)
    return AccessCounts(
        dict(loads), dict(copies), dict(stores), dict(tiles), dict(tile_stores), predicated, folded, dict(cache)
    )


class StageAccesses(NamedTuple):
    """A function at one stage with its accesses."""

    code: FunctionCode
    accesses: tuple[MemoryAccess, ...]

    def operand_roles(self, access: MemoryAccess) -> AccessOperands | None:
        """The roles of an access's operands; None below tensor-level IR."""
        read_roles = self.code.language.access_operands
        return None if read_roles is None else read_roles(self.code.instructions[access.index])

    def accesses_at(self, access: MemoryAccess) -> list[MemoryAccess]:
        """The accesses at the source location of another stage's access; empty if it is unknown."""
        chain = self.code.visible_chain(access.chain)
        return [other for other in self.accesses if other.chain == chain] if chain else []


class _GuardAnalysis:
    """The instructions of a function that a thread may skip."""

    def __init__(self, code: FunctionCode, moves: Iterable[int]) -> None:
        self.code, conditions = code, code.language.conditions
        instructions, blocks = code.instructions, code.blocks
        guarded = any(instructions[index].guard is not None for index in moves)
        condition_indices = code.indices_with_opcode(conditions.is_relevant) if guarded else ()
        self.always_true = {
            instructions[index].operands.results[0]
            for index in condition_indices
            if conditions.role(instructions[index]) is ConditionRole.TRUE
        }
        """Predicates that are always true."""
        entries = group_by_key((successor, block.index) for block in blocks for successor in block.successors)
        self.predecessors = entries
        self.skippable_blocks = {
            block.index: entries[block.index][0]
            for block in blocks
            if len(block.successors) == 1
            and len(entries.get(block.index, ())) == 1
            and block.successors[0] in blocks[entries[block.index][0]].successors
        }
        """Blocks that a branch may skip → the block with that branch."""
        condition_indices = code.indices_with_opcode(conditions.may_change_lanes) if conditions.has_lane_mask else ()
        changes = {index: conditions.lane_change(instructions[index]) for index in condition_indices}
        self.lane_changes = [index for index, change in changes.items() if change is not None]
        """Instructions that narrow or restore AMD's lane mask (exec)."""
        self.narrowing_changes = {index for index, change in changes.items() if change is LaneChange.NARROWS}
        self.narrowing_at_entry = self._narrowed_at_entry() if self.lane_changes else {}
        """Block → the instruction that narrowed the lane mask at its start; None if the mask is full."""

    def guard_of(self, index: int) -> int | None:
        """The instruction that disables lanes for another, or the branch around it; None for neither."""
        block = self.code.flow.block_of[index]
        if self.lane_changes:
            narrowing = self._last_change(block, index, self.narrowing_at_entry.get(block))
            if narrowing is not None:
                return narrowing
        return self.code.blocks[self.skippable_blocks[block]].stop - 1 if block in self.skippable_blocks else None

    def _last_change(self, block: int, stop: int, at_entry: int | None) -> int | None:
        """The narrowing instruction in effect at an instruction of a block."""
        number = bisect_left(self.lane_changes, stop) - 1
        if number < 0 or self.lane_changes[number] < self.code.blocks[block].start:
            return at_entry
        return self.lane_changes[number] if self.lane_changes[number] in self.narrowing_changes else None

    def _narrowed_at_entry(self) -> dict[int, int | None]:
        """The narrowing instruction in effect at the start of each block.

        LLVM omits branches around short code, so the mask shows more than the blocks.

        **Source**: SILowerControlFlow.cpp, SIOptimizeExecMasking.cpp and SIPreEmitPeephole.cpp.
        """
        entry: dict[int, int | None] = {}
        leaving: dict[int, int | None] = {}
        for block in self.code.flow.order:
            # Back edges are ignored: a loop restores the mask.
            incoming = [leaving[b] for b in self.predecessors.get(block, ()) if b in leaving]
            entry[block] = None if not incoming or None in incoming else incoming[0]
            leaving[block] = self._last_change(block, self.code.blocks[block].stop, entry[block])
        return entry
