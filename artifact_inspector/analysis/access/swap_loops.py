"""Compare-and-swap loops: atomics that the hardware lacks, as a load, an operation and a compare-and-swap that repeats.

The loop repeats until no other thread changed the word between its load and its swap. A lock that waits for one fixed
value is no such loop: what it expects comes neither from memory nor from its last try.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, EventKind, Trait


class SwapLoop(NamedTuple):
    """One compare-and-swap loop."""

    loop: int
    """Its loop in the control flow."""
    swap: int
    """Its compare-and-swap."""
    loads: frozenset[int]
    """Loads of the word that it swaps: the one before the loop, and those in it."""


def find_swap_loops(code: FunctionCode) -> tuple[SwapLoop, ...]:
    """The compare-and-swap loops of a function, in text order."""
    loops = [(loop, swap) for swap in _find_swaps(code) if (loop := code.flow.loop_at(swap)) is not None]
    if not loops:
        return ()
    predecessors = group_by_key((successor, block.index) for block in code.blocks for successor in block.successors)
    searches = [_SwapSearch(code, loop, swap, predecessors) for loop, swap in loops]
    return tuple(SwapLoop(search.loop, search.swap, frozenset(search.loads)) for search in searches if search.repeats)


def find_swap_chains(codes: Iterable[FunctionCode]) -> set[Chain]:
    """Source locations of compare-and-swaps."""
    return {chain for code in codes for chain in code.chains_of(_find_swaps(code))}


def is_added_loop(code: FunctionCode, region: Region, swap_chains: set[Chain]) -> bool:
    """Whether a region is a compare-and-swap loop that a compiler made of another atomic.

    Args:
        swap_chains: locations of the compare-and-swaps of the program; those of 16 bits become such loops, too.
    """
    chains = [
        code.chain(swap_loop.swap) for swap_loop in code.compute_once(find_swap_loops) if swap_loop.loop == region.loop
    ]
    program_chains = {code.visible_chain(chain) for chain in swap_chains}
    return region.reference is None and any(chain is None or chain not in program_chains for chain in chains)


def _find_swaps(code: FunctionCode) -> list[int]:
    opcodes = code.opcodes_with(EventKind.ATOMIC, Trait.SWAPS)
    return [index for index in code.of_kind.get(EventKind.ATOMIC, ()) if code.instructions[index].opcode in opcodes]


class _SwapSearch:
    """Follows the operands of a compare-and-swap back to what defines them."""

    def __init__(self, code: FunctionCode, loop: int, swap: int, predecessors: dict[int, list[int]]) -> None:
        self.code, self.loop, self.swap, self.predecessors = code, loop, swap, predecessors
        self.blocks = code.flow.loops[loop].blocks
        self.carried = {name for index in code.indices(self.blocks) for name in code.operands(index).results}
        self.loads: set[int] = set()
        self.repeats = False
        """Whether it expects what it loaded in the loop, or what its last try returned."""
        visited, pending = set[int](), [swap]
        while pending:
            reader = pending.pop()
            new = {index for name in self._followed(reader) for index in self._definitions(name, reader)} - visited
            visited |= new
            pending += [index for index in new if self._is_followed(index)]

    def _followed(self, reader: int) -> list[str]:
        """What an instruction reads, without values that no iteration changes."""
        reads = self.code.operands(reader).reads
        is_any = not self._is_inside(reader) or self.code.has_trait(reader, Trait.PHI)
        return [name for name in reads if is_any or name in self.carried]

    def _is_followed(self, index: int) -> bool:
        """Whether the operands of an instruction matter; notes loads and the compare-and-swap itself."""
        instruction = self.code.instructions[index]
        if index == self.swap:
            self.repeats = True
            return False
        if instruction.kind in LOADS or instruction.kind is EventKind.SHARED_LOAD:
            self.repeats |= self._is_inside(index)
            if instruction.kind in LOADS and self.code.chain(index) in (None, self.code.chain(self.swap)):
                self.loads.add(index)
            return False
        is_copy = instruction.kind is EventKind.MOVE and len(set(self.code.operands(index).reads)) == 1
        return is_copy or self._is_inside(index)

    def _is_inside(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.blocks

    def _definitions(self, name: str, reader: int) -> Iterator[int]:
        """The instructions whose value of a name may reach a reader."""
        pending, visited = [(self.code.flow.block_of[reader], reader)], set[int]()
        while pending:
            block, stop = pending.pop()
            for index in range(stop - 1, self.code.blocks[block].start - 1, -1):
                if name in self.code.operands(index).results:
                    yield index
                    if self.code.instructions[index].guard is None:
                        break
            else:
                preceding = set(self.predecessors.get(block, ())) - visited
                visited |= preceding
                pending += [(previous, self.code.blocks[previous].stop) for previous in preceding]
