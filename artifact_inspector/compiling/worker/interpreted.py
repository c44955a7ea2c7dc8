"""Runs two sources of a kernel in Triton's interpreter on equal random inputs, and compares their results.

It reads one JSON request from standard input: `files`, `grids` and `constants` (two each), `kernel`, `arguments`
(numbers, or tensors as `dtype`, `elements`, and the bound of their values or null), and `rounding`. It writes whether
all elements are equal, or, if a third run of more CTAs is requested, are stored by it only. With a rounding, none may
differ by more than this share of itself and the rounding of its type; inputs are positive, so that sums do not cancel.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from typing import Any

_FILLED = 1 << 22
"""Elements that are random, and compared."""
_TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "i1": "bool", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2",
}  # fmt: skip


def main() -> None:
    """Compare the kernels of the request on standard input."""
    sys.path[:] = [path for path in sys.path if path]
    import torch  # the calling process never imports it

    request = json.loads(sys.stdin.read())
    torch.manual_seed(0)
    torch.set_num_threads(1)
    is_positive, described = request["rounding"] > 0, request["arguments"]
    inputs = {name: _make_argument(torch, value, is_positive=is_positive) for name, value in described.items()}
    outputs = []
    for file, grid, constants in zip(request["files"], request["grids"], request["constants"], strict=True):
        kernel = _load_kernel(file, request["kernel"])
        arguments = {name: value.clone() if hasattr(value, "clone") else value for name, value in inputs.items()}
        kernel[tuple(grid)](**arguments, **constants)
        outputs.append(arguments)
    if not any(_is_result(value, outputs[0][name]) for name, value in inputs.items()):
        raise ValueError("the kernel stores no two different numbers that were not there before")
    if len(outputs) == 3:
        is_equal = all(_drops_only(value, *(one[name] for one in outputs)) for name, value in inputs.items())
    else:
        is_equal = _are_equal(torch, outputs[0], outputs[1], request["rounding"])
    sys.stdout.write(f"\n{json.dumps(is_equal)}\n")


def _make_argument(torch: Any, argument: Any, *, is_positive: bool) -> Any:
    if not isinstance(argument, dict):
        return argument
    name = str(argument["dtype"])
    dtype = getattr(torch, _TYPES.get(name, name))
    tensor = torch.zeros(argument["elements"], dtype=dtype)
    filled = tensor[:_FILLED]
    if argument["bound"] is not None or dtype == torch.bool:
        filled.copy_(torch.randint(0, max(1, argument["bound"] or 2), filled.shape))
    elif dtype.is_floating_point:
        # small, so that products of long sums stay finite in 16 bits
        filled.copy_((torch.rand(filled.shape) + 0.5) / 16 if is_positive else torch.randn(filled.shape))
    else:
        limits = torch.iinfo(dtype)
        filled.copy_(torch.randint(max(limits.min, -(2**31)), min(limits.max, 2**31 - 1), filled.shape))
    return tensor


def _load_kernel(file: str, name: str) -> Any:
    spec = importlib.util.spec_from_file_location("compared", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    kernel = getattr(module, name)
    while type(kernel).__name__ in ("Autotuner", "Heuristics"):
        kernel = kernel.fn
    return kernel


def _is_result(before: Any, after: Any) -> bool:
    """Whether a tensor has two different finite numbers that the kernel stored."""
    if not hasattr(before, "clone"):
        return False
    before, after = before[:_FILLED], after[:_FILLED]
    stored = after[(before != after) & after.isfinite()]
    return bool((stored != stored[:1]).any())


def _drops_only(start: Any, before: Any, after: Any, more: Any) -> bool:
    """Whether each changed element of a tensor is one that only more CTAs of the second kernel store."""
    if not hasattr(start, "clone"):
        return True
    start, before, after, more = (tensor[:_FILLED] for tensor in (start, before, after, more))
    changed = (before != after) & ~(before.isnan() & after.isnan())
    return not bool((changed & ((after != start) | (more == start))).any())


def _are_equal(torch: Any, outputs: Mapping[str, Any], others: Mapping[str, Any], rounding: float) -> bool:
    for name, output in outputs.items():
        if not hasattr(output, "clone") or torch.equal(output[:_FILLED], others[name][:_FILLED]):
            continue
        left, right = output[:_FILLED].double(), others[name][:_FILLED].double()
        share = rounding + torch.finfo(output.dtype).eps if rounding and output.dtype.is_floating_point else 0.0
        is_close = (left - right).abs() <= share * torch.maximum(left.abs(), right.abs())
        if not ((left == right) | is_close | (left.isnan() & right.isnan())).all():
            return False
    return True
