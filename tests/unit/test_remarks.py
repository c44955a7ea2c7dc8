"""Remarks as SARIF, as JUnit XML and as GitHub's annotations, each by a judge of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from saved import FIXTURES, ROOT, saved

from artifact_inspector.comparison.baseline import compare_with_baseline, record
from artifact_inspector.comparison.corpus import GATES, Corpus
from artifact_inspector.comparison.matching import Axis
from artifact_inspector.facts.inspection import inspect_artifact, inspect_cache
from artifact_inspector.files.cache import open_cache
from artifact_inspector.findings import RULES, find_findings
from artifact_inspector.report.corpus import describe_change
from artifact_inspector.report.exchange.junit import junit_text
from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
from artifact_inspector.report.remarks import (
    GATE_RULES,
    RemarkLocation,
    SourceRemark,
    change_remarks,
    finding_kinds,
    finding_remarks,
    merge_remarks,
)
from artifact_inspector.vocabulary.rows import summarise

GATES_SHUT = ("waits", "shared", "gone")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    """A cache of Triton 3.9 held against a baseline of 3.6: much changed, much is gone."""
    kernels = inspect_cache(open_cache(FIXTURES / "3.6.0" / "sm_80"))
    records = [record(kernel, lambda _: None) for kernel in kernels]
    return compare_with_baseline(records, open_cache(FIXTURES / "3.9.0" / "sm_80").entries, inspect_artifact)


def here(file: str) -> str | None:
    inside = f"kernels/{file.rpartition('/')[2]}"
    return inside if (ROOT / inside).exists() else None


def assert_sarif(document: Any) -> None:
    """Hold a document against the model of a library that is not ours: nothing is missing, nothing is unknown."""
    library = pytest.importorskip("sarif_pydantic", reason="sarif-pydantic is not installed")
    read = library.Sarif.model_validate(json.loads(json.dumps(document)))
    assert _unknown(document, read.model_dump(by_alias=True, exclude_none=True, mode="json")) == []


def _unknown(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """What a library that read our document did not take over."""
    if isinstance(ours, dict):
        return [
            found
            for key, value in ours.items()
            for found in ([f"{path}/{key}"] if key not in theirs else _unknown(value, theirs[key], f"{path}/{key}"))
        ]
    if isinstance(ours, list):
        assert len(ours) == len(theirs)
        return [
            found for n, pair in enumerate(zip(ours, theirs, strict=True)) for found in _unknown(*pair, f"{path}/{n}")
        ]
    return [] if ours == theirs else [path]


@pytest.mark.long
def test_a_check_is_sarif(corpus: Corpus) -> None:
    document = sarif_document(GATE_RULES, change_remarks(corpus, GATES_SHUT, here))
    assert_sarif(document)
    (run,) = document["runs"]
    levels = {result["ruleId"]: result["level"] for result in run["results"]}
    assert levels["gone"] == "error"
    kernels = [change for change in corpus.changes if change.facts]
    worse = [change for change in kernels if change.failures(GATES_SHUT, is_strict=False)]
    changed = [result for result in run["results"] if result["ruleId"] not in ("gone", "new")]
    assert [len(changed), sum(result["level"] == "error" for result in changed)] == [len(kernels), len(worse)]
    assert all(": Worse: " in result["message"]["text"] for result in changed if result["level"] == "error")
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        if "physicalLocation" in location:
            assert location["physicalLocation"]["region"]["startLine"] >= 1


def test_findings_are_sarif() -> None:
    kernels = [saved(f"3.6.0/sm_75/{name}").facts for name in ("matmul_square", "gemv_one_warp", "flash_attention")]
    document = sarif_document(finding_kinds(), finding_remarks(kernels, here))
    assert_sarif(document)
    (run,) = document["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == [rule.code for rule in RULES]
    assert len(run["results"]) == sum(len(find_findings(kernel)) for kernel in kernels)
    places = {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in run["results"]}
    assert places == {f"kernels/{name}.py" for name in ("matmul_square", "gemv_splitk", "flash_attention")}


@pytest.mark.long
def test_fingerprints_tell_results_apart_and_stay_when_lines_shift(corpus: Corpus) -> None:
    def prints(find: Any) -> list[str]:
        run = sarif_document(GATE_RULES, change_remarks(corpus, GATES_SHUT, find))["runs"][0]
        return [result["partialFingerprints"]["kernelFact/v1"] for result in run["results"]]

    assert len(set(prints(here))) == len(prints(here))
    assert prints(here) == prints(lambda _: None)


def test_a_file_outside_the_working_tree_goes_by_its_name_alone(corpus: Corpus) -> None:
    run = sarif_document(GATE_RULES, change_remarks(corpus, GATES_SHUT, lambda _: None))["runs"][0]
    artifacts = [
        location["physicalLocation"]["artifactLocation"]
        for result in run["results"]
        for location in result["locations"]
        if "physicalLocation" in location
    ]
    assert artifacts
    assert all(set(artifact) == {"uri"} and "/" not in artifact["uri"] for artifact in artifacts)


def test_every_gate_has_a_rule() -> None:
    assert [rule.code for rule in GATE_RULES] == [gate for gate in GATES if gate != "any"]


def test_a_check_is_junit(corpus: Corpus, tmp_path: Path) -> None:
    library = pytest.importorskip("junitparser", reason="junitparser is not installed")
    (tmp_path / "r.xml").write_text(junit_text(corpus, GATES_SHUT, "inspect-kernel check"), encoding="utf-8")
    (suite,) = library.JUnitXml.fromfile(str(tmp_path / "r.xml"))
    assert suite.name == "inspect-kernel check"
    assert suite.tests == len(list(suite)) == len(corpus.changes) + len(corpus.matching.left)
    failing = [case for case in suite if any(isinstance(found, library.Failure) for found in case.result)]
    expected = [change for change in corpus.changes if change.failures(GATES_SHUT)]
    assert suite.failures == len(failing) == len(expected) + len(corpus.matching.left)


def remark(message: str = "m", place: RemarkLocation | None = None, level: str = "error") -> SourceRemark:
    return SourceRemark("waits", level, "b, c", message, "k", place, "i", kernel_label="a")


def test_annotations_escape_what_would_end_them() -> None:
    place = RemarkLocation("a,b:c.py", 3, True)
    assert workflow_commands([remark("50% of\nit: 1, 2", place)]) == (
        "::error file=a%2Cb%3Ac.py,line=3,title=a%3A b%2C c::50%25 of%0Ait: 1, 2\n"
    )


@pytest.mark.parametrize(("level", "command"), [("error", "error"), ("warning", "warning"), ("note", "notice")])
def test_a_level_is_a_command(level: str, command: str) -> None:
    assert workflow_commands([remark(level=level)]) == f"::{command} title=a%3A b%2C c::m\n"


def test_an_annotation_points_at_no_file_that_is_not_there() -> None:
    assert "file=" not in workflow_commands([remark(place=RemarkLocation("k.py", 3, False))])


@pytest.fixture(scope="module")
def lost_pipeline() -> Corpus:
    """A matmul that was pipelined, held against its form for a GPU without asynchronous copies."""
    recorded = [record(saved("3.6.0/sm_80/matmul_grouped").facts, lambda _: None)]
    now = saved("3.6.0/sm_75/matmul_grouped").facts.artifact
    return compare_with_baseline(recorded, [now], inspect_artifact, across=[Axis.TARGET])


def test_a_change_names_its_reason_and_its_line(lost_pipeline: Corpus) -> None:
    (change,) = lost_pipeline.changes
    assert change.reason is not None
    assert change.reason.description.startswith("the loop at line ")
    assert change.reason.source == "matmul_grouped.py:81"
    assert any(line.startswith(change.reason.description) for line in describe_change(change))
    assert change.headline is not None
    assert next(describe_change(change)) == change.headline.sentence


def test_one_edit_is_one_annotation(lost_pipeline: Corpus) -> None:
    remarks = list(change_remarks(lost_pipeline, GATES_SHUT, here))
    assert len(remarks) == 1
    (told,) = merge_remarks(remarks, lost_pipeline)
    assert (told.level, told.location) == ("error", RemarkLocation("kernels/matmul_grouped.py", 81, True))
    assert len(told.message.splitlines()) == 1
    assert "Worse: " in told.message


def test_one_finding_in_many_forms_is_one_annotation() -> None:
    kernels = [saved(f"3.6.0/{target}/flash_attention").facts for target in ("sm_80", "sm_90")]
    remarks = [found for found in finding_remarks(kernels, here) if found.code == "AI002"]
    assert len(remarks) == 2
    (told,) = merge_remarks(remarks)
    assert told.message.splitlines()[-1].startswith("in 2 variants: sm_80 ")


def test_matrix_work_that_a_loop_peeled_off_is_no_news() -> None:
    """Triton for AMD moves the last passes of a pipelined loop behind it: the dots are the loop's."""
    facts = {fact.key for fact in summarise(saved("3.6.0/gfx942/matmul_grouped").facts).rows}
    assert "loop1.mma" in facts
    assert not {key for key in facts if key.startswith("straight.mma")}
