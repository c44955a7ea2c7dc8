"""Where in the source an instruction comes from."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Frame", "Location"]


class Frame(NamedTuple):
    """One source position; `file` is the path as the compiler wrote it, `line` is 1-based."""

    file: str
    line: int
    column: int


Location = tuple[Frame, ...]
"""An inline chain, innermost frame first; the last frame is the line in the user's kernel.

PTX keeps only a part of it: the innermost frame (until Triton 3.3), or it and its caller.
"""
