"""Parts of a PTX file besides code: data sections, and arrays in local memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from artifact_inspector.formats.ptx.operands import NAME
from artifact_inspector.model import Function
from artifact_inspector.model.text import integer

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_SECTION = re.compile(r"\n[ \t]*\.section\b")
_LOCAL = re.compile(r"\.local[ \t]+\.align[ \t]+\d+[ \t]+\.b8[ \t]+[\w$.]+\[(\d+)\]")
_ENTRY = re.compile(r"\.entry\s+([\w$.%]+)")


def without_sections(text: str) -> str:
    """The text with every data section replaced by as many newlines."""
    parts: list[str] = []
    start = 0
    while (found := _SECTION.search(text, start)) is not None:
        opening = text.find("{", found.end())
        closing = text.find("}", found.end() if opening < 0 else opening)
        end = len(text) if closing < 0 else closing + 1
        parts += (text[start : found.start()], "\n" * text.count("\n", found.start(), end))
        start = end
    return "".join([*parts, text[start:]]) if parts else text


def local_bytes(text: str, functions: Sequence[Function]) -> int | None:
    """Bytes of the local-memory array that the kernel declares (LLVM emits a single array).

    None if another function with an array is used: ptxas may add it to the kernel's frame.
    """
    own: list[int] = []
    kernels = set(_ENTRY.findall(text))
    starts = [function.line for function in functions]
    used: set[str] | None = None
    line, at = 1, 0
    for found in _LOCAL.finditer(text):
        line, at = line + text.count("\n", at, found.start()), found.start()
        place = bisect_right(starts, line) - 1
        owner = functions[place].name if place >= 0 else None
        if owner in kernels:
            own.append(integer(found[1]) or 0)
        else:
            used = _used_names(functions) if used is None else used
            if owner is None or owner in used:
                return None
    return None if len(own) > 1 else sum(own)


def _used_names(functions: Sequence[Function]) -> set[str]:
    """Names of functions that may be called: used in a call, or their address is taken."""
    return {
        name
        for function in functions
        for instruction in function.instructions
        if instruction.opcode.startswith(("call", "mov"))
        for name in NAME.findall(instruction.text)
    }
