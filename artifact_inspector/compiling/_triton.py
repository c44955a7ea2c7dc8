"""The one module that imports Triton: one kernel, one target, one entry in a Triton cache.

Runs in a child process only (`_worker`), because LLVM may abort and ptxas may never return.
Written for the interface of Triton 3.3 to 3.9.

Source:
    triton/compiler/compiler.py, `ASTSource` and `compile`;
    triton/runtime/jit.py, `create_function_from_signature`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from artifact_inspector.compiling.reference import Reference
from artifact_inspector.targets import Target

__all__ = ["compile_entry", "load_reference"]


def load_reference(place: str) -> Reference:
    """The reference at `module` (its `REFERENCE`) or at `module:NAME`."""
    module, _, name = place.partition(":")
    reference: Reference = getattr(import_module(module), name or "REFERENCE")
    return reference


def compile_entry(reference: Reference, target: Target) -> Path:
    """The directory of the cache entry, made under TRITON_CACHE_DIR unless it is there.

    Raises:
        Exception: whatever Triton raises for a kernel or target that it refuses.
    """
    compiled = triton.compile(
        _source(reference, pointer_range=target.backend == "hip"),
        target=gpu_target(target),
        options={
            "num_warps": reference.num_warps,
            "num_stages": reference.num_stages,
            **reference.options,
        },
    )
    return entry_directory(compiled)


def gpu_target(target: Target) -> GPUTarget:
    """Triton's own value for a target."""
    arch = int(target.arch.removeprefix("sm_")) if target.backend == "cuda" else target.arch
    return GPUTarget(target.backend, arch, target.warp_size)


def entry_directory(compiled: Any) -> Path:
    """Where the cache keeps a compiled kernel."""
    from triton.runtime.cache import get_cache_manager

    return Path(get_cache_manager(compiled.hash).cache_dir)


def _source(reference: Reference, *, pointer_range: bool) -> ASTSource:
    """The kernel with the types and hints of the launch that `reference` stands for.

    Args:
        reference: the kernel.
        pointer_range: mark every pointer `tt.pointer_range = 32`, as AMD's launcher does for tensors
            under 2 GiB; only then does the compiler use buffer loads.
    """
    names = reference.kernel.arg_names
    # an argument that is 1 at launch is compiled as a constant
    constants = {**reference.constexprs, **dict.fromkeys(reference.hinted(1), 1)}
    types = reference.types
    hints: dict[tuple[int, ...], list[list[object]]] = {}
    for name in reference.hinted(16):
        hints[(names.index(name),)] = [["tt.divisibility", 16]]
    if pointer_range:
        for name, type_ in types.items():
            if type_.startswith("*"):
                hints.setdefault((names.index(name),), []).append(["tt.pointer_range", 32])
    return ASTSource(
        fn=reference.kernel,
        signature={name: "constexpr" if name in constants else types[name] for name in names},
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs=hints,
    )
