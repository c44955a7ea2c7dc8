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
from artifact_inspector.analysis.flow.traversal import reachable
from artifact_inspector.model import LOADS, SourceLine
from artifact_inspector.model.axes import AxisOperation, AxisRole

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
        self._first, self._code = first, first.code
        function = first.code.function
        self._analysis = AxisAnalysis(first.code, function.divisibility)

    def run(self) -> Iterator[MissingMask]:
        masks: dict[int, int] = {}
        for access in self._first.accesses:
            roles = self._first.operand_roles(access)
            mask = self._analysis.value_read(access.index, roles.mask[0]) if roles is not None and roles.mask else None
            if mask is not None:
                masks[access.index] = mask
        masked = [access for access in self._first.accesses if access.index in masks]
        bounds = [bound for a in masked for bound in self._bounds(masks[a.index], a.block)]
        if not bounds:
            return
        for access in self._first.accesses:
            if access.kind not in LOADS:
                continue
            terms = self._terms(access)
            checked = self._analysis.dependencies(masks[access.index]) if access.index in masks else {}
            checked_arguments = {name for value in checked if (name := self._analysis.argument(value)) is not None}
            missing_bounds = {
                bound.compare_index: bound
                for bound in bounds
                if bound.offsets in terms
                and bound.offsets not in checked
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
            self._first.code.language.source_name(instruction),
            tuple(dict.fromkeys(" and ".join(self._arguments(x.end)).replace("%", "") for x in missing_bounds)),
            is_masked,
            tuple(instructions[bound.compare_index].line for bound in missing_bounds),
        )

    def _bounds(self, mask: int, block: int) -> Iterator[_Bound]:
        """The compares in a mask that require an index to be below an end."""
        analysis, definitions = self._analysis, self._code.values.definitions
        compares: list[tuple[int, AxisOperation]] = []

        def sources(value: int) -> Iterable[int]:
            operation = analysis.operation(value)
            if operation is not None and operation.role is AxisRole.COMPARE and value in definitions:
                compares.append((definitions[value], operation))
                return ()
            combines = operation is None or operation.role is AxisRole.LOGIC
            return analysis.inputs(value) if combines or analysis.sources(value, None) is not None else ()

        reachable([mask], sources)
        for at, operation in compares:
            sides = analysis.operands(at)
            if operation.holds_below is not None and len(sides) == 2:
                index, end = map(analysis.broadcast_source, sides if operation.holds_below else sides[::-1])
                if self._may_end_inside(index, end):
                    yield _Bound(index, end, at, block)

    def _may_end_inside(self, index: int, end: int) -> bool:
        """True for a uniform value passed to the program that may split the tile of an index."""
        axes, tile = self._analysis.axes(end), self._analysis.axes(index)
        if axes is None or tile is None or axes.value is not None or any(run > 1 for run in axes.contiguity):
            return False
        longest = max(tile.contiguity, default=1)
        return longest > 1 and bool(self._arguments(end)) and axes.divisibility[0] % longest != 0

    def _arguments(self, value: int) -> list[str]:
        names = map(self._analysis.argument, self._analysis.dependencies(value))
        return list(dict.fromkeys(name for name in names if name is not None))

    def _terms(self, access: MemoryAccess) -> dict[int, None]:
        """The values that are added up to the address of a load, times any stride."""
        roles, analysis = self._first.operand_roles(access), self._analysis
        pointer = analysis.value_read(access.index, roles.address[0]) if roles and len(roles.address) == 1 else None

        def sources(value: int) -> Iterable[int]:
            operation = analysis.operation(value)
            is_sum = operation is None or operation.role in _TERMS
            return analysis.inputs(value) if is_sum or analysis.sources(value, None) is not None else ()

        return reachable([] if pointer is None else [pointer], sources)

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
        flow, dominators = self._code.flow, self._code.compute_once(_dominators)
        ends: Iterable[int] = (b.index for b in self._code.blocks if not b.successors and b.index in dominators)
        return all(dominators.dominates(block, end) for end in (ends if loop is None else flow.loops[loop].latches))


def _dominators(code: FunctionCode) -> Dominators:
    return Dominators([block.successors for block in code.blocks])
