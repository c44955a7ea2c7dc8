"""The languages of the Triton cache, one folder each; `FORMATS` is the only list of them.

Only this package spells opcodes, attributes and operands. Analysis queries an instruction through `model.Language`, as
`code.language.…`. Each family of opcodes has one module: `mlir.dialects` (TTIR, TTGIR), `llvm.operations` (LLIR),
`_nvidia` (PTX, also inside LLIR), `_amd` (AMDGCN, also inside LLIR), `sass.instructions`. `mlir.types` reads types and
layouts. A new query takes one of three forms:

- A property of an **opcode** is a member of `model.Trait`, with one row in `TRAITS` of each module that has
  such opcodes: `Trait.FUSED in code.language.traits(instruction.opcode)`.
- A property of an instruction's **text** is a function that returns a value of `model` (a NamedTuple, an
  enum, a number; None for other instructions or if unknown). It is a field of `Format` and of `Language`:
  `code.language.wait(instruction, module)`. Languages without it keep the field's default.
- A property of a **type or layout** is parsed once by `mlir.types` into a value of `model`.
"""

from __future__ import annotations

from artifact_inspector.formats._format import Format
from artifact_inspector.model import Stage

__all__ = ["FORMATS", "Format", "format_of"]

FORMATS: tuple[Format, ...]


def format_of(stage: Stage) -> Format:
    """The format of a stage; its parser is imported on first use."""
    if stage is Stage.PTX:
        from artifact_inspector.formats.ptx.parser import FORMAT
    elif stage is Stage.LLIR:
        from artifact_inspector.formats.llvm.parser import FORMAT
    elif stage is Stage.AMDGCN:
        from artifact_inspector.formats.amdgcn.parser import FORMAT
    elif stage is Stage.SASS:
        from artifact_inspector.formats.sass.parser import FORMAT
    else:
        from artifact_inspector.formats.mlir.parser import FORMAT
    return FORMAT


def __getattr__(name: str) -> tuple[Format, ...]:
    if name != "FORMATS":
        raise AttributeError(name)
    return tuple(dict.fromkeys(format_of(stage) for stage in Stage))
