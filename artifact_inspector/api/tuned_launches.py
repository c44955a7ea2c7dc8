"""Launches that an autotuner may time: compiled in parallel, and ranked by a lower bound while others compile.

A bound simulates no waves of CTAs: of 59 kernels with measured times, the best of the first five is within 3 % of the
best of all for 58, as with waves, which take one to two seconds more.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from math import prod
from mmap import mmap
from types import SimpleNamespace
from typing import Any

from artifact_inspector.compiling.arguments import (
    MAX_RECORDED_ELEMENTS,
    describe_arguments,
    named_arguments,
    read_elements,
)
from artifact_inspector.compiling.ask.compile import count_processors
from artifact_inspector.compiling.ask.hooks import read_kernel_files
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of
from artifact_inspector.execution.stored_values import integer_values
from artifact_inspector.execution.timing.candidates import RankingCandidate, launch_identity
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.execution.timing.ranking import RankedLaunch, bound_candidate, sort_by_score
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.cache import cache_in_memory
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.formats import format_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Stage

PATIENCE = 3.0
"""If all other configurations are done, one that takes so many times their median is left out where it still compiles,
as those that spill do, and not ranked where it is simulated. Of eight kernels on an H200, none whose estimate was
within 15 % of the best took more than 1.5 times."""
_MOST_ELEMENTS = 1 << 24
"""Most elements of a tensor that are copied because a launch has no score without them."""


@dataclass(frozen=True, slots=True)
class TunedLaunch:
    """A launch with one configuration."""

    compile: Callable[[], Sequence[Artifact]]
    """Returns the kernel; raises what the compiler raises."""
    request: LaunchRequest
    constants: Mapping[str, Any]
    label: str
    warps: int

    @property
    def work(self) -> float:
        """A measure of how long it compiles: elements of its blocks per warp, or so."""
        sizes = [value for value in self.constants.values() if isinstance(value, int) and value > 1]
        return prod(sizes) / self.warps


class LaunchReader:
    """Describes launches. Each tensor is described once, and its values are copied only if `add_values` is asked to."""

    def __init__(self) -> None:
        self._tensors: dict[int, tuple[Any, Any]] = {}
        """Identity of a tensor → the tensor, which must not be freed, and its description."""

    def read(
        self,
        function: Any,
        values: Sequence[Any],
        options: Mapping[str, Any],
        grid: Any,
        label: str,
        compile_kernel: Callable[[], Sequence[Artifact]],
    ) -> TunedLaunch:
        """A launch of a `@triton.jit` function.

        Args:
            values: positional arguments.
            options: keyword arguments and compiler options.
            grid: its extents, or a function of the arguments by name.
        """
        arguments = named_arguments(function, values, options)
        extents = grid({**arguments, **options}) if callable(grid) else grid
        new = {name: value for name, value in arguments.items() if id(value) not in self._tensors}
        described = describe_arguments(function, (), new, values=lambda _: False, addresses=True)
        document = {"grid": [*map(int, extents)], "args": {name: described[name] for name in new}}
        (request,) = parse_document_of(document, "the call")
        for name, value in new.items():
            if hasattr(value, "untyped_storage"):
                self._tensors[id(value)] = value, request.arguments[name]
        known = {name: self._tensors[id(value)][1] for name, value in arguments.items() if name not in new}
        constants = {x.name: described[x.name] for x in function.params if x.is_constexpr and x.name in new}
        request = replace(request, arguments={**request.arguments, **known})
        return TunedLaunch(compile_kernel, request, constants, label, int(options.get("num_warps") or 1))

    def add_values(self, launches: Sequence[TunedLaunch], missing: Container[str]) -> list[TunedLaunch]:
        """The launches with the integers of some tensors, by name."""
        complete = {}
        for tensor, described in self._tensors.values():
            names = [name for name, value in launches[0].request.arguments.items() if value is described]
            if any(name in missing for name in names):
                elements = read_elements(tensor, _MOST_ELEMENTS)
                values = None if elements is None else integer_values(elements, str(id(tensor)))
                complete.update(dict.fromkeys(names, replace(described, values=values)))
        requests = [replace(of.request, arguments={**of.request.arguments, **complete}) for of in launches]
        return [replace(launch, request=request) for launch, request in zip(launches, requests, strict=True)]


def missing_integers(launch: TunedLaunch, row: RankedLaunch) -> set[str]:
    """Tensors whose values decide an address, a path or a count of a launch, and can be copied."""
    most = _MOST_ELEMENTS if row.score is None else MAX_RECORDED_ELEMENTS
    return {
        name
        for name, value in launch.request.arguments.items()
        if f"values of {name}" in row.missing_inputs and isinstance(value, Tensor) and prod(value.shape) <= most
        and value.values is None and value.dtype.startswith(("int", "uint", "bool"))
    }  # fmt: skip


def rank_tuned_launches(
    launches: Sequence[TunedLaunch], gpu: str | None, *, needs_values: bool = False
) -> tuple[list[RankedLaunch], dict[int, str]]:
    """The launches that compile, best first, and index → why another is left out.

    Each is compiled in a process of its own, which fills Triton's cache, and ranked while others compile.

    Args:
        gpu: name of a product; by default the GPU that torch uses.
        needs_values: only compile, once a launch was ranked that misses integers.

    Raises:
        UsageError: the rates of the GPU are unknown, or arguments are wrong.
        CacheError: machine code cannot be read.
    """
    gpu = gpu or _device_name()  # which no forked process can ask
    disassemble = binary_disassembler()
    # shared with the processes: which are compiled, and whether integers are missing
    compiled = mmap(-1, len(launches) + 1)

    def unranked(index: int, reason: str) -> RankedLaunch:
        return RankedLaunch(
            launch=index,
            hash=str(index),
            label=launches[index].label,
            score=None,
            bottleneck=None,
            terms={},
            fits=True,
            blocks=None,
            waves=None,
            missing_inputs=(reason,),
        )

    def estimate(index: int) -> tuple[int, RankedLaunch | str]:
        launch = launches[index]
        artifacts = _attempt(launch.compile)
        if isinstance(artifacts, Exception):
            return index, f"{type(artifacts).__name__}: {artifacts}"
        if not artifacts:
            return index, "It has no machine code."
        compiled[index] = True
        if needs_values and compiled[-1]:
            return index, unranked(index, "integers")
        candidate = RankingCandidate(artifacts[0], launch.request, launch.constants)
        row, _ = bound_candidate(candidate, disassemble, gpu=gpu)
        compiled[-1] |= bool(missing_integers(launch, row))
        identity = sha256(repr(launch_identity(candidate, index)).encode()).hexdigest()
        return index, replace(row, launch=index, label=launch.label, hash=identity)

    order = sorted(range(len(launches)), key=lambda index: -launches[index].work)
    for stage in (Stage.TTIR, Stage.PTX, Stage.SASS):
        format_of(stage)  # imports the parser, which each process would import otherwise
    results = dict(map_in_processes(estimate, order, count_processors(), patience=PATIENCE))
    late = f"It took more than {PATIENCE:.0f} times as long as others, and was stopped."
    failed = {index: late for index in order if index not in results and not compiled[index]}
    rows = [unranked(index, late) for index in order if index not in results and compiled[index]]
    first_identical: dict[str, int] = {}
    for index, row in sorted(results.items()):
        if isinstance(row, str):
            failed[index] = row
        else:
            first = first_identical.setdefault(row.hash, index)
            rows.append(row if first == index else replace(row, identical_to=first))
    return sort_by_score(rows), dict(sorted(failed.items()))


@contextmanager
def deferred_compiles() -> Iterator[Any]:
    """Defer the compiles of this block until the files of a kernel are read: by forked processes, in parallel.

    **Source** triton/runtime/_async_compile.py, `AsyncCompileMode` (3.5 and later): it submits each compile to an
    executor, and takes results from the futures that it gets. Earlier versions compile at once.
    """
    mode = getattr(sys.modules.get("triton"), "AsyncCompileMode", None)
    if mode is None:
        yield None
        return
    with mode(SimpleNamespace(submit=lambda job: SimpleNamespace(result=job))) as active:
        try:
            yield active
        finally:
            active.raw_futures.clear()  # else it would wait for them


def defer_compile(kernel: Any, values: Sequence[Any], grid: Any, options: Mapping[str, Any]) -> Callable[[], Any]:
    """A function that compiles a launch of a kernel of Triton, or raises the error of the compile."""
    compiled = _attempt(partial(kernel.warmup, *values, grid=grid, **options))

    def load() -> Sequence[Artifact]:
        if isinstance(compiled, Exception):
            raise compiled
        return cache_in_memory(*read_kernel_files(compiled)).entries

    return load


def _attempt(function: Callable[[], Any]) -> Any:
    """The result of a function that compiles, or the exception that it raised: a compiler may raise anything."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        return error


def jit_function(kernel: Any) -> Any:
    """The `@triton.jit` function below its decorators."""
    while not hasattr(kernel, "params") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _device_name() -> str | None:
    """The name of the GPU that torch uses; None if there is none or it is unknown."""
    try:
        import torch

        name: str = torch.cuda.get_device_name()
    except (ImportError, RuntimeError, AssertionError):
        return None
    for name_part in name.split():
        try:
            parse_target(name_part)
        except UsageError:
            continue
        return name_part
    return None
