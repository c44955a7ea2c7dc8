"""What operations of tensor-level IR do to the numbers that addresses and masks are made of."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.word import Word

Extents = tuple[int, ...]


class AxisRole(Word):
    """What an operation does to integers and pointers."""

    NONE = "none"
    CONSTANT = "constant"
    RANGE = "range"
    """0, 1, 2 … along one axis."""
    PROGRAM = "program"
    """The number of the block in its grid."""
    SPLAT = "splat"
    """One number for every element."""
    BROADCAST = "broadcast"
    """Repeats what has extent 1 along an axis."""
    EXPAND = "expand"
    """Adds an axis of extent 1."""
    RESHAPE = "reshape"
    TRANSPOSE = "transpose"
    SAME = "same"
    """Leaves every element what it was, and where it was."""
    ADD = "add"
    SUBTRACT = "subtract"
    ADD_POINTER = "add to a pointer"
    MULTIPLY = "multiply"
    SHIFT_LEFT = "shift left"
    DIVIDE = "divide"
    SHIFT_RIGHT = "shift right"
    REMAINDER = "remainder"
    COMPARE = "compare"
    LOGIC = "logic"
    EITHER = "either"
    """The larger or the smaller of two."""
    SELECT = "select"
    LOOP = "loop"
    """Counts a variable up."""


class Hints(NamedTuple):
    """What the author promised of a value (`tl.multiple_of`, `tl.max_contiguous`); None for no promise.

    One number per axis, or one for all of them.
    """

    contiguity: Extents | None
    divisibility: Extents | None
    constancy: Extents | None


class AxisOperation(NamedTuple):
    """One operation, with the numbers that its text names for its role."""

    role: AxisRole
    value: int | None = None
    """Of a constant, where it is an integer."""
    start: int = 0
    """Of a range."""
    stop: int | None = None
    axis: int | None = None
    """Of an expansion, the axis that is new."""
    order: Extents | None = None
    """Of a transposition, for each axis the one that it was."""
    pointee: int | None = None
    """Bytes of what a pointer points at."""
    grows: bool | None = None
    """Of a compare: True where it turns true as the left side grows (or may do so), False where it turns
    false, None for equality."""
    below: bool | None = None
    """Of a compare: True where it holds of a left side below the right (`<`, `<=`), False of one above, None
    for equality."""
    variable: str = ""
    """Of a loop, the value that it counts."""
    counts: tuple[str, ...] = ()
    """Of a loop, the values that its variable is made of: where it begins, and the step."""
    hints: Hints | None = None
