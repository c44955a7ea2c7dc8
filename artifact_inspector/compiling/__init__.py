"""Compiling any Triton kernel for GPUs that are not there."""

from artifact_inspector.compiling.captured import CapturedKernel, Launch, Note
from artifact_inspector.compiling.capturing import Captured, capture
from artifact_inspector.compiling.compile import (
    CompileResult,
    compile_kernel,
    compile_kernels,
    compile_reference,
)
from artifact_inspector.compiling.reference import DEMO_KERNELS, REFERENCE_KERNELS, Reference, Workload
from artifact_inspector.compiling.request import KernelRequest, Written
from artifact_inspector.compiling.running import ProgramRun, capture_program

__all__ = [
    "DEMO_KERNELS",
    "REFERENCE_KERNELS",
    "Captured",
    "CapturedKernel",
    "CompileResult",
    "KernelRequest",
    "Launch",
    "Note",
    "ProgramRun",
    "Reference",
    "Workload",
    "Written",
    "capture",
    "capture_program",
    "compile_kernel",
    "compile_kernels",
    "compile_reference",
]
