"""Compile with Triton 2.1 to 2.3 without a driver: the interface of `triton3`, for those releases.

NVIDIA only: their wheels have no AMD back end.

Source: triton/compiler/compiler.py, `compile`, `make_hash` (2.1, 2.2) and `ASTSource` (2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import triton
from triton.compiler import compiler

from artifact_inspector.compiling.publishing import read_cache_key
from artifact_inspector.compiling.signature import BoundArguments
from artifact_inspector.compiling.stage_reuse import StageRecord
from artifact_inspector.errors import CompileError
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion

VERSION = TritonVersion(triton.__version__).release or (2, 0)


class _LaunchSource(NamedTuple):
    function: Any
    arguments: BoundArguments
    ones: frozenset[int]


class _UnloadedKernel:
    """Replaces CompiledKernel, which queries the driver for a device."""

    def __init__(self, *_: Any) -> None:
        pass


def make_source(function: Any, arguments: BoundArguments, target: Target) -> _LaunchSource:
    """The kernel with the arguments of a launch.

    Raises:
        CompileError: the GPU is not from NVIDIA.
        UsageError: these releases do not support tuples.
    """
    if target.backend != "cuda":
        raise CompileError(f"The wheel of Triton {triton.__version__} has no AMD back end.", "Use Triton 3.0 or newer.")
    arguments.require_plain(triton.__version__)
    ones = frozenset(
        path[0]
        for path, value in arguments.constants.items()
        if type(value) is int and value == 1 and path[0] not in function.constexprs
    )
    return _LaunchSource(function, arguments, ones)


def entry_name(source: _LaunchSource, target: Target, options: Mapping[str, Any]) -> str:
    """The name of a kernel's entry directory in any cache, which is its key."""
    return str(read_cache_key(lambda: build(source, target, options)))


def build(source: _LaunchSource, target: Target, options: Mapping[str, Any]) -> None:
    """Compile into the cache at TRITON_CACHE_DIR.

    Raises:
        Exception: any type that Triton raises for a kernel or target that it refuses.
    """
    compiler.CompiledKernel = _UnloadedKernel  # and no launcher is linked against the driver
    index = source.function.arg_names.index
    by_name = {index(name): type_ for name, type_ in source.arguments.types.items()}
    # Triton makes the constants of arguments that equal 1 from the hint
    types = dict(sorted({**by_name, **dict.fromkeys(source.ones, "i32")}.items()))
    constants = {path[0]: v for path, v in source.arguments.constants.items() if path[0] not in source.ones}
    sixteens = {path[0] for path in source.arguments.hints}
    hints = {"divisible_by_16": sixteens, "equal_to_1": set(source.ones)}
    if VERSION >= (2, 2):
        hints["ids_of_folded_args"] = set(source.ones)
        hints["divisible_by_8"] = {at for at in sixteens if not str(types[at]).startswith("*")}
    if VERSION < (2, 3):
        compiler.make_stub = lambda *_, **__: "no launcher"
        configs = [compiler.instance_descriptor(**hints)]
        fields = {"signature": types, "constants": constants, "configs": configs, "cc": target.arch.number}
        compiler.compile(source.function, **fields, device_type="cuda", **options)
        return
    import triton.compiler.backends.cuda as cuda

    cuda.make_stub = lambda *_, **__: "no launcher"
    attributes = compiler.AttrsDescriptor(**hints)
    kernel = compiler.ASTSource(fn=source.function, signature=types, constants=constants, attrs=attributes)
    compiler.compile(kernel, target=("cuda", target.arch.number), options=dict(options))


def reuse_stages(target: Target, record: StageRecord) -> AbstractContextManager[None]:
    """These releases reuse nothing."""
    return nullcontext()


def known_options() -> frozenset[str]:
    """The option names of these releases."""
    return frozenset({"num_warps", "num_stages", "num_ctas", "extern_libs", "debug", "enable_fp_fusion"})
