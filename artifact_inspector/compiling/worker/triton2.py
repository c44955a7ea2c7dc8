"""Compile with Triton 2.1 to 2.3 without a driver: the interface of `triton3`, for those releases.

NVIDIA only: their wheels have no AMD back end.

Source: triton/compiler/compiler.py, `compile`, `make_hash` (2.1, 2.2) and `ASTSource` (2.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import triton
from triton.compiler import compiler

from artifact_inspector.compiling.signature import BoundArguments
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion

VERSION = TritonVersion(triton.__version__).release or (2, 0)


class _Triton2CacheKeyError(Exception):
    """Raised when Triton has computed the key of an entry and opens the cache; carries the key."""


class _LaunchSource(NamedTuple):
    function: Any
    arguments: BoundArguments
    ones: frozenset[int]


class _UnloadedKernel:
    """Replaces CompiledKernel, which queries the driver for a device."""

    def __init__(self, *_: Any) -> None:
        pass


def _disable_driver() -> None:
    """Keep compiles from linking a launcher against the driver and from loading the binary."""
    if VERSION < (2, 3):
        compiler.make_stub = lambda *_, **__: "no launcher"
    else:
        import triton.compiler.backends.cuda as cuda

        cuda.make_stub = lambda *_, **__: "no launcher"
    compiler.CompiledKernel = _UnloadedKernel


def make_source(function: Any, arguments: BoundArguments, target: Target) -> _LaunchSource:
    """The kernel with the arguments of a launch.

    Raises:
        CompileError: the GPU is not from NVIDIA.
        UsageError: these releases do not support such arguments.
    """
    if target.backend != "cuda":
        raise CompileError(f"The wheel of Triton {triton.__version__} has no AMD back end.", "Use Triton 3.0 or newer.")
    for name, type_ in arguments.types.items():
        if not isinstance(type_, str):
            raise UsageError(
                f"{name} is a tuple, which Triton {triton.__version__} does not support.", "Use Triton 3.3 or newer."
            )
    ones = frozenset(
        path[0]
        for path, value in arguments.constants.items()
        if type(value) is int and value == 1 and path[0] not in function.constexprs
    )
    return _LaunchSource(function, arguments, ones)


def entry_name(source: _LaunchSource, target: Target, options: Mapping[str, Any]) -> str:
    """The name of a kernel's entry directory in any cache, which is its key."""

    def stop(key: str) -> None:
        raise _Triton2CacheKeyError(key)

    manager, compiler.get_cache_manager = compiler.get_cache_manager, stop
    try:
        build(source, target, options)
    except _Triton2CacheKeyError as key_error:
        (key,) = key_error.args
    finally:
        compiler.get_cache_manager = manager
    return str(key)


def build(source: _LaunchSource, target: Target, options: Mapping[str, Any]) -> None:
    """Compile into the cache at TRITON_CACHE_DIR.

    Raises:
        Exception: any type that Triton raises for a kernel or target that it refuses.
    """
    _disable_driver()
    if VERSION < (2, 3):
        compiler.compile(source.function, **_compile_keywords(source, target, options))
        return
    names = source.function.arg_names
    types = source.arguments.types
    sixteens = {path[0] for path in source.arguments.hints}
    attributes = compiler.AttrsDescriptor(
        divisible_by_16=sixteens,
        equal_to_1=set(source.ones),
        ids_of_folded_args=set(source.ones),
        divisible_by_8={i for i in sixteens if not str(types[names[i]]).startswith("*")},
    )
    kernel = compiler.ASTSource(
        fn=source.function,
        signature=_types_by_index(source, types),
        constants={path[0]: v for path, v in source.arguments.constants.items() if path[0] not in source.ones},
        attrs=attributes,
    )
    compiler.compile(kernel, target=("cuda", target.arch.number), options=dict(options))


def known_options() -> frozenset[str]:
    """The option names of these releases."""
    return frozenset({"num_warps", "num_stages", "num_ctas", "extern_libs", "debug", "enable_fp_fusion"})


def _compile_keywords(source: _LaunchSource, target: Target, options: Mapping[str, Any]) -> dict[str, Any]:
    constants = source.arguments.constants
    sixteens = {path[0] for path in source.arguments.hints}
    hints = {"divisible_by_16": sixteens, "equal_to_1": set(source.ones)}
    if VERSION >= (2, 2):
        types = _types_by_index(source, source.arguments.types)
        hints["ids_of_folded_args"] = set(source.ones)
        hints["divisible_by_8"] = {index for index in sixteens if not str(types[index]).startswith("*")}
    return {
        "signature": _types_by_index(source, source.arguments.types),
        "constants": {path[0]: v for path, v in constants.items() if path[0] not in source.ones},
        "configs": [compiler.instance_descriptor(**hints)],
        "cc": target.arch.number,
        "device_type": "cuda",
        **options,
    }


def _types_by_index(source: _LaunchSource, types: Mapping[str, Any]) -> dict[int, Any]:
    """Types by index, including arguments that equal 1, since Triton makes their constants from the hint."""
    index = source.function.arg_names.index
    return dict(
        sorted({**{index(name): type_ for name, type_ in types.items()}, **dict.fromkeys(source.ones, "i32")}.items())
    )
