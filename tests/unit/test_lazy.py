"""Facts are computed when they are first read, once, and a fault costs only the facts that need it."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import FrozenInstanceError, replace

import pytest
from saved import saved

from artifact_inspector.facts.encoding import decode, encode
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import KernelFacts, RegionWork, StageFacts, read_everything
from artifact_inspector.facts.kernel_reading import KernelReading
from artifact_inspector.facts.lazy import Facts, available, derived, lazy, with_fields
from artifact_inspector.facts.reading import computed
from artifact_inspector.facts.stage_reading import StageReading
from artifact_inspector.files.cache import Artifact
from artifact_inspector.model import Stage

A_KERNEL = "3.6.0/sm_80/matmul_grouped"


@pytest.fixture
def artifact() -> Artifact:
    assert saved(A_KERNEL).facts.stages  # read before any test puts other passes in place
    return saved(A_KERNEL).artifact


def members() -> list[tuple[type, computed[object]]]:
    """Every member that is computed from files, with its class."""
    return [
        (owner, member)
        for owner in (KernelReading, StageReading)
        for member in vars(owner).values()
        if isinstance(member, computed) and member.name != "shared"
    ]


def put(monkeypatch: pytest.MonkeyPatch, owner: type, member: computed[object], find: object) -> None:
    """Another function in place of the one that computes a member."""
    other = type(member)(find)  # type: ignore[arg-type]
    other.name = member.name
    monkeypatch.setattr(owner, member.name, other)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each member is computed."""
    counts: Counter[str] = Counter()

    def put_counted(owner: type, member: computed[object]) -> None:
        def find(reading: object) -> object:
            counts[member.name] += 1
            return member.find(reading)

        put(monkeypatch, owner, member, find)

    for owner, member in members():
        put_counted(owner, member)
    return counts


def broken(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def find(_: object) -> object:
        raise KeyError(name)

    for owner, member in members():
        if member.name == name:
            put(monkeypatch, owner, member, find)


def test_what_no_view_asks_for_is_not_found(artifact: Artifact, runs: Counter[str]) -> None:
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.verdict)
    assert runs.keys() == {"source", "module", "codes", "references", "order", "outline", "principal"}
    assert "pipelines" not in available(kernel)


def test_a_fact_is_found_once_however_often_it_is_asked_for(artifact: Artifact, runs: Counter[str]) -> None:
    inspect_artifact(artifact, view=lambda kernel: (read_everything(kernel), read_everything(kernel)))
    stages = len(saved(A_KERNEL).facts.stages)
    assert runs["pipelines"] == runs["bill"] == runs["resources"] == 1
    assert runs["in_flight"] == runs["buffers"] == stages
    assert runs["conversions"] == stages


def test_a_fact_that_is_asked_for_late_is_found_from_the_files_anew(artifact: Artifact, runs: Counter[str]) -> None:
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
    assert kernel.reading.values == {}
    assert kernel.reading.at(Stage.TTIR).values == {}


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
    assert [facts.regions for facts in kernel.stages.values()] == [facts.regions for facts in whole.stages.values()]


def test_a_fault_is_told_once_with_its_file(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "in_flight")
    kernel = inspect_artifact(artifact)
    assert {problem.path for problem in kernel.problems} == {
        artifact.display_path(stage.value) for stage in kernel.stages
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
    (member,) = (member for _, member in members() if member.name == "order")

    def find(reading: StageReading) -> object:
        if reading.stage is Stage.LLIR:
            raise ValueError("no")
        return member.find(reading)

    put(monkeypatch, StageReading, member, find)
    kernel = inspect_artifact(artifact)
    assert [stage.value for stage in kernel.stages] == ["ttir", "ttgir", "ptx"]
    assert kernel.verdict == saved(A_KERNEL).facts.verdict


def test_a_view_is_told_the_problems_of_what_it_asked_for(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    broken(monkeypatch, "bill")
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.verdict)
    assert kernel.problems == ()
    assert kernel.bill is None
    assert len(kernel.problems) == 1


@pytest.mark.parametrize("kind", [KernelFacts, StageFacts, RegionWork])
def test_what_stands_for_an_unavailable_fact_is_of_its_type(kind: type[Facts]) -> None:
    facts = [
        member
        for member in vars(kind).values()
        if isinstance(member, lazy) and not isinstance(member, derived) and member.is_field
    ]
    assert facts
    for fact in facts:
        value = fact.missing()
        assert decode(fact.value_type, encode(value)) == value, fact.name


def test_a_record_can_be_copied_with_other_values_and_asks_no_more_than_before(
    artifact: Artifact, runs: Counter[str]
) -> None:
    kernel = inspect_artifact(artifact, view=lambda kernel: kernel.stages)
    before = runs.copy()
    other = with_fields(kernel, pipelines={})
    assert runs == before
    assert other.pipelines == {}
    assert "bill" not in available(other)
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
