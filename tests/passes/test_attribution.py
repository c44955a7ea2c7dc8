"""A difference ends with its pass: named where a compile made here ends as the entry does, else not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.model import Stage
from artifact_inspector.passes import attribution
from artifact_inspector.passes.attribution import FactQuery, find_passes, select_earliest
from artifact_inspector.passes.dump_facts import Topic, read_dump_facts
from artifact_inspector.passes.subject import subject_of_entry
from artifact_inspector.passes.trace import FactChange, PassLevel, PassRun, PassTrace
from artifact_inspector.report.passes import describe_attribution, describe_decision

FIXTURES = Path(__file__).parents[2] / "fixtures"
KEY = "straight.verdict"
ASKED = FactQuery(f"{KEY}.ttgir", KEY, "ttgir", Topic.ORDER, "straight verdict at ttgir")


def entry(place: str = "3.9.0/gfx942/gemv_splitk") -> Artifact:
    (found,) = open_cache(FIXTURES / place).entries
    return found


def step(index: int, name: str, level: PassLevel, before: str, after: str) -> PassRun:
    change = FactChange(Topic.ORDER, KEY, "straight verdict", "", before, after)
    return PassRun(index, name, name.lower(), level, 1, True, None, (change,))


TRACE = PassTrace(
    "gemv_splitk",
    "gfx942",
    "3.2.0",
    (
        step(1, "Reorder", PassLevel.TTGIR, "interleaved", "clustered"),
        step(2, "Sink", PassLevel.LLVM, "clustered", "interleaved"),
    ),
    (),
    (),
)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "trace_passes", lambda *asked, **options: TRACE)


def test_of_a_fact_of_several_stages_the_earliest_that_differs_is_asked_for() -> None:
    facts = [(f"{KEY}.{at}", "verdict", f"straight verdict at {at}") for at in ("llir", "ttgir", "assembly")]
    assert select_earliest([*facts, ("occupancy", "occupancy", "occupancy")]) == (ASKED,)


@pytest.mark.usefixtures("traced")
def test_the_pass_is_the_last_one_up_to_the_stage() -> None:
    made = find_passes(entry(), [ASKED], {ASKED.key: "clustered"}).passes_by_key[ASKED.key]
    assert made is not None
    assert made[0].name == "Reorder"


@pytest.mark.usefixtures("traced")
def test_no_pass_is_named_where_the_compile_made_here_ends_otherwise() -> None:
    assert find_passes(entry(), [ASKED], {ASKED.key: "serial"}).passes_by_key == {ASKED.key: None}


def without_ttir(artifact: Artifact) -> Artifact:
    return replace(artifact, files={at: file for at, file in artifact.files.items() if at != "ttir"})


def without_version(artifact: Artifact) -> Artifact:
    files = {at: file for at, file in artifact.files.items() if at not in ("ptx", "amdgcn", "cubin", "hsaco")}
    metadata = {key: value for key, value in artifact.metadata.items() if key != "triton_version"}
    return replace(artifact, files=files, metadata=metadata, triton_version=None)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (without_ttir, "gemv_splitk has no TTIR to compile."),
        (without_version, "The Triton version of gemv_splitk is unknown."),
    ],
)
def test_an_entry_that_cannot_be_compiled_again_says_why_in_one_line(
    spoil: Callable[[Artifact], Artifact], why: str
) -> None:
    found = find_passes(spoil(entry()), [ASKED], {})
    assert found.problem == why
    assert list(describe_attribution([ASKED], [("3.9.0", found)])) == [
        "passes",
        f"  3.9.0: could not be compiled again: {why}",
    ]


@pytest.mark.usefixtures("traced")
def test_either_side_is_told_and_facts_of_no_pass_are_counted() -> None:
    silent = FactQuery("shared", "shared", None, Topic.SHARED, "shared")
    one = find_passes(entry(), [ASKED, silent], {ASKED.key: "clustered"})
    other = find_passes(entry(), [ASKED, silent], {ASKED.key: "interleaved"})
    assert list(describe_attribution([ASKED, silent], [("3.2.0", one), ("3.9.0", other)])) == [
        "passes",
        "  straight verdict at ttgir",
        "    3.2.0: Reorder (reorder) at ttgir: interleaved → clustered",
        "    3.9.0: no pass changed it",
        "  no pass changed the other 1",
    ]
    assert describe_decision("3.2.0", ASKED, one) == ("  3.2.0: Reorder (reorder) at ttgir: interleaved → clustered")


@pytest.mark.long
def test_an_entry_compiled_again_from_its_ttir_says_what_the_entry_says() -> None:
    pytest.importorskip("triton")
    own = entry()
    with subject_of_entry(own).compile_without_dumps(lambda said: None, "3.9.0") as again:
        for stage in (Stage.TTGIR, Stage.LLIR, Stage.AMDGCN):
            assert read_dump_facts(again, stage, None, tuple(Topic)) == read_dump_facts(own, stage, None, tuple(Topic))
        assert inspect_artifact(again).principal_region is not None


def test_options_are_asked_for_again_as_the_metadata_has_them() -> None:
    own = entry("3.2.0/sm_75/gemv_splitk")
    options = subject_of_entry(own).request["options"]
    assert options["cluster_dims"] == [1, 1, 1], "back ends of that release take no strings"
    assert options == {name: own.metadata[name] for name in options}


def said(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, list(words))
    return result.exit_code, result.output


@pytest.mark.long
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["passes", "softmax"], "This command compiles for one GPU; 0 are given."),
        (["passes", "softmax", "-t", "sm_80", "--what", "speed"], "Unknown fact 'speed' for --what."),
        (["passes", "nowhere", "softmax", "-t", "sm_80"], "There is no cache directory nowhere."),
        (["passes", str(FIXTURES / "3.9.0" / "sm_80")], "This command compiles one kernel;"),
        (["bisect", "softmax", "-t", "sm_80", "--between", "3.9.0"], "A bisection needs two releases."),
        (["diff", str(FIXTURES / "3.9.0"), str(FIXTURES / "3.6.0"), "--passes"], "--passes compares two kernels."),
        (["diff", "a", "b", "--passes", "--json"], "--passes prints text only, not json."),
        (["matrix", str(FIXTURES), "gemv_splitk", "--passes", "--json"], "--passes prints text only, not JSON."),
    ],
)
def test_what_cannot_be_asked_is_refused_with_2(words: list[str], told: str) -> None:
    code, output = said(*words)
    assert code == 2
    assert told in output


def test_a_pass_that_did_not_run_is_refused_with_the_nearest_that_did(monkeypatch: pytest.MonkeyPatch) -> None:
    from artifact_inspector.passes import subject

    monkeypatch.setattr(subject, "trace_passes", lambda *asked, **options: TRACE)
    code, output = said("passes", "softmax", "-t", "sm_80", "--diff", "Reordr")
    assert code == 2
    assert "No pass 'Reordr' ran." in output
    assert "Did you mean Reorder?" in output
    code, output = said("passes", "softmax", "-t", "sm_80", "--diff", "reorder")
    assert code == 2
    assert "Pass reorder changed no readable IR." in output


def test_two_caches_of_one_kernel_each_end_with_its_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "trace_passes", lambda *asked, **options: TRACE)
    code, output = said(
        "diff",
        str(FIXTURES / "3.2.0" / "gfx942" / "gemv_splitk"),
        str(FIXTURES / "3.3.1" / "gfx942" / "gemv_splitk"),
        "--passes",
    )
    assert code == 1
    assert "    3.2: Reorder (reorder) at ttgir: interleaved → clustered" in output


def test_a_matrix_ends_with_a_line_for_each_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attribution, "trace_passes", lambda *asked, **options: TRACE)
    code, output = said("matrix", str(FIXTURES / "3.2.0" / "gfx942"), "gemv_splitk", "--passes")
    assert code == 0
    (line,) = output.partition("\npasses\n")[2].splitlines()
    assert "gfx942" in line
    assert line.endswith(": no pass changed it") or "Reorder" in line


@pytest.mark.long
@pytest.mark.usefixtures("traced")
def test_the_picture_of_two_kernels_names_the_pass_and_is_alone_on_standard_output(tmp_path: Path) -> None:
    command = ["diff", f"{FIXTURES}/3.2.0:gemv_splitk", "--left", "sm_75", "--right", "gfx90a", "--passes"]
    shown = CliRunner().invoke(cli.app, [*command, "--svg", "timeline"])
    assert shown.exit_code == 1, shown.output
    ElementTree.fromstring(shown.stdout)  # nothing but the picture
    assert "first divergence: Reorder (gfx90a)" in shown.stdout
    assert "straight verdict at ttgir" in shown.stderr
    kept = CliRunner().invoke(cli.app, [*command, "--svg", "timeline", "-o", str(tmp_path / "pair.svg")])
    assert "Reorder (gfx90a)" in (tmp_path / "pair.svg").read_text()
    assert "straight verdict at ttgir" in kept.stdout
