"""Control codes of machine code: the schedule that the compiler encoded in each instruction.

**Source** Z. Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking" (2018), §2.1:
bits 105 to 125 of an instruction of sm_70 and later.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_NO_SCOREBOARD = 7


@dataclass(frozen=True, slots=True)
class ControlCode:
    """The control code of one instruction."""

    stall_cycles: int
    """Cycles until the next instruction of the warp can issue."""
    result_scoreboard: int | None
    """Scoreboard that is held until the result is available."""
    operand_scoreboard: int | None
    """Scoreboard that is held until the operands have been read."""
    awaited_scoreboards: tuple[int, ...]
    """Scoreboards that must be free before issue."""


def read_control_codes(code: bytes) -> tuple[ControlCode, ...]:
    """The control code of each instruction.

    Args:
        code: of sm_70 or later, 16 bytes per instruction.
    """
    controls = []
    for _, high in struct.iter_unpack("<QQ", code[: len(code) & ~15]):
        result, operands = high >> 46 & 7, high >> 49 & 7
        controls.append(
            ControlCode(
                high >> 41 & 15,
                None if result == _NO_SCOREBOARD else result,
                None if operands == _NO_SCOREBOARD else operands,
                tuple(bit for bit in range(6) if high >> (52 + bit) & 1),
            )
        )
    return tuple(controls)
