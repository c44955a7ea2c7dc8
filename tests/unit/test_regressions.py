"""`inspect-kernel regress`: the cause of each kernel, worst first, totals and exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from saved import FIXTURES, ROOT, saved
from typer.testing import CliRunner, Result

from artifact_inspector import cli
from artifact_inspector.api import option_trials, remedies
from artifact_inspector.api.option_trials import try_changes, try_release
from artifact_inspector.comparison.corpus import compare_corpora
from artifact_inspector.comparison.pair_price import LineConflicts, PairPrice
from artifact_inspector.comparison.regressions import find_regressions
from artifact_inspector.compiling.ask.environments import find_interpreter
from artifact_inspector.errors import CompileError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.records import MANIFEST
from artifact_inspector.report.console import to_text
from artifact_inspector.report.corpus import RegressReport, describe_outcome
from artifact_inspector.vocabulary.fact import Sign

pytestmark = pytest.mark.usefixtures("recalled")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """triton#9703: one kernel by Triton 3.5.1 and 3.6.0."""
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "reduction_across_warps"


def test_a_regression_exits_with_one_and_its_mirror_image_with_zero(releases: Path) -> None:
    worse = run("regress", releases, "--left", "3.5.1", "--right", "3.6.0")
    assert worse.exit_code == 1
    assert worse.stdout.startswith("1 kernel compared: 1 worse, 0 better, 0 neutral, 0 unchanged.")
    assert "Worse: new reduction across warps" in " ".join(worse.stdout.split())
    better = run("regress", releases, "--left", "3.6.0", "--right", "3.5.1")
    assert (better.exit_code, better.stdout.splitlines()[0]) == (
        0, "1 kernel compared: 0 worse, 1 better, 0 neutral, 0 unchanged.",
    )  # fmt: skip


def test_a_cache_with_itself_has_no_regression() -> None:
    result = run("regress", FIXTURES / "3.6.0" / "sm_86", FIXTURES / "3.6.0" / "sm_86")
    assert result.exit_code == 0
    assert " 0 worse, 0 better, 0 neutral" in result.stdout


@pytest.mark.long
def test_json_lists_the_worst_first() -> None:
    result = run("regress", FIXTURES / "3.6.0" / "sm_80", FIXTURES / "3.6.0" / "gfx942", "--json")
    document = json.loads(result.stdout)
    directions = [kernel["direction"] for kernel in document["kernels"]]
    assert directions == sorted(directions, key=["worse", "better", "neutral"].index)
    assert (document["regressed"], result.exit_code) == (True, 1)
    assert {fact["price"] for kernel in document["kernels"] for fact in kernel["facts"]} == {None}
    assert {fact["direction"] for kernel in document["kernels"] for fact in kernel["facts"]} == set(Sign)


@pytest.mark.parametrize("suffix", [".md", ".json", ".txt"])
def test_the_list_is_written_to_a_file_too(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"list{suffix}"
    sides = (FIXTURES / "3.6.0" / "sm_80", FIXTURES / "3.9.0" / "sm_80")
    result = run("regress", *sides, "--output", file)
    if suffix == ".txt":
        assert (result.exit_code, file.exists()) == (2, False)
        assert "Expected .md or .json." in result.stderr
        return
    shown, text = " ".join(result.stdout.split()), file.read_text()
    assert result.exit_code == 1
    if suffix == ".json":
        assert json.loads(text) == json.loads(run("regress", *sides, "--json").stdout)
        return
    rows = [row.split(" | ") for row in text.splitlines() if row.startswith("| `")]
    assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)  # worse first
    assert {"worse", "better"} <= {row[2] for row in rows}
    assert all(row[3].removesuffix(" |").split(";")[0] in shown for row in rows)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["regress", "nowhere", "nowhere"], 3),
        (["regress", "softmax"], 2),
        (["regress", "k.py:k", "--triton", "3.6.0"], 2),
    ],
)
def test_what_cannot_be_compared_has_its_exit_code(arguments: list[str], code: int) -> None:
    assert run(*arguments).exit_code == code


@pytest.mark.parametrize(("ratio", "expected"), [(1.5, Sign.WORSE), (0.8, Sign.BETTER), (1.01, Sign.NEUTRAL)])
def test_a_predicted_time_decides(ratio: float, expected: Sign) -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    corpus = compare_corpora(*sides, inspect_artifact, is_one_pair=True)
    price = PairPrice(ratio, 1.0, ratio, "path", "path", "grid 1", "H100")
    (outcome,) = find_regressions(corpus, lambda change: price).outcomes
    assert outcome.change.direction is expected
    assert outcome.change.headline is not None
    (unpriced,) = find_regressions(corpus).outcomes
    assert replace(outcome, change=replace(outcome.change, price=None)) == unpriced
    assert unpriced.change.direction is Sign.BETTER  # wgmma


@pytest.mark.exhaustive  # installs two releases and compiles with them
def test_why_names_the_pass_behind_the_decisive_fact(releases: Path) -> None:
    for release in ("3.5.1", "3.6.0"):  # a cache does not choose what is installed
        find_interpreter(release)
    result = run("regress", releases, "--left", "3.5.1", "--right", "3.6.0", "--why", "--budget", "10m")
    text = " ".join(result.stdout.split())
    assert "3.5.1: no pass changed it. 3.6.0: TritonGPURemoveLayoutConversions" in text
    assert "No remedy was tried: No launch of colmax" in text  # its argument is a descriptor


def test_the_outcome_of_a_predicted_improvement_names_a_better_fact() -> None:
    kernels = [saved(f"{release}/gfx942/gemv_splitk").artifact for release in ("3.6.0", "3.9.0")]
    corpus = compare_corpora(*([kernel] for kernel in kernels), inspect_artifact, is_one_pair=True)
    facts = corpus.changes[0].facts
    assert {fact.direction for fact in facts} >= {Sign.WORSE, Sign.BETTER}
    price = PairPrice(0.5, 1.0, 0.5, "path", "path", "grid 1", "MI300X")
    (outcome,) = find_regressions(corpus, lambda change: price).outcomes
    assert outcome.change.headline is not None
    assert outcome.change.headline.fact.direction is Sign.BETTER


@pytest.mark.parametrize(
    ("ratio", "bottleneck", "conflicts", "sentence"),
    [
        (1.5, "path", (), "Worse: 1.50× the old predicted time, although the dots"),
        (1.0, "path", (), "Neutral: 1.00× the old predicted time, although the dots"),
        (0.8, "path", (LineConflicts("a.py:3", 16, 0),), "Better: the dots"),
        (0.8, "lsu", (LineConflicts("a.py:3", 16, 0),), "Better: bank conflicts per warp and trip 16 → 0, at a.py:3."),
        (1.5, "lsu", (LineConflicts("a.py:3", 16, 0),), "Worse: 1.50× the old predicted time, although the dots"),
    ],
)
def test_the_predicted_time_of_the_launch_leads(
    ratio: float, bottleneck: str, conflicts: tuple[LineConflicts, ...], sentence: str
) -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    (change,) = compare_corpora(*sides, inspect_artifact, is_one_pair=True).changes
    change = replace(change, headlines=change.headlines[:1])  # wgmma
    price = PairPrice(ratio, 1.0, ratio, bottleneck, bottleneck, "grid 1", "H100", bank_conflicts=conflicts)
    assert replace(change, price=price).sentence.startswith(sentence)
    assert change.sentence == change.headlines[0].sentence
    unexplained = replace(change, headlines=(), price=replace(price, bank_conflicts=()))
    assert unexplained.sentence.startswith(sentence.split()[0])


def test_the_next_command_compares_the_worst_kernel(releases: Path, tmp_path: Path) -> None:
    releases = releases.rename(tmp_path / ("a directory whose name is longer than a line is wide " * 3).strip())
    result = run("regress", releases, releases, "--left", "3.5.1", "--right", "3.6.0")
    _, _, command = result.stdout.rpartition("\nnext   inspect-kernel ")
    following = run(*shlex.split(command))
    assert following.exit_code == 1, following.output
    assert following.stdout.startswith("Worse: new reduction across warps")


def test_options_that_compile_to_something_better_follow_the_cause() -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    (outcome,) = find_regressions(compare_corpora(*sides, inspect_artifact, is_one_pair=True)).outcomes
    trial = "Try waves_per_eu=1 (compiled, no time predicted): registers no longer spill, 532 → 0 B per thread."
    sentence = describe_outcome(replace(outcome, trials=(trial,)))
    assert sentence == f"{outcome.change.sentence} {trial}"


def test_a_neutral_time_names_no_price_of_one_fact() -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    (change,) = compare_corpora(*sides, inspect_artifact, is_one_pair=True).changes
    headline = change.headlines[0]
    change = replace(change, headlines=(headline._replace(fact=headline.fact._replace(price=0.8)),))
    sentences = [
        replace(change, price=PairPrice(ratio, 1.0, ratio, "path", "path", "grid 1", "H100")).sentence
        for ratio in (0.99, 0.8)
    ]
    assert ["0.80× the predicted time (0.80× by this fact)" in sentence for sentence in sentences] == [False, True]
    assert sentences[0].startswith("Neutral: 0.99× the old predicted time, although the dots")


def test_kernels_with_one_sentence_are_listed_together() -> None:
    sides = [[saved(f"3.6.0/{target}/matmul_grouped").artifact] for target in ("sm_80", "sm_90")]
    regressions = find_regressions(compare_corpora(*sides, inspect_artifact, is_one_pair=True))
    text = to_text(RegressReport(replace(regressions, outcomes=regressions.outcomes * 15)), 400)
    assert text.count("wgmma.mma_async") == 1
    name = regressions.outcomes[0].change.right.artifact
    assert f"the same in {name.display_name} {name.hash[:6]}, " in text
    assert " 2 more" in text  # 1 + 12 are named


@pytest.mark.parametrize(
    ("own", "ratio", "sentence"),
    [
        ("3.9.0", None, "Try Triton 3.9.0 (compiled, no time predicted): no more reduction across warps"),
        ("3.9.0", 0.7, "Try Triton 3.9.0 (0.70× the predicted time): no more reduction across warps"),
        ("3.9.0", 1.1, ""),
        ("3.6.0", None, ""),
    ],
)
def test_a_later_release_that_compiles_to_something_better_is_a_remedy(
    releases: Path, monkeypatch: pytest.MonkeyPatch, own: str, ratio: float | None, sentence: str
) -> None:
    """The kernel that 3.5.1 compiled stands for the one of the installed release."""
    good, bad = sorted(open_cache(releases).entries, key=lambda entry: str(entry.triton_version))
    row = {"place": "colmax.py:colmax", "kernel": "colmax", "target": "sm_90", "directory": bad.directory}
    (releases / MANIFEST).write_text(json.dumps({"schema_version": 1, "entries": [row], "launches": []}))
    result = SimpleNamespace(directory=releases / good.directory)
    monkeypatch.setattr(option_trials, "installed", lambda name: own)
    monkeypatch.setattr(option_trials, "compile_kernels", lambda *arguments: [result])
    worse = compare_corpora([good], [bad], inspect_artifact, is_one_pair=True).changes[0].headline
    assert worse is not None
    price = None if ratio is None else PairPrice(ratio, 1.0, ratio, "path", "path", "grid 1", "H100")
    trials = list(try_release(bad, worse.fact, f"{ROOT}/colmax.py:colmax", releases, lambda entry: price))
    assert [trial[: len(sentence)] for trial in trials] == [sentence] * bool(sentence)


def test_changes_that_remove_spills_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies of a kernel whose metadata states other spills stand for compiles with smaller tiles."""
    spilled = {"old": 0, "BLOCK_M": 16, "BLOCK_K": 0, "bad": 64}
    entries = {}
    for name, count in spilled.items():
        (kernel,) = (FIXTURES / "3.6.0" / "gfx942" / "register_spill").iterdir()
        shutil.copytree(kernel, tmp_path / name / name)
        file = tmp_path / name / name / "register_spill.amdgcn"
        text = re.sub(r"(\.vgpr_spill_count:) +\d+", rf"\1 {count}", file.read_text(encoding="utf-8"))
        file.write_text(text, encoding="utf-8")
        (tmp_path / name / name / "register_spill.hsaco").unlink()  # states registers too
        (entries[name],) = open_cache(tmp_path / name).entries
    row = {"place": "register_spill.py:register_spill", "kernel": "register_spill", "target": "gfx942"}
    manifest = {"schema_version": 1, "entries": [{**row, "directory": "bad"}], "launches": []}
    (tmp_path / "bad" / MANIFEST).write_text(json.dumps(manifest))
    (bad,) = open_cache(tmp_path / "bad").entries
    changes = [{"BLOCK_M": 64}, {"BLOCK_K": 32}]
    results = [SimpleNamespace(directory=tmp_path / name / name) for name in ("BLOCK_M", "BLOCK_K")]
    compiled = SimpleNamespace(entries=[entries["BLOCK_M"], entries["BLOCK_K"]])
    monkeypatch.setattr(option_trials, "propose_changes", lambda *arguments: changes)
    monkeypatch.setattr(option_trials, "compile_kernels", lambda *arguments, **named: results)
    monkeypatch.setattr(option_trials, "open_cache", lambda directory: compiled)
    (change,) = compare_corpora([entries["old"]], [bad], inspect_artifact, is_one_pair=True).changes
    assert change.headline is not None
    assert change.headline.phrase.startswith("registers spill to memory, 0 → 256 B")
    trials = list(try_changes(bad, change.headline.fact, f"{ROOT}/register_spill.py:register_spill", tmp_path))
    assert trials == [
        "Try BLOCK_K=32 (compiled, no time predicted): registers no longer spill, 256 → 0 B per thread.",
        "Try BLOCK_M=64 (compiled, no time predicted): fewer registers spill to memory (256 → 64 B per thread).",
    ]


def test_a_kernel_whose_options_changed_is_compared_by_its_name(tmp_path: Path) -> None:
    for side in ("old", "new"):
        for name in ("softmax", "copy"):
            shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / name, tmp_path / side / name)
    (file,) = (tmp_path / "new" / "softmax").glob("*/[!_]*.json")
    file.write_text(json.dumps({**json.loads(file.read_text()), "num_warps": 1, "shared": 65536}))
    sides = tmp_path / "old", tmp_path / "new"
    result = run("regress", *sides)
    assert result.stdout.startswith("2 kernels compared: 1 worse, 0 better, 0 neutral, 1 unchanged.")
    assert result.exit_code == 1
    named = run("diff", *(f"{side}:softmax" for side in sides), "--brief")
    assert "only on" in run("diff", *sides).stdout  # a new and a missing kernel
    assert named.exit_code == 1, named.output


@pytest.mark.long
def test_remedies_name_the_release_that_compiled_them(releases: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache does not choose what is installed: remedies of another release are those of the installed one."""

    def refuse(*_: object, **__: object) -> None:
        raise CompileError("no environment")

    monkeypatch.setattr(remedies, "find_interpreter", refuse)
    result = run("regress", releases, "--left", "3.5.1", "--right", "3.6.0", "--why", "--budget", "10m")
    text = " ".join(result.stdout.split())
    assert "Triton 3.6.0 is not installed: remedies were compiled by Triton 3." in text
