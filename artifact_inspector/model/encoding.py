"""A layout attribute of tensor-level IR, as parsed: what it is called and the numbers written in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from artifact_inspector.model.word import Word

Extents = tuple[int, ...]
Vectors = tuple[Extents, ...]


class LayoutKind(Word):
    """What a layout says of its tensor; the value is what people read."""

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


@dataclass(frozen=True, slots=True)
class Encoding:
    """One layout attribute; lists and numbers that are not written are None."""

    name: str
    """As Triton names it, without the dialect: `blocked`, `nvidia_mma`."""
    kind: LayoutKind
    words: str
    """The kind as people read it, also for one that is `OTHER`."""
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
    """Of a linear layout, the move of each bit of the register number; likewise the next two."""
    lane: Vectors | None = None
    warp: Vectors | None = None
    version: int | None = None
    """Generation of the matrix instruction."""
    is_transposed: bool = False
    operand: int | None = None
    """Of a dot's operand: 0 for the left, 1 for the right one."""
    width: int | None = None
    """Of a dot's operand: elements along k that a thread holds next to each other."""
    dim: int | None = None
    """Of a slice: the dimension of its parent that is gone."""
    parent: Encoding | None = None
    """What a slice, or an operand of a dot, is made of."""
    swizzle: int | None = None
    """Bytes of a row that the swizzling of matrix operands and of TMA spans."""
    has_leading_offset: bool = False
    is_fp4_padded: bool = False
    padding: tuple[tuple[int, int], ...] = ()
    """Of padded memory: after so many elements, so many of nothing."""

    @property
    def chain(self) -> Iterator[Encoding]:
        """The layout, then what it is made of, and so on."""
        found: Encoding | None = self
        while found is not None:
            yield found
            found = found.parent

    @property
    def root(self) -> Encoding:
        """The layout at the end of the chain, which is made of no other."""
        *_, last = self.chain
        return last

    @property
    def is_matrix(self) -> bool:
        """True for the layout of a matrix unit's results."""
        return self.kind in _OF_MATRIX


_OF_MATRIX = frozenset({LayoutKind.MMA, LayoutKind.MFMA, LayoutKind.WMMA, LayoutKind.TENSOR_MEMORY})
