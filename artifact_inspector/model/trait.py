"""Properties of opcodes beyond their kind."""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """Properties of an opcode beyond its kind; most opcodes have none, some have several."""

    NONE = 0
    FUSED = auto()
    """Multiplies and adds: two operations where others do one."""
    PACKED_PRODUCT = auto()
    """Sums two or more products per lane (`v_dot2_f32_f16`, `dp4a`)."""
    LOOP = auto()
    """A structured loop, followed by its body."""
    COUNTED_LOOP = auto()
    """A structured loop whose first operand is the induction variable."""
    SELECTION = auto()
    """Selects one of two values by its first operand."""
    COMBINATION = auto()
    """Combines the elements along an axis: a reduction, a scan, a histogram."""
    HAS_BODY = auto()
    """The following operations define how two elements combine."""
    END_OF_BODY = auto()
    """Ends the operations that combine two elements."""
    READS_ROWS = auto()
    """Reads whole rows of a tile in shared memory for all lanes of a warp (`ldmatrix`)."""
    READS_WORD = auto()
    """Reads 4 bytes or less of shared memory for each lane."""
    ACCESSES_ELEMENT = auto()
    """Loads or stores 2 bytes or less of shared memory for each lane."""
    RENAMES = auto()
    """Only renames, splits or joins values: no machine instruction is needed."""
    PHI = auto()
    """Takes the value of the predecessor block (`phi`)."""
    AT_BARRIER = auto()
    """Waits for a barrier in shared memory, arrives at it, or is a barrier of the block."""
    ARRIVES = auto()
    """Arrives at a barrier in shared memory, or sets the bytes that it expects."""
    POSITIONLESS = auto()
    """Requests an instruction order within a loop; its own position has no meaning."""
    COMPARISON = auto()
    """Compares integers."""
    MAXIMUM = auto()
    """The larger of two floats. Of a value and itself, it is a copy: LLVM quiets a NaN with it."""
    SWAPS = auto()
    """An atomic that swaps a word of memory if it holds an expected value (`atom.cas`, `cmpxchg`)."""
    EXPANDABLE = auto()
    """An atomic that the next compiler may expand into a compare-and-swap loop."""
    FLOATING_POINT = auto()
    """Computes on floating-point numbers."""
