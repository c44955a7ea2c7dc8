"""Properties of integers and pointers that tensor-level IR proves, per axis: runs, divisors, constants.

A load can be as wide as the run of contiguous addresses that is proven to start at a multiple of the width. The rules
are those of Triton's own analysis, which decides the width. An operation without a rule proves nothing. Only the
operations that an address or a mask depends on are analysed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from math import gcd

from artifact_inspector.analysis.access.axis_rules import (
    IDENTITY_ROLES,
    REARRANGING_ROLES,
    Axes,
    Shape,
    apply_rule,
    has_rule,
    intersect,
    sources_of_axes,
)
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.model import EventKind, Instruction
from artifact_inspector.model.axes import AxisOperation, AxisRole

__all__ = ["Axes", "AxisAnalysis"]

_BROADCASTING_ROLES = IDENTITY_ROLES | REARRANGING_ROLES | {AxisRole.SPLAT, AxisRole.BROADCAST}


class AxisAnalysis:
    """The values of a function of tensor-level IR, and their proven properties. Solved on demand."""

    def __init__(self, code: FunctionCode, divisibility: Mapping[str, int]) -> None:
        """Create the analysis of one function.

        `divisibility` holds the divisors of the arguments: name → divisor (`tt.divisibility`).
        """
        self._code, self._divisibility = code, divisibility
        self._solved: dict[int, Axes] = {}
        self._operands: dict[int, tuple[int, ...]] = {}
        self._operations: dict[int, AxisOperation | None] = {}

    def value_read(self, index: int, name: str) -> int | None:
        """The value that an instruction reads under a name; None if it has no definition.

        The induction variable of a loop is -1 minus the index of the loop operation.
        """
        if name in self._code.values.reads[index]:
            return self._code.values.reads[index][name]
        loops = self._induction_operations.get(name, [])
        above = bisect_left(loops, index) - 1
        return -1 - loops[above] if above >= 0 else None

    @cached_property
    def _induction_operations(self) -> dict[str, list[int]]:
        """Name of an induction variable → the loop operations that define it."""
        branches = [(i, x) for i, x in enumerate(self._code.function.instructions) if x.kind is EventKind.BRANCH]
        names = ((self._code.language.axis_operation(instruction).variable, index) for index, instruction in branches)
        return group_by_key((name, index) for name, index in names if name)

    def operands(self, index: int) -> tuple[int, ...]:
        """The values that an instruction reads, in the order of its text."""
        if index not in self._operands:
            names = self._code.function.instructions[index].operands.reads
            values = (self.value_read(index, name) for name in names)
            self._operands[index] = tuple(value for value in values if value is not None)
        return self._operands[index]

    def definition(self, value: int) -> Instruction | None:
        """The operation that defines a value; None for arguments, induction variables and passed values."""
        at = self._code.values.definitions.get(value)
        return None if at is None else self._code.function.instructions[at]

    def operation(self, value: int) -> AxisOperation | None:
        """The kind of operation that defines a value; None as for `definition`."""
        if value not in self._operations:
            instruction = self.definition(value)
            self._operations[value] = None if instruction is None else self._code.language.axis_operation(instruction)
        return self._operations[value]

    def name(self, value: int) -> str:
        """The program's name for the result of an operation; empty if unknown."""
        instruction = self.definition(value)
        return "" if instruction is None else self._code.language.source_name(instruction)

    def inputs(self, value: int) -> tuple[int, ...]:
        """The values that a value is computed or passed on from."""
        at = self._code.values.definitions.get(value)
        if at is not None:
            return self.operands(at)
        if value < 0:
            counts = self._code.language.axis_operation(self._code.function.instructions[-1 - value]).loop_operands
            read_values = (self.value_read(-1 - value, name) for name in counts)
            return tuple(value for value in read_values if value is not None)
        return tuple(self._code.values.passed_from.get(value, ()))

    def dependencies(self, value: int) -> dict[int, None]:
        """A value and all values that it depends on."""
        return reachable([value], self.inputs)

    def broadcast_source(self, value: int) -> int:
        """The value that a tensor was broadcast or converted from."""
        while sources := self.sources(value, None):
            value = sources[0][0]
        return value

    def argument(self, value: int) -> str | None:
        """The name of an argument of the function."""
        return self._code.function.arguments[value] if 0 <= value < len(self._code.function.arguments) else None

    def sources(self, value: int, axis: int | None) -> tuple[tuple[int, int | None], ...] | None:
        """The values that a value is broadcast, converted or rearranged from, with the matching axis of each.

        The axis is None if all elements along it are equal. Returns None if the operation does more than that.
        """
        instruction, operation = self.definition(value), self.operation(value)
        if instruction is None or operation is None or operation.role not in _BROADCASTING_ROLES:
            return None
        inputs = self.operands(self._code.values.definitions[value])[:1]
        shapes = self._shapes(instruction)
        source_axis = axis
        if axis is not None and operation.role in REARRANGING_ROLES:
            source_axes = sources_of_axes(operation, shapes)
            if source_axes is None or axis >= len(source_axes):
                return None
            source_axis = source_axes[axis]
        elif axis is not None and operation.role is AxisRole.BROADCAST and len(shapes[0]) == len(shapes[-1]) > axis:
            source_axis = None if shapes[0][axis] < shapes[-1][axis] else axis
        return tuple((source, None if operation.role is AxisRole.SPLAT else source_axis) for source in inputs)

    def _shapes(self, instruction: Instruction) -> tuple[Shape, ...]:
        types = self._code.language.tensor_types(instruction, self._code.module)
        return tuple(tensor_type.shape for tensor_type in types) or ((1,),)

    def axes(self, value: int) -> Axes | None:
        """The proven properties of a value; None if it depends on nothing that can be analysed."""
        if value not in self._solved:
            self._solve(value)
        return self._solved.get(value)

    def _solve(self, value: int) -> None:
        """Compute a value and everything that it depends on, to a fixed point over loops."""
        order, pending = dict[int, None](), [(value, False)]
        visited, has_cycle = set(self._solved), False
        while pending:
            current, ready = pending.pop()
            if ready:
                order[current] = None
            elif current in visited:
                has_cycle = has_cycle or (current not in order and current not in self._solved)
            else:
                visited.add(current)
                pending.append((current, True))
                operation = self.operation(current)
                if operation is None or has_rule(operation):
                    pending += [(input_value, False) for input_value in self.inputs(current)]
        changed = True
        while changed:
            changed = False
            for current in order:
                axes = self._step(current)
                if axes is not None and axes != self._solved.get(current):
                    self._solved[current] = axes
                    changed = has_cycle

    def _step(self, value: int) -> Axes | None:
        name = self.argument(value)
        if name is not None:
            return Axes((1,), (self._divisibility.get(name, 1),), (1,))
        operand_axes = [self._solved.get(source) for source in self.inputs(value)]
        known_axes = [axes for axes in operand_axes if axes is not None]
        instruction = self.definition(value)
        if value < 0:
            divisor = gcd(*(axes.divisibility[0] for axes in known_axes)) if len(known_axes) == 2 else 1
            return Axes((1,), (divisor,), (1,))
        if instruction is None:  # passed on: the properties common to all sources
            joined = known_axes[0] if known_axes else None
            for axes in known_axes[1:]:
                joined = intersect(joined, axes) if joined is not None and joined.rank == axes.rank else None
            return joined
        return apply_rule(self._code.language.axis_operation(instruction), self._shapes(instruction), operand_axes)
