"""What it costs to stay inside the tensors: compares that decide accesses, and integer divisions.

A compare counts where its result reaches the mask of an access: a predicate or mask operand, the branch
or the mask of lanes around it, or the operand that the mask is folded into. Conditions are followed in
text order, by name, through the logic on them and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from artifact_inspector.analysis.access.accesses import MemoryAccess, MemoryLanguage
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import EventKind, Instruction

__all__ = ["BoundsCheck", "Check", "find_bounds_checks"]

SCALE, WIDE_SCALE = "0x4f7ffffe", "0x5f7ffffc"
"""What LLVM multiplies a divisor's reciprocal by to divide 32 and 64 bits: just under 2³² and 2⁶⁴.

**Source**: `expandDivRem32` in AMDGPUCodeGenPrepare.cpp, `LowerUDIVREM64` in AMDGPUISelLowering.cpp.
"""
NOWHERE = -1
"""Stands among the compares for the offset that lies behind every buffer (2³¹)."""

_BIT = re.compile(r"i1(?!\d)")
_OFF = re.compile(r"-2147483648|0x80000000|, (?:i32 )?0(?:, %p\d+)?$")
"""An offset behind every buffer, or a size of nothing."""
_TOP_BIT = re.compile(r"rev_b32\w* \w+, 1$|, 0x80000000$")


class Check(Enum):
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


class _Role(Enum):
    NONE = ""
    COMPARE = r"arith\.cmpi$|icmp$|setp\.\w+\.(?:\w+\.)?[subp]\d|v_cmpx?_\w+_[iub]\d|s_cmpk?_\w+_[iub]\d"
    LOGIC = (
        r"(?:and|or|xor|not|mov)\.pred$|s_\w+_saveexec"
        r"|s_(?:and|or|xor|andn2|and_not1|nor|orn2|cselect|mov)_b(?:32|64)$"
    )
    """Makes conditions of conditions."""
    TYPED_LOGIC = (
        r"arith\.(?:andi|ori|xori|select)$|tt\.(?:broadcast|expand_dims|splat|reshape|view|trans)$"
        r"|(?:ttg|triton_gpu)\.convert_layout$|(?:and|or|xor|freeze|insertelement|shufflevector)$"
    )
    """The same, where the type says that it is a condition."""
    CHOICE = r"v_(?:dual_)?cndmask|selp\.|select$"
    """Chooses by a condition: makes the operand that a mask is folded into."""
    TOP_BIT = r"[vs]_bfrev_b32|s_brev_b32|v_(?:dual_)?mov_b32"
    """May put the offset behind every buffer into a register."""
    DIVISION = (
        r"arith\.(?:rem|div|ceildiv|floordiv)[su]?i$|[su](?:rem|div)$|(?:rem|div)\.[su]\d|v_rcp_iflag_f32"
    )
    SCALING = r"[vs]_(?:dual_)?mul_f32"
    """May scale the reciprocal of an integer."""

    __hash__ = object.__hash__


class _RolesByOpcode(dict[str, _Role]):
    """Opcode → its role, found once for each."""

    def __missing__(self, opcode: str) -> _Role:
        found = (
            role for role in _Role if role is not _Role.NONE and re.match(role.value, opcode) is not None
        )
        role = self[opcode] = next(found, _Role.NONE)
        return role


_ROLES = _RolesByOpcode()


def find_bounds_checks(
    code: Code, accesses: Iterable[MemoryAccess], language: MemoryLanguage
) -> tuple[BoundsCheck, ...]:
    """Compares that feed the masks of a function's accesses, and its integer divisions, in text order.

    A tensor's count as one. AMD's GPUs have no integer division: the reciprocal of the divisor counts, so
    divisions by one number that share it count once. Those of a region are the ones whose `block` is
    among the region's blocks.
    """
    function, flow = code.function, code.flow
    idle = _Role.NONE
    busy = [
        (index, instruction, role)
        for index, instruction in enumerate(function.instructions)
        if (role := _ROLES[instruction.opcode]) is not idle
    ]
    divisions = _divisions(busy)
    compares = _Conditions(language, [access for access in accesses if access.predicated or access.folded])
    found = [(index, Check.COMPARE) for index in compares.deciding(code, busy)]
    found += [(index, Check.DIVISION) for index in divisions]
    return tuple(
        BoundsCheck(index, flow.block_of[index], function.instructions[index].line, check)
        for index, check in sorted(found, key=lambda item: item[0])
    )


def _divisions(busy: list[tuple[int, Instruction, _Role]]) -> list[int]:
    plain = [index for index, _, role in busy if role is _Role.DIVISION]
    scaled = [(index, instruction.text) for index, instruction, role in busy if role is _Role.SCALING]
    wide = [index for index, text in scaled if WIDE_SCALE in text]
    if plain:
        return plain + wide
    # LLVM 24 takes the plain reciprocal: only its scale tells that it is an integer's.
    return wide + [index for index, text in scaled if SCALE in text]


class _Conditions:
    """Which compares decide the accesses of a function."""

    def __init__(self, language: MemoryLanguage, accesses: list[MemoryAccess]) -> None:
        self.language = language
        self.accesses = {access.index: access for access in accesses}
        self.folded = any(access.folded for access in accesses)
        self.branches = {access.decided_at for access in accesses if access.decided_at is not None}
        self.known: dict[str, frozenset[int]] = {}
        """Register or value → the compares that it is made of."""

    def deciding(self, code: Code, busy: list[tuple[int, Instruction, _Role]]) -> set[int]:
        """The compares whose results reach an access."""
        if not self.accesses:
            return set()
        instructions = code.function.instructions
        quiet = [(i, instructions[i], _Role.NONE) for i in self.accesses.keys() | self.branches]
        compares: set[int] = set()
        for index, instruction, role in sorted({item[0]: item for item in (*quiet, *busy)}.values()):
            if role is _Role.COMPARE:
                if instruction.kind is not EventKind.INTEGER:
                    continue
                if index in self.branches:  # AMD's v_cmpx turns lanes off itself
                    compares.add(index)
                # A scalar compare of AMD writes no register that is named: the condition code.
                for name in instruction.operands.results or ("scc",):
                    self.known[name] = frozenset((index,))
            elif index in self.accesses:
                for name in self._mask(instruction, self.accesses[index]):
                    compares |= self.known.get(name, frozenset())
            elif index in self.branches or self._may_carry(instruction, role):
                carried = self._carry(instruction, role)
                if index in self.branches:
                    compares |= carried
        compares.discard(NOWHERE)
        return compares

    def _may_carry(self, instruction: Instruction, role: _Role) -> bool:
        """True for what is worth reading the operands of."""
        if role is _Role.TOP_BIT:
            return self.folded and _TOP_BIT.search(instruction.text) is not None
        if role is _Role.CHOICE:
            if _chooses_conditions(instruction):
                return True
            # AMD's assembly may have the offset in a register, the others name it.
            in_register = "cndmask" in instruction.opcode
            return self.folded and (in_register or _OFF.search(instruction.text) is not None)
        if role is _Role.TYPED_LOGIC:
            return bool(self.known) and _BIT.search(instruction.text) is not None
        return role is _Role.LOGIC and bool(self.known)

    def _carry(self, instruction: Instruction, role: _Role) -> frozenset[int]:
        """What the result of an operation on conditions is made of."""
        results, reads = instruction.operands
        if "cselect" in instruction.opcode or "scc" in instruction.opcode:
            reads = (*reads, "scc")
        elif instruction.opcode.startswith("v_dual_cndmask"):
            reads = (*reads, "vcc_lo")  # implied
        carried = frozenset[int]().union(*(self.known.get(name, frozenset()) for name in reads))
        if role is _Role.TOP_BIT or (role is _Role.LOGIC and _TOP_BIT.search(instruction.text) is not None):
            carried = frozenset((NOWHERE,))
        elif role is _Role.CHOICE:
            decides = _chooses_conditions(instruction) or _OFF.search(instruction.text) is not None
            if not decides and NOWHERE not in carried:
                carried = frozenset()  # it chooses between two numbers
        for name in results:
            self.known[name] = carried
        return carried

    def _mask(self, instruction: Instruction, access: MemoryAccess) -> tuple[str, ...]:
        """The values that may hold the mask of an access."""
        if self.language.access is not None:
            return self.language.access(instruction).mask
        reads = instruction.operands.reads
        if not access.folded:
            is_own = instruction.guard is not None or instruction.opcode.startswith("llvm.masked.")
            return reads if is_own else ()
        if instruction.opcode.startswith("cp.async"):
            return reads[2:]  # behind both addresses
        # The offset stands last, behind the data and, in LLVM IR, the descriptor (scalar in assembly).
        return tuple(name for name in reads if name.startswith(("v", "%")))[-1:]


def _chooses_conditions(instruction: Instruction) -> bool:
    return len(_BIT.findall(instruction.text)) > 1
