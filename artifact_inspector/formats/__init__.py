"""The languages of the Triton cache, one module each; `FORMATS` is the only list of them."""

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
