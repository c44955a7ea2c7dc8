"""What analysis asks a format about single instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from artifact_inspector.model.address import Addresses
from artifact_inspector.model.axes import AxisOperation, AxisRole
from artifact_inspector.model.condition import Conditions
from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.kind import EventKind
from artifact_inspector.model.matrix import MatrixOp
from artifact_inspector.model.memory import Access, Pointing, Queue, Transfer, Wait
from artifact_inspector.model.module import Module
from artifact_inspector.model.scheduling import LoopHeader, WarpRequest
from artifact_inspector.model.shared import Launch, SharedRole, SharedUse
from artifact_inspector.model.tensor import TensorType
from artifact_inspector.model.trait import Trait

_NO_USE = SharedUse(SharedRole.NONE)
_NO_OPERATION = AxisOperation(AxisRole.NONE)
_NO_LAUNCH = Launch("", None, None, None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """What analysis asks a format about single instructions; nothing where they are of another kind."""

    traits: Callable[[str], Trait]
    """What an opcode is beyond its kind."""
    wait_of: Callable[[Instruction, Module], Wait | None]
    """What an instruction that is a WAIT waits for."""
    transfer: Callable[[Instruction, Module], Transfer | None]
    """What a memory operation moves, or what a barrier is told to expect."""
    commit: Callable[[Instruction], Queue | None] = lambda _: None
    """The queue in which a commit closes a group."""
    matrix_of: Callable[[Instruction, Module], MatrixOp | None]
    """What one issue of an instruction that is a MATRIX operation computes."""
    conditions: Conditions
    """Which instructions decide whether an access takes place."""
    access: Callable[[Instruction], Access] | None = None
    """The reads of a memory operation by role; None for a language that does not tell them apart."""
    types: Callable[[Instruction, Module], tuple[TensorType, ...]] = lambda _, __: ()
    """Tensor types in the text of an operation, in order; empty below tensor-level IR."""
    shared: Callable[[Instruction], SharedUse] = lambda _: _NO_USE
    """What an operation of tensor-level IR asks of shared memory."""
    launch: Callable[[Module], Launch] = lambda _: _NO_LAUNCH
    """What a module of tensor-level IR says of its launch."""
    source_name: Callable[[Instruction], str] = lambda _: ""
    """What the program calls the result of an operation of tensor-level IR; empty where nothing tells."""
    in_shared: Callable[[Instruction], bool] = lambda _: False
    """True for an operation on an address in shared memory (below tensor-level IR)."""
    pointing: Callable[[Instruction], Pointing] = lambda _: Pointing.NONE
    """What an operation of tensor-level IR takes or makes of pointers."""
    axes: Callable[[Instruction], AxisOperation] = lambda _: _NO_OPERATION
    """What an operation of tensor-level IR does to integers and pointers."""
    precision: Callable[[Instruction], str | None] = lambda _: None
    """How precisely a dot of tensor-level IR multiplies, where it says."""
    asked_of_caches: Callable[[Sequence[str]], tuple[str, ...]]
    """The words of an access about caches without those that ask for what happens anyway."""
    keeps_cache_word: Callable[[str, Sequence[str]], bool]
    """Whether some words about caches say, or stand for, one that the program has."""
    addresses: Addresses
    """How addresses of shared memory are made of one another."""
    loop_header: Callable[[Instruction], LoopHeader]
    """What the operation that opens a loop of tensor-level IR says of it."""
    warp_request: Callable[[Instruction], WarpRequest]
    """What an operation asks for the warps that run it, or that it starts."""
    mentions: Callable[[Instruction], list[str]]
    """The values that an instruction names, results first where they stand first."""

    def wait(self, instruction: Instruction, module: Module) -> Wait | None:
        """What a wait waits for."""
        return self.wait_of(instruction, module) if instruction.kind is EventKind.WAIT else None

    def matrix(self, instruction: Instruction, module: Module) -> MatrixOp | None:
        """What a matrix operation computes."""
        return self.matrix_of(instruction, module) if instruction.kind is EventKind.MATRIX else None
