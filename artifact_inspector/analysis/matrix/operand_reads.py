"""How matrix operands are read from shared memory: whole rows of a tile, or word by word.

`ldmatrix` delivers four 8×8 tiles of 16-bit elements to a warp at once. Without it, each lane reads each operand
register separately, with four times as many instructions.

Source: PTX ISA, `ldmatrix`; Triton, MemoryOpToLLVM.cpp (`ldmatrix` needs rows of 16 bytes in shared memory).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import source_of
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.regions import Region, count_with_trait, find_in_region
from artifact_inspector.model import EventKind, SourceLine, Trait

_MATRIX = frozenset({EventKind.MATRIX})
_MAX_MOVES = 3
"""Maximum number of moves between a load and the matrix instruction."""


class OperandReads(NamedTuple):
    """Loads from shared memory on one source line whose results matrix instructions use unchanged."""

    source: SourceLine | None
    row_reads: int
    """Instructions that read whole rows for a warp (`ldmatrix`)."""
    word_reads: int
    """Instructions that read a register of 4 bytes or less for each lane."""
    lines: tuple[int, int]
    """First and last of them in the stage's file."""


def find_operand_reads(code: FunctionCode, region: Region) -> tuple[OperandReads, ...]:
    """How the matrix operands of a region are read, by source line, in the order of the file."""
    instructions = code.instructions
    loads = dict.fromkeys(i for matrix in find_in_region(code, region, _MATRIX) for i in _reads(code, matrix))
    reads = [
        OperandReads(
            source,
            sum(code.has_trait(index, Trait.READS_ROWS) for index in indices),
            sum(code.has_trait(index, Trait.READS_WORD) for index in indices),
            (instructions[min(indices)].line, instructions[max(indices)].line),
        )
        for source, indices in group_by_key((source_of(instructions[i].location), i) for i in loads).items()
    ]
    return tuple(sorted(reads, key=lambda operand_reads: operand_reads.lines))


def count_element_accesses(code: FunctionCode, region: Region) -> int:
    """Instructions of a region that load or store 2 bytes or less of shared memory for each lane."""
    kinds = (EventKind.SHARED_LOAD, EventKind.SHARED_STORE)
    return sum(count_with_trait(code, region, kind, Trait.ACCESSES_ELEMENT) for kind in kinds)


def _reads(code: FunctionCode, matrix: int) -> Iterator[int]:
    """The loads from shared memory that define a matrix instruction's registers, also through moves."""
    pending = [(name, 0) for name in code.operands(matrix).reads]
    visited = set(pending)
    while pending:
        name, step = pending.pop()
        for index in code.definitions(name):
            if code.instructions[index].kind is EventKind.SHARED_LOAD:
                yield index
            elif step < _MAX_MOVES and code.has_trait(index, Trait.RENAMES):
                new_operands = {(register, step + 1) for register in code.operands(index).reads} - visited
                visited |= new_operands
                pending += new_operands
