"""Tensors, and views of shared memory, of tensor-level IR."""

from __future__ import annotations

import math
from typing import NamedTuple

from artifact_inspector.model.encoding import Encoding


class TensorType(NamedTuple):
    """A tensor or a view of shared memory, in tensor-level IR."""

    shape: tuple[int, ...]
    element: str
    """Element type: `f16`, `i32`, `!tt.ptr<f16>` …"""
    bits: int
    """Bits of one element; for a pointer, of the element that it points at."""
    layout: str
    """The layout attribute with aliases resolved; empty if absent."""
    is_memory: bool
    """True for memory (`!ttg.memdesc`; until Triton 2.3 a tensor with a shared layout), False for registers."""
    encoding: Encoding | None = None
    """The parsed layout; None if absent or damaged."""

    @property
    def is_pointer(self) -> bool:
        """True for addresses."""
        return self.element.startswith("!tt.ptr")

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def size(self) -> int:
        """Bytes of all elements, without padding."""
        return (self.elements * self.bits + 7) // 8
