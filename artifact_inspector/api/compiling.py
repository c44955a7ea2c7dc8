"""Compile kernels without a GPU and inspect them, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifact_inspector.api._tracebacks import hide_internal_frames
from artifact_inspector.api.inspection import Inspection
from artifact_inspector.api.inspector import inspect
from artifact_inspector.compiling import compile_kernel


@hide_internal_frames
def compile_and_inspect(
    kernel: Any,
    target: str,
    *,
    signature: str | Mapping[str, str] | None = None,
    constexprs: Mapping[str, Any] | None = None,
    out_dir: Path | str | None = None,
    sass: bool = False,
    **options: Any,
) -> Inspection:
    """Compile a kernel for a GPU that need not be present, and inspect it.

    Args:
        kernel: a Triton function at the top level of a file, `"FILE.py:KERNEL"`, `"module:KERNEL"`, or the
            name of a reference kernel.
        target: `sm_80`, `gfx942`, `T4` …
        signature: types of its arguments, in the notation of `triton.tools.compile`: `"*fp16:16, i32:16"`;
            annotations and defaults supply missing types.
        constexprs: values of its `tl.constexpr` arguments.
        out_dir: the Triton cache to fill. Default: a cache of this package, which compiles nothing twice.
        sass: also disassemble its binary if nvdisasm (AMD: llvm-objdump) is installed.
        options: num_warps, num_stages and any other Triton option.

    Raises:
        UsageError: no such kernel or target, missing arguments.
        CompileError: the compiler failed; the message is its own.

    Example:
        >>> compile_and_inspect("softmax", "sm_90").registers  # doctest: +SKIP
        22
    """
    compile_result = compile_kernel(
        kernel,
        target,
        signature=signature,
        constexprs=constexprs,
        out_dir=None if out_dir is None else Path(out_dir),
        **options,
    )
    return inspect(compile_result, sass=sass)


class KernelCompiler:
    """Compiles kernels into one directory and keeps their inspections."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._inspections: dict[tuple[object, ...], Inspection] = {}

    @hide_internal_frames
    def __call__(
        self,
        kernel: Any,
        target: str,
        *,
        signature: str | Mapping[str, str] | None = None,
        constexprs: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> Inspection:
        """Compile a kernel for a GPU that need not be present, and inspect it, as `compile_and_inspect` does."""
        request_key = (kernel, target, repr(signature), repr(constexprs), repr(sorted(options.items())))
        if request_key not in self._inspections:
            self._inspections[request_key] = compile_and_inspect(
                kernel, target, signature=signature, constexprs=constexprs, out_dir=self.directory, **options
            )
        return self._inspections[request_key]

    def __repr__(self) -> str:
        return f"<compiler into {self.directory}>"
