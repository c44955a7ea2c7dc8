"""GPU vendors, Triton backends and kinds of multiprocessors."""

from __future__ import annotations

from artifact_inspector.model.string_enum import StringEnum


class Vendor(StringEnum):
    """The vendor of a GPU."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


class Backend(StringEnum):
    """Triton's name for the part that compiles for a vendor."""

    CUDA = "cuda"
    HIP = "hip"


class MultiprocessorKind(StringEnum):
    """The hardware unit that a block of threads runs on."""

    SM = "SM"
    CU = "CU"
    WGP = "WGP"
    """A workgroup processor: two CUs of an RDNA GPU that share a block."""
