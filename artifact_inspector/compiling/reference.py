"""How a reference kernel is compiled without a launch, and the launch that is measured.

`Reference` holds the types, constants and options that a launch would give Triton. `Workload` is a launch on
real tensors, with its expected result, its operation count and its least memory traffic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

REFERENCE_KERNELS: Mapping[str, str] = MappingProxyType(
    {
        name: f"artifact_inspector.kernels.{name}"
        for name in (
            *("fused_linear", "matmul_grouped", "gemv_splitk", "matmul_square", "softmax", "layer_norm"),
            *("flash_attention", "matmul_descriptor", "gemv_loads_first", "gemv_int4", "matmul_splitk"),
            *("matmul_persistent", "matmul_persistent_descriptor", "matmul_warp_specialised", "matmul_fp8"),
            *("matmul_scaled", "grouped_gemm", "attention_backward", "linear_scan", "histogram"),
        )
    }
)
"""Name of a reference kernel → the module whose `REFERENCE` holds its compile arguments."""

DEMO_KERNELS = tuple(REFERENCE_KERNELS)[:8]
"""The kernels of `inspect-kernel demo`, which compile in seconds."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One kernel and the arguments of a typical launch."""

    kernel: Any
    """The `@triton.jit` function; Triton has no types."""
    signature: Mapping[str, str]
    """Argument → type in the notation of `triton.tools.compile`: `*fp16:16` is a pointer that is a
    multiple of 16 bytes, `i32:16` an integer that is divisible by 16, `i32:1` an integer that equals 1."""
    constexprs: Mapping[str, Any]
    num_warps: int = 4
    num_stages: int = 3
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other options by Triton's names (`maxnreg`, `waves_per_eu`); a back end ignores those it does not have."""
    configs: Sequence[Any] = ()
    """Configurations for an autotuner, as `triton.Config`; if empty, the values above are the only one."""
    cuda_since: int = 0
    """The first NVIDIA architecture that supports the kernel; Triton refuses it for older ones."""

    @property
    def types(self) -> dict[str, str]:
        """Argument → type without its hint, in the kernel's order."""
        return {name: text.partition(":")[0] for name, text in self.signature.items()}

    def launch_options(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Keyword arguments of a launch: block sizes and options, overridden by `config`."""
        defaults = {**self.constexprs, "num_warps": self.num_warps, "num_stages": self.num_stages, **self.options}
        return {**defaults, **config}


@dataclass(frozen=True, slots=True)
class Workload:
    """One measured launch of a kernel, with its inputs and result allocated."""

    launch: Callable[..., object]
    """Launches the kernel once and writes `result`. Keyword arguments are those of a configuration: block
    sizes, `num_warps`, `num_stages`; the defaults are the kernel's own."""
    result: torch.Tensor | Sequence[torch.Tensor] | None = None
    """Output of the kernel; None if it is not checked."""
    expected: Callable[[], torch.Tensor | Sequence[torch.Tensor]] | None = None
    """Computes the expected output from the same inputs, without the kernel."""
    tolerance: float = 1e-2
    """Largest relative error that passes: ‖result − expected‖ / ‖expected‖ in Frobenius norms."""
    adds: bool = False
    """Whether the kernel adds to `result`, which is then zeroed first; else it must write every element."""
    size: str = ""
    """Problem size for display: `8192×8192×8192`."""
    flop: float | None = None
    """Floating-point operations of the computation; a multiply-add counts as two."""
    bytes: float | None = None
    """Least traffic with device memory in bytes: every input read once, every output written once."""
    unit: str | None = None
    """Data type whose peak rate bounds the arithmetic, by its name in `peaks`: fp16, fp8, tf32, fp32."""
    configs: Sequence[Mapping[str, Any]] = ()
    """Configurations to compare, each as keyword arguments of `launch`."""
