"""The program that a kernel was compiled from, as far as its first stage shows it: arguments and tiles.

No cache holds a kernel's constexprs. Block sizes are visible only in the shapes of its loads, dots and stores, which
are the same on every target and in every version of Triton.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.model import EventKind, Frame, Function, LanguageSemantics, Module
from artifact_inspector.model.tile import Tile

_MOVES = {EventKind.GLOBAL_LOAD: "load", EventKind.GLOBAL_STORE: "store", EventKind.ATOMIC: "atomic"}


class KernelProgram(NamedTuple):
    """Properties that distinguish one specialisation of a kernel from another."""

    signature: tuple[str, ...]
    """Types of the arguments in Triton's notation: `*fp16:16`, `i32`."""
    tiles: tuple[Tile, ...]
    """Shapes of its loads, dots and stores, without repetition, in text order: `load 128×32`, `dot 128×32×32`."""
    location: Frame | None = None
    """Location of the kernel in its source."""
    arguments: tuple[str, ...] = ()
    """Their names, `arg0` if the text has none. Constant and specialised arguments are left out."""


def find_program(module: Module, language: LanguageSemantics, kernel: str) -> KernelProgram | None:
    """The program of one tensor-level module; None for a module without functions.

    Args:
        kernel: name of the kernel among the module's functions. The first function is used if none has it.
    """
    if not module.functions:
        return None
    named = next((candidate for candidate in module.functions if candidate.name == kernel), module.functions[0])
    tiles = [tile for function in module.functions for tile in _tiles(function, module, language)]
    location = None if not named.location else named.location[-1]
    arguments = tuple(name.removeprefix("%") for name in named.arguments)
    return KernelProgram(named.signature, tuple(dict.fromkeys(tiles)), location, arguments)


def _tiles(function: Function, module: Module, language: LanguageSemantics) -> Iterator[Tile]:
    for instruction in function.instructions:
        if instruction.kind is EventKind.MATRIX:
            dot = language.matrix(instruction, module)
            if dot is not None:
                batch = f"{dot.blocks}×" if dot.blocks > 1 else ""
                yield Tile(f"dot {batch}{dot.m}×{dot.n}×{dot.k}")
        elif instruction.kind in _MOVES:
            shapes = [tensor_type.shape for tensor_type in language.tensor_types(instruction, module)]
            if shapes:
                yield Tile(f"{_MOVES[instruction.kind]} {'×'.join(map(str, max(shapes)))}")
