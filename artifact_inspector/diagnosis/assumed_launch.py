"""A launch for a kernel without a recorded one: sizes, strides, grid and indices that fit its own code.

Numbers come from names and uses (bounds, divisors, strides), the grid from masks and tiles, tensors from the
addresses that the kernel then reaches. Everything assumed is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from artifact_inspector.diagnosis.address_ranges import KernelRanges, RangeAnalysis
from artifact_inspector.diagnosis.derived_signature import NUMBERS, STRIDE, value_for
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.kernel_loader import example_arguments
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.execution.stored_values import random_values
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Function, Stage

ASSUMED_NUMBER = 4096
"""Value of an extent that nothing else suggests."""
_FLAT_ELEMENTS = 1 << 24
_DIVISOR, _SERIAL_TRIPS = 64, 128
_MOST_CTAS = 1 << 20
_FEWEST_CTAS = 1024
_FULL_GRID = 512
"""CTAs that fill every GPU, with what else is not known: extents of smaller grids grow."""
_UNRELATED = 1 << 16
"""Bound of assumed values that are compared, not used in addresses."""
_MOST_REACHED, _MOST_ELEMENTS = 1 << 26, 1 << 30
"""Elements of a tensor that an unmasked grid may reach, and at most."""
_FEW_ROWS = (32, 8)
"""CTAs along axes that only select rows, beside a tiled one."""

ASSUMED = "no launch is recorded"
"""Start of the note on an assumed launch."""


def assume_launch(artifact: Artifact) -> LaunchRequest:
    """A launch that the kernel's code suggests, with a note that says what was assumed.

    Raises:
        UsageError: the arguments are not pointers and numbers, or are unknown.
    """
    examples = dict(parse_argument(example) for example in example_arguments(artifact))
    function = _tensor_function(artifact)
    if not examples or function is None:
        missing = "its arguments are unknown" if not examples else "it has no TTIR to derive one from"
        raise UsageError(
            f"No launch of {artifact.display_name} is recorded, and {missing}.",
            "Give --launch FILE, or --grid and --arg NAME=VALUE for each argument.",
        )
    assumption = _Assumption(function, examples)
    arguments: dict[str, Any] = {}
    ranges = assumption.reached()
    for name, example in examples.items():
        if isinstance(example, Tensor):
            count = min(_MOST_ELEMENTS, max(256, ranges.elements.get(name, 256)))
            arguments[name] = Tensor((count,), example.dtype)
        else:
            arguments[name] = assumption.numbers.get(name, 1)
    numbers = ", ".join(f"{name}={value}" for name, value in assumption.numbers.items())
    note = (
        f"{ASSUMED}: assumed grid {'×'.join(map(str, assumption.grid))}"
        f"{f', {numbers}' if numbers else ''}, tensors as large as the kernel reaches"
    )
    return assume_indices(artifact, LaunchRequest(tuple(assumption.grid), arguments, None, (note,)))


def assume_indices(artifact: Artifact, request: LaunchRequest) -> LaunchRequest:
    """The launch with random values for integer tensors of unknown values on which addresses or paths depend."""
    tensors = {name: value for name, value in request.arguments.items() if isinstance(value, Tensor)}
    unknown = [name for name, tensor in tensors.items() if tensor.values is None and _is_integer(tensor)]
    function = _tensor_function(artifact) if unknown else None
    if function is None or any(isinstance(extent, str) for extent in request.grid):
        return request
    analysis = RangeAnalysis(function)
    loads = analysis.instructions("tt.load")
    deciding = [reads[1] for _, _, reads in analysis.instructions("tt.addptr", "arith.cmpi") if len(reads) > 1]
    deciding += [name for _, _, reads in analysis.instructions("arith.cmpi", "scf.if") for name in reads]
    deciding += [name for bounds in analysis.loops().values() for name in bounds]
    deciding_values = set().union(*(analysis.origins(name) for name in deciding), set())
    origins = [analysis.origins(reads[0]) for _, results, reads in loads if not deciding_values.isdisjoint(results)]
    needed = [name for name in unknown if any(f"%{name}" in origin for origin in origins)]
    if not needed:
        return request
    numbers = {name: value for name, value in request.arguments.items() if type(value) is int}
    grid = [int(extent) for extent in (*request.grid, 1, 1)][:3]
    sizes = {name: tensor.bytes * 8 // tensor.bits for name, tensor in tensors.items()}
    bounds = _find_bounds(analysis, numbers, grid, sizes, needed)
    filled: dict[str, Tensor] = {}
    for name, tensor in ((name, tensors[name]) for name in needed):
        dtype = f"{'u' if tensor.dtype.startswith('u') else 'i'}{tensor.bits}"
        filled[name] = replace(tensor, values=random_values(sizes[name], bounds.get(name, _UNRELATED), dtype))
    note = f"the values of {', '.join(needed)} are unknown: random ones were assumed"
    return replace(request, arguments={**request.arguments, **filled}, notes=(*request.notes, note))


def _is_integer(tensor: Tensor) -> bool:
    return tensor.dtype.removeprefix("u").startswith(("i", "torch.int", "long"))


def _tensor_function(artifact: Artifact) -> Function | None:
    module = read_module(artifact, Stage.TTIR, [])
    if module is None:
        return None
    named = [function for function in module.functions if function.name == artifact.name]
    return named[0] if named else module.functions[0]


def _find_bounds(
    analysis: RangeAnalysis,
    numbers: Mapping[str, int],
    grid: Sequence[int],
    sizes: Mapping[str, int],
    names: Sequence[str],
) -> dict[str, int]:
    """Integer tensor → the bound of its values for which every access stays inside of its tensor."""
    bounds: dict[str, int] = {}
    first = analysis.evaluate(numbers, grid).elements
    for name in names:
        second = analysis.evaluate(numbers, grid, {name: 2}).elements
        steps = {tensor: second[tensor] - first.get(tensor, 0) for tensor in second}
        limits = [(sizes[key] - first[key]) // step + 1 for key, step in steps.items() if step > 0 and key in sizes]
        if limits:
            bounds[name] = max(1, min(limits))
    return bounds


@dataclass(frozen=True, slots=True)
class _Axis:
    """An axis of the grid."""

    tile: int | None
    """The constant that its program id is multiplied by; None if it selects rows."""
    is_split: bool
    """Whether stores do not depend on it."""


class _Assumption:
    """Numbers and grid of a kernel, each from the ones before."""

    def __init__(self, function: Function, examples: Mapping[str, Any]) -> None:
        self.analysis = RangeAnalysis(function)
        self.examples = examples
        names = [name for name, value in examples.items() if not isinstance(value, Tensor)]
        kinds = dict(zip((n.lstrip("%") for n in function.arguments), function.signature, strict=False))
        self.integers = [name for name in names if kinds.get(name, "i").startswith(("i", "u"))]
        analysis = self.analysis
        self.ids = analysis.program_ids()
        used = {check.value for check in analysis.comparisons()} | {check.bound for check in analysis.comparisons()}
        used |= {bounds[1] for bounds in analysis.loops().values()}
        bounded = set().union(*(analysis.origins(value) for value in used), set())
        plain = [name for name in self.integers if not STRIDE.match(name) and f"%{name}" not in bounded]
        self.strides = [*plain, *(name for name in self.integers if STRIDE.match(name))]
        # of indices; what only wraps them (x % M) is an extent
        divisions = analysis.instructions("arith.divsi", "arith.divui")
        remainders = analysis.instructions("arith.remsi", "arith.remui")
        divisions += [remainder for remainder in remainders if "tensor<" not in remainder.instruction.text]
        self._divisors = {analysis.copied(reads[1]) for _, _, reads in divisions if len(reads) > 1}
        self.numbers = {name: self._extent(name) for name in self.integers}
        self.grid, self._free_axes = [1, 1, 1], list[int]()
        self._assign_grid()
        of_ids = (check.bound for check in analysis.comparisons() if self._depends_on_id(check.value))
        bounds = {analysis.copied(bound) for bound in of_ids}
        extents = {name for name in self.numbers if f"%{name}" in bounds}
        while extents and math.prod(self.grid) < _FULL_GRID:
            before = dict(self.numbers), list(self.grid)
            self.numbers |= {name: 2 * self.numbers[name] for name in extents}
            self._assign_grid()
            if self._reached() > _MOST_REACHED or math.prod(self.grid) <= math.prod(before[1]):
                self.numbers, self.grid = before
                break
        while self._free_axes and self._reached() > _MOST_REACHED:
            rows = [axis for axis in self._free_axes if self._axis(axis).tile is None and self.grid[axis] > 1]
            axis = max(rows or self._free_axes, key=lambda candidate: self.grid[candidate])
            if self.grid[axis] < 2 or math.prod(self.grid) < _FEWEST_CTAS:
                break
            self.grid[axis] //= 2
            self._assign_strides()

    def _assign_grid(self) -> None:
        self._free_axes = []
        self.grid = [1, 1, 1]
        for axis in sorted(self.ids):
            self.grid[axis] = self._axis_extent(axis)
        self._assign_strides()

    def _extent(self, name: str) -> int:
        suggested = value_for(name, NUMBERS)
        if suggested is not None:
            return int(suggested)
        analysis, value = self.analysis, f"%{name}"
        if value in self._divisors and all(analysis.copied(check.bound) != value for check in analysis.comparisons()):
            return _DIVISOR
        for bounds in analysis.loops().values():
            step = analysis.evaluate({}, (1, 1, 1)).values.get(bounds[2])
            if value == bounds[1] and step is not None and step.high == 1:
                return _SERIAL_TRIPS
        is_flat = len(self.ids) == 1 and not analysis.loops() and not analysis.instructions("tt.expand_dims")
        bounds_of_ids = [check for check in analysis.comparisons() if value in analysis.origins(check.bound)]
        if is_flat and any(self._depends_on_id(check.value) for check in bounds_of_ids):
            return _FLAT_ELEMENTS
        return ASSUMED_NUMBER

    def _depends_on_id(self, name: str, axis: int | None = None) -> bool:
        ids = set().union(*(self.ids.values() if axis is None else [self.ids.get(axis, set())]), set())
        return not ids.isdisjoint(self.analysis.origins(name))

    def _axis(self, axis: int) -> _Axis:
        """How the program id of an axis is used first."""
        analysis = self.analysis
        constants = analysis.evaluate({}, (1, 1, 1)).values
        factors = [
            constants.get(other)
            for _, _, reads in analysis.instructions("arith.muli")
            for name, other in (reads, reads[::-1])
            if name in self.ids[axis]
        ]
        numbers = [factor.high for factor in factors if factor is not None]
        tile = numbers[0] if numbers and len(numbers) == len(factors) and numbers[0] > 1 else None
        stores = analysis.instructions("tt.store", "tt.atomic_rmw")
        is_split = bool(stores) and not any(self._depends_on_id(reads[0], axis) for _, _, reads in stores)
        return _Axis(tile, is_split)

    def _axis_extent(self, axis: int) -> int:
        use = self._axis(axis)
        if use.is_split and use.tile is not None:
            constants = self.analysis.evaluate({}, (1, 1, 1)).values
            steps = [constants[b[2]].high for b in self.analysis.loops().values() if b[2] in constants]
            counts = [step // use.tile for step in steps if step % use.tile == 0]
            if counts:
                return max(counts)
            # without a loop each CTA has the indices of its own: how far are those of two neighbours apart?
            grid = [2 if index == axis else 1 for index in range(3)]
            other = {n: x.high for n, x in self.analysis.evaluate({}, grid).values.items() if x.base is None}
            distances = (high - constants[n].high for n, high in other.items() if n in constants)
            return max(1, ASSUMED_NUMBER // max(distances, default=1))
        limited = [
            check
            for check in self.analysis.comparisons()
            if self._depends_on_id(check.value, axis) and not self._depends_on_id(check.bound, axis)
        ]
        if limited:
            return self._masked_extent(axis, [(check.value, check.bound) for check in limited])
        self._free_axes.append(axis)
        if use.tile is not None:
            is_flat = len(self.ids) == 1 and not self.analysis.instructions("tt.expand_dims")
            return max(1, (_FLAT_ELEMENTS if is_flat else ASSUMED_NUMBER) // use.tile)
        if len(self.ids) == 1:
            return ASSUMED_NUMBER
        return _FEW_ROWS[min(axis - min(self.ids), 1)] if axis != min(self.ids) else ASSUMED_NUMBER // 4

    def _masked_extent(self, axis: int, limited: Sequence[tuple[str, str]]) -> int:
        """The fewest CTAs with which some mask is reached, by doubling and bisection."""

        def is_covered(count: int) -> bool:
            grid = [count if index == axis else extent for index, extent in enumerate(self.grid)]
            values = self.analysis.evaluate(self.numbers, grid).values
            pairs = [(values.get(value), values.get(bound)) for value, bound in limited]
            return all(value is None or bound is None or value.high >= bound.high - 1 for value, bound in pairs)

        high = 1
        while high < _MOST_CTAS and not is_covered(high):
            high *= 2
        if high >= _MOST_CTAS:  # a mask that no grid reaches
            return ASSUMED_NUMBER
        low = high // 2
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if is_covered(middle) else (middle, high)
        whole = max(1, high)
        for _, _, reads in self.analysis.instructions("arith.divsi", "arith.divui"):  # ids of rows of tiles: whole rows
            row = self.analysis.evaluate(self.numbers, self.grid).values.get(reads[1])
            if row is not None and 1 < row.high <= whole and self.analysis.copied(reads[0]) in self.ids[axis]:
                whole = -(-whole // row.high) * row.high
        return whole

    def _reached(self) -> int:
        return max(self.analysis.evaluate(self.numbers, self.grid).elements.values(), default=0)

    def _assign_strides(self) -> None:
        """The span of the dimensions inside of each stride, the innermost stride first."""
        indices = {name: 2 for name, example in self.examples.items() if isinstance(example, Tensor)}
        for name in reversed(self.strides):
            outside = self.strides[: self.strides.index(name)] if STRIDE.match(name) else []
            pending = dict.fromkeys([*filter(STRIDE.match, outside), name], 0)
            inner = self.analysis.evaluate({**self.numbers, **pending}, self.grid, indices).elements
            pending[name] = _MOST_ELEMENTS
            outer = self.analysis.evaluate({**self.numbers, **pending}, self.grid, indices).elements
            spans = [inner[tensor] for tensor in inner if outer.get(tensor, 0) > inner[tensor]]
            if spans and (STRIDE.match(name) or max(spans) < ASSUMED_NUMBER):
                self.numbers[name] = max(1, min(_MOST_ELEMENTS, max(spans)))

    def reached(self) -> KernelRanges:
        """The final ranges, with tensors that indices select from as large as `_FLAT_ELEMENTS`."""
        plain = self.analysis.evaluate(self.numbers, self.grid)
        bounds: dict[str, int] = {}
        for name, example in self.examples.items():
            if not isinstance(example, Tensor) or not _is_integer(example) or name not in plain.elements:
                continue
            second = self.analysis.evaluate(self.numbers, self.grid, {name: 2}).elements
            steps = [second[tensor] - count for tensor, count in plain.elements.items() if second[tensor] > count]
            if steps:
                bounds[name] = max(16, _FLAT_ELEMENTS // max(steps))
        return self.analysis.evaluate(self.numbers, self.grid, bounds)
