"""Parts of a PTX file besides code: data sections, and arrays in local memory."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from artifact_inspector.formats.ptx.operands import NAME
from artifact_inspector.model import Function
from artifact_inspector.model.text import parse_integer

# Searching for a preceding newline is many times faster than `^`, which is tried at every position.
_SECTION = re.compile(r"\n[ \t]*\.section\b")
_LOCAL = re.compile(r"\.local[ \t]+\.align[ \t]+\d+[ \t]+\.b8[ \t]+[\w$.]+\[(\d+)\]")
_ENTRY = re.compile(r"\.entry\s+([\w$.%]+)")


def strip_data_sections(text: str) -> str:
    """The text with every data section replaced by as many newlines."""
    pieces: list[str] = []
    start = 0
    while (section := _SECTION.search(text, start)) is not None:
        opening = text.find("{", section.end())
        closing = text.find("}", section.end() if opening < 0 else opening)
        end = len(text) if closing < 0 else closing + 1
        pieces += (text[start : section.start()], "\n" * text.count("\n", section.start(), end))
        start = end
    return "".join([*pieces, text[start:]]) if pieces else text


def local_bytes(text: str, functions: Sequence[Function]) -> int | None:
    """Bytes of the local-memory array that the kernel declares (LLVM emits a single array).

    None if another function with an array is used: ptxas may add it to the kernel's frame.
    """
    kernel_arrays: list[int] = []
    kernels = set(_ENTRY.findall(text))
    starts = [function.line for function in functions]
    used_names: set[str] | None = None
    line, at = 1, 0
    for match in _LOCAL.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        function_index = bisect_right(starts, line) - 1
        owner = functions[function_index].name if function_index >= 0 else None
        if owner in kernels:
            kernel_arrays.append(parse_integer(match[1]) or 0)
        else:
            used_names = _used_names(functions) if used_names is None else used_names
            if owner is None or owner in used_names:
                return None
    return None if len(kernel_arrays) > 1 else sum(kernel_arrays)


def _used_names(functions: Sequence[Function]) -> set[str]:
    """Names of functions that may be called: used in a call, or their address is taken."""
    return {
        name
        for function in functions
        for instruction in function.instructions
        if instruction.opcode.startswith(("call", "mov"))
        for name in NAME.findall(instruction.text)
    }
