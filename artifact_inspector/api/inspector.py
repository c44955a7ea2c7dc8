"""Inspect a compiled kernel from a launch result, an object of this package, or a path."""

from __future__ import annotations

import os
from pathlib import Path

from artifact_inspector.api._tracebacks import hide_internal_frames
from artifact_inspector.api.inspection import Inspection
from artifact_inspector.compiling import CompileResult
from artifact_inspector.compiling.ask.capturing import CapturedKernel
from artifact_inspector.compiling.ask.hooks import read_kernel_files
from artifact_inspector.errors import CacheError, CompileError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.selection import parse_filters, select_kernels
from artifact_inspector.files.cache import cache_in_memory, open_location
from artifact_inspector.files.objdump import binary_disassembler

MAX_NAMES = 8


@hide_internal_frames
def inspect(kernel: object, *, name: str | None = None, target: str | None = None, sass: bool = False) -> Inspection:
    """Inspect one compiled kernel.

    Args:
        kernel: the result of a Triton launch, `warmup`, `triton.compile`, `compile_kernel` or `capture`;
            or the path of a cache directory, of an entry of one, or of a single file of a kernel
            (`.ttgir`, `.ptx` …).
        name: part of the kernel's name or hash, if a directory has several kernels.
        target: the GPU it was compiled for, if a directory has several.
        sass: also disassemble its binary if nvdisasm (AMD: llvm-objdump) is installed.

    Raises:
        UsageError: it is not a compiled kernel, or the directory does not have exactly one match.
        CompileError: the compiler failed on this kernel.
        CacheError: the path does not exist, or has no kernel.
    """
    if isinstance(kernel, Inspection):
        return kernel
    if isinstance(kernel, (CompileResult, CapturedKernel)):
        if kernel.directory is None:
            raise CompileError(kernel.message or "The kernel did not compile.")
        kernel = kernel.directory
    if isinstance(kernel, (str, os.PathLike)):
        path = Path(kernel).expanduser()
        cache = open_location(path)
    else:
        cache = cache_in_memory(*read_kernel_files(kernel))
    artifacts = select_kernels(cache, name, parse_filters([] if target is None else [target]))
    if not artifacts:
        raise CacheError(f"No kernels in {cache.title}.", "Give a directory that Triton compiled into.")
    if len(artifacts) > 1:
        titles = dict.fromkeys(f"{x.display_name} ({x.target or 'target unknown'})" for x in artifacts)
        omitted = f" and {len(titles) - MAX_NAMES} more" if len(titles) > MAX_NAMES else ""
        raise UsageError(
            f"{len(artifacts)} kernels match in {cache.title}: {', '.join([*titles][:MAX_NAMES])}{omitted}.",
            "Select one: inspect(path, name=…, target=…), or give the directory of its entry.",
        )
    return Inspection(inspect_artifact(artifacts[0], binary_disassembler() if sass else None), cache)
