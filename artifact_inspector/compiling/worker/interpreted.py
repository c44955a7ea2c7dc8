"""Runs two sources of a kernel in Triton's interpreter on equal random inputs, and compares their results.

It reads one JSON request from standard input: `files` (two paths), `kernel`, `grid`, `arguments` (numbers, or tensors
as `dtype`, `elements`, and the bound of their values or null) and `constants`. It writes the largest difference of any
output, over its tensor's largest value.
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
    "i32": "int32", "i64": "int64", "u8": "uint8", "i1": "bool",
}  # fmt: skip


def main() -> None:
    """Compare the kernels of the request on standard input."""
    sys.path[:] = [path for path in sys.path if path]
    import torch  # the calling process never imports it

    request = json.loads(sys.stdin.read())
    torch.manual_seed(0)
    torch.set_num_threads(1)
    inputs = {name: _make_argument(torch, value) for name, value in request["arguments"].items()}
    outputs = []
    for file in request["files"]:
        kernel = _load_kernel(file, request["kernel"])
        arguments = {name: value.clone() if hasattr(value, "clone") else value for name, value in inputs.items()}
        kernel[tuple(request["grid"])](**arguments, **request["constants"])
        outputs.append(arguments)
    sys.stdout.write(f"\n{json.dumps(_largest_difference(*outputs))}\n")


def _make_argument(torch: Any, argument: Any) -> Any:
    if not isinstance(argument, dict):
        return argument
    name = str(argument["dtype"])
    dtype = getattr(torch, _TYPES.get(name, name))
    tensor = torch.zeros(argument["elements"], dtype=dtype)
    filled = tensor[:_FILLED]
    if argument["bound"] is not None or dtype == torch.bool:
        filled.copy_(torch.randint(0, max(1, argument["bound"] or 2), filled.shape))
    elif dtype.is_floating_point:
        filled.copy_(torch.randn(filled.shape))
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


def _largest_difference(outputs: Mapping[str, Any], others: Mapping[str, Any]) -> float:
    largest = 0.0
    for name, output in outputs.items():
        if hasattr(output, "clone"):
            left, right = (one[:_FILLED].double().nan_to_num() for one in (output, others[name]))
            largest = max(largest, (left - right).abs().max().item() / (left.abs().max().item() or 1.0))
    return largest
