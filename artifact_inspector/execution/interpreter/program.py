"""A kernel's code as steps that a machine runs, for any instruction set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from artifact_inspector.execution.interpreter.reconvergence import BlockRange
from artifact_inspector.model import Location, SourceLine

MALFORMED_OPERAND_ERRORS = (ArithmeticError, LookupError, TypeError, ValueError, StopIteration)
"""Of instructions of a damaged file, with operands that no assembler accepts; an AttributeError is a defect of ours."""

StepKind: TypeAlias = Literal[
    "", "global_load", "global_store", "global_atomic", "global_reduction", "copy", "tensor_load", "tensor_store",
    "scalar_load", "shared_load", "shared_store", "shared_atomic", "matrix_load", "matrix_store", "local_load",
    "local_store", "barrier", "warp_sync", "tensor",
]  # fmt: skip
"""The counter that an instruction belongs to; mypy rejects a comparison with any other word."""
GLOBAL_KINDS: tuple[StepKind, ...] = ("global_load", "global_store", "copy", "global_reduction", "global_atomic")
"""Accesses of lanes to global memory."""


class UndecidedPath(Exception):  # noqa: N818 - it is no error: the program's way is not known from here on
    """The path of a program depends on a missing input, or the program does not end."""

    def __init__(self, step: ProgramStep, reasons: tuple[str, ...]) -> None:
        super().__init__(", ".join(reasons))
        self.step = step
        self.reasons = reasons


@dataclass(frozen=True, slots=True)
class ProgramStep:
    """One instruction, ready to run."""

    index: int
    address: int
    opcode: str
    text: str
    line: int
    """Line in the disassembly."""
    run: Callable[[Any], bool | None]
    """Executes the step on a machine for its active lanes; True if the machine must choose the next group."""
    guard: str | None = None
    guard_is_negated: bool = False
    is_uniform: bool = False
    """Whether it writes uniform registers, which all lanes of a warp see."""
    runs_unguarded: bool = False
    """Whether it runs even if no lane's guard holds, as a branch does."""
    lane_flop: tuple[tuple[str, int], ...] = ()
    """Floating-point operations per lane by type."""
    matrix_types: tuple[str, str] | None = None
    """Types of the operands (`f16`, `e4m3`) and of the sums (`f32`) of a matrix product."""
    accepts_affine: bool = False
    """Whether `run` accepts affine values (`AffineValue`); otherwise it gets arrays."""
    ignores_inactive_lanes: bool = False
    """Whether it ignores the values of inactive lanes."""
    kind: StepKind = ""
    only_counts: bool = False
    """Whether its results are not written, because they decide nothing."""
    is_supported: bool = True
    """False if the opcode is not supported: its results are unknown."""
    assumes_swap: bool = False
    """Whether it ends a compare-and-swap loop as if no other wave changed the word."""
    starts_swap: bool = False
    """Whether it loads what a compare-and-swap loop expects first: an old value only costs another try."""
    location: Location | None = None
    """Its inline chain, innermost first."""

    @property
    def source_place(self) -> str | None:
        """`file:line` of the kernel's source, or of a function that it calls, but not in Triton's library."""
        return _source_place(self.location) if self.location else None


@lru_cache(maxsize=4096)
def _source_place(location: Location) -> str:
    return SourceLine.from_location(location).innermost


@dataclass(frozen=True, slots=True)
class DecodedProgram:
    """A kernel's code, decoded once; it may run many launches."""

    name: str
    steps: tuple[ProgramStep, ...]
    step_by_address: Mapping[int, int]
    """Address → index in `steps`."""
    warp_size: int = 32
    """Lanes of a warp, or of an AMD wavefront."""
    constants: Mapping[int, bytes] = field(default_factory=dict)
    """Constant banks from the binary."""
    parameters: tuple[tuple[int, int], ...] = ()
    """Offset in the constant bank, or in the kernel arguments, and bytes of each parameter, in order."""
    arch_number: int = 90
    shared_bytes: int = 0
    """Bytes of shared memory that a CTA may use; 0 if the binary does not say."""
    target: str = ""
    """`sm_90`, `gfx942`."""
    request_bytes: int = 32
    """Bytes per counted request unit: sectors on NVIDIA, L1 cache lines on AMD."""
    entry_step: int = 0
    """The entry step."""
    reconvergence_steps: Mapping[int, int] = field(default_factory=dict)
    """Branch → the step where all paths from it reconverge."""
    blocks: tuple[BlockRange, ...] = ()
    """Basic blocks; none if the successors of some are unknown."""
    keeps_shared_data: bool = True
    """Whether it needs the content of shared memory."""
    counting: DecodedProgram | None = None
    """The same program without data that reaches no address, guard or branch; None if that is unknown."""
    code_bytes: int = 0
    """Bytes of code, which are fetched from device memory like data; 0 if unknown."""

    @property
    def unsupported_opcodes(self) -> tuple[str, ...]:
        """Unsupported opcodes, in program order."""
        return tuple(dict.fromkeys(step.opcode for step in self.steps if not step.is_supported))
