"""Parses one SASS statement: guard, opcode with its modifiers, and operands as values.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes; the operand syntax is taken from
nvdisasm's output for sm_75 to sm_120. `@!P0 IMAD.WIDE.U32 R2, R3, c[0x0][0x210], R4` has a guard, an opcode, two
modifiers and four operands.

Unknown text becomes an operand of kind `TEXT`: no operand is dropped.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.formats._format import DECODE_CACHE_SIZE
from artifact_inspector.formats._operands import split_operands
from artifact_inspector.formats.sass.instructions import bytes_moved as bytes_moved
from artifact_inspector.model.text import parse_integer

__all__ = ["SassOperand", "SassOperandKind", "SassStatement", "bytes_moved", "parse_statement"]


class SassOperandKind(Enum):
    """Kind of an operand."""

    REGISTER = "register"
    """`R12`, `UR4`, `RZ`; `B0` holds the lanes of a convergence barrier."""
    PREDICATE = "predicate"
    """`P0`, `UP3`, `PT`."""
    NUMBER = "number"
    """An integer, with its sign: `-0x40`."""
    FLOAT = "float"
    """A floating-point literal: `1.5`, `+INF`."""
    CONSTANT = "constant"
    """`c[0x0][0x210]`; its offset may include registers: `c[0x0][R5+0x10]`."""
    ADDRESS = "address"
    """`[R2.64+UR4+0x80]`, `desc[UR24][R2.64]`; an LDGSTS has two."""
    LABEL = "label"
    """Target of a branch."""
    TEXT = "text"
    """Anything else: `SR_TID.X`, `gdesc[UR8].tnspB`, `gsb0`."""

    __hash__ = object.__hash__


class SassOperand(NamedTuple):
    """One operand as written."""

    kind: SassOperandKind
    name: str = ""
    """The register, predicate or label; for other kinds the text."""
    is_negated: bool = False
    is_inverted: bool = False
    """`~R2` or `!P0`."""
    is_absolute: bool = False
    suffixes: tuple[str, ...] = ()
    """Suffixes of a register: `H1_H1`, `64`, `X4`; without `reuse`."""
    value: int = 0
    """The number, or the offset of an address or of a constant in its bank."""
    bank: int = 0
    """Bank of a constant."""
    address_registers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Registers that an address adds, with their suffixes."""
    prefix: str = ""
    """Prefix of the brackets: `desc`, `gdesc`, `tmem`, `cx`."""
    descriptor: str = ""
    """The register that holds a descriptor."""
    float_value: float = 0.0
    """The number as a float if written in decimal: `105615` may be an operand of a float instruction."""

    @property
    def real(self) -> float:
        """The literal of a float instruction; a zero keeps its sign (`HFMA2.MMA R29, -RZ, RZ, 0, -0.0`)."""
        return self.float_value if self.float_value or not self.value else float(self.value)


class SassStatement(NamedTuple):
    """One statement."""

    guard: str | None
    """The guard predicate."""
    is_guard_negated: bool
    """True if the guard is negated."""
    opcode: str
    """With its modifiers."""
    base: str
    modifiers: tuple[str, ...]
    operands: tuple[SassOperand, ...]

    def has_modifier(self, modifier: str) -> bool:
        """Whether the opcode has a modifier."""
        return modifier in self.modifiers


_STATEMENT = re.compile(r"(?:@(!?)(U?P\w+)\s+)?([A-Z][\w.:]*)\s*(.*)", re.S)
_REGISTER = re.compile(r"(-?)(~?)(-?)(\|?)(U?R(?:\d{1,3}|Z)|B\d{1,2}|SB\d)((?:\.\w+)*)(?:\|((?:\.\w+)*))?$")
_PREDICATE = re.compile(r"([!~]?)(U?P(?:\d|T))((?:\.\w+)*)$")
_INTEGER = re.compile(r"(-?)(0x[0-9a-f]+|\d+)$")
_FLOAT = re.compile(r"([+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+|INF|QNAN|SNAN|NAN))(?:\.[a-z]\w*)?$", re.I | re.A)
_CONSTANT = re.compile(r"([-~!]?)(-?)(\|?)(cx?)\[([^\]]*)\]\[([^\]]*)\](\|?)((?:\.\w+)*)$")
_ADDRESS = re.compile(r"(?:(\w+))?(?:\[([^\]]*)\])?\[([^\]]*)\]((?:\.\w+)*)$")
_SUM_TERM = re.compile(r"([+-]?)\s{0,8}(U?R(?:\d{1,3}|Z)|0x[0-9a-f]+|\d+)((?:\.\w+)*)")
_RELATIVE_GAP = re.compile(r"(?<=\w)\s+(?=`\(|-?0x)")
"""Between a register and the location that it is relative to: `R18 `(kernel)`, `R4 -0x30`."""
_TARGET = re.compile(r"`\(([^)`]*)\)$")


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def parse_statement(text: str) -> SassStatement:
    """The statement in a line of SASS, without its address and semicolon.

    Example:
        >>> found = parse_statement("@!P0 IADD3 R2, P1, R3, -0x10, RZ")
        >>> found.base, found.guard, found.is_guard_negated, [o.name or hex(o.value) for o in found.operands]
        ('IADD3', 'P0', True, ['R2', 'P1', 'R3', '-0x10', 'RZ'])
    """
    match = _STATEMENT.match(text.strip().rstrip(";").strip())
    if match is None:
        return SassStatement(None, False, "", "", (), ())
    opcode = match[3]
    base, *modifiers = opcode.split(".")
    operand_list = match[4].partition("(*")[0].strip()
    parts = split_operands(operand_list) if operand_list else ()
    operands = tuple(_parse_operand(text) for part in parts for text in _RELATIVE_GAP.split(part.strip()))
    return SassStatement(match[2], bool(match[1]), opcode, base, tuple(modifiers), operands)


def _suffixes(*texts: str) -> tuple[str, ...]:
    return tuple(suffix for text in texts for suffix in text.split(".") if suffix and suffix != "reuse")


def _parse_operand(text: str) -> SassOperand:
    if match := _REGISTER.match(text):
        return SassOperand(
            SassOperandKind.REGISTER,
            match[5],
            is_negated=bool(match[1] or match[3]),
            is_inverted=bool(match[2]),
            is_absolute=bool(match[4]),
            suffixes=_suffixes(match[6], match[7] or ""),
        )
    if match := _PREDICATE.match(text):
        suffixes = _suffixes(match[3])
        return SassOperand(SassOperandKind.PREDICATE, match[2], is_inverted=bool(match[1]), suffixes=suffixes)
    if match := _INTEGER.match(text):
        number = parse_integer(match[2])
        if number is None:
            return SassOperand(SassOperandKind.TEXT, text)
        real = 0.0 if "x" in match[2] else _parse_float(text)
        return SassOperand(SassOperandKind.NUMBER, value=-number if match[1] else number, float_value=real)
    if match := _FLOAT.match(text):
        return SassOperand(SassOperandKind.FLOAT, text, float_value=_parse_float(match[1]))
    if match := _CONSTANT.match(text):
        return _parse_constant(match)
    if match := _ADDRESS.match(text):
        address_registers, offset = _split_sum(match[3])
        return SassOperand(
            SassOperandKind.ADDRESS,
            text,
            suffixes=_suffixes(match[4]),
            value=offset,
            address_registers=address_registers,
            prefix=match[1] or "",
            descriptor=(match[2] or "").partition(".")[0],
        )
    label = _TARGET.search(text)
    return SassOperand(SassOperandKind.TEXT, text) if label is None else SassOperand(SassOperandKind.LABEL, label[1])


def _parse_float(text: str) -> float:
    return float("nan" if "NAN" in text.upper() else text)


def _parse_constant(match: re.Match[str]) -> SassOperand:
    address_registers, offset = _split_sum(match[6])
    bank_registers, bank_number = _split_sum(match[5])
    return SassOperand(
        SassOperandKind.CONSTANT, is_negated="-" in (match[1], match[2]), is_inverted=match[1] in ("~", "!"),
        is_absolute=bool(match[3]), suffixes=_suffixes(match[8]), value=offset, bank=bank_number,
        address_registers=address_registers, prefix=match[4],
        descriptor=bank_registers[0][0] if bank_registers else "",
    )  # fmt: skip


def _split_sum(text: str) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], int]:
    registers, offset = [], 0
    for sign, name, suffix in _SUM_TERM.findall(text):
        if name[0] in "RU":
            registers.append((name, _suffixes(suffix)))
        else:
            offset += (parse_integer(name) or 0) * (-1 if sign == "-" else 1)
    return tuple(registers), offset
