"""Compares two sources of a kernel in Triton's interpreter, on some CTAs of a launch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from os import environ
from pathlib import Path
from typing import Any

from artifact_inspector.diagnosis.source_edits import find_kernel
from artifact_inspector.diagnosis.tile_axes import scale_grid
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.stored_values import largest_value

MOST_BYTES = 1 << 29
"""Bytes of all tensors from which results are not compared: memory would hold them four times."""
COMPARISON_SECONDS = 30.0
"""Processor time of a comparison."""
_MOST_SECONDS = 120.0
_PROGRAM = (
    "import resource; resource.setrlimit(resource.RLIMIT_CPU, ({0}, {0}))\n"
    "from artifact_inspector.compiling.worker.interpreted import main; main()"
)


def compare_results(
    files: tuple[Path, Path],
    kernel: str,
    request: LaunchRequest,
    constants: Mapping[str, Any],
    import_directory: Path,
    rounding: float = 0.0,
    tiles: Mapping[str, tuple[int, Sequence[int]]] = {},
    seconds: float = COMPARISON_SECONDS,
    *,
    is_mask: bool = False,
) -> bool | None:
    """Whether each element that two sources of a kernel store is equal; None if that could not be found.

    The first two CTAs of each axis run, on random values; of other tiles, those along their axes that cover the same
    elements. Numbers that bound loops are cut to a few tiles with the same tail.

    Args:
        import_directory: from which the original imports.
        rounding: share of an element by which it may differ besides the rounding of its type; 0 for equal bits.
        tiles: constants that the second kernel changes → (value, axes of the grid).
        is_mask: elements that the second kernel does not store need not be equal if another of its CTAs stores them.
        seconds: processor time after which it is given up: a CTA of a persistent kernel may walk over all tensors.
    """
    tensors = [value for value in request.arguments.values() if isinstance(value, Tensor)]
    if sum(tensor.bytes for tensor in tensors) > MOST_BYTES or any(isinstance(one, str) for one in request.grid):
        return None
    arguments = {name: _describe(value) for name, value in request.arguments.items() if name not in constants}
    before, after = {name: int(constants[name]) for name in tiles}, {name: value for name, (value, _) in tiles.items()}
    longest = max([16, *(value for value in {**constants, **after}.values() if type(value) is int)])
    for name in _loop_bounds(files[0].read_text(encoding="utf-8"), kernel) & arguments.keys():
        if type(arguments[name]) is int and arguments[name] > 3 * longest:
            arguments[name] = arguments[name] % longest + 2 * longest
    values = {name: value for name, value in constants.items() if isinstance(value, (int, float, str, bool))}
    # a tile changes nothing along the other axes
    grid = [min(int(extent), 1 if tiles else 2) for extent in request.grid]
    for name, (value, axes) in tiles.items():
        for axis in axes:
            grid[axis] = min(int(request.grid[axis]), 2 * max(1, value // before[name]))
    more = [[min(int(extent), 3) for extent in request.grid]] if is_mask else []
    document = {
        "files": [str(file) for file in (*files, files[1])[: 2 + len(more)]],
        "kernel": kernel,
        "grids": [grid, scale_grid(grid, {name: axes for name, (_, axes) in tiles.items()}, before, after), *more],
        "arguments": arguments,
        "rounding": rounding,
        "constants": [values, {**values, **after}, values][: 2 + len(more)],
    }
    paths = [str(import_directory), *filter(None, sys.path)]
    environment = {**environ, "TRITON_INTERPRET": "1", "PYTHONPATH": ":".join(paths)}
    try:
        run = subprocess.run(
            [sys.executable, "-c", _PROGRAM.format(max(1, round(seconds)))],
            input=json.dumps(document),
            capture_output=True,
            text=True,
            timeout=_MOST_SECONDS,
            env=environment,
            check=True,
        )
        return bool(json.loads(run.stdout.splitlines()[-1]))
    except (subprocess.SubprocessError, ValueError, IndexError):
        return None


def _loop_bounds(source: str, kernel: str) -> set[str]:
    """Names in the headers of a kernel's loops."""
    function = find_kernel(source, kernel)
    headers = [node.iter for node in ast.walk(function) if isinstance(node, ast.For)] if function else []
    return {node.id for header in headers for node in ast.walk(header) if isinstance(node, ast.Name)}


def _describe(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    elements = value.bytes * 8 // value.bits
    bound = None if value.values is None else largest_value(value.values) + 1
    return {"dtype": value.dtype.removeprefix("torch."), "elements": elements, "bound": bound}
