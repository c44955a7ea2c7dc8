"""Properties of integers and pointers that tensor-level IR proves, per axis: runs, divisors, constants.

A load can be as wide as the run of contiguous addresses that is proven to start at a multiple of the
width. The rules are those of Triton's own analysis, which decides the width. An operation without a rule
proves nothing. Only the operations that an address or a mask depends on are analysed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import cached_property
from math import gcd

from artifact_inspector.analysis.access.axis_rules import (
    PASSED_ON,
    REARRANGING,
    Axes,
    Shape,
    apply_rule,
    has_rule,
    join,
    sources_of_axes,
)
from artifact_inspector.analysis.flow.values import Values, number_values
from artifact_inspector.model import EventKind, Function, Instruction, Language, Module
from artifact_inspector.model.axes import AxisOperation, AxisRole

__all__ = ["Axes", "Dataflow"]

_SPREADING = PASSED_ON | REARRANGING | {AxisRole.SPLAT, AxisRole.BROADCAST}


class Dataflow:
    """The values of a function of tensor-level IR, and their proven properties. Solved on demand."""

    def __init__(
        self,
        function: Function,
        module: Module,
        language: Language,
        divisibility: Mapping[str, int],
        values: Values | None = None,
    ) -> None:
        """Create the analysis of one function.

        `divisibility` holds the divisors of the arguments: name → divisor (`tt.divisibility`). `values`
        are the function's values, if they are numbered already.
        """
        self.function = function
        self._module = module
        self._language = language
        self._divisibility = divisibility
        self._numbered = values
        self._known: dict[int, Axes] = {}
        self._operands: dict[int, tuple[int, ...]] = {}

    @cached_property
    def _values(self) -> Values:
        return (
            number_values(self.function, self._language.traits) if self._numbered is None else self._numbered
        )

    # -- the graph -----------------------------------------------------------------

    def value(self, index: int, name: str) -> int | None:
        """The value that an instruction reads under a name; None if it has no definition.

        The induction variable of a loop is -1 minus the index of the loop operation.
        """
        found = self._values.reads[index].get(name)
        if found is not None:
            return found
        loops = self._counted.get(name, [])
        above = bisect_left(loops, index) - 1
        return -1 - loops[above] if above >= 0 else None

    @cached_property
    def _counted(self) -> dict[str, list[int]]:
        """Name of an induction variable → the loop operations that define it."""
        found: dict[str, list[int]] = {}
        for index, instruction in enumerate(self.function.instructions):
            if instruction.kind is EventKind.BRANCH and (name := self._language.axes(instruction).variable):
                found.setdefault(name, []).append(index)
        return found

    def operands(self, index: int) -> tuple[int, ...]:
        """The values that an instruction reads, in the order of its text."""
        if index not in self._operands:
            names = self.function.instructions[index].operands.reads
            values = (self.value(index, name) for name in names)
            self._operands[index] = tuple(value for value in values if value is not None)
        return self._operands[index]

    def definition(self, value: int) -> Instruction | None:
        """The operation that defines a value; None for arguments, induction variables and passed values."""
        at = self._values.definitions.get(value)
        return None if at is None else self.function.instructions[at]

    def operation(self, value: int) -> AxisOperation | None:
        """The kind of operation that defines a value; None as for `definition`."""
        instruction = self.definition(value)
        return None if instruction is None else self._language.axes(instruction)

    def name(self, value: int) -> str:
        """The program's name for the result of an operation; empty if unknown."""
        instruction = self.definition(value)
        return "" if instruction is None else self._language.source_name(instruction)

    def inputs(self, value: int) -> tuple[int, ...]:
        """The values that a value is computed or passed on from."""
        at = self._values.definitions.get(value)
        if at is not None:
            return self.operands(at)
        if value < 0:
            counts = self._language.axes(self.function.instructions[-1 - value]).counts
            found = (self.value(-1 - value, name) for name in counts)
            return tuple(value for value in found if value is not None)
        return tuple(self._values.handed_from.get(value, ()))

    def argument(self, value: int) -> str | None:
        """The name of an argument of the function."""
        return self.function.arguments[value] if 0 <= value < len(self.function.arguments) else None

    def sources(self, value: int, axis: int | None) -> tuple[tuple[int, int | None], ...] | None:
        """The values that a value is broadcast, converted or rearranged from, with the matching axis of each.

        The axis is None if all elements along it are equal. Returns None if the operation does more than
        that.
        """
        instruction, operation = self.definition(value), self.operation(value)
        if instruction is None or operation is None or operation.role not in _SPREADING:
            return None
        inputs = self.operands(self._values.definitions[value])[:1]
        shapes = self._shapes(instruction)
        before = axis
        if axis is not None and operation.role in REARRANGING:
            found = sources_of_axes(operation, shapes)
            if found is None or axis >= len(found):
                return None
            before = found[axis]
        elif (
            axis is not None
            and operation.role is AxisRole.BROADCAST
            and len(shapes[0]) == len(shapes[-1]) > axis
        ):
            before = None if shapes[0][axis] < shapes[-1][axis] else axis
        return tuple((source, None if operation.role is AxisRole.SPLAT else before) for source in inputs)

    def _shapes(self, instruction: Instruction) -> tuple[Shape, ...]:
        return tuple(found.shape for found in self._language.types(instruction, self._module)) or ((1,),)

    # -- proven properties ------------------------------------------------------------

    def axes(self, value: int) -> Axes | None:
        """The proven properties of a value; None if it depends on nothing that can be analysed."""
        if value not in self._known:
            self._solve(value)
        return self._known.get(value)

    def _solve(self, value: int) -> None:
        """Compute a value and everything that it depends on, to a fixed point over loops."""
        order, pending = [], [(value, False)]
        seen = set(self._known)
        while pending:
            current, ready = pending.pop()
            if ready:
                order.append(current)
            elif current not in seen:
                seen.add(current)
                pending.append((current, True))
                operation = self.operation(current)
                if operation is None or has_rule(operation):
                    pending += [(made_of, False) for made_of in self.inputs(current)]
        changed = True
        while changed:
            changed = False
            for current in order:
                found = self._step(current)
                if found is not None and found != self._known.get(current):
                    self._known[current] = found
                    changed = True

    def _step(self, value: int) -> Axes | None:
        name = self.argument(value)
        if name is not None:
            return Axes((1,), (self._divisibility.get(name, 1),), (1,))
        made_of = [self._known.get(source) for source in self.inputs(value)]
        known = [axes for axes in made_of if axes is not None]
        instruction = self.definition(value)
        if value < 0:
            divisor = gcd(*(axes.divisibility[0] for axes in known)) if len(known) == 2 else 1
            return Axes((1,), (divisor,), (1,))
        if instruction is None:  # passed on: the properties common to all sources
            joined = known[0] if known else None
            for axes in known[1:]:
                joined = join(joined, axes) if joined is not None and joined.rank == axes.rank else None
            return joined
        return apply_rule(self._language.axes(instruction), self._shapes(instruction), made_of)
