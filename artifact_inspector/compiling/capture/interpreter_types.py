"""Corrects Triton's interpreter for bf16, 8-bit floats, and `and` and `or` of tensors.

It keeps such numbers as bits, and adds, multiplies and compares the bits; it also drops a carry when it rounds to them.
Here both are done on float32 and rounded once. Python's `and` returns one of two tensors; a compiled kernel combines
their elements.

Source: triton/runtime/interpreter.py, `InterpreterBuilder.binary_op`, `create_dot` and `_convert_float`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from artifact_inspector.model.float_formats import (
    BFLOAT16,
    E4M3,
    E5M2,
    FLOAT16,
    FLOAT32,
    FloatFormat,
    Rounding,
    bits_of,
    numbers_of,
)

_FORMATS: Mapping[str, FloatFormat] = {
    "bf16": BFLOAT16, "fp8e4nv": E4M3, "fp8e5": E5M2, "fp16": FLOAT16, "fp32": FLOAT32,
}  # fmt: skip


def correct_small_floats(interpreter: Any, language: Any) -> None:
    """Replace the interpreter's operations on bf16, and its conversions; irreversible in this process."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle

    def is_bf16(one: Any) -> bool:
        return hasattr(one, "dtype") and one.dtype.scalar == language.bfloat16

    def widen(one: Any) -> Any:
        if not is_bf16(one):
            return one
        return handle(numbers_of(one.data.astype(np.int64), BFLOAT16).astype(np.float32), language.float32)

    def on_float32(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(self: Any, *operands: Any) -> Any:
            result = original(self, *map(widen, operands))
            if not any(map(is_bf16, operands)) or result.data.dtype.kind != "f":
                return result
            rounded = Rounding().to_format(result.data.astype(np.float64), BFLOAT16)
            return handle(bits_of(rounded, BFLOAT16).astype(np.uint16), language.bfloat16)

        return run

    for name in ("binary_op", "unary_op", "ternary_op"):
        if hasattr(builder, name):
            setattr(builder, name, on_float32(getattr(builder, name)))
    dot = builder.create_dot
    builder.create_dot = lambda self, a, b, *options: dot(self, widen(a), widen(b), *options)
    interpreter._convert_float = _rounding_conversion(interpreter._convert_float)


def correct_boolean_operators(interpreter: Any) -> None:
    """Let `and`, `or` and `not` combine the elements of tensors; irreversible in this process."""

    def combine(is_and: bool, *operands: Callable[[], Any]) -> Any:
        result = operands[0]()
        for operand in operands[1:]:
            if isinstance(result, interpreter.tl.tensor):
                result = result.logical_and(operand()) if is_and else result.logical_or(operand())
            elif bool(result) is is_and:
                result = operand()
        return result

    def visit(self: Any, node: ast.BoolOp) -> ast.AST:
        node = self.generic_visit(node)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        operands = [ast.Lambda(args=nothing, body=value) for value in node.values]
        is_and = ast.Constant(value=isinstance(node.op, ast.And))
        call = ast.Call(func=ast.Name(id=_COMBINE, ctx=ast.Load()), args=[is_and, *operands], keywords=[])
        return ast.copy_location(call, node)

    def negate(value: Any) -> Any:
        return value == 0 if isinstance(value, interpreter.tl.tensor) else not value

    def visit_unary(self: Any, node: ast.UnaryOp) -> ast.AST:
        node = self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            return node
        call = ast.Call(func=ast.Name(id=_NEGATE, ctx=ast.Load()), args=[node.operand], keywords=[])
        return ast.copy_location(call, node)

    assign = interpreter.ASTTransformer.visit_Assign  # leaves its value as it is

    def visit_assignment(self: Any, node: ast.Assign) -> ast.AST:
        node.value = self.visit(node.value)
        changed: ast.AST = assign(self, node)
        return changed

    setattr(interpreter, _COMBINE, combine)  # the interpreter passes its globals to kernels
    setattr(interpreter, _NEGATE, negate)
    interpreter.ASTTransformer.visit_BoolOp = visit
    interpreter.ASTTransformer.visit_UnaryOp = visit_unary
    interpreter.ASTTransformer.visit_Assign = visit_assignment


def correct_loop_bounds(interpreter: Any) -> None:
    """Let a scalar be the bound of a loop with NumPy 2.4, as Triton 3.9 does; irreversible in this process."""
    patch = interpreter._patch_lang_tensor

    def patch_tensor(tensor: Any, *scopes: Any) -> None:
        patch(tensor, *scopes)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = patch_tensor


_COMBINE, _NEGATE = "_inspector_combine", "_inspector_negate"


def _rounding_conversion(original: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's conversion of bits between formats, rounded once."""

    def convert(data: Any, source: Any, target: Any, rounding_mode: Any) -> Any:
        old, new = (_FORMATS.get(str(one.scalar)) for one in (source, target))
        if old is None or new is None:
            return original(data, source, target, rounding_mode)
        bits = np.ascontiguousarray(data).view(f"u{old.bits // 8}").astype(np.int64)
        number = Rounding().to_format(
            numbers_of(bits, old), new, direction=np.trunc if "RTZ" in str(rounding_mode) else None
        )
        return bits_of(number, new).astype(f"u{new.bits // 8}").reshape(data.shape)

    return convert
