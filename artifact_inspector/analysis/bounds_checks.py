"""What it costs to stay inside the tensors: compares that decide accesses, and integer divisions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from artifact_inspector.analysis.accesses import MemoryAccess, MemoryLanguage
from artifact_inspector.analysis.regions import Code
from artifact_inspector.model import EventKind, Instruction

__all__ = ["BoundsCheck", "Check", "find_bounds_checks"]

_DIVISION = re.compile(
    r"arith\.(?:rem|div|ceildiv|floordiv)[su]?i$|[su](?:rem|div)$|(?:rem|div)\.[su]\d|v_rcp_iflag_f32"
)
_SCALED = re.compile(r"[vs]_mul_f32")
SCALE, WIDE_SCALE = "0x4f7ffffe", "0x5f7ffffc"
"""What LLVM multiplies a divisor's reciprocal by to divide 32 and 64 bits: just under 2³² and 2⁶⁴.

**Source**: `expandDivRem32` in AMDGPUCodeGenPrepare.cpp, `LowerUDIVREM64` in AMDGPUISelLowering.cpp.
"""
_COMPARE = re.compile(
    r"arith\.cmpi$|icmp$|setp\.\w+\.(?:\w+\.)?[subp]\d|v_cmpx?_\w+_[iub]\d|s_cmpk?_\w+_[iub]\d"
)
_CARRY = re.compile(
    r"arith\.(?:andi|ori|xori|select)$|tt\.(?:broadcast|expand_dims|splat|reshape|view|trans)$"
    r"|(?:ttg|triton_gpu)\.convert_layout$"
    r"|(?:and|or|xor|select|freeze|insertelement|shufflevector)$"
    r"|(?:and|or|xor|not|mov)\.pred$|selp\."
    r"|s_(?:and|or|xor|andn2|and_not1|cselect|nor|orn2|mov)_b\d|v_cndmask|s_\w+_saveexec"
)


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


def find_bounds_checks(
    code: Code, accesses: Iterable[MemoryAccess], language: MemoryLanguage
) -> tuple[BoundsCheck, ...]:
    """Compares that feed the masks of a function's accesses, and its integer divisions, in text order.

    Vectors count as one at tensor level. AMD's GPUs have no integer division: the reciprocal of the
    divisor counts, so divisions by one number that share it count once. Those of a region are the ones
    whose `block` is among the region's blocks.
    """
    function, flow = code.function, code.flow
    by_index = {access.index: access for access in accesses}
    deciding = {access.decided_at for access in by_index.values()}
    conditions: dict[str, frozenset[int]] = {}
    compares: set[int] = set()
    divisions: list[int] = []
    scaled: list[int] = []
    for index, instruction in enumerate(function.instructions):
        role = _role(instruction.opcode)
        if role is _Role.NONE and index not in by_index and index not in deciding:
            continue
        if role is _Role.DIVISION:
            divisions.append(index)
        elif role is _Role.SCALE:
            if WIDE_SCALE in instruction.text:
                divisions.append(index)
            elif SCALE in instruction.text:
                scaled.append(index)
        elif role is _Role.COMPARE and instruction.kind is EventKind.INTEGER:
            # A scalar compare of AMD writes no register that is named: the condition code.
            for name in instruction.operands.results or ("scc",):
                conditions[name] = frozenset((index,))
        elif index in by_index:
            for name in _mask(instruction, by_index[index], language):
                compares |= conditions.get(name, frozenset())
        elif role is _Role.CARRY or index in deciding:
            results, reads = instruction.operands
            if "cselect" in instruction.opcode or "scc" in instruction.opcode:
                reads = (*reads, "scc")
            carried = frozenset[int]().union(*(conditions.get(name, frozenset()) for name in reads))
            if index in deciding:
                compares |= carried
            for name in results:
                conditions[name] = carried
    if not any("iflag" in function.instructions[index].opcode for index in divisions):
        divisions += scaled  # LLVM 24 takes the plain reciprocal, and only its scale tells it
    found = [(index, Check.COMPARE) for index in compares] + [(index, Check.DIVISION) for index in divisions]
    return tuple(
        BoundsCheck(index, flow.block_of[index], function.instructions[index].line, check)
        for index, check in sorted(found, key=lambda item: item[0])
    )


class _Role(Enum):
    NONE = 0
    COMPARE = 1
    CARRY = 2
    DIVISION = 3
    SCALE = 4


@lru_cache(maxsize=8192)
def _role(opcode: str) -> _Role:
    if _COMPARE.match(opcode) is not None:
        return _Role.COMPARE
    if _CARRY.match(opcode) is not None:
        return _Role.CARRY
    if _SCALED.match(opcode) is not None:
        return _Role.SCALE
    return _Role.DIVISION if _DIVISION.match(opcode) is not None else _Role.NONE


def _mask(instruction: Instruction, access: MemoryAccess, language: MemoryLanguage) -> tuple[str, ...]:
    """The values that may hold the mask of an access."""
    if language.access is not None:
        return language.access(instruction).mask
    reads = instruction.operands.reads
    if not access.folded:
        return reads if instruction.guard is not None or instruction.opcode.startswith("llvm.masked.") else ()
    if instruction.kind is EventKind.ASYNC_COPY and instruction.opcode.startswith("cp.async"):
        return reads[2:]  # behind both addresses
    # The offset stands behind the data and, in LLVM IR, the descriptor; in assembly it is a vector register.
    offsets = [name for name in reads if name.startswith(("v", "%"))]
    return tuple(offsets[-1:])
