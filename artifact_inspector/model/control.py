"""Scheduling information encoded in an NVIDIA instruction."""

from __future__ import annotations

from typing import NamedTuple


class ControlInfo(NamedTuple):
    """Scheduling information encoded in an NVIDIA instruction (Volta and later)."""

    stall: int
    """Cycles before the warp may issue its next instruction."""
    yields: bool
    """True if the scheduler may switch to another warp."""
    write_barrier: int | None
    """Scoreboard (0 to 5) that is released when the result is written."""
    read_barrier: int | None
    """Scoreboard that is released when the operands are read."""
    wait_mask: int
    """Scoreboards that the instruction waits for, one bit per scoreboard."""
    reuse: int | None
    """Source operands kept in the reuse cache, one bit per operand; None where the text does not show them."""
