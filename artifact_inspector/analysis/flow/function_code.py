"""A function prepared for analysis: control flow, indices by kind, block and source location."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cached_property
from operator import attrgetter
from typing import Any, TypeVar

from artifact_inspector.analysis.flow.control_flow import find_control_flow
from artifact_inspector.analysis.flow.source_locations import Chain, chain_of
from artifact_inspector.analysis.flow.ssa_values import SsaValues, number_values
from artifact_inspector.model import COMPUTES, LOADS, EventKind, Function, LanguageSemantics, Module, Operands, Trait

Result = TypeVar("Result")

LOCATED_KINDS = LOADS | COMPUTES | {EventKind.SCALAR_LOAD, EventKind.BRANCH}
"""Kinds whose locations identify a region. Locations of integer operations are rarely needed."""
_INTEGERS = frozenset({EventKind.INTEGER})
_SCALAR_LOADS = frozenset({EventKind.SCALAR_LOAD})
_LOCATION, _OPCODE, _KIND = attrgetter("location"), attrgetter("opcode"), attrgetter("kind")


class FunctionCode:
    """A function with its control flow and the source locations of its loads and computes.

    Lists are computed on first use and cached, because several analyses use them.
    """

    def __init__(self, function: Function, module: Module, language: LanguageSemantics) -> None:
        """Prepare a function of a module in some language."""
        self.module = module
        self.function, self.instructions, self.blocks = function, function.instructions, function.blocks
        self.flow = flow = find_control_flow(function)
        self.language = language
        self.rank = {block: location_id for location_id, block in enumerate(flow.order)}
        """Position of every block in execution order."""
        self._indices: dict[frozenset[int], list[int]] = {}
        self._of_kinds: dict[frozenset[EventKind], dict[int, list[int]]] = {}
        self._whole_function: dict[frozenset[EventKind], list[int]] = {}
        by_kind: defaultdict[EventKind, list[int]] = defaultdict(list)
        self.kinds = list(map(_KIND, function.instructions))
        for index, kind in enumerate(self.kinds):
            by_kind[kind].append(index)
        self.of_kind = dict(by_kind)
        """Instructions by kind, in text order."""
        self._opcodes_by_trait: dict[tuple[EventKind, Trait], frozenset[str]] = {}
        self._results: dict[Callable[[FunctionCode], Any], Any] = {}
        self._operands: dict[int, Operands] = {}
        self._chains: dict[int, Chain | None] = {}
        """By the identity of a location, which the instructions of a line share."""
        self.chains: dict[int, Chain] = {}
        """Source location of every load, compute and branch that has one."""
        chain_cache = self._chains
        for index in self.find(LOCATED_KINDS):
            location_id = id(function.instructions[index].location)
            chain = chain_cache[location_id] if location_id in chain_cache else self.chain(index)
            if chain is not None:
                self.chains[index] = chain

    def operands(self, index: int) -> Operands:
        """Results and reads of an instruction, decoded once."""
        cached = self._operands.get(index)
        if cached is None:
            cached = self._operands[index] = self.instructions[index].operands
        return cached

    def mentions(self, index: int) -> list[str]:
        """The values that an instruction names. Much cheaper than its operands."""
        return self.language.named_values(self.instructions[index])

    def definitions(self, name: str) -> list[int]:
        """The instructions that define a value or register, in text order."""
        return [index for index in self._indices_by_first_name.get(name, ()) if name in self.operands(index).results]

    @cached_property
    def _indices_by_first_name(self) -> dict[str, list[int]]:
        """Instructions by the first name in them, which is a result if they have one."""
        indices_by_name: dict[str, list[int]] = {}
        for index in range(len(self.instructions)):
            names = self.mentions(index)
            if names:
                indices_by_name.setdefault(names[0], []).append(index)
        return indices_by_name

    def indices_with_opcode(self, matches: Callable[[str], bool]) -> list[int]:
        """Instructions whose opcodes satisfy a predicate, in text order. Each opcode is tested once."""
        opcodes = set(filter(matches, self._opcodes))
        if not opcodes:
            return []
        return [index for index, instruction in enumerate(self.instructions) if instruction.opcode in opcodes]

    @cached_property
    def _opcodes(self) -> set[str]:
        return set(map(_OPCODE, self.instructions))

    def opcodes_with(self, kind: EventKind, trait: Trait) -> frozenset[str]:
        """Opcodes of the instructions of a kind that have a trait."""
        matching_opcodes = self._opcodes_by_trait.get((kind, trait))
        if matching_opcodes is None:
            indices = self.of_kind.get(kind, ())
            opcodes = set(map(_OPCODE, map(self.instructions.__getitem__, indices)))
            traits = self.language.traits
            matching_opcodes = frozenset(opcode for opcode in opcodes if trait in traits(opcode))
            self._opcodes_by_trait[kind, trait] = matching_opcodes
        return matching_opcodes

    def has_trait(self, index: int, trait: Trait) -> bool:
        """Whether an instruction has a trait, according to the format."""
        return trait in self.language.traits(self.instructions[index].opcode)

    def compute_once(self, find: Callable[[FunctionCode], Result]) -> Result:
        """The result of an analysis of this code, computed once."""
        if find not in self._results:
            self._results[find] = find(self)
        result: Result = self._results[find]
        return result

    def indices(self, blocks: frozenset[int]) -> list[int]:
        """Instructions of some blocks, in execution order."""
        cached_indices = self._indices.get(blocks)
        if cached_indices is None:
            cached_indices = self._indices[blocks] = [
                index
                for block in sorted(blocks, key=self.rank.__getitem__)
                for index in range(self.blocks[block].start, self.blocks[block].stop)
            ]
        return cached_indices

    def start_position(self, blocks: frozenset[int]) -> int:
        """Position in execution order of the first instruction of some blocks; 0 if they are empty."""
        indices = self.indices(blocks)
        return self.flow.position[indices[0]] if indices else 0

    def find(self, kinds: frozenset[EventKind], blocks: frozenset[int] | None = None) -> list[int]:
        """Instructions of some kinds, of the whole function or of some blocks, in execution order."""
        indices_by_block = self._of_kinds.get(kinds)
        if indices_by_block is None:
            indices_by_block = self._of_kinds[kinds] = self._by_block(kinds)
        if blocks is None:
            whole_function = self._whole_function.get(kinds)
            if whole_function is None:
                whole_function = list(itertools.chain.from_iterable(indices_by_block.values()))
                self._whole_function[kinds] = whole_function
            return whole_function.copy()
        if len(blocks) < len(indices_by_block):
            sorted_blocks = sorted((block for block in blocks if block in indices_by_block), key=self.rank.__getitem__)
            return [index for block in sorted_blocks for index in indices_by_block[block]]
        return [
            index for block, block_indices in indices_by_block.items() if block in blocks for index in block_indices
        ]

    def _by_block(self, kinds: frozenset[EventKind]) -> dict[int, list[int]]:
        """The blocks that contain instructions of some kinds, in execution order, with these."""
        indices = sorted(itertools.chain.from_iterable(self.of_kind.get(kind, ()) for kind in kinds))
        indices_by_block: dict[int, list[int]] = {}
        for number in self.flow.order if indices else ():
            block = self.blocks[number]
            first = bisect_left(indices, block.start)
            if first < len(indices) and indices[first] < block.stop:
                indices_by_block[number] = indices[first : bisect_left(indices, block.stop, first)]
        return indices_by_block

    @property
    def has_matrix(self) -> bool:
        """True if the function contains a matrix operation."""
        return EventKind.MATRIX in self.of_kind

    @cached_property
    def values(self) -> SsaValues:
        """The values of a function in SSA form by number."""
        return number_values(self.function, self.language.traits)

    @cached_property
    def loads_at(self) -> dict[Chain, list[int]]:
        """Loads and copies by source location, in execution order."""
        return self._at(LOADS)

    @cached_property
    def scalar_loads_at(self) -> dict[Chain, list[int]]:
        """Loads through the scalar cache, by source location."""
        return self._at(_SCALAR_LOADS)

    @cached_property
    def computes_at(self) -> dict[Chain, list[int]]:
        """Matrix and float operations, by source location. Not the maximum of a value and itself, which is a copy."""
        computes = self._at(COMPUTES)
        if not any(self.opcodes_with(kind, Trait.MAXIMUM) for kind in COMPUTES):
            return computes
        return {chain: [i for i in indices if not self._is_copy(i)] for chain, indices in computes.items()}

    def _is_copy(self, index: int) -> bool:
        reads = self.operands(index).reads if self.has_trait(index, Trait.MAXIMUM) else ()
        half = len(reads) // 2
        return bool(reads) and reads[:half] == reads[half:]

    @cached_property
    def integers_at(self) -> dict[Chain, list[int]]:
        """Integer operations, by source location."""
        return self._at(_INTEGERS)

    def _at(self, kinds: frozenset[EventKind]) -> dict[Chain, list[int]]:
        indices_by_chain: dict[Chain, list[int]] = {}
        indices_by_location: dict[int, list[int]] = {}  # by identity: the hash of a chain takes longer than all else
        instructions = self.instructions
        for index in self.find(kinds):
            location_id = id(instructions[index].location)
            if location_id not in indices_by_location:
                chain = self.chain(index)
                indices_by_location[location_id] = [] if chain is None else indices_by_chain.setdefault(chain, [])
            indices_by_location[location_id].append(index)
        return indices_by_chain

    def chain(self, index: int) -> Chain | None:
        """Source location of an instruction."""
        location = self.instructions[index].location
        chain_cache = self._chains
        if id(location) not in chain_cache:
            chain_cache[id(location)] = chain_of(location)
        return chain_cache[id(location)]

    def chains_of(self, indices: Iterable[int]) -> list[Chain]:
        """Source locations of the instructions that have one."""
        return [chain for index in indices if (chain := self.chain(index)) is not None]

    @cached_property
    def _frames(self) -> tuple[int, bool]:
        """Frames in the longest inline chain, and whether any has a column."""
        instructions, of_kind = self.instructions, self.of_kind
        indices = itertools.chain.from_iterable(of_kind.get(kind, ()) for kind in LOCATED_KINDS | _INTEGERS)
        locations = map(_LOCATION, map(instructions.__getitem__, indices))
        chain_cache, locations_by_id = self._chains, {id(location): location for location in locations}
        chain_cache.update(
            (at, chain_of(location)) for at, location in locations_by_id.items() if at not in chain_cache
        )
        chains = [chain for at in locations_by_id if (chain := chain_cache[at]) is not None]
        return max(map(len, chains), default=0), any(frame[2] for chain in chains for frame in chain)

    @property
    def max_chain_length(self) -> int:
        """Frames in the longest inline chain: 0 without line information."""
        return self._frames[0]

    def visible_chain(self, chain: Chain | None) -> Chain | None:
        """The part of a chain that this stage preserves: PTX keeps one or two frames, SASS no columns."""
        longest, has_columns = self._frames
        if chain is None or has_columns:
            return None if chain is None else chain[:longest]
        return tuple((file, line, 0) for file, line, _ in chain[:longest])

    @cached_property
    def _function_chain(self) -> Chain | None:
        return chain_of(self.function.location)

    def has_no_location(self, chain: Chain | None) -> bool:
        """True for no location, or the function's own line: passes set these if they lose the location."""
        function_chain = self._function_chain
        return chain is None or (
            function_chain is not None and len(chain) == 1 and chain[-1][:2] == function_chain[-1][:2]
        )
