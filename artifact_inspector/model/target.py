"""The words for who makes a GPU, and for what its parts are called there."""

from __future__ import annotations

from artifact_inspector.model.word import Word


class Vendor(Word):
    """Who makes a GPU."""

    NVIDIA = "NVIDIA"
    AMD = "AMD"


class Backend(Word):
    """Triton's name for the part that compiles for a vendor."""

    CUDA = "cuda"
    HIP = "hip"


class MultiprocessorKind(Word):
    """What a block of threads runs on."""

    SM = "SM"
    CU = "CU"
    WGP = "WGP"
    """A workgroup processor: two CUs of an RDNA GPU that share a block."""
