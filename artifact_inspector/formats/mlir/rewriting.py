"""Rewrites saved tensor-level IR as if other compile options had been used.

Source: Triton's printer of `tt.func` (arguments with their attributes) and of `tt.dot` (`inputPrecision`, Triton 3.0
and later).
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^[ \t]*tt\.func public @.*$", re.M)
_DIVISOR = re.compile(r"tt\.divisibility = \d+ : i32")
_DOT = re.compile(r"^([ \t]*%\S+ = tt\.dot [^:\n]*?)(?:, inputPrecision = \w+)?( : tensor<\w+xf32)", re.M)


def with_divisor(text: str, argument: str, divisor: int) -> str | None:
    r"""The text with a divisibility attribute on an argument of its kernel; None if it has no such argument.

    Example:
        >>> print(with_divisor("tt.func public @k(%n: i32 loc(#l)) {", "n", 16))
        tt.func public @k(%n: i32 {tt.divisibility = 16 : i32} loc(#l)) {
    """
    header = _HEADER.search(text)
    if header is None:
        return None
    name_pattern = re.escape(argument)
    argument_pattern = rf"%{name_pattern}|%\w+(?=: [^%]*? loc\(\"{name_pattern}\")"
    pattern = re.compile(rf"((?:{argument_pattern}): !?[\w.<>, ]*?[\w>])(?: \{{([^}}]*)\}})?(?= loc\(|[,)])")
    attribute = f"tt.divisibility = {divisor} : i32"

    def add_divisor(match: re.Match[str]) -> str:
        attributes = match[2] or ""
        if _DIVISOR.search(attributes):
            return f"{match[1]} {{{_DIVISOR.sub(attribute, attributes)}}}"
        return f"{match[1]} {{{attribute}{', ' + attributes if attributes else ''}}}"

    rewritten, count = pattern.subn(add_divisor, header[0], count=1)
    return None if count == 0 else text[: header.start()] + rewritten + text[header.end() :]


def with_input_precision(text: str, precision: str) -> str | None:
    """The text with another input precision (`tf32`) for dots of 32-bit floats; None if it has none.

    Example:
        >>> with_input_precision("%1 = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x16xf32>", "tf32")
        '%1 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>'
    """
    rewritten, count = _DOT.subn(rf"\1, inputPrecision = {precision}\2", text)
    return None if count == 0 else rewritten
