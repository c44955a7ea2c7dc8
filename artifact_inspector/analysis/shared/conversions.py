"""Layout conversions of TTGIR: the amount of data moved, and how far it moves."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.flow.always import find_always
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.invariant import Invariants
from artifact_inspector.analysis.flow.places import source_of
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.shared.layouts import read_layout
from artifact_inspector.analysis.shared.scratch import Rules, conversion_bytes, element_bits, find_rules
from artifact_inspector.analysis.shared.swizzling import Reach, reach
from artifact_inspector.model import EventKind, Language, Module, SourceLine, TensorType, TritonVersion
from artifact_inspector.model.encoding import LayoutKind

_OF_DOTS = frozenset({LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.DOT_OPERAND})
_CONVERSIONS = frozenset({EventKind.LAYOUT_CONVERSION})


@dataclass(frozen=True, slots=True)
class Conversion:
    """One layout conversion."""

    line: int
    source: SourceLine | None
    """`file.py:line` of the user's code."""
    bytes: int
    """Of the whole tensor, for the whole block."""
    change: str
    """Kinds of the two layouts: `blocked → dot operand`."""
    crosses_warps: bool | None
    """True if a warp needs data that another holds; None if a layout is not modelled."""
    through_shared: bool | None
    """True if it goes through shared memory; None if unknown."""
    always: bool = True
    """False in a loop if the conversion is conditional: not every iteration executes it."""
    changes: bool = True
    """False if the converted value is loop-invariant: the conversion could be hoisted out of the loop."""
    for_dots: bool = False
    """True if one of the layouts is that of a matrix operation's operands or result."""


def find_conversions(
    code: Code, region: Region, module: Module, language: Language, triton: TritonVersion | None = None
) -> tuple[Conversion, ...]:
    """The conversions directly in a region, in execution order.

    Args:
        triton: `triton_version` of the metadata.
    """
    rules = find_rules(module, language, triton)
    indices = code.find(_CONVERSIONS, region.blocks)
    loop, block_of = region.loop, code.flow.block_of
    always = None if loop is None or not indices else find_always(code.function, code.flow, loop)
    same = None if loop is None or not indices else Invariants(code, loop, module)
    found: list[Conversion] = []
    for index in indices:
        instruction = code.function.instructions[index]
        types = language.types(instruction, module)
        if len(types) != 2:
            continue
        crosses, shared = _way(types[0], types[1], rules)
        change = " → ".join("" if t.encoding is None else t.encoding.words for t in types)
        place = source_of(instruction.location)
        size = (types[0].elements * element_bits(types[0]) + 7) // 8
        found.append(
            Conversion(
                instruction.line,
                place,
                size,
                change,
                crosses,
                shared,
                always=always is None or block_of[index] in always,
                changes=same is None or not same.computes_the_same(index),
                for_dots=any(map(_is_of_dots, types)),
            )
        )
    return tuple(found)


def _is_of_dots(tensor: TensorType) -> bool:
    made = () if tensor.encoding is None else tensor.encoding.chain
    return any(one.kind in _OF_DOTS for one in made)


def _way(source: TensorType, target: TensorType, rules: Rules) -> tuple[bool | None, bool | None]:
    """Whether data crosses warps, and whether it goes through shared memory."""
    if source.is_memory or target.is_memory:  # until 2.3 this is how data gets to shared memory
        return None, True
    a, b = read_layout(source, rules.threads_per_warp), read_layout(target, rules.threads_per_warp)
    if a is None or b is None or rules.has_clusters:
        return None, None
    taken = conversion_bytes(a, b, element_bits(source), rules)
    return reach(a, b) is Reach.BLOCK, None if taken is None else taken > 0
