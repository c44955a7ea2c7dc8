"""Compiling the reference kernels for GPUs that are not there."""

from artifact_inspector.compiling.compile import CompileResult, compile_reference
from artifact_inspector.compiling.reference import REFERENCE_KERNELS, Reference

__all__ = ["REFERENCE_KERNELS", "CompileResult", "Reference", "compile_reference"]
