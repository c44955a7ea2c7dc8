"""Reference kernels, one per module, as a user would write them.

Importing this package imports no Triton; importing a kernel's module does. Each module holds the
kernel, a wrapper that launches it on torch tensors, `REFERENCE`: how it is compiled with no GPU, and
`workload`: a launch of the size that it is measured at.
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "attention_backward",
    "flash_attention",
    "fused_linear",
    "gemv_int4",
    "gemv_loads_first",
    "gemv_splitk",
    "grouped_gemm",
    "histogram",
    "layer_norm",
    "linear_scan",
    "matmul_descriptor",
    "matmul_fp8",
    "matmul_grouped",
    "matmul_persistent",
    "matmul_persistent_descriptor",
    "matmul_scaled",
    "matmul_splitk",
    "matmul_square",
    "matmul_warp_specialised",
    "softmax",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
