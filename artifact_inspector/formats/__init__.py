"""The languages of the Triton cache, one module each; `FORMATS` is the only list of them.

This room alone spells opcodes, attributes and operands. What an analysis wants to know of an instruction
is a question of `model.Language`, asked as `code.language.…`. Each has one home for each family of
opcodes: `_dialects` (TTIR, TTGIR), `_llvm` (LLIR), `_nvidia` (PTX, also inside LLIR), `_amd` (AMDGCN, also
inside LLIR), `_sass`; `_types` reads types and layouts. There are three shapes of answer:

- What an **opcode** is goes into `model.Trait`, one member with its meaning, and one row in `TRAITS`
  of each home that has such opcodes: `Trait.FUSED in code.language.traits(instruction.opcode)`.
- What the **text** of an instruction says is a function from it to a value of `model` (a NamedTuple, an enum,
  a number; None where it is of another kind or does not tell), a field of `Format`, a property of `Language`:
  `code.language.wait(instruction, module)`. Languages that cannot tell keep the field's default.
- What a **type or layout** says is read once by `_types` into a value of `model`.
"""

from __future__ import annotations

from artifact_inspector.formats import amdgcn, llvm, mlir, ptx, sass
from artifact_inspector.formats._scan import Format
from artifact_inspector.formats._types import parse_layouts
from artifact_inspector.model import Stage

__all__ = ["FORMATS", "Format", "format_of", "parse_layouts"]

FORMATS: tuple[Format, ...] = (mlir.FORMAT, llvm.FORMAT, ptx.FORMAT, amdgcn.FORMAT, sass.FORMAT)


def format_of(stage: Stage) -> Format:
    """The language that a stage is written in."""
    return next(found for found in FORMATS if stage in found.stages)
