"""Compile any Triton kernel for GPUs that this machine does not have.

Three kinds of processes take part. `ask` runs in the calling process, `worker` in the process that compiles,
and `capture` in a user's program that would launch kernels. Modules that two of them need lie beside them.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # type checkers assume True
if TYPE_CHECKING:
    from artifact_inspector.compiling.ask.capturing import CapturedKernel, CapturedKernels, Launch, Note, capture
    from artifact_inspector.compiling.ask.compile import compile_kernel, compile_kernels, compile_reference
    from artifact_inspector.compiling.ask.request import CompileResult, ConstantText, KernelRequest
    from artifact_inspector.compiling.ask.running import ProgramRun, capture_program
    from artifact_inspector.compiling.reference import DEMO_KERNELS, REFERENCE_KERNELS, Reference, Workload

_PLACES = {
    "ask.capturing": ("CapturedKernel", "CapturedKernels", "Launch", "Note", "capture"),
    "ask.compile": ("compile_kernel", "compile_kernels", "compile_reference"),
    "ask.request": ("CompileResult", "ConstantText", "KernelRequest"),
    "ask.running": ("ProgramRun", "capture_program"),
    "reference": ("DEMO_KERNELS", "REFERENCE_KERNELS", "Reference", "Workload"),
}

__all__ = [
    "DEMO_KERNELS", "REFERENCE_KERNELS", "CapturedKernel", "CapturedKernels", "CompileResult", "ConstantText",
    "KernelRequest", "Launch", "Note", "ProgramRun", "Reference", "Workload", "capture", "capture_program",
    "compile_kernel", "compile_kernels", "compile_reference",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that the compiling process does not load the modules of `ask`."""
    for module_name, names in _PLACES.items():
        if name in names:
            value = getattr(import_module(f"{__name__}.{module_name}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
