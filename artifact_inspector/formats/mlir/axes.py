"""How operations of Triton's dialects transform integers and pointers.

Source: the assembly formats of MLIR's arith and scf dialects and of TritonOps.td in Triton 2.0 to 3.9.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.model import Instruction
from artifact_inspector.model.axes import AxisOperation, AxisRole, Hints
from artifact_inspector.model.text import parse_integer

_ROLES = {
    name: role
    for role, names in {
        AxisRole.CONSTANT: "constant",
        AxisRole.RANGE: "make_range",
        AxisRole.PROGRAM: "get_program_id",
        AxisRole.SPLAT: "splat",
        AxisRole.BROADCAST: "broadcast",
        AxisRole.EXPAND: "expand_dims",
        AxisRole.RESHAPE: "reshape view",
        AxisRole.TRANSPOSE: "trans",
        AxisRole.SAME: "extsi extui trunci index_cast index_castui bitcast convert_layout",
        AxisRole.ADD: "addi",
        AxisRole.SUBTRACT: "subi",
        AxisRole.ADD_POINTER: "addptr",
        AxisRole.MULTIPLY: "muli",
        AxisRole.SHIFT_LEFT: "shli",
        AxisRole.DIVIDE: "divsi divui",
        AxisRole.SHIFT_RIGHT: "shrsi shrui",
        AxisRole.REMAINDER: "remsi remui",
        AxisRole.COMPARE: "cmpi",
        AxisRole.LOGIC: "andi ori xori",
        AxisRole.EITHER: "maxsi minsi maxui minui",
        AxisRole.SELECT: "select",
    }.items()
    for name in names.split()
}
_LOOP = "scf.for"
_CONSTANT = re.compile(r"arith\.constant (?:\{[^}]*\} )?(?:dense<)?(-?\d{1,20}|true|false)\b(?!\.)")
_BOUND = re.compile(r"(start|end) = (\d{1,10})\b")
_AXIS = re.compile(r"axis = (\d{1,2})\b")
_ORDER = re.compile(r"order = (?:array<i32: |dense<\[)((?:\d{1,2}(?:, )?)+)")
_HINT = re.compile(r"tt\.(contiguity|divisibility|constancy) = (?:dense<(?:\[([\d, ]{1,99})\]|(\d{1,18}))>|(\d{1,18}))")
_POINTEE = re.compile(r"!tt\.ptr<[a-z]+(\d{1,4})")
_INDUCTION = re.compile(r"scf\.for (%[\w$.-]+) = ")
_PREDICATE = re.compile(r"cmpi (\w+)")
_GROWS_WITH_LEFT = {
    **dict.fromkeys(("sgt", "sle", "ugt", "ule"), True),
    **dict.fromkeys(("slt", "sge", "ult", "uge"), False),
}
_HOLDS_BELOW = {
    **dict.fromkeys(("slt", "sle", "ult", "ule"), True),
    **dict.fromkeys(("sgt", "sge", "ugt", "uge"), False),
}


@lru_cache(maxsize=4096)
def _role(opcode: str) -> AxisRole:
    return AxisRole.LOOP if opcode == _LOOP else _ROLES.get(opcode.rpartition(".")[2], AxisRole.NONE)


def axis_operation(instruction: Instruction) -> AxisOperation:
    """What an operation does to integers and pointers."""
    role, text = _role(instruction.opcode), instruction.text
    operation = AxisOperation(role, hints=_hints(text))
    if role is AxisRole.CONSTANT:
        return operation._replace(value=_constant(text))
    if role is AxisRole.RANGE:
        bounds = {bound: int(number) for bound, number in _BOUND.findall(text)}
        return operation._replace(start=bounds.get("start", 0), stop=bounds.get("end"))
    if role is AxisRole.EXPAND:
        axis = _AXIS.search(text)
        return operation._replace(axis=0 if axis is None else int(axis[1]))
    if role is AxisRole.TRANSPOSE:
        order = _ORDER.search(text)
        return operation if order is None else operation._replace(order=_numbers(order[1]))
    if role is AxisRole.ADD_POINTER:
        pointee = _POINTEE.search(text)
        return operation if pointee is None else operation._replace(pointee=max(1, int(pointee[1]) // 8))
    if role is AxisRole.COMPARE:
        predicate = _PREDICATE.search(text)
        name = "" if predicate is None else predicate[1]
        return operation._replace(grows_with_left=_GROWS_WITH_LEFT.get(name), holds_below=_HOLDS_BELOW.get(name))
    if role is AxisRole.LOOP:
        variable = _INDUCTION.search(text)
        # scf.for %i = %first to %stop step %step: the upper bound does not affect the variable's values.
        counts = instruction.operands.reads[1:4:2]
        return operation._replace(variable="" if variable is None else variable[1], loop_operands=counts)
    return operation


def _constant(text: str) -> int | None:
    match = _CONSTANT.search(text)
    if match is None:
        return None
    return int(match[1] == "true") if match[1].isalpha() else parse_integer(match[1])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(",") if number.strip())


def _hints(text: str) -> Hints | None:
    if "tt." not in text:
        return None
    hints = {name: _numbers(per_axis or single or bare) for name, per_axis, single, bare in _HINT.findall(text)}
    return Hints(hints.get("contiguity"), hints.get("divisibility"), hints.get("constancy")) if hints else None
