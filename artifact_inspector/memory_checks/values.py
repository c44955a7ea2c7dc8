"""Compares what the machine code stores with what Triton's interpreter stored for the same inputs.

The machine code runs with the values of all tensors, once rounded to nearest and twice rounded at random. The spread
of the three results shows how far an element depends on the order of sums and on approximations. An element is wrong
if it differs from the interpreter's by more than one unit in the last place and eight times the sum of its spread and
the median spread of its tensor; exact results thus have no tolerance beyond one unit. Integers have no unit. On a
difference, six more random runs widen the spread first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.launch_values import LaunchValues
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.launch import Argument, KernelLaunch, Tensor
from artifact_inspector.execution.simulation import LaunchSetup, UnfinishedCtas, run_in_portions, set_up_launch
from artifact_inspector.execution.stored_values import StoredValues
from artifact_inspector.memory_checks.problems import Check, MemoryProblem, TensorValues, site_of
from artifact_inspector.model.float_formats import (
    BFLOAT16,
    E4M3,
    E5M2,
    FLOAT16,
    FLOAT32,
    Doubles,
    FloatFormat,
    Rounding,
    numbers_of,
)

_SAMPLES, _MORE_SAMPLES, _SPREADS = 2, 6, 8
_MOST_CTAS = 32
"""CTAs that are simulated, unless atomics make results depend on all."""
_SEPARATE_FORMATS: Mapping[str, FloatFormat] = {
    **dict.fromkeys(("float32", "fp32", "f32", "float"), FLOAT32),
    **dict.fromkeys(("float16", "fp16", "f16", "half"), FLOAT16),
    **dict.fromkeys(("bfloat16", "bf16"), BFLOAT16),
    **dict.fromkeys(("float8_e4m3fn", "fp8e4nv"), E4M3),
    **dict.fromkeys(("float8_e5m2", "fp8e5"), E5M2),
}


@dataclass(frozen=True, slots=True)
class ValueCheck:
    """What the comparison of values found."""

    problems: tuple[MemoryProblem, ...] = ()
    undecided: tuple[str, ...] = ()
    compared: tuple[TensorValues, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    values: LaunchValues
    unfinished: tuple[UnfinishedCtas, ...]
    reasons: tuple[str, ...]
    """Why values may be unknown."""


def check_values(loaded: LoadedKernel, launch: KernelLaunch, steps: int) -> ValueCheck:
    """Compare the stores of a launch with the contents that the interpreter left.

    Args:
        launch: with the contents of its tensors.
        steps: instructions after which the kernel counts as endless.
    """
    outputs = {name: tensor for name, tensor in launch.tensors.items() if tensor.contents is not None and tensor.bytes}
    if not launch.interpreted_ctas or not outputs:
        return ValueCheck(undecided=(f"values: {launch.interpreter_problem or 'no results were recorded'}",))
    if loaded.initial_state is not None:
        return ValueCheck(undecided=("values: the data of AMD kernels are not computed",))
    ctas, is_sample = _select_ctas(loaded, launch)
    runs = [_run(loaded, launch, ctas, steps, Rounding(seed)) for seed in (None, *range(_SAMPLES))]
    first = runs[0]
    if first.unfinished:
        end = first.unfinished[0]
        return ValueCheck(undecided=(f"values: {site_of(end.step)}: {end.ctas:,} CTAs stop here: {end.reasons[0]}",))
    comparisons = {name: _Comparison(tensor, name, runs, is_sample) for name, tensor in outputs.items()}
    if any(one.wrong.size for one in comparisons.values()):
        runs += [_run(loaded, launch, ctas, steps, Rounding(100 + seed)) for seed in range(_MORE_SAMPLES)]
        comparisons = {name: _Comparison(tensor, name, runs, is_sample) for name, tensor in outputs.items()}
    problems = tuple(one.problem(loaded) for one in comparisons.values() if one.wrong.size)
    compared = tuple(one.summary for one in comparisons.values() if one.summary.compared or one.summary.unknown)
    undecided: tuple[str, ...] = ()
    if not any(one.compared for one in compared) and (compared or any(map(_is_changed, outputs.values()))):
        undecided = (f"values: nothing could be compared: {', '.join(first.reasons) or 'nothing is stored'}",)
    notes = (f"values: {len(ctas)} of {launch.ctas:,} CTAs were compared",) if len(ctas) < launch.ctas else ()
    return ValueCheck(problems, undecided, compared, notes)


def _is_changed(tensor: Tensor) -> bool:
    """Whether the interpreter stored another value."""
    contents = tensor.contents
    return contents is not None and not np.array_equal(contents.before.elements, contents.after.elements)


def _select_ctas(loaded: LoadedKernel, launch: KernelLaunch) -> tuple[NDArray[np.int64], bool]:
    """Linear numbers of the CTAs to run, of those that the interpreter ran; and whether others wrote too."""
    count = min(launch.interpreted_ctas, launch.ctas)
    x, y, z = launch.grid
    order = np.arange(count)
    numbers = order // (y * z) + x * (order // z % y + y * (order % z))
    uses_atomics = any(step.kind in ("global_reduction", "global_atomic") for step in loaded.program.steps)
    if uses_atomics or count <= _MOST_CTAS:
        return np.sort(numbers), False
    return np.sort(numbers[np.unique(np.linspace(0, count - 1, _MOST_CTAS).astype(int))]), True


def _run(loaded: LoadedKernel, launch: KernelLaunch, ctas: NDArray[np.int64], steps: int, rounding: Rounding) -> _Run:
    counters = StepCounters(len(loaded.program.steps), steps)
    setup: LaunchSetup = set_up_launch(loaded, launch, counters, runs_in_parallel=False)
    for tensor in setup.launch.tensors.values():
        region = setup.memory.region_of(tensor.pointer or 0)
        if tensor.contents is not None and region is not None:
            content = np.zeros(region.stop - region.start, np.uint8) if region.content is None else region.content
            content[(tensor.pointer or 0) - region.start :][: tensor.bytes] = tensor.contents.before.elements
            region.content = content
    setup.memory.values = values = LaunchValues(setup.memory.regions, rounding)
    setup.memory.tracks_touches = False
    unfinished = run_in_portions(setup, ctas)
    names = setup.input_names
    return _Run(values, tuple(unfinished), names.names_in((1 << names.count()) - 1))


class _Comparison:
    """One tensor: the results of the runs against the interpreter's.

    Args:
        tensor: with its contents.
        runs: the first rounds to nearest.
        is_sample: whether CTAs that did not run may have written, too.
    """

    def __init__(self, tensor: Tensor, name: str, runs: list[_Run], is_sample: bool) -> None:
        assert tensor.contents is not None
        self.tensor, self.name = tensor, name
        self._format = _SEPARATE_FORMATS.get(tensor.dtype)
        size = tensor.bits // 8
        place = (tensor.pointer or 0, tensor.bytes)
        content, known, writers = runs[0].values.stored(*place)
        after, before = tensor.contents.after.elements, tensor.contents.before.elements
        self.writers = writers.reshape(-1, size).max(axis=1)
        is_written = self.writers >= 0
        # other arguments may write to gaps between its rows, or to all of it
        missed = (after != before).reshape(-1, size).any(axis=1) & ~is_written & is_written.any() & self._elements()
        is_known = known.reshape(-1, size).all(axis=1)
        compares = is_written & is_known if is_sample else (is_written | missed) & is_known
        self.expected, self.stored = self._numbers(after), self._numbers(content)
        samples = [self._numbers(run.values.stored(*place)[0]) for run in runs[1:] if not run.unfinished]
        with np.errstate(all="ignore"):
            spread = np.max([np.abs(sample - self.stored) for sample in samples], axis=0) if samples else 0.0
            usual = np.nanmedian(np.broadcast_to(spread, self.stored.shape)[compares]) if compares.any() else 0.0
            self.bound = _SPREADS * (spread + usual) + self._unit(
                np.maximum(np.abs(self.stored), np.abs(self.expected))
            )
            is_equal = (self.stored == self.expected) | (np.isnan(self.stored) & np.isnan(self.expected))
            is_near = np.abs(self.stored - self.expected) <= self.bound
        undefined = compares & ~is_equal & ~np.isfinite(np.broadcast_to(spread, self.stored.shape))
        self.wrong = np.flatnonzero(compares & ~is_equal & ~is_near & ~undefined)
        self.summary = TensorValues(
            name,
            int(np.count_nonzero(compares & ~undefined)),
            int(np.count_nonzero(is_written & ~is_known) + np.count_nonzero(undefined)),
            len(self.wrong),
        )

    def _numbers(self, content: NDArray[np.uint8]) -> Doubles:
        bits = np.ascontiguousarray(content)
        if self._format is not None:
            return numbers_of(bits.view(f"<u{self._format.bits // 8}").astype(np.int64), self._format)
        if self.tensor.dtype in ("float64", "fp64", "f64", "double"):
            return bits.view("<f8").astype(np.float64)
        kind = "u" if self.tensor.dtype.startswith("u") or self.tensor.bits == 8 else "i"
        return bits.view(f"<{kind}{self.tensor.bits // 8}").astype(np.float64)

    def _unit(self, magnitude: Doubles) -> Doubles | float:
        """One unit in the last place of a magnitude; 0 for integers."""
        if self.tensor.dtype in ("float64", "fp64", "f64", "double"):
            return np.asarray(4 * np.spacing(magnitude))
        if self._format is None:
            return 0.0
        exponents = np.frexp(np.where(np.isfinite(magnitude), magnitude, 1.0))[1] - 1
        return np.asarray(np.ldexp(1.0, np.maximum(exponents, self._format.least_exponent) - self._format.mantissa))

    def _elements(self) -> NDArray[np.bool_]:
        """Which elements of its span belong to the tensor."""
        offsets = np.zeros(1, np.int64)
        for extent, step in zip(self.tensor.shape, self.tensor.strides, strict=True):
            offsets = np.unique(offsets[:, None] + step * np.arange(extent))
        belongs = np.zeros(len(self.writers), bool)
        belongs[offsets] = True
        return belongs

    def problem(self, loaded: LoadedKernel) -> MemoryProblem:
        """The first wrong element as an error."""
        at = int(self.wrong[0])
        step = int(self.writers[at])
        stores = [one for one in loaded.program.steps if one.kind in ("global_store", "global_reduction")]
        site = site_of(loaded.program.steps[step] if step >= 0 else (stores or loaded.program.steps)[-1])
        place = f"{self.name}[{', '.join(map(str, self._index(at)))}]"
        machine = f"the machine code stores {self.stored[at]:.8g}" if step >= 0 else "the machine code stores nothing"
        count = f"{len(self.wrong):,} of {self.summary.compared:,} elements are wrong"
        message = f"{place}: {machine}, Triton's interpreter {self.expected[at]:.8g}; {count}"
        return MemoryProblem(Check.VALUE, message, site, self.name)

    def _index(self, at: int) -> list[int]:
        """The indices of an element of the tensor's span."""
        index = [0] * len(self.tensor.shape)
        for axis in sorted(range(len(index)), key=lambda axis: -self.tensor.strides[axis]):
            step = self.tensor.strides[axis]
            index[axis], at = divmod(at, step) if step and self.tensor.shape[axis] > 1 else (0, at)
        return index


def known_values(argument: Argument, *, floats: bool = False) -> Argument:
    """A tensor of integers with the values that its contents have before the launch, if it has none of its own.

    Args:
        floats: whether floats get them, too.
    """
    if not isinstance(argument, Tensor) or argument.contents is None or argument.values is not None:
        return argument
    is_float = argument.dtype in ("float16", "float32", "float64")
    if not argument.dtype.startswith(("int", "uint", "bool")) and not (floats and is_float):
        return argument
    before = argument.contents.before
    kind = "f" if is_float else "u" if argument.dtype.startswith(("u", "bool")) else "i"
    return replace(
        argument, values=StoredValues(before.elements.view(f"<{kind}{argument.bits // 8}"), f"{before.digest} {kind}")
    )
