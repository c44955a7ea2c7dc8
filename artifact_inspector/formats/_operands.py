"""Splits the operands of machine code."""

from __future__ import annotations


def split_operands(text: str) -> list[str]:
    """The parts between commas that are outside brackets and braces.

    Example:
        >>> split_operands("R4, [R2.64+0x10], {R5, R6}")
        ['R4', ' [R2.64+0x10]', ' {R5, R6}']
    """
    operands, depth, start = [], 0, 0
    for at, character in enumerate(text):
        if character in "{[(":
            depth += 1
        elif character in "}])":
            depth -= 1
        elif character == "," and depth == 0:
            operands.append(text[start:at])
            start = at + 1
    return [*operands, text[start:]]
