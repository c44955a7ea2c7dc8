"""What a program sees of a GPU when it asks: the product that stands for an architecture.

Kernels are compiled by what programs do with these answers: a persistent kernel launches as many blocks
as there are multiprocessors, a library picks tuned configurations by the product's name.
"""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.hardware.targets import Target

__all__ = ["Device", "device_of"]

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


# Name, multiprocessors, GiB of memory, MiB of L2. Sources: NVIDIA's architecture white papers and data sheets
# (V100, T4, A100, GA102, Jetson Orin, AD102, H100, Blackwell); AMD's product pages and the CDNA 2, 3 and 4
# white papers (an MI210 has one die of an MI250, which is what a program sees of either).
_PRODUCTS = {
    "sm_70": ("Tesla V100-SXM2-16GB", 80, 16, 6),
    "sm_75": ("Tesla T4", 40, 16, 4),
    "sm_80": ("NVIDIA A100-SXM4-80GB", 108, 80, 40),
    "sm_86": ("NVIDIA A10", 72, 24, 6),
    "sm_87": ("Orin", 16, 64, 4),
    "sm_89": ("NVIDIA GeForce RTX 4090", 128, 24, 72),
    "sm_90": ("NVIDIA H100 80GB HBM3", 132, 80, 50),
    "sm_100": ("NVIDIA B200", 148, 180, 126),
    "sm_103": ("NVIDIA B300", 148, 268, 126),
    "sm_120": ("NVIDIA GeForce RTX 5090", 170, 32, 96),
    "sm_121": ("NVIDIA GB10", 48, 120, 24),
    "gfx906": ("AMD Instinct MI50", 60, 32, 4),
    "gfx908": ("AMD Instinct MI100", 120, 32, 8),
    "gfx90a": ("AMD Instinct MI210", 104, 64, 8),
    "gfx942": ("AMD Instinct MI300X", 304, 192, 4),
    "gfx950": ("AMD Instinct MI350X", 256, 288, 4),
    "gfx1030": ("AMD Radeon RX 6900 XT", 40, 16, 4),
    "gfx1100": ("AMD Radeon RX 7900 XTX", 48, 24, 6),
    "gfx1101": ("AMD Radeon RX 7800 XT", 30, 16, 4),
    "gfx1200": ("AMD Radeon RX 9060 XT", 16, 16, 4),
    "gfx1201": ("AMD Radeon RX 9070 XT", 32, 16, 8),
}


def device_of(target: Target) -> Device:
    """The product that stands for an architecture, or a made-up one of middling size where none is known.

    Example:
        >>> from artifact_inspector.hardware.targets import parse_target
        >>> device_of(parse_target("gfx90a")).capability, device_of(parse_target("sm_120")).capability
        ((9, 0), (12, 0))
    """
    name, multiprocessors, memory, l2 = _PRODUCTS.get(target.arch, (f"GPU of {target.arch}", 64, 64, 32))
    limits = target.limits
    multiprocessor = limits.multiprocessor
    warps = 64 if multiprocessor is None else multiprocessor.warps
    return Device(
        name=name,
        capability=target.arch.version,
        multiprocessors=multiprocessors,
        memory_bytes=memory * GIB,
        l2_bytes=l2 * MIB,
        shared_bytes=limits.shared_per_block or 64 * 1024,
        warp_size=target.warp_size,
        threads_per_multiprocessor=warps * target.warp_size,
    )
