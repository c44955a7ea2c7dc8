"""Loads that may read past an end that the program checks elsewhere.

A mask shows where a tile may pass the end: `offs < n`, in the mask of a load or store. A load addressed by the same
`offs` whose mask does not check it reads past the end. Cases that cannot be proven are not reported: a load on only
some paths (a kernel that handles the last tile separately), an end that is a multiple of the tile, and an end that
another loop sets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from artifact_inspector.analysis.access.accesses import MemoryAccess, StageAccesses
from artifact_inspector.analysis.access.axis_analysis import AxisAnalysis
from artifact_inspector.analysis.flow.dominators import Dominators
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.model import LOADS, SourceLine
from artifact_inspector.model.axes import AxisRole

_TERMS = frozenset({AxisRole.ADD_POINTER, AxisRole.ADD, AxisRole.SUBTRACT, AxisRole.MULTIPLY, AxisRole.SHIFT_LEFT})


class MissingMask(NamedTuple):
    """A load without a mask for an end that a mask in the same function checks."""

    line: int
    """In the first stage."""
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    name: str
    """Name of the loaded value in the IR, if it has one."""
    ends: tuple[str, ...]
    """For each end that its tile may pass, the arguments that define it."""
    masked: bool
    """It has a mask that checks something else."""
    compares: tuple[int, ...]
    """Lines of the compares that bound the same indices elsewhere."""


class _Bound(NamedTuple):
    """`index < end`, in the mask of an access."""

    offsets: int
    """The value that is compared."""
    end: int
    compare_index: int
    """The compare."""
    block: int
    """Of the access."""


def find_missing_masks(first: StageAccesses) -> tuple[MissingMask, ...]:
    """The loads of a function that may read past an end, in the order of the first stage."""
    return tuple(_MissingMaskSearch(first).run())


class _MissingMaskSearch:
    def __init__(self, first: StageAccesses) -> None:
        self._first = first
        self._code = first.code
        function = first.code.function
        self._analysis = AxisAnalysis(function, first.module, first.language, function.divisibility, first.code.values)

    def run(self) -> Iterator[MissingMask]:
        masks = {access.index: mask for access in self._first.accesses if (mask := self._mask(access))}
        masked = [access for access in self._first.accesses if access.index in masks]
        bounds = [bound for a in masked for bound in self._bounds(masks[a.index], a.block)]
        if not bounds:
            return
        for access in self._first.accesses:
            if access.kind not in LOADS:
                continue
            terms = self._terms(access)
            mask_values = self._dependencies(masks[access.index]) if access.index in masks else set()
            checked_arguments = {name for value in mask_values if (name := self._analysis.argument(value)) is not None}
            missing_bounds = {
                bound.compare_index: bound
                for bound in bounds
                if bound.offsets in terms
                and bound.offsets not in mask_values
                # The same end may be checked by an identical index that was computed a second time.
                and not checked_arguments.issuperset(self._arguments(bound.end))
                and self._applies_to(bound, access)
            }
            if missing_bounds:
                yield self._describe(access, missing_bounds.values(), is_masked=access.index in masks)

    def _describe(self, access: MemoryAccess, missing_bounds: Iterable[_Bound], *, is_masked: bool) -> MissingMask:
        instructions = self._code.instructions
        instruction = instructions[access.index]
        return MissingMask(
            access.line,
            source_of(instruction.location),
            self._first.language.source_name(instruction),
            tuple(dict.fromkeys(" and ".join(self._arguments(x.end)).replace("%", "") for x in missing_bounds)),
            is_masked,
            tuple(instructions[bound.compare_index].line for bound in missing_bounds),
        )

    def _mask(self, access: MemoryAccess) -> int | None:
        instruction = self._code.instructions[access.index]
        roles = (
            None if self._first.language.access_operands is None else self._first.language.access_operands(instruction)
        )
        return self._analysis.value_read(access.index, roles.mask[0]) if roles is not None and roles.mask else None

    # -- ends ------------------------------------------------------------------------

    def _bounds(self, mask: int, block: int) -> Iterator[_Bound]:
        """The compares in a mask that require an index to be below an end."""
        pending, visited = [mask], {mask}
        while pending:
            value = pending.pop()
            operation, at = self._analysis.operation(value), self._code.values.definitions.get(value)
            if at is not None and operation is not None and operation.role is AxisRole.COMPARE:
                sides = self._analysis.operands(at)
                if operation.holds_below is not None and len(sides) == 2:
                    index, end = (
                        self._broadcast_source(side) for side in (sides if operation.holds_below else sides[::-1])
                    )
                    if self._is_tile(index) and self._is_end(index, end):
                        yield _Bound(index, end, at, block)
                continue
            combines = operation is None or operation.role is AxisRole.LOGIC
            if not combines and self._analysis.sources(value, None) is None:
                continue
            for source in self._analysis.inputs(value):
                if source not in visited:
                    visited.add(source)
                    pending.append(source)

    def _is_tile(self, value: int) -> bool:
        axes = self._analysis.axes(value)
        return axes is not None and any(run > 1 for run in axes.contiguity)

    def _is_end(self, index: int, end: int) -> bool:
        """True for a uniform value passed to the program that may split a tile."""
        axes, tile = self._analysis.axes(end), self._analysis.axes(index)
        if axes is None or tile is None or axes.value is not None or any(run > 1 for run in axes.contiguity):
            return False
        return bool(self._arguments(end)) and axes.divisibility[0] % max(tile.contiguity) != 0

    def _arguments(self, value: int) -> list[str]:
        """The arguments that a value depends on."""
        names: dict[str, None] = {}
        pending, visited = [value], {value}
        while pending:
            current = pending.pop()
            name = self._analysis.argument(current)
            if name is not None:
                names[name] = None
            for source in self._analysis.inputs(current):
                if source not in visited:
                    visited.add(source)
                    pending.append(source)
        return list(names)

    def _broadcast_source(self, value: int) -> int:
        while sources := self._analysis.sources(value, None):
            value = sources[0][0]
        return value

    # -- loads ------------------------------------------------------------------------

    def _terms(self, access: MemoryAccess) -> set[int]:
        """The values that are added up to the address of a load, times any stride."""
        instruction = self._code.instructions[access.index]
        roles = (
            None if self._first.language.access_operands is None else self._first.language.access_operands(instruction)
        )
        if roles is None or len(roles.address) != 1:
            return set()
        pointer = self._analysis.value_read(access.index, roles.address[0])
        pending = [] if pointer is None else [pointer]
        visited = set(pending)
        while pending:
            value = pending.pop()
            operation = self._analysis.operation(value)
            is_sum = operation is None or operation.role in _TERMS
            if not is_sum and self._analysis.sources(value, None) is None:
                continue
            for source in self._analysis.inputs(value):
                if source not in visited:
                    visited.add(source)
                    pending.append(source)
        return visited

    def _dependencies(self, value: int) -> set[int]:
        pending, visited = [value], {value}
        while pending:
            for source in self._analysis.inputs(pending.pop()):
                if source not in visited:
                    visited.add(source)
                    pending.append(source)
        return visited

    def _applies_to(self, bound: _Bound, access: MemoryAccess) -> bool:
        """True if the end also applies to the load, and the load runs whenever the bounded access does."""
        flow = self._code.flow
        definition = self._code.values.definitions.get(bound.end)
        if definition is not None and not flow.encloses(flow.loop_at(definition), flow.loop_of[access.block]):
            return False
        return self._runs_whenever(access.block, bound.block)

    def _runs_whenever(self, load: int, other_block: int) -> bool:
        flow, dominators = self._code.flow, self._code.compute_once(_dominators)
        loop = flow.loop_of[load]
        while not flow.encloses(loop, flow.loop_of[other_block]):
            assert loop is not None
            if not all(dominators.dominates(load, latch) for latch in flow.loops[loop].latches):
                return False  # a branch in the loop skips it
            load, loop = flow.loops[loop].header, flow.loops[loop].parent
        return dominators.dominates(load, other_block) or self._is_always(load, loop)

    def _is_always(self, block: int, loop: int | None) -> bool:
        """True for a block on every path through its loop or function."""
        flow, blocks = self._code.flow, self._code.blocks
        dominators = self._code.compute_once(_dominators)
        if loop is None:
            ends = tuple(
                basic_block.index
                for basic_block in blocks
                if not basic_block.successors and basic_block.index in dominators
            )
        else:
            ends = flow.loops[loop].latches
        return all(dominators.dominates(block, end) for end in ends)


def _dominators(code: FunctionCode) -> Dominators:
    return Dominators([block.successors for block in code.blocks])
