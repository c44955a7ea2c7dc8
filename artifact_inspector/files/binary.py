"""Values read from compiled binaries, separate from the code that reads them to keep imports cheap."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.hardware.targets import Target


class StackAccess(NamedTuple):
    """The loads or stores of local memory (spills, local arrays) at one offset, counted statically."""

    is_store: bool
    offset: int | None
    """Bytes above the stack pointer; None for an address in another register."""
    bytes: int
    """Bytes per thread if each instruction runs once."""


@dataclass(frozen=True, slots=True)
class Cubin:
    """The data of one kernel in a cubin."""

    kernel: str
    target: Target | None
    registers: int | None
    """Registers per thread."""
    frame_bytes: int | None
    """Local memory per thread of the kernel itself: spill slots and local arrays."""
    static_shared: int
    """Static shared memory per block in bytes, without the system's; 0 for Triton, which uses dynamic."""
    threads: int | None
    """Threads per block that a launch must have (`.reqntid`), or its maximum (`.maxntid`)."""
    barriers: int | None
    calls: tuple[str, ...]
    """External functions that it calls (`vprintf`, `__assertfail`)."""
    stack: tuple[StackAccess, ...] | None
    """None for instructions before sm_70."""


@dataclass(frozen=True, slots=True)
class Hsaco:
    """The data of one kernel in the metadata note of an hsaco; missing figures are None.

    Source: LLVM, AMDGPUUsage, Code Object Metadata.
    """

    kernel: str
    target: Target | None
    figures: Mapping[str, int]
    """Figures by their names in the AMDGCN text: `vgpr_count`, `private_segment_fixed_size` …"""


class KernelInterface(NamedTuple):
    """A cubin kernel's parameters, and the constants in the file."""

    parameters: tuple[tuple[int, int], ...]
    """Offset in constant bank 0 and size in bytes of each parameter, in the kernel's order."""
    constants: Mapping[int, bytes]
    """Constant banks, except the bank that a launch fills, and bank 4, whose addresses are set on loading."""


Binary = Cubin | Hsaco
