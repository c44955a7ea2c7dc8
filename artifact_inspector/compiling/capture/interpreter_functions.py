"""Lets Triton's interpreter call functions that it cannot find, or does not have.

It replaces functions of `triton.language` only where a kernel's module has that module itself: not those that were
imported by name, and not those of libdevice. It wraps no type as a constant, and has no constant in bf16.

Source: triton/runtime/interpreter.py, `_patch_lang` and `create_extern_elementwise`; CUDA's libdevice user's guide.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from artifact_inspector.model.float_formats import BFLOAT16, Rounding, bits_of

_EQUAL_NAMES = """
    acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfinv exp exp2 expm1 floor fmax fmin fmod
    hypot isfinite isinf isnan lgamma log log10 log1p log2 pow rsqrt sin sinh sqrt tan tanh trunc
    """
"""Functions of libdevice that torch has by the same name."""
_OTHER_NAMES = {
    "fabs": "abs", "finite": "isfinite", "rint": "round", "nearbyint": "round", "powi": "pow",
    "fdiv_rn": "true_divide", "ddiv_rn": "true_divide", "fsqrt_rn": "sqrt", "dsqrt_rn": "sqrt",
}  # fmt: skip
_FUNCTIONS: Mapping[str, str] = {**{name: name for name in _EQUAL_NAMES.split()}, **_OTHER_NAMES}
_PREFIX, _LIBRARY, _STUBS = "__nv_", "triton.language.extra.cuda.libdevice", "triton.language.extra.libdevice"


def provide_functions(interpreter: Any, language: Any) -> None:
    """Let kernels call all functions of the language, and those of libdevice; irreversible in this process."""
    patch, builder = interpreter._patch_lang, interpreter.InterpreterBuilder
    visited: set[int] = set()
    library = sys.modules.get(_LIBRARY)

    def with_builder(function: Any) -> Any:
        """A function of the language, or its stub, as a kernel calls it; other values are unchanged."""
        if getattr(function, "__module__", "") == _STUBS:
            function = getattr(library, function.__name__, function)
        if not language.core.is_builtin(function):
            return function
        patched = getattr(language, function.__name__, None)
        if function.__module__ == language.core.__name__ and patched is not None:
            return patched
        holder, scope = SimpleNamespace(), SimpleNamespace(set_attr=setattr)
        scopes = [scope] if "scope" in inspect.signature(interpreter._patch_attr).parameters else []
        interpreter._patch_attr(holder, "function", function, interpreter.interpreter_builder, *scopes)
        return holder.function

    def patch_language(kernel: Any) -> Any:
        names = kernel.__globals__
        scope = patch(SimpleNamespace(__globals__={**names, language.__name__: language}))
        if id(names) not in visited:
            visited.add(id(names))
            _replace_functions(names, with_builder)
            for module in [sys.modules.get(_STUBS), library, *names.values()]:
                is_library = isinstance(module, ModuleType) and module.__name__.startswith(f"{language.__name__}.extra")
                if is_library and id(module) not in visited:
                    visited.add(id(module))
                    _replace_functions(vars(module), with_builder)
        return scope

    interpreter._patch_lang = patch_language
    builder.create_extern_elementwise = _call_library
    language.dtype.value = property(lambda self: self)  # a compiled helper gets a type as a constant

    def bf16_constant(_: Any, value: float) -> Any:
        rounded = Rounding().to_format(np.array([value], np.float64), BFLOAT16)
        return interpreter.TensorHandle(bits_of(rounded, BFLOAT16).astype(np.uint16), language.bfloat16)

    builder.get_bf16 = bf16_constant


def _replace_functions(names: dict[str, Any], replacement: Callable[[Any], Any]) -> None:
    for name, value in list(names.items()):
        if callable(value) and (changed := replacement(value)) is not value:
            names[name] = changed


def _call_library(_: Any, library: str, path: str, symbol: str, operands: Any, result: Any, is_pure: bool) -> Any:
    """A function of libdevice in double precision, rounded once.

    Raises:
        NotImplementedError: it is not known.
    """
    import torch

    del library, path, is_pure
    is_single = operands[0].data.dtype == np.float32
    name = symbol.removeprefix(_PREFIX)
    name = name[:-1] if (is_single and name.endswith("f")) or name in ("isinfd", "isnand", "isfinited") else name
    if name not in _FUNCTIONS:
        raise NotImplementedError(f"the interpreter lacks {symbol}")
    computed = getattr(torch, _FUNCTIONS[name])(
        *(torch.from_numpy(operand.data.astype(np.float64)) for operand in operands)
    )
    types = {"fp32": np.float32, "fp64": np.float64, "int32": np.int32}
    return type(operands[0])(computed.numpy().astype(types[result.scalar.name]), result.scalar)
