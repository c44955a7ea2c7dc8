"""Reference kernels, one per module, as a user would write them.

Importing this package imports no Triton; importing a kernel's module does. Each module holds the
kernel, a wrapper that launches it on torch tensors, and `REFERENCE`: how it is compiled with no GPU.
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "flash_attention",
    "fused_linear",
    "gemv_splitk",
    "layer_norm",
    "matmul_descriptor",
    "matmul_grouped",
    "matmul_square",
    "softmax",
]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
