"""What the scheduler of an NVIDIA GPU is told with an instruction."""

from __future__ import annotations

from typing import NamedTuple


class Control(NamedTuple):
    """What the scheduler of an NVIDIA GPU is told with an instruction (Volta and later)."""

    stall: int
    """Cycles before the warp may issue its next instruction."""
    yields: bool
    """True where the scheduler may rather turn to another warp."""
    write_barrier: int | None
    """Scoreboard (0 to 5) that holds until the result is written."""
    read_barrier: int | None
    """Scoreboard that holds until the operands are read."""
    wait_mask: int
    """Scoreboards that the instruction waits for, one bit each."""
    reuse: int | None
    """Source operands kept in the reuse cache, one bit each; None where the text does not say."""
