"""Comparisons, conditions and masks of every language: what disables memory accesses.

Source: PTX ISA, "setp", "selp" and "cp.async"; AMD's ISA manuals, "Vector compares" and "EXEC mask"; LLVM,
`expandDivRem32` in AMDGPUCodeGenPrepare.cpp and `LowerUDIVREM64` in AMDGPUISelLowering.cpp, whose factors just under
2³² and 2⁶⁴ scale the reciprocal of an integer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import Enum, auto

from artifact_inspector.model.condition import ConditionRole, LaneChange, Masking
from artifact_inspector.model.instruction import Instruction, Operands
from artifact_inspector.model.memory import AccessOperands

_SCALE, _WIDE_SCALE = "0x4f7ffffe", "0x5f7ffffc"
_BOOLEAN_TYPE = re.compile(r"i1(?!\d)")
_DISABLED = re.compile(r"-2147483648|0x80000000|, (?:i32 )?0(?:, %p\d+)?$")
"""An offset beyond every buffer, or a size of zero."""
_TOP_BIT = re.compile(r"rev_b32\w* \w+, 1$|, 0x80000000$")
_ASM_OPERAND = re.compile(r"\d{1,4}")
_ASM_CALL = re.compile(r'", "([^"]*)"\((.*)\)')
# cp.async [shared], [global], bytes, bytes to read
_SOURCE_SIZE = re.compile(r"cp\.async\.c[ag]\.[^;]*\], *\w+, *[%$]")
_COPY = "cp.async.c"
_BUFFER = ("buffer_", "llvm.amdgcn.raw.", "llvm.amdgcn.struct.")
_MASKED = "llvm.masked."
_LANES = re.compile(r"s_\w+_saveexec|s_(?:or|mov)_b(?:32|64)$|v_cmpx")
_CHANGES_LANES = re.compile(r"s_\w+_saveexec|s_(?:or|mov)_b\d\d exec|v_cmpx")
_NARROWS = re.compile(r"s_\w+_saveexec|v_cmpx")


class _OpcodeFamily(Enum):
    """Opcode families."""

    NONE = auto()
    COMPARE = auto()
    LOGIC = auto()
    TYPED_LOGIC = auto()
    """Logic that combines conditions if the type says so."""
    SELECT = auto()
    TOP_BIT = auto()
    """May move the offset beyond every buffer into a register."""
    DIVISION = auto()
    SCALING = auto()
    """May scale the reciprocal of an integer."""

    __hash__ = object.__hash__


class ConditionTable:
    """The opcodes of one language that take part in conditions.

    Args:
        rows: family → a pattern for the start of its opcodes.
        others: tables of languages whose opcodes may occur in this one (inline assembly).
        access: the format's function, if it separates the mask of an access from its other operands.
        has_lanes: True if the language's code changes the mask of active lanes.

    Example:
        >>> PTX.is_relevant("setp.lt.s32"), PTX.is_relevant("add.s32")
        (True, False)
    """

    def __init__(
        self,
        rows: Mapping[_OpcodeFamily, str],
        *tables: ConditionTable,
        access: Callable[[Instruction], AccessOperands] | None = None,
        has_lane_mask: bool = False,
    ) -> None:
        self._rows = [(family, re.compile(pattern)) for family, pattern in rows.items()]
        for table in tables:
            self._rows += table._rows
        self._families: dict[str, _OpcodeFamily] = {}
        self._access = access
        self.has_lane_mask = has_lane_mask

    def _family(self, opcode: str) -> _OpcodeFamily:
        family = self._families.get(opcode)
        if family is None:
            family = next((f for f, pattern in self._rows if pattern.match(opcode) is not None), _OpcodeFamily.NONE)
            self._families[opcode] = family
        return family

    def is_relevant(self, opcode: str) -> bool:
        """False for an opcode that never takes part in a condition, whatever its operands."""
        return self._family(opcode) is not _OpcodeFamily.NONE

    def role(self, instruction: Instruction) -> ConditionRole:
        """What an instruction does with conditions."""
        return _role(self._family(instruction.opcode), instruction)

    def operands(self, instruction: Instruction) -> Operands:
        """What an instruction defines and reads, including an implied condition code."""
        results, reads = instruction.operands
        opcode = instruction.opcode
        if not results and self._family(opcode) is _OpcodeFamily.COMPARE:
            results = ("scc",)  # AMD's scalar compares write scc implicitly
        elif "cselect" in opcode or "scc" in opcode:
            reads = (*reads, "scc")
        elif opcode.startswith("v_dual_cndmask"):
            reads = (*reads, "vcc_lo")  # implied
        return Operands(results, reads)

    def masking(self, instruction: Instruction) -> Masking:
        """How an access may be disabled, other than by a branch or the mask of active lanes."""
        if instruction.guard is not None and not _is_constant_true(instruction.guard, instruction.text):
            is_direct = True
        elif self._access is not None:
            is_direct = bool(self._access(instruction).mask)
        else:
            is_direct = instruction.opcode.startswith(_MASKED)
        masking = Masking.DIRECT if is_direct else Masking.NONE
        return masking | Masking.FOLDED if _is_folded(instruction) else masking

    def mask(self, instruction: Instruction) -> tuple[str, ...]:
        """The values that may hold the mask of an access."""
        if self._access is not None:
            return self._access(instruction).mask
        reads = instruction.operands.reads
        if not _is_folded(instruction):
            is_own = instruction.guard is not None or instruction.opcode.startswith(_MASKED)
            return reads if is_own else ()
        if instruction.opcode.startswith(_COPY):
            return reads[2:]  # after both addresses
        # The offset comes last, after the data and, in LLVM IR, the descriptor (scalar in assembly).
        return tuple(name for name in reads if name.startswith(("v", "%")))[-1:]

    def may_change_lanes(self, opcode: str) -> bool:
        """False for an opcode that never changes the mask of active lanes, whatever its operands."""
        return _LANES.match(opcode) is not None

    def lane_change(self, instruction: Instruction) -> LaneChange | None:
        """How an instruction changes the mask of active lanes; None if it does not."""
        if _LANES.match(instruction.opcode) is None or _CHANGES_LANES.match(instruction.text) is None:
            return None
        return LaneChange.NARROWS if _NARROWS.match(instruction.text) is not None else LaneChange.RESTORES


def _role(family: _OpcodeFamily, instruction: Instruction) -> ConditionRole:
    """The role of an opcode of a family, given its operands."""
    text = instruction.text
    if family is _OpcodeFamily.TYPED_LOGIC:
        return ConditionRole.LOGIC if _BOOLEAN_TYPE.search(text) is not None else ConditionRole.NONE
    if family is _OpcodeFamily.LOGIC:
        if _TOP_BIT.search(text) is not None:
            return ConditionRole.OUT_OF_BOUNDS
        is_true = instruction.opcode == "mov.pred" and text.endswith(", -1")
        return ConditionRole.TRUE if is_true else ConditionRole.LOGIC
    if family is _OpcodeFamily.SELECT:
        return _select_role(instruction)
    if family is _OpcodeFamily.TOP_BIT:
        return ConditionRole.OUT_OF_BOUNDS if _TOP_BIT.search(text) is not None else ConditionRole.NONE
    if family is _OpcodeFamily.SCALING:
        if _WIDE_SCALE in text:
            return ConditionRole.WIDE_RECIPROCAL
        return ConditionRole.RECIPROCAL if _SCALE in text else ConditionRole.NONE
    return _FIXED_ROLES.get(family, ConditionRole.NONE)


_FIXED_ROLES = {_OpcodeFamily.COMPARE: ConditionRole.COMPARE, _OpcodeFamily.DIVISION: ConditionRole.DIVISION}


def _select_role(instruction: Instruction) -> ConditionRole:
    if len(_BOOLEAN_TYPE.findall(instruction.text)) > 1:
        return ConditionRole.LOGIC  # between two conditions
    if _DISABLED.search(instruction.text) is not None:
        return ConditionRole.FOLD
    # AMD's assembly may have the offset in a register; the other languages name it.
    return ConditionRole.SELECT if "cndmask" in instruction.opcode else ConditionRole.NONE


def _is_folded(instruction: Instruction) -> bool:
    if instruction.opcode.startswith(_COPY):
        return _SOURCE_SIZE.search(instruction.text) is not None
    return instruction.opcode.startswith(_BUFFER)


def _is_constant_true(guard: str, text: str) -> bool:
    """True if the guard `$5` of inline assembly refers to a constant true."""
    number, call = _ASM_OPERAND.search(guard), _ASM_CALL.search(text)
    if "i1 true" not in text or number is None or call is None or "$" not in guard or "!" in guard:
        return False
    outputs: int = sum(constraint.startswith("=") for constraint in call[1].split(","))
    operands: list[str] = call[2].split(", ")
    operand_index = int(number[0]) - outputs
    return 0 <= operand_index < len(operands) and operands[operand_index] == "i1 true"


PTX = ConditionTable(
    {
        _OpcodeFamily.COMPARE: r"setp\.\w+\.(?:\w+\.)?[subp]\d",
        _OpcodeFamily.LOGIC: r"(?:and|or|xor|not|mov)\.pred$",
        _OpcodeFamily.SELECT: r"selp\.",
        _OpcodeFamily.DIVISION: r"(?:rem|div)\.[su]\d",
    }
)
AMDGCN = ConditionTable(
    {
        _OpcodeFamily.COMPARE: r"v_cmpx?_\w+_[iub]\d|s_cmpk?_\w+_[iub]\d",
        _OpcodeFamily.LOGIC: (r"s_\w+_saveexec|s_(?:and|or|xor|andn2|and_not1|nor|orn2|cselect|mov)_b(?:32|64)$"),
        _OpcodeFamily.SELECT: r"v_(?:dual_)?cndmask",
        _OpcodeFamily.TOP_BIT: r"[vs]_bfrev_b32|s_brev_b32|v_(?:dual_)?mov_b32",
        _OpcodeFamily.DIVISION: r"v_rcp_iflag_f32",
        _OpcodeFamily.SCALING: r"[vs]_(?:dual_)?mul_f32",
    },
    has_lane_mask=True,
)
LLVM = ConditionTable(
    {
        _OpcodeFamily.COMPARE: r"icmp$",
        _OpcodeFamily.TYPED_LOGIC: r"(?:and|or|xor|freeze|insertelement|shufflevector)$",
        _OpcodeFamily.SELECT: r"select$",
        _OpcodeFamily.DIVISION: r"[su](?:rem|div)$",
    },
    PTX,
    AMDGCN,
)
SASS = ConditionTable({})
"""SASS: what sets a predicate is not distinguished."""


def tensor_conditions(access: Callable[[Instruction], AccessOperands]) -> ConditionTable:
    """The table of tensor-level IR, whose format separates the operands of an access by role."""
    return ConditionTable(
        {
            _OpcodeFamily.COMPARE: r"arith\.cmpi$",
            _OpcodeFamily.TYPED_LOGIC: (
                r"arith\.(?:andi|ori|xori|select)$|tt\.(?:broadcast|expand_dims|splat|reshape|view|trans)$"
                r"|(?:ttg|triton_gpu)\.convert_layout$"
            ),
            _OpcodeFamily.DIVISION: r"arith\.(?:rem|div|ceildiv|floordiv)[su]?i$",
        },
        access=access,
    )
