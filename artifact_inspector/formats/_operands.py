"""Splits the operands of machine code."""

from __future__ import annotations


def split_operands(text: str) -> list[str]:
    """The parts between commas that are outside brackets and braces.

    Example:
        >>> split_operands("R4, [R2.64+0x10], {R5, R6}")
        ['R4', ' [R2.64+0x10]', ' {R5, R6}']
    """
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        if letter in "{[(":
            depth += 1
        elif letter in "}])":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]
