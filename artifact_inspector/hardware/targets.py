"""GPUs: architectures and products, what one SM (AMD: compute unit) holds, how files name them.

A number without a source is None, never a guess.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

from artifact_inspector.errors import UsageError
from artifact_inspector.model import Arch, Backend

__all__ = [
    "KNOWN_TARGETS",
    "STAGES_WITH_TARGET",
    "Limits",
    "Multiprocessor",
    "Target",
    "parse_metadata_target",
    "parse_stage_target",
    "parse_target",
]

KIB = 1024


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What one SM or compute unit holds, and in which units it hands it out."""

    warps: int
    blocks: int
    barriers: int | None
    """Hardware barriers that the resident blocks share, None where they limit nothing (before sm_90);
    AMD: a block of one wave takes none."""
    partitions: int
    """Schedulers, each with a register file of its own: SM sub-partitions, SIMDs."""
    registers: int
    """Registers of a partition, per lane; AMD: vector registers, from gfx90a on with AccVGPRs."""
    register_unit: int
    """Registers per lane are handed out in multiples of it."""
    registers_per_lane: int
    """Registers that one thread can have at most."""
    scalar_registers: int | None
    """AMD: scalar registers of a partition; None where every wave has a set of its own."""
    shared: int
    """Bytes of shared memory; AMD: LDS of one compute unit (two share theirs in gfx10+
    workgroup-processor mode)."""
    shared_unit: int
    """Bytes; the shared memory of a block is handed out in multiples of it."""
    shared_reserved: int
    """Bytes that the system takes for itself beside every block's own."""
    tensor_columns: int | None
    """Columns of tensor memory; None where there is none."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a GPU lets one block have, and what its multiprocessors hold; None where no source says."""

    shared_per_block_static: int | None = None
    """Bytes of shared memory (LDS) that a block gets without asking for more."""
    shared_per_block: int | None = None
    """Bytes of shared memory that a block can have at most, opted into at launch on NVIDIA."""
    matrix_unit: str | None = None
    """The newest family of matrix instructions it runs: mma, wgmma, tcgen05, mfma, wmma, none."""
    multiprocessor: Multiprocessor | None = None
    source: str = ""
    """Where the numbers stand."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a kernel was compiled for."""

    backend: Backend
    arch: Arch
    warp_size: int

    @property
    def marketing(self) -> tuple[str, ...]:
        """Products with this architecture; empty where none is known."""
        return _MARKETING.get(self.arch, ())

    @property
    def limits(self) -> Limits:
        """What one of its SMs or compute units holds; all None for an unknown architecture."""
        return _LIMITS.get(self.arch, _UNKNOWN)

    @property
    def has_one_file(self) -> bool:
        """AMD: whether vector registers and AccVGPRs share a register file.

        Source: LLVM, AMDGPU.td, FeatureGFX90AInsts.
        """
        return self.arch.version == (9, 4) or self.arch.version == (9, 5) or self.arch == "gfx90a"

    @property
    def has_halves(self) -> bool:
        """AMD: whether two of its compute units make a workgroup processor.

        Source: LLVM, AMDGPUUsage, `.amdhsa_workgroup_processor_mode` (gfx10 to gfx12.0).
        """
        return self.backend is Backend.HIP and (10, 0) <= self.arch.version <= (12, 0)

    def __str__(self) -> str:
        return str(self.arch)


_CUDA = (
    "CUDA C Programming Guide, Technical Specifications per Compute Capability; "
    "CCCL, cuda/__device/arch_traits.h (sm_70, sm_103, sm_121 and all others again); "
    "allocation units, sub-partitions and barriers: CUDA Toolkit, cuda_occupancy.h; "
    "PTX ISA, Target ISA Notes of mma, wgmma and tcgen05; Tensor Memory (512 columns)"
)
# Checked against the occupancies that llc prints for one register count (gfx1250: Triton 3.9's).
_LLVM = (
    "LLVM, AMDGPUBaseInfo.cpp: getMaxWavesPerEU x getEUsPerCU (compute-unit mode), "
    "getTotalNumVGPRs, getVGPRAllocGranule, getAddressableNumVGPRs, "
    "getMaxWorkGroupsPerCU (barriers), getLdsDwGranularity (gfx10.3 to gfx12.0: Mesa, "
    "ac_shader_util.h, whose 1024 bytes are what is handed out); GCNSubtarget.cpp: getOccupancyWithNumSGPRs; "
    "AMDGPU.td: FeatureAddressableLocalMemorySize, FeatureMAIInsts; AMDGPUUsage, Processors"
)


def _cuda(
    shared: int, reserved: int, warps: int, blocks: int, unit: str, barriers: int | None = None
) -> Limits:
    """Limits of a compute capability: KiB of shared memory per SM, KiB kept back per block."""
    multiprocessor = Multiprocessor(
        warps=warps,
        blocks=blocks,
        barriers=barriers,
        partitions=4,
        registers=64 * KIB // 4 // 32,
        register_unit=256 // 32,
        registers_per_lane=255,
        scalar_registers=None,
        shared=shared * KIB,
        shared_unit=128 if reserved else 256,
        shared_reserved=reserved * KIB,
        tensor_columns=512 if unit == "tcgen05" else None,
    )
    return Limits(48 * KIB, (shared - reserved) * KIB, unit, multiprocessor, _CUDA)


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
        lds: KiB of a compute unit, and the bytes that are handed out at a time.
        waves: of a compute unit.
        simds: of a compute unit.
        registers: vector registers of a SIMD, handed out at a time, and of one thread at most.
        unit: its matrix instructions.
        scalar_registers: of a SIMD.
    """
    shared = lds[0] * KIB
    multiprocessor = Multiprocessor(
        warps=waves,
        blocks=waves,  # of one wave each; larger blocks share the barriers
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
    return Limits(shared, shared, unit, multiprocessor, _LLVM)


_UNKNOWN = Limits()
_LIMITS = {
    arch: limits
    for archs, limits in {
        "sm_70": _cuda(96, 0, 64, 32, "mma"),
        "sm_75": _cuda(64, 0, 32, 16, "mma"),
        "sm_80": _cuda(164, 1, 64, 32, "mma"),
        "sm_86": _cuda(100, 1, 48, 16, "mma"),
        "sm_87": _cuda(164, 1, 48, 16, "mma"),
        "sm_89": _cuda(100, 1, 48, 24, "mma"),
        "sm_90": _cuda(228, 1, 64, 32, "wgmma", 64),
        "sm_100 sm_103": _cuda(228, 1, 64, 32, "tcgen05", 64),
        "sm_120 sm_121": _cuda(100, 1, 48, 24, "mma", 24),
        "gfx906": _hip((64, 512), 40, 4, (256, 4, 256), "none", 800),
        "gfx908": _hip((64, 512), 40, 4, (256, 4, 256), "mfma", 800),
        "gfx90a gfx942": _hip((64, 512), 32, 4, (512, 8, 512), "mfma", 800),
        "gfx950": _hip((160, 1280), 32, 4, (512, 8, 512), "mfma", 800),
        "gfx1030": _hip((64, 1024), 32, 2, (1024, 16, 256), "none"),
        "gfx1100 gfx1101 gfx1200 gfx1201": _hip((64, 1024), 32, 2, (1536, 24, 256), "wmma"),
        "gfx1250": _hip((320, 2048), 64, 4, (1024, 16, 1024), "wmma"),
    }.items()
    for arch in archs.split()
}

# Products by NVIDIA's list of CUDA GPUs and by LLVM's AMDGPUUsage, Processors.
_MARKETING = {
    "sm_70": ("V100",),
    "sm_75": ("T4", "RTX 20"),
    "sm_80": ("A100", "A30"),
    "sm_86": ("RTX 30", "A10", "A40", "RTX A6000"),
    "sm_87": ("Jetson Orin",),
    "sm_89": ("RTX 40", "L4", "L40", "RTX 6000 Ada"),
    "sm_90": ("H100", "H200", "GH200", "H20", "H800"),
    "sm_100": ("B200", "GB200", "B100"),
    "sm_103": ("B300", "GB300"),
    "sm_120": ("RTX 50", "RTX PRO 6000"),
    "sm_121": ("DGX Spark", "GB10"),
    "gfx906": ("MI50", "MI60", "Radeon VII", "Z100"),
    "gfx908": ("MI100",),
    "gfx90a": ("MI210", "MI250", "MI250X"),
    "gfx942": ("MI300X", "MI300A", "MI325X", "MI300"),
    "gfx950": ("MI350", "MI350X", "MI355X"),
    "gfx1030": ("RX 6800", "RX 6900", "RX 6950"),
    "gfx1100": ("RX 7900", "PRO W7900"),
    "gfx1101": ("RX 7800", "RX 7700"),
    "gfx1200": ("RX 9060",),
    "gfx1201": ("RX 9070",),
    "gfx1250": ("MI450", "MI455X"),
}

_VENDOR = re.compile(r"nvidia|geforce|tesla|amd|instinct|radeon(?! ?vii)|[\s_-]")


@lru_cache(maxsize=1024)
def parse_target(text: str) -> Target:
    """The target that a person, a cache or a stage means by `text`.

    Args:
        text: `sm_75`, `sm75`, `75`, `cuda:75`, `sm_90a`, `gfx90a`, `hip:gfx90a`,
            `gfx90a:sramecc+:xnack-`, or a product in any case (`t4`, `MI250X`, `rtx 4090`).
            An architecture that is well-formed but not in the table is a target without limits.

    Raises:
        UsageError: it names no GPU; the remedy holds near matches.

    Example:
        >>> parse_target("t4").arch, parse_target("hip:gfx90a").warp_size
        ('sm_75', 64)
    """
    lowered = text.strip().lower()
    if (arch := Arch.parse(lowered)) is not None:
        # What came after GCN and CDNA runs kernels with 32 lanes in Triton.
        return Target(arch.backend, arch, 64 if arch.is_cdna else 32)
    product = _VENDOR.sub("", lowered)
    for known, names in _MARKETING.items():
        for name in names:
            series = r"\d0" if re.fullmatch(r"RTX \d0", name) else ""
            if re.fullmatch(re.escape(_VENDOR.sub("", name.lower())) + series + "[a-z]*", product):
                return parse_target(known)
    raise UsageError(f"{reprlib.repr(text)} names no GPU target that is known here.", _near(lowered))


def parse_metadata_target(metadata: Mapping[str, object]) -> Target | None:
    """The target in the form of any Triton version; None where the metadata names none.

    Raises:
        UsageError: it names one that is no GPU known here.
    """
    written = metadata.get("target")
    parts: Iterable[object] = ()
    warp_size: object = None
    if isinstance(written, dict) and "capability" in written:  # 2.2
        parts = (metadata.get("device_type", "cuda"), written["capability"])
    elif isinstance(written, dict):  # 3.0 and later
        parts, warp_size = (written.get("backend"), written.get("arch")), written.get("warp_size")
    elif isinstance(written, list):  # 2.3
        parts = written[:2]
    elif written is not None:
        parts = (written,)
    elif metadata.get("arch") is not None:  # 2.1
        parts = (metadata.get("device_type"), metadata["arch"])
    text = ":".join(str(part) for part in parts if part is not None)
    if not text:
        return None
    target = parse_target(text)
    if type(warp_size) is int and warp_size > 0 and warp_size != target.warp_size:
        return replace(target, warp_size=warp_size)
    return target


def parse_stage_target(suffix: str, head: bytes) -> Target | None:
    """The target that a stage's first 64 KiB name; None where they name none.

    Raises:
        UsageError: they name one that is no GPU known here.
    """
    pattern = _TEXTS.get(suffix)
    if pattern is None:
        text = _elf_target(head)
    else:
        match = pattern.search(head)
        text = None if match is None else (match[1] or match[2]).decode(errors="replace")
    return None if text is None else parse_target(text)


# A cubin before PTX: Triton 2.0 writes sm_86 into the PTX of everything newer.
STAGES_WITH_TARGET = ("ttgir", "cubin", "ptx", "amdgcn", "hsaco")
_TEXTS = {
    "ttgir": re.compile(
        rb'(?:ttg|triton_gpu)\.target"? = "([^"]+)"|triton_gpu\.compute-capability"? = (\d+)'
    ),
    "ptx": re.compile(rb"^[ \t]*\.target\s+(sm_\w+)()", re.MULTILINE),
    "amdgcn": re.compile(rb'\.amdgcn_target\s+"[^"]*?-(gfx[^"]+)()"'),
}

EM_CUDA, EM_AMDGPU = 190, 224
# LLVM, BinaryFormat/ELF.h: AMDGPU_MACH_LIST.
_AMDGPU_MACH = {
    0x2C: "gfx900", 0x2F: "gfx906", 0x30: "gfx908", 0x33: "gfx1010", 0x36: "gfx1030", 0x3F: "gfx90a",
    0x41: "gfx1100", 0x43: "gfx1150", 0x44: "gfx1103", 0x46: "gfx1101", 0x47: "gfx1102", 0x48: "gfx1200",
    0x49: "gfx1250", 0x4A: "gfx1151", 0x4C: "gfx942", 0x4E: "gfx1201", 0x4F: "gfx950",
}  # fmt: skip


def _elf_target(head: bytes) -> str | None:
    """The architecture in the flags of a cubin or hsaco.

    Source: LLVM, BinaryFormat/ELF.h (EF_CUDA_SM, EF_CUDA_SM_MASK, EF_AMDGPU_MACH).
    """
    if len(head) < 52 or head[:5] != b"\x7fELF\x02":
        return None
    machine = int.from_bytes(head[18:20], "little")
    flags = int.from_bytes(head[48:52], "little")
    if machine == EM_CUDA:
        # ABI 8 (sm_100 and later, sm_90 from Triton 3.9) moved the number up by one byte.
        return f"sm_{flags >> 8 & 0xFF if head[8] >= 8 else flags & 0xFF}"
    return _AMDGPU_MACH.get(flags & 0xFF) if machine == EM_AMDGPU else None


def _near(text: str) -> str:
    words = {
        name.lower(): name for name in (*_MARKETING, *(n for names in _MARKETING.values() for n in names))
    }
    near = [words[word] for word in get_close_matches(text, words, n=3, cutoff=0.5)]
    if near:
        return f"Did you mean {' or '.join(near)}?"
    return "Name an architecture (sm_80, gfx942) or a product (A100, MI300X)."


KNOWN_TARGETS = tuple(parse_target(arch) for arch in _MARKETING)
"""Every target in the table, NVIDIA first, older first."""
