"""LLVM's machine IR for AMD between code generator passes: the order of loads and computes.

Source: llvm/lib/CodeGen/MachineInstr.cpp, `MachineInstr::print`: `%0:vgpr_32 = OPCODE operands, debug-location !7;
file.py:31:37`. Opcodes are those of the assembly in capitals, with a suffix for the encoding (llvm/lib/Target/AMDGPU).

Cannot read: blocks and registers; other targets.
"""

from __future__ import annotations

import re
from itertools import groupby

from artifact_inspector.formats.amdgcn.parser import OPCODES
from artifact_inspector.model import EventKind

_INSTRUCTION = re.compile(
    r"^(?:\d+B)?[ \t]+(?:[^\s=;\"][^=;\"\n]* = )?"
    r"(?:(?:nofpexcept|nnan|ninf|nsz|contract|nuw|nsw|reassoc|afn|arcp|frame-setup|exact)\s)*"
    r"(?P<opcode>[A-Z][A-Z0-9]*_\w+)\b(?P<rest>[^\n]*)",
    re.M,
)
_LOCATION = re.compile(r"; (?P<file>[^\s:;]+):(?P<line>\d+):\d+")
_ENCODING = re.compile(r"_(?:e32|e64|sdwa|dpp|gfx\d+|vi|soft|offen|offset|saddr|sgpr|imm)\w*")
_LETTERS = {EventKind.GLOBAL_LOAD: "L", EventKind.ASYNC_COPY: "A", EventKind.MATRIX: "M", EventKind.FLOAT: "F"}


def machine_order(text: str) -> tuple[str, ...]:
    """Loads, with their source lines, and computes in text order; consecutive equal entries are merged.

    Example:
        >>> machine_order("  %1:vreg_64 = GLOBAL_LOAD_DWORDX2 %0, debug-location !7; a.py:9:5")
        ('L(9)',)
    """
    events: list[str] = []
    for match in _INSTRUCTION.finditer(text):
        opcode = match["opcode"].lower()
        while opcode != (shorter := _ENCODING.sub("", opcode)):
            opcode = shorter
        letter = _LETTERS.get(OPCODES.kind(opcode))
        location = _LOCATION.search(match["rest"])
        if letter is not None:
            events.append(f"{letter}({location['line']})" if letter in "LA" and location is not None else letter)
    return tuple(event for event, _ in groupby(events))
