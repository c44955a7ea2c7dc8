"""A parsed layout attribute of tensor-level IR: its name and the numbers in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum

Extents = tuple[int, ...]
Vectors = tuple[Extents, ...]


class LayoutKind(StringEnum):
    """Kind of a layout; the value is printed."""

    BLOCKED = "blocked"
    LINEAR = "linear"
    SLICE = "slice"
    DOT_OPERAND = "dot operand"
    MMA = "mma"
    MFMA = "mfma"
    WMMA = "wmma"
    TENSOR_MEMORY = "tensor memory"
    SHARED = "shared"
    PADDED_SHARED = "padded shared"
    OTHER = "other"


class Encoding(NamedTuple):
    """One layout attribute; absent lists and numbers are None."""

    name: str
    """Triton's name without the dialect: `blocked`, `nvidia_mma`."""
    kind: LayoutKind
    display_name: str
    """The kind as printed, also for `OTHER`."""
    size_per_thread: Extents | None = None
    threads_per_warp: Extents | None = None
    warps: Extents | None = None
    """Warps along each dimension."""
    order: Extents | None = None
    """Axes, fastest first."""
    instruction: Extents | None = None
    """Extents of one matrix instruction."""
    tiles_per_warp: Extents | None = None
    register: Vectors | None = None
    """For a linear layout, the basis vector of each bit of the register index; likewise for the next two."""
    lane: Vectors | None = None
    warp: Vectors | None = None
    version: int | None = None
    """Generation of the matrix instruction."""
    is_transposed: bool = False
    operand: int | None = None
    """Operand index of a dot operand: 0 for the left, 1 for the right operand."""
    width: int | None = None
    """For a dot operand: consecutive elements along k that a thread holds."""
    dim: int | None = None
    """For a slice: the dimension of its parent that was removed."""
    parent: Encoding | None = None
    """Parent layout of a slice or a dot operand."""
    swizzle: int | None = None
    """Bytes of a row that the swizzle of matrix operands and of TMA spans."""
    has_leading_offset: bool = False
    is_fp4_padded: bool = False
    padding: tuple[tuple[int, int], ...] = ()
    """For padded shared memory: (interval, padding) pairs in elements."""

    @property
    def chain(self) -> Iterator[Encoding]:
        """The layout, its parent, the parent's parent, and so on."""
        encoding: Encoding | None = self
        while encoding is not None:
            yield encoding
            encoding = encoding.parent

    @property
    def root(self) -> Encoding:
        """The last layout of the chain, which has no parent."""
        *_, last = self.chain
        return last

    @property
    def is_matrix(self) -> bool:
        """True for the layout of a matrix instruction's results."""
        return self.kind in _MATRIX_KINDS


_MATRIX_KINDS = frozenset({LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.TENSOR_MEMORY})
