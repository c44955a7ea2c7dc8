"""Registers that PTX statements write and read (PTX ISA 9.0, chapter 9), and their constant values."""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import DECODE_CACHE_SIZE, once_per_module
from artifact_inspector.model import Module, Operands
from artifact_inspector.model.text import parse_integer, split_list

STATEMENT = re.compile(r"(?:@\s*((?:!\s*)?[%\w$.]+)\s+)?([a-z]\w*(?:\.[\w.:]*)?)(?![\w%$])\s*", re.ASCII)
NAME = re.compile(r"(?<![\w.$%])[%A-Za-z_$][\w$.]*", re.ASCII)
_MOVES = frozenset(("mov.b32", "mov.u32", "mov.s32"))
_MOVE = re.compile(r"mov\.\w+ (%\w+), (\S+)$")
_WITH_LABELS = frozenset(("bra", "brx", "call"))
_NO_RESULT = ("bar.", "barrier.", "setmaxnreg", "nanosleep", "stackrestore", "tcgen05.dealloc", "pmevent")


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def decode(text: str) -> Operands:
    """Operands: the first one is the result unless it is an address (PTX ISA 9.1)."""
    match = STATEMENT.match(text)
    if match is None:
        return Operands((), ())
    guard, opcode = match[1], match[2]
    base = opcode.partition(".")[0]
    guards = [] if guard is None else NAME.findall(guard)
    results: list[str] = []
    if base in _WITH_LABELS:
        operands = split_list(text[match.end() :])
        if base == "call":
            results = _operand_names(operands[0]) if operands and operands[0].startswith("(") else []
            operands = [operand for operand in operands[1:] if operand.startswith("(")]
        else:
            operands = operands[:1] if base == "brx" else []
        reads = guards + [name for operand in operands for name in _operand_names(operand)]
    else:
        at = match.end()
        if not text.startswith("[", at) and (".red." in opcode or not opcode.startswith(_NO_RESULT)):
            # the first operand ends at the first comma after its brackets
            at = f"{text},".index(",", max(at, text.find("}", at)) if text.startswith("{", at) else at)
            results = _operand_names(text[match.end() : at])
        reads = guards + _operand_names(text[at:])
    if opcode.startswith("wgmma.mma_async"):
        reads += results  # accumulates in place
    return Operands(tuple(results), tuple(reads))


def _operand_names(operand: str) -> list[str]:
    return [name for name in NAME.findall(operand) if name != "_"]


def constant_value(operand: str, module: Module) -> int | None:
    """The constant value of an operand; None if it is computed, or has several values."""
    number = parse_integer(operand)
    return _constants(module).get(operand) if number is None else number


@once_per_module
def _constants(module: Module) -> dict[str, int | None]:
    """Registers with one constant value throughout a module."""
    # LLVM's registers are in SSA form except for the copies of a phi, which are also `mov`.
    constants: dict[str, int | None] = {}
    moves = (x for function in module.functions for x in function.instructions if x.opcode in _MOVES)
    for match in (_MOVE.match(instruction.text) for instruction in moves):
        if match is not None:
            number = parse_integer(match[2])
            constants[match[1]] = number if constants.get(match[1], number) == number else None
    return constants
