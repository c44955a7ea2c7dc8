"""What an autotuner is left to time."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from saved import saved

from artifact_inspector.api import pruning, tuned_launches
from artifact_inspector.api.pruning import Pruner, autotune, prune_configs, prune_helion, prune_inductor
from artifact_inspector.api.tuned_launches import (
    LaunchReader,
    TunedLaunch,
    defer_compile,
    deferred_compiles,
    rank_tuned_launches,
)
from artifact_inspector.compiling.arguments import MAX_RECORDED_ELEMENTS
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.ranking import RankedLaunch


def ranked(launch: int, score: float | None, *, fits: bool = True, identical_to: int | None = None) -> RankedLaunch:
    return RankedLaunch(launch, "", "", score, None, {}, fits, 1, 1, identical_to=identical_to)


def config(size: int, pre_hook: Any = None) -> Any:
    options = {"SIZE": size, "num_warps": 4}
    return SimpleNamespace(kwargs={"SIZE": size}, all_kwargs=lambda: options, pre_hook=pre_hook, num_warps=4)


class JitFunction:
    """As a `@triton.jit` function of `x, SIZE`."""

    def __init__(self) -> None:
        self.arg_names = ["x", "SIZE"]
        self.params = [
            SimpleNamespace(name=name, is_constexpr=name == "SIZE", has_default=False) for name in self.arg_names
        ]
        self.warmups: list[dict[str, Any]] = []

    def warmup(self, *values: Any, **options: Any) -> Any:
        self.warmups.append({"values": values, **options})
        return SimpleNamespace(asm={})


class Autotuner:
    """As Triton's: it calls the pruner without the kernel."""

    def __init__(self, function: Any, configs: Sequence[Any], prune: Any) -> None:
        self.fn, self.configs, self.early_config_prune = function, configs, prune

    def prune_configs(self, named_args: Any, **kwargs: Any) -> Any:
        return self.early_config_prune(self.configs, named_args, **kwargs)


def a_launch() -> TunedLaunch:
    return TunedLaunch(list, LaunchRequest((1,), {}), {}, "", 1)


def select(rows: list[RankedLaunch], count: int, keep: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    monkeypatch.setattr(pruning, "rank_tuned_launches", lambda launches, *_, **__: (rows, {}))
    return prune_configs(keep).select([a_launch()] * count, LaunchReader())


def test_the_best_are_left_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ranked(2, 1.0), ranked(3, 1.0, identical_to=2), ranked(0, 2.0), ranked(1, 3.0)]
    assert select(rows, 4, 2, monkeypatch) == [2, 0]


def test_what_has_no_score_is_timed_too_and_what_does_not_fit_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [ranked(1, 1.0), ranked(3, 2.0), ranked(0, None), ranked(2, None, fits=False)]
    assert select(rows, 4, 1, monkeypatch) == [1, 0]


def test_large_integers_are_copied_where_no_launch_can_be_ranked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def rank(launches: Sequence[TunedLaunch], *_: object, **__: object) -> Any:
        seen.append(launches[-1].request.arguments["x"])
        score = 1.0 if seen[-1].values else None
        return [replace(ranked(0, score), missing_inputs=() if score else ("values of x",))], {}

    monkeypatch.setattr(pruning, "rank_tuned_launches", rank)
    tuned = Autotuner(JitFunction(), [config(16), config(32)], prune_configs(1))
    tuned.prune_configs({"x": torch.arange(MAX_RECORDED_ELEMENTS + 1)}, grid=(1,))
    assert [tensor.values is None for tensor in seen] == [True, False]
    assert seen[1].values.elements[-1] == MAX_RECORDED_ELEMENTS


def test_where_nothing_can_be_ranked_all_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert select([], 2, 1, monkeypatch) == [0, 1]

    def fail(*_: object, **__: object) -> None:
        raise CacheError("no nvdisasm")

    monkeypatch.setattr(pruning, "rank_tuned_launches", fail)
    with pytest.warns(UserWarning, match="no nvdisasm"):
        assert prune_configs(1).select([a_launch()] * 2, LaunchReader()) == [0, 1]


def test_a_pruner_that_knows_no_kernel_says_so() -> None:
    with pytest.raises(UsageError, match="prune_configs_by"):
        prune_configs(5)([], {}, grid=(1,))


def test_an_autotuner_needs_a_configuration() -> None:
    with pytest.raises(UsageError):
        prune_configs(0)


def test_the_pruner_finds_the_autotuner_that_calls_it(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[TunedLaunch] = []
    monkeypatch.setattr(
        pruning, "rank_tuned_launches", lambda launches, *_, **__: (taken.extend(launches) or [ranked(1, 1.0)], {})
    )
    function, hooked = JitFunction(), []
    tuned = Autotuner(function, [config(16), config(32, hooked.append)], prune_configs(2))
    assert tuned.prune_configs({"x": torch.zeros(64)}, grid=lambda meta: (64 // meta["SIZE"],)) == [tuned.configs[1]]
    assert [launch.request.grid for launch in taken] == [(4,), (2,)]
    assert [launch.constants for launch in taken] == [{"SIZE": 16}, {"SIZE": 32}]
    assert [call["num_warps"] for call in function.warmups] == [4, 4]
    assert [sorted(arguments) for arguments in hooked] == [["SIZE", "num_warps", "x"]]


def test_the_decorator_prunes_what_is_left_by_a_pruner_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "rank_tuned_launches", lambda launches, *_, **__: ([ranked(1, 1.0)], {}))

    def make(configs: Any, key: Any, *, prune_configs_by: Any, warmup: int) -> Any:
        assert key == ["x"]
        assert warmup == 5
        return lambda function: Autotuner(function, configs, prune_configs_by["early_config_prune"])

    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(autotune=make))
    configs = [config(size) for size in (16, 32, 64)]
    by = {"early_config_prune": lambda configs, _named_args, **_: configs[1:]}
    tuned = autotune(configs, ["x"], keep=1, prune_configs_by=by, warmup=5)(JitFunction())
    assert tuned.prune_configs({"x": torch.zeros(64)}, grid=(1,)) == [configs[2]]


def test_only_integers_that_decide_something_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = saved("3.6.0/sm_90/softmax").artifact
    copied: list[Any] = []
    real = tuned_launches.read_elements
    monkeypatch.setattr(tuned_launches, "read_elements", lambda *given: copied.append(given[0]) or real(*given))
    monkeypatch.setattr(tuned_launches, "map_in_processes", lambda function, numbers, *_, **__: map(function, numbers))
    passes: list[bool] = []

    def bound(candidate: Any, *_: object, **__: object) -> Any:
        x = candidate.request.arguments["x"]
        passes.append(x.values is not None)
        missing = () if passes[-1] or x.dtype == "int8" else ("values of x",)
        return replace(ranked(0, 1.0), missing_inputs=missing), ()

    monkeypatch.setattr(tuned_launches, "bound_candidate", bound)
    for tensor, expected in (
        (torch.arange(4, dtype=torch.int8), [False, False]),
        (torch.arange(4, dtype=torch.int16), [False, True, True]),  # the second launch waits for the integers
        (torch.zeros(4), [False, False]),
    ):
        passes.clear()
        reader, pruner = LaunchReader(), prune_configs(2, "H200")
        launches = [
            reader.read(JitFunction(), [tensor], {"SIZE": size}, (size,), "", lambda: [artifact]) for size in (16, 32)
        ]
        assert sorted(pruner.select(launches, reader)) == [0, 1]
        assert passes == expected
    assert [x.dtype for x in copied] == [torch.int16]


def test_a_tensor_is_described_once_and_a_descriptor_each_time() -> None:
    reader, function, index = LaunchReader(), JitFunction(), torch.arange(5, dtype=torch.int16)
    launches = [reader.read(function, [index], {"SIZE": size}, (1,), "", list) for size in (16, 32)]
    first, second = (launch.request.arguments["x"] for launch in launches)
    assert isinstance(first, Tensor)
    assert first is second
    assert first.values is None
    assert reader.add_values(launches, {"x"})[1].request.arguments["x"].values.elements.tolist() == [*range(5)]
    descriptor = SimpleNamespace(base=index, block_shape=[16], shape=[5], strides=[1])
    blocks = []
    for size in (16, 32):
        descriptor.block_shape = [size]
        blocks.append(reader.read(function, [descriptor], {"SIZE": 16}, (1,), "", list).request.arguments["x"])
    assert [block.block_shape for block in blocks] == [(16,), (32,)]


def test_launches_are_ranked_and_those_that_fail_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = saved("3.6.0/sm_90/softmax").artifact
    calls: list[tuple[int, float | None]] = []

    def map_here(function: Any, numbers: Sequence[int], _processors: int, *, patience: float) -> Any:
        calls.extend((number, patience) for number in numbers)
        results = [function(number) for number in numbers]  # 4 is stopped while it compiles, 6 while it is ranked
        return [result for result in results if result[0] not in (4, 6)]

    monkeypatch.setattr(tuned_launches, "map_in_processes", map_here)
    scores = {"a": 2.0, "b": 1.0, "c": 3.0}
    monkeypatch.setattr(
        tuned_launches,
        "bound_candidate",
        lambda candidate, *_, **__: (ranked(0, scores[candidate.constants["at"]]), ()),
    )

    def launch(compiled: Any, at: str, size: int, warps: int = 1) -> TunedLaunch:
        return TunedLaunch(compiled, LaunchRequest((1,), {}), {"at": at, "SIZE": size}, at, warps)

    rows, failed = rank_tuned_launches(
        [
            launch(lambda: [artifact], "a", 16),
            launch(lambda: [artifact], "b", 32, 8),
            launch(list, "", 8),
            launch(lambda: 1 / 0, "", 4),
            launch(lambda: 1 / 0, "c", 64),
            launch(lambda: [artifact], "a", 16),
            launch(lambda: [artifact], "c", 2),
        ],
        "H200",
    )
    assert [number for number, _ in calls] == [4, 0, 5, 2, 1, 3, 6]  # the most elements per warp first
    assert [(row.launch, row.identical_to) for row in rows] == [(1, 0), (0, None), (5, 0), (6, None)]
    assert {at: text.split(":")[0] for at, text in failed.items()} == {
        2: "It has no machine code.",
        3: "ZeroDivisionError",
        4: failed[4],
    }
    assert "3 times as long" in failed[4]


def test_compiles_are_deferred_until_their_result_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Mode:
        """As triton.AsyncCompileMode: on leaving, it would wait for what `submit` returned."""

        def __init__(self, executor: Any) -> None:
            self.executor, self.raw_futures = executor, []

        def __enter__(self) -> Mode:
            return self

        def __exit__(self, *_: object) -> None:
            assert not self.raw_futures

    monkeypatch.setitem(sys.modules, "triton", SimpleNamespace(AsyncCompileMode=Mode))
    with deferred_compiles() as mode:
        future = mode.executor.submit(lambda: started.append("compiled"))
    assert started == []
    future.result()
    assert started == ["compiled"]


def test_an_error_of_a_compile_is_raised_where_the_kernel_is_read() -> None:
    kernel = SimpleNamespace(warmup=lambda **_: 1 / 0)
    load = defer_compile(kernel, (), (1,), {})
    with pytest.raises(ZeroDivisionError):
        load()


def test_a_search_of_helion_gets_the_best_configurations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        sys.modules, "helion.autotuner", SimpleNamespace(FiniteSearch=SimpleNamespace, RandomSearch=None)
    )
    monkeypatch.setattr(pruning, "rank_tuned_launches", lambda launches, *_, **__: ([ranked(1, 1.0)], {}))
    function, x = JitFunction(), torch.zeros(64)

    def compile_config(size: int, *, allow_print: bool) -> Any:
        assert not allow_print
        return lambda x, *, _launcher: _launcher(function, (1,), x, size, num_warps=4, num_stages=1, ptx_options=None)

    kernel = SimpleNamespace(configs=[16, 32], compile_config=compile_config)

    def search(kernel: Any, args: Sequence[Any], *, effort: str) -> Any:
        assert effort == "quick"
        return SimpleNamespace(configs=kernel.configs)

    assert prune_helion(search, keep=1)(kernel, (x,), effort="quick").configs == [32]
    assert [call["values"][1] for call in function.warmups] == [16, 32]
    assert "ptx_options" not in function.warmups[0]


def test_inductor_times_the_best_launchers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    heuristics = pytest.importorskip("torch._inductor.runtime.triton_heuristics")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    timed: list[Any] = []
    taken: list[TunedLaunch] = []

    def rank(launches: Sequence[TunedLaunch], _gpu: str | None, **_: object) -> Any:
        taken.extend(launches)
        return [ranked(1, 1.0), ranked(2, 2.0)], {}

    monkeypatch.setattr(pruning, "rank_tuned_launches", rank)
    monkeypatch.setattr(
        heuristics.CachingAutotuner, "autotune_to_one_config", lambda self, *_: timed.extend(self.launchers)
    )
    autotuner = object.__new__(heuristics.CachingAutotuner)
    function = JitFunction()
    function.arg_names = ["x", "xnumel", "XBLOCK"]
    function.params = [SimpleNamespace(name=name, is_constexpr=name == "XBLOCK") for name in function.arg_names]
    autotuner.fn, autotuner.inductor_meta, autotuner.triton_meta = function, {"grid_type": "Grid1D"}, {"device": 0}
    autotuner.launchers = [
        SimpleNamespace(config=heuristics.Config({"XBLOCK": size}, num_warps=4), cache_hash="HASH")
        for size in (64, 128, 256)
    ]
    launchers = autotuner.launchers
    with prune_inductor(keep=2) as pruner:
        autotuner.autotune_to_one_config(torch.zeros(1024), 1024)
    assert isinstance(pruner, Pruner)
    assert timed == launchers[1:]
    assert [launch.request.grid for launch in taken] == [(16, 1, 1), (8, 1, 1), (4, 1, 1)]
    assert taken[0].constants == {"XBLOCK": 64}
    with pytest.raises(CacheError):
        taken[0].compile()
