"""Scalar registers that a compiler spills to lanes of vector registers which hold nothing else.

Such a lane is a scalar register. As a part of a vector register, each spill would write an array of all lanes.
"""

from __future__ import annotations

from collections.abc import Sequence

from artifact_inspector.formats.amdgcn.statement import MAX_REGISTERS, AmdgcnOperandKind, parse_statement
from artifact_inspector.model import Instruction

_POSITION = {"v_writelane_b32": 0, "v_readlane_b32": 1}
"""Position of the vector register."""
_FIRST_NUMBER, _LANES = 128, 64
"""No GPU has scalar registers from there on; lanes of a wave at most."""


def move_spilled_lanes(instructions: Sequence[Instruction]) -> tuple[Instruction, ...]:
    """A function's instructions, with moves of further scalar registers for what writes and reads such lanes."""
    accesses: dict[int, tuple[str, int, str]] = {}
    positions: dict[str, set[int]] = {}
    other_names = {"v0", "v1", "v2"}  # which have the number of a thread when a kernel starts
    for at, instruction in enumerate(instructions):
        statement = parse_statement(instruction.text)
        position, operands = _POSITION.get(statement.base), list(statement.operands)
        if position is not None and len(operands) == 3 and operands[2].kind is AmdgcnOperandKind.NUMBER:
            positions.setdefault(name := operands.pop(position).names[0], set()).add(position)
            scalar = next(iter(operands[0].names), operands[0].value)
            form = f"s_mov_b32 {scalar}, s{{}}" if position else f"s_mov_b32 s{{}}, {scalar}"
            accesses[at] = name, operands[1].value % _LANES, form
        other_names.update(*(operand.names for operand in operands))
    both = {name for name, used in positions.items() if len(used) == len(_POSITION)}  # written and read again
    names = sorted(both - other_names)
    first_numbers = {name: _FIRST_NUMBER + _LANES * at for at, name in enumerate(names)}
    moved = list(instructions)
    for at, (name, lane, form) in accesses.items():
        if (number := first_numbers.get(name, MAX_REGISTERS) + lane) < MAX_REGISTERS:
            moved[at] = moved[at]._replace(text=form.format(number))
    return tuple(moved)
