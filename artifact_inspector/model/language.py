"""A format's interface to the analysis of single instructions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.model.address import SharedAddresses
from artifact_inspector.model.axes import AxisOperation, AxisRole
from artifact_inspector.model.condition import Conditions
from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.kind import EventKind
from artifact_inspector.model.matrix import MatrixOp
from artifact_inspector.model.memory import AccessOperands, PointerUse, Queue, Transfer, WaitOp
from artifact_inspector.model.module import Module
from artifact_inspector.model.schedule import ScheduleRole, ScheduleStep
from artifact_inspector.model.shared import LaunchParameters, SharedRole, SharedUse
from artifact_inspector.model.tensor import TensorType
from artifact_inspector.model.trait import Trait

_NO_USE = SharedUse(SharedRole.NONE)
_NO_OPERATION = AxisOperation(AxisRole.NONE)
_NO_STEP = ScheduleStep(ScheduleRole.NONE)
_NO_LAUNCH = LaunchParameters("", None, None, None, None, None)


class LoopHeader(NamedTuple):
    """Attributes of the operation that opens a loop of tensor-level IR."""

    num_stages: int | None = None
    """The pipeline stages that the loop itself requests."""
    bounds: tuple[str, str, str] | None = None
    """Lower bound, upper bound and step."""
    is_flattened: bool = False
    """True if the loop is to be flattened with the loop inside it (`tl.range(…, flatten=True)`)."""


class WarpRequest(NamedTuple):
    """What one operation requests for the warps that run it, or that it starts."""

    registers: tuple[int, ...] = ()
    """Registers per thread for each partition that it starts; or the limit that the instruction sets."""
    warps: Mapping[str, int] = {}
    """Number of warps by partition number."""
    priority: int | None = None
    """Priority of the wavefront from this instruction on, or in the stage that it delimits."""
    pipeline_stage: str = ""
    """Name of the stage of AMD's warp pipeline that it delimits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSemantics:
    """A format's interface to the analysis of single instructions.

    A query about an instruction of another kind gives nothing.
    """

    traits: Callable[[str], Trait]
    """Traits of an opcode beyond its kind."""
    wait_of: Callable[[Instruction, Module], WaitOp | None]
    """What a WAIT instruction waits for."""
    transfer: Callable[[Instruction, Module], Transfer | None]
    """What a memory operation moves, or how many bytes a barrier is set to expect."""
    commit: Callable[[Instruction], Queue | None] = lambda _: None
    """The queue in which a commit closes a group."""
    matrix_of: Callable[[Instruction, Module], MatrixOp | None]
    """What one issue of a MATRIX instruction computes."""
    conditions: Conditions
    """Conditions under which accesses happen."""
    access_operands: Callable[[Instruction], AccessOperands] | None = None
    """The reads of a memory operation by role; None for a language that does not distinguish them."""
    tensor_types: Callable[[Instruction, Module], tuple[TensorType, ...]] = lambda _, __: ()
    """Tensor types in the text of an operation, in order; empty below tensor-level IR."""
    shared_use: Callable[[Instruction], SharedUse] = lambda _: _NO_USE
    """Shared memory that an operation of tensor-level IR needs."""
    launch_parameters: Callable[[Module], LaunchParameters] = lambda _: _NO_LAUNCH
    """Launch parameters stated by a module of tensor-level IR."""
    source_name: Callable[[Instruction], str] = lambda _: ""
    """Source name of the result of an operation of tensor-level IR; empty if unknown."""
    accesses_shared: Callable[[Instruction], bool] = lambda _: False
    """True for an operation on an address in shared memory (below tensor-level IR)."""
    pointer_use: Callable[[Instruction], PointerUse] = lambda _: PointerUse.NONE
    """How an operation of tensor-level IR uses or makes pointers."""
    axis_operation: Callable[[Instruction], AxisOperation] = lambda _: _NO_OPERATION
    """What an operation of tensor-level IR does to integers and pointers."""
    schedule_step: Callable[[Instruction, Module], ScheduleStep] = lambda _, __: _NO_STEP
    """What an operation of tensor-level IR does to buffers, barriers and asynchronous work."""
    integer_value: Callable[[Instruction, Sequence[int | None]], int | None] = lambda _, __: None
    """The integer that an operation of tensor-level IR gives for some operands; None if unknown."""
    input_precision: Callable[[Instruction], str | None] = lambda _: None
    """Input precision of a dot of tensor-level IR, where stated."""
    requested_cache_modifiers: Callable[[Sequence[str]], tuple[str, ...]]
    """Cache modifiers of an access, without those that request the default behaviour."""
    has_cache_modifier: Callable[[str, Sequence[str]], bool]
    """Whether some cache modifiers include a given modifier of the program, or an equivalent."""
    addresses: SharedAddresses
    """How shared-memory addresses are computed."""
    loop_header: Callable[[Instruction], LoopHeader]
    """Attributes of the operation that opens a loop of tensor-level IR."""
    warp_request: Callable[[Instruction], WarpRequest]
    """What an operation requests for the warps that run it, or that it starts."""
    named_values: Callable[[Instruction], list[str]]
    """The values that an instruction names, results first where the text has them first."""

    def wait(self, instruction: Instruction, module: Module) -> WaitOp | None:
        """What a wait waits for."""
        return self.wait_of(instruction, module) if instruction.kind is EventKind.WAIT else None

    def matrix(self, instruction: Instruction, module: Module) -> MatrixOp | None:
        """What a matrix operation computes."""
        return self.matrix_of(instruction, module) if instruction.kind is EventKind.MATRIX else None
