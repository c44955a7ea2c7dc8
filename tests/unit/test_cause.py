"""Why a kernel's facts changed: a loop that is not pipelined, else a new finding, else the stage of the new verdict."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from artifact_inspector.comparison import cause
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.model import Frame, Stage
from artifact_inspector.vocabulary.fact import Category

NOT_PIPELINED = SimpleNamespace(
    unpipelined_reason="num_stages is 1",
    evidence=[SimpleNamespace(stage=stage, line=line) for stage, line in zip(Stage, (7, 8, 9), strict=False)],
)
PIPELINED = SimpleNamespace(unpipelined_reason=None, evidence=[])


def pair(key, category, region="loop1", left=None, right=None, state=State.DIFFERENT):
    return FactPair(key, category, key, "", region, left, right, state, step=key.rpartition(".")[2])


OF_LOADS = {"verdict", "waits", "in-flight"}
VERDICT = pair("loop1.verdict.ttgir", Category.VERDICT)
FINDINGS = pair("findings", Category.FINDINGS, "", ("A001",), ("A001", "B002", "C003"))


@pytest.fixture
def reason(monkeypatch):
    """The reason of facts of a kernel with these pipelines and findings."""

    def find(*facts, pipelines=None, findings=(), place="C:\\src\\mine.py"):
        told = [
            SimpleNamespace(code=code, remark=SimpleNamespace(message=f"it is {code}", sources=sources))
            for code, sources in findings
        ]
        monkeypatch.setattr(cause, "find_findings", lambda kernel: told)
        kernel = SimpleNamespace(
            pipelines=pipelines or {},
            stages={Stage.TTIR: None, Stage.TTGIR: None, Stage.PTX: None},
            program=SimpleNamespace(location=None if place is None else Frame(place, 1, 1)),
        )
        return cause.find_reason(kernel, facts, {"loop@40": "loop1", "loop@50": "loop2"}, {"loop1": 40})

    return find


def test_a_loop_that_is_not_pipelined_comes_first_with_two_places_that_say_so(reason):
    found = reason(VERDICT, FINDINGS, pipelines={"loop@40": NOT_PIPELINED}, findings=[("B002", ())])
    assert found == (
        ("the loop at line 40 is not pipelined: num_stages is 1", "ttir line 7, ttgir line 8", "mine.py:40"),
        OF_LOADS,
    )


@pytest.mark.parametrize("category", [Category.WAITS, Category.IN_FLIGHT])
def test_a_loop_that_was_not_pipelined_before_either_is_no_reason(reason, category):
    assert reason(pair("loop1.x", category), pipelines={"loop@40": NOT_PIPELINED}) is None


@pytest.mark.parametrize(
    ("fact", "pipelines"),
    [
        (VERDICT, {"loop@50": NOT_PIPELINED}),
        (VERDICT, {"loop@40": PIPELINED}),
        (pair("loop1.mma.ops", Category.MMA), {"loop@40": NOT_PIPELINED}),
        (VERDICT._replace(state=State.SAME), {"loop@40": NOT_PIPELINED}),
    ],
    ids=["another loop", "pipelined", "no fact of loads", "no difference"],
)
def test_only_a_loop_whose_loads_changed_and_that_is_not_pipelined_is_a_reason(reason, fact, pipelines):
    assert "num_stages" not in str(reason(fact, pipelines=pipelines))


def test_a_finding_is_a_reason_where_it_is_new(reason):
    told = [("A001", ("a.py:1",)), ("B002", ("b.py:2", "b.py:3")), ("C003", ())]
    assert reason(VERDICT, FINDINGS, findings=told) == (("B002: it is B002", "", "b.py:2"), {"findings"})
    assert reason(FINDINGS, findings=told[::2]) == (("C003: it is C003", "", None), {"findings"})
    assert reason(FINDINGS._replace(left=None, right=None), findings=told) is None


def test_else_the_first_verdict_that_differs_names_its_stage(reason):
    later = pair("loop1.verdict.assembly", Category.VERDICT)
    assert reason(VERDICT, later) == (
        (
            "the order of loads and computes in the loop at line 40 first differs at ttgir (Triton's GPU passes)",
            "",
            "mine.py:40",
        ),
        OF_LOADS,
    )
    assert reason(later).reason.description.endswith("first differs at ptx (LLVM's NVPTX back end)")
    assert reason(VERDICT, place=None).reason.source is None
    assert reason(VERDICT._replace(region="loop2")).reason.source is None


def test_nothing_is_made_up(reason):
    assert reason() is None
    assert reason(pair("registers", Category.REGISTERS, "")) is None
    assert reason(pair("loop1.verdict.sass", Category.VERDICT)) is None
