"""The device properties that a captured program sees: those of a typical product of each architecture.

Programs choose kernels by these properties. A persistent kernel launches as many CTAs as there are
multiprocessors, and a library selects tuned configurations by the product's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.hardware.gpu import Product
from artifact_inspector.hardware.targets import Target


@dataclass(frozen=True, slots=True)
class DeviceProperties:
    """One GPU as its driver describes it."""

    name: str
    """As `torch.cuda.get_device_name` returns it."""
    capability: tuple[int, int]
    """Compute capability; for AMD, HIP's numbers of the architecture: (9, 4) for gfx942."""
    multiprocessors: int
    """Number of SMs; for AMD, of compute units, and from RDNA on of workgroup processors, as HIP counts."""
    memory_bytes: int
    l2_bytes: int
    shared_bytes: int
    """Most shared memory of a CTA, in bytes."""
    warp_size: int
    threads_per_multiprocessor: int


def device_of(target: Target) -> DeviceProperties:
    """The product that represents an architecture, or a medium-sized fictional one if none is known.

    Example:
        >>> from artifact_inspector.hardware.targets import parse_target
        >>> device_of(parse_target("gfx90a")).capability, device_of(parse_target("sm_120")).capability
        ((9, 0), (12, 0))
    """
    product = target.gpu.product or Product(f"GPU of {target.arch}", 64, 64, 32, None)
    limits, multiprocessor = target.limits, target.limits.multiprocessor
    warps = 64 if multiprocessor is None else multiprocessor.warps
    return DeviceProperties(
        name=product.name,
        capability=target.arch.version,
        multiprocessors=product.multiprocessors,
        memory_bytes=product.memory_gib << 30,
        l2_bytes=product.l2_mib << 20,
        shared_bytes=limits.shared_per_block or 64 * 1024,
        warp_size=target.warp_size,
        threads_per_multiprocessor=warps * target.warp_size,
    )
