"""Layout conversions of TTGIR: the amount of data moved, and how far it moves."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.loop_invariants import LoopInvariants
from artifact_inspector.analysis.flow.mutual_exclusion import find_unconditional_blocks
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.shared.register_layouts import read_layout
from artifact_inspector.analysis.shared.scratch_memory import (
    ScratchRules,
    conversion_bytes,
    element_bits,
    find_scratch_rules,
)
from artifact_inspector.analysis.shared.swizzling import ConversionReach, find_conversion_reach
from artifact_inspector.model import EventKind, SourceLine, TensorType, TritonVersion
from artifact_inspector.model.encoding import LayoutKind

_OF_DOTS = frozenset({LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.DOT_OPERAND})
_CONVERSIONS = frozenset({EventKind.LAYOUT_CONVERSION})


@dataclass(frozen=True, slots=True)
class LayoutConversion:
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
    is_unconditional: bool = True
    """False in a loop if the conversion is conditional: not every iteration executes it."""
    is_loop_variant: bool = True
    """False if the converted value is loop-invariant: the conversion could be hoisted out of the loop."""
    is_for_dots: bool = False
    """True if one of the layouts is that of a matrix operation's operands or result."""


def find_conversions(
    code: FunctionCode, region: Region, triton: TritonVersion | None = None
) -> tuple[LayoutConversion, ...]:
    """The conversions directly in a region, in execution order.

    Args:
        triton: `triton_version` of the metadata.
    """
    rules = find_scratch_rules(code, triton)
    indices = code.find(_CONVERSIONS, region.blocks)
    loop, block_of = region.loop, code.flow.block_of
    always = None if loop is None or not indices else find_unconditional_blocks(code, loop)
    invariants = None if loop is None or not indices else LoopInvariants(code, loop)
    conversions: list[LayoutConversion] = []
    for index in indices:
        instruction = code.instructions[index]
        types = code.language.tensor_types(instruction, code.module)
        if len(types) != 2:
            continue
        crosses, shared = _data_path(types[0], types[1], rules)
        layouts = [() if t.encoding is None else t.encoding.chain for t in types]
        conversions.append(
            LayoutConversion(
                instruction.line,
                source_of(instruction.location),
                (types[0].elements * element_bits(types[0]) + 7) // 8,
                " → ".join("" if t.encoding is None else t.encoding.display_name for t in types),
                crosses,
                shared,
                is_unconditional=always is None or block_of[index] in always,
                is_loop_variant=invariants is None or not invariants.is_invariant(index),
                is_for_dots=any(layout.kind in _OF_DOTS for chain in layouts for layout in chain),
            )
        )
    return tuple(conversions)


def _data_path(source: TensorType, target: TensorType, rules: ScratchRules) -> tuple[bool | None, bool | None]:
    """Whether data crosses warps, and whether it goes through shared memory."""
    if source.is_memory or target.is_memory:  # until 2.3 this is how data gets to shared memory
        return None, True
    a, b = read_layout(source, rules.threads_per_warp), read_layout(target, rules.threads_per_warp)
    if a is None or b is None or rules.has_clusters:
        return None, None
    scratch_size = conversion_bytes(a, b, element_bits(source), rules)
    return find_conversion_reach(a, b) is ConversionReach.BLOCK, None if scratch_size is None else scratch_size > 0
