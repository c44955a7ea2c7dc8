"""Splits an MLIR file (`.mlir`) into its Triton kernels: LLVM's lit tests have several modules and functions.

Modules are separated by `// -----`. Each `tt.func` with a body becomes one stage of one kernel, on its own lines:
what belongs to other functions and modules is left blank. Comments are dropped and an operation over several lines
is joined on its first, as Triton prints it. A module with GPU layouts is TTGIR, else TTIR.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

SUFFIX = ".mlir"
_SEPARATOR = re.compile(r"\s*// -----")
_FUNCTION = re.compile(r"\s*tt\.func\s+(?:(?:public|private|nested)\s+)?@\"?([\w.$-]+)")
_GPU = re.compile(r"\b(?:ttg|ttng|triton_gpu|triton_nvidia_gpu|amdgpu|amdg|tlx|gluon)\.")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//.*')
_RESULT = re.compile(r"^(\s*%[\w.$%:, -]*?) *= +")
_SPACES = re.compile(r"^(\s*tt\.func \w+) +(?=@)")
_CONTINUATION = re.compile(r"\s*(?::|->|!|attributes\b|iter_args\b|to |step |\*|<\{|\{ *[\w.]+ *(?:[=,]|$))")
_UNFINISHED = re.compile(r"(?:[,:=*]|->|\b(?:to|public|private))$")


class ModuleFunction(NamedTuple):
    """One function of an MLIR file."""

    name: str
    suffix: str
    """`ttir` or `ttgir`."""
    text: str


def split_functions(text: str) -> Iterator[ModuleFunction]:
    """The functions with a body."""
    lines = text.splitlines()
    starts = [0, *(number + 1 for number, line in enumerate(lines) if _SEPARATOR.match(line))]
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        module = [
            _SPACES.sub(r"\1 ", _RESULT.sub(r"\1 = ", _COMMENT.sub(r"\1", line))).rstrip() for line in lines[start:end]
        ]
        module = _join_operations(module)
        suffix = "ttgir" if any(_GPU.search(line) for line in module) else "ttir"
        functions = list(_functions(module))
        for name, first, _ in functions:
            others = {n for _, low, high in functions if low != first for n in range(low, high)}
            kept = ["" if n in others else line for n, line in enumerate(module)]
            yield ModuleFunction(name, suffix, "\n" * start + "\n".join(kept) + "\n")


def _join_operations(lines: list[str]) -> list[str]:
    """The lines with each operation on its first one."""
    joined, number = [""] * len(lines), 0
    while number < len(lines):
        first, depth = number, 0
        joined[first] = lines[first]
        while number < len(lines):
            code = _TEXT.sub("", lines[number])
            depth += sum(map(code.count, "([")) - sum(map(code.count, ")]"))
            if number > first:
                joined[first] = f"{joined[first]} {lines[number].strip()}".rstrip()
            number += 1
            is_region = code.endswith("({")
            is_label = code.lstrip().startswith("^")
            has_more = not is_label and (
                _UNFINISHED.search(code) or (number < len(lines) and _CONTINUATION.match(lines[number]))
            )
            if is_region or (depth <= 0 and not (has_more and lines[first].strip())):
                break
    return joined


def _functions(lines: list[str]) -> Iterator[tuple[str, int, int]]:
    """Name, first line and the line after the last one of each function; declarations are left out."""
    number = 0
    while number < len(lines):
        match = _FUNCTION.match(lines[number])
        if match is None:
            number += 1
            continue
        first, parentheses, braces, is_open = number, 0, 0, False
        while number < len(lines):
            code = _TEXT.sub("", lines[number]).rstrip()
            parentheses += code.count("(") - code.count(")")
            braces += code.count("{") - code.count("}")
            is_open = is_open or (parentheses == 0 and braces > 0 and code.endswith("{"))
            number += 1
            if parentheses == 0 and braces == 0:
                break
        if is_open:
            yield match[1], first, number


def write_functions(text: str, into: Path, spend: Callable[[int], None]) -> int:
    """Write each function into a directory of its own.

    Args:
        spend: called with the size of each; raises where they are too many.

    Returns:
        Their number.
    """
    count = 0
    for count, function in enumerate(split_functions(text), 1):
        directory = into / f"{count:03}-{function.name[:100]}"
        spend(len(function.text))
        directory.mkdir()
        (directory / f"{function.name[:150]}.{function.suffix}").write_text(function.text, encoding="utf-8")
    return count
