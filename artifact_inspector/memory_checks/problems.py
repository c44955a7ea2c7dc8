"""Memory errors of a launch, the coverage of its outputs, and what could not be decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from artifact_inspector.execution.interpreter.program import ProgramStep


class Check(str, Enum):
    """What a memory error is."""

    OUT_OF_BOUNDS = "out-of-bounds"
    """An access outside of every tensor."""
    OVERFLOW = "offset-overflow"
    """An out-of-bounds access because a 32-bit offset wrapped."""
    RACE = "race"
    """Two CTAs access one address, and at least one writes without an atomic."""
    MISALIGNED = "misaligned"
    """A vector access at an address that is no multiple of its size."""
    COVERAGE = "coverage"
    """An output is written only in part."""
    SHARED_RACE = "shared-memory race"
    """Two warps access one byte of shared memory without a barrier in between, and one of them writes."""
    UNINITIALIZED = "uninitialized shared memory"
    """A read of shared memory that nothing has written."""
    UNAWAITED_COPY = "unawaited copy"
    """An access to shared memory that an asynchronous copy may still be writing."""


@dataclass(frozen=True, slots=True)
class InstructionSite:
    """An instruction, by its line in the machine code and in the source."""

    opcode: str
    line: int
    """Line in the machine code."""
    source: str | None
    """`file:line` of the kernel's source."""

    def __str__(self) -> str:
        return f"{self.opcode} at line {self.line}" if self.source is None else f"{self.source} ({self.opcode})"


def site_of(step: ProgramStep) -> InstructionSite:
    """The site of a step."""
    return InstructionSite(step.opcode, step.line, step.source_place)


@dataclass(frozen=True, slots=True)
class MemoryProblem:
    """One memory error; equal errors of many lanes are one."""

    check: Check
    message: str
    site: InstructionSite
    tensor: str | None = None
    """The tensor that is accessed, or the nearest one."""
    cta: int | None = None
    """Linear number of the first such CTA."""
    thread: int | None = None
    """Thread number in that CTA."""
    address: int | None = None
    """First such address; in shared memory, from the beginning of the CTA's own."""
    lanes: int | None = None
    """Lanes with this error."""
    other_site: InstructionSite | None = None
    """The other access of a race."""
    other_cta: int | None = None
    suggestion: str | None = None
    """A possible correction."""


@dataclass(frozen=True, slots=True)
class TensorCoverage:
    """How much of an output is written."""

    tensor: str
    elements: int
    written_elements: int | None
    """Null if unknown."""
    is_written_once: bool | None
    """Whether no element is written twice; null if unknown."""
    tiles: int | None = None
    """Tiles of the tensor, if every CTA writes one of the same size."""
    written_tiles: int | None = None
    is_updated: bool = False
    """Whether atomics update it."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """The memory errors of one launch."""

    kernel: str
    hash: str
    target: str
    grid: tuple[int, int, int]
    problems: tuple[MemoryProblem, ...]
    """The errors, in the order of the checks."""
    undecided: tuple[str, ...]
    """What could not be decided, and which input is missing."""
    coverage: tuple[TensorCoverage, ...]
    notes: tuple[str, ...] = ()
    """Limits of the checks for this launch."""

    @property
    def status(self) -> str:
        """`error`, `undecided` or `clean`."""
        return "error" if self.problems else "undecided" if self.undecided else "clean"
