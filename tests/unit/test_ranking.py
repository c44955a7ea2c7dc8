"""Which launches will be fastest: sampling, a CTA on its own, and how many share a multiprocessor."""

from __future__ import annotations

import pickle
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from saved import saved

from artifact_inspector.api.rank_warnings import warn_of_unwritten_registers
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document, parse_document_of
from artifact_inspector.execution.timing import dram_traffic, ranking, shared_windows
from artifact_inspector.execution.timing.candidates import RankingCandidate, find_identical_binaries, label_candidates
from artifact_inspector.execution.timing.control_codes import ControlCode, read_control_codes
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect, StepCost, count_memory_waits, walk_cta
from artifact_inspector.execution.timing.launch_time import with_launch_timing
from artifact_inspector.execution.timing.ranking import (
    AMD_NOTE,
    BOUND_NOTE,
    DeferredWindow,
    RankedLaunch,
    _throughput,
    bound_candidate,
    gpu_model_of,
    rank_launches,
    sort_by_score,
)
from artifact_inspector.execution.timing.sampling import choose_ctas
from artifact_inspector.execution.timing.variations import check_variations, request_for_variations
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.ranking import RankingReport

FREE = ControlCode(stall_cycles=1, result_scoreboard=None, operand_scoreboard=None, awaited_scoreboards=())


def row(launch: int, score: float | None, *, fits: bool = True) -> RankedLaunch:
    return RankedLaunch(launch, "hash", "", score, None, {}, fits, 1, 1)


def test_what_a_program_wrote_before_a_launch_makes_no_other_launch() -> None:
    """The first launch of a record finds an empty result, the others that of the launch before."""
    first, later = (Tensor((64,), "fp16", is_initialized=was_written, created=0) for was_written in (False, True))
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact
    rivals = [RankingCandidate(artifact, LaunchRequest((1,), {"c_ptr": tensor}), {}) for tensor in (first, later)]
    windows = shared_windows.SharedWindows(rivals, None, 1, 1)
    assert windows.launch_key(0) == windows.launch_key(1)
    assert find_identical_binaries(rivals) == [0, 0]


def test_launches_of_the_same_code_grid_and_arguments_are_one() -> None:
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact
    held = {"a_ptr": Tensor((64, 64), "fp16"), "M": 64, "BLOCK": 64, "num_warps": 4}

    def enter(grid: str | int, constants: Mapping[str, int] = {}, **changed: int) -> RankingCandidate:
        return RankingCandidate(artifact, LaunchRequest((grid,), {**held, **changed}), constants)

    rivals = [enter(1), enter("cdiv(M,BLOCK)"), enter(2), enter(1, M=32), enter(1, {"BLOCK": 32})]
    # a constant is compiled in: another one with the same code changes nothing
    assert find_identical_binaries([*rivals, enter(1, {"BLOCK": 64}, BLOCK=8), enter(1, num_warps=8)]) == [
        0, 0, 2, 3, 4, 4, 0
    ]  # fmt: skip


def test_the_smallest_kernel_is_judged_first(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("flash_attention", "softmax")
    every = [RankingCandidate(saved(f"3.6.0/sm_90/{name}").artifact, LaunchRequest((1,), {}), {}) for name in names]
    order: list[list[int]] = []

    def note(_judge: object, numbers: list[int], _processors: int) -> list[RankedLaunch]:
        order.append(numbers)
        return []

    monkeypatch.setattr(ranking, "map_in_processes", note)
    rank_launches(every, None)
    assert order == [[1, 0]]


def test_a_lower_bound_simulates_no_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = saved("3.6.0/sm_90/matmul_grouped").artifact
    shapes = {"a_ptr": (2048, 64), "b_ptr": (64, 2048), "c_ptr": (2048, 2048)}
    sizes = {"M": 2048, "N": 2048, "K": 64, "stride_am": 64, "stride_bk": 2048, "stride_cm": 2048}
    request = LaunchRequest((1024,), {**{name: Tensor(shape, "fp16") for name, shape in shapes.items()}, **sizes})
    candidate = RankingCandidate(artifact, request, artifact.constants)
    calls: list[object] = []
    monkeypatch.setattr(ranking, "exceeds_l2", lambda *_: True)
    monkeypatch.setattr(ranking, "fetched_bytes", lambda sample, *_, **__: calls.append(sample) or {"a_ptr": 1e9})
    bound, (window,) = bound_candidate(candidate, binary_disassembler(), gpu="H200")
    assert calls == []
    exact = ranking.estimate_candidate(candidate, binary_disassembler(), gpu="H200", limit=ranking.STEPS)
    assert bound.score is not None
    assert exact.score is not None
    assert bound.score < exact.score
    assert window.ctas > 0
    # processes pass it on: it has no byte for each sector of a tensor, and serves for the exact score
    sampled = pickle.loads(pickle.dumps(window.sample))
    assert len(pickle.dumps(sampled)) < 1 << 20 < sum(tensor.bytes for tensor in sampled.launch.tensors.values())
    again = ranking.estimate_candidate(
        candidate, binary_disassembler(), gpu="H200", limit=ranking.STEPS, sampled=sampled
    )
    assert (again.score, again.terms) == (exact.score, exact.terms)


def test_launches_with_equal_accesses_share_the_largest_window(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = saved("3.6.0/sm_90/softmax").artifact
    candidates = [RankingCandidate(artifact, LaunchRequest((1,), {}), {}, label=str(at)) for at in range(3)]
    monkeypatch.setattr(ranking, "find_identical_binaries", lambda candidates: [*range(len(candidates))])
    for module in (ranking, shared_windows):
        monkeypatch.setattr(module, "load_candidate", lambda candidate, _: (candidate.label, None))
    sizes: list[int] = []
    monkeypatch.setattr(shared_windows, "record_window", lambda *arguments: sizes.append(len(arguments[-1])))
    windows = {"0": DeferredWindow("", 3, 1), "1": DeferredWindow("", 5, 1), "2": DeferredWindow("other", 4, 1)}

    def estimate(label: str, *_: object, deferred: list[DeferredWindow] | None, **__: object) -> RankedLaunch:
        if deferred is not None:
            deferred.append(windows[label])
        return row(0, 1.0 if deferred is not None else 2.0 + int(label))

    monkeypatch.setattr(ranking, "estimate_launch", estimate)
    assert [entry.score for entry in rank_launches(candidates, None)] == [2.0, 3.0, 4.0]
    assert sorted(sizes) == [4, 5]


def test_only_launches_that_may_be_among_the_first_are_estimated_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = saved("3.6.0/sm_90/softmax").artifact
    candidates = [RankingCandidate(artifact, LaunchRequest((1,), {}), {}, label=str(at)) for at in range(32)]
    monkeypatch.setattr(ranking, "find_identical_binaries", lambda candidates: [*range(len(candidates))])
    for module in (ranking, shared_windows):
        monkeypatch.setattr(module, "load_candidate", lambda candidate, _: (candidate.label, None))
    monkeypatch.setattr(shared_windows, "record_window", lambda *_: None)
    exact: list[int] = []

    def estimate(label: str, *_: object, deferred: list[DeferredWindow] | None, **__: object) -> RankedLaunch:
        if deferred is not None:
            deferred.append(DeferredWindow("", 1, 1, int(label) // 20))
            return row(0, 1.0 + int(label))
        exact.append(int(label))
        return row(0, 9.5 if label == "0" else 1.5 + int(label))  # the first by its bound is the tenth

    monkeypatch.setattr(ranking, "estimate_launch", estimate)
    ranked = rank_launches(candidates, None)
    one, other = ([x for x in ranked if (x.launch >= 20) is is_other] for is_other in (False, True))
    assert [x.launch for x in one] == [1, 2, 3, 4, 5, 6, 7, 0, *range(8, 20)]
    assert [x.launch for x in one if BOUND_NOTE in x.notes] == [*range(10, 20)]
    assert [x.launch for x in other if BOUND_NOTE in x.notes] == [30, 31]
    assert sorted(exact) == [*range(10), *range(20, 30)]


@pytest.mark.long
def test_launches_with_the_same_accesses_simulate_one_window_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configurations that differ in stages; the whole is that of one process."""
    artifact = saved("3.6.0/sm_90/matmul_grouped").artifact
    shapes = {"a_ptr": (2048, 64), "b_ptr": (64, 2048), "c_ptr": (2048, 2048)}
    sizes = {"M": 2048, "N": 2048, "K": 64, "stride_am": 64, "stride_bk": 2048, "stride_cm": 2048}
    request = LaunchRequest((1024,), {**{name: Tensor(shape, "fp16") for name, shape in shapes.items()}, **sizes})
    candidates = [RankingCandidate(artifact, request, artifact.constants, label=str(at)) for at in range(2)]
    monkeypatch.setattr(ranking, "find_identical_binaries", lambda some: [*range(len(some))])
    monkeypatch.setattr(dram_traffic, "exceeds_l2", lambda *_: True)
    monkeypatch.setattr(ranking, "exceeds_l2", lambda *_: True)
    parts: list[int] = []
    real = shared_windows.record_window

    def record(*arguments: Any) -> Any:
        parts.append(len(arguments[-1]))
        return real(*arguments)

    monkeypatch.setattr(shared_windows, "record_window", record)
    for module in (ranking, shared_windows):
        monkeypatch.setattr(module, "map_in_processes", lambda function, numbers, _: map(function, numbers))
    disassemble = binary_disassembler()
    together = rank_launches(candidates, disassemble, processors=3)
    assert len(parts) == 3
    assert [(x.score, x.terms) for x in together] == [
        (x.score, x.terms) for x in rank_launches(candidates, disassemble)
    ]


def test_a_control_code_says_stall_scoreboards_and_waits() -> None:
    # IADD3 of an sm_90 cubin with control bits: stall 4, no yield, scoreboard 2 held, 0 and 5 awaited
    high = 4 << 41 | 2 << 46 | 7 << 49 | 0b100001 << 52
    (control,) = read_control_codes(bytes(8) + high.to_bytes(8, "little"))
    assert control == ControlCode(4, 2, None, (0, 5))


def test_sampled_ctas_meet_no_extent_of_the_grid_in_step() -> None:
    ctas = choose_ctas((32, 32, 1), 8)
    assert len({int(cta) % 32 for cta in ctas}) > 4
    assert len({int(cta) // 32 for cta in ctas}) > 4


def test_a_grid_smaller_than_the_sample_runs_whole() -> None:
    assert choose_ctas((3, 1, 1), 4).tolist() == [0, 1, 2]


def test_a_load_is_waited_for_by_its_scoreboard() -> None:
    load, use = ControlCode(1, 0, None, ()), ControlCode(1, None, None, (0,))
    costs = {0: StepCost("lsu", 4, 500, l2_cycles=10), 1: StepCost("alu", 1, 6)}
    # four cycles of the unit, ten of the way to the cache, the latency, then the use
    assert walk_cta((0, 1), (load, use), costs, 1, 20).cycles == 4 + 10 + 500 + 1


def test_loads_that_are_on_their_way_together_pay_the_latency_once() -> None:
    loads = [ControlCode(1, 0, None, ()), ControlCode(1, 1, None, ())]
    use = ControlCode(1, None, None, (0, 1))
    costs = {0: StepCost("lsu", 4, 500), 1: StepCost("lsu", 4, 500), 2: StepCost("alu", 1, 6)}
    assert walk_cta((0, 1, 2), (*loads, use), costs, 1, 20).cycles == 8 + 500 + 1


def test_a_product_keeps_shared_memory_busy_as_long_as_it_reads_its_operands() -> None:
    costs = {0: StepCost("tensor", 8, 60, shared_read_cycles=24), 1: StepCost("lsu", 4, 30)}
    found = walk_cta((0, 1), (FREE, ControlCode(1, 0, None, ())), costs, 1, 20)
    assert found.busy_cycles == {"tensor": 8, "lsu": 24 + 4}
    assert walk_cta((0, 1), (FREE, FREE), {0: costs[0].scaled_by(2), 1: costs[1]}, 1, 20).busy_cycles["lsu"] == 48 + 4


def test_a_wait_leaves_the_newest_groups_of_copies_under_way() -> None:
    costs = {
        0: StepCost("lsu", 1, 500, effect=SchedulingEffect.STARTS_COPY),
        1: StepCost(None, 0, 0, effect=SchedulingEffect.CLOSES_COPY_GROUP),
        2: StepCost(None, 0, 0, effect=SchedulingEffect.WAITS_FOR_COPIES, groups_left=1),
        3: StepCost(None, 0, 0, effect=SchedulingEffect.WAITS_FOR_COPIES, groups_left=0),
    }
    controls = (FREE,) * 4
    one_left = walk_cta((0, 1, 0, 1, 2), controls, costs, 1, 20).cycles
    none_left = walk_cta((0, 1, 0, 1, 3), controls, costs, 1, 20).cycles
    assert one_left == 501 + 1
    assert none_left == 503 + 1


def test_a_phase_ends_where_a_warp_waits_for_loads_that_it_issued_since() -> None:
    loads = [ControlCode(1, at, None, ()) for at in (0, 1)]
    first, second, both = (ControlCode(1, None, None, awaited) for awaited in ((0,), (1,), (0, 1)))
    controls = (*loads, first, second, both)
    load, use = StepCost("lsu", 4, 500, is_global=True), StepCost("alu", 1, 6)
    costs = {0: load, 1: load, 2: use, 3: use, 4: use}
    assert count_memory_waits((0, 1, 2, 3), controls, costs) == 1  # both were issued before the first wait
    assert count_memory_waits((0, 2, 1, 3, 0, 1, ~4, 4), controls, costs) == 3
    shared = {**costs, 0: StepCost("lsu", 4, 30)}
    copies = {**shared, 3: StepCost(None, 0, 0, effect=SchedulingEffect.WAITS_FOR_COPIES)}
    assert count_memory_waits((0, 2, 0, 2), controls, shared) == 0
    assert count_memory_waits((0, 2, 3, 3), controls, copies) == 2


def test_ctas_whose_starts_are_spread_over_more_phases_compete_less(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, waits = gpu_model_of(parse_target("sm_90"), "H200"), [1]
    monkeypatch.setattr(ranking, "count_memory_waits", lambda *_: waits[0])
    monkeypatch.setattr(ranking, "_walk_lockstep", lambda *_: SimpleNamespace(cycles=9 * 157.0))
    sample = SimpleNamespace(loaded=SimpleNamespace(threads=32), trace=())

    def share(resident: int, model: Any = gpu) -> float:
        return ranking._share_in_step(sample, SimpleNamespace(step_costs={}), (), model, resident)  # type: ignore[arg-type]

    assert [share(1), share(10)] == [1.0, 1.0]
    assert share(37) == 0.5  # the last starts four phases after the first
    waits[0] = 4
    assert share(10) == 0.5
    assert share(10, with_launch_timing(gpu, 1.0, 0.0)) == 1.0  # a predicted time


def test_ctas_that_share_units_are_never_faster_than_the_busiest_unit_nor_than_each_alone() -> None:
    demands, alone = [100.0, 40.0], 1000.0
    rates = [_throughput(count, demands, alone) for count in range(1, 33)]
    assert rates == sorted(rates)
    for count, rate in enumerate(rates, 1):
        assert rate <= 1 / 100
        assert rate <= count / alone * (1 + 1e-9)
    assert rates[0] == 1 / alone
    assert rates[-1] > 0.95 / 100


def test_what_does_not_fit_stands_behind_what_has_no_score() -> None:
    rows = [row(0, None, fits=False), row(1, None), row(2, 9.0), row(3, 5.0)]
    assert [found.launch for found in sort_by_score(rows)] == [3, 2, 1, 0]


def test_why_nothing_is_ranked_is_told_once() -> None:
    found = [replace(row(place, None), missing_inputs=("control codes",)) for place in range(3)]
    console = Console(width=100)
    with console.capture() as told:
        console.print(RankingReport(found))
    assert told.get() == "not ranked: hash and 2 more: unknown inputs: control codes\n"


def test_a_grid_that_should_be_an_expression_may_hold_the_constants_that_are_named() -> None:
    with pytest.raises(UsageError, match="may differ for each BM") as found:
        request_for_variations(LaunchRequest((24,), {"M": 64}), {"BM": ("32", "64")}, None, ["BM", "BN"])
    assert "(BM, BN): --grid" in str(found.value.remedy)


def _described(block: list[int], grid: tuple[int, ...], hash_: str, **options: int) -> RankingCandidate:
    shape = {"shape": [512, 512], "stride": [512, 1], "dtype": "float16", "block_shape": block}
    (request,) = parse_document_of({"grid": list(grid), "args": {"a_desc": shape, "M": 512}}, "record")
    artifact = replace(saved("3.6.0/sm_80/matmul_grouped").artifact, hash=hash_, metadata=options)
    return RankingCandidate(artifact, request, {})


def test_labels_of_descriptor_kernels_have_block_shapes_and_the_grid() -> None:
    """Such kernels may have no constant that says how large their blocks are."""
    blocks = [_described([128, 64], (4, 8), "a", num_warps=4), _described([64, 64], (8, 8), "b", num_warps=8)]
    assert label_candidates(blocks) == ["a_desc=128x64 num_warps=4", "a_desc=64x64 num_warps=8"]
    # a Gluon kernel: the same block shape, and only options and the grid differ
    grids = [_described([64, 64], (8, 8, 1), "a", num_warps=4), _described([64, 64], (132, 1, 1), "b", num_warps=4)]
    assert label_candidates(grids) == ["grid=8x8", "grid=132"]
    three = [*blocks, _described([64, 64], (132,), "c", num_warps=8)]
    assert len(set(label_candidates(three))) == 3
    assert label_candidates(three)[2] == "a_desc=64x64 num_warps=8 grid=132"


def test_block_shapes_are_not_another_ranking_problem() -> None:
    one, other = _described([128, 64], (4,), "a"), _described([64, 64], (8,), "b")
    assert one.request.arguments == other.request.arguments


def test_launches_of_two_releases_or_edits_have_different_labels() -> None:
    old, new = (saved(f"{release}/gfx942/gemv_splitk").artifact for release in ("3.6.0", "3.9.0"))
    request = LaunchRequest(("1",), {"stride_bk": 64})
    candidates = [RankingCandidate(one, request, {}) for one in (old, new)]
    assert label_candidates(candidates) == ["triton=3.6.0", "triton=3.9.0"]
    edited = replace(candidates[0], artifact=replace(old, hash="f" * 64))
    assert label_candidates([candidates[0], edited]) == [f"hash={old.hash[:8]}", f"hash={'f' * 8}"]


@pytest.mark.parametrize("place", ["3.6.0/gfx90a", "3.6.0/gfx942", "3.6.0/gfx950", "3.9.0/gfx906"])
def test_amd_launches_get_a_score_and_say_that_no_gpu_confirmed_it(place: str) -> None:
    request = parse_document(
        '{"grid": [28, 32], "args": {"a_ptr": {"shape": [4096], "dtype": "fp16"}, "stride_bk": 7168,'
        ' "b_ptr": {"shape": [4096, 7168], "dtype": "fp16"}, "c_ptr": {"shape": [7168], "dtype": "fp32"}}}',
        "a test",
    )[0]
    artifact = saved(f"{place}/gemv_splitk").artifact
    (row,) = rank_launches([RankingCandidate(artifact, request, {})], None)
    assert row.score is not None
    assert row.score >= max(row.terms.values()) / 2
    assert row.terms["dram"] > 0
    assert AMD_NOTE in row.notes
    peaks, product = find_peaks(gpu_model_of(artifact.target, None).name), artifact.target.gpu.product
    assert peaks is not None
    assert product is not None
    # no launch is faster than its bytes at the data sheet's bandwidth
    assert row.score / (product.megahertz * 1e6) >= 4096 * 7168 * 2 / peaks.bandwidth


@pytest.mark.long
def test_exactly_the_binaries_that_compute_garbage_have_a_warning(tmp_path: Path) -> None:
    """A GPU found two of four binaries of one kernel wrong: ptxas reads a register that nothing has written."""
    with tarfile.open(Path(__file__).parents[1] / "cases/compiler_errors/mxfp4.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    entries = open_cache(tmp_path / "mxfp4").entries
    shapes = {"a": ("bf16", [64, 256]), "b": ("u8", [128, 64]), "sc": ("u8", [8, 64]), "c": ("bf16", [64, 64])}
    tensors = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in shapes.items()}
    (request,) = parse_document_of({"grid": [2, 1], "args": {**tensors, "M": 64, "N": 64, "K": 256}}, "a test")
    disassemble = make_disassembler(entries, None, sass=True)
    warnings = {}
    for entry in entries:
        candidates = [RankingCandidate(entry, request, entry.constants)]
        (row,) = warn_of_unwritten_registers(rank_launches(candidates, disassemble), candidates, disassemble)
        warnings[entry.directory.rpartition("/")[2]] = [note for note in row.notes if "computes garbage" in note]
    assert {name for name, notes in warnings.items() if notes} == {"wrong_w4_s2", "wrong_w4_s4"}
    assert len(warnings) == 4
    assert "UR14, UR15, which no instruction has written" in warnings["wrong_w4_s2"][0]


def test_a_constant_that_the_kernel_lacks_is_refused_with_its_constants() -> None:
    artifact = saved("3.6.0/sm_80/matmul_grouped").artifact
    if artifact.requested_kernel is None:
        artifact = replace(artifact, requested_kernel="k.py:k")
    check_variations(artifact, ["num_warps"])
    with pytest.raises(UsageError, match="has no constant BLOCK_SIZE_Q"):
        check_variations(artifact, ["BLOCK_SIZE_Q"])
