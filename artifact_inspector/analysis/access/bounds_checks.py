"""The cost of bounds checks: compares that control accesses, and integer divisions.

A compare counts if its result reaches the mask of an access: a predicate or mask operand, the branch or lane mask
around it, or the operand that contains the mask. Conditions are followed in text order, by name, and only through logic
operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.access.accesses import MemoryAccess
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.model import EventKind, Instruction
from artifact_inspector.model.condition import ConditionRole, Conditions
from artifact_inspector.model.string_enum import StringEnum

OUT_OF_BOUNDS = -1
"""Represents, among the compares, the offset that is beyond every buffer (2³¹)."""


class CheckKind(StringEnum):
    """Kinds of instructions that only bounds checks need."""

    COMPARE = "compare"
    """An integer compare that controls an access."""
    DIVISION = "division"
    """An integer division or remainder."""


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """One instruction of such a kind."""

    index: int
    block: int
    line: int
    kind: CheckKind


def find_bounds_checks(code: FunctionCode, accesses: Iterable[MemoryAccess]) -> tuple[BoundsCheck, ...]:
    """The compares that feed the masks of a function's accesses, and its integer divisions, in text order.

    An operation on a tensor counts once. AMD's GPUs have no integer division: the reciprocal of the divisor is counted,
    so divisions by one number that share it count once. The checks of a region are those whose `block` is among the
    region's blocks.
    """
    instructions, conditions = code.instructions, code.language.conditions
    indices = code.indices_with_opcode(conditions.is_relevant)
    roles = {index: conditions.role(instructions[index]) for index in indices}
    compares = _ControllingCompares(conditions, [a for a in accesses if a.is_predicated or a.is_mask_folded])
    checks = [(index, CheckKind.COMPARE) for index in compares.find(instructions, roles)]
    checks += [(index, CheckKind.DIVISION) for index in _divisions(roles)]
    block_of = code.flow.block_of
    return tuple(BoundsCheck(i, block_of[i], instructions[i].line, check) for i, check in sorted(checks))


def _divisions(roles_by_index: Mapping[int, ConditionRole]) -> list[int]:
    by_role = group_by_key((role, index) for index, role in roles_by_index.items())
    plain = by_role.get(ConditionRole.DIVISION, [])
    # LLVM 24 uses the plain reciprocal: only its scale shows that it is an integer's.
    plain = plain or by_role.get(ConditionRole.RECIPROCAL, [])
    return plain + by_role.get(ConditionRole.WIDE_RECIPROCAL, [])


class _ControllingCompares:
    """Finds the compares that control the accesses of a function."""

    def __init__(self, conditions: Conditions, accesses: list[MemoryAccess]) -> None:
        self.conditions = conditions
        self.accesses = {access.index for access in accesses}
        self.folded = any(access.is_mask_folded for access in accesses)
        self.branches = {access.guard_index for access in accesses if access.guard_index is not None}
        self.compares_by_name: dict[str, frozenset[int]] = {}
        """Register or value → the compares that it depends on."""

    def find(self, instructions: Sequence[Instruction], roles_by_index: Mapping[int, ConditionRole]) -> set[int]:
        """The compares whose results reach an access."""
        compares: set[int] = set()
        if not self.accesses:
            return compares
        for index in sorted(roles_by_index.keys() | self.accesses | self.branches):
            instruction, role = instructions[index], roles_by_index.get(index, ConditionRole.NONE)
            if role is ConditionRole.COMPARE:
                if instruction.kind is not EventKind.INTEGER:
                    continue
                if index in self.branches:  # AMD's v_cmpx disables lanes itself
                    compares.add(index)
                self._record(self.conditions.operands(instruction).results, frozenset((index,)))
            elif index in self.accesses:
                compares |= self._compares_of(self.conditions.mask(instruction))
            elif index in self.branches:
                compares |= self._propagate(instruction, role)
            elif self.folded if role in _FOLDING else role in _CARRYING and self.compares_by_name:
                self._propagate(instruction, role)
        return compares - {OUT_OF_BOUNDS}

    def _record(self, names: Iterable[str], compares: frozenset[int]) -> None:
        self.compares_by_name.update(dict.fromkeys(names, compares))

    def _compares_of(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset[int]().union(*(self.compares_by_name[name] for name in names if name in self.compares_by_name))

    def _propagate(self, instruction: Instruction, role: ConditionRole) -> frozenset[int]:
        """Record and return the compares that an operation on conditions depends on."""
        results, reads = self.conditions.operands(instruction)
        compares = self._compares_of(reads)
        if role is ConditionRole.OUT_OF_BOUNDS:
            compares = frozenset((OUT_OF_BOUNDS,))
        elif role is ConditionRole.SELECT and OUT_OF_BOUNDS not in compares:
            compares = frozenset()  # it selects between two numbers
        self._record(results, compares)
        return compares


_FOLDING = frozenset({ConditionRole.OUT_OF_BOUNDS, ConditionRole.FOLD, ConditionRole.SELECT})
_CARRYING = frozenset({ConditionRole.LOGIC, ConditionRole.TRUE})
