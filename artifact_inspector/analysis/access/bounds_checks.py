"""The cost of bounds checks: compares that control accesses, and integer divisions.

A compare counts if its result reaches the mask of an access: a predicate or mask operand, the branch or
lane mask around it, or the operand that contains the mask. Conditions are followed in text order, by
name, and only through logic operations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.analysis.access.accesses import MemoryAccess
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import EventKind, Instruction, Language
from artifact_inspector.model.condition import ConditionRole
from artifact_inspector.model.word import Word

NOWHERE = -1
"""Represents, among the compares, the offset that is beyond every buffer (2³¹)."""


class Check(Word):
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
    check: Check


def find_bounds_checks(
    code: Code, accesses: Iterable[MemoryAccess], language: Language
) -> tuple[BoundsCheck, ...]:
    """The compares that feed the masks of a function's accesses, and its integer divisions, in text order.

    An operation on a tensor counts once. AMD's GPUs have no integer division: the reciprocal of the
    divisor is counted, so divisions by one number that share it count once. The checks of a region are
    those whose `block` is among the region's blocks.
    """
    function, flow = code.function, code.flow
    conditions = language.conditions
    busy = {
        index: conditions.role(function.instructions[index])
        for index in code.with_opcode(conditions.takes_part)
    }
    compares = _Deciding(language, [access for access in accesses if access.predicated or access.folded])
    found = [(index, Check.COMPARE) for index in compares.find(function.instructions, busy)]
    found += [(index, Check.DIVISION) for index in _divisions(busy)]
    return tuple(
        BoundsCheck(index, flow.block_of[index], function.instructions[index].line, check)
        for index, check in sorted(found)
    )


def _divisions(busy: Mapping[int, ConditionRole]) -> list[int]:
    by_role: dict[ConditionRole, list[int]] = {}
    for index, role in busy.items():
        by_role.setdefault(role, []).append(index)
    plain = by_role.get(ConditionRole.DIVISION, [])
    # LLVM 24 uses the plain reciprocal: only its scale shows that it is an integer's.
    plain = plain or by_role.get(ConditionRole.RECIPROCAL, [])
    return plain + by_role.get(ConditionRole.WIDE_RECIPROCAL, [])


class _Deciding:
    """Finds the compares that control the accesses of a function."""

    def __init__(self, language: Language, accesses: list[MemoryAccess]) -> None:
        self.conditions = language.conditions
        self.accesses = {access.index for access in accesses}
        self.folded = any(access.folded for access in accesses)
        self.branches = {access.decided_at for access in accesses if access.decided_at is not None}
        self.known: dict[str, frozenset[int]] = {}
        """Register or value → the compares that it depends on."""

    def find(self, instructions: Sequence[Instruction], busy: Mapping[int, ConditionRole]) -> set[int]:
        """The compares whose results reach an access."""
        compares: set[int] = set()
        if not self.accesses:
            return compares
        for index in sorted(busy.keys() | self.accesses | self.branches):
            instruction, role = instructions[index], busy.get(index, ConditionRole.NONE)
            if role is ConditionRole.COMPARE:
                if instruction.kind is not EventKind.INTEGER:
                    continue
                if index in self.branches:  # AMD's v_cmpx disables lanes itself
                    compares.add(index)
                self._make(self.conditions.operands(instruction).results, frozenset((index,)))
            elif index in self.accesses:
                compares |= self._made_of(self.conditions.mask(instruction))
            elif index in self.branches:
                compares |= self._carry(instruction, role)
            elif self._may_carry(role):
                self._carry(instruction, role)
        return compares - {NOWHERE}

    def _make(self, names: Iterable[str], made_of: frozenset[int]) -> None:
        self.known.update(dict.fromkeys(names, made_of))

    def _made_of(self, names: Iterable[str]) -> frozenset[int]:
        return frozenset[int]().union(*(self.known[name] for name in names if name in self.known))

    def _may_carry(self, role: ConditionRole) -> bool:
        """True for a role that changes `known`."""
        if role in _FOLDING:
            return self.folded
        return role in _CARRYING and bool(self.known)

    def _carry(self, instruction: Instruction, role: ConditionRole) -> frozenset[int]:
        """Record and return the compares that an operation on conditions depends on."""
        results, reads = self.conditions.operands(instruction)
        carried = self._made_of(reads)
        if role is ConditionRole.NOWHERE:
            carried = frozenset((NOWHERE,))
        elif role is ConditionRole.CHOICE and NOWHERE not in carried:
            carried = frozenset()  # it selects between two numbers
        self._make(results, carried)
        return carried


_FOLDING = frozenset({ConditionRole.NOWHERE, ConditionRole.FOLD, ConditionRole.CHOICE})
_CARRYING = frozenset({ConditionRole.LOGIC, ConditionRole.TRUE})
