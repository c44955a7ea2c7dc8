"""NVIDIA's architectures: one row each.

Products, SMs, memory and L2 are from NVIDIA's architecture white papers and data sheets (V100, T4, A100,
GA102, Jetson Orin, AD102, H100, Blackwell). Clocks are boost clocks.
"""

from __future__ import annotations

from functools import partial

from artifact_inspector.hardware.gpu import Caches, Gpu, Limits, Multiprocessor, Product, Rates

_KIB = 1024
_LIMITS = (
    "CUDA C Programming Guide, Technical Specifications per Compute Capability; "
    "CCCL, cuda/__device/arch_traits.h (sm_70, sm_103, sm_121 and all others too); "
    "allocation units, sub-partitions and barriers: CUDA Toolkit, cuda_occupancy.h; "
    "PTX ISA, Target ISA Notes of mma, wgmma and tcgen05; Tensor Memory (512 columns)"
)
_CACHES = Caches(
    line=128, sector=32, banks=32,
    source="CUDA C++ Best Practices Guide, Coalesced Access to Global Memory; Shared Memory and Memory Banks",
)  # fmt: skip
_RATES = (
    "CUDA C++ Best Practices Guide, Throughput of Native Arithmetic Instructions; load/store units, "
    "shared-memory bandwidth and 16-bit rate of sm_86, sm_89 and sm_120: the architecture white papers' "
    "per-SM figures; matrix: FMA per clock and SM of the white papers, which the peaks of the data sheets "
    "confirm (GeForce products sum in 32 bits at half the rate: `products.matrix_rate`)"
)


def _cuda(shared: int, reserved: int, warps: int, blocks: int, unit: str, barriers: int | None = None) -> Limits:
    """Limits of a compute capability: KiB of shared memory per SM, KiB reserved per block."""
    multiprocessor = Multiprocessor(
        warps=warps, blocks=blocks, barriers=barriers, partitions=4, registers=64 * _KIB // 4 // 32,
        register_unit=256 // 32, registers_per_lane=255, scalar_registers=None, shared=shared * _KIB,
        shared_unit=128 if reserved else 256, shared_reserved=reserved * _KIB,
        tensor_columns=512 if unit == "tcgen05" else None,
    )  # fmt: skip
    return Limits(48 * _KIB, (shared - reserved) * _KIB, unit, multiprocessor, _LIMITS)


def _rates(
    fma32: int,
    fma16: int | None,
    fma64: int | None,
    *,
    addresses: int | None,
    integer: int = 64,
    special: int | None = 16,
    shared_bytes: int | None = 128,
    packed: int | None = None,
    **matrix: int,
) -> Rates:
    """Rates of an SM with four schedulers, each issuing one instruction per cycle."""
    return Rates(
        issue=4,
        fma32=fma32,
        fma32_packed=packed,
        fma16=fma16,
        fma64=fma64,
        integer=integer,
        logic=64,
        multiply=64,
        special=special,
        shuffle=32,
        address_lanes=addresses,
        shared_bytes=shared_bytes,
        matrix=matrix,
        source=_RATES,
    )


_gpu = partial(Gpu, caches=_CACHES)
NVIDIA = {
    "sm_70": _gpu(
        ("V100",),
        _cuda(96, 0, 64, 32, "mma"),
        Product("Tesla V100-SXM2-16GB", 80, 16, 6, 1530),
        rates=_rates(64, 128, 32, addresses=32, f16=512),
    ),
    "sm_75": _gpu(
        ("T4", "RTX 20"),
        _cuda(64, 0, 32, 16, "mma"),
        Product("Tesla T4", 40, 16, 4, 1590),
        rates=_rates(64, 128, 2, addresses=16, shared_bytes=64, f16=512, i8=1024),
    ),
    "sm_80": _gpu(
        ("A100", "A30"),
        _cuda(164, 1, 64, 32, "mma"),
        Product("NVIDIA A100-SXM4-80GB", 108, 80, 40, 1410),
        rates=_rates(64, 256, 32, addresses=32, f16=1024, tf32=512, i8=2048, f64=64),
    ),
    "sm_86": _gpu(
        ("RTX 30", "A10", "A40", "RTX A6000"),
        _cuda(100, 1, 48, 16, "mma"),
        Product("NVIDIA A10", 72, 24, 6, 1695),
        rates=_rates(128, 128, 2, addresses=16, f16=512, tf32=256, i8=1024),
    ),
    "sm_87": _gpu(
        ("Jetson Orin",),
        _cuda(164, 1, 48, 16, "mma"),
        Product("Orin", 16, 64, 4, 1300),
        rates=_rates(128, None, None, addresses=None),
    ),
    "sm_89": _gpu(
        ("RTX 40", "L4", "L40", "RTX 6000 Ada"),
        _cuda(100, 1, 48, 24, "mma"),
        Product("NVIDIA GeForce RTX 4090", 128, 24, 72, 2520),
        rates=_rates(128, 128, 2, addresses=16, f16=512, tf32=256, f8=1024, i8=1024),
    ),
    "sm_90": _gpu(
        ("H100", "H200", "GH200", "H20", "H800"),
        _cuda(228, 1, 64, 32, "wgmma", 64),
        Product("NVIDIA H100 80GB HBM3", 132, 80, 50, 1830),
        rates=_rates(128, 256, 64, addresses=32, f16=2048, tf32=1024, f8=4096, i8=4096, f64=128),
    ),
    "sm_100": _gpu(
        ("B200", "GB200", "B100"),
        _cuda(228, 1, 64, 32, "tcgen05", 64),
        Product("NVIDIA B200", 148, 180, 126, None),
        rates=_rates(128, 128, 64, addresses=None, f16=4096, tf32=2048, f8=8192, f4=16384),
    ),
    "sm_103": _gpu(
        ("B300", "GB300"),
        _cuda(228, 1, 64, 32, "tcgen05", 64),
        Product("NVIDIA B300", 148, 268, 126, None),
        rates=_rates(128, 128, None, addresses=None, special=None),
    ),
    "sm_120": _gpu(
        ("RTX 50", "RTX PRO 6000"),
        _cuda(100, 1, 48, 24, "mma", 24),
        Product("NVIDIA GeForce RTX 5090", 170, 32, 96, 2407),
        rates=_rates(128, 128, 2, addresses=16, integer=128, f16=512, tf32=256, f8=1024, f4=2048),
    ),
    "sm_121": _gpu(
        ("DGX Spark", "GB10"),
        _cuda(100, 1, 48, 24, "mma", 24),
        Product("NVIDIA GB10", 48, 120, 24, None),
        rates=_rates(128, 128, 2, addresses=None, integer=128),
    ),
}
"""Oldest first."""
