"""From whatever names a compiled kernel to its inspection."""

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
    """What is known of one compiled kernel.

    Args:
        kernel: what a Triton launch, `warmup` or `triton.compile` returned, what `compile_kernel` or
            `capture` made, or a path: of a cache directory, of an entry of one, or of a single file of a
            kernel (`.ttgir`, `.ptx` …).
        name: part of the kernel's name or hash, where a directory holds several.
        target: the GPU that it was compiled for, where a directory holds it for several.
        sass: disassemble its binary too, where nvdisasm (AMD: llvm-objdump) is at hand.

    Raises:
        UsageError: it is nothing that was compiled, or the directory does not hold exactly one such kernel.
        CompileError: it is what the compiler refused to make.
        CacheError: the path leads nowhere, or to nothing that is a kernel.
    """
    if isinstance(kernel, Inspection):
        return kernel
    if isinstance(kernel, (CompileResult, CapturedKernel)):
        if kernel.directory is None:
            raise CompileError(kernel.message or "The compiler refused the kernel.")
        kernel = kernel.directory
    if isinstance(kernel, (str, os.PathLike)):
        path = Path(kernel).expanduser()
        cache = open_file(path) if path.is_file() else open_cache(path)
    else:
        cache = hold_files(*files_of(kernel))
    chosen = choose(cache, name, parse_which([] if target is None else [target]))
    if not chosen:
        raise CacheError(
            f"No compiled kernel is in {cache.root}.", "Name a directory that Triton compiled into."
        )
    if len(chosen) > 1:
        titles = dict.fromkeys(f"{x.display_name} ({x.target or 'target unknown'})" for x in chosen)
        more = f" and {len(titles) - MOST_NAMES} more" if len(titles) > MOST_NAMES else ""
        raise UsageError(
            f"{len(chosen)} kernels are in {cache.root}: {', '.join([*titles][:MOST_NAMES])}{more}.",
            "Say which: inspect(path, name=…, target=…), or name the directory of its entry.",
        )
    if not sass:
        return Inspection(inspect_artifact(chosen[0]), cache)
    from artifact_inspector.files.objdump import disassembling

    return Inspection(inspect_artifact(chosen[0], disassembling()), cache)
