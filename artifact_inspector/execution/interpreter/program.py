"""A kernel's code as steps that a machine runs, whatever its language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

ODD_OPERANDS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StopIteration)
"""What running an instruction of a damaged file may raise, whose operands no assembler would take."""


class Undecided(Exception):  # noqa: N818 - it is no error: the program's way is not known from here on
    """Where a program goes depends on what was not given, or it does not end."""

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
    """Of the text that it was read from."""
    source: tuple[str, int] | None
    """File and line of the kernel's source."""
    run: Callable[[Any], bool | None]
    """Does it on a machine, for the lanes that are on; True where it has to choose what runs next."""
    guard: str | None = None
    unless: bool = False
    is_uniform: bool = False
    """Writes registers that a warp shares: seen by all of its lanes."""
    always: bool = False
    """Runs where no lane's guard holds, too: a branch."""
    work: tuple[tuple[str, int], ...] = ()
    """Floating-point operations of one lane by type."""
    sums: bool = False
    """Its `run` takes registers as `Shifted` sums; else it is given arrays."""
    by_lane: bool = False
    """What lanes hold that are off does not matter to it."""
    kind: str = ""
    """What counters it counts in: `tensor`, `global_load` …"""
    is_understood: bool = True
    """False where the language has no semantics for it: its results are unknown."""

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
    """Banks of constants that the binary brings."""
    parameters: tuple[tuple[int, int], ...] = ()
    """Offset in the constant bank, or in the kernel's arguments, and bytes of each parameter in order."""
    arch: int = 90
    shared: int = 0
    """Bytes of shared memory that a CTA may use; 0 where the binary does not say."""
    target: str = ""
    """`sm_90`, `gfx942`."""
    line: int = 32
    """Bytes of what requests are counted in: NVIDIA's sectors, lines of AMD's first-level cache."""
    start: int = 0
    """The step that runs first."""
    meets: Mapping[int, int] = field(default_factory=dict)
    """Branch → the step to which all ways from it lead."""
    bytes: int = 0
    """Of the code, which comes from device memory as data do; 0 where that is not known."""

    @property
    def not_understood(self) -> tuple[str, ...]:
        """Opcodes without semantics, in the order of the program."""
        return tuple(dict.fromkeys(step.opcode for step in self.steps if not step.is_understood))
