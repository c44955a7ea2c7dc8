"""What an opcode is beyond its kind."""

from __future__ import annotations

from enum import Flag, auto

__all__ = ["Trait"]


class Trait(Flag):
    """What an opcode is beyond its kind; one opcode may have several, most have none."""

    NONE = 0
    FUSED = auto()
    """Multiplies and adds in one: it does two operations where others do one."""
    PACKED_PRODUCT = auto()
    """Adds up two or more products per lane (`v_dot2_f32_f16`, `dp4a`)."""
