"""What one issue of a matrix instruction computes."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.string_enum import StringEnum


class MatrixUnit(StringEnum):
    """A family of matrix instructions, by its usual name."""

    MMA = "mma"
    WGMMA = "wgmma"
    TCGEN05 = "tcgen05"
    MFMA = "mfma"
    WMMA = "wmma"
    DOT = "dot"
    """Tensor-level IR, where no instruction is selected yet."""
    NONE = "none"
    """A GPU without matrix instructions."""


class Issuer(StringEnum):
    """The threads that issue a matrix instruction together."""

    WARP = "warp"
    WARPGROUP = "warpgroup"
    CTA = "CTA"
    CTA_PAIR = "CTA pair"
    WAVEFRONT = "wavefront"
    BLOCK = "block"
    """Tensor-level IR."""


class MatrixOp(NamedTuple):
    """What one issue of a matrix instruction computes."""

    op: str
    """Name without shape and types: `mma.sync`, `wgmma.mma_async`, `v_mfma`, `tt.dot`."""
    family: str
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`, as in `Limits.matrix_unit`; `dot` in tensor-level IR."""
    m: int
    n: int
    k: int
    blocks: int
    """Independent products of one issue (16 for `v_mfma_f32_4x4x4_16b_f16`); the batch in tensor-level IR. A
    sparse product counts as the dense product of its shape."""
    types: str
    """Element types of a, b and the result: `f16×f16→f32`."""
    issuer: str
    """The issuing threads: `warp`, `warpgroup`, `CTA`, `CTA pair`, `wavefront`; `block` in tensor-level IR."""

    @property
    def operands(self) -> tuple[str, str]:
        """Element types of a and b."""
        a, _, b = self.types.partition("→")[0].partition("×")
        return a, b

    @property
    def accumulator(self) -> str:
        """Element type of the result."""
        return self.types.partition("→")[2]

    @property
    def shape(self) -> str:
        """`m16n8k16`, followed by the number of products if one issue computes several."""
        return f"m{self.m}n{self.n}k{self.k}" + (f"×{self.blocks}" if self.blocks > 1 else "")

    @property
    def flop(self) -> int:
        """Floating-point (or integer) operations of one issue; a multiply-add counts as two."""
        return 2 * self.m * self.n * self.k * self.blocks
