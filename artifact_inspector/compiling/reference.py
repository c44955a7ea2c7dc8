"""How a kernel is compiled with no launch: what a launch would have told Triton, written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = ["REFERENCE_KERNELS", "Reference"]

REFERENCE_KERNELS: Mapping[str, str] = MappingProxyType(
    {
        "fused_linear": "kernels.fused_linear",
        "matmul_grouped": "kernels.matmul_grouped",
        "gemv_splitk": "kernels.gemv_splitk",
        "matmul_square": "kernels.matmul_square",
        "softmax": "kernels.softmax",
        "layer_norm": "kernels.layer_norm",
        "flash_attention": "kernels.flash_attention",
        "matmul_descriptor": "kernels.matmul_descriptor",
    }
)
"""Name of a reference kernel → the module whose `REFERENCE` says how it is compiled."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One kernel and the arguments of the launch that it stands for."""

    kernel: Any
    """The `@triton.jit` function; Triton has no types."""
    signature: Mapping[str, str]
    """Argument → type in the notation of `triton.tools.compile`: `*fp16:16` is a pointer that is a
    multiple of 16 bytes, `i32:16` an integer that 16 divides, `i32:1` an integer that is 1."""
    constexprs: Mapping[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further options as Triton spells them (`maxnreg`, `waves_per_eu`); a back end ignores the other's."""

    @property
    def types(self) -> dict[str, str]:
        """Argument → type without its hint, in the kernel's order."""
        return {name: text.partition(":")[0] for name, text in self.signature.items()}

    def hinted(self, hint: int) -> tuple[str, ...]:
        """Arguments marked `:16` (divisible by 16) or `:1` (equal to 1)."""
        return tuple(name for name, text in self.signature.items() if text.endswith(f":{hint}"))
