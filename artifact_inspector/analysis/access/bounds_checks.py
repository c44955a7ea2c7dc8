"""What it costs to stay inside the tensors: compares that decide accesses, and integer divisions.

A compare counts where its result reaches the mask of an access: a predicate or mask operand, the branch
or the mask of lanes around it, or the operand that the mask is folded into. Conditions are followed in
text order, by name, through the logic on them and nothing else.
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
"""Stands among the compares for the offset that lies behind every buffer (2³¹)."""


class Check(Word):
    """Kinds of work that only bounds ask for."""

    COMPARE = "compare"
    """An integer compare that decides whether an access takes place."""
    DIVISION = "division"
    """An integer division or remainder."""


@dataclass(frozen=True, slots=True)
class BoundsCheck:
    """One instruction of that kind."""

    index: int
    block: int
    line: int
    check: Check


def find_bounds_checks(
    code: Code, accesses: Iterable[MemoryAccess], language: Language
) -> tuple[BoundsCheck, ...]:
    """Compares that feed the masks of a function's accesses, and its integer divisions, in text order.

    A tensor's count as one. AMD's GPUs have no integer division: the reciprocal of the divisor counts, so
    divisions by one number that share it count once. Those of a region are the ones whose `block` is
    among the region's blocks.
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
    # LLVM 24 takes the plain reciprocal: only its scale tells that it is an integer's.
    plain = plain or by_role.get(ConditionRole.RECIPROCAL, [])
    return plain + by_role.get(ConditionRole.WIDE_RECIPROCAL, [])


class _Deciding:
    """Which compares decide the accesses of a function."""

    def __init__(self, language: Language, accesses: list[MemoryAccess]) -> None:
        self.conditions = language.conditions
        self.accesses = {access.index for access in accesses}
        self.folded = any(access.folded for access in accesses)
        self.branches = {access.decided_at for access in accesses if access.decided_at is not None}
        self.known: dict[str, frozenset[int]] = {}
        """Register or value → the compares that it is made of."""

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
                if index in self.branches:  # AMD's v_cmpx turns lanes off itself
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
        """True for what changes what is known."""
        if role in _FOLDING:
            return self.folded
        return role in _CARRYING and bool(self.known)

    def _carry(self, instruction: Instruction, role: ConditionRole) -> frozenset[int]:
        """What the result of an operation on conditions is made of."""
        results, reads = self.conditions.operands(instruction)
        carried = self._made_of(reads)
        if role is ConditionRole.NOWHERE:
            carried = frozenset((NOWHERE,))
        elif role is ConditionRole.CHOICE and NOWHERE not in carried:
            carried = frozenset()  # it chooses between two numbers
        self._make(results, carried)
        return carried


_FOLDING = frozenset({ConditionRole.NOWHERE, ConditionRole.FOLD, ConditionRole.CHOICE})
_CARRYING = frozenset({ConditionRole.LOGIC, ConditionRole.TRUE})
