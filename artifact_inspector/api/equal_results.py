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
_PROGRAM = "from artifact_inspector.compiling.worker.interpreted import main; main()"


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
