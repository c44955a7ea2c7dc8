"""A kernel compiled where no GPU is, and looked at, in one call."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from artifact_inspector.api._plain import errors_are_the_callers
from artifact_inspector.api.reading import inspect
from artifact_inspector.api.view import Inspection
from artifact_inspector.compiling import compile_kernel


@errors_are_the_callers
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
    """What a kernel becomes for a GPU that need not be there.

    Args:
        kernel: a Triton function at the top level of a file, `"FILE.py:KERNEL"`, `"module:KERNEL"`, or the
            name of a reference kernel.
        target: `sm_80`, `gfx942`, `T4` …
        signature: types of its arguments, in the notation of `triton.tools.compile`: `"*fp16:16, i32:16"`;
            annotations and defaults fill what they can.
        constexprs: values of its `tl.constexpr` arguments.
        out_dir: the Triton cache to fill; by default one of our own, where nothing is compiled twice.
        sass: disassemble its binary too, where nvdisasm (AMD: llvm-objdump) is at hand.
        options: num_warps, num_stages and whatever else Triton takes.

    Raises:
        UsageError: no such kernel or target, missing arguments.
        CompileError: the compiler refused; its own message.

    Example:
        >>> compile_and_inspect("softmax", "sm_90").registers  # doctest: +SKIP
        22
    """
    made = compile_kernel(
        kernel,
        target,
        signature=signature,
        constexprs=constexprs,
        out_dir=None if out_dir is None else Path(out_dir),
        **options,
    )
    return inspect(made, sass=sass)
