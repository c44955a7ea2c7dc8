"""Registers that PTX statements write and read (PTX ISA 9.0, chapter 9), and their constant values."""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._scan import DECODED
from artifact_inspector.model import Module, Operands
from artifact_inspector.model.text import integer, split_list

STATEMENT = re.compile(r"(?:@\s*((?:!\s*)?[%\w$.]+)\s+)?([a-z]\w*(?:\.[\w.:]*)?)(?![\w%$])\s*", re.ASCII)
NAME = re.compile(r"(?<![\w.$%])[%A-Za-z_$][\w$.]*", re.ASCII)
_MOVES = frozenset(("mov.b32", "mov.u32", "mov.s32"))
_MOVED = re.compile(r"mov\.\w+ (%\w+), (\S+)$")
_WITH_LABELS = frozenset(("bra", "brx", "call"))
_NO_RESULT = ("bar.", "barrier.", "setmaxnreg", "nanosleep", "stackrestore", "tcgen05.dealloc", "pmevent")


@lru_cache(maxsize=DECODED)
def decode(text: str) -> Operands:
    """Operands: the first one is the result unless it is an address (PTX ISA 9.1)."""
    found = STATEMENT.match(text)
    if found is None:
        return Operands((), ())
    guard, opcode = found[1], found[2]
    base = opcode.partition(".")[0]
    guards = [] if guard is None else NAME.findall(guard)
    first: list[str] = []
    if base in _WITH_LABELS:
        operands = split_list(text[found.end() :])
        if base == "call":
            first = _names(operands[0]) if operands and operands[0].startswith("(") else []
            operands = [operand for operand in operands[1:] if operand.startswith("(")]
        else:
            operands = operands[:1] if base == "brx" else []
        reads = guards + [name for operand in operands for name in _names(operand)]
    else:
        at = found.end()
        if not text.startswith("[", at) and (".red." in opcode or not opcode.startswith(_NO_RESULT)):
            at = _first_ends(text, at)
            first = _names(text[found.end() : at])
        reads = guards + _names(text[at:])
    if opcode.startswith("wgmma.mma_async"):
        reads += first  # accumulates in place
    return Operands(tuple(first), tuple(reads))


def _first_ends(text: str, at: int) -> int:
    """End of the first operand of a statement: the first comma after its brackets."""
    if text.startswith("{", at):
        at = max(at, text.find("}", at))
    comma = text.find(",", at)
    return comma if comma >= 0 else len(text)


def _names(operand: str) -> list[str]:
    return [name for name in NAME.findall(operand) if name != "_"]


class _Immediates:
    """Registers with one constant value throughout a module; caches the last module."""

    def __init__(self) -> None:
        self._known: tuple[Module | None, dict[str, int | None]] = (None, {})

    def value(self, operand: str, module: Module) -> int | None:
        """The constant value of an operand; None if it is computed, or has several values."""
        if (number := integer(operand)) is not None:
            return number
        if self._known[0] is not module:
            self._known = (module, self._read(module))
        return self._known[1].get(operand)

    @staticmethod
    def _read(module: Module) -> dict[str, int | None]:
        # LLVM's registers are in SSA form except for the copies of a phi, which are also `mov`.
        found: dict[str, int | None] = {}
        for function in module.functions:
            for instruction in function.instructions:
                moved = _MOVED.match(instruction.text) if instruction.opcode in _MOVES else None
                if moved is not None:
                    number = integer(moved[2])
                    found[moved[1]] = number if found.get(moved[1], number) == number else None
        return found


IMMEDIATES = _Immediates()
