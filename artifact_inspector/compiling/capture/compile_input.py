"""Describe the input of a compile in a signature's notation: name, signature, constexprs, options.

Source: triton/compiler/compiler.py, `ASTSource`: `signature`, `constants` and `attrs`. Until Triton 3.2 they
    are by name and in a descriptor, from 3.3 on by the path of the argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

MAX_VALUE_CHARACTERS = 200


def describe_compile(src: Any, gpu: Any, options: Mapping[str, Any] | None) -> dict[str, Any]:
    """`name`, `signature`, `constexprs` and `options` of a compile.

    Args:
        src: Triton's `ASTSource`, or the path of a file of IR.
    """
    described: dict[str, Any] = {
        "name": getattr(getattr(src, "fn", None), "__name__", None) or Path(str(src)).stem,
        "signature": {},
        "constexprs": {},
        "options": _non_default_options(gpu, options or {}),
    }
    if not hasattr(src, "fn"):  # an IR file
        return described
    described["defined"] = _kernel_path(src.fn)
    names = src.fn.arg_names
    declared = {param.name for param in src.fn.params if param.is_constexpr}
    constants: dict[str, Any] = {}
    for key, value in src.constants.items():
        path = (key,) if isinstance(key, str | int) else tuple(key)
        name = path[0] if isinstance(path[0], str) else names[path[0]]
        constants[name + "".join(f"[{index}]" for index in path[1:])] = value
    divisible = _divisible_indices(src.attrs)
    for index, name in enumerate(names):
        type_ = src.signature.get(name, "constexpr")
        if name in constants and name not in declared and constants[name] == 1:
            described["signature"][name] = f"{'i32' if type_ == 'constexpr' else type_}:1"
            del constants[name]
        elif type_ != "constexpr" and name not in constants:
            described["signature"][name] = f"{type_}:16" if index in divisible else str(type_)
    described["constexprs"] = {name: _format_constant(value) for name, value in constants.items()}
    return described


def _kernel_path(kernel: Any) -> str | None:
    """`FILE:KERNEL` of a Triton function at the top level of a file; None if it cannot be imported."""
    function = getattr(kernel, "fn", None)
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    name = getattr(function, "__qualname__", "<locals>")
    return None if file is None or "<locals>" in name else f"{Path(file).absolute()}:{name}"


def _divisible_indices(attrs: Any) -> set[int]:
    if isinstance(attrs, dict):  # 3.3 and later
        return {
            path[0]
            for path, descriptor in attrs.items()
            if len(path) == 1 and any(name == "tt.divisibility" for name, _ in descriptor)
        }
    return set(attrs.arg_properties.get("tt.divisibility", ()))


def _non_default_options(gpu: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """num_warps, num_stages and num_ctas, and other options that differ from the target's defaults."""
    from triton.compiler import make_backend

    usual = vars(make_backend(gpu).parse_options({}))
    always = ("num_warps", "num_stages", "num_ctas")
    return {
        name: value if isinstance(value, bool | int | float | str | None) else _format_constant(value)
        for name, value in options.items()
        if name in always or (name in usual and usual[name] != value)
    }


def _format_constant(value: Any) -> str:
    """A constexpr in Python's notation; functions and types by name."""
    value = getattr(value, "value", value)
    text = getattr(value, "__name__", None) or (str(value) if type(value).__name__ == "dtype" else repr(value))
    return text if len(text) <= MAX_VALUE_CHARACTERS else f"{text[: MAX_VALUE_CHARACTERS - 1]}…"
