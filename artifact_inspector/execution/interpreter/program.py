"""A kernel's code as steps that a machine runs, for any instruction set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ODD_OPERANDS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StopIteration)
"""Exceptions from instructions of a damaged file, with operands that no assembler accepts."""


class Undecided(Exception):  # noqa: N818 - it is no error: the program's way is not known from here on
    """The path of a program depends on a missing input, or the program does not end."""

    def __init__(self, step: Step, reasons: tuple[str, ...]) -> None:
        super().__init__(", ".join(reasons))
        self.step = step
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction, ready to run."""

    index: int
    address: int
    opcode: str
    text: str
    line: int
    """Line in the disassembly."""
    source: tuple[str, int] | None
    """File and line of the kernel's source."""
    run: Callable[[Any], bool | None]
    """Executes the step on a machine for its active lanes; True if the machine must choose the next group."""
    guard: str | None = None
    unless: bool = False
    is_uniform: bool = False
    """Whether it writes uniform registers, which all lanes of a warp see."""
    always: bool = False
    """Whether it runs even if no lane's guard holds, as a branch does."""
    work: tuple[tuple[str, int], ...] = ()
    """Floating-point operations per lane by type."""
    sums: bool = False
    """Whether `run` accepts affine values (`Shifted`); otherwise it gets arrays."""
    by_lane: bool = False
    """Whether it ignores the values of inactive lanes."""
    kind: str = ""
    """The counter that it belongs to: `tensor`, `global_load` …"""
    is_understood: bool = True
    """False if the opcode is not supported: its results are unknown."""

    @property
    def place(self) -> str | None:
        """`file:line` of the kernel's source."""
        return None if self.source is None else f"{self.source[0].rpartition('/')[2]}:{self.source[1]}"


@dataclass(frozen=True, slots=True)
class Program:
    """A kernel's code, decoded once; it may run many launches."""

    name: str
    steps: tuple[Step, ...]
    places: Mapping[int, int]
    """Address → index in `steps`."""
    warp: int = 32
    """Lanes of a warp, or of an AMD wavefront."""
    constants: Mapping[int, bytes] = field(default_factory=dict)
    """Constant banks from the binary."""
    parameters: tuple[tuple[int, int], ...] = ()
    """Offset in the constant bank, or in the kernel arguments, and bytes of each parameter, in order."""
    arch: int = 90
    shared: int = 0
    """Bytes of shared memory that a CTA may use; 0 if the binary does not say."""
    target: str = ""
    """`sm_90`, `gfx942`."""
    line: int = 32
    """Bytes per counted request unit: sectors on NVIDIA, L1 cache lines on AMD."""
    start: int = 0
    """The entry step."""
    meets: Mapping[int, int] = field(default_factory=dict)
    """Branch → the step where all paths from it reconverge."""
    bytes: int = 0
    """Bytes of code, which are fetched from device memory like data; 0 if unknown."""

    @property
    def not_understood(self) -> tuple[str, ...]:
        """Unsupported opcodes, in program order."""
        return tuple(dict.fromkeys(step.opcode for step in self.steps if not step.is_understood))
