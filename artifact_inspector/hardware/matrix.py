"""Operand types and smallest shapes of the GPUs' matrix units.

Source: PTX ISA, Matrix Shape of mma, wgmma and tcgen05.mma with their Target ISA Notes; the MFMA and WMMA
opcodes in AMD's CDNA 1 to 4 and RDNA 3 and 4 ISA manuals; LLVM, AMDGPU.td, for gfx1250.
"""

from __future__ import annotations

from artifact_inspector.model import Arch, MatrixUnit

UNIT_NAMES = {
    MatrixUnit.MMA: "mma.sync", MatrixUnit.WGMMA: "wgmma", MatrixUnit.TCGEN05: "tcgen05.mma",
    MatrixUnit.MFMA: "MFMA", MatrixUnit.WMMA: "WMMA",
}  # fmt: skip
"""Usual names of the matrix instructions of a unit."""
MIN_WGMMA_M = 64
"""Minimum m of a wgmma or tcgen05.mma."""
WARPS_PER_WARPGROUP = 4
"""PTX ISA, Asynchronous Warpgroup Level Matrix Instructions: four contiguous warps."""

_FIRST_ARCH = {
    MatrixUnit.MMA: {"f16": 70, "i8": 75, "bf16": 80, "tf32": 80, "f64": 80, "f8E4M3FN": 89, "f8E5M2": 89},
    MatrixUnit.MFMA: {
        **dict.fromkeys(("f32", "f16", "bf16", "i8"), 0x908),
        "f64": 0x90A,
        **dict.fromkeys(("f8E4M3FNUZ", "f8E5M2FNUZ"), 0x942),
        **dict.fromkeys(("f8E4M3FN", "f8E5M2"), 0x950),
    },
    MatrixUnit.WMMA: {"f16": 0x1100, "bf16": 0x1100, "i8": 0x1100, "f8E4M3FN": 0x1200, "f8E5M2": 0x1200, "f32": 0x1250},
}
"""Unit → element types that it multiplies → number of the oldest architecture with support."""
_KNOWN_TYPES = frozenset(element for rows in _FIRST_ARCH.values() for element in rows)
_UNSUPPORTED_TYPES = frozenset({"i16", "i32", "i64"})


def supports_element_type(arch: Arch, unit: MatrixUnit, element: str) -> bool:
    """False if the type is known and the unit of the architecture does not multiply it.

    Example:
        >>> [supports_element_type(Arch(arch), MatrixUnit.MMA, "bf16") for arch in ("sm_75", "sm_80")]
        [False, True]
    """
    if element in _UNSUPPORTED_TYPES:
        return False
    if element not in _KNOWN_TYPES:
        return True
    uses_tf32 = element == "f32" and unit is MatrixUnit.MMA  # uses its upper bits
    first_arch = _FIRST_ARCH.get(unit, {}).get("tf32" if uses_tf32 else element)
    return first_arch is not None and arch.number >= first_arch
