"""Read the files that a compiled kernel object of Triton holds in memory, without importing Triton.

Source: triton/compiler/compiler.py, `CompiledKernel`: 2.x has its metadata as a dict and the function as `fn`, 3.x as a
    named tuple and the function's name in `src`; `asm` holds every stage in all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from artifact_inspector.errors import UsageError

_UNCOMPILED_TYPES = frozenset({"JITFunction", "GluonJITFunction", "Autotuner", "Heuristics", "InterpretedFunction"})


def read_kernel_files(kernel: object) -> tuple[str, dict[str, bytes]]:
    """The file stem of a compiled kernel in the cache, and its file contents by suffix.

    Raises:
        UsageError: the object is not a compiled kernel.
    """
    if not hasattr(kernel, "asm") and callable(getattr(kernel, "result", None)):
        kernel = kernel.result()  # type: ignore[attr-defined] # compiled in the background
    texts = getattr(kernel, "asm", None)
    if not isinstance(texts, Mapping):
        raise _not_compiled_error(kernel)
    contents = {
        suffix: content if isinstance(content, bytes) else str(content).encode() for suffix, content in texts.items()
    }
    metadata = _metadata_fields(getattr(kernel, "metadata", None))
    if metadata:
        contents["json"] = json.dumps(metadata, default=_to_json_value).encode()
    # in Triton 2.x the symbol has a suffix that the files lack
    source, function = getattr(kernel, "src", None), getattr(kernel, "fn", None)
    stem = getattr(source, "name", None) or getattr(function, "__name__", None) or metadata.get("name")
    return str(stem or "kernel"), contents


def _metadata_fields(metadata: Any) -> dict[str, Any]:
    if hasattr(metadata, "_asdict"):
        return dict(metadata._asdict())
    return dict(metadata) if isinstance(metadata, Mapping) else {}


def _to_json_value(value: object) -> object:
    """A value as in Triton's metadata file: an object such as the target becomes its fields."""
    return vars(value) if hasattr(value, "__dict__") else str(value)


def _not_compiled_error(kernel: object) -> UsageError:
    kind = type(kernel).__name__
    if kind in _UNCOMPILED_TYPES:
        name = getattr(kernel, "__name__", None) or getattr(getattr(kernel, "fn", None), "__name__", "kernel")
        return UsageError(
            f"{name} is a kernel's source, not a compiled kernel.",
            f"Inspect what a launch returns: inspect({name}[grid](…)), or {name}.warmup(…, grid=(1,)).",
        )
    if kernel is None:
        return UsageError(
            "None is not a compiled kernel.",
            "A launch returns None under TRITON_INTERPRET=1, or if a hook kept Triton from compiling.",
        )
    return UsageError(
        f"{'An' if kind[0].lower() in 'aeiou' else 'A'} {kind} is not a compiled kernel.",
        "Pass the return value of a launch or of triton.compile, or the path of a cache or of a file in it.",
    )
