"""Proves for a recorded launch that its kernel stays inside of its tensors whatever the sizes are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from artifact_inspector.diagnosis.mask_proof import (
    Dimensions,
    Polynomial,
    atom,
    constant,
    multiply,
    proves_all_accesses,
)
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact
from artifact_inspector.memory_checks.size_search import grid_factors, size_names
from artifact_inspector.model import Stage


def prove_sizes(artifact: Artifact, launch: KernelLaunch) -> str | None:
    """For which sizes the masks prove that no access leaves its tensor; None without a proof."""
    module = read_module(artifact, Stage.TTIR, [])
    names = size_names(launch, artifact.constants)
    if module is None or not names or not module.functions:
        return None
    functions = [one for one in module.functions if one.name == artifact.name] or [module.functions[0]]
    sizes = {value: atom(f"size {value}") for value in names}
    tensors = {name: _shapes(tensor, sizes) for name, tensor in launch.tensors.items()}
    grid = {
        axis: sizes[factors[0].size]
        for axis, factors in zip("xyz", grid_factors(launch, names, artifact.constants), strict=True)
        if factors is not None and len(factors) == 1 and factors[0].tile == 1
    }
    if not proves_all_accesses(functions[0], _numbers(launch, sizes), tensors, grid):
        return None
    listed = ", ".join(group[0] for group in names.values())
    return f"every access is below its extent for all {listed} while offsets fit 32 bits"


def _numbers(launch: KernelLaunch, sizes: Mapping[int, Polynomial]) -> dict[str, Polynomial]:
    """Integer argument → its size, the stride that it equals, or a variable of its own."""
    strides: dict[int, Polynomial] = {}
    for tensor in launch.tensors.values():
        for shape in _shapes(tensor, sizes)[:1]:
            ordered = sorted(range(len(tensor.shape)), key=lambda axis: -tensor.strides[axis])
            strides |= {tensor.strides[axis]: stride for axis, (_, stride) in zip(ordered, shape, strict=False)}
    numbers: dict[str, Polynomial] = {}
    for name, value in launch.arguments.items():
        if isinstance(value, int) and not isinstance(value, bool):
            is_stride = "stride" in name or value not in sizes
            numbers[name] = (strides if is_stride else sizes).get(value) or atom(name)
    return numbers


def _shapes(tensor: Tensor, sizes: Mapping[int, Polynomial]) -> Sequence[Dimensions]:
    """Ways to see the shape of a dense tensor, the first as it is given."""
    count = math.prod(tensor.shape)
    if not count or count * tensor.bits != tensor.bytes * 8:
        return ()
    ordered = sorted(zip(tensor.strides, tensor.shape, strict=True), reverse=True)
    shapes = [_dense([sizes.get(extent, constant(extent)) for _, extent in ordered])]
    if count in sizes:
        shapes.append([(sizes[count], constant(1))])
    if len(tensor.shape) == 1:
        pairs = [pair for pair in product(sizes, repeat=2) if math.prod(pair) == count]
        shapes += [_dense([sizes[one] for one in pair]) for pair in pairs]
    return shapes


def _dense(extents: Sequence[Polynomial]) -> Dimensions:
    shape: list[tuple[Polynomial, Polynomial]] = []
    stride = constant(1)
    for extent in reversed(extents):
        shape.insert(0, (extent, stride))
        stride = multiply(stride, extent)
    return shape
