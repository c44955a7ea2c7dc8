"""Parses one SASS statement: guard, opcode with its modifiers, and operands as values.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes; the operand syntax is taken
from nvdisasm's output for sm_75 to sm_120. `@!P0 IMAD.WIDE.U32 R2, R3, c[0x0][0x210], R4` has a guard, an
opcode, two modifiers and four operands.

Unknown text becomes an operand of kind `TEXT`: no operand is dropped.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.formats._operands import split_operands
from artifact_inspector.formats._scan import DECODED
from artifact_inspector.formats.sass.instructions import bytes_of as bytes_moved
from artifact_inspector.model.text import integer

__all__ = ["Operand", "OperandKind", "Statement", "bytes_moved", "parse_statement"]


class OperandKind(Enum):
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


class Operand(NamedTuple):
    """One operand as written."""

    kind: OperandKind
    name: str = ""
    """The register, predicate or label; for other kinds the text."""
    minus: bool = False
    invert: bool = False
    """`~R2` or `!P0`."""
    absolute: bool = False
    suffix: tuple[str, ...] = ()
    """Suffixes of a register: `H1_H1`, `64`, `X4`; without `reuse`."""
    value: int = 0
    """The number, or the offset of an address or of a constant in its bank."""
    bank: int = 0
    """Bank of a constant."""
    parts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Registers that an address adds, with their suffixes."""
    prefix: str = ""
    """Prefix of the brackets: `desc`, `gdesc`, `tmem`, `cx`."""
    descriptor: str = ""
    """The register that holds a descriptor."""
    real: float = 0.0
    """The number as a float if written in decimal: `105615` may be an operand of a float instruction."""


class Statement(NamedTuple):
    """One statement."""

    guard: str | None
    """The guard predicate."""
    unless: bool
    """True if the guard is negated."""
    opcode: str
    """With its modifiers."""
    base: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]

    def has(self, modifier: str) -> bool:
        """Whether the opcode has a modifier."""
        return modifier in self.modifiers


_STATEMENT = re.compile(r"(?:@(!?)(U?P\w+)\s+)?([A-Z][\w.:]*)\s*(.*)", re.S)
_REGISTER = re.compile(r"(-?)(~?)(-?)(\|?)(U?R(?:\d{1,3}|Z)|B\d{1,2}|SB\d)((?:\.\w+)*)(?:\|((?:\.\w+)*))?$")
_PREDICATE = re.compile(r"([!~]?)(U?P(?:\d|T))((?:\.\w+)*)$")
_INTEGER = re.compile(r"(-?)(0x[0-9a-f]+|\d+)$")
_FLOAT = re.compile(
    r"([+-]?(?:\d+(?:\.\d*)?(?:e[+-]?\d+)?|\.\d+|INF|QNAN|SNAN|NAN))(?:\.[a-z]\w*)?$", re.I | re.A
)
_CONSTANT = re.compile(r"([-~!]?)(-?)(\|?)(cx?)\[([^\]]*)\]\[([^\]]*)\](\|?)((?:\.\w+)*)$")
_ADDRESS = re.compile(r"(?:(\w+))?(?:\[([^\]]*)\])?\[([^\]]*)\]((?:\.\w+)*)$")
_PART = re.compile(r"([+-]?)\s{0,8}(U?R(?:\d{1,3}|Z)|0x[0-9a-f]+|\d+)((?:\.\w+)*)")
_BESIDE = re.compile(r"(?<=\w)\s+(?=`\(|-?0x)")
"""Between a register and the location that it is relative to: `R18 `(kernel)`, `R4 -0x30`."""
_TARGET = re.compile(r"`\(([^)`]*)\)$")


@lru_cache(maxsize=DECODED)
def parse_statement(text: str) -> Statement:
    """The statement in a line of SASS, without its address and semicolon.

    Example:
        >>> found = parse_statement("@!P0 IADD3 R2, P1, R3, -0x10, RZ")
        >>> found.base, found.guard, found.unless, [o.name or hex(o.value) for o in found.operands]
        ('IADD3', 'P0', True, ['R2', 'P1', 'R3', '-0x10', 'RZ'])
    """
    found = _STATEMENT.match(text.strip().rstrip(";").strip())
    if found is None:
        return Statement(None, False, "", "", (), ())
    opcode = found[3]
    base, *modifiers = opcode.split(".")
    rest = found[4].partition("(*")[0].strip()
    parts = (piece for part in split_operands(rest) for piece in _BESIDE.split(part.strip())) if rest else ()
    operands = tuple(_operand(part) for part in parts)
    return Statement(found[2], bool(found[1]), opcode, base, tuple(modifiers), operands)


def _suffixes(*texts: str) -> tuple[str, ...]:
    return tuple(part for text in texts for part in text.split(".") if part and part != "reuse")


def _operand(text: str) -> Operand:
    found = _REGISTER.match(text)
    if found is not None:
        return Operand(
            OperandKind.REGISTER,
            found[5],
            minus=bool(found[1] or found[3]),
            invert=bool(found[2]),
            absolute=bool(found[4]),
            suffix=_suffixes(found[6], found[7] or ""),
        )
    found = _PREDICATE.match(text)
    if found is not None:
        return Operand(OperandKind.PREDICATE, found[2], invert=bool(found[1]), suffix=_suffixes(found[3]))
    found = _INTEGER.match(text)
    if found is not None:
        number = integer(found[2])
        if number is None:
            return Operand(OperandKind.TEXT, text)
        real = 0.0 if "x" in found[2] else _real(text)
        return Operand(OperandKind.NUMBER, value=-number if found[1] else number, real=real)
    found = _FLOAT.match(text)
    if found is not None:
        return Operand(OperandKind.FLOAT, text, real=_real(found[1]))
    found = _CONSTANT.match(text)
    if found is not None:
        return _constant(found)
    found = _ADDRESS.match(text)
    if found is not None:
        parts, offset = _parts(found[3])
        return Operand(
            OperandKind.ADDRESS,
            text,
            suffix=_suffixes(found[4]),
            value=offset,
            parts=parts,
            prefix=found[1] or "",
            descriptor=(found[2] or "").partition(".")[0],
        )
    found = _TARGET.search(text)
    return Operand(OperandKind.LABEL, found[1]) if found is not None else Operand(OperandKind.TEXT, text)


def _real(text: str) -> float:
    return float("nan" if "NAN" in text.upper() else text)


def _constant(found: re.Match[str]) -> Operand:
    parts, offset = _parts(found[6])
    bank, where = _parts(found[5])
    return Operand(
        OperandKind.CONSTANT,
        minus="-" in (found[1], found[2]),
        invert=found[1] in ("~", "!"),
        absolute=bool(found[3]),
        suffix=_suffixes(found[8]),
        value=offset,
        bank=where,
        parts=parts,
        prefix=found[4],
        descriptor=bank[0][0] if bank else "",
    )


def _parts(text: str) -> tuple[tuple[tuple[str, tuple[str, ...]], ...], int]:
    parts, offset = [], 0
    for sign, name, suffix in _PART.findall(text):
        if name[0] in "RU":
            parts.append((name, _suffixes(suffix)))
        else:
            offset += (integer(name) or 0) * (-1 if sign == "-" else 1)
    return tuple(parts), offset
