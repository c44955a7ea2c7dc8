"""Fewer configurations for autotuners to time: compile and rank all, time only the best.

**Source** triton/runtime/autotuner.py, `Autotuner.prune_configs`: `early_config_prune(configs, named_args,
**kwargs)` is called with the configurations, the arguments by name and the keywords of the launch, its grid
among them. helion/runtime/settings.py, `autotuner_fn(bound_kernel, args, **kwargs)`; helion/autotuner/finite_search.py,
`FiniteSearch.configs`: generated code takes a `_launcher(kernel, grid, *args, **options)`.
torch/_inductor/runtime/triton_heuristics.py, `CachingAutotuner.autotune_to_one_config`: times `launchers`, which are
compiled; `GridExpr` has the grid of each.
"""

from __future__ import annotations

import inspect
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from artifact_inspector.api.tuned_launches import (
    LaunchReader,
    TunedLaunch,
    defer_compile,
    deferred_compiles,
    jit_function,
    missing_integers,
    rank_tuned_launches,
)
from artifact_inspector.compiling.capture.patches import replaced
from artifact_inspector.errors import InspectorError, UsageError
from artifact_inspector.execution.timing.ranking import RankedLaunch
from artifact_inspector.files.cache import open_cache

_KEEP = 6
"""Configurations that are timed by default. Of 59 kernels with measured times, the best of the first five is within 3 %
of the best of all for 58, and of the first six too. To time fewer where scores differ clearly gained nothing."""
_LAUNCH_KEYWORDS = frozenset(("grid", "warmup"))


def prune_configs(keep: int = _KEEP, gpu: str | None = None) -> Pruner:
    """A function for Triton's `prune_configs_by={"early_config_prune": …}`.

    It compiles every configuration into Triton's cache, where later launches find it, and ranks them for the
    arguments and the grid of the call. The best are left to be timed.

    Args:
        gpu: name of a product; by default the GPU that torch uses.

    Example:
        >>> prune = prune_configs(keep=5)
        >>> prune.keep
        5
    """
    if keep < 1:
        raise UsageError(f"prune_configs(keep={keep}) leaves nothing to time.", "Expected 1 or more.")
    return Pruner(keep, gpu)


def autotune(
    configs: Sequence[Any], key: Sequence[str], *, keep: int = _KEEP, gpu: str | None = None, **options: Any
) -> Callable[[Any], Any]:
    """`triton.autotune` that times only the best configurations: a decorator with the same arguments.

    Args:
        keep, gpu: as for `prune_configs`.
        options: of `triton.autotune`. An `early_config_prune` among them is called first.
    """
    import triton  # only in processes that have it

    pruner = prune_configs(keep, gpu)
    by = dict(options.pop("prune_configs_by", None) or {})
    prune_first = by.get("early_config_prune", lambda configs, named_args, **_: configs)
    by["early_config_prune"] = lambda configs, named_args, **keywords: pruner(
        prune_first(configs, named_args, **keywords), named_args, **keywords
    )
    decorate: Callable[[Any], Any] = triton.autotune([*configs], [*key], prune_configs_by=by, **options)
    return decorate


class Pruner:
    """Selects the configurations with the best rank."""

    def __init__(self, keep: int, gpu: str | None = None) -> None:
        self.keep = keep
        self.gpu = gpu
        self.ranked: list[RankedLaunch] = []
        """Of the last call: the configurations, best first; `launch` is the index in the list passed."""
        self.failed: dict[int, str] = {}
        """Of the last call: index of a configuration that did not compile, or for too long → the reason."""
        self.seconds = 0.0
        """Of the last call."""

    def __call__(self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """The configurations to time, best first.

        Raises:
            UsageError: no autotuner of Triton calls.
        """
        autotuned, start = _calling_autotuner(), time.perf_counter()
        function, values, reader = jit_function(autotuned), [*named_args.values()], LaunchReader()
        keywords = {name: value for name, value in kwargs.items() if name not in _LAUNCH_KEYWORDS}
        launches = []
        with deferred_compiles():
            for config in configs:
                options = {**keywords, **config.all_kwargs()}
                if config.pre_hook is not None:  # it may set the block shape of a descriptor
                    config.pre_hook({**named_args, **options})
                compiled = defer_compile(autotuned.fn, values, kwargs["grid"], options)
                launches.append(reader.read(function, values, options, kwargs["grid"], str(config), compiled))
        selected = [configs[index] for index in self.select(launches, reader)]
        self.seconds = time.perf_counter() - start
        return selected

    def select(self, launches: Sequence[TunedLaunch], reader: LaunchReader) -> list[int]:
        """Indices of the launches to time, best first: all, with a warning, if they cannot be ranked."""
        self.ranked, self.failed = [], {}
        try:
            self.ranked, self.failed = rank_tuned_launches(launches, self.gpu, needs_values=True)
            missing = {name for row in self.ranked for name in missing_integers(launches[row.launch], row)}
            if missing:
                self.ranked, self.failed = rank_tuned_launches(reader.add_values(launches, missing), self.gpu)
        except InspectorError as error:
            warnings.warn(f"All configurations are timed: {error}", stacklevel=2)
        distinct = [row for row in self.ranked if row.identical_to is None]
        scored = [row.launch for row in distinct if row.score is not None][: self.keep]
        unranked = [row.launch for row in distinct if row.score is None and row.fits]  # which may be fast
        return [*scored, *unranked] or [*range(len(launches))]


def _calling_autotuner() -> Any:
    """The autotuner that calls a pruner: Triton passes it no kernel.

    Raises:
        UsageError: none calls.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if hasattr(caller, "early_config_prune") and hasattr(caller, "fn"):
            return caller
        frame = frame.f_back
    raise UsageError("No autotuner calls the pruner.", "Pass it to @triton.autotune: prune_configs_by={…}.")


def prune_helion(
    search: Callable[..., Any] | None = None, *, keep: int = _KEEP, gpu: str | None = None
) -> Callable[..., Any]:
    """A function for Helion's `@helion.kernel(autotuner_fn=…)`.

    Args:
        search: makes a search that has a list of `configs`, from the arguments of an `autotuner_fn`. By default
            `FiniteSearch` over the kernel's own configurations, or `RandomSearch` if it has none.
        keep, gpu: as for `prune_configs`.
    """
    pruner = prune_configs(keep, gpu)

    def autotuner_fn(bound_kernel: Any, args: Sequence[Any], **options: Any) -> Any:
        from helion.autotuner import FiniteSearch, RandomSearch  # only in processes that have it

        make = search or (FiniteSearch if bound_kernel.configs else RandomSearch)
        finite, reader = make(bound_kernel, args, **options), LaunchReader()
        launches: list[TunedLaunch] = []

        def launch(label: str, kernel: Any, grid: Any, *values: Any, **keywords: Any) -> None:
            options = {name: one for name, one in keywords.items() if not name.startswith("_") and one is not None}
            compiled = defer_compile(kernel, values, grid, options)
            launches.append(reader.read(kernel, values, options, grid, label, compiled))

        with deferred_compiles():
            for config in finite.configs:
                bound_kernel.compile_config(config, allow_print=False)(*args, _launcher=partial(launch, str(config)))
        if len(launches) == len(finite.configs):  # one launch each
            finite.configs = [finite.configs[index] for index in pruner.select(launches, reader)]
        return finite

    return autotuner_fn


@contextmanager
def prune_inductor(keep: int = _KEEP, gpu: str | None = None) -> Iterator[Pruner]:
    """Time only the best configurations of each kernel that `torch.compile` tunes in this block.

    Inductor compiles in parallel itself. What it compiled is ranked, and launchers that need not be timed are removed.

    Args:
        keep, gpu: as for `prune_configs`.
    """
    heuristics: Any = import_module("torch._inductor.runtime.triton_heuristics")
    autotuners, pruner = heuristics.CachingAutotuner, prune_configs(keep, gpu)
    tune = autotuners.autotune_to_one_config

    def read(autotuner: Any, launcher: Any, args: Sequence[Any], reader: LaunchReader) -> TunedLaunch:
        names = [x.name for x in autotuner.fn.params if not x.is_constexpr]
        values = dict(zip([*names, *autotuner.inductor_meta.get("extra_launcher_args", ())], args, strict=False))
        grid = heuristics.GridExpr.from_meta(autotuner.inductor_meta, launcher.config).eval_slow(values)
        directory = Path(heuristics.triton_cache_dir(autotuner.triton_meta.get("device", 0)), launcher.cache_hash)
        options = {**values, **launcher.config.kwargs, "num_warps": launcher.config.num_warps}
        return reader.read(autotuner.fn, (), options, grid, str(launcher.config), lambda: open_cache(directory).entries)

    def tune_best(autotuner: Any, *args: Any, **kwargs: Any) -> None:
        reader = LaunchReader()
        if len(autotuner.launchers) > keep:
            launches = [read(autotuner, launcher, args, reader) for launcher in autotuner.launchers]
            autotuner.launchers = [autotuner.launchers[index] for index in pruner.select(launches, reader)]
        tune(autotuner, *args, **kwargs)

    with replaced(autotuners, "autotune_to_one_config", tune_best):
        yield pruner
