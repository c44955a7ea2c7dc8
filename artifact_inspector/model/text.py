"""Named text: lines, columns, excerpts with a caret; splitting of lists."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from artifact_inspector.model.limits import DIGITS

EXCERPT_WIDTH = 160
_DIGITS = DIGITS.value
_NEWLINE = re.compile("\n")
_EVEN = re.compile(r"(?:IS_)?(?:EVEN|DIVISIBLE)_?(\w+)", re.IGNORECASE)

_MARKS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[(\[{<,)\]}]|(?<!-)>', re.S)
_OPENING = "([{<"
_MAX_NESTING = 32
"""Nesting limit of brackets. Deeper brackets count as unclosed, which keeps splitting of nested lists linear."""


@dataclass(frozen=True)
class SourceText:
    """The text of one file with its display name (a path relative to the cache)."""

    name: str
    text: str

    @cached_property
    def line_starts(self) -> list[int]:
        """Offset of the first character of every line; computed on first use."""
        return [0, *(match.end() for match in _NEWLINE.finditer(self.text))]

    def line_at(self, offset: int) -> int:
        """The 1-based line of the character at `offset`."""
        return bisect_right(self.line_starts, offset)

    def line_text(self, line: int) -> str:
        """The text of a 1-based line, without its newline; empty beyond the end."""
        starts = self.line_starts
        if not 1 <= line <= len(starts):
            return ""
        end = starts[line] - 1 if line < len(starts) else len(self.text)
        return self.text[starts[line - 1] : end]

    def position(self, offset: int) -> SourcePosition:
        """The position of the character at `offset`."""
        line = self.line_at(offset)
        return SourcePosition(self, line, offset - self.line_starts[line - 1] + 1)

    def line_position(self, line: int) -> SourcePosition:
        """The position of the first character of a 1-based line that is not white space."""
        text = self.line_text(line)
        return SourcePosition(self, line, len(text) - len(text.lstrip()) + 1)


class SourcePosition(NamedTuple):
    """A position in a text; line and column are 1-based."""

    source: SourceText
    line: int
    column: int

    @property
    def label(self) -> str:
        """`name:line:column`, as editors understand it."""
        return f"{self.source.name}:{self.line}:{self.column}"

    @property
    def excerpt(self) -> str:
        """The line with a caret under the column; a long line is truncated around the caret."""
        text = self.source.line_text(self.line).replace("\t", " ")
        column = self.column - 1
        first = max(0, column - EXCERPT_WIDTH // 2)
        return f"  {text[first : first + EXCERPT_WIDTH]}\n  {' ' * (column - first)}^"


def parse_integer(literal: str) -> int | None:
    """The value of an integer literal: `-16`, `0x10`, also with leading zeros.

    None for other text, and for a number with more digits than `limits.DIGITS`: no compiler writes one.

    Example:
        >>> parse_integer("016"), parse_integer("0x10"), parse_integer("1" * 5000), parse_integer("sixteen")
        (16, 16, None, None)
    """
    sign, digits = (-1, literal[1:]) if literal[:1] == "-" else (1, literal)
    if len(digits) > _DIGITS + 2 or not digits.isascii():
        return None
    if digits.isdecimal():
        return sign * int(digits) if len(digits) <= _DIGITS else None
    if digits[:2] in ("0x", "0X") and digits[2:].isalnum():
        try:
            return sign * int(digits, 16)
        except ValueError:
            return None
    return None


def split_list(text: str, at: int = 0) -> list[str]:
    """The elements between the commas outside brackets and quotes, stripped, without empty ones.

    The list ends at the bracket that closes one opened before `at`, or at the end of the text.

    Example:
        >>> split_list("a, tensor<2x2, #b>, (c, d)) -> e, f")
        ['a', 'tensor<2x2, #b>', '(c, d)']
    """
    elements, end = _split_elements(text, at)
    return [element for element in (*elements, text[end[0] : end[1]].strip()) if element]


def split_closed_list(text: str, at: int) -> list[str]:
    """The elements of a list that a bracket closes; an empty list if no bracket closes it."""
    elements, end = _split_elements(text, at)
    return [*elements, text[end[0] : end[1]].strip()] if end[1] < len(text) else []


def split_brackets(text: str, brackets: Collection[int]) -> dict[int, list[str]]:
    """The elements of several bracketed lists of a text, nested or not, in one pass.

    Returns:
        Bracket → its elements; an unclosed bracket is omitted.

    Example:
        >>> split_brackets("a<b, c<d>> e<f", {1, 6, 12})
        {6: ['d'], 1: ['b', 'c<d>']}
    """
    elements: dict[int, list[str]] = {}
    stack: list[tuple[int, list[int]]] = []
    """Open brackets: position, and the starts of the elements for a requested bracket."""
    for mark in _MARKS.finditer(text):
        character, at = mark[0][0], mark.start()
        if character in _OPENING:
            stack.append((at, [at + 1] if at in brackets else []))
            if len(stack) > _MAX_NESTING + 1:
                stack[-_MAX_NESTING - 2][1].clear()
        elif character == ",":
            if stack and stack[-1][1]:
                stack[-1][1].append(at + 1)
        elif character != '"' and stack:
            opening, starts = stack.pop()
            if starts:
                stops = (*(start - 1 for start in starts[1:]), at)
                elements[opening] = [text[a:b].strip() for a, b in zip(starts, stops, strict=True)]
    return elements


def _split_elements(text: str, at: int) -> tuple[list[str], tuple[int, int]]:
    """The elements that end with a comma, and the start and end of the last one."""
    elements: list[str] = []
    depth = 0
    for mark in _MARKS.finditer(text, at):
        character = mark[0][0]
        if character in _OPENING:
            depth += 1
            if depth > _MAX_NESTING:
                break
        elif character == ",":
            if depth == 0:
                elements.append(text[at : mark.start()].strip())
                at = mark.end()
        elif character != '"':
            depth -= 1
            if depth < 0:
                return elements, (at, mark.start())
    return elements, (at, len(text))


def split_option_values(texts: Iterable[str]) -> list[str]:
    """The comma-separated values of an option that may be repeated.

    Example:
        >>> split_option_values(["sm_80, T4", "gfx942,"])
        ['sm_80', 'T4', 'gfx942']
    """
    return [value.strip() for text in texts for value in text.split(",") if value.strip()]


def find_even_extents(constants: Mapping[str, object]) -> set[str]:
    """Extents that constants of `triton.heuristics` declare to be multiples of their tile, in lower case.

    Example:
        >>> find_even_extents({"EVEN_K": True, "DIVISIBLE_M": False, "BLOCK_K": 64})
        {'k'}
    """
    matches = (_EVEN.fullmatch(name) for name, value in constants.items() if value is True)
    return {match[1].lower() for match in matches if match is not None}
