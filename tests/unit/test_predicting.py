"""Which launch is meant where none is given, and what to do where there can be none."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from launched import gemv
from saved import FIXTURES

from artifact_inspector.api import launches, workloads
from artifact_inspector.api.advice import diagnose_launches
from artifact_inspector.api.launches import predict_launches
from artifact_inspector.api.ranking_problems import rank_recorded, rank_variants, reference_pairs
from artifact_inspector.cli._loading import open_cache_or_fail
from artifact_inspector.compiling.ask.manifest import add_to_manifest, read_launches
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.cta_order import CtaOrder, Wave
from artifact_inspector.execution.launch import Tensor
from artifact_inspector.execution.launch_counters import CounterRange
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document_of, parse_recorded
from artifact_inspector.files import digests
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.tensor_values import MAX_INLINE_ELEMENTS
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.prediction import describe_counters, describe_order


def _cache(root: Path, *rows: dict[str, Any]) -> Path:
    """A cache with an entry for each row of its record."""
    for row in rows:
        directory = root / row["directory"]
        directory.mkdir()
        (directory / "k.ptx").write_text(".version 8.0\n.target sm_80\n.visible .entry k()\n{\n ret;\n}\n")
    (root / "inspect-kernel.json").write_text(json.dumps({"entries": rows}))
    return root


def test_a_whole_name_means_that_kernel_though_another_begins_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = ("matmul_persistent", "matmul_persistent_descriptor")
    root = _cache(tmp_path, *({"place": place, "directory": place} for place in places))
    ran: list[str | None] = []

    def run(entry: Artifact, out: Path) -> tuple[tuple[LaunchRequest, ...], tuple[()]]:
        ran.append(entry.requested_kernel)
        return (LaunchRequest((1,), {}, "one"), LaunchRequest((2,), {}, "two")), ()

    monkeypatch.setattr(workloads, "run_workload", run)
    for name in places:
        assert launches.recorded_launches(open_cache(root), name) == (LaunchRequest((1,), {}, None),)
    assert launches.recorded_launches(open_cache(root), None) == ()  # which of the two is not said
    assert tuple(ran) == places


def test_a_workload_is_captured_once_for_each_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
    values, ran = list(range(MAX_INLINE_ELEMENTS + 1)), list[str]()

    def run(entry: Artifact, out: Path) -> tuple[tuple[LaunchRequest, ...], tuple[()]]:
        ran.append(str(entry.target))
        tensor = {"dtype": "int32", "shape": [len(values)], "values": values}
        out.mkdir(exist_ok=True)
        add_to_manifest(out, (), [{"kernel": "k", "hash": "a" * 64, "grid": [2], "args": {"x": tensor}}])
        return parse_recorded(read_launches(out), out), ()

    monkeypatch.setattr(workloads, "run_workload", run)
    root = _cache(tmp_path, {"place": "softmax", "directory": "entry", "constants": {}})
    (entry,) = open_cache(root).entries
    first, again = workloads.kept_workload(entry), workloads.kept_workload(entry)
    assert ran == ["sm_80"]
    assert [launch.arguments["x"].values.elements.tolist() for launch in (*first, *again)] == [values] * 2
    workloads.kept_workload(replace(entry, target=parse_target("sm_90")))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "off")
    workloads.kept_workload(entry)
    assert ran == ["sm_80", "sm_90", "sm_80"]


@pytest.mark.parametrize(("changed", "times"), [("", 1), ("compiling", 2)])
def test_a_workload_is_captured_again_only_after_a_change_of_what_captures_it(
    changed: str, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
    ran: list[str] = []

    def run(entry: Artifact, out: Path) -> tuple[tuple[LaunchRequest, ...], tuple[()]]:
        ran.append(str(entry.target))
        out.mkdir(exist_ok=True)
        add_to_manifest(out, (), [{"kernel": "k", "hash": "a" * 64, "grid": [2], "args": {"x": 1}}])
        return parse_recorded(read_launches(out), out), ()

    monkeypatch.setattr(workloads, "run_workload", run)
    root = _cache(tmp_path, {"place": "softmax", "directory": "entry", "constants": {}})
    (entry,) = open_cache(root).entries
    workloads.kept_workload(entry)
    digest = digests.package_digest
    monkeypatch.setattr(
        digests, "package_digest", lambda **options: b"new" if options["part"] == changed else digest(**options)
    )
    workloads.kept_workload(entry)
    assert len(ran) == times


@pytest.mark.long
def test_the_variants_of_a_workload_are_ranked_in_the_order_of_their_constants(tmp_path: Path) -> None:
    """Two processes compile them, in no certain order; the workload fills no matrix."""
    pytest.importorskip("triton")
    root = _cache(tmp_path, {"place": "softmax", "directory": "entry", "constants": {"BLOCK_SIZE": 2048}})
    pairs = reference_pairs(open_cache(root), None, ())
    varied = {"num_warps": ("16", "4", "8"), "num_stages": ("2",)}
    problem = rank_variants(pairs, varied, None, tmp_path / "out", is_recorded=True)
    assert problem.failed == ()
    assert [candidate.artifact.metadata["num_warps"] for candidate in problem.candidates] == [4, 8, 16]
    assert len({candidate.request.kernel_hash for candidate in problem.candidates}) == 3
    assert len({tuple(candidate.request.arguments["x_ptr"].shape) for candidate in problem.candidates}) == 1


@pytest.mark.exhaustive
def test_a_workload_is_launched_in_every_configuration_that_is_tried(tmp_path: Path) -> None:
    root = _cache(tmp_path, {"place": "softmax", "directory": "entry", "constants": {"BLOCK_SIZE": 1024}})
    (entry,) = open_cache(root).entries
    with pytest.raises(UsageError, match="has no constant BLOCK"):
        rank_variants([(entry, LaunchRequest((1,), {}))], {"BLOCK": ("8",)}, None, tmp_path / "out", is_recorded=True)
    tries = {"num_warps": ("4", "8"), "BLOCK_SIZE": ("1024", "1000")}
    found = rank_variants([(entry, LaunchRequest((1,), {}))], tries, None, tmp_path / "out", is_recorded=True)
    assert [one.artifact.num_warps for one in found.candidates] == [4, 8]
    assert all(one.constants["BLOCK_SIZE"] == 1024 for one in found.candidates)
    assert len(found.failed) == 2
    assert all("BLOCK_SIZE=1000" in label and "power of 2" in why for label, why in found.failed)


def test_each_problem_on_record_has_a_winner_of_its_own(tmp_path: Path) -> None:
    rows = [{"directory": f"e{block}", "constants": {"BLOCK": block}} for block in (64, 128)]
    entries = {entry.constants["BLOCK"]: entry for entry in open_cache(_cache(tmp_path, *rows)).entries}

    def launch(block: int, n: int, extent: int) -> tuple[Artifact, LaunchRequest]:
        held = {"x": Tensor((extent,), "fp16"), "n": n, "BLOCK": block}
        return entries[block], LaunchRequest((n // block,), held)

    pairs = [launch(block, n, 8 * n) for n in (1024, 4096) for block in (64, 128)]
    contest = rank_recorded(pairs)
    assert contest.problem_labels == ("k sm_80 n=1024",) * 2 + ("k sm_80 n=4096",) * 2
    assert [one.label for one in contest.candidates] == ["BLOCK=64", "BLOCK=128"] * 2
    shapes = rank_recorded([launch(64, 1024, 8), launch(128, 1024, 8), launch(64, 1024, 16)])
    assert shapes.problem_labels == ("k sm_80 x=fp16[8]",) * 2 + ("k sm_80 x=fp16[16]",)
    assert rank_recorded(pairs[:2]).problem_labels == ()


def test_a_file_of_python_is_told_to_be_compiled_first(tmp_path: Path) -> None:
    source = tmp_path / "kernel.py"
    source.write_text("import triton\n")
    with pytest.raises(CacheError) as found:
        open_cache_or_fail(source)
    assert f"inspect-kernel compile {source}:KERNEL" in str(found.value.remedy)


@pytest.mark.parametrize(
    ("ctas", "waves", "told"),
    [
        (9, 1, "1 wave of 9 CTAs; 1280 are resident at once (as given)"),
        (1280, 2, "2 waves of 1280 resident CTAs (as given)"),
    ],
)
def test_a_wave_has_no_more_ctas_than_the_launch(ctas: int, waves: int, told: str) -> None:
    wave = Wave(ctas, 32, None, 32, None)
    order = CtaOrder(1280, "as given", (wave,) * waves, waves, 32, 32, 32, None, (), (), ())
    assert next(iter(describe_order(order, is_read_known=True))) == told
    assert [*describe_order(order, is_read_known=False)] == [told, "bytes read per wave: unknown"]


def test_a_kernel_is_read_once_however_often_it_is_launched(monkeypatch: pytest.MonkeyPatch) -> None:
    (entry,) = open_cache(FIXTURES / "3.6.0/gfx942/masked_add").entries
    tensors = dict.fromkeys(("x_ptr", "y_ptr", "out_ptr"), Tensor((256,), "fp32"))
    requests = [LaunchRequest((1,), {**tensors, "n": count}) for count in (256, 128, 64)]
    read, load = [], launches.load_kernel
    monkeypatch.setattr(launches, "load_kernel", lambda *given: read.append(given) or load(*given))
    together = predict_launches([(entry, request) for request in requests], None)
    assert len(read) == 1
    assert together == [predict_launches([(entry, request)], None)[0] for request in requests]


def test_more_launches_than_are_run_are_refused_in_words() -> None:
    rows = [{"grid": [1]}] * 20_000
    with pytest.raises(UsageError, match="the record has 20,000 launches; at most 1,000 are simulated") as told:
        parse_document_of({"launches": rows}, "the record")
    assert "ARTIFACT_INSPECTOR_MOST_LAUNCHES" in str(told.value.remedy)
    assert len(parse_document_of(rows[:1000], "the record")) == 1000


@pytest.mark.parametrize("gpu", ["MI300X", None])
def test_amd_launches_have_the_time_that_advice_has(gpu: str | None) -> None:
    (entry,) = open_cache(FIXTURES / "3.6.0" / "gfx942" / "copy").entries
    request = LaunchRequest((8, 1, 1), {"x_ptr": Tensor((4096,), "fp16"), "y_ptr": Tensor((4096,), "fp16"), "n": 4096})
    (prediction,) = predict_launches([(entry, request)], None, gpu=gpu)
    (diagnosis,) = diagnose_launches([(entry, request)], None, gpu=gpu)
    assert prediction.time is not None
    assert prediction.time.us == pytest.approx(diagnosis.microseconds, abs=0.005)
    assert not prediction.time.is_validated


@pytest.mark.parametrize(("fits_l2", "is_printed"), [(None, False), (True, False), (False, True)])
def test_a_launch_does_not_fit_in_an_l2_of_known_size_only(fits_l2: bool | None, is_printed: bool) -> None:
    prediction = gemv()
    order = CtaOrder(5, "as given", (Wave(5, 100, 0, 1000, 9),), 1, 1, 1, 1, fits_l2, (), (), ())
    counters = replace(prediction.counters, dram_bytes_read=CounterRange(1, 2))
    prediction = replace(prediction, l2=None, cta_order=order, counters=counters)
    assert any("does not fit in L2" in text for _, text in describe_counters(prediction, None)) is is_printed
