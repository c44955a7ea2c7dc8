"""Compile with Triton 3.0 or newer without a driver: one kernel for one target, into one cache entry.

Only the compiling process imports this module. The cache key of an entry equals that of a launch with the same
arguments. Triton's key depends on the diagnostics setting, so diagnostics are enabled after the key is computed.

Source: triton/compiler/compiler.py, `ASTSource` and `compile` (3.0 to 3.9); triton/runtime/jit.py,
    `create_function_from_signature`, `_pack_args`; triton/backends/compiler.py, `AttrsDescriptor` (3.2);
    triton/backends/amd/compiler.py.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compiler

from artifact_inspector.compiling.gpu_target import to_gpu_target
from artifact_inspector.compiling.publishing import read_cache_key
from artifact_inspector.compiling.signature import BoundArguments
from artifact_inspector.compiling.stage_reuse import StageRecord, reused_stages
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import TritonVersion

VERSION = TritonVersion(triton.__version__).release or (3, 0)
DIAGNOSTICS = "MLIR_ENABLE_DIAGNOSTICS"


class _DiagnosticsMixin:
    """Mixin for Triton's source classes that enables diagnostics before the IR is built."""

    def make_ir(self, *args: Any, **kwargs: Any) -> Any:
        os.environ.setdefault(DIAGNOSTICS, "warnings,remarks")
        return super().make_ir(*args, **kwargs)  # type: ignore[misc]


class _KernelSource(_DiagnosticsMixin, ASTSource):  # type: ignore[misc]
    """A kernel and its arguments, the input of `triton.compile`."""


def make_source(function: Any, arguments: BoundArguments, target: Target) -> Any:
    """The kernel with the arguments of a launch.

    Pointers of AMD kernels get `tt.pointer_range = 32`, for tensors below 2 GiB. A launch marks almost every
    tensor so, and the compiler uses buffer loads only with this mark.

    Raises:
        UsageError: this Triton does not support such arguments.
    """
    reaches = [
        name for name, type_ in arguments.types.items() if target.backend == "hip" and str(type_).startswith("*")
    ]
    kind: type[Any] = _KernelSource
    if getattr(function, "is_gluon", bool)():
        from triton.experimental.gluon._runtime import GluonASTSource

        kind = type("_GluonSource", (_DiagnosticsMixin, GluonASTSource), {})
    if VERSION < (3, 3):
        return _source_before_3_3(kind, function, arguments, target, reaches)
    names = function.arg_names
    hints: dict[tuple[int, ...], list[list[object]]] = {
        path: [["tt.divisibility", hint]] for path, hint in arguments.hints.items()
    }
    for name in reaches:
        hints.setdefault((names.index(name),), []).append(["tt.pointer_range", 32])
    return kind(
        fn=function,
        signature={name: arguments.types.get(name, "constexpr") for name in names},
        constexprs=dict(arguments.constants),
        attrs=hints,
    )


def entry_name(source: Any, target: Target, options: Mapping[str, Any]) -> str:
    """The name of a kernel's entry directory in any cache, which is its key in this Triton's spelling.

    Raises:
        Exception: any type that Triton raises for options or a target that it refuses.
    """
    return Path(compiler.get_cache_manager(read_cache_key(lambda: build(source, target, options))).cache_dir).name


def build(source: Any, target: Target, options: Mapping[str, Any]) -> None:
    """Compile into the cache at TRITON_CACHE_DIR.

    Raises:
        Exception: any type that Triton raises for a kernel or target that it refuses.
    """
    triton.compile(source, target=to_gpu_target(target), options=dict(options))


def reuse_stages(target: Target, record: StageRecord) -> AbstractContextManager[None]:
    """Reuse stages of finished compiles in the build of a block, and fill its record."""
    return reused_stages(to_gpu_target(target), record)


def repeat_tensor_passes(target: Target) -> None:
    """Let this process run the target's passes over saved TTIR, which has been through those of another target."""
    from triton.compiler.compiler import make_backend

    backend: Any = type(make_backend(to_gpu_target(target)))
    add_stages = backend.add_stages

    def add_with_passes(self: Any, stages: dict[str, Any], *arguments: Any) -> None:
        add_stages(self, stages, *arguments)
        optimize, lower = stages["ttir"], stages["ttgir"]
        stages["ttgir"] = lambda module, metadata: lower(optimize(module, metadata), metadata)

    backend.add_stages = add_with_passes


def known_options() -> frozenset[str]:
    """The option names of all back ends of this Triton."""
    from triton.compiler.compiler import make_backend

    names: set[str] = set()
    for target in (GPUTarget("cuda", 80, 32), GPUTarget("hip", "gfx942", 64)):
        try:
            names |= vars(make_backend(target).parse_options({})).keys()
        except Exception:  # noqa: BLE001 - a missing back end has no options
            continue
    return frozenset(names)


def _source_before_3_3(
    kind: type[Any], function: Any, arguments: BoundArguments, target: Target, reaches: list[str]
) -> Any:
    """The source for 3.0 to 3.2, which take names instead of paths and a descriptor object for hints."""
    names = function.arg_names
    arguments.require_plain(triton.__version__)
    ones = [  # regular arguments that equal 1, not tl.constexpr ones
        path[0]
        for path, value in arguments.constants.items()
        if type(value) is int and value == 1 and not function.params[path[0]].is_constexpr
    ]
    sixteens = [path[0] for path in arguments.hints]
    attributes: Any
    if VERSION < (3, 2):
        from triton.compiler.compiler import AttrsDescriptor

        attributes = AttrsDescriptor(divisible_by_16=tuple(sixteens), equal_to_1=tuple(ones))
    else:
        if target.backend == "hip":
            from triton.backends.amd.compiler import HIPAttrsDescriptor as AttrsDescriptor
        else:
            from triton.backends.compiler import AttrsDescriptor
        attributes = AttrsDescriptor.from_hints({**dict.fromkeys(sixteens, 16), **dict.fromkeys(ones, 1)})
        if target.backend == "hip":
            attributes.arg_properties["tt.pointer_range"] = [names.index(name) for name in reaches]
            attributes._init_slots()
    return kind(
        fn=function,
        signature=dict(arguments.types),
        constants={names[path[0]]: value for path, value in arguments.constants.items()},
        attrs=attributes,
    )
