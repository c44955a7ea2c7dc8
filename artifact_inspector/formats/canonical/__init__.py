"""A stage's text without what does not matter: names, labels, places, numbering, the order of constants.

Two texts with the same canonical form are the same program but for the naming of its values. Names become
their order of first appearance, so only a renaming one to one makes texts equal. Where a name is more than a
name it stays as it is: registers that the hardware or a caller fills, all of a machine code whose operands
span registers without naming them (SASS), quoted text. A program that an allocator coloured anew may thus
be told apart from its like, but one program is never taken for another.
"""

from __future__ import annotations

from artifact_inspector.model import Stage

__all__ = ["canonical"]


def canonical(text: str, stage: Stage) -> str:
    r"""The canonical form of a stage's text, one statement a line; for comparison only.

    Example:
        >>> one, other = "add.s32 \t%r7, %r3, %r3;", "add.s32 %r1, %r9, %r9; // sum"
        >>> canonical(one, Stage.PTX) == canonical(other, Stage.PTX)
        True
    """
    if stage is Stage.PTX:
        from artifact_inspector.formats.canonical._ptx import lines
    elif stage is Stage.LLIR:
        from artifact_inspector.formats.canonical._llvm import lines
    elif stage is Stage.AMDGCN:
        from artifact_inspector.formats.canonical._amdgcn import lines
    elif stage is Stage.SASS:
        from artifact_inspector.formats.canonical._sass import lines
    else:
        from artifact_inspector.formats.canonical._mlir import lines
    return "\n".join(lines(text))
