"""Converts the JSON of `nvdisasm -json` to the text that the tool prints.

Its instructions have no addresses, lines or encodings. They follow each other from the `start` of their
function, 16 bytes each, and a branch names its target address.

**Source** CUDA Binary Utilities, "nvdisasm: JSON output", and the output of CUDA 12.8 and 13.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_WORD_BYTES = 16
_JOINED = re.compile(r"(?<![\w.])(U?(?:R(?:\d+|Z)|P[\dT])(?:\.\w+)*)(?=(?:g?desc)?\[)")
"""`R12[R0+0x10]`, `R8desc[UR8][R8.64]`, `P4[UR20]`: the comma before an address may be missing."""
_OF_COPY = re.compile(r"(?:g?desc\[\w+\])?\[[^][]*\]|!?U?P[\dT]")
"""An operand of LDGSTS, whose order is not kept: `P5[R85][R8.64]`, `desc[UR8][R2.64],!P1[R38+0x800]`."""


def as_listing(text: str) -> str:
    """The listing of a JSON disassembly; other text is unchanged."""
    if not text.lstrip().startswith("["):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    lines = list(_lines(found))
    return "\n".join([*lines, ""]) if lines else text


def _lines(found: object) -> Iterator[str]:
    if not isinstance(found, list):
        return
    for part in found:
        if isinstance(part, dict) and isinstance(part.get("SM"), dict):
            version = part["SM"].get("version")
            if isinstance(version, dict):
                yield f"\tcode for sm_{version.get('major')}{version.get('minor')}"
        elif isinstance(part, list):
            for function in part:
                if isinstance(function, dict):
                    yield from _function(function)


def _function(function: dict[str, object]) -> Iterator[str]:
    instructions, start = function.get("sass-instructions"), function.get("start")
    if not isinstance(instructions, list):
        return
    yield f"\t\tFunction : {function.get('function-name')}"
    address = start if isinstance(start, int) else 0
    for found in instructions:
        said = found if isinstance(found, dict) else {}
        guard, opcode, operands = (_string(said, key) for key in ("predicate", "opcode", "operands"))
        if opcode.startswith("LDGSTS."):
            operands = ", ".join(sorted(_OF_COPY.findall(operands), key=_place_in_copy))
        operands = _JOINED.sub(r"\1, ", operands)
        statement = f"{guard} {opcode} {operands}".strip()
        yield f"        /*{address:04x}*/                   {statement} ;"
        address += _WORD_BYTES


def _string(found: dict[str, object], key: str) -> str:
    said = found.get(key)
    return said.replace("\n", " ") if isinstance(said, str) else ""


def _place_in_copy(operand: str) -> int:
    """Position of an operand in a listing: the shared address, the global one (64 bits), the predicate."""
    if not operand.endswith("]"):
        return 2
    return 1 if "desc[" in operand or ".64" in operand else 0
