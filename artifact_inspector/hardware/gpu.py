"""The data of one architecture: limits, caches, rates and a representative product.

A number without a source is None, never an estimate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_THREADS_PER_BLOCK = 1024
"""Threads per block on every GPU: CUDA C Programming Guide; LLVM, getMaxFlatWorkGroupSize."""


class Multiprocessor(NamedTuple):
    """Resources of one SM or compute unit, with their allocation units."""

    warps: int
    blocks: int
    barriers: int | None
    """Hardware barriers shared by the resident blocks; None where they never limit (before sm_90). AMD: a
    block of one wave needs none."""
    partitions: int
    """Schedulers with a register file each: SM sub-partitions, SIMDs."""
    registers: int
    """Registers of a partition, per lane. AMD: vector registers, from gfx90a on including AccVGPRs."""
    register_unit: int
    """Allocation unit of registers per lane."""
    registers_per_lane: int
    """Maximum registers of one thread."""
    scalar_registers: int | None
    """AMD: scalar registers of a partition; None where every wave has its own set."""
    shared: int
    """Bytes of shared memory. AMD: LDS of one compute unit (in gfx10+ workgroup-processor mode, two compute
    units share theirs)."""
    shared_unit: int
    """Allocation unit of a block's shared memory, in bytes."""
    shared_reserved: int
    """Bytes that the system reserves per block, in addition to the block's own."""
    tensor_columns: int | None
    """Columns of tensor memory; None if the GPU has none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one block, and the resources of a multiprocessor; None where no source states a number."""

    shared_per_block_static: int | None = None
    """Maximum bytes of shared memory (LDS) per block without opting into more."""
    shared_per_block: int | None = None
    """Maximum bytes of shared memory per block; NVIDIA: with opt-in at launch."""
    matrix_unit: str | None = None
    """The newest supported family of matrix instructions: mma, wgmma, tcgen05, mfma, wmma, none."""
    multiprocessor: Multiprocessor | None = None
    source: str = ""
    """Source of the numbers."""


class Caches(NamedTuple):
    """Granularity of memory transfers and accesses."""

    line: int
    """Bytes of an L1 cache line."""
    sector: int
    """Bytes of the smallest transfer between caches. NVIDIA: a sector; AMD: an L2 cache line."""
    banks: int
    """Banks of shared memory, 4 bytes wide each."""
    source: str


@dataclass(frozen=True, slots=True)
class Rates:
    """Peak rates of one SM (AMD: compute unit) per cycle; None where no source states a number.

    Arithmetic counts lanes: a warp-wide instruction of 32 lanes at a rate of 64 takes half a cycle.
    """

    issue: int
    """Warp-wide instructions (AMD: wave-wide vector instructions)."""
    fma32: int
    """32-bit multiply-adds, one per lane of an instruction."""
    fma32_packed: int | None
    """32-bit multiply-adds of instructions that do two per lane (`v_pk_fma_f32`, dual issue, `FFMA2`); None
    if the architecture has no such instruction."""
    fma16: int | None
    """16-bit multiply-adds of packed instructions; both halves count."""
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
    address_lanes: int | None
    """Lanes whose load or store addresses are accepted."""
    shared_bytes: int | None
    """Bytes read from shared memory."""
    matrix: Mapping[str, int] = field(default_factory=dict)
    """Dense multiply-adds of matrix instructions by operand type (`f16`, which also stands for bf16, `tf32`, `f8`,
    `f4`, `i8`, `f32`, `f64`); GeForce products accumulate in 32 bits at half of it (`products.matrix_rate`)."""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Product:
    """The representative product of an architecture: what device queries return."""

    name: str
    """As returned by `torch.cuda.get_device_name`."""
    multiprocessors: int
    """SMs. AMD: compute units; from RDNA on workgroup processors, as HIP counts them."""
    memory_gib: int
    l2_mib: int
    megahertz: int | None
    """Boost clock from the data sheet."""
    l2_caches: int = 1
    """L2 caches of `l2_mib` each: one for each XCD. XCDs get CTAs in turn, which reuse data only within their own."""


class Gpu(NamedTuple):
    """The data of one architecture."""

    product_names: tuple[str, ...]
    """Products with this architecture."""
    limits: Limits
    product: Product | None = None
    caches: Caches | None = None
    rates: Rates | None = None


UNKNOWN_GPU = Gpu((), Limits())
