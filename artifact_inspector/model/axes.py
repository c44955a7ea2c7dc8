"""How tensor-level IR operations transform the integers that addresses and masks are computed from."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum

Extents = tuple[int, ...]


class AxisRole(StringEnum):
    """What an operation does to integers and pointers."""

    NONE = "none"
    CONSTANT = "constant"
    RANGE = "range"
    """0, 1, 2 … along one axis."""
    PROGRAM = "program"
    """The program ID along one grid axis."""
    SPLAT = "splat"
    """Gives every element the same value."""
    BROADCAST = "broadcast"
    """Repeats the values along an axis of extent 1."""
    EXPAND = "expand"
    """Adds an axis of extent 1."""
    RESHAPE = "reshape"
    TRANSPOSE = "transpose"
    SAME = "same"
    """Leaves every element's value and position unchanged."""
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
    """Minimum or maximum of two values."""
    SELECT = "select"
    LOOP = "loop"
    """Increments a loop variable."""


class Hints(NamedTuple):
    """The author's promises about a value (`tl.multiple_of`, `tl.max_contiguous`); None for no promise.

    One number per axis, or one number for all axes.
    """

    contiguity: Extents | None
    divisibility: Extents | None
    constancy: Extents | None


class AxisOperation(NamedTuple):
    """One operation with the numbers written in its text."""

    role: AxisRole
    value: int | None = None
    """Value of an integer constant."""
    start: int = 0
    """First value of a range."""
    stop: int | None = None
    axis: int | None = None
    """Axis that an expansion adds."""
    order: Extents | None = None
    """For each axis of a transposition, its source axis."""
    pointee: int | None = None
    """Bytes of the element that a pointer points at."""
    grows_with_left: bool | None = None
    """For a comparison: True if it can turn true as the left side grows, False if false, None for equality."""
    holds_below: bool | None = None
    """For a comparison: True if it holds when the left side is below the right (`<`, `<=`), False if above, None for
    equality."""
    variable: str = ""
    """Loop variable."""
    loop_operands: tuple[str, ...] = ()
    """The values that a loop variable is computed from: lower bound and step."""
    hints: Hints | None = None
