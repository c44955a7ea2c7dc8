"""Compares two sources of a kernel in Triton's interpreter, on some CTAs of a launch."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from os import environ
from pathlib import Path
from typing import Any

from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.stored_values import largest_value

MOST_BYTES = 1 << 29
"""Bytes of all tensors from which results are not compared: memory would hold them four times."""
_SECONDS = 60.0
_PROGRAM = """
import importlib.util, json, sys
sys.path[:] = [path for path in sys.path if path]
import torch
spec = json.loads(sys.stdin.read())
torch.manual_seed(0)
torch.set_num_threads(1)
FILLED = 1 << 22  # elements that are random, and compared
NAMES = {"fp16": torch.float16, "bf16": torch.bfloat16, "fp32": torch.float32, "fp64": torch.float64, "i8": torch.int8,
         "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8, "i1": torch.bool}
def make(argument):
    if not isinstance(argument, dict):
        return argument
    dtype = NAMES.get(argument["dtype"]) or getattr(torch, argument["dtype"])
    tensor = torch.zeros(argument["elements"], dtype=dtype)
    part = tensor[:FILLED]
    if argument["bound"] is not None or dtype == torch.bool:
        part.copy_(torch.randint(0, max(1, argument["bound"] or 2), part.shape))
    elif dtype.is_floating_point:
        part.copy_(torch.randn(part.shape))
    else:
        info = torch.iinfo(dtype)
        part.copy_(torch.randint(max(info.min, -2**31), min(info.max, 2**31 - 1), part.shape))
    return tensor
inputs = {name: make(value) for name, value in spec["arguments"].items()}
outputs = []
for path in spec["files"]:
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("compared", path))
    module.__spec__.loader.exec_module(module)
    kernel = getattr(module, spec["kernel"])
    while type(kernel).__name__ in ("Autotuner", "Heuristics"):
        kernel = kernel.fn
    own = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
    kernel[tuple(spec["grid"])](**own, **spec["constants"])
    outputs.append(own)
worst = 0.0
for name, left in outputs[0].items():
    if isinstance(left, torch.Tensor):
        left, right = (one[:FILLED].double().nan_to_num() for one in (left, outputs[1][name]))
        scale = left.abs().max().item() or 1.0
        worst = max(worst, (left - right).abs().max().item() / scale)
print(json.dumps(worst))
"""


def compare_results(
    files: tuple[Path, Path], kernel: str, request: LaunchRequest, constants: Mapping[str, Any], import_directory: Path
) -> float | None:
    """The largest difference of any output, over its tensor's largest value; None if it could not be found.

    The first two CTAs of each axis run, on random values.

    Args:
        files: the original and the changed source.
        kernel: its name.
        request: the launch.
        constants: of the kernel.
        import_directory: from which the original imports.
    """
    tensors = [value for value in request.arguments.values() if isinstance(value, Tensor)]
    if sum(tensor.bytes for tensor in tensors) > MOST_BYTES or any(isinstance(one, str) for one in request.grid):
        return None
    arguments = {name: _describe(value) for name, value in request.arguments.items() if name not in constants}
    document = {
        "files": [str(file) for file in files],
        "kernel": kernel,
        "grid": [min(int(extent), 2) for extent in request.grid],
        "arguments": arguments,
        "constants": {name: value for name, value in constants.items() if isinstance(value, (int, float, str, bool))},
    }
    paths = [str(import_directory), *filter(None, sys.path)]
    environment = {**environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ":".join(paths)}
    try:
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=json.dumps(document),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=environment,
            check=True,
        )
        return float(json.loads(run.stdout.splitlines()[-1]))
    except (subprocess.SubprocessError, ValueError, IndexError):
        return None


def _describe(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    elements = value.bytes * 8 // value.bits
    bound = None if value.values is None else largest_value(value.values) + 1
    return {"dtype": value.dtype.removeprefix("torch."), "elements": elements, "bound": bound}
