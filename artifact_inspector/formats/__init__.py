"""The languages of the Triton cache, one folder each; `FORMATS` is the only list of them.

This room alone spells opcodes, attributes and operands. What an analysis wants to know of an instruction
is a question of `model.Language`, asked as `code.language.…`. Each has one home for each family of
opcodes: `mlir.dialects` (TTIR, TTGIR), `llvm.operations` (LLIR), `_nvidia` (PTX, also inside LLIR), `_amd`
(AMDGCN, also inside LLIR), `sass.instructions`; `mlir.types` reads types and layouts. There are three shapes
of answer:

- What an **opcode** is goes into `model.Trait`, one member with its meaning, and one row in `TRAITS`
  of each home that has such opcodes: `Trait.FUSED in code.language.traits(instruction.opcode)`.
- What the **text** of an instruction says is a function from it to a value of `model` (a NamedTuple, an enum,
  a number; None where it is of another kind or does not tell), a field of `Format`, a property of `Language`:
  `code.language.wait(instruction, module)`. Languages that cannot tell keep the field's default.
- What a **type or layout** says is read once by `mlir.types` into a value of `model`.
"""

from __future__ import annotations

from artifact_inspector.formats._scan import Format
from artifact_inspector.model import Stage

__all__ = ["FORMATS", "Format", "format_of"]

FORMATS: tuple[Format, ...]


def format_of(stage: Stage) -> Format:
    """The language that a stage is written in; its reader is imported when it is first asked for."""
    if stage is Stage.PTX:
        from artifact_inspector.formats.ptx.reading import FORMAT
    elif stage is Stage.LLIR:
        from artifact_inspector.formats.llvm.reading import FORMAT
    elif stage is Stage.AMDGCN:
        from artifact_inspector.formats.amdgcn.reading import FORMAT
    elif stage is Stage.SASS:
        from artifact_inspector.formats.sass.reading import FORMAT
    else:
        from artifact_inspector.formats.mlir.reading import FORMAT
    return FORMAT


def __getattr__(name: str) -> tuple[Format, ...]:
    if name != "FORMATS":
        raise AttributeError(name)
    return tuple(dict.fromkeys(format_of(stage) for stage in Stage))
