"""The predicted times of a pair: the ratio of both, or why it is unknown."""

from __future__ import annotations

import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES, ROOT, saved

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.api import pair_prices
from artifact_inspector.api.launches import predict_launches
from artifact_inspector.api.pair_prices import SAMPLE_ERROR, WHOLE_SECONDS, find_pair_launch, predict_pair, recall_price
from artifact_inspector.comparison.corpus import compare_candidates
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.comparison.pair_price import SAME_WITHIN, LaunchWork, LineConflicts, PairPrice, WorkKind
from artifact_inspector.diagnosis import diagnose, launch_model
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_argument
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.residency import find_residency
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.disassembly import find_disassembler
from artifact_inspector.files.index import Index
from artifact_inspector.files.objdump import binary_disassembler
from artifact_inspector.hardware.timing import BOUNDS
from artifact_inspector.vocabulary.fact import Sign

ARGUMENTS = ("desc=bf16[4096,4096]", "out=fp32[4096]", "M=4096", "N=4096")
COLMAX = LaunchRequest(("32",), dict(map(parse_argument, ARGUMENTS)))


@pytest.mark.long
def test_a_regression_costs_what_was_reported(tmp_path: Path) -> None:
    """triton#9703 reports 1.84× for this tile on an H100."""
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    entries = open_cache(tmp_path / "reduction_across_warps").entries
    old, new = sorted(entries, key=lambda entry: str(entry.triton_version))
    price = predict_pair(old, new, COLMAX, binary_disassembler(find_disassembler(None)))
    assert price.ratio is not None
    assert 1.84 / 1.15 < price.ratio < 1.84 * 1.15
    times = f"{price.left_microseconds:.3g} → {price.right_microseconds:.3g} µs"
    assert price.sentence.startswith(
        f"Predicted time: {price.ratio:.2f}× the old one ({times}), largest cost: latency (grid 32 M=4096"
    )
    mirror = predict_pair(new, old, COLMAX, binary_disassembler(find_disassembler(None)))
    assert mirror.ratio == pytest.approx(1 / price.ratio)
    candidate = RankingCandidate(new, COLMAX, new.constants)
    residency = find_residency(candidate, binary_disassembler(find_disassembler(None)))
    assert price.right_overlap == mirror.left_overlap
    assert price.right_overlap == pytest.approx(residency.hidden_wait_share, abs=0.01)


@pytest.mark.parametrize(
    ("left", "right", "problem"), [("3.6.0/sm_80/softmax", "3.6.0/sm_90/softmax", "it has no readable machine code")]
)
def test_a_price_that_is_unknown_says_why(left: str, right: str, problem: str) -> None:
    price = predict_pair(saved(left).artifact, saved(right).artifact, LaunchRequest(("1",), {}), None)
    assert price.ratio is None
    assert problem in price.problem
    assert price.sentence.startswith("Predicted time: unknown (")


def test_a_kernel_without_a_cubin_is_predicted_from_its_ptx(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = saved("3.6.0/sm_80/copy").artifact
    without = replace(
        kernel, files={name: file for name, file in kernel.files.items() if name not in ("cubin", "sass")}
    )
    assert "cubin" in kernel.files
    launch = LaunchRequest(("64",), dict(map(parse_argument, ("x_ptr=fp16[32768]", "y_ptr=fp16[32768]", "n=32768"))))
    disassemble = binary_disassembler(find_disassembler(None))
    assert predict_pair(kernel, without, launch, disassemble).ratio == pytest.approx(1, rel=0.02)
    monkeypatch.setattr(
        launch_model, "occupancy_of", lambda *_: Occupancy("SM", None, None, 64, (), {}, ("registers",))
    )
    assert predict_pair(kernel, without, launch, disassemble).problem == (
        "the old kernel depends on its registers, which no file states"
    )


def test_a_copy_takes_as_long_as_both_vendors_data_sheets_say() -> None:
    """Device memory bounds it: 2039 GB/s of an A100, 5300 GB/s of an MI300X."""
    count = 1 << 28
    arguments = (f"x_ptr=fp16[{count}]", f"y_ptr=fp16[{count}]", f"n={count}")
    launch = LaunchRequest((str(count // 512),), dict(map(parse_argument, arguments)))
    sides = [saved(f"3.6.0/{target}/copy").artifact for target in ("sm_80", "gfx942")]
    price = predict_pair(*sides, launch, binary_disassembler(find_disassembler(None)))
    assert price.ratio == pytest.approx(2039 / 5300, rel=0.1)
    assert "NVIDIA A100" in price.sentence
    assert (
        "AMD Instinct MI300X, a sample of its CTAs; times of AMD GPUs were not compared with hardware). While a warp waits"
        in price.sentence
    )
    assert price.sentence.endswith(
        f"others work in {100 * (price.left_overlap or 0):.0f} → {100 * (price.right_overlap or 0):.0f} % of the cycles."
    )
    assert price.facts == {}


def test_the_roofline_of_a_copy_counts_no_writes_that_stay_in_l2() -> None:
    """An A100 keeps 25/60 of its 40 MiB; the rest, and all that is read, moves at the rate of the prediction."""
    count = 1 << 24
    arguments = (f"x_ptr=fp16[{count}]", f"y_ptr=fp16[{count}]", f"n={count}")
    launch = LaunchRequest((str(count // 512),), dict(map(parse_argument, arguments)))
    copy = saved("3.6.0/sm_80/copy").artifact
    candidate = RankingCandidate(copy, launch, copy.constants)
    model = launch_model.model_launch(candidate, binary_disassembler(find_disassembler(None)))
    time = model.launch_time
    assert time is not None
    moved = 4 * count - (40 << 20) * 25 / 60
    rate = time.gpu.dram_bytes_per_cycle * time.gpu.timing.dram_share
    roofline = time.microseconds(model.sample, moved / rate)
    assert diagnose.describe(model, []).roofline_microseconds == pytest.approx(roofline, rel=1e-3)
    assert roofline <= (diagnose.microseconds_of(model) or 0)


def test_facts_of_amd_kernels_have_prices() -> None:
    """More barriers; the reduction through half the shared memory takes more rounds, so it has no price."""
    old, new = (saved(f"{release}/gfx942/gemv_splitk") for release in ("3.6.0", "3.9.0"))
    arguments = ("a_ptr=fp16[1024]", "b_ptr=fp16[1024,512]", "c_ptr=fp32[512]", "stride_bk=512")
    launch = LaunchRequest(("2", "8"), dict(map(parse_argument, arguments)))
    facts = compare_kernels(old.facts, new.facts).facts
    price = predict_pair(old.artifact, new.artifact, launch, None, facts=[fact for fact in facts if fact.differs])
    mirror = predict_pair(new.artifact, old.artifact, launch, None)
    assert price.ratio == pytest.approx(1 / (mirror.ratio or 1))
    assert "shared.reduction across warps" not in price.facts


def test_ratios_near_one_are_equal() -> None:
    price = PairPrice(1.01, 100.0, 101.0, "dram", "dram", "grid 1", "H100")
    assert (
        price.sentence
        == "Predicted time: equal (1.01×), largest cost: device memory (grid 1, H100, a sample of its CTAs)."
    )


def test_a_line_is_decisive_only_if_its_bank_conflicts_changed() -> None:
    same, more = LineConflicts("k.py:1", 5.0, 5.0), LineConflicts("k.py:2", 1.0, 3.0)
    price = PairPrice(1.5, 100.0, 150.0, "lsu", "lsu", "grid 1", "H100", bank_conflicts=(same,))
    assert price.decisive_conflicts is None
    assert replace(price, bank_conflicts=(same, more)).decisive_conflicts == more
    assert replace(price, bank_conflicts=(same, more), right_bottleneck="dram").decisive_conflicts is None
    fewer = LineConflicts("k.py:3", 9.0, 1.0)  # more than the other line has gained: conflicts are not what got worse
    assert replace(price, bank_conflicts=(more, fewer)).decisive_conflicts is None


def test_the_work_of_the_bounding_unit_is_decisive_if_it_changed_with_the_time() -> None:
    read, executed = (
        LaunchWork(WorkKind.DEVICE_READS, WorkKind.DEVICE_READS, 4.02e8, 2.68e8),
        LaunchWork(WorkKind.INSTRUCTIONS, WorkKind.INSTRUCTIONS, 900, 3_000),
    )
    price = PairPrice(0.8, 100.0, 80.0, "dram", "lsu", "grid 1", "H100", work=(executed, read))
    assert price.decisive_work == read
    assert "Per launch: warp instructions 900 → 3k, bytes read from device memory 402M → 268M" in price.sentence
    assert replace(price, left_bottleneck="issue").decisive_work is None  # more instructions in less time
    slower = replace(price, ratio=1.5, right_bottleneck="issue")
    assert slower.decisive_work == executed
    assert replace(slower, ratio=1.0).decisive_work is None


def test_work_is_that_of_a_whole_simulation() -> None:
    disassemble = binary_disassembler(find_disassembler(None))
    (entry,) = open_cache(FIXTURES / "3.6.0" / "sm_90" / "softmax").entries
    launches = []
    for rows in (1024, 512):
        size = f"fp16[{1 << 20}]"
        arguments = (f"x_ptr={size}", f"y_ptr={size}", "stride_x=1024", "stride_y=1024", "n_cols=1024")
        launches.append(LaunchRequest((str(rows),), dict(map(parse_argument, arguments))))
    whole = [one.counters for one in predict_launches([(entry, one) for one in launches], disassemble)]
    work = {
        row.amount: (row.left, row.right)
        for row in predict_pair(entry, entry, (launches[0], launches[1]), disassemble).work
    }
    assert work == {
        "sectors loaded from x_ptr": tuple(one.global_load_sectors for one in whole),
        "sectors stored to y_ptr": tuple(one.global_store_sectors for one in whole),
        WorkKind.DEVICE_READS: (2 << 20, 1 << 20),
        WorkKind.WAVEFRONTS: tuple(one.shared_wavefronts for one in whole),
        WorkKind.INSTRUCTIONS: tuple(one.instructions for one in whole),
    }
    assert predict_pair(entry, entry, launches[0], disassemble).work == ()


def test_each_kernel_has_its_own_launch_if_the_arguments_agree(tmp_path: Path) -> None:
    """Kernels with other tiles, as after an edit of the source."""
    names = ("softmax", "gemv_splitk")
    for name in names:
        shutil.copytree(ROOT / "fixtures" / "3.6.0" / "sm_90" / name, tmp_path / name)
    old, new = (open_cache(tmp_path / name).entries[0] for name in names)
    roots = [tmp_path / name for name in names]

    def record(root: Path, kernel_hash: str, grid: int, count: int, dtype: str = "float16") -> None:
        tensor = {"shape": [64], "dtype": dtype, "alignment": 16 * grid}
        row = {"hash": kernel_hash, "grid": [grid, 1, 1], "args": {"x_ptr": tensor, "n": count}}
        document = {"schema_version": 1, "entries": [], "launches": [row]}
        (root / "inspect-kernel.json").write_text(json.dumps(document), encoding="utf-8")

    for root in roots:
        (root / "inspect-kernel.json").unlink(missing_ok=True)
    assert find_pair_launch(old, new, roots) is None
    record(roots[0], old.hash, 4, 64)
    with pytest.raises(UsageError, match="only one kernel"):
        find_pair_launch(old, new, roots)
    record(roots[1], new.hash, 8, 64)
    launches = find_pair_launch(old, new, roots)
    assert launches is not None
    assert [launch.grid for launch in launches] == [(4, 1, 1), (8, 1, 1)]
    record(roots[1], new.hash, 8, 64, "float32")
    launches = find_pair_launch(old, new, roots)
    assert launches is not None
    assert [launch.arguments["x_ptr"].dtype for launch in launches] == ["float16", "float32"]
    record(roots[1], new.hash, 8, 65, "float32")
    with pytest.raises(UsageError, match="old and the new kernel differ in arguments: n 64 → 65, x_ptr float16"):
        find_pair_launch(old, new, roots)
    record(roots[1], new.hash, 8, 65)
    with pytest.raises(UsageError, match="differ in arguments"):
        find_pair_launch(old, new, roots)
    # equal kernels do the same work, whatever is on record of the other one
    assert find_pair_launch(old, old, roots[:1]) is not None


def test_a_second_run_takes_prices_from_the_result_cache(tmp_path: Path) -> None:
    pair = (saved("3.6.0/sm_80/copy").artifact, saved("3.6.0/gfx942/copy").artifact)
    price = PairPrice(
        1.5, 100.0, 150.0, "lsu", "lsu", "grid 1", "H100", facts={"spills": 1.2},
        bank_conflicts=(LineConflicts("copy.py:11", 0.0, 2.5),), work=(LaunchWork(WorkKind.INSTRUCTIONS, WorkKind.INSTRUCTIONS, 4, 8),),
    )  # fmt: skip
    calls: list[str] = []

    def predict() -> PairPrice:
        calls.append("")
        return price

    def open_index() -> Index:
        return Index(tmp_path / "index.sqlite", pytest.fail)

    assert [recall_price(open_index, pair, COLMAX, predict) for _ in range(3)] == [price] * 3
    assert len(calls) == 1
    recall_price(open_index, pair, replace(COLMAX, grid=("64",)), predict)
    recall_price(None, pair, COLMAX, predict)
    recall_price(open_index, pair, COLMAX, predict, "H20")
    assert len(calls) == 4
    assert price.sentence.endswith("Bank conflicts per warp and trip: copy.py:11 0 → 2.5.")


def test_the_traffic_of_a_kernel_is_simulated_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    monkeypatch.setattr(pair_prices, "fetched_bytes", lambda *sizes: calls.append(sizes) or {"x_ptr": 4.0})
    candidate = RankingCandidate(saved("3.6.0/sm_80/copy").artifact, COLMAX, {})
    other = replace(candidate, request=replace(COLMAX, grid=("64",)))

    def open_index() -> Index:
        return Index(tmp_path / "index.sqlite", pytest.fail)

    for one in (candidate, candidate, other):
        assert pair_prices._stored_traffic(open_index, one)(None, 2, 108) == {"x_ptr": 4.0}
    assert len(calls) == 2
    assert pair_prices._stored_traffic(None, candidate) is pair_prices.fetched_bytes


def test_arguments_on_record_that_are_no_object_are_missing(tmp_path: Path) -> None:
    (entry,) = open_cache(ROOT / "fixtures" / "3.6.0" / "sm_80" / "copy").entries
    row = {"kernel": "copy", "hash": entry.hash, "grid": [1], "args": "../../outside/secret.txt"}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"launches": [row]}))
    pair = find_pair_launch(entry, entry, [tmp_path])
    assert pair is not None
    assert pair[0].arguments == {}
    price = predict_pair(entry, entry, pair, lambda *_: "")
    assert price.ratio is None


def test_a_compared_time_is_that_of_predict() -> None:
    """CTAs that end and start one by one count in both: many short ones take a quarter longer than full waves."""
    n = 1 << 20
    arguments = (f"x_ptr=fp16[{n}]", f"y_ptr=fp16[{n}]", "stride_x=1024", "stride_y=1024", "n_cols=1024")
    launch = LaunchRequest(("1024",), dict(map(parse_argument, arguments)))
    (entry,) = open_cache(FIXTURES / "3.6.0" / "sm_90" / "softmax").entries
    disassemble = binary_disassembler(find_disassembler(None))
    time = predict_launches([(entry, launch)], disassemble)[0].time
    price = predict_pair(entry, entry, launch, disassemble)
    assert time is not None
    assert price.right_microseconds == pytest.approx(time.us, rel=0.01)


def test_no_whole_launch_is_simulated_for_a_price_that_stays_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("x_ptr=fp16[4096]", "y_ptr=fp16[4096]", "stride_x=1024", "stride_y=1024", "n_cols=1024")
    launch = LaunchRequest(("4",), dict(map(parse_argument, arguments)))
    (entry,) = open_cache(FIXTURES / "3.6.0" / "sm_90" / "softmax").entries
    monkeypatch.setattr(pair_prices, "find_missing_inputs", lambda sample: ("the content of local memory",))
    monkeypatch.setattr(pair_prices, "predict_launches", None)  # calling it fails
    price = predict_pair(entry, entry, launch, binary_disassembler(find_disassembler(None)))
    assert price.problem == "it depends on the content of local memory"


@pytest.mark.parametrize("seconds", [WHOLE_SECONDS, 0.0])
def test_a_compared_time_merges_the_reads_that_ctas_share_or_says_that_it_does_not(seconds: float) -> None:
    """CTAs of a matrix product share operands: a sample of them takes longer than their share of the launch."""
    tensors = ("a_ptr=fp16[65536]", "b_ptr=fp16[65536]", "c_ptr=fp16[524288]")
    sizes = ("N=1024", "K=64", "stride_am=64", "stride_bk=1024", "stride_cm=1024")
    disassemble = binary_disassembler(find_disassembler(None))
    sides = open_cache(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped").entries[:1] * 2
    launches = (
        LaunchRequest(("128",), dict(map(parse_argument, (*tensors, "M=512", *sizes)))),
        LaunchRequest(("64",), dict(map(parse_argument, (*tensors, "M=256", *sizes)))),
    )
    price = predict_pair(*sides, launches, disassemble, whole_seconds=seconds)
    times = [predict_launches([pair], disassemble)[0].time for pair in zip(sides, launches, strict=True)]
    assert (price.is_sampled, price.same_within) == ((False, SAME_WITHIN) if seconds else (True, SAMPLE_ERROR))
    assert ("a sample of its CTAs" in price.sentence) is price.is_sampled
    exact = [(price.left_microseconds, price.left_bottleneck), (price.right_microseconds, price.right_bottleneck)]
    whole = [(time.us, time.bound) for time in times if time is not None]
    assert ([(us, BOUNDS[unit or ""]) for us, unit in exact] == whole) is not price.is_sampled
    near = replace(price, ratio=1.1)
    assert (near.direction is Sign.NEUTRAL, "within the error of 15%" in near.sentence) == (price.is_sampled,) * 2


def test_each_side_is_priced_on_its_own_product() -> None:
    old, new = (saved(f"3.6.0/{target}/softmax").artifact for target in ("sm_75", "gfx90a"))
    arguments = ("x_ptr=fp16[65536]", "y_ptr=fp16[65536]", "stride_x=1024", "stride_y=1024", "n_cols=1024")
    launch = LaunchRequest(("64",), dict(map(parse_argument, arguments)))
    disassemble = binary_disassembler(find_disassembler(None))
    assert predict_pair(old, new, launch, disassemble, ("T4", "MI250X")).gpu.endswith("→ AMD Instinct MI250X")
    assert predict_pair(old, new, launch, disassemble).gpu.endswith("→ AMD Instinct MI210")


def test_bank_conflicts_of_copies_are_the_cause_where_no_unit_explains_the_time() -> None:
    more = LineConflicts("matmul.py:82", 0.0, 15.6)
    wavefronts = LaunchWork(WorkKind.WAVEFRONTS, WorkKind.WAVEFRONTS, 100, 120)
    price = PairPrice(1.1, 100.0, 110.0, "l2", "l2", "grid 1", "A100", bank_conflicts=(more,), work=(wavefronts,))
    assert price.cause == ("bank conflicts per warp and trip 0 → 15.6, at matmul.py:82", 1.2)
    assert price.decisive_conflicts is None
    read = LaunchWork(WorkKind.LOADS, "sectors loaded from a_ptr", 100, 150)
    assert replace(price, work=(read, wavefronts)).cause == ("sectors loaded from a_ptr 100 → 150", 1.5)
    assert replace(price, ratio=0.9).cause is None
    assert replace(price, ratio=1.0).cause is None


@pytest.mark.long
def test_copies_that_conflict_are_found_on_their_line() -> None:
    """3.9 swizzles A's tile in another way: its cp.async stores take twice the wavefronts."""
    entries = [open_cache(FIXTURES / release / "sm_80" / "matmul_grouped").entries[0] for release in ("3.6.0", "3.9.0")]
    tensors = [f"{name}=fp16[256,256]" for name in ("a_ptr", "b_ptr", "c_ptr")]
    sizes = [f"{name}=256" for name in ("M", "N", "K", "stride_am", "stride_bk", "stride_cm")]
    launch = LaunchRequest(("16",), dict(map(parse_argument, (*tensors, *sizes))))
    price = predict_pair(*entries, launch, binary_disassembler(find_disassembler(None)))
    assert [(one.source, one.left < one.right) for one in price.bank_conflicts] == [
        ("matmul_grouped.py:82", True), ("matmul_grouped.py:83", False),
    ]  # fmt: skip


@pytest.mark.long
def test_sectors_of_one_vendor_are_not_compared_with_those_of_another() -> None:
    entries = [open_cache(FIXTURES / "3.6.0" / target / "copy").entries[0] for target in ("sm_80", "gfx942")]
    launch = LaunchRequest(
        ("64",), dict(map(parse_argument, ("x_ptr=fp16[1048576]", "y_ptr=fp16[1048576]", "n=1048576")))
    )
    price = predict_pair(*entries, launch, binary_disassembler(find_disassembler(None)))
    assert {row.kind for row in price.work} <= {WorkKind.DEVICE_READS}
    assert price.ratio is not None


@pytest.mark.parametrize(
    ("ratio", "sides", "limit"),
    [
        (1.2, ("dram", "double"), "double precision limits it"),
        (0.8, ("double", "dram"), "double precision limits the old one only"),
        (1.2, ("double", "double"), ""),
        (1.2, ("double", "dram"), ""),
        (1.0, ("dram", "double"), ""),
        (1.2, ("dram", "lsu"), ""),
    ],
)
def test_a_sum_in_fp64_is_named_where_it_limits_one_side(ratio: float, sides: tuple[str, str], limit: str) -> None:
    """No fact of the code has fp64 instructions: more shared memory was named for a sum of twice as wide numbers."""
    assert PairPrice(ratio, 100.0, 120.0, *sides, "grid 1", "A10").new_limit == limit


def test_two_gpus_are_compared_by_their_own_rooflines_too() -> None:
    """A copy is as near to the roofline on both, though one GPU has 2.6 times the bandwidth; one GPU needs no share."""
    count = 1 << 24
    arguments = (f"x_ptr=fp16[{count}]", f"y_ptr=fp16[{count}]", f"n={count}")
    launch = LaunchRequest((str(count // 512),), dict(map(parse_argument, arguments)))
    old, new = (saved(f"3.6.0/{target}/copy").artifact for target in ("sm_80", "gfx942"))
    disassemble = binary_disassembler(find_disassembler(None))
    price = predict_pair(old, new, launch, disassemble)
    alone = predict_launches([(old, launch)], disassemble)[0].time
    assert alone is not None
    assert price.left_microseconds == alone.us  # of all CTAs, also beside a GPU whose times are those of a sample
    shares = [price.left_roofline or 0.0, price.right_roofline or 0.0]
    assert shares[0] > 0.7
    assert price.standing == f", at {100 * shares[0]:.0f} → {100 * shares[1]:.0f} % of each GPU's roofline"
    assert f"µs){price.standing}, largest cost: device memory" in price.sentence
    pair = compare_candidates(Candidate(old), Candidate(new), inspect_artifact).with_price(price)
    assert price.standing in pair.sentence
    assert predict_pair(old, old, launch, disassemble).standing == ""
