"""What a kernel was compiled from, as far as its first stage still tells: arguments and tiles.

No cache holds a kernel's constexprs. What is left of block sizes is the shapes of what it loads,
multiplies and stores, and those are the same on every target and in every version of Triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.model import EventKind, Frame, Function, Language, Module
from artifact_inspector.model.tile import Tile

_MOVES = {
    EventKind.GLOBAL_LOAD: "load",
    EventKind.GLOBAL_STORE: "store",
    EventKind.ATOMIC: "atomic",
}


class Program(NamedTuple):
    """What tells one specialisation of a kernel from another."""

    signature: tuple[str, ...]
    """Types of the arguments in Triton's notation: `*fp16:16`, `i32`."""
    tiles: tuple[Tile, ...]
    """Shapes of what it loads, multiplies and stores, each once, in the order of the text:
    `load 128×32`, `dot 128×32×32`."""
    place: Frame | None = None
    """Where the kernel stands in the source that it was compiled from."""
    arguments: tuple[str, ...] = ()
    """Their names, `arg0` where the text has none; what is constant or specialised away is not among them."""


def find_program(module: Module, language: Language, kernel: str) -> Program | None:
    """The program of one tensor-level module; None for a module without functions.

    Args:
        kernel: name of the kernel among the module's functions; the first function where none has it.
    """
    if not module.functions:
        return None
    named = next((found for found in module.functions if found.name == kernel), module.functions[0])
    tiles = [tile for function in module.functions for tile in _tiles(function, module, language)]
    place = None if not named.location else named.location[-1]
    arguments = tuple(name.removeprefix("%") for name in named.arguments)
    return Program(named.signature, tuple(dict.fromkeys(tiles)), place, arguments)


def _tiles(function: Function, module: Module, language: Language) -> Iterator[Tile]:
    for instruction in function.instructions:
        if instruction.kind is EventKind.MATRIX:
            dot = language.matrix(instruction, module)
            if dot is not None:
                batch = f"{dot.blocks}×" if dot.blocks > 1 else ""
                yield Tile(f"dot {batch}{dot.m}×{dot.n}×{dot.k}")
        elif instruction.kind in _MOVES:
            shapes = [found.shape for found in language.types(instruction, module)]
            if shapes:
                yield Tile(f"{_MOVES[instruction.kind]} {'×'.join(map(str, max(shapes)))}")
