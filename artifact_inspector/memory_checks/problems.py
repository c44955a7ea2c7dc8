"""Memory errors of a launch, the coverage of its outputs, and what could not be decided."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.model import SourceLine


class Check(str, Enum):
    """What a memory error is."""

    OUT_OF_BOUNDS = "out-of-bounds"
    OVERFLOW = "offset-overflow"
    RACE = "race"
    MISALIGNED = "misaligned"
    COVERAGE = "coverage"
    UNINITIALIZED_TENSOR = "uninitialized tensor"
    SHARED_RACE = "shared-memory race"
    UNINITIALIZED = "uninitialized shared memory"
    UNINITIALIZED_REGISTER = "uninitialized register"
    UNAWAITED_COPY = "unawaited copy"
    UNAWAITED_PRODUCT = "unawaited product"
    OPERAND_IN_USE = "operand in use"
    MISSING_FENCE = "missing proxy fence"
    MBARRIER = "mbarrier error"
    DEADLOCK = "deadlock"
    DIVERGED = "diverged warp"
    VALUE = "wrong value"


SUMMARIES = {
    Check.OUT_OF_BOUNDS: "Access outside of every tensor",
    Check.OVERFLOW: "32-bit offset that wraps",
    Check.RACE: "Two CTAs access one address and at least one writes without an atomic",
    Check.MISALIGNED: "Vector access at an address that is no multiple of its size",
    Check.COVERAGE: "Output that is written only in part",
    Check.UNINITIALIZED_TENSOR: "Read of a tensor that was created without values and never written",
    Check.SHARED_RACE: "Two warps access a byte of shared memory without a barrier in between",
    Check.UNINITIALIZED: "Read of shared memory that nothing has written",
    Check.UNINITIALIZED_REGISTER: "Address or matrix descriptor from a register that no instruction has written",
    Check.UNAWAITED_COPY: "Access to shared memory that an asynchronous copy may still be writing",
    Check.UNAWAITED_PRODUCT: "Access to a result that an asynchronous matrix product may still be writing",
    Check.OPERAND_IN_USE: "Write to shared memory that an asynchronous copy or product may still be reading",
    Check.MISSING_FENCE: "Read by a tensor copy or matrix product without a proxy fence after the write",
    Check.MBARRIER: "Use of an mbarrier that is not valid, or too many arrivals",
    Check.DEADLOCK: "Warps that wait for an arrival that never comes",
    Check.DIVERGED: "Matrix instruction or shuffle that a warp runs in parts",
    Check.VALUE: "Stored value that differs from that of Triton's interpreter by more than rounding",
}
"""What an error of each kind is."""


@dataclass(frozen=True, slots=True)
class InstructionSite:
    """An instruction, by its line in the machine code and in the source."""

    opcode: str
    line: int
    """Line in the machine code."""
    source: str | None
    """`file:line` of the innermost function outside of Triton's library."""
    called_from: tuple[str, ...] = ()
    """`file:line` of the calls that it was inlined through, innermost first."""

    @property
    def source_line(self) -> int:
        """The line of the source; 0 if unknown."""
        return int((self.source or ":0").rpartition(":")[2])

    def __str__(self) -> str:
        if self.source is None:
            return f"{self.opcode} at line {self.line}"
        return f"{SourceLine((self.source, *self.called_from))} ({self.opcode})"


def site_of(step: ProgramStep) -> InstructionSite:
    """The site of a step."""
    if not step.location:
        return InstructionSite(step.opcode, step.line, None)
    line = SourceLine.from_location(step.location)
    return InstructionSite(step.opcode, step.line, line.innermost, line.called_from)


@dataclass(frozen=True, slots=True)
class IndexBound:
    """The bound that an index of a tensor exceeds."""

    tensor: str
    """The pointer argument."""
    dimensions: int
    stride: int
    """Elements between neighbours of the dimension whose index is outside."""
    bound: str
    """What its index must be: `< n`."""


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
    missing_mask: IndexBound | None = None
    """The mask of the suggestion."""


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
class ProductWork:
    """The work of a launch that computes one matrix product."""

    executed_flop: int
    """By matrix instructions."""
    expected_flop: int
    """2·M·N·K by the shapes of the tensors."""


@dataclass(frozen=True, slots=True)
class SizeSearch:
    """The search for sizes with which a launch leaves its tensors."""

    launches: int
    """Launches that were tried."""
    assumptions: tuple[str, ...]
    smallest_failing: str | None
    """The sizes of the smallest launch that fails; null if none does."""
    undecided: str | None
    """Why some accesses are unknown."""
    proof: str | None = None
    """For which sizes the masks prove that no access leaves its tensor; null without a proof."""


@dataclass(frozen=True, slots=True)
class TensorValues:
    """How many stored elements of a tensor were compared with those of Triton's interpreter."""

    tensor: str
    compared: int
    unknown: int
    """Elements whose value the simulation does not know."""
    wrong: int


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
    work: ProductWork | None = None
    """If the shapes of the tensors are those of one matrix product."""
    sizes: SizeSearch | None = None
    """The search for other sizes, if it was requested."""
    values: tuple[TensorValues, ...] = ()
    """The tensors whose values were compared."""
    notes: tuple[str, ...] = ()
    """Limits of the checks for this launch."""
    patch: str | None = None
    """A unified diff that adds the missing masks; tried before it is shown."""

    @property
    def status(self) -> str:
        """`error`, `undecided` or `clean`."""
        return "error" if self.problems else "undecided" if self.undecided else "clean"
