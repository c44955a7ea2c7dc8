"""What one issue of a matrix instruction does."""

from __future__ import annotations

from typing import NamedTuple

from artifact_inspector.model.word import Word


class MatrixUnit(Word):
    """A family of matrix instructions, by the name that their users give it."""

    MMA = "mma"
    WGMMA = "wgmma"
    TCGEN05 = "tcgen05"
    MFMA = "mfma"
    WMMA = "wmma"
    DOT = "dot"
    """Of tensor-level IR, where no instruction is chosen yet."""
    NONE = "none"
    """Of a GPU that has no matrix instructions."""


class Issuer(Word):
    """Who issues a matrix instruction together."""

    WARP = "warp"
    WARPGROUP = "warpgroup"
    CTA = "CTA"
    CTA_PAIR = "CTA pair"
    WAVEFRONT = "wavefront"
    BLOCK = "block"
    """Of tensor-level IR."""


class MatrixOp(NamedTuple):
    """What one issue of a matrix instruction does."""

    op: str
    """As people write it, without shape and types: `mma.sync`, `wgmma.mma_async`, `v_mfma`, `tt.dot`."""
    family: str
    """`mma`, `wgmma`, `tcgen05`, `mfma`, `wmma`, as `Limits.matrix_unit` has it; `dot` in tensor-level IR."""
    m: int
    n: int
    k: int
    blocks: int
    """Products that one issue computes side by side (`v_mfma_f32_4x4x4_16b_f16` has 16); in tensor-level
    IR the batch. A sparse product counts as the dense one that its shape names."""
    types: str
    """Element types of a, b and the result: `f16×f16→f32`."""
    issuer: str
    """Who issues it together: `warp`, `warpgroup`, `CTA`, `CTA pair`, `wavefront`; `block` in
    tensor-level IR."""

    @property
    def operands(self) -> tuple[str, str]:
        """Element types of a and b."""
        a, _, b = self.types.partition("→")[0].partition("×")
        return a, b

    @property
    def shape(self) -> str:
        """`m16n8k16`, with the number of products where one issue computes several."""
        return f"m{self.m}n{self.n}k{self.k}" + (f"×{self.blocks}" if self.blocks > 1 else "")

    @property
    def flop(self) -> int:
        """Floating-point (or integer) operations of one issue: two for each multiply-add."""
        return 2 * self.m * self.n * self.k * self.blocks
