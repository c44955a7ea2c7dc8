"""A stage's text in canonical form: without names, labels, locations, numbering, or the order of constants.

Two texts with the same canonical form are the same program except for the names of values. Names are replaced by their
order of first appearance, so only a one-to-one renaming makes texts equal. Names with another meaning stay: registers
that the hardware or a caller fills, quoted text, and all of SASS, whose operands span registers without naming them.
Two equal programs with different register allocation may therefore differ in canonical form, but different programs
never have the same form.
"""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.model import Stage

__all__ = ["canonical_lines_of", "canonical_text"]


def canonical_text(text: str, stage: Stage) -> str:
    r"""The canonical form of a stage's text, one statement per line; for comparison only.

    Example:
        >>> one, other = "add.s32 \t%r7, %r3, %r3;", "add.s32 %r1, %r9, %r9; // sum"
        >>> canonical_text(one, Stage.PTX) == canonical_text(other, Stage.PTX)
        True
    """
    return "\n".join(canonical_lines_of(text, stage))


def canonical_lines_of(text: str, stage: Stage) -> Iterator[str]:
    """The lines of the canonical form, each as soon as it is known."""
    if stage is Stage.PTX:
        from artifact_inspector.formats.canonical._ptx import canonical_lines
    elif stage is Stage.LLIR:
        from artifact_inspector.formats.canonical._llvm import canonical_lines
    elif stage is Stage.AMDGCN:
        from artifact_inspector.formats.canonical._amdgcn import canonical_lines
    elif stage is Stage.SASS:
        from artifact_inspector.formats.canonical._sass import canonical_lines
    else:
        from artifact_inspector.formats.canonical._mlir import canonical_lines
    return canonical_lines(text)
