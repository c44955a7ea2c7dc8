"""The gains of a list have one basis, and the cause whose verified change gains most comes first."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from saved import FIXTURES, saved
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.api.mask_remedy import _predict_gain
from artifact_inspector.api.remedy_trial import Trial, price_launches
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.remedy import UNGAINED, Remedy, order_by_gain
from artifact_inspector.execution.interpreter.budget import current_budget, limit_simulation
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.execution.timing.candidates import RankingCandidate

CHANGES = ("num_ctas", "num_warps", "num_stages")


def _checked(*sampled_gains: float, base: float = 100.0) -> list[tuple[Remedy, Trial]]:
    candidate = RankingCandidate(saved("3.6.0/sm_80/softmax").artifact, LaunchRequest((8, 1, 1), {}), {})
    trials = [
        Trial({name: 2}, None, replace(candidate, constants={name: 2}), base / gain)
        for name, gain in zip(CHANGES, sampled_gains, strict=False)
    ]
    return [
        (Remedy(trial.label, None, gain, (), "occupancy", True), trial)
        for trial, gain in zip(trials, sampled_gains, strict=False)
    ]


@pytest.fixture(autouse=True)
def different_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trials of these tests share a saved kernel, but stand for different code."""
    monkeypatch.setattr(Trial, "does_no_more_than", lambda trial, better: False)


def test_sampled_gains_are_left_out_of_a_list_with_gains_of_all_ctas() -> None:
    """The sample says 1.91, 1.61 and 1.48; all CTAs are simulated of the last two only."""
    whole = {"num_warps": 70.0, "num_stages": 50.0}
    remedies, unpriced = price_launches(
        140.0,
        _checked(1.91, 1.61, 1.48),
        lambda one: next((whole[name] for name in one.constants if name in whole), None),
    )
    assert [(one.change, one.gain, one.sampled) for one in remedies] == [
        ("num_stages=2", 2.8, False), ("num_warps=2", 2.0, False),
    ]  # fmt: skip
    assert unpriced == ["num_ctas=2"]


def test_a_sampled_gain_is_not_above_that_over_the_time_of_all_ctas() -> None:
    """The sample of the launch takes 196 µs, all of it 134: a change to 132.9 is no gain, one to 102.6 is 1.31."""
    remedies, unpriced = price_launches(134.0, _checked(1.91, 1.475, base=196.0), lambda one: None)
    assert [(one.change, one.gain, one.sampled) for one in remedies] == [("num_ctas=2", 1.31, True)]
    assert unpriced == ["num_warps=2"]


def test_samples_are_compared_where_no_launch_is_simulated_wholly() -> None:
    remedies, unpriced = price_launches(0.0, _checked(1.2, 1.6), lambda one: pytest.fail("simulated"))
    assert [(one.gain, one.sampled) for one in remedies] == [(1.6, True), (1.2, True)]
    assert not unpriced


def test_as_many_changes_are_priced_together_as_the_budget_lets_end(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = []
    monkeypatch.setattr(
        "artifact_inspector.api.remedy_trial.time_launches",
        lambda candidates, predict: batches.append(len(candidates)) or [50.0] * len(candidates),
    )
    with limit_simulation(9.0):
        price_launches(100.0, _checked(2.0, 1.9, 1.8), lambda one: None, seconds=4.0)
    assert batches == [2, 1]


def test_the_gain_of_added_masks_says_that_it_is_of_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    entry, request = saved("3.6.0/sm_80/softmax").artifact, LaunchRequest((8, 1, 1), {})
    times = iter([30.0, 20.0])
    monkeypatch.setattr("artifact_inspector.api.mask_remedy.predict_time", lambda *arguments: None)
    monkeypatch.setattr("artifact_inspector.api.mask_remedy.predict_microseconds", lambda *args, **options: next(times))
    assert _predict_gain([(entry, request), (entry, request)], None, None) == (1.5, True)


def _diagnosis(*causes: Cause) -> Diagnosis:
    return Diagnosis("k", "0", "sm_90", "H100", (1, 1, 1), 100.0, 10.0, causes, causes[0].text)


FIRST = Cause(CauseKind.SPILLS, "k.py:3", 0.4, "k.py:3 (40 %): spills; also: k.py:5.", note="; also: k.py:5")
SECOND = Cause(CauseKind.OCCUPANCY, None, 0.3, "The launch (30 %): occupancy.")


@pytest.mark.parametrize(
    ("remedy", "is_first"),
    [
        (Remedy("num_warps=8", None, 1.5, (), "occupancy", True), True),
        (Remedy("num_warps=8", None, 1.1, (), "occupancy", True), False),
        (Remedy("num_warps=8", None, 1.5, (), "occupancy", True, sampled=True), False),
        (Remedy("num_warps=8", None, 1.5, (), "spills", True), False),
    ],
)
def test_the_cause_whose_sure_change_gains_most_comes_first(remedy: Remedy, is_first: bool) -> None:
    masks = Remedy("line 3: add missing masks", "", 3.0, (), "missing-mask", True)
    ordered = order_by_gain(_diagnosis(FIRST, SECOND), [masks, remedy])
    assert ordered.causes[0].kind is (CauseKind.OCCUPANCY if is_first else CauseKind.SPILLS)
    assert ordered.summary == ordered.causes[0].text
    if is_first:
        assert ordered.causes[1].text == f"k.py:3 (40 %): spills{UNGAINED}."


@pytest.mark.parametrize(("step", "seconds"), [(1.0, 20.0), (100.0, 0.0)])
def test_all_ctas_are_not_simulated_if_a_sample_took_longer_than_they_may(
    step: float, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launch takes at least as long as its sample, so the attempt would be in vain."""
    budgets = []

    def record(pairs: list[object], diagnoses: list[Diagnosis], *others: object, **options: object) -> list[Diagnosis]:
        budgets.append(current_budget())
        return diagnoses

    clock = itertools.count(0.0, step)
    monkeypatch.setattr("artifact_inspector.api.remedy_search.processor_seconds", lambda: next(clock))
    monkeypatch.setattr("artifact_inspector.api.advice.with_launch_times", record)
    kernel = [str(FIXTURES / "3.6.0" / "sm_80" / "softmax"), "--budget", "0"]
    result = CliRunner().invoke(cli.app, ["advise", *kernel], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert [budget.seconds for budget in budgets if budget is not None] == [seconds]
