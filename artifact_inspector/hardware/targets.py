"""Compilation targets, in every spelling that users, caches and files use."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import lru_cache

from artifact_inspector.errors import UsageError
from artifact_inspector.hardware.amd import AMD
from artifact_inspector.hardware.gpu import UNKNOWN_GPU, Gpu, Limits, Multiprocessor
from artifact_inspector.hardware.nvidia import NVIDIA
from artifact_inspector.model import Arch, Backend

__all__ = [
    "KNOWN_TARGETS", "STAGES_WITH_TARGET", "Limits", "Multiprocessor", "Target", "parse_metadata_target",
    "parse_stage_target", "parse_target",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Target:
    """The target that a kernel was compiled for."""

    backend: Backend
    arch: Arch
    warp_size: int
    """Lanes per warp."""

    @property
    def gpu(self) -> Gpu:
        """The data of the architecture."""
        return _GPUS.get(self.arch, UNKNOWN_GPU)

    @property
    def product_names(self) -> tuple[str, ...]:
        """Products with this architecture; empty if none is known."""
        return self.gpu.product_names

    @property
    def limits(self) -> Limits:
        """Limits per SM or compute unit; all None for an unknown architecture."""
        return self.gpu.limits

    @property
    def has_unified_registers(self) -> bool:
        """Whether AMD's vector registers and AccVGPRs share a register file.

        Source: LLVM, AMDGPU.td, FeatureGFX90AInsts.
        """
        return self.arch == "gfx90a" or self.arch.version in ((9, 4), (9, 5))

    @property
    def has_workgroup_processors(self) -> bool:
        """Whether two of AMD's compute units form a workgroup processor.

        Source: LLVM, AMDGPUUsage, `.amdhsa_workgroup_processor_mode` (gfx10 to gfx12.0).
        """
        return self.backend is Backend.HIP and (10, 0) <= self.arch.version <= (12, 0)

    def __str__(self) -> str:
        return str(self.arch)


_GPUS = NVIDIA | AMD
_SUFFIXES = (
    r"(?:[dgmns]|(?<!x)x)?(?:ti|super|ada|laptop|mobile|max|gpu|sxm\d?|pcie|nvl|xtx|xt|gre|\d{1,3}gb|hbm\d?e?)*d?"
)
"""What may follow a product's name: `A10G`, `L40S`, `RTX 4070 Ti Super`; `A10O` and `MI300XX` are typing errors."""
_VENDOR = re.compile(r"nvidia|geforce|tesla|amd|instinct|radeon(?! ?vii)|[\s_-]")


@lru_cache(maxsize=1024)
def parse_target(text: str) -> Target:
    """The target that `text` names, as written by a user, a cache or a stage.

    Args:
        text: `sm_75`, `sm75`, `75`, `cuda:75`, `sm_90a`, `gfx90a`, `hip:gfx90a`,
            `gfx90a:sramecc+:xnack-`, or a product in any case (`t4`, `MI250X`, `rtx 4090`).
            A well-formed architecture that is not in the table is a target without limits.

    Raises:
        UsageError: it names no GPU; the remedy lists similar names.

    Example:
        >>> parse_target("t4").arch, parse_target("hip:gfx90a").warp_size, parse_target("4090").arch
        ('sm_75', 64, 'sm_89')
    """
    lowered = text.strip().lower()
    if (arch := Arch.parse(lowered)) is not None:
        # Triton runs kernels with 32 lanes on architectures after GCN and CDNA.
        return Target(arch.backend, arch, 64 if arch.is_cdna else 32)
    product = _VENDOR.sub("", lowered)
    for arch_name, gpu in _GPUS.items():
        for name in gpu.product_names:
            known_as, product_of = re.escape(_VENDOR.sub("", name.lower())), product
            if re.fullmatch(r"RTX \d0", name):  # a series: `RTX 4090`, `4090`
                known_as = known_as.removeprefix("rtx") + r"\d0"
                product_of = product.removeprefix("rtx")
            if re.fullmatch(known_as + _SUFFIXES, product_of):
                return parse_target(arch_name)
    known_names = (*_GPUS, *(name for gpu in _GPUS.values() for name in gpu.product_names))
    names = {name.lower(): name for name in known_names}
    matches = [names[name] for name in get_close_matches(lowered, names, n=3, cutoff=0.5)]
    remedy = "Name an architecture (sm_80, gfx942) or a product (A100, MI300X)."
    if matches:
        remedy = f"Did you mean {' or '.join(matches)}?"
    raise UsageError(f"{reprlib.repr(text)} is not a known GPU target.", remedy)


def parse_metadata_target(metadata: Mapping[str, object]) -> Target | None:
    """The target in the metadata of any Triton version; None if the metadata names none.

    Raises:
        UsageError: it names an unknown GPU.
    """
    target = metadata.get("target")
    fields: Iterable[object] = ()
    warp_size: object = None
    if isinstance(target, dict) and "capability" in target:  # 2.2
        fields = (metadata.get("device_type", "cuda"), target["capability"])
    elif isinstance(target, dict):  # 3.0 and later
        fields, warp_size = (target.get("backend"), target.get("arch")), target.get("warp_size")
    elif isinstance(target, list):  # 2.3
        fields = target[:2]
    elif target is not None:
        fields = (target,)
    elif metadata.get("arch") is not None:  # 2.1
        fields = (metadata.get("device_type"), metadata["arch"])
    text = ":".join(str(field) for field in fields if field is not None)
    if not text:
        return None
    parsed = parse_target(text)
    if type(warp_size) is int and warp_size > 0 and warp_size != parsed.warp_size:
        return replace(parsed, warp_size=warp_size)
    return parsed


def parse_stage_target(suffix: str, head: bytes) -> Target | None:
    """The target that the first 64 KiB of a stage name; None if they name none.

    Raises:
        UsageError: they name an unknown GPU.
    """
    pattern = _TARGET_PATTERNS.get(suffix)
    if pattern is None:
        text = _elf_target(head)
    else:
        match = pattern.search(head)
        text = None if match is None else (match[1] or match[2]).decode(errors="replace")
    return None if text is None else parse_target(text)


# A cubin comes before PTX: Triton 2.0 writes sm_86 into the PTX of every newer architecture.
STAGES_WITH_TARGET = ("ttgir", "cubin", "ptx", "amdgcn", "hsaco")
_TARGET_PATTERNS = {
    "ttgir": re.compile(rb'(?:ttg|triton_gpu)\.target"? = "([^"]+)"|triton_gpu\.compute-capability"? = (\d+)'),
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
    """The architecture in the ELF flags of a cubin or hsaco.

    Source: LLVM, BinaryFormat/ELF.h (EF_CUDA_SM, EF_CUDA_SM_MASK, EF_AMDGPU_MACH).
    """
    if len(head) < 52 or head[:5] != b"\x7fELF\x02":
        return None
    machine = int.from_bytes(head[18:20], "little")
    flags = int.from_bytes(head[48:52], "little")
    if machine == EM_CUDA:
        # ABI 8 (sm_100 and later, sm_90 from Triton 3.9) shifted the number by one byte.
        return f"sm_{flags >> 8 & 0xFF if head[8] >= 8 else flags & 0xFF}"
    return _AMDGPU_MACH.get(flags & 0xFF) if machine == EM_AMDGPU else None


KNOWN_TARGETS = tuple(parse_target(arch) for arch in _GPUS)
"""Every target in the table, NVIDIA first, oldest first."""
