"""Broken files made of whole ones: a number chooses the damage, and the same number makes it again."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from enum import Enum

__all__ = ["Damage", "damage", "damage_bytes", "truncate"]

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[\w.$%#@!^]+")
_NUMBERS = ("0", "1", "-1", "7", "255", "65535", "2147483647", "4294967296", "9" * 19, "1" * 40, "1" * 5000, "")
_PIECES = (
    *"{}()[]<>,:;@%!#^=\"'`\\/*|~?$\0\r\n\t \x1b½",
    "::",
    "->",
    "//",
    "/*",
    "*/",
    "\n\n",
    "({",
    "})",
    "} else {",
    "} do {",
    "scf.yield",
    "loc(",
    "#loc",
    "loc(callsite(#loc1 at #loc1))",
    "^bb1:",
    "tensor<1x",
    "!tt.ptr<",
    "module {",
    "tt.func public @k(",
    "define void @k(",
    "!dbg !3",
    "br label %1",
    "bra $L1;",
    ".loc 1 1 1",
    ".entry k(",
    "s_branch .L1",
    ".Lfunc_end0:",
    "; %bb.0:",
    "// %bb.0:",
    "/*0000*/ NOP ;",
    "0x",
    "\ud800",
    "\ufffd",
)


class Damage(Enum):
    """What is done to a file."""

    TRUNCATE = "cut off"
    CUT = "a piece taken out"
    REPEAT = "a piece repeated"
    INSERT = "something put in"
    NUMBER = "a number changed"
    WORD = "a word replaced by another of the file"
    LINE = "a line moved"
    SPLICE = "a piece of another file put in"
    BYTE = "a character changed"


def truncate(text: str, chance: random.Random) -> str:
    """The text up to somewhere: at the end of a line as often as within one."""
    at = chance.randrange(len(text) + 1)
    if chance.random() < 0.5:
        at = text.rfind("\n", 0, at) + 1
    return text[:at]


def damage(text: str, others: Sequence[str], chance: random.Random) -> str:
    """The text with one to four things done to it."""
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        text = _once(text, others, chance.choice(tuple(Damage)), chance)
    return text


def _once(text: str, others: Sequence[str], what: Damage, chance: random.Random) -> str:
    if not text or what is Damage.INSERT:
        at = chance.randrange(len(text) + 1)
        return text[:at] + chance.choice(_PIECES) * chance.choice((1, 1, 1, 3, 300)) + text[at:]
    if what is Damage.TRUNCATE:
        return truncate(text, chance)
    if what is Damage.NUMBER or what is Damage.WORD:
        found = list((_NUMBER if what is Damage.NUMBER else _WORD).finditer(text))
        if not found:
            return text
        place = chance.choice(found)
        new = chance.choice(_NUMBERS) if what is Damage.NUMBER else chance.choice(found)[0]
        return text[: place.start()] + new + text[place.end() :]
    if what is Damage.LINE:
        lines = text.split("\n")
        lines.insert(chance.randrange(len(lines)), lines.pop(chance.randrange(len(lines))))
        return "\n".join(lines)
    if what is Damage.SPLICE:
        other = chance.choice(others)
        start, at = chance.randrange(len(other) + 1), chance.randrange(len(text) + 1)
        return text[:at] + other[start : start + chance.choice((20, 200, 2000))] + text[at:]
    at = chance.randrange(len(text))
    if what is Damage.BYTE:
        return text[:at] + chr(chance.choice((chance.randrange(128), chance.randrange(0x2500)))) + text[at + 1 :]
    stop = min(len(text), at + chance.choice((1, 2, 8, 40, 200, 2000)))
    piece = text[at:stop] * chance.choice((2, 3, 50)) if what is Damage.REPEAT else ""
    return text[:at] + piece + text[stop:]


def damage_bytes(content: bytes, chance: random.Random) -> bytes:
    """A binary with one to eight of its bytes or words changed, or cut off."""
    broken = bytearray(content)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(max(1, len(broken) - 8))
        what = chance.randrange(4)
        if what == 0:
            broken[at] = chance.randrange(256)
        elif what == 1:
            broken[at : at + 8] = chance.choice((b"\0" * 8, b"\xff" * 8, b"\xff\xff\xff\x7f\0\0\0\0"))
        elif what == 2:
            at &= -16
            broken[at : at + 16] = chance.randbytes(16)
        elif chance.random() < 0.2:
            del broken[at:]
    return bytes(broken)
