"""What operations of tensor-level IR are to shared memory, and what a module says of its launch."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.arch import Arch
from artifact_inspector.model.target import Vendor
from artifact_inspector.model.word import Word


class SharedRole(Word):
    """What an operation is to shared memory."""

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
    """A matrix operation whose lowering waits at a barrier of its own, as none is among its operands."""
    CALL = "frame of a function"
    PARTITIONS = "values handed to partitions"
    BUFFER = "one buffer of several"
    """Names one of an allocation's buffers."""
    VIEW = "view"
    """Names the same memory by another value."""
    BARRIER = "mbarrier"
    """Makes memory a barrier."""
    STAGED_STORE = "store staging"
    """Stores to global memory what lies in shared memory."""


class SharedUse(NamedTuple):
    """What one operation asks of shared memory; a number that is not written is None."""

    role: SharedRole
    axis: int | None = None
    """Of a reduction or scan."""
    scalar_bits: int | None = None
    """Of an atomic on one element."""
    alignment: int | None = None
    """Bytes, of an allocation."""
    callee: str = ""
    """Of a call."""
    captured: int | None = None
    """Bytes of the values that partitions are handed, packed."""
    warps: int | None = None
    """Of all partitions but the default one."""


class Launch(NamedTuple):
    """How a module of tensor-level IR is launched, as it says itself; None for what it does not say."""

    target: str
    """`cuda:80`, `hip:gfx942`; empty in older versions."""
    warps: int | None
    """Of the block; of a warp-specialised one, those of the default partition."""
    total_warps: int | None
    """Those of all partitions."""
    lanes: int | None
    """Of a warp."""
    ctas: int | None
    """Of a cluster."""
    release: tuple[int, int] | None
    """The version of Triton that writes such a module; None for 3.3 and later, which are alike."""

    @property
    def capability(self) -> int | None:
        """NVIDIA's compute capability: 90 for sm_90; None for AMD, or where it is not named."""
        arch = Arch.parse(self.target)
        return arch.number if arch is not None and arch.vendor is Vendor.NVIDIA else None
