"""Rewrites saved tensor-level IR as if other compile options had been used.

Source: Triton's printer of `tt.func` (arguments with their attributes) and of `tt.dot` (`inputPrecision`, Triton 3.0
and later).
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"^[ \t]*tt\.func public @.*$", re.M)
_DIVISOR = re.compile(r"tt\.divisibility = \d+ : i32")
_POINTER = re.compile(r"(%[\w$.-]+: !tt\.ptr<[^<>{}]*(?:<[^<>]*>)?[^<>{}]*>)(?: \{([^}]*)\})?(?= loc\(|[,)])")
_RANGE = "tt.pointer_range = 32 : i32"
_DEFAULT_PRECISION = ", inputPrecision = tf32"
_PRECISION_USE = re.compile(rf"{_DEFAULT_PRECISION}\b")
_OPERANDS_OF_DOT = re.compile(r"= tt\.dot %[^:\n{]*?(?= \{| : )")
_CHUNK = re.compile(r" \{maxNumImpreciseAcc = \d+ : i32\}(?= : tensor<)")
_FP8_DOT = re.compile(r"(= tt\.dot %[^:\n{]*?)(?= : tensor<\w+xf8)")
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


def with_pointer_ranges(text: str) -> str:
    """The text with the attribute by which AMD's back end knows that a pointer's tensor has less than 2 GiB.

    Example:
        >>> print(with_pointer_ranges("tt.func public @k(%x: !tt.ptr<f16>, %n: i32) {"))
        tt.func public @k(%x: !tt.ptr<f16> {tt.pointer_range = 32 : i32}, %n: i32) {
    """

    def add_range(match: re.Match[str]) -> str:
        attributes = [one for one in (match[2] or "").split(", ") if one and one != _RANGE]
        return f"{match[1]} {{{', '.join((*attributes, _RANGE))}}}"

    return _HEADER.sub(lambda header: _POINTER.sub(add_range, header[0]), text, count=1)


def with_default_precisions(text: str, *, has_tf32: bool, fp8_chunk: int) -> str:
    """The text with the precisions of dots that are another target's defaults.

    Args:
        has_tf32: dots of 32-bit floats use tf32 by default; else their other precisions stay.
        fp8_chunk: products of fp8 that are summed before the accumulator is rounded; 0 for the target's only.

    Example:
        >>> dot = "%1 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>"
        >>> with_default_precisions(dot, has_tf32=False, fp8_chunk=0)
        '%1 = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x16xf32>'
    """
    if not has_tf32:
        text = _PRECISION_USE.sub("", text)
    elif "inputPrecision" not in text:
        text = _OPERANDS_OF_DOT.sub(rf"\g<0>{_DEFAULT_PRECISION}", text)
    text = _CHUNK.sub("", text)
    return _FP8_DOT.sub(rf"\1 {{maxNumImpreciseAcc = {fp8_chunk} : i32}}", text) if fp8_chunk else text


def with_input_precision(text: str, precision: str) -> str | None:
    """The text with another input precision (`tf32`) for dots of 32-bit floats; None if it has none.

    Example:
        >>> with_input_precision("%1 = tt.dot %a, %b, %c : tensor<16x16xf32> * tensor<16x16xf32>", "tf32")
        '%1 = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32>'
    """
    rewritten, count = _DOT.subn(rf"\1, inputPrecision = {precision}\2", text)
    return None if count == 0 else rewritten
