"""Moves loads of inline asm in machine code to the line that contains the asm call.

LLVM 23 and later number the lines of an inline asm from the line of its call, and ptxas keeps the line of each
instruction. An `ld.global.v4` of line 9 after four `mov` has line 13 in the cubin, which is another line of the kernel
or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from artifact_inspector.analysis.flow.source_locations import Chain, chain_of
from artifact_inspector.model import LOADS, EventKind, Frame, Function, Instruction, LanguageSemantics, Location, Module

_Key = tuple[EventKind, int | None, Chain]
"""Kind, bytes per thread and source location (lines only) of a load."""
AsmCalls = Mapping[_Key, Location | None]
"""Load at a line of an asm → location of its call; None if several calls have such a load there."""


def find_asm_calls(assembly: Module, language: LanguageSemantics) -> AsmCalls:
    """The call locations of an assembly's inline-asm loads, by their location in the line table."""
    if not any(function.inline_asm_lines for function in assembly.functions):
        return {}
    locations_by_key: dict[_Key, set[Location]] = {}
    moved: set[_Key] = set()
    for function in assembly.functions:
        for index, instruction in enumerate(function.instructions):
            if instruction.kind not in LOADS or not instruction.location:
                continue
            home = tuple(Frame(file, line, 0) for file, line, _ in instruction.location)
            line = function.inline_asm_lines.get(index, home[0].line)
            key = _key(instruction, (home[0]._replace(line=line), *home[1:]), assembly, language)
            locations_by_key.setdefault(key, set()).add(home)
            if line != home[0].line:
                moved.add(key)
    return {key: next(iter(locations_by_key[key])) if len(locations_by_key[key]) == 1 else None for key in moved}


def move_to_call_lines(function: Function, module: Module, language: LanguageSemantics, calls: AsmCalls) -> Function:
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


def _key(instruction: Instruction, location: Location, module: Module, language: LanguageSemantics) -> _Key:
    transfer = language.transfer(instruction, module)
    chain = chain_of(tuple(frame._replace(column=0) for frame in location))
    assert chain is not None
    return instruction.kind, None if transfer is None else transfer.bytes, chain
