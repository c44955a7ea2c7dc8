"""Compiling any Triton kernel for GPUs that are not there."""

from artifact_inspector.compiling.compile import (
    CompileResult,
    compile_kernel,
    compile_kernels,
    compile_reference,
)
from artifact_inspector.compiling.reference import REFERENCE_KERNELS, Reference
from artifact_inspector.compiling.request import KernelRequest, Written

__all__ = [
    "REFERENCE_KERNELS",
    "CompileResult",
    "KernelRequest",
    "Reference",
    "Written",
    "compile_kernel",
    "compile_kernels",
    "compile_reference",
]
