"""Decodes single operations of MLIR's custom assembly form: kind, results and operands."""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import DECODE_CACHE_SIZE
from artifact_inspector.formats.mlir.dialects import VALUE, modern_opcode
from artifact_inspector.formats.mlir.opcodes import OPCODES
from artifact_inspector.model import EventKind, Operands
from artifact_inspector.model.limits import RESULTS
from artifact_inspector.model.text import parse_integer

OPERATION = re.compile(r'(%[^\s,=()%]+(?:, %[^\s,=()%]+)*)? ?=? ?"?([A-Za-z_]\w*(?:\.\w+)*)"?')
OPERATIONS_WITH_BODY = frozenset({"tt.reduce", "tt.scan", "tt.map_elementwise"})
"""Operations whose region defines how two elements combine."""
_FLOAT_ASM = re.compile(r"\b(?:fma|mul|add|sub|div|ex2|lg2|rcp|sqrt|rsqrt|tanh|max|min)(?:\.[a-z]+)*\.b?f\d")
_EXTENT = re.compile(r"axis = (\d{1,2})\b")
_SHAPE = re.compile(r"tensor<((?:\d+x)+)")


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def decode(text: str) -> Operands:
    """Results and reads of one operation; types and attributes hold no values.

    Operations with regions (`scf.*`) have no results here: their values are passed by flows.
    """
    match = OPERATION.match(text)
    if match is None:
        return Operands((), tuple(VALUE.findall(text)))
    results = () if match[2].startswith("scf.") else result_names(match[1] or "")
    return Operands(results, tuple(VALUE.findall(text, match.end())))


def kind_of(opcode: str, text: str) -> EventKind:
    """The kind of an operation; that of a reduction depends on its types."""
    kind = _plain_kind(opcode)
    if kind is EventKind.FLOAT and opcode in OPERATIONS_WITH_BODY and _reduced_extent(text) == 1:
        return EventKind.MOVE  # nothing is combined along an axis of extent 1
    if opcode == "tt.elementwise_inline_asm":
        return EventKind.FLOAT if _FLOAT_ASM.search(text) is not None else EventKind.MOVE
    return kind


@lru_cache(maxsize=1024)
def _plain_kind(opcode: str) -> EventKind:
    return OPCODES.kind(modern_opcode(opcode))


def _reduced_extent(text: str) -> int | None:
    axis, shape = _EXTENT.search(text), _SHAPE.search(text)
    if axis is None or shape is None:
        return None
    extents = shape[1].rstrip("x").split("x")
    return parse_integer(extents[int(axis[1])]) if int(axis[1]) < len(extents) else None


def count_results(text: str) -> int:
    """Number of values that `%a, %b:3` names; above the limit if the number has too many digits."""
    too_many = RESULTS.value + 1
    numbers = (result.partition(":")[2] for result in text.split(","))
    counts = (parse_integer(number) if number.isdecimal() else 1 for number in numbers)
    return sum(too_many if count is None else count for count in counts)


def result_names(text: str) -> tuple[str, ...]:
    """Names of the values that an operation defines: `%a, %b:2` are `%a`, `%b#0`, `%b#1`."""
    if ":" not in text:
        return tuple([name for result in text.split(",") if (name := result.strip())])
    names: list[str] = []
    max_results = RESULTS.value
    for result in text.split(","):
        name, colon, number = result.strip().partition(":")
        count = parse_integer(number) if colon and number.isdecimal() else None
        if count is not None:
            names += [f"{name}#{i}" for i in range(min(count, max_results - len(names)))]
        elif name:
            names.append(name)
    return tuple(names)
