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
from artifact_inspector.model.text import integer


class Bank(Enum):
    """Kind of an operand."""

    SCALAR = "s"
    """A register of the whole wave: `s`, `ttmp`, `vcc`, `exec`, `m0`."""
    VECTOR = "v"
    ACCUMULATOR = "a"
    NUMBER = "number"
    FLOAT = "float"
    """A floating-point literal; `value` holds its bits."""
    LABEL = "label"
    NOTHING = "nothing"
    """`off`, `null`."""
    OTHER = "other"
    """Anything that is not interpreted, like a hardware register."""


class Operand(NamedTuple):
    """One operand."""

    bank: Bank
    names: tuple[str, ...] = ()
    """Names of the registers, lowest first; or the label."""
    value: int = 0
    minus: bool = False
    absolute: bool = False
    extends: bool = False
    """`sext(…)`."""


class Select(NamedTuple):
    """The part of a register that an operand selects (SDWA)."""

    shift: int
    bits: int


class Statement(NamedTuple):
    """One statement."""

    opcode: str
    """As printed."""
    base: str
    """Without encoding suffixes: `_e32`, `_e64`, `_dpp`, `_sdwa`."""
    operands: tuple[Operand, ...]
    modifiers: Mapping[str, str]
    """Name → value after the colon; empty if there is none."""

    def has(self, name: str) -> bool:
        """Whether the statement has a modifier."""
        return name in self.modifiers

    def number(self, name: str) -> int:
        """The number of a modifier; 0 if it is absent."""
        return integer(self.modifiers.get(name, "")) or 0

    def list(self, name: str) -> tuple[int, ...]:
        """The numbers of a modifier: `quad_perm:[1,0,3,2]`."""
        return tuple(integer(part.strip()) or 0 for part in self.modifiers[name].strip("[]").split(","))

    def select(self, name: str) -> Select | None:
        """The register part that an SDWA modifier selects; None for the whole register."""
        return _SELECTS.get(self.modifiers.get(name, ""))


_SELECTS: Mapping[str, Select] = {
    **{f"BYTE_{n}": Select(8 * n, 8) for n in range(4)},
    **{f"WORD_{n}": Select(16 * n, 16) for n in range(2)},
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
_WIDE: Mapping[str, tuple[str, ...]] = {
    "vcc": ("vcc_lo", "vcc_hi"),
    "exec": ("exec_lo", "exec_hi"),
    "flat_scratch": ("flat_scratch_lo", "flat_scratch_hi"),
    "xnack_mask": ("xnack_mask_lo", "xnack_mask_hi"),
}
_ONE = frozenset(("m0", "scc", *(name for pair in _WIDE.values() for name in pair)))
_FLOAT = re.compile(r"-?\d+\.\d*(?:[eE][-+]?\d+)?\Z")
MOST_REGISTERS = 1024


@lru_cache(maxsize=1 << 14)
def parse_statement(text: str) -> Statement:
    """Parse one statement; anything unknown becomes an operand of kind `OTHER`."""
    text = _RENAMED.sub(r"\1", text).strip()
    opcode, _, rest = text.partition(" ")
    base = _ENCODING.sub("", opcode)
    found = _FIRST_MODIFIER.search(rest)
    modifiers: dict[str, str] = {}
    if found is not None and not opcode.startswith(("s_waitcnt", "s_branch", "s_cbranch")):
        for name, value in _MODIFIER.findall(" " + rest[found.start() :]):
            modifiers[name] = value
        rest = rest[: found.start()]
    operands = tuple(_operand(part.strip()) for part in split_operands(rest)) if rest.strip() else ()
    return Statement(opcode, base, operands, modifiers)


def _operand(text: str) -> Operand:
    minus = absolute = False
    number = integer(text)
    if number is not None:
        return Operand(Bank.NUMBER, value=number)
    if _FLOAT.match(text):
        return Operand(Bank.FLOAT, value=struct.unpack("<I", struct.pack("<f", float(text)))[0])
    if text.startswith("-"):
        minus, text = True, text[1:]
    if text.startswith("|") and text.endswith("|"):
        absolute, text = True, text[1:-1]
    for name in ("neg", "abs", "sext", "lit"):
        if text.startswith(f"{name}(") and text.endswith(")"):
            inner = _operand(text[len(name) + 1 : -1])
            return inner._replace(
                minus=inner.minus or name == "neg",
                absolute=inner.absolute or name == "abs",
                extends=inner.extends or name == "sext",
            )
    names = _names(text)
    if names:
        bank = {"v": Bank.VECTOR, "a": Bank.ACCUMULATOR}.get(names[0][0], Bank.SCALAR)
        bank = Bank.SCALAR if names[0] in _ONE else bank
        return Operand(bank, names, minus=minus, absolute=absolute)
    if text in ("off", "null"):
        return Operand(Bank.NOTHING)
    return Operand(Bank.LABEL if text.startswith((".", "_")) or text.isidentifier() else Bank.OTHER, (text,))


def _names(text: str) -> tuple[str, ...]:
    if text in _ONE:
        return (text,)
    if text in _WIDE:
        return _WIDE[text]
    found = _REGISTER.match(text)
    if found is None:
        return ()
    bank = found[1]
    if found[2] is not None:
        return (f"{bank}{int(found[2])}",)
    first = int(found[3])
    last = first if found[4] is None else min(int(found[4]), first + MOST_REGISTERS)
    return tuple(f"{bank}{number}" for number in range(first, last + 1))
