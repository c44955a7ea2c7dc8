"""Configurations that are tried, their grids, and the report."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from saved import ROOT, saved

from artifact_inspector.api import remedy_search, remedy_trial
from artifact_inspector.api.remedy_trial import LEAST_GAIN, LEAST_SAVING, Trial, rank_trial
from artifact_inspector.diagnosis.attribution import Attribution
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.changes import can_cluster, changed_grid, propose_changes
from artifact_inspector.diagnosis.diagnose import explain_order, with_time
from artifact_inspector.diagnosis.remedy import Remedy, RemedySearch
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.json import as_text
from artifact_inspector.report.json.advise import advice_document


def test_only_constants_that_size_tiles_change() -> None:
    constants = {"BLOCK_M": 64, "STRIDE": 8, "ROWS": 16, "PREC": "ieee", "GROUP_M": 1}
    changes = propose_changes([CauseKind.IDLE_MULTIPROCESSORS], {"num_warps": 4, "num_stages": 2}, constants, 32)
    names = {name for change in changes for name in change}
    assert names == {"BLOCK_M", "PREC", "GROUP_M", "num_warps", "num_stages"}
    assert len(changes) == len({tuple(sorted(change.items())) for change in changes})


def test_a_drained_pipeline_gets_stages_first() -> None:
    changes = propose_changes([CauseKind.DRAINED_PIPELINE], {"num_warps": 4, "num_stages": 2}, {}, 32)
    assert changes[:4] == [{"num_stages": count} for count in (3, 4, 5, 6)]


def test_a_low_occupancy_gets_fewer_stages_first() -> None:
    changes = propose_changes([CauseKind.OCCUPANCY], {"num_warps": 8, "num_stages": 4}, {"BLOCK": 128}, 64)
    assert changes[:2] == [{"num_stages": 3}, {"num_stages": 1}]


def test_registers_that_limit_the_occupancy_get_a_limit_on_nvidia() -> None:
    limits = [{"maxnreg": 128}, {"maxnreg": 64}]
    on_nvidia, on_amd = (propose_changes([CauseKind.OCCUPANCY], {"num_warps": 4}, {}, size) for size in (32, 64))
    assert [change for change in on_nvidia if "maxnreg" in change] == limits
    assert not any("maxnreg" in change for change in on_amd)
    assert not any("maxnreg" in change for change in propose_changes([CauseKind.SPILLS], {"num_warps": 4}, {}, 32))


def test_the_grid_follows_the_tile_of_its_dimension() -> None:
    request = LaunchRequest((4, 4, 1), {"M": 512, "N": 512, "K": 4096})
    constants = {"BM": 128, "BN": 128, "BK": 32}
    assert changed_grid(request, constants, {"BM": 64}) == (8, 4, 1)
    assert changed_grid(request, constants, {"BN": 64}) == (4, 8, 1)
    assert changed_grid(request, constants, {"num_warps": 8}) == (4, 4, 1)


def test_a_grid_that_nothing_explains_is_not_guessed() -> None:
    request = LaunchRequest((7, 1, 1), {"M": 512})
    assert changed_grid(request, {"BM": 128}, {"BM": 64}) is None


def test_the_document_has_causes_and_remedies() -> None:
    cause = Cause(CauseKind.SPILLS, "k.py:3", 0.25, "k.py:3 (25% of the predicted time): 4 spill accesses.")
    diagnosis = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 10.0, 5.0, (cause,), cause.text)
    remedy = Remedy("num_warps=8", None, 1.3, (), "spills", True)
    document = json.loads(as_text(advice_document([diagnosis], [RemedySearch((remedy,), 4, "")]), "utf-8"))
    (kernel,) = document["kernels"]
    assert kernel["causes"] == [{"cause": "spills", "line": "k.py:3", "share": 0.25, "text": cause.text}]
    assert kernel["remedies"][0]["change"] == "num_warps=8"
    assert kernel["remedies"][0]["cause"] == "spills"
    assert kernel["summary"] == cause.text


def test_of_equal_gains_the_cheaper_change_comes_first() -> None:
    def trial(stages: int, microseconds: float) -> Trial:
        artifact = SimpleNamespace(shared_bytes=stages * 8192)
        return Trial({"num_stages": stages}, None, SimpleNamespace(artifact=artifact), microseconds)  # type: ignore[arg-type]

    trials = [trial(5, 10.0), trial(3, 10.002), trial(4, 10.2), trial(6, 9.0)]
    ordered = sorted(trials, key=lambda one: rank_trial(one, 13.8))
    assert [one.label for one in ordered] == [f"num_stages={count}" for count in (6, 3, 5, 4)]


@pytest.mark.parametrize(
    ("microseconds", "gain", "reason"),
    [
        (5.0, 2.0, ""),
        (9.8, None, "No change tried helps (1 tried)."),
        (None, None, "A change may help, but none was checked (1 tried)."),
    ],
)
def test_a_gain_is_that_of_the_whole_model(
    microseconds: float | None, gain: float | None, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search ranks changes by a model without the traffic of device memory, here by 2 µs."""
    cause = Cause(CauseKind.DRAINED_PIPELINE, "k.py:3", 0.5, "")
    before = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 10.0, 2.0, (cause,), "")
    after = Diagnosis("k", "cd", "sm_90", "H100", (1, 1, 1), microseconds, 2.0, (), "")
    search = remedy_search._Search(
        *(SimpleNamespace(is_gluon=False), SimpleNamespace(), before, SimpleNamespace()),  # type: ignore[arg-type]
        kernel_path="k.py:k", make_disassembler=lambda _: None, directory=None, gpu=None, steps=1, spent=0.0,  # type: ignore[arg-type]
    )  # fmt: skip
    candidate = SimpleNamespace(artifact=SimpleNamespace(shared_bytes=0, target=None, files={}))
    search.trials = [Trial({"num_stages": 3}, None, candidate, 2.0)]  # type: ignore[arg-type]
    monkeypatch.setattr(search, "_diagnose", lambda trial: after)
    monkeypatch.setattr(remedy_search, "describe_costs", lambda *_: ())
    found = search.verified(60.0)
    assert [one.gain for one in found.remedies] == ([gain] if gain else [])
    assert found.reason == reason


def test_a_constant_that_changes_results_is_not_combined_with_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page size is no tile: what is fast with another one is wrong, and costs the budget of what is right."""
    cause = Cause(CauseKind.SMALL_TILE, "k.py:3", 0.5, "")
    before = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 100.0, 40.0, (cause,), "")
    entry, launch = SimpleNamespace(is_gluon=False), SimpleNamespace(arguments={})
    search = remedy_search._Search(
        *(entry, launch, before, SimpleNamespace()),  # type: ignore[arg-type]
        kernel_path="k", make_disassembler=lambda _: None, directory=None, gpu=None, steps=1, spent=0.0,  # type: ignore[arg-type]
    )  # fmt: skip
    tried: list[dict[str, int]] = []

    def try_batch(batch: list[tuple[dict[str, int], None]]) -> list[Trial]:
        search.attempts += [(change, "") for change, _ in batch]
        tried.extend(change for change, _ in batch)
        times = [40.0 if "PAGE" in change else 50.0 if "num_stages" in change else 90.0 for change, _ in batch]
        candidate = SimpleNamespace(artifact=SimpleNamespace(shared_bytes=0, target=None, files={}))
        return [Trial(change, None, candidate, time) for (change, _), time in zip(batch, times, strict=True)]  # type: ignore[arg-type]

    singles = [{"PAGE": 32}, {"num_warps": 2}, {"PAGE": 64}, {"num_stages": 5}]
    monkeypatch.setattr(search, "_proposals", lambda *_: singles)
    monkeypatch.setattr(search, "_try", try_batch)
    monkeypatch.setattr(
        search, "_combinations", lambda best, _: [({**best.change, "num_warps": 8}, None)] * (len(best.change) == 1)
    )
    monkeypatch.setattr(search, "_is_equal", lambda trial, _: "PAGE" not in trial.change)
    search.run(60.0, is_editable=False, progress=lambda _: None)
    assert [trial.change for trial in search.trials if "PAGE" in trial.change] == []
    assert {"num_stages": 5, "num_warps": 8} in tried
    assert {"PAGE": 32, "num_warps": 8} not in tried
    assert tried.index({"num_stages": 5}) < tried.index({"PAGE": 64})


@given(
    st.lists(
        st.tuples(
            st.floats(1.0, 12.0),
            st.one_of(st.none(), st.floats(1.0, 12.0)),
            st.sampled_from([True, False]),
            st.floats(0.0, 0.6),
        ),
        max_size=8,
    )
)
@settings(max_examples=60, deadline=None)
def test_nothing_is_advised_that_a_check_refutes(outcomes: list[tuple[float, float | None, bool, float]]) -> None:
    """Of each change: the time that the search found, that of the whole model, equal results, the share of its cause."""
    cause = Cause(CauseKind.DRAINED_PIPELINE, "k.py:3", 0.6, "")
    before = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 12.0, 2.0, (cause,), "")
    search = remedy_search._Search(
        *(SimpleNamespace(is_gluon=False), SimpleNamespace(), before, SimpleNamespace()),  # type: ignore[arg-type]
        kernel_path="k.py:k", make_disassembler=lambda _: None, directory=None, gpu=None, steps=1, spent=0.0,  # type: ignore[arg-type]
    )  # fmt: skip
    candidate = SimpleNamespace(artifact=SimpleNamespace(shared_bytes=0, target=None, files={}))
    search.trials = [
        Trial({"num_stages": number}, None, candidate, found)  # type: ignore[arg-type]
        for number, (found, *_) in enumerate(outcomes)
    ]

    def diagnosed(trial: Trial) -> Diagnosis:
        _, microseconds, _, share = outcomes[trial.change["num_stages"]]
        causes = (replace(cause, share=share),)
        return replace(before, microseconds=microseconds, causes=causes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_diagnose", diagnosed)
        patch.setattr(search, "_is_equal", lambda trial, budget: outcomes[trial.change["num_stages"]][2])
        patch.setattr(remedy_search, "describe_costs", lambda *_: ())
        remedies = search.verified(60.0).remedies
    assert len(remedies) <= remedy_search.MOST_REMEDIES
    for remedy in remedies:
        _, microseconds, is_equal, share = outcomes[int(remedy.change.partition("=")[2])]
        assert is_equal
        assert microseconds is not None
        assert max(LEAST_GAIN * microseconds, microseconds + LEAST_SAVING) <= 12.0
        assert remedy.gain == round(12.0 / microseconds, 2)
        assert share * microseconds <= 0.6 * 12.0 - 0.02 * 12.0


@pytest.mark.parametrize(
    ("text", "is_library"),
    [
        ("import triton\nfrom lib.utils import exp\n", True),
        ("import triton\nfrom . import x\n", True),
        ("import triton\n", False),
    ],
)
def test_a_file_that_imports_its_package_is_slow_to_import(text: str, is_library: bool, tmp_path: Path) -> None:
    file = tmp_path / "lib" / "ops" / "k.py"
    file.parent.mkdir(parents=True)
    assert not remedy_search._imports_its_package(file, text)
    for folder in (file.parent, file.parent.parent):
        (folder / "__init__.py").touch()
    assert remedy_search._imports_its_package(file, text) is is_library


def test_a_gluon_kernel_gets_no_stages_but_the_reason() -> None:
    cause = Cause(CauseKind.DRAINED_PIPELINE, "k.py:3", 0.5, "")
    diagnosis = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 10.0, 2.0, (cause,), "")
    names: dict[bool, set[str]] = {}
    for is_gluon in (False, True):
        settings = {"num_warps": 4, "num_stages": 2}
        entry = SimpleNamespace(is_gluon=is_gluon, metadata=settings, constants={}, target=None)
        search = remedy_search._Search(
            *(entry, SimpleNamespace(), diagnosis, SimpleNamespace()),  # type: ignore[arg-type]
            kernel_path="k.py:k", make_disassembler=lambda _: None, directory=None, gpu=None, steps=1, spent=0.0,  # type: ignore[arg-type]
        )  # fmt: skip
        names[is_gluon] = {name for change in search._proposals({}, diagnosis, None) for name in change}
        assert ("does not read num_stages" in search.verified(60.0).reason) is is_gluon
    assert names == {False: {"num_warps", "num_stages"}, True: {"num_warps"}}


def test_a_larger_cause_says_why_it_comes_later() -> None:
    first = Attribution(CauseKind.REDUNDANT_LOAD, "k.py:3", 0.2, 0.2, "loaded twice")
    occupancy = Attribution(CauseKind.OCCUPANCY, None, 0.4, 0.4, "few warps")
    conversion = Attribution(CauseKind.TYPE_CONVERSION, "k.py:4", 0.3, 0.1, "converts")
    small = Attribution(CauseKind.SPILLS, "k.py:5", 0.1, 0.1, "spills")
    assert explain_order(first, first) == explain_order(small, first) == ""
    assert "mixed precision" in explain_order(conversion, first)
    text = occupancy.as_cause(explain_order(occupancy, first)).text
    assert text.endswith("few warps; listed later, since the repair of the first cause often shrinks it.")


def test_a_small_gain_is_unsure() -> None:
    """The model's error is larger than 15 %."""
    small, large = (Remedy("num_warps=8", None, gain, (), "occupancy", True) for gain in (1.14, 1.15))
    assert small.prediction == "predicted 1.14× as fast (unsure: measure it)"
    assert large.prediction == "predicted 1.15× as fast"


@pytest.mark.parametrize(
    ("name", "can"),
    [("3.6.0/sm_90/softmax", True), ("3.6.0/sm_90/gemv_splitk", False), ("3.6.0/sm_80/masked_add", False)],
)
def test_clusters_are_tried_where_they_exist_and_no_atomics_meet(name: str, can: bool) -> None:
    assert can_cluster(saved(name).artifact) is can


def test_clusters_are_not_tried_where_a_barrier_orders_the_accesses_of_one_cta(tmp_path: Path) -> None:
    """`tl.debug_barrier` stays a barrier of one CTA: the other one may store before this one has read."""
    for number, barrier in enumerate(("", "    gpu.barrier\n")):
        copy = tmp_path / str(number)
        shutil.copytree(ROOT / "fixtures/3.6.0/sm_90/softmax", copy)
        (path,) = copy.rglob("*.ttir")
        path.write_text(path.read_text().replace("    tt.return", f"{barrier}    tt.return"))
        (entry,) = open_cache(copy).entries
        assert can_cluster(entry) is not bool(barrier)


def test_a_gain_compares_two_times_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples said 2.0, 1.9, 1.8 and 1.7; all CTAs say 1.25, that one does not help, and the budget ends."""
    target = parse_target("sm_90")

    def checked(warps: int, gain: float, **more: int) -> tuple[Remedy, Trial]:
        artifact = SimpleNamespace(shared_bytes=0, target=target, files={}, warps=warps)
        candidate = SimpleNamespace(artifact=artifact, request=SimpleNamespace(grid=(1, 1, 1)))
        trial = Trial({"num_warps": warps, **more}, None, candidate, 100 / gain)  # type: ignore[arg-type]
        return Remedy(trial.label, None, gain, (), "spills", True), trial

    times = {8: 80.0, 16: 99.5, 2: None}
    tried = [checked(8, 2.0), checked(16, 1.9), checked(2, 1.8), checked(8, 1.7, num_stages=1)]

    def price(before: float) -> list[Remedy]:
        return remedy_trial.price_launches(before, tried, lambda one: times[one.artifact.warps])[0]  # type: ignore[attr-defined]

    monkeypatch.setattr(remedy_trial, "count_processors", lambda: 1)
    assert [(one.change, one.gain, one.sampled) for one in price(100.0)] == [
        ("num_warps=8", 1.25, False)
    ]  # fmt: skip
    of_some = price(0.0)  # the launch's own time is that of a sample
    assert [one.gain for one in of_some] == [2.0, 1.9, 1.8]
    assert all("(by a sample of CTAs)" in one.prediction for one in of_some)


def test_a_search_compares_samples_also_if_the_time_of_all_ctas_is_known() -> None:
    sampled = Diagnosis("k", "ab", "sm_90", "H100", (1, 1, 1), 196.0, 50.0, (), "Nothing stands out.")
    settings = (SimpleNamespace(is_gluon=False), SimpleNamespace(), with_time(sampled, 134.0, ""), None)
    search = remedy_search._Search(
        *settings,  # type: ignore[arg-type]
        kernel_path="k", make_disassembler=lambda _: None, directory=None, gpu=None, steps=1, spent=0.0,  # type: ignore[arg-type]
    )  # fmt: skip
    assert search.diagnosis.microseconds == 196.0
    assert search._launch_microseconds == 134.0


def test_an_option_without_effect_is_no_second_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def trial(code: str, **change: int) -> Trial:
        candidate = SimpleNamespace(artifact=code, request=SimpleNamespace(grid=(1, 1, 1)))
        return Trial(change, None, candidate, 1.0)  # type: ignore[arg-type]

    monkeypatch.setattr(remedy_trial, "read_binary", lambda artifact: ("cubin", artifact))
    assert trial("same", num_stages=1).does_no_more_than(trial("same", num_warps=8))
    assert trial("other", num_stages=1, num_warps=8).does_no_more_than(trial("same", num_warps=8))
    assert not trial("other", num_stages=1).does_no_more_than(trial("same", num_warps=8))


def test_more_warps_come_first_against_spills() -> None:
    options, tiles = {"num_warps": 4, "num_stages": 2}, {"BLOCK_M": 128, "BLOCK_N": 64}
    assert propose_changes([CauseKind.SPILLS], options, tiles, 32)[0] == {"num_warps": 8}
    assert propose_changes([CauseKind.OCCUPANCY], options, tiles, 32)[0] == {"num_stages": 1}
