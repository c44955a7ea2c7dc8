"""Parses one AMDGCN statement: its opcode without encoding, its operands and its modifiers.

**Source** LLVM, "AMDGPU Instruction Syntax", "AMDGPU Operands" and "AMDGPU Modifiers".
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.formats._operands import split_operands
from artifact_inspector.model.text import parse_integer


class AmdgcnOperandKind(Enum):
    """Kind of an operand."""

    SCALAR = "s"
    """A register of the whole wave: `s`, `ttmp`, `vcc`, `exec`, `m0`."""
    VECTOR = "v"
    ACCUMULATOR = "a"
    NUMBER = "number"
    FLOAT = "float"
    """A floating-point literal; `value` holds its bits."""
    LABEL = "label"
    NULL = "nothing"
    """`off`, `null`."""
    OTHER = "other"
    """Anything that is not interpreted, like a hardware register."""


class AmdgcnOperand(NamedTuple):
    """One operand."""

    kind: AmdgcnOperandKind
    names: tuple[str, ...] = ()
    """Names of the registers, lowest first; or the label."""
    value: int = 0
    is_negated: bool = False
    is_absolute: bool = False
    is_sign_extended: bool = False
    """`sext(…)`."""


class RegisterSelect(NamedTuple):
    """The part of a register that an operand selects (SDWA)."""

    shift: int
    bits: int


class AmdgcnStatement(NamedTuple):
    """One statement."""

    opcode: str
    """As printed."""
    base: str
    """Without encoding suffixes: `_e32`, `_e64`, `_dpp`, `_sdwa`."""
    operands: tuple[AmdgcnOperand, ...]
    modifiers: Mapping[str, str]
    """Name → value after the colon; empty if there is none."""

    def has_modifier(self, name: str) -> bool:
        """Whether the statement has a modifier."""
        return name in self.modifiers

    def modifier_number(self, name: str) -> int:
        """The number of a modifier; 0 if it is absent."""
        return parse_integer(self.modifiers.get(name, "")) or 0

    def list(self, name: str) -> tuple[int, ...]:
        """The numbers of a modifier: `quad_perm:[1,0,3,2]`."""
        return tuple(parse_integer(number.strip()) or 0 for number in self.modifiers[name].strip("[]").split(","))

    def register_select(self, name: str) -> RegisterSelect | None:
        """The register part that an SDWA modifier selects; None for the whole register."""
        return _SELECTS.get(self.modifiers.get(name, ""))


_SELECTS: Mapping[str, RegisterSelect] = {
    **{f"BYTE_{n}": RegisterSelect(8 * n, 8) for n in range(4)},
    **{f"WORD_{n}": RegisterSelect(16 * n, 16) for n in range(2)},
}
_ENCODING = re.compile(r"(?:_e32|_e64_dpp|_e64|_dpp8|_dpp|_sdwa)$")
_REGISTER = re.compile(r"(v|s|a|ttmp)(?:(\d{1,4})|\[(\d{1,4})(?::(\d{1,4}))?\])\Z")
_RENAMED = re.compile(r"(?<![^\s,])[^\s,]+ /\*([^*]*)\*/")
_MODIFIER = re.compile(r"\s([a-z][\w]*)(?::(\[[^\]]*\]|[^\s,]+))?(?=\s|$)")
# after a comma, `a16` is a register
_FIRST_MODIFIER = re.compile(
    r"(?:^|(?<![,\s])\s+)(?:off(?:set|en)|idxen|addr64|lds|glc|slc|dlc|scc|sc[01]|nt|th|scope|clamp|mul|div|gds|tfe|lwe|swz|quad_perm"
    r"|row_\w+|wave_\w+|bank_mask|bound_ctrl|fi|dpp8|dst_\w+|src[01]_sel|op_sel\w*|neg_\w+|cbsz|abid|blgp"
    r"|offset[01]|bitop3|format|matrix_\w+|index_key|byte_sel|r128|a16|d16|unorm|dmask|nv|scale_offset|bitmask)"
    r"(?=[:\s]|$)"
)
_REGISTER_PAIRS: Mapping[str, tuple[str, ...]] = {
    "vcc": ("vcc_lo", "vcc_hi"),
    "exec": ("exec_lo", "exec_hi"),
    "flat_scratch": ("flat_scratch_lo", "flat_scratch_hi"),
    "xnack_mask": ("xnack_mask_lo", "xnack_mask_hi"),
}
_SINGLE_REGISTERS = frozenset(("m0", "scc", *(name for pair in _REGISTER_PAIRS.values() for name in pair)))
_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?\Z")
MAX_REGISTERS = 1024


@lru_cache(maxsize=1 << 14)
def parse_statement(text: str) -> AmdgcnStatement:
    """Parse one statement; anything unknown becomes an operand of kind `OTHER`."""
    text = _RENAMED.sub(r"\1", text).strip()
    opcode, _, operand_text = text.partition(" ")
    base = _ENCODING.sub("", opcode)
    modifier_start = _FIRST_MODIFIER.search(operand_text)
    modifiers: dict[str, str] = {}
    if modifier_start is not None and not opcode.startswith(("s_waitcnt", "s_branch", "s_cbranch")):
        modifiers = dict(_MODIFIER.findall(" " + operand_text[modifier_start.start() :]))
        operand_text = operand_text[: modifier_start.start()]
    operand_texts = split_operands(operand_text) if operand_text.strip() else ()
    return AmdgcnStatement(opcode, base, tuple(_parse_operand(text.strip()) for text in operand_texts), modifiers)


def _parse_operand(text: str) -> AmdgcnOperand:
    is_negated = is_absolute = False
    number = parse_integer(text)
    if number is not None:
        return AmdgcnOperand(AmdgcnOperandKind.NUMBER, value=number)
    if _FLOAT.match(text):
        return AmdgcnOperand(AmdgcnOperandKind.FLOAT, value=struct.unpack("<I", struct.pack("<f", float(text)))[0])
    if text.startswith("-"):
        is_negated, text = True, text[1:]
    if text.startswith("|") and text.endswith("|"):
        is_absolute, text = True, text[1:-1]
    for name in ("neg", "abs", "sext", "lit"):
        if text.startswith(f"{name}(") and text.endswith(")"):
            inner = _parse_operand(text[len(name) + 1 : -1])
            return inner._replace(
                is_negated=inner.is_negated or name == "neg",
                is_absolute=inner.is_absolute or name == "abs",
                is_sign_extended=inner.is_sign_extended or name == "sext",
            )
    names = _register_names(text)
    if names:
        kind = AmdgcnOperandKind.SCALAR
        if names[0] not in _SINGLE_REGISTERS and names[0][0] in "va":
            kind = AmdgcnOperandKind(names[0][0])
        return AmdgcnOperand(kind, names, is_negated=is_negated, is_absolute=is_absolute)
    if text in ("off", "null"):
        return AmdgcnOperand(AmdgcnOperandKind.NULL)
    is_label = text.startswith((".", "_")) or text.isidentifier()
    return AmdgcnOperand(AmdgcnOperandKind.LABEL if is_label else AmdgcnOperandKind.OTHER, (text,))


def _register_names(text: str) -> tuple[str, ...]:
    if text in _SINGLE_REGISTERS:
        return (text,)
    if text in _REGISTER_PAIRS:
        return _REGISTER_PAIRS[text]
    match = _REGISTER.match(text)
    if match is None:
        return ()
    bank = match[1]
    if match[2] is not None:
        return (f"{bank}{int(match[2])}",)
    first = int(match[3])
    last = first if match[4] is None else min(int(match[4]), first + MAX_REGISTERS)
    return tuple(f"{bank}{number}" for number in range(first, last + 1))
