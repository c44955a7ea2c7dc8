"""How a kernel is compiled with no launch, and the launch that it is measured at.

`Reference` writes down what a launch would have told Triton; `Workload` is a launch on real tensors,
with what it computes, how that is checked, and what it costs at least.
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
        "fused_linear": "artifact_inspector.kernels.fused_linear",
        "matmul_grouped": "artifact_inspector.kernels.matmul_grouped",
        "gemv_splitk": "artifact_inspector.kernels.gemv_splitk",
        "matmul_square": "artifact_inspector.kernels.matmul_square",
        "softmax": "artifact_inspector.kernels.softmax",
        "layer_norm": "artifact_inspector.kernels.layer_norm",
        "flash_attention": "artifact_inspector.kernels.flash_attention",
        "matmul_descriptor": "artifact_inspector.kernels.matmul_descriptor",
        "gemv_loads_first": "artifact_inspector.kernels.gemv_loads_first",
        "gemv_int4": "artifact_inspector.kernels.gemv_int4",
        "matmul_splitk": "artifact_inspector.kernels.matmul_splitk",
        "matmul_persistent": "artifact_inspector.kernels.matmul_persistent",
        "matmul_persistent_descriptor": "artifact_inspector.kernels.matmul_persistent_descriptor",
        "matmul_warp_specialised": "artifact_inspector.kernels.matmul_warp_specialised",
        "matmul_fp8": "artifact_inspector.kernels.matmul_fp8",
        "matmul_scaled": "artifact_inspector.kernels.matmul_scaled",
        "grouped_gemm": "artifact_inspector.kernels.grouped_gemm",
        "attention_backward": "artifact_inspector.kernels.attention_backward",
        "linear_scan": "artifact_inspector.kernels.linear_scan",
        "histogram": "artifact_inspector.kernels.histogram",
    }
)
"""Name of a reference kernel → the module whose `REFERENCE` says how it is compiled."""

DEMO_KERNELS = tuple(REFERENCE_KERNELS)[:8]
"""The kernels of the demo: enough to see, and compiled in seconds."""


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
    configs: Sequence[Any] = ()
    """Triton's configurations that an autotuner would choose from; without them, what is above."""
    cuda_since: int = 0
    """The first NVIDIA architecture that has what the kernel needs; Triton refuses it for older ones."""

    @property
    def types(self) -> dict[str, str]:
        """Argument → type without its hint, in the kernel's order."""
        return {name: text.partition(":")[0] for name, text in self.signature.items()}

    def hinted(self, hint: int) -> tuple[str, ...]:
        """Arguments marked `:16` (divisible by 16) or `:1` (equal to 1)."""
        return tuple(name for name, text in self.signature.items() if text.endswith(f":{hint}"))

    def launch_options(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments of a launch: blocks and options, those in `config` instead of its own."""
        own = {**self.constexprs, "num_warps": self.num_warps, "num_stages": self.num_stages, **self.options}
        return {**own, **config}


@dataclass(frozen=True, slots=True)
class Workload:
    """One launch of a kernel as it is measured: inputs are made, the result has a place."""

    launch: Callable[..., object]
    """Launches the kernel once, into `result`. Its keyword arguments are those of a configuration:
    blocks, `num_warps`, `num_stages`; without any, the kernel's own."""
    result: torch.Tensor | Sequence[torch.Tensor] | None = None
    """What the kernel writes; None leaves it unchecked."""
    expected: Callable[[], torch.Tensor | Sequence[torch.Tensor]] | None = None
    """The same by other means, on the same inputs."""
    tolerance: float = 1e-2
    """Largest ‖result − expected‖ / ‖expected‖ that passes (Frobenius norms)."""
    adds: bool = False
    """The kernel adds to `result`, which must be zero before; else it must write every element."""
    size: str = ""
    """The workload in words: `8192×8192×8192`."""
    flop: float | None = None
    """Floating-point operations that the result takes, a multiply-add counted as two."""
    bytes: float | None = None
    """Least traffic with device memory: every input read once, every output written once."""
    unit: str | None = None
    """Type whose peak rate bounds the arithmetic, as `peaks` names them: fp16, fp8, tf32, fp32."""
    configs: Sequence[Mapping[str, Any]] = ()
    """Configurations worth comparing, each the keyword arguments of a `launch`."""
