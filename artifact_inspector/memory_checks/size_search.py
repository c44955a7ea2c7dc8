"""Searches the sizes of a launch for one whose accesses leave their tensors.

Arguments and extents of tensors that have one value are one size, and change together; strides follow from the shapes.
The grid is taken as a function of the sizes that gives the recorded one. Everything assumed is reported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import Argument, KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.memory_checks.out_of_bounds import find_out_of_bounds
from artifact_inspector.memory_checks.problems import MemoryProblem, SizeSearch

_PRIMES = (17, 127, 257, 1009)
_MOST_CTAS, _ENDS = 256, 4
"""CTAs that all run; of more, only some at both ends."""
_BEYOND_INT32 = (1 << 31) + (1 << 16)
"""Elements of a tensor whose offsets do not fit 32 bits."""
_LARGEST_INT32 = (1 << 31) - 1
"""A larger argument would be compiled as another variant, with 64 bits."""
_MOST_BYTES = 1 << 34
_MOST_LAUNCHES, _MOST_STEPS = 48, 20_000
"""Launches that are tried, and steps of each: a loop over a size of 2³¹ would not end."""


@dataclass(frozen=True, slots=True)
class GridFactor:
    """A factor of the grid: a size over a tile, rounded up, or the size itself."""

    size: int
    """The recorded value of the size."""
    tile: int
    name: str
    """Of the tile; empty for none."""

    def extent(self, sizes: Mapping[int, int]) -> int:
        """The factor for some sizes."""
        return -(-sizes[self.size] // self.tile)


def search_sizes(
    loaded: LoadedKernel, launch: KernelLaunch, constants: Mapping[str, object], steps: int
) -> tuple[SizeSearch, MemoryProblem | None]:
    """What the search found, and the error of the smallest launch that fails.

    Args:
        launch: a launch of it, without addresses.
        constants: that it was compiled with.
        steps: instructions after which it counts as endless.
    """
    names = size_names(launch, constants)
    if not names:
        return SizeSearch(0, (), None, "no argument is the extent of a tensor"), None
    tiles = {name: value for name, value in constants.items() if type(value) is int and value > 1}
    grid = grid_factors(launch, names, constants)
    failures: list[tuple[int, dict[int, int], MemoryProblem]] = []
    tried, undecided = 0, ""
    limits = {value: value for value in constants.values() if type(value) is int}
    for sizes in _candidates(loaded, launch, names, tiles):
        if any(sizes[value] > limits.get(value, sizes[value]) for value in names):
            continue
        if tried >= _MOST_LAUNCHES:
            break
        changed = _with_sizes(launch, sizes, grid)
        if changed is None:
            continue
        try:
            problem, reason = _first_problem(loaded, changed, steps)
        except UsageError:
            continue
        tried += 1
        undecided = undecided or reason
        if problem is not None:
            elements = sum(math.prod(tensor.shape) for tensor in changed.tensors.values())
            failures.append((elements, sizes, problem))
    assumed = tuple(_describe_assumptions(loaded, launch, names, grid, constants))
    if not failures:
        return SizeSearch(tried, assumed, None, undecided or None), None
    _, sizes, problem = min(failures, key=lambda row: row[0])
    text = ", ".join(f"{names[value][0]}={sizes[value]:,}" for value in names)
    return SizeSearch(tried, assumed, text, undecided or None), problem


def size_names(launch: KernelLaunch, constants: Mapping[str, object]) -> dict[int, tuple[str, ...]]:
    """Value of each size → the integer arguments that have it, else the extent of a tensor, if the grid has it, too."""
    places = {
        extent: f"{name}.shape[{axis}]"
        for name, tensor in launch.tensors.items()
        for axis, extent in enumerate(tensor.shape)
    }
    counts = {math.prod(tensor.shape) for tensor in launch.tensors.values()}
    names: dict[int, tuple[str, ...]] = {}
    for name, value in launch.arguments.items():
        if not isinstance(value, int) or isinstance(value, bool) or name in constants or "stride" in name:
            continue
        if value > 1 and (value in places or value in counts):
            names[value] = (*names.get(value, ()), name)
    rows = {extent for extent in launch.grid if extent > 1 and extent in places} - names.keys() - {*constants.values()}
    return names | {extent: (places[extent],) for extent in rows}


def grid_factors(
    launch: KernelLaunch, names: Mapping[int, Sequence[str]], constants: Mapping[str, object]
) -> list[list[GridFactor] | None]:
    """For each dimension of the grid the factors over sizes that give it; None if it depends on no size."""
    tiles = {name: value for name, value in constants.items() if type(value) is int and value > 1}
    grid: list[list[GridFactor] | None] = []
    for extent in launch.grid:  # prefer sizes that no other dimension has
        used = {factor.size for factors in grid for factor in factors or ()}
        ordered = sorted(names, key=lambda size: size in used)
        grid.append(_grid_factors(extent, {size: names[size] for size in ordered}, tiles, is_first=not grid))
    return grid


def _candidates(
    loaded: LoadedKernel, launch: KernelLaunch, names: Mapping[int, Sequence[str]], tiles: Mapping[str, int]
) -> Iterator[dict[int, int]]:
    """The sizes to try: each size by itself, then all at once, then one beyond 32-bit offsets."""
    recorded = {value: value for value in names}
    divisors = {
        value: max((p.divisibility for p in loaded.parameters if p.argument in names[value]), default=1)
        for value in names
    }
    wanted = sorted({n for tile in {*tiles.values()} or {64} for n in (tile - 1, tile, tile + 1, 3 * tile + 1)})
    wanted = [0, 2, *_PRIMES, *(n for n in wanted if n > 1)]
    for value in names:
        for number in dict.fromkeys(-(-n // divisors[value]) * divisors[value] for n in wanted):
            yield {**recorded, value: number}
    for value in names:
        largest = max(math.prod(t.shape) for t in launch.tensors.values() if value in (*t.shape, math.prod(t.shape)))
        number = min(-(-_BEYOND_INT32 * value // (4096 * largest)) * 4096, _LARGEST_INT32 // 4096 * 4096)
        yield {**recorded, value: number}
    for number in dict.fromkeys(wanted) if len(names) > 1 else ():
        yield {value: -(-number // divisors[value]) * divisors[value] for value in names}


def _grid_factors(
    extent: int, names: Mapping[int, Sequence[str]], tiles: Mapping[str, int], *, is_first: bool
) -> list[GridFactor] | None:
    """Factors over sizes whose product is an extent of the grid; None if it does not depend on sizes."""
    factors = [GridFactor(size, tile, name) for size in names for name, tile in tiles.items()] + [
        GridFactor(size, 1, "") for size in names
    ]
    recorded = {value: value for value in names}
    for count in (1, 2):
        for chosen in product(factors, repeat=count):
            has_distinct_sizes = len({factor.size for factor in chosen}) == count or len(names) == 1
            if has_distinct_sizes and math.prod(factor.extent(recorded) for factor in chosen) == extent != 1:
                return list(chosen)
    small = next((factor for factor in factors if factor.name and factor.extent(recorded) == extent == 1), None)
    return [small] if small is not None and len(names) == 1 and is_first else None


def _with_sizes(
    launch: KernelLaunch, sizes: Mapping[int, int], grid: Sequence[list[GridFactor] | None]
) -> KernelLaunch | None:
    """The launch with other sizes; None if its tensors would be too large."""
    strides: dict[int, int] = {}
    arguments: dict[str, Argument] = {}
    for name, argument in launch.arguments.items():
        if not isinstance(argument, Tensor):
            continue
        count = math.prod(argument.shape)
        if len(argument.shape) == 1 and count not in sizes:
            pair = next((pair for pair in product(sizes, repeat=2) if math.prod(pair) == count), None)
            shape: tuple[int, ...] = (sizes[pair[0]] * sizes[pair[1]],) if pair else argument.shape
        else:
            shape = tuple(sizes.get(extent, extent) for extent in argument.shape)
        is_dense = math.prod(argument.shape) * argument.bits == argument.bytes * 8
        order = np.argsort(np.array(argument.strides), kind="stable").tolist()
        stride, step = [0] * len(shape), 1
        for axis in order:
            stride[axis] = step
            strides.setdefault(argument.strides[axis], step)
            step *= max(shape[axis], 1)
        stride_of_shape = tuple(stride) if is_dense else argument.stride
        # indices and lengths in a tensor belong to the recorded sizes
        changed = replace(argument, shape=shape, stride=stride_of_shape, values=None, contents=None)
        if changed.bytes > _MOST_BYTES:
            return None
        arguments[name] = changed
    for name, argument in launch.arguments.items():
        if isinstance(argument, int) and not isinstance(argument, bool):
            is_stride = "stride" in name or argument not in sizes
            arguments[name] = (
                strides.get(argument, argument) if is_stride and argument > 1 else sizes.get(argument, argument)
            )
        elif not isinstance(argument, Tensor):
            arguments[name] = argument
    extents = [
        recorded if factors is None else math.prod(factor.extent(sizes) for factor in factors)
        for recorded, factors in zip(launch.grid, grid, strict=True)
    ]
    ordered = {name: arguments[name] for name in launch.arguments}
    return replace(launch, grid=(extents[0], extents[1], extents[2]), arguments=ordered)


def _first_problem(loaded: LoadedKernel, launch: KernelLaunch, steps: int) -> tuple[MemoryProblem | None, str]:
    """The first access outside of every tensor, and why some are unknown."""
    if min(launch.grid) == 0:
        return None, ""
    count = launch.ctas
    ctas = None if count <= _MOST_CTAS else np.unique([*range(_ENDS), *range(count - _ENDS, count)])
    run = simulate_launch(loaded, place_tensors(launch), limit=min(steps, _MOST_STEPS), ctas=ctas)
    problems = find_out_of_bounds(run)
    if run.counters.spent > _MOST_STEPS:
        return (problems[0] if problems else None), ""
    reasons = [reason for end in run.unfinished for reason in end.reasons]
    reasons += [name for bits in run.counters.missing_inputs.values() for name in run.input_names.names_in(bits)]
    return (problems[0] if problems else None), reasons[0] if reasons else ""


def _describe_assumptions(
    loaded: LoadedKernel,
    launch: KernelLaunch,
    names: Mapping[int, Sequence[str]],
    grid: Sequence[list[GridFactor] | None],
    constants: Mapping[str, object],
) -> Iterator[str]:
    extents = []
    for extent, factors in zip(launch.grid, grid, strict=True):
        words = [f"cdiv({names[f.size][0]}, {f.name})" if f.name else names[f.size][0] for f in factors or ()]
        extents.append("·".join(words) or str(extent))
    yield f"grid = ({', '.join(extents)})"
    for value, group in names.items():
        if len(group) > 1:
            yield f"{' = '.join(group)} (both are {value:,} in the launch)"
    divisible = [p.argument for p in loaded.parameters if p.divisibility > 1 and p.type.startswith("i")]
    yield from (
        f"{group[0]} ≤ {value:,}, as a constant of this variant"
        for value, group in names.items()
        if value in constants.values()
    )
    sizes = [name for name in divisible if any(name in group for group in names.values())]
    if sizes:
        yield f"{', '.join(sizes)} in multiples of 16: this variant was compiled for them"
