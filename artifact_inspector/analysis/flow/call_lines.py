"""Completes the source locations of machine code with the calls that were inlined there.

Before Triton 3.8, the line table of a cubin has the innermost line only: the line of `tl.sum` in Triton's library, not
the line of the kernel that calls it. The comments of PTX have the calls, and so has LLVM IR.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from artifact_inspector.model import EventKind, Frame, Location, Module
from artifact_inspector.model.location import base_name

_Line = tuple[str, int]
_Place = tuple[_Line, EventKind | None]


def lacks_callers(module: Module) -> bool:
    """Whether instructions have a location in Triton's library and no caller."""
    return any(
        instruction.location is not None and len(instruction.location) == 1 and instruction.location[0].is_of_library
        for function in module.functions
        for instruction in function.instructions
    )


def with_callers(module: Module, earlier: Module) -> Module:
    """A module whose locations without callers have those of an earlier stage.

    Several calls of one line follow each other in the machine code as they do in the earlier stage: the n-th part of
    the line's instructions of one kind belongs to the n-th part there. The compiler may have mixed two parts.
    """
    callers_by_line = _callers_by_line(earlier)
    if not callers_by_line:
        return module
    functions = []
    for function in module.functions:
        places: defaultdict[_Place, list[int]] = defaultdict(list)
        for index, instruction in enumerate(function.instructions):
            location = instruction.location
            if location is not None and len(location) == 1 and (line := _line(location[0])) in callers_by_line:
                kind = instruction.kind if (line, instruction.kind) in callers_by_line else None
                places[line, kind].append(index)
        instructions = list(function.instructions)
        for (line, kind), indices in places.items():
            callers = callers_by_line[line if kind is None else (line, kind)]
            for number, index in enumerate(indices):
                (frame,) = instructions[index].location or ()
                of_part = callers[number * len(callers) // len(indices)]
                instructions[index] = instructions[index]._replace(location=(frame, *of_part))
        functions.append(replace(function, instructions=tuple(instructions)))
    return replace(module, functions=tuple(functions))


def _callers_by_line(module: Module) -> Mapping[_Line | _Place, Sequence[Location]]:
    """The callers of each instruction at a line, and of each kind there, in the order of the code.

    Lines that nothing calls are left out.
    """
    callers: defaultdict[_Line | _Place, list[Location]] = defaultdict(list)
    for function in module.functions:
        for instruction in function.instructions:
            if instruction.location:
                line = _line(instruction.location[0])
                callers[line].append(instruction.location[1:])
                callers[line, instruction.kind].append(instruction.location[1:])
    return {place: locations for place, locations in callers.items() if any(locations)}


def _line(frame: Frame) -> _Line:
    return base_name(frame.file), frame.line
