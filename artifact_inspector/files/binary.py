"""What is read of a compiled binary: values only, so that nobody has to import what reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.hardware.targets import Target


class StackAccess(NamedTuple):
    """The loads or stores of local memory (spills, local arrays) at one offset, as they stand in the code."""

    is_store: bool
    offset: int | None
    """Bytes above the stack pointer; None for an address that another register holds."""
    bytes: int
    """Bytes per thread that the instructions move when each is run once."""


@dataclass(frozen=True, slots=True)
class Cubin:
    """What a cubin says of one kernel."""

    kernel: str
    target: Target | None
    registers: int | None
    """Per thread."""
    frame_bytes: int | None
    """Local memory per thread of the kernel itself: spill slots and local arrays."""
    static_shared: int
    """Bytes per block that the file itself asks for, without the system's; Triton's is dynamic, hence 0."""
    threads: int | None
    """Threads per block that a launch must have (`.reqntid`), or may have at most (`.maxntid`)."""
    barriers: int | None
    calls: tuple[str, ...]
    """Functions outside the file that it calls (`vprintf`, `__assertfail`)."""
    stack: tuple[StackAccess, ...] | None
    """None where the instructions are not those of sm_70 and later."""

    def said_by(self, *, is_store: bool) -> str:
        """What stores to, or loads from, the stack are found by."""
        return f"cubin, {'STL' if is_store else 'LDL'} instructions"


@dataclass(frozen=True, slots=True)
class Hsaco:
    """What the metadata note of an hsaco says of one kernel; a figure it lacks is None.

    Source: LLVM, AMDGPUUsage, Code Object Metadata.
    """

    kernel: str
    target: Target | None
    figures: Mapping[str, int]
    """By the names that the AMDGCN text has: `vgpr_count`, `private_segment_fixed_size` …"""


class Interface(NamedTuple):
    """What a launch puts into a cubin's kernel, and what the file brings of constants."""

    parameters: tuple[tuple[int, int], ...]
    """Offset in constant bank 0 and bytes of each parameter, in the order of the kernel's own."""
    constants: Mapping[int, bytes]
    """Banks of constants but the one that a launch fills, and 4: its addresses are put there on loading."""


Binary = Cubin | Hsaco
