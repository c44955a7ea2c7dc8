"""Moves loads of inline asm in machine code to the line that contains the asm call.

LLVM 23 and later number the lines of an inline asm from the line of its call, and ptxas keeps the line of
each instruction. An `ld.global.v4` of line 9 after four `mov` has line 13 in the cubin, which is another
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
"""Kind, bytes per thread and source location (lines only) of a load."""
Calls = Mapping[_Key, Location | None]
"""Load at a line of an asm → location of its call; None if several calls have such a load there."""


def find_calls(assembly: Module, language: Language) -> Calls:
    """The call locations of an assembly's inline-asm loads, by their location in the line table."""
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
    """A function of machine code with its inline-asm loads moved to the lines of the asm calls.

    A load that several calls may have produced is assigned to none of them.
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
