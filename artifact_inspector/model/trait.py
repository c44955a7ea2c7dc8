"""What an opcode is beyond its kind."""

from __future__ import annotations

from enum import Flag, auto


class Trait(Flag):
    """What an opcode is beyond its kind; one opcode may have several, most have none."""

    NONE = 0
    FUSED = auto()
    """Multiplies and adds in one: it does two operations where others do one."""
    PACKED_PRODUCT = auto()
    """Adds up two or more products per lane (`v_dot2_f32_f16`, `dp4a`)."""
    LOOP = auto()
    """A structured loop, whose body stands behind it."""
    COUNTED = auto()
    """A structured loop whose first operand is the variable that it counts."""
    SELECTION = auto()
    """Takes one of two values, as its first operand says."""
    COMBINATION = auto()
    """Combines the elements along an axis: a reduction, a scan, a histogram."""
    WITH_BODY = auto()
    """The operations behind it say how two elements combine."""
    END_OF_BODY = auto()
    """Ends the operations that combine two elements."""
    READS_ROWS = auto()
    """Reads whole rows of a tile in shared memory for all lanes of a warp (`ldmatrix`)."""
    READS_A_WORD = auto()
    """Reads 4 bytes or less of shared memory for each lane."""
    RENAMES = auto()
    """Only renames, splits or joins values: it costs the machine nothing."""
    JOINS_BLOCKS = auto()
    """Takes the value of the block that was left last (`phi`)."""
    AT_BARRIER = auto()
    """Waits for a barrier in shared memory, arrives at it, or is a barrier of the block."""
    ARRIVES = auto()
    """Arrives at a barrier in shared memory, or tells it what to expect."""
    MARKS_NO_PLACE = auto()
    """Asks for an order within a loop, and stands for no place in it."""
    COMPARISON = auto()
    """Compares integers."""
    ON_FLOATS = auto()
    """Computes on floating-point numbers."""
