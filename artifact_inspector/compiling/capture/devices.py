"""What a program sees of a GPU when it asks: the product that stands for an architecture.

Kernels are compiled by what programs do with these answers: a persistent kernel launches as many blocks
as there are multiprocessors, a library picks tuned configurations by the product's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.hardware.gpu import Product
from artifact_inspector.hardware.targets import Target

GIB = 1 << 30
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU as its driver describes it."""

    name: str
    """As torch.cuda.get_device_name gives it."""
    capability: tuple[int, int]
    """Compute capability; AMD: what HIP makes of the architecture, (9, 4) for gfx942."""
    multiprocessors: int
    """SMs; AMD: compute units, from RDNA on workgroup processors, as HIP counts them."""
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    """That a block can have."""
    warp_size: int
    threads_per_multiprocessor: int


def device_of(target: Target) -> Device:
    """The product that stands for an architecture, or a made-up one of middling size where none is known.

    Example:
        >>> from artifact_inspector.hardware.targets import parse_target
        >>> device_of(parse_target("gfx90a")).capability, device_of(parse_target("sm_120")).capability
        ((9, 0), (12, 0))
    """
    product = target.gpu.product or Product(f"GPU of {target.arch}", 64, 64, 32, None)
    limits = target.limits
    multiprocessor = limits.multiprocessor
    warps = 64 if multiprocessor is None else multiprocessor.warps
    return Device(
        name=product.name,
        capability=target.arch.version,
        multiprocessors=product.multiprocessors,
        memory_bytes=product.memory_gib * GIB,
        l2_bytes=product.l2_mib * MIB,
        shared_bytes=limits.shared_per_block or 64 * 1024,
        warp_size=target.warp_size,
        threads_per_multiprocessor=warps * target.warp_size,
    )
