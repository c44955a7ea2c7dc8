"""Saved kernels whose loops' trips run side by side, against the same run one by one: every count is equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from launches_on_paper import LAUNCHES, ROOT

from artifact_inspector.execution.interpreter import induction
from artifact_inspector.execution.interpreter.loops import MOST_REGISTER_BYTES
from artifact_inspector.execution.interpreter.values import UnknownValue
from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.launch import KernelLaunch, Tensor
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.sampling import sample_launch, sample_simulated
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import disassemble, find_disassembler

COUNTERS = ROOT / "tests" / "oracle" / "counters"
CASES = sorted(path.name for path in COUNTERS.iterdir())
LONG = ("attention", "histogram", "matmul")
"""Those that go round a loop often enough."""
TARGETS = ("sm_80", "gfx90a", "gfx942", "gfx950", "gfx1100")
DEEPER = {
    "matmul_grouped": {"K": 1536},
    "matmul_square": {"K": 1536},
    "fused_linear": {"K": 1536},
    "persistent_matmul": {"K": 768},
    "flash_attention": {"seq_len": 2048},
}
"""Kernel → what makes its loop long."""
TOOL = find_disassembler()


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Trips of each guess that were proven."""
    found: list[int] = []
    run = induction.IterationHypothesis.run
    monkeypatch.setattr(
        induction.IterationHypothesis, "run", lambda guess, **how: found.append(run(guess, **how)) or found[-1]
    )
    return found


def measured(name: str) -> tuple[LoadedKernel, KernelLaunch]:
    place: Path = COUNTERS / name
    (entry,) = [entry for entry in open_cache(place).entries if "sass" in entry.files]
    loaded = load_kernel(entry, None)
    (request,) = parse_document((place / "launch.json").read_text(), "launch.json")
    return loaded, resolve_launch(request, [parameter.argument for parameter in loaded.parameters])


def saved(name: str, target: str) -> tuple[LoadedKernel, KernelLaunch]:
    """A saved kernel with tensors large enough for its longer loop."""
    paper = LAUNCHES[name]
    arguments = {
        key: Tensor(tuple(16 * extent for extent in value[0]), value[1]) if isinstance(value, tuple) else value
        for key, value in {**paper.arguments, **DEEPER[name]}.items()
    }
    (entry,) = open_cache(ROOT / "fixtures" / "3.6.0" / target / name).entries
    if TOOL is None and target == "sm_80" and "sass" not in entry.files:
        pytest.skip("no nvdisasm")
    return load_kernel(entry, lambda _suffix, binary: disassemble(binary, TOOL)), KernelLaunch((1, 1, 1), arguments)


def assert_same(loaded: LoadedKernel, launch: KernelLaunch, cta: int) -> None:
    both = [
        predict_counters(simulate_launch(loaded, launch, ctas=np.array([cta]), footprints=True, runs_in_parallel=on))
        for on in (True, False)
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if n % 2 else []) for n, name in enumerate(CASES)]
)
def test_a_cta_counts_the_same(name: str, proven: list[int]) -> None:
    loaded, launch = measured(name)
    assert_same(loaded, launch, launch.ctas // 2)
    assert (max(proven, default=0) >= 6) is (name in LONG)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_sampled_ctas_touch_the_same_in_the_same_order(name: str) -> None:
    loaded, launch = measured(name)
    ours, one_by_one = (sample_launch(loaded, launch, runs_in_parallel=on) for on in (True, False))
    assert ours.counters == one_by_one.counters
    assert ours.trace == one_by_one.trace
    run = simulate_launch(loaded, launch, ctas=ours.ctas, footprints=True)
    taken = sample_simulated(run, ours.ctas)
    assert (taken is None) is (loaded.initial_state is not None)  # of NVIDIA
    if taken is not None:
        assert taken.trace == ours.trace
        for counter in ("warps_executed", "wavefronts", "bytes_requested"):
            assert getattr(taken.counters, counter) == getattr(ours.counters, counter)
        assert [taken.traffic.new_sectors, taken.traffic.accesses] == [ours.traffic.new_sectors, ours.traffic.accesses]
    for field in (
        "requested_lines",
        "new_sectors",
        "missing_accesses",
        "accesses",
        "accesses_of_cta",
        "requested_sectors",
        "contiguous_ranges",
        "sectors_read",
        "sectors_written",
        "tensor_of_step",
    ):
        assert getattr(ours.traffic, field) == getattr(one_by_one.traffic, field)


def test_trips_side_by_side_hold_so_much_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = open_cache(ROOT / "fixtures" / "3.6.0" / "gfx1100" / "flash_attention").entries[0]
    paper = LAUNCHES["flash_attention"].arguments
    held = {name: Tensor((16, 16), value[1]) for name, value in paper.items() if isinstance(value, tuple)}
    numbers = {"stride_head": 1 << 31, "stride_seq": 16, "seq_len": 256, "scale": 256}
    trials: list[int] = []
    begin = induction.IterationHypothesis._make_speculative

    def begun(guess: induction.IterationHypothesis, *given: Any) -> Any:
        trial = begin(guess, *given)
        arrays = [value for value in trial.registers.values() if isinstance(value, np.ndarray)]
        arrays += [part for value in trial.registers.values() if isinstance(value, UnknownValue) for part in value[:2]]
        trials.append(sum(part.nbytes for part in arrays if isinstance(part, np.ndarray)))
        return trial

    monkeypatch.setattr(induction.IterationHypothesis, "_make_speculative", begun)
    simulate_launch(load_kernel(entry, None), KernelLaunch((256, 1, 1), {**held, **numbers}))
    assert 0 < max(trials) <= 2 * MOST_REGISTER_BYTES  # what a loop carries is not lane by lane before


PLAIN = {("flash_attention", "gfx942"), ("matmul_grouped", "sm_80"), ("persistent_matmul", "sm_80")}
"""What a plain run of the tests counts: a loop of each vendor, and one around another."""


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "target"),
    [
        pytest.param(
            name,
            target,
            marks=[]
            if (name, target) in PLAIN
            else [pytest.mark.long if target == "gfx90a" else pytest.mark.exhaustive],
        )
        for name in DEEPER
        for target in TARGETS
    ],
)
def test_a_saved_kernel_counts_the_same(name: str, target: str, proven: list[int]) -> None:
    if not (ROOT / "fixtures" / "3.6.0" / target / name).is_dir():
        pytest.skip("not saved")
    assert_same(*saved(name, target), 0)
    assert max(proven, default=0) >= 6
