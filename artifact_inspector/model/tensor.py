"""Tensors, and views of shared memory, of tensor-level IR."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.encoding import Encoding


class TensorType(NamedTuple):
    """A tensor or a view of shared memory, in tensor-level IR."""

    shape: tuple[int, ...]
    element: str
    """`f16`, `i32`, `!tt.ptr<f16>` …"""
    bits: int
    """Bits of one element; of what it points at for a pointer."""
    layout: str
    """The layout attribute with its alias resolved, empty where there is none."""
    is_memory: bool
    """True for memory (`!ttg.memdesc`; until Triton 2.3 a tensor with a shared layout), False for
    registers."""
    encoding: Encoding | None = None
    """The layout parsed; None where there is none, or a damaged one."""

    @property
    def is_pointer(self) -> bool:
        """True for addresses."""
        return self.element.startswith("!tt.ptr")

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def size(self) -> int:
        """Bytes of all elements, without padding."""
        return (self.elements * self.bits + 7) // 8
