"""How operations of tensor-level IR use shared memory, and the launch parameters of a module."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.arch import Arch, Vendor
from artifact_inspector.model.string_enum import StringEnum


class SharedRole(StringEnum):
    """How an operation uses shared memory."""

    NONE = "none"
    ALLOCATION = "allocation"
    CONVERSION = "layout conversion"
    REDUCTION = "reduction across warps"
    SCAN = "scan across warps"
    HISTOGRAM = "histogram"
    GATHER = "gather"
    ATOMIC = "result of an atomic"
    TENSOR_MAP = "tensor map"
    MATRIX_BARRIER = "mbarrier of the matrix operation"
    """A matrix operation whose lowering allocates and waits for its own barrier, since none is among its operands."""
    CALL = "frame of a function"
    PARTITIONS = "values captured by partitions"
    BUFFER = "one buffer of several"
    """Selects one of an allocation's buffers."""
    VIEW = "view"
    """Names the same memory by another value."""
    BARRIER = "mbarrier"
    """Initialises a barrier in shared memory."""
    STAGED_STORE = "store staging"
    """Stores data from shared memory to global memory."""


class SharedUse(NamedTuple):
    """The shared memory that one operation needs; absent numbers are None."""

    role: SharedRole
    axis: int | None = None
    """Axis of a reduction or scan."""
    scalar_bits: int | None = None
    """Width in bits of an atomic on one element."""
    alignment: int | None = None
    """Bytes of alignment of an allocation."""
    callee: str = ""
    """Name of the called function."""
    captured_bytes: int | None = None
    """Bytes of the values passed to partitions, packed."""
    warps: int | None = None
    """Warps of all partitions but the default one."""


class LaunchParameters(NamedTuple):
    """Launch parameters of a module of tensor-level IR; None for what the module does not state."""

    target: str
    """`cuda:80`, `hip:gfx942`; empty in older versions."""
    warps: int | None
    """Warps per block; for a warp-specialised block, those of the default partition."""
    total_warps: int | None
    """Warps of all partitions."""
    lanes: int | None
    """Threads per warp."""
    ctas: int | None
    """CTAs per cluster."""
    release: tuple[int, int] | None
    """The Triton version that writes such a module; None for 3.3 and later, which are indistinguishable."""

    @property
    def capability(self) -> int | None:
        """NVIDIA's compute capability: 90 for sm_90; None for AMD, or if unknown."""
        arch = Arch.parse(self.target)
        return arch.number if arch is not None and arch.vendor is Vendor.NVIDIA else None
