"""What analysis asks a format about single instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from artifact_inspector.model.address import Addresses
from artifact_inspector.model.axes import AxisOperation
from artifact_inspector.model.condition import Conditions
from artifact_inspector.model.instruction import Instruction
from artifact_inspector.model.matrix import MatrixOp
from artifact_inspector.model.memory import Access, Pointing, Queue, Transfer, Wait
from artifact_inspector.model.module import Module
from artifact_inspector.model.scheduling import LoopHeader, WarpRequest
from artifact_inspector.model.shared import Launch, SharedUse
from artifact_inspector.model.tensor import TensorType
from artifact_inspector.model.trait import Trait


class Language(Protocol):
    """What analysis asks a format about single instructions; None where they are of another kind."""

    @property
    def traits(self) -> Callable[[str], Trait]:
        """What an opcode is beyond its kind."""

    @property
    def access(self) -> Callable[[Instruction], Access] | None:
        """The reads of a memory operation by role; None for a language that does not tell them apart."""

    @property
    def transfer(self) -> Callable[[Instruction, Module], Transfer | None]:
        """What a memory operation moves, or what a barrier is told to expect."""

    @property
    def wait(self) -> Callable[[Instruction, Module], Wait | None]:
        """What a wait waits for."""

    @property
    def commit(self) -> Callable[[Instruction], Queue | None]:
        """The queue in which a commit closes a group."""

    @property
    def matrix(self) -> Callable[[Instruction, Module], MatrixOp | None]:
        """What a matrix operation computes."""

    @property
    def types(self) -> Callable[[Instruction, Module], tuple[TensorType, ...]]:
        """Tensor types in the text of an operation, in order; empty below tensor-level IR."""

    @property
    def shared(self) -> Callable[[Instruction], SharedUse]:
        """What an operation of tensor-level IR asks of shared memory."""

    @property
    def launch(self) -> Callable[[Module], Launch]:
        """What a module of tensor-level IR says of its launch."""

    @property
    def source_name(self) -> Callable[[Instruction], str]:
        """What the program calls the result of an operation of tensor-level IR; empty where nothing tells."""

    @property
    def conditions(self) -> Conditions:
        """Which instructions decide whether an access takes place."""

    @property
    def in_shared(self) -> Callable[[Instruction], bool]:
        """True for an operation on an address in shared memory (below tensor-level IR)."""

    @property
    def pointing(self) -> Callable[[Instruction], Pointing]:
        """What an operation of tensor-level IR takes or makes of pointers."""

    @property
    def axes(self) -> Callable[[Instruction], AxisOperation]:
        """What an operation of tensor-level IR does to integers and pointers."""

    @property
    def asked_of_caches(self) -> Callable[[Sequence[str]], tuple[str, ...]]:
        """The words of an access about caches without those that ask for what happens anyway."""

    @property
    def keeps_cache_word(self) -> Callable[[str, Sequence[str]], bool]:
        """Whether some words about caches say, or stand for, one that the program has."""

    @property
    def precision(self) -> Callable[[Instruction], str | None]:
        """How precisely a dot of tensor-level IR multiplies, where it says."""

    @property
    def addresses(self) -> Addresses:
        """How addresses of shared memory are made of one another."""

    @property
    def loop_header(self) -> Callable[[Instruction], LoopHeader]:
        """What the operation that opens a loop of tensor-level IR says of it."""

    @property
    def warp_request(self) -> Callable[[Instruction], WarpRequest]:
        """What an operation asks for the warps that run it, or that it starts."""

    @property
    def mentions(self) -> Callable[[Instruction], list[str]]:
        """The values that an instruction names, results first where they stand first."""
