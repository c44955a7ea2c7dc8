"""What is known of one architecture: its limits, its caches, its rates and the product that stands for it.

A number without a source is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MOST_THREADS = 1024
"""Threads per block, on every GPU: CUDA C Programming Guide; LLVM, getMaxFlatWorkGroupSize."""


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one SM or compute unit holds, and in which units it hands it out."""

    warps: int
    blocks: int
    barriers: int | None
    """Hardware barriers that the resident blocks share, None where they limit nothing (before sm_90);
    AMD: a block of one wave takes none."""
    partitions: int
    """Schedulers, each with a register file of its own: SM sub-partitions, SIMDs."""
    registers: int
    """Registers of a partition, per lane; AMD: vector registers, from gfx90a on with AccVGPRs."""
    register_unit: int
    """Registers per lane are handed out in multiples of it."""
    registers_per_lane: int
    """Registers that one thread can have at most."""
    scalar_registers: int | None
    """AMD: scalar registers of a partition; None where every wave has a set of its own."""
    shared: int
    """Bytes of shared memory; AMD: LDS of one compute unit (two share theirs in gfx10+
    workgroup-processor mode)."""
    shared_unit: int
    """Bytes; the shared memory of a block is handed out in multiples of it."""
    shared_reserved: int
    """Bytes that the system takes for itself beside every block's own."""
    tensor_columns: int | None
    """Columns of tensor memory; None where there is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a GPU lets one block have, and what its multiprocessors hold; None where no source says."""

    shared_per_block_static: int | None = None
    """Bytes of shared memory (LDS) that a block gets without asking for more."""
    shared_per_block: int | None = None
    """Bytes of shared memory that a block can have at most, opted into at launch on NVIDIA."""
    matrix_unit: str | None = None
    """The newest family of matrix instructions it runs: mma, wgmma, tcgen05, mfma, wmma, none."""
    multiprocessor: Multiprocessor | None = None
    source: str = ""
    """Where the numbers stand."""


@dataclass(frozen=True, slots=True)
class Caches:
    """In which pieces memory is moved and served."""

    line: int
    """Bytes of a line of the first-level cache."""
    sector: int
    """Bytes of the smallest piece that moves between the caches: NVIDIA a sector, AMD a line of the L2."""
    banks: int
    """Of shared memory, of 4 bytes each."""
    source: str


@dataclass(frozen=True, slots=True)
class Rates:
    """What one SM (AMD: compute unit) does in a cycle at most; None where no source says.

    Arithmetic counts lanes: a warp-wide instruction of 32 lanes at a rate of 64 takes half a cycle.
    """

    issue: int
    """Instructions of whole warps (AMD: vector instructions of whole waves)."""
    fma32: int
    """32-bit multiply-adds, one for each lane of an instruction."""
    fma32_packed: int | None
    """The same where an instruction does two (`v_pk_fma_f32`, dual issue, `FFMA2`); None where none does."""
    fma16: int | None
    """16-bit multiply-adds in packed instructions, both halves counted."""
    fma64: int | None
    integer: int
    """32-bit additions and comparisons."""
    logic: int
    """Bitwise operations and shifts."""
    multiply: int
    """32-bit integer multiply-adds."""
    special: int | None
    """exp2, log2, reciprocals, sine."""
    shuffle: int
    addresses: int | None
    """Lanes whose loads or stores are taken up."""
    shared_bytes: int | None
    """Read from shared memory."""
    matrix: Mapping[str, int] = field(default_factory=dict)
    """Multiply-adds of matrix instructions by the type of their operands (`f16`, which bf16 equals, `tf32`,
    `f8`, `f4`, `i8`, `f32`, `f64`): dense, sums in 32 bits."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """The product that stands for an architecture: what a program sees of a GPU when it asks."""

    name: str
    """As torch.cuda.get_device_name gives it."""
    multiprocessors: int
    """SMs; AMD: compute units, from RDNA on workgroup processors, as HIP counts them."""
    memory_gib: int
    l2_mib: int
    megahertz: int | None
    """The boost clock of its data sheet."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One architecture."""

    marketing: tuple[str, ...]
    """Products with it."""
    limits: Limits
    product: Product | None = None
    caches: Caches | None = None
    rates: Rates | None = None


UNKNOWN = Gpu((), Limits())
