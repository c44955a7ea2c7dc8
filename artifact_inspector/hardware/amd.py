"""AMD's architectures: one row each.

Products, compute units, memory and L2 are from AMD's product pages and the CDNA 2, 3 and 4 white papers. A
program sees one die of an MI250 as one device, equal to an MI210. Clocks are peak engine clocks.
"""

from __future__ import annotations

from artifact_inspector.hardware.gpu import Caches, Gpu, Limits, Multiprocessor, Product, Rates

_KIB = 1024
# Compared with the occupancies that llc prints for one register count (gfx1250: Triton 3.9's).
_LIMITS = (
    "LLVM, AMDGPUBaseInfo.cpp: getMaxWavesPerEU x getEUsPerCU (compute-unit mode), "
    "getTotalNumVGPRs, getVGPRAllocGranule, getAddressableNumVGPRs, "
    "getMaxWorkGroupsPerCU (barriers), getLdsDwGranularity (gfx10.3 to gfx12.0: Mesa, "
    "ac_shader_util.h, which allocates 1024 bytes at a time); GCNSubtarget.cpp: getOccupancyWithNumSGPRs; "
    "AMDGPU.td: FeatureAddressableLocalMemorySize, FeatureMAIInsts; AMDGPUUsage, Processors"
)

_GCN = Caches(64, 64, 32, "AMD Vega ISA, Memory Hierarchy; CDNA white paper")
_CDNA2 = Caches(64, 128, 32, "AMD CDNA 2 white paper; ROCm documentation, MI200 performance counters")
_CDNA3 = Caches(128, 128, 32, "AMD CDNA 3 white paper")
_CDNA4 = Caches(128, 128, 64, "AMD CDNA 4 ISA, LDS; CDNA 4 white paper")
_RDNA = Caches(128, 128, 32, "AMD RDNA white paper; RDNA 2, 3 and 4 ISA, LDS")
_CDNA_RATES = (
    "AMD CDNA, CDNA 2, CDNA 3 and CDNA 4 white papers, operations per clock and compute unit; their ISA "
    "manuals: a quarter of the rate for transcendental functions and 32-bit products; LDS: 128 bytes per "
    "clock (CDNA 4: twice that to read)"
)
_RDNA_RATES = (
    "AMD RDNA, RDNA 3 and RDNA 4 white papers and ISA manuals: two SIMDs of 32 lanes; matrix: the data "
    "sheets' peaks by compute units and clock"
)


def _hip(
    lds: tuple[int, int],
    waves: int,
    simds: int,
    registers: tuple[int, int, int],
    unit: str,
    scalar_registers: int | None = None,
) -> Limits:
    """Limits of an AMD processor.

    Args:
        lds: KiB of a compute unit, and the allocation unit in bytes.
        waves: per compute unit.
        simds: per compute unit.
        registers: vector registers of a SIMD, their allocation unit, and the maximum of one thread.
        unit: matrix instructions.
        scalar_registers: per SIMD.
    """
    shared = lds[0] * _KIB
    multiprocessor = Multiprocessor(
        warps=waves,
        blocks=waves,  # one wave each; larger blocks share the barriers
        barriers=16,
        partitions=simds,
        registers=registers[0],
        register_unit=registers[1],
        registers_per_lane=registers[2],
        scalar_registers=scalar_registers,
        shared=shared,
        shared_unit=lds[1],
        shared_reserved=0,
        tensor_columns=None,
    )
    return Limits(shared, shared, unit, multiprocessor, _LIMITS)


def _rates(*, rdna: bool, packed: bool, shared_bytes: int = 128, **matrix: int) -> Rates:
    """Rates of a compute unit of 64 lanes.

    Args:
        rdna: True for two SIMDs of 32 lanes that issue in every cycle, False for four that take turns.
        packed: True if 32-bit multiply-adds can be paired (packed instructions, dual issue).
    """
    return Rates(
        issue=2 if rdna else 1, fma32=64, fma32_packed=128 if packed else None, fma16=128, fma64=None, integer=64,
        logic=64, multiply=16, special=16, shuffle=32, address_lanes=None, shared_bytes=shared_bytes, matrix=matrix,
        source=_RDNA_RATES if rdna else _CDNA_RATES,
    )  # fmt: skip


AMD = {
    "gfx906": Gpu(
        ("MI50", "MI60", "Radeon VII", "Z100"),
        _hip((64, 512), 40, 4, (256, 4, 256), "none", 800),
        Product("AMD Instinct MI50", 60, 32, 4, 1725),
        _GCN,
        _rates(rdna=False, packed=False),
    ),
    "gfx908": Gpu(
        ("MI100",),
        _hip((64, 512), 40, 4, (256, 4, 256), "mfma", 800),
        Product("AMD Instinct MI100", 120, 32, 8, 1502),
        _GCN,
        _rates(rdna=False, packed=False, f16=512, i8=512, f32=128),
    ),
    "gfx90a": Gpu(
        ("MI210", "MI250", "MI250X"),
        _hip((64, 512), 32, 4, (512, 8, 512), "mfma", 800),
        Product("AMD Instinct MI210", 104, 64, 8, 1700),
        _CDNA2,
        _rates(rdna=False, packed=True, f16=512, i8=512, f32=128, f64=128),
    ),
    "gfx942": Gpu(
        ("MI300X", "MI300A", "MI325X", "MI300"),
        _hip((64, 512), 32, 4, (512, 8, 512), "mfma", 800),
        Product("AMD Instinct MI300X", 304, 192, 4, 2100, 8),
        _CDNA3,
        _rates(rdna=False, packed=True, f16=1024, tf32=512, f8=2048, i8=2048, f32=128, f64=128),
    ),
    "gfx950": Gpu(
        ("MI350", "MI350X", "MI355X"),
        _hip((160, 1280), 32, 4, (512, 8, 512), "mfma", 800),
        Product("AMD Instinct MI350X", 256, 288, 4, 2200, 8),
        _CDNA4,
        _rates(rdna=False, packed=True, shared_bytes=256, f16=2048, f8=4096, f4=8192, i8=4096, f32=128, f64=64),
    ),
    "gfx1030": Gpu(
        ("RX 6800", "RX 6900", "RX 6950"),
        _hip((64, 1024), 32, 2, (1024, 16, 256), "none"),
        Product("AMD Radeon RX 6900 XT", 40, 16, 4, 2250),
        _RDNA,
        _rates(rdna=True, packed=False),
    ),
    "gfx1100": Gpu(
        ("RX 7900", "PRO W7900"),
        _hip((64, 1024), 32, 2, (1536, 24, 256), "wmma"),
        Product("AMD Radeon RX 7900 XTX", 48, 24, 6, 2500),
        _RDNA,
        _rates(rdna=True, packed=True, f16=256, i8=256),
    ),
    "gfx1101": Gpu(
        ("RX 7800", "RX 7700"),
        _hip((64, 1024), 32, 2, (1536, 24, 256), "wmma"),
        Product("AMD Radeon RX 7800 XT", 30, 16, 4, 2430),
        _RDNA,
        _rates(rdna=True, packed=True, f16=256, i8=256),
    ),
    "gfx1200": Gpu(
        ("RX 9060",),
        _hip((64, 1024), 32, 2, (1536, 24, 256), "wmma"),
        Product("AMD Radeon RX 9060 XT", 16, 16, 4, 3130),
        _RDNA,
        _rates(rdna=True, packed=True, f16=512, f8=1024, i8=1024),
    ),
    "gfx1201": Gpu(
        ("RX 9070",),
        _hip((64, 1024), 32, 2, (1536, 24, 256), "wmma"),
        Product("AMD Radeon RX 9070 XT", 32, 16, 8, 2970),
        _RDNA,
        _rates(rdna=True, packed=True, f16=512, f8=1024, i8=1024),
    ),
    "gfx1250": Gpu(("MI450", "MI455X"), _hip((320, 2048), 64, 4, (1024, 16, 1024), "wmma")),
}
"""Oldest first."""
