"""Machine code whose loads stand at lines of inline asm, put back on the line that calls the asm.

LLVM 23 and later count the lines of an inline asm on from that of its call, and ptxas hands the line of each
instruction on: `ld.global.v4` of line 9, behind four `mov`, stands at line 13 of the cubin, which is another
line of the kernel or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artifact_inspector.analysis.flow.places import Chain, chain_of
from artifact_inspector.model import (
    LOADS,
    EventKind,
    Frame,
    Function,
    Instruction,
    Language,
    Location,
    Module,
)

_Key = tuple[EventKind, int | None, Chain]
"""Kind, bytes per thread and place of a load, by lines alone."""
Calls = Mapping[_Key, Location | None]
"""What stands at a line of an asm → the place of its call; None where several calls put such a load there."""


def find_calls(assembly: Module, language: Language) -> Calls:
    """Where the loads of an assembly's inline asm belong, by where the table of lines has them."""
    if not any(function.asm_lines for function in assembly.functions):
        return {}
    found: dict[_Key, set[Location]] = {}
    moved: set[_Key] = set()
    for function in assembly.functions:
        for index, instruction in enumerate(function.instructions):
            if instruction.kind not in LOADS or not instruction.location:
                continue
            home = tuple(Frame(file, line, 0) for file, line, _ in instruction.location)
            line = function.asm_lines.get(index, home[0].line)
            key = _key(instruction, (home[0]._replace(line=line), *home[1:]), assembly, language)
            found.setdefault(key, set()).add(home)
            if line != home[0].line:
                moved.add(key)
    return {key: next(iter(found[key])) if len(found[key]) == 1 else None for key in moved}


def on_lines_of_calls(function: Function, module: Module, language: Language, calls: Calls) -> Function:
    """A function of machine code with its loads on the lines of the calls of the asm that they are of.

    A load that several calls may have put where it stands is left at none of them.
    """
    if not calls:
        return function
    instructions = list(function.instructions)
    for index, instruction in enumerate(instructions):
        if instruction.kind in LOADS and instruction.location:
            key = _key(instruction, instruction.location, module, language)
            if key in calls:
                instructions[index] = instruction._replace(location=calls[key])
    return replace(function, instructions=tuple(instructions))


def _key(instruction: Instruction, location: Location, module: Module, language: Language) -> _Key:
    transfer = language.transfer(instruction, module)
    chain = chain_of(tuple(frame._replace(column=0) for frame in location))
    assert chain is not None
    return instruction.kind, None if transfer is None else transfer.bytes, chain
