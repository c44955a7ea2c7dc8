"""Facts are found when they are asked for, once, and a fault costs those that need it alone."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError, replace

import pytest
from saved import saved

from artifact_inspector.facts import inspection
from artifact_inspector.facts.inspection import PASSES, ask_all, inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.records import known, with_fields
from artifact_inspector.facts.table import Need, Pass
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage

A_KERNEL = "3.6.0/sm_80/matmul_grouped"


@pytest.fixture
def artifact() -> Artifact:
    assert saved(A_KERNEL).facts.stages  # read before any test puts other passes in place
    return saved(A_KERNEL).artifact


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each pass runs."""
    counts: Counter[str] = Counter()

    def counted(row: Pass) -> Pass:
        def find(*needs: object) -> object:
            counts[row.name] += 1
            return row.find(*needs)

        return replace(row, find=find)

    monkeypatch.setattr(inspection, "PASSES", {name: counted(row) for name, row in PASSES.items()})
    return counts


def broken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def find(*_: object) -> object:
        raise KeyError(name)

    monkeypatch.setattr(inspection, "PASSES", {**PASSES, name: replace(PASSES[name], find=find)})


def test_what_no_view_asks_for_is_not_found(artifact: Artifact, runs: Counter[str]) -> None:
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.verdict)
    assert runs.keys() == {"source", "module", "codes", "measure", "order", "outline", "principal"}
    assert "pipelines" not in known(kernel)


def test_a_fact_is_found_once_however_often_it_is_asked_for(artifact: Artifact, runs: Counter[str]) -> None:
    inspect_artifact(artifact, view=lambda kernel: (ask_all(kernel), ask_all(kernel)))
    stages = len(saved(A_KERNEL).facts.stages)
    assert runs["pipelines"] == runs["bill"] == runs["resources"] == 1
    assert runs["in_flight"] == runs["buffers"] == stages
    assert runs["conversions"] == 1  # TTGIR alone is asked for them


def test_a_fact_that_is_asked_for_late_is_found_from_the_files_anew(
    artifact: Artifact, runs: Counter[str]
) -> None:
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.stages)
    read = runs["module"]
    assert kernel.pipelines == saved(A_KERNEL).facts.pipelines
    assert runs["module"] > read
    assert kernel.pipelines is kernel.pipelines


def test_a_kernel_is_the_same_whichever_way_it_was_asked(artifact: Artifact) -> None:
    lazy = inspect_artifact(artifact, view=lambda _: None)
    assert lazy == saved(A_KERNEL).facts


def test_no_module_is_kept_when_the_view_has_asked(artifact: Artifact) -> None:
    kernel = inspect_artifact(artifact)
    table = kernel._ask.args[0]
    assert table._found == {}


@pytest.mark.parametrize(
    ("name", "lost", "kept"),
    [
        ("pipelines", {"pipelines"}, {"bill", "identities", "widths", "stages"}),
        ("bill", {"bill"}, {"pipelines", "identities", "widths"}),
        ("accessed", {"widths", "policies"}, {"pipelines", "identities", "bill", "resources"}),
        ("matrix", {"identities", "generations"}, {"pipelines", "widths", "bill"}),
    ],
)
def test_a_fault_costs_the_facts_that_need_it_and_no_others(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch, name: str, lost: set[str], kept: set[str]
) -> None:
    whole = saved(A_KERNEL).facts
    broken(monkeypatch, name)
    kernel = inspect_artifact(artifact)
    for fact in kept - {"stages"}:
        assert getattr(kernel, fact) == getattr(whole, fact)
        assert getattr(kernel, fact)
    for fact in lost:
        assert not getattr(kernel, fact)
    assert [facts.regions for facts in kernel.stages.values()] == [
        facts.regions for facts in whole.stages.values()
    ]


def test_a_fault_is_told_once_with_its_file(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "in_flight")
    kernel = inspect_artifact(artifact)
    assert {problem.path for problem in kernel.problems} == {
        artifact.relative(stage.value) for stage in kernel.stages
    }
    assert {problem.problem for problem in kernel.problems} == {
        "the inspector itself failed here (KeyError: 'in_flight'); please report it"
    }
    last = kernel.last
    assert last is not None
    flight = last.work[kernel.principal or ""].in_flight
    assert flight.max_loads is None
    assert flight.notes


def test_a_fault_in_one_stage_leaves_the_others(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    row = PASSES["order"]

    def find(module: object, *needs: object) -> object:
        if module.stage is Stage.LLIR:  # type: ignore[attr-defined]
            raise ValueError("no")
        return row.find(module, *needs)

    monkeypatch.setattr(inspection, "PASSES", {**PASSES, "order": replace(row, find=find)})
    kernel = inspect_artifact(artifact)
    assert [stage.value for stage in kernel.stages] == ["ttir", "ttgir", "ptx"]
    assert kernel.verdict == saved(A_KERNEL).facts.verdict


def test_a_view_is_told_the_problems_of_what_it_asked_for(
    artifact: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, "bill")
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.verdict)
    assert kernel.problems == ()
    assert kernel.bill is None
    assert len(kernel.problems) == 1


def test_every_pass_needs_what_another_finds() -> None:
    given = {"artifact", "stage", "disassemble", "problems"}
    for row in PASSES.values():
        for need in row.needs:
            name = need.name if isinstance(need, Need) else need
            assert name in given or name in PASSES, f"{row.name} needs {name}"
            if isinstance(need, Need):
                assert PASSES[name].of_stage


def test_a_record_can_be_copied_with_other_values_and_asks_no_more_than_before(
    artifact: Artifact, runs: Counter[str]
) -> None:
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.stages)
    before = runs.copy()
    other = with_fields(kernel, pipelines={})
    assert runs == before
    assert other.pipelines == {}
    assert "bill" not in known(other)
    assert other.bill == saved(A_KERNEL).facts.bill
    assert with_fields(replace(kernel), principal="x").principal == "x"


def test_a_record_is_frozen_and_has_no_other_fields(artifact: Artifact) -> None:
    kernel = inspect_artifact(artifact, view=lambda _: None)
    with pytest.raises(FrozenInstanceError):
        kernel.principal = None  # type: ignore[misc]
    with pytest.raises(AttributeError, match="no attribute 'verdicts'"):
        kernel.verdicts  # type: ignore[attr-defined]  # noqa: B018


def test_a_record_that_was_made_of_values_lacks_what_was_not_given() -> None:
    bare = KernelFacts.__new__(KernelFacts)
    with pytest.raises(AttributeError, match="was not given"):
        bare.stages  # noqa: B018


def test_a_kernel_survives_a_trip_to_another_process(artifact: Artifact) -> None:
    kernel = inspect_artifact(artifact, view=lambda _: None)
    assert pickle.loads(pickle.dumps(kernel)) == saved(A_KERNEL).facts
