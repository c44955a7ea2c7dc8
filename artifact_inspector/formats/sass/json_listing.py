"""Converts the JSON of `nvdisasm -json` to the text that the tool prints.

Its instructions have no addresses, lines or encodings. They follow each other from the `start` of their function, 16
bytes each, and a branch names its target address.

**Source** CUDA Binary Utilities, "nvdisasm: JSON output", and the output of CUDA 12.8 and 13.1.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_WORD_BYTES = 16
_MISSING_COMMA = re.compile(r"(?<![\w.])(U?(?:R(?:\d+|Z)|P[\dT])(?:\.\w+)*)(?=(?:g?desc)?\[)")
"""`R12[R0+0x10]`, `R8desc[UR8][R8.64]`, `P4[UR20]`: the comma before an address may be missing."""
_COPY_OPERAND = re.compile(r"(?:g?desc\[\w+\])?\[[^][]*\]|!?U?P[\dT]")
"""An operand of LDGSTS, whose order is not kept: `P5[R85][R8.64]`, `desc[UR8][R2.64],!P1[R38+0x800]`."""


def listing_from_json(text: str) -> str:
    """The listing of a JSON disassembly; other text is unchanged."""
    if not text.lstrip().startswith("["):
        return text
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return text
    lines = list(_listing_lines(document))
    return "\n".join([*lines, ""]) if lines else text


def _listing_lines(document: object) -> Iterator[str]:
    if not isinstance(document, list):
        return
    for element in document:
        if isinstance(element, dict) and isinstance(element.get("SM"), dict):
            version = element["SM"].get("version")
            if isinstance(version, dict):
                yield f"\tcode for sm_{version.get('major')}{version.get('minor')}"
        elif isinstance(element, list):
            for function in element:
                if isinstance(function, dict):
                    yield from _function_lines(function)


def _function_lines(function: dict[str, object]) -> Iterator[str]:
    instructions, start = function.get("sass-instructions"), function.get("start")
    if not isinstance(instructions, list):
        return
    yield f"\t\tFunction : {function.get('function-name')}"
    address = start if isinstance(start, int) else 0
    for entry in instructions:
        instruction = entry if isinstance(entry, dict) else {}
        guard, opcode, operands = (_string_field(instruction, key) for key in ("predicate", "opcode", "operands"))
        if opcode.startswith("LDGSTS."):
            parts = _COPY_OPERAND.findall(operands)  # of the shared address, the global one (64 bits), the predicate
            operands = ", ".join(sorted(parts, key=lambda x: (not x.endswith("]"), "desc[" in x or ".64" in x)))
        operands = _MISSING_COMMA.sub(r"\1, ", operands)
        statement = f"{guard} {opcode} {operands}".strip()
        yield f"        /*{address:04x}*/                   {statement} ;"
        address += _WORD_BYTES


def _string_field(record: dict[str, object], key: str) -> str:
    value = record.get(key)
    return value.replace("\n", " ") if isinstance(value, str) else ""
