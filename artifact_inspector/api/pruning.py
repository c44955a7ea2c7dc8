"""Fewer configurations for an autotuner to time: compile and simulate all, time only the best.

**Source** triton/runtime/autotuner.py, `Autotuner.prune_configs`: `early_config_prune(configs, named_args,
**kwargs)` is called with the configurations, the arguments by name and the keywords of the launch, its grid
among them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

from artifact_inspector.compiling.arguments import describe_arguments
from artifact_inspector.compiling.ask.compile import count_processors
from artifact_inspector.compiling.ask.hooks import read_kernel_files
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.parallel_map import map_in_processes
from artifact_inspector.execution.timing.ranking import RankedLaunch, bound_candidate, rank_launches
from artifact_inspector.files.cache import Artifact, cache_in_memory
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.hardware.targets import parse_target

_LAUNCH_KEYWORDS = frozenset(("grid", "warmup"))


def prune_configs(keep: int = 5, gpu: str | None = None) -> Pruner:
    """A function for Triton's `prune_configs_by={"early_config_prune": …}`.

    It compiles every configuration into Triton's cache, where later launches find it, and ranks them for the
    arguments and the grid of the call. The best are left to be timed.

    Args:
        gpu: name of a product; by default the GPU that torch uses.

    Returns:
        A function to bind to the autotuned kernel: `prune.bind(kernel)`.

    Example:
        >>> prune = prune_configs(keep=5)
        >>> prune.keep
        5
    """
    if keep < 1:
        raise UsageError(f"prune_configs(keep={keep}) leaves nothing to time.", "Expected 1 or more.")
    return Pruner(keep, gpu)


class Pruner:
    """Selects the configurations with the best rank."""

    def __init__(self, keep: int, gpu: str | None = None) -> None:
        self.keep = keep
        self.gpu = gpu
        self.ranked: list[RankedLaunch] = []
        """Of the last call: all configurations, best first; `launch` is the index in the list passed."""
        self.failed: dict[int, str] = {}
        """Of the last call: index of a configuration that did not compile → error message."""
        self.seconds: dict[str, float] = {}
        """Of the last call: seconds of `compile`, with bounds of the scores, and of `rank`."""
        self._autotuned: Any = None
        self._bounds: dict[int, Any] = {}
        """Of the last call: what `bound_candidate` returned, by the index of the configuration."""

    def bind(self, autotuned: Any) -> Any:
        """Set the autotuned kernel whose configurations are compiled, and return it."""
        self._autotuned = autotuned
        return autotuned

    def __call__(self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """The configurations to time, best first.

        Raises:
            UsageError: the pruner was not bound.
        """
        if self._autotuned is None:
            raise UsageError(
                "The pruner has no kernel.", "Call prune.bind(kernel) after @triton.autotune made the kernel."
            )
        start = time.perf_counter()
        candidates = self._compile(configs, named_args, kwargs)
        compile_end = time.perf_counter()
        self.ranked = [] if not candidates else self._rank(candidates)
        self.seconds = {"compile": compile_end - start, "rank": time.perf_counter() - compile_end}
        scored = [row for row in self.ranked if row.score is not None and row.identical_to is None]
        # an unranked configuration may be fast: time it if fewer than `keep` are ranked
        unranked = [row for row in self.ranked if row.score is None and row.identical_to is None and row.fits]
        selected = [configs[row.launch] for row in (*scored, *unranked)][: self.keep]
        return selected or list(configs)

    def _compile(
        self, configs: Sequence[Any], named_args: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> dict[int, RankingCandidate]:
        """Index of each configuration that compiles → its launch."""
        function, values, grid = _unwrap(self._autotuned), [*named_args.values()], kwargs["grid"]
        launch_options = {name: value for name, value in kwargs.items() if name not in _LAUNCH_KEYWORDS}
        described = partial(describe_arguments, function, values=lambda _: True, addresses=True)
        call_args = described(values, launch_options)
        self.failed, self._bounds = {}, {}
        kernels, grids = [], []
        with _CompileJobs().collect():
            for config in configs:
                options = {**launch_options, **config.all_kwargs()}
                grids.append(grid({**named_args, **options}) if callable(grid) else grid)
                kernels.append(_attempt(partial(self._autotuned.fn.warmup, *values, grid=grids[-1], **options)))

        def candidate_of(index: int, artifact: Artifact) -> RankingCandidate:
            config = configs[index]
            constants = described((), config.kwargs)
            args = {**call_args, **{name: constants[name] for name in config.kwargs if name in constants}}
            (request,) = parse_document_of({"grid": [*map(int, grids[index])], "args": args}, "the call")
            return RankingCandidate(artifact, request, {**config.kwargs}, label=str(config))

        gpu = self.gpu or _device_name()  # which no forked process can ask
        disassemble = binary_disassembler()

        def compile_and_bound(index: int) -> tuple[int, Artifact | str, Any]:
            """In a process of its own, which fills Triton's cache: others compile meanwhile."""
            kernel = kernels[index]
            files = kernel if isinstance(kernel, Exception) else _attempt(partial(read_kernel_files, kernel))
            if isinstance(files, Exception):
                return index, f"{type(files).__name__}: {files}", None
            artifacts = cache_in_memory(*files).entries
            if not artifacts:
                return index, "It has no machine code.", None
            return index, artifacts[0], bound_candidate(candidate_of(index, artifacts[0]), disassemble, gpu=gpu)

        candidates: dict[int, RankingCandidate] = {}
        for index, artifact, bound in map_in_processes(compile_and_bound, range(len(configs)), count_processors()):
            if isinstance(artifact, str):
                self.failed[index] = artifact
            else:
                candidates[index], self._bounds[index] = candidate_of(index, artifact), bound
        return dict(sorted(candidates.items()))

    def _rank(self, candidates: Mapping[int, RankingCandidate]) -> list[RankedLaunch]:
        indices = list(candidates)
        rows = rank_launches(
            list(candidates.values()),
            binary_disassembler(),
            gpu=self.gpu or _device_name(),
            processors=count_processors(),
            best=self.keep,
            bounds={at: self._bounds[index] for at, index in enumerate(indices)},
        )
        identical_indices = [None if row.identical_to is None else indices[row.identical_to] for row in rows]
        return [
            replace(row, launch=indices[row.launch], identical_to=identical_index)
            for row, identical_index in zip(rows, identical_indices, strict=True)
        ]


class _CompileJobs:
    """The compiles that Triton would start, to be run in forked processes that fill its cache.

    **Source** triton/runtime/_async_compile.py, `AsyncCompileMode` (3.5 and later): it submits each compile to an
    executor, this object, and takes results from what `submit` returns. Earlier versions compile at once.
    """

    def submit(self, job: Callable[[], Any]) -> SimpleNamespace:
        """A future whose result compiles in this process, or loads what another process compiled."""
        return SimpleNamespace(result=job)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Defer the compiles of this block."""
        mode = getattr(sys.modules.get("triton"), "AsyncCompileMode", None)
        if mode is None:
            yield
            return
        with mode(self) as active:
            try:
                yield
            finally:
                active.raw_futures.clear()  # else it would wait for them


def _attempt(function: Callable[[], Any]) -> Any:
    """The result of a function that compiles, or the exception that it raised: a compiler may raise anything."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001
        return error


def _unwrap(kernel: Any) -> Any:
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
