"""What every format parses into: modules, functions, basic blocks and instructions with a kind.

From here on nothing knows which language an instruction came from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple, Protocol

__all__ = [
    "UNCLOSED",
    "Access",
    "BasicBlock",
    "Control",
    "EventKind",
    "Flow",
    "Frame",
    "Function",
    "Instruction",
    "Language",
    "Location",
    "MatrixOp",
    "Module",
    "Operands",
    "Partition",
    "Queue",
    "Stage",
    "TensorType",
    "Transfer",
    "Wait",
]


class Stage(Enum):
    """A compilation stage, in the order in which the compiler runs them."""

    TTIR = "ttir"
    TTGIR = "ttgir"
    LLIR = "llir"
    PTX = "ptx"
    AMDGCN = "amdgcn"
    SASS = "sass"

    @property
    def order(self) -> int:
        """Place in the compilation; PTX and AMDGCN are alternatives and share one."""
        return _STAGE_ORDER[self]

    @property
    def made_by(self) -> str:
        """The compiler component whose output this stage is, in a sentence."""
        return _STAGE_MAKER[self]

    @property
    def component(self) -> str:
        """The same by one name for both vendors."""
        return _COMPONENTS[self.order]


UNCLOSED = "is not closed"
"""How every format says of a function that the file ends, or another begins, inside it."""

_STAGE_ORDER = {Stage.TTIR: 0, Stage.TTGIR: 1, Stage.LLIR: 2, Stage.PTX: 3, Stage.AMDGCN: 3, Stage.SASS: 4}
_COMPONENTS = (
    "front end",
    "Triton GPU passes",
    "Triton lowering + LLVM middle end",
    "LLVM back end",
    "ptxas",
)
_STAGE_MAKER = {
    Stage.TTIR: "Triton's front end",
    Stage.TTGIR: "Triton's GPU passes",
    Stage.LLIR: "Triton's lowering and LLVM's middle end",
    Stage.PTX: "LLVM's NVPTX back end",
    Stage.AMDGCN: "LLVM's AMDGPU back end",
    Stage.SASS: "ptxas",
}


class EventKind(Enum):
    """What an instruction is to the order of loads and computes.

    Each member is (letter in a signature, name in the counts); kinds that take no part in a
    signature have an empty letter.
    """

    GLOBAL_LOAD = ("L", "global_load")
    ASYNC_COPY = ("A", "async_copy")
    COMMIT = ("K", "commit")
    WAIT = ("W", "wait")
    SHARED_LOAD = ("s", "shared_load")
    SHARED_STORE = ("t", "shared_store")
    MATRIX = ("M", "matrix")
    FLOAT = ("F", "float")
    BARRIER = ("B", "barrier")
    LAYOUT_CONVERSION = ("X", "layout_conversion")
    SCHEDULE_HINT = ("h", "schedule_hint")
    GLOBAL_STORE = ("S", "global_store")
    ATOMIC = ("R", "atomic")
    LOCAL_LOAD = ("", "local_load")
    """A load from a thread's own memory (scratch, a spill reload)."""
    LOCAL_STORE = ("", "local_store")
    SCALAR_LOAD = ("", "scalar_load")
    """A load through the scalar cache: kernel arguments, or data that is the same for all threads."""
    SHUFFLE = ("", "shuffle")
    BRANCH = ("", "branch")
    """Control flow: branches, calls, returns, structured control-flow operations."""
    INTEGER = ("", "integer")
    """Address and integer arithmetic, comparisons of integers, predicates, logic."""
    MOVE = ("", "move")
    """Moves, conversions, selections, layout-free reshapes: the value stays what it was."""
    OTHER = ("", "other")
    """Known, and of no interest here (fences, annotations, argument loads …)."""
    UNKNOWN = ("?", "unknown")

    def __init__(self, letter: str, count_name: str) -> None:
        self.letter = letter
        self.count_name = count_name

    # Members are singletons; Enum's own hash is a Python call, and kinds are looked up per instruction.
    __hash__ = object.__hash__


class Frame(NamedTuple):
    """One source position; `file` is the path as the compiler wrote it, `line` is 1-based."""

    file: str
    line: int
    column: int


Location = tuple[Frame, ...]
"""An inline chain, innermost frame first; the last frame is the line in the user's kernel.

PTX keeps only a part of it: the innermost frame (until Triton 3.3), or it and its caller.
"""


class Operands(NamedTuple):
    """Names of the values that an instruction defines and reads, in the order of the text.

    Register ranges are spelled out one by one (`v[2:3]` is `v2`, `v3`); immediates are left out.
    """

    results: tuple[str, ...]
    reads: tuple[str, ...]


class Instruction(NamedTuple):
    """One instruction, or one event inside a line of inline assembly."""

    line: int
    """1-based line in the file."""
    opcode: str
    """With its modifiers, without guard and operands: `ld.global.v4.b32`, `tt.load`."""
    kind: EventKind
    location: Location | None
    guard: str | None
    """Predicate under which it runs (`%p1`, `!%p1`), None when it always does."""
    text: str
    """The statement without location and comment."""
    decode: Callable[[str], Operands]
    """The format's reader of operands; called only for the few instructions that need it."""

    @property
    def operands(self) -> Operands:
        """Results and reads, decoded from the text at each call."""
        return self.decode(self.text)


class Access(NamedTuple):
    """The reads of a memory operation by what they are for."""

    address: tuple[str, ...]
    mask: tuple[str, ...]
    value: tuple[str, ...]
    """Data stored, combined, or taken where the mask is off."""


class Queue(Enum):
    """What tells that an operation in flight is complete; what a wait waits for."""

    USE = "first use"
    """A register: the first instruction that reads it waits."""
    GROUP = "groups of copies"
    """Committed groups of copies, in order (`cp.async`, AMD's asyncmark)."""
    PHASE = "barrier phase"
    """A barrier in shared memory that counts bytes and arrivals (mbarrier)."""
    LOADS = "vector-memory loads"
    """AMD's vmcnt or loadcnt, in order; up to gfx9 stores count too."""
    COPIES = "copies"
    """AMD's asynccnt, in order."""
    TENSORS = "tensor copies"
    """AMD's tensorcnt, in order."""
    MATRIX = "groups of matrix operations"
    """Committed groups of asynchronous matrix operations (wgmma, tcgen05)."""
    STORES = "groups of stores"
    """Committed groups of bulk stores; AMD's vscnt or storecnt."""

    __hash__ = object.__hash__


class Wait(NamedTuple):
    """What a wait instruction asks for."""

    op: str
    """The opcode as people write it: `cp.async.wait_group`, `s_waitcnt vmcnt`, `ttg.async_wait`."""
    depth: int | None
    """How many younger members of its queue may still be in flight; None where the wait names
    none (a barrier phase)."""
    queue: Queue
    barrier: str | None = None
    """The value that names the barrier, for a wait for a phase."""


class Transfer(NamedTuple):
    """What a global load, store, atomic or asynchronous copy moves, as its text says."""

    bytes: int | None
    """Bytes per thread, or per block where `of_block`; None where the text does not say."""
    queue: Queue | None
    """What tells that it is complete; None for a store or reduction that no wait counts."""
    cache: tuple[str, ...] = ()
    """Cache modifiers and eviction policies as written: `cg`, `L1::evict_last`, `nt`, `sc0` …"""
    of_block: bool = False
    """True for a copy that moves a tile for the whole block (TMA), and for tensor-level IR."""
    barrier: str | None = None
    """The value that names the barrier it arrives at."""


class MatrixOp(NamedTuple):
    """What one issue of a matrix instruction does."""

    op: str
    """As people write it, without shape and types: `mma.sync`, `wgmma.mma_async`, `v_mfma`, `tt.dot`."""
    family: str
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`, as `Limits.matrix_unit` has it; `dot` in tensor-level IR."""
    m: int
    n: int
    k: int
    blocks: int
    """Products that one issue computes side by side (`v_mfma_f32_4x4x4_16b_f16` has 16); in tensor-level
    IR the batch. A sparse product counts as the dense one that its shape names."""
    types: str
    """Element types of a, b and the result: `f16×f16→f32`."""
    issuer: str
    """Who issues it together: `warp`, `warpgroup`, `CTA`, `CTA pair`, `wavefront`; `block` in
    tensor-level IR."""

    @property
    def shape(self) -> str:
        """`m16n8k16`, with the number of products where one issue computes several."""
        return f"m{self.m}n{self.n}k{self.k}" + (f"×{self.blocks}" if self.blocks > 1 else "")

    @property
    def flop(self) -> int:
        """Floating-point (or integer) operations of one issue: two for each multiply-add."""
        return 2 * self.m * self.n * self.k * self.blocks


class TensorType(NamedTuple):
    """A tensor or a view of shared memory, in tensor-level IR."""

    shape: tuple[int, ...]
    element: str
    """`f16`, `i32`, `!tt.ptr<f16>` …"""
    bits: int
    """Bits of one element; of what it points at for a pointer."""
    layout: str
    """The layout attribute with its alias resolved, empty where there is none."""
    is_memory: bool
    """True for memory (`!ttg.memdesc`; until Triton 2.3 a tensor with a shared layout), False for
    registers."""

    @property
    def elements(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def size(self) -> int:
        """Bytes of all elements, without padding."""
        return (self.elements * self.bits + 7) // 8


class Flow(NamedTuple):
    """A value handed over by no instruction: MLIR's region and block arguments, yields and results."""

    source: str
    target: str
    at: int
    """Index of the instruction that hands over (the `scf.for`, `scf.yield`, `cf.br` …)."""
    owner: int
    """What the target belongs to: the index of the operation whose result or region argument it
    is, or -1 - b for an argument of block b. Names are reused between sibling regions; (owner,
    target) is unique."""
    back: bool
    """True along a loop's back edge: the value arrives one iteration later."""


@dataclass(frozen=True, slots=True)
class BasicBlock:
    """A run of a function's instructions, `start:stop`; its identity is its index.

    Labels are for people: PTX may use one twice.
    """

    index: int
    label: str
    start: int
    stop: int
    successors: tuple[int, ...]
    """Indices of blocks; empty for an exit."""


class Control(NamedTuple):
    """What the scheduler of an NVIDIA GPU is told with an instruction (Volta and later)."""

    stall: int
    """Cycles before the warp may issue its next instruction."""
    yields: bool
    """True where the scheduler may rather turn to another warp."""
    write_barrier: int | None
    """Scoreboard (0 to 5) that holds until the result is written."""
    read_barrier: int | None
    """Scoreboard that holds until the operands are read."""
    wait_mask: int
    """Scoreboards that the instruction waits for, one bit each."""
    reuse: int | None
    """Source operands kept in the reuse cache, one bit each; None where the text does not say."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition of a warp-specialised operation: the blocks `first:stop`."""

    name: str
    first: int
    stop: int


@dataclass(frozen=True, slots=True)
class Function:
    """A function with its instructions in text order and the blocks that cut them."""

    name: str
    line: int
    location: Location | None
    arguments: tuple[str, ...]
    instructions: tuple[Instruction, ...]
    blocks: tuple[BasicBlock, ...]
    flows: tuple[Flow, ...] = ()
    partitions: tuple[Partition, ...] = ()
    divisibility: Mapping[str, int] = field(default_factory=dict)
    """Argument → a number that divides it, as the compile was told; tensor-level IR only."""
    signature: tuple[str, ...] = ()
    """Types of the arguments in Triton's notation, `*fp16:16` for a pointer that 16 divides; tensor-level
    IR only."""
    followers: frozenset[int] = frozenset()
    """Loads that stand behind another in one clause (`s_clause`), whose line they may wrongly bear."""
    controls: tuple[Control, ...] = ()
    """One for each instruction; SASS with its encoding only."""


@dataclass(frozen=True, slots=True)
class Module:
    """One parsed file."""

    stage: Stage
    name: str
    functions: tuple[Function, ...]
    attributes: dict[str, str]
    """What the file says of itself: target, num_warps, version … (keys are the format's own)."""
    problems: tuple[str, ...] = ()
    """What could not be read and was passed over, each with its line."""
    layouts: Mapping[str, str] = field(default_factory=dict)
    """Aliases of layout attributes (`#blocked`), resolved; tensor-level IR only."""

    @property
    def is_whole(self) -> bool:
        """False for a file that is cut off: what is not there may have been."""
        return not any(UNCLOSED in problem for problem in self.problems)


class Language(Protocol):
    """What analysis asks a format about single instructions; None where they are of another kind."""

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
