"""Definitions and uses of the values of a function in SSA form.

Values are numbered, because a name reused in a sibling region is a different value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.model import EventKind, Function, Instruction, Trait


class PassedValue(NamedTuple):
    """A value passed on by control flow: into a loop or a partition, around a loop, out of a region."""

    source: int
    target: int
    owner: int
    """As `Flow.owner`."""
    is_back_edge: bool
    """True along a loop's back edge."""


@dataclass(frozen=True)
class SsaValues:
    """The SSA values of a function. Every list is indexed by instruction."""

    count: int
    reads: list[dict[str, int]]
    """Name → value, as each instruction reads it."""
    results: list[tuple[int, ...]]
    flows: list[list[PassedValue]]
    """Values that control flow passes on at each instruction."""

    @cached_property
    def definitions(self) -> dict[int, int]:
        """Value → the instruction that defines it. Arguments and passed values have none."""
        return {value: index for index, results in enumerate(self.results) for value in results}

    @cached_property
    def uses(self) -> dict[int, list[int]]:
        """Value → the instructions that read it, in text order."""
        return group_by_key((value, index) for index, reads in enumerate(self.reads) for value in reads.values())

    @cached_property
    def passed_from(self) -> dict[int, list[int]]:
        """Value → the values that control flow passes to it."""
        return group_by_key((passed.target, passed.source) for flows in self.flows for passed in flows)


def number_values(function: Function, traits: Callable[[str], Trait]) -> SsaValues:
    """Number the values of an SSA function, read in text order (definitions come first)."""
    return _Numbering(function, traits).run()


class _Numbering:
    """A walk through a function that tracks the value of each name."""

    def __init__(self, function: Function, traits: Callable[[str], Trait]) -> None:
        self._function, self._traits = function, traits
        self._count = 0
        self._current = {name: self._new() for name in function.arguments}
        self._owned: dict[tuple[int, str], int] = {}
        """(owner, name) → the value of an argument or a result of a region, or an argument of a block."""
        self._at = group_by_key((flow.instruction_index, flow) for flow in function.flows)
        for flow in function.flows:
            # Block arguments may be read before the jump that passes them is reached.
            if flow.owner < 0 and (flow.owner, flow.target) not in self._owned:
                self._owned[flow.owner, flow.target] = self._current[flow.target] = self._new()

    def run(self) -> SsaValues:
        entered = _find_partitions(self._function)
        entries: dict[int, dict[str, int | None]] = {}
        """First instruction of a partition → the values of its arguments."""
        reads: list[dict[str, int]] = []
        results: list[tuple[int, ...]] = []
        flows: list[list[PassedValue]] = []
        current = self._current
        for index, instruction in enumerate(self._function.instructions):
            if index in entries:  # the preceding region may have reused the names of its arguments
                self._bind(entries[index])
            result_names, names = instruction.operands
            if instruction.kind is EventKind.BRANCH:
                names = self._read_by_branch(index, instruction, names)
            reads.append({name: current[name] for name in names if name in current})
            first = self._count
            self._count += len(result_names)
            results.append(tuple(range(first, self._count)) if len(result_names) > 1 else (first,) * len(result_names))
            for value, name in enumerate(result_names, first):
                current[name] = value
            passed_values, arguments = self._pass_values(index) if index in self._at else ([], {})
            flows.append(passed_values)
            if index in entered:
                entries.update(dict.fromkeys(entered[index], arguments))
        return SsaValues(self._count, reads, results, flows)

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def _read_by_branch(self, index: int, instruction: Instruction, names: tuple[str, ...]) -> tuple[str, ...]:
        """The values that a loop reads. It writes `%argument = %value` for the arguments of its body."""
        traits = self._traits(instruction.opcode)
        if Trait.LOOP not in traits:
            return names
        argument_names = {flow.target for flow in self._at.get(index, ())}
        for variable in names[:1] if Trait.COUNTED_LOOP in traits else ():
            self._current.pop(variable, None)
        return tuple(name for name in names if name not in argument_names)

    def _pass_values(self, index: int) -> tuple[list[PassedValue], dict[str, int | None]]:
        """The values passed on at an instruction, and the new meaning of the target names after it."""
        passed_values: list[PassedValue] = []
        arguments: dict[str, int | None] = {}
        for source, target, _, owner, back in self._at[index]:
            if source not in self._current:
                if owner >= 0:
                    arguments[target] = None
                continue
            if (owner, target) not in self._owned:
                self._owned[owner, target] = self._new()
            value = self._owned[owner, target]
            if owner >= 0:
                # After its back edge a loop's argument is not visible, and the body of a reduction may have one of that
                # name, which no flow passes.
                arguments[target] = None if back else value
            passed_values.append(PassedValue(self._current[source], value, owner, back))
        self._bind(arguments)
        return passed_values, arguments

    def _bind(self, arguments: dict[str, int | None]) -> None:
        """Change the values of names from here on; None makes a name unknown."""
        for name, value in arguments.items():
            if value is None:
                self._current.pop(name, None)
            else:
                self._current[name] = value


def _find_partitions(function: Function) -> dict[int, list[int]]:
    """For each warp-specialised operation, the first instructions of the partitions that receive values."""
    entered: dict[int, list[int]] = {}
    operation = -1
    for partition in function.partitions:
        start = function.blocks[partition.first].start
        if partition.name == "default":
            operation = start - 1  # its own region sees the names around it
        else:
            entered.setdefault(operation, []).append(start)
    return entered
