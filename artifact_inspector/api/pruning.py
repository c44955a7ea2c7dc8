"""Fewer configurations for an autotuner to time: all are compiled and ranked on paper, the best are timed.

**Source** triton/runtime/autotuner.py, `Autotuner.prune_configs`: `early_config_prune(configs, named_args,
**kwargs)` is called with the configurations, the arguments by name and the keywords of the launch, its grid
among them.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from artifact_inspector.compiling.arguments import describe_arguments
from artifact_inspector.compiling.ask.compile import processors
from artifact_inspector.compiling.ask.compiled import files_of
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.requests import parse_document_of
from artifact_inspector.execution.timing.contestants import Contestant
from artifact_inspector.execution.timing.ranking import Ranked, rank_launches
from artifact_inspector.files.cache import hold_files
from artifact_inspector.files.objdump import disassembling

_OF_LAUNCH = frozenset(("grid", "warmup"))


def prune_configs(keep: int = 5, gpu: str | None = None) -> Pruner:
    """What Triton takes as `prune_configs_by={"early_config_prune": …}`.

    Every configuration is compiled into Triton's own cache, where its launch finds it, and ranked for the
    call's own arguments and grid; the best are left to be timed.

    Args:
        keep: configurations that are left.
        gpu: a product by its name; by default the one that torch launches on.

    Returns:
        A function to bind to the autotuned kernel once that is made: `prune.bind(kernel)`.

    Example:
        >>> prune = prune_configs(keep=5)
        >>> prune.keep
        5
    """
    if keep < 1:
        raise UsageError("An autotuner needs at least one configuration.", "Keep 1 or more.")
    return Pruner(keep, gpu)


class Pruner:
    """Leaves an autotuner the configurations that rank best."""

    def __init__(self, keep: int, gpu: str | None = None) -> None:
        self.keep = keep
        self.gpu = gpu
        self.ranked: list[Ranked] = []
        """Of the last call: every configuration, the best first; `launch` is its place in the list given."""
        self.failed: dict[int, str] = {}
        """Of the last call: place of a configuration that the compiler refused → what it said."""
        self.seconds: dict[str, float] = {}
        """Of the last call: `compile` and `rank`."""
        self._autotuned: Any = None

    def bind(self, autotuned: Any) -> Any:
        """Tell whose configurations are to be compiled: what `@triton.autotune` made; it is returned."""
        self._autotuned = autotuned
        return autotuned

    def __call__(self, configs: Sequence[Any], named_args: Mapping[str, Any], **kwargs: Any) -> list[Any]:
        """The configurations worth timing, the best first.

        Raises:
            UsageError: the pruner was not bound.
        """
        if self._autotuned is None:
            raise UsageError(
                "The pruner does not know which kernel it prunes for.",
                "Call prune.bind(kernel) once @triton.autotune has made the kernel.",
            )
        start = time.perf_counter()
        made = self._compile(configs, named_args, kwargs)
        compiled = time.perf_counter()
        self.ranked = [] if not made else self._rank(made)
        self.seconds = {"compile": compiled - start, "rank": time.perf_counter() - compiled}
        scored = [row for row in self.ranked if row.score is not None and row.same_as is None]
        # one that nothing is known of is no worse for it: it is timed too, where there is room
        others = [row for row in self.ranked if row.score is None and row.same_as is None and row.fits]
        kept = [configs[row.launch] for row in (*scored, *others)][: self.keep]
        return kept or list(configs)

    def _compile(
        self, configs: Sequence[Any], named_args: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> dict[int, Contestant]:
        """Place of each configuration that compiles → the launch that it makes."""
        function = _innermost(self._autotuned)
        given = {name: value for name, value in kwargs.items() if name not in _OF_LAUNCH}
        found: dict[int, Contestant] = {}
        self.failed = {}
        for at, config in enumerate(configs):
            options = {**given, **config.all_kwargs()}
            meta = {**named_args, **options}
            grid = kwargs["grid"]
            extents = grid(meta) if callable(grid) else grid
            try:
                kernel = self._autotuned.fn.warmup(*named_args.values(), grid=extents, **options)
                cache = hold_files(*files_of(kernel))
            except Exception as error:  # noqa: BLE001 - a compiler may raise anything; the autotuner does so again
                self.failed[at] = f"{type(error).__name__}: {error}"
                continue
            args = describe_arguments(
                function, list(named_args.values()), options, values=lambda _: True, addresses=True
            )
            (request,) = parse_document_of({"grid": [*map(int, extents)], "args": args}, "the call")
            found[at] = Contestant(cache.entries[0], request, {**config.kwargs}, label=str(config))
        return found

    def _rank(self, made: Mapping[int, Contestant]) -> list[Ranked]:
        places = list(made)
        rows = rank_launches(
            list(made.values()),
            disassembling(),
            gpu=self.gpu or _device(),
            processors=processors(),
        )
        firsts = [None if row.same_as is None else places[row.same_as] for row in rows]
        return [
            replace(row, launch=places[row.launch], same_as=first)
            for row, first in zip(rows, firsts, strict=True)
        ]


def _innermost(kernel: Any) -> Any:
    """The `@triton.jit` function under its decorators."""
    while not hasattr(kernel, "params") and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _device() -> str | None:
    """The GPU that torch launches on, by its name; None where there is none, or one that is not known."""
    try:
        import torch

        name: str = torch.cuda.get_device_name()
    except (ImportError, RuntimeError, AssertionError):
        return None
    from artifact_inspector.hardware.targets import parse_target

    for word in name.split():
        try:
            parse_target(word)
        except UsageError:
            continue
        return word
    return None
