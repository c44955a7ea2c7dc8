"""Dots that multiply wider elements than their operands are loaded with, because the program converts them first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.model import LOADS, EventKind, SourceLine, TensorType, Trait

_UNCHANGED = frozenset({EventKind.MOVE, EventKind.LAYOUT_CONVERSION})
_WORD_BITS = 32


class WidenedDot(NamedTuple):
    """A dot of tensor-level IR with converted operands."""

    line: int
    """In the file of the stage."""
    source: SourceLine | None
    multiplied: str
    """Element type that it multiplies."""
    loaded: str
    """The narrower type that an operand is loaded with."""
    is_one_computed: bool
    """True if the other operand is computed, and would have to be rounded."""


def find_widened_dots(code: FunctionCode) -> Iterator[WidenedDot]:
    """The dots of a function whose operands are both loaded with fewer bits; or one is, and the other is computed.

    A computed operand is rounded from 32 bits or more only: narrower ones may be results of integer conversions.
    """
    for index in code.find(frozenset({EventKind.MATRIX})):
        instruction = code.instructions[index]
        types = code.language.tensor_types(instruction, code.module)
        reads = [code.values.reads[index].get(name) for name in code.operands(index).reads[:2]]
        if not types or len(reads) < 2 or None in reads:
            continue
        multiplied, origins = types[0], [_loaded_type(code, value) for value in reads if value is not None]
        narrow = [x for x in origins if x is not None and x.bits < multiplied.bits]
        is_one_computed = None in origins and multiplied.bits >= _WORD_BITS
        if len(narrow) == 2 or (narrow and is_one_computed):
            source = source_of(instruction.location)
            yield WidenedDot(instruction.line, source, multiplied.element, narrow[0].element, len(narrow) < 2)


def _loaded_type(code: FunctionCode, value: int) -> TensorType | None:
    """The type that a value is loaded with, before conversions; None if it is computed, or passed by a loop."""
    converted: TensorType | None = None
    while (index := code.values.definitions.get(value)) is not None:
        instruction, reads = code.instructions[index], tuple(code.values.reads[index].values())
        types = code.language.tensor_types(instruction, code.module)
        if instruction.kind in LOADS:
            return converted or (types[-1] if types else None)
        is_unchanged = instruction.kind in _UNCHANGED and not code.has_trait(index, Trait.SELECTION)
        if not is_unchanged or len(reads) != 1 or not types:
            return None
        converted, value = types[0], reads[0]
    return None
