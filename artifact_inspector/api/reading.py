"""Inspect a compiled kernel from a launch result, an object of this package, or a path."""

from __future__ import annotations

import os
from pathlib import Path

from artifact_inspector.api._plain import errors_are_the_callers
from artifact_inspector.api.view import Inspection
from artifact_inspector.compiling import CompileResult
from artifact_inspector.compiling.ask.captured import CapturedKernel
from artifact_inspector.compiling.ask.compiled import files_of
from artifact_inspector.errors import CacheError, CompileError, UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.selection import choose, parse_which
from artifact_inspector.files.cache import hold_files, open_cache, open_file

MOST_NAMES = 8


@errors_are_the_callers
def inspect(
    kernel: object, *, name: str | None = None, target: str | None = None, sass: bool = False
) -> Inspection:
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
        cache = open_file(path) if path.is_file() else open_cache(path)
    else:
        cache = hold_files(*files_of(kernel))
    chosen = choose(cache, name, parse_which([] if target is None else [target]))
    if not chosen:
        raise CacheError(f"No kernels in {cache.root}.", "Give a directory that Triton compiled into.")
    if len(chosen) > 1:
        titles = dict.fromkeys(f"{x.display_name} ({x.target or 'target unknown'})" for x in chosen)
        more = f" and {len(titles) - MOST_NAMES} more" if len(titles) > MOST_NAMES else ""
        raise UsageError(
            f"{len(chosen)} kernels match in {cache.root}: {', '.join([*titles][:MOST_NAMES])}{more}.",
            "Select one: inspect(path, name=…, target=…), or give the directory of its entry.",
        )
    if not sass:
        return Inspection(inspect_artifact(chosen[0]), cache)
    from artifact_inspector.files.objdump import disassembling

    return Inspection(inspect_artifact(chosen[0], disassembling()), cache)
