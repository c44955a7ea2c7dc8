"""Kernels that Inductor (torch.compile) wrote: files with one kernel, and wrappers that hold kernels as texts.

The decorator of such a kernel has its signature, its constants and, through a heuristic, its configurations.

Source: torch/_inductor/codegen/triton.py; torch/_inductor/runtime/triton_heuristics.py, `CachingAutotuner`.
"""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from artifact_inspector.compiling.reference import Reference
from artifact_inspector.errors import CompileError, UsageError
from artifact_inspector.files.inductor_output import kernel_sources
from artifact_inspector.files.reader import read_user_text
from artifact_inspector.files.scratch import scratch_directory
from artifact_inspector.files.writer import write_text

_MARK = "torch._inductor"


def find_kernel_file(path: Path, name: str | None) -> tuple[Path, str | None]:
    """The file to import and the kernel in it: of a wrapper, its kernel in a file of its own.

    Raises:
        UsageError: a wrapper has no such kernel, or several and none is named.
        CompileError: torch is not installed, which these files import.
    """
    text = _inductor_text(path)
    if text is None:
        return path, name
    _allow_import()
    sources = dict(kernel_sources(text))
    if not sources:
        return path, name
    if name is None and len(sources) == 1:
        (name,) = sources
    if name not in sources:
        near_names = get_close_matches(name or "", sources, 1)
        hint = f"Did you mean {near_names[0]}? " if near_names else f"Name one: {path}:{next(iter(sources))}. "
        problem = f"{path} has {len(sources)} kernels" if name is None else f"{path} has no kernel {name}"
        raise UsageError(f"{problem}.", f"{hint}It has {', '.join(sources)}.")
    file = Path(_directory().name, f"{name}.py")
    write_text(file, sources[name])
    return file, name


def _inductor_text(path: Path) -> str | None:
    """The text of a file that Inductor wrote; None for any other."""
    try:
        text = read_user_text(path)
    except OSError:
        return None
    return text if _MARK in text else None


@cache
def _directory() -> Any:
    return scratch_directory()


def _allow_import() -> None:
    """Let files of Inductor be imported without a GPU: they activate its driver at import."""
    try:
        from torch._inductor.runtime import triton_helpers
    except ImportError as error:
        problem = f"Files of Inductor import torch, which cannot be imported: {error}."
        raise CompileError(problem, "Install torch beside Triton.") from None
    triton_helpers.set_driver_to_gpu = lambda: None


def reference_of(layer: Any, function: Any) -> Reference | None:
    """The arguments in the decorator of Inductor; None for another decorator."""
    meta = getattr(layer, "triton_meta", None)
    if not isinstance(meta, Mapping) or not isinstance(meta.get("signature"), Mapping):
        return None
    names = list(function.arg_names)
    constants = {
        names[key[0]] if isinstance(key, tuple) else key: value for key, value in meta.get("constants", {}).items()
    }
    (attributes,) = meta.get("configs") or ({},)
    divisible = _divisible_indices(attributes)
    types = {
        name: f"{kind}:16" if names.index(name) in divisible else kind
        for name, kind in meta["signature"].items()
        if kind != "constexpr" and name not in constants
    }
    inductor_meta = getattr(layer, "inductor_meta", {})
    is_hip = getattr(meta.get("device"), "type", meta.get("device_type")) == "hip"
    options = {"debug": inductor_meta.get("assert_indirect_indexing", True) and not is_hip, "sanitize_overflow": False}
    options |= {key: meta[key] for key in ("enable_fp_fusion", "launch_pdl") if key in meta}
    return Reference(kernel=function, signature=types, constexprs=constants, options=options)


def _divisible_indices(attributes: Any) -> set[int]:
    """Arguments that 16 divides: from Triton 3.3 a mapping, before a descriptor object."""
    if isinstance(attributes, Mapping):
        return {path[0] for path, hints in attributes.items() if ["tt.divisibility", 16] in [list(x) for x in hints]}
    return set(getattr(attributes, "divisible_by_16", ()))
