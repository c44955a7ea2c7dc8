"""`inspect-kernel baseline` and `check`: exit codes, formats, files, and what is refused."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from saved import FIXTURES, ROOT
from typer.testing import CliRunner, Result

from artifact_inspector import cli
from artifact_inspector.api.pair_prices import price_record, record_times, unknown_price
from artifact_inspector.comparison import baseline
from artifact_inspector.comparison.baseline import RecordedTime, record
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.compiling.ask.manifest import group_launches
from artifact_inspector.execution.launch_requests import LaunchRequest
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.files.records import MANIFEST

MATMUL = FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped"
pytestmark = pytest.mark.usefixtures("recalled")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working tree with the kernel's source, its cache, and a baseline of it."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(MATMUL, tmp_path / "cache")
    (tmp_path / "kernels").mkdir()
    shutil.copy(ROOT / "kernels" / "matmul_grouped.py", tmp_path / "kernels")
    assert run("baseline", "cache", "-o", "facts.json").exit_code == 0
    return tmp_path


def drain(directory: Path) -> None:
    """The loop's wait leaves nothing in flight any more."""
    (ptx,) = (directory / "cache").rglob("*.ptx")
    ptx.write_text(ptx.read_text().replace("cp.async.wait_group \t4", "cp.async.wait_group \t0"))


def test_recording_says_how_many_and_where(directory: Path) -> None:
    assert run("baseline", "cache", "-o", "more.json").stdout == "1 kernel recorded in more.json\n"
    assert (directory / "more.json").read_text() == run("baseline", "cache").stdout


def test_a_check_of_unchanged_kernels_imports_no_simulator(directory: Path) -> None:
    code = "import sys; from artifact_inspector.cli import app; app(sys.argv[1:], standalone_mode=False); " + (
        "print(*(n for n in sys.modules if n.startswith(('numpy', 'artifact_inspector.execution'))))"
    )
    command = [sys.executable, "-c", code, "check", "cache", "-b", "facts.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["1 kernel compared · 1 as recorded", ""]


def test_a_recorded_source_is_a_path_of_the_working_tree(directory: Path) -> None:
    (kernel,) = json.loads((directory / "facts.json").read_text())["kernels"]
    assert kernel["source"] == "kernels/matmul_grouped.py"


def test_what_did_not_change_passes(directory: Path) -> None:
    result = run("check", "cache", "--baseline", "facts.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("Passed: no checked fact got worse (time, verdict, spills, waits, mma, atomics, ")


def test_digests_of_texts_are_kept(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(directory / "home"))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
    assert run("baseline", "cache", "-o", "again.json").exit_code == 0
    assert (directory / "again.json").read_text() == (directory / "facts.json").read_text()
    read: list[str] = []
    compute = baseline.digest_of
    monkeypatch.setattr(baseline, "digest_of", lambda *args: read.append(args[1].value) or compute(*args))
    assert run("check", "cache", "--baseline", "facts.json").exit_code == 0
    assert read == []
    drain(directory)
    assert run("check", "cache", "--baseline", "facts.json").exit_code == 1
    assert "ptx" in read


def test_what_changed_fails_with_the_facts(directory: Path) -> None:
    drain(directory)
    result = run("check", "cache", "--baseline", "facts.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("Failed: 1 gate (waits). matmul_kernel: Worse: the pipeline of the loop at")
    assert "wait depth 4 → 0" in " ".join(result.stdout.split())


def test_the_next_command_shows_the_kernel_that_fails(directory: Path) -> None:
    drain(directory)
    failure = run("check", "cache", "--baseline", "facts.json").stdout
    _, _, command = failure.rpartition("\nnext   inspect-kernel ")
    following = run(*shlex.split(command))
    assert following.exit_code == 0, following.output
    assert "cp.async.wait_group 0" in " ".join(following.stdout.split())


@pytest.mark.parametrize(("gates", "code"), [("mma,verdict", 0), ("spills", 0), ("", 0), ("waits", 1), ("any", 1)])
def test_only_what_was_asked_for_fails(directory: Path, gates: str, code: int) -> None:
    drain(directory)
    assert run("check", "cache", "--baseline", "facts.json", "--fail-on", gates).exit_code == code


def test_a_kernel_that_is_gone_fails_and_one_that_is_new_does_so_when_asked(directory: Path) -> None:
    shutil.rmtree(directory / "cache")
    shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / "softmax", directory / "cache")
    result = run("check", "cache", "--baseline", "facts.json")
    question = "No kernel of the cache is in the baseline. Is the baseline of another cache?"
    assert result.exit_code == 1
    assert " ".join(result.stdout.split()).startswith(f"Failed: 1 gate (gone). {question}")
    assert "only in the baseline" in result.stdout
    assert "only in the cache" in result.stdout
    assert run("check", "cache", "-b", "facts.json", "--fail-on", "new").exit_code == 1
    assert run("check", "cache", "-b", "facts.json", "--fail-on", "verdict").exit_code == 0
    shutil.rmtree(directory / "cache")
    (directory / "cache").mkdir()
    result = run("check", "cache", "--baseline", "facts.json")
    assert result.exit_code == 1
    assert result.stdout.startswith("Failed: 1 gate (gone). The cache has no kernel.")


def test_among_several_gpus_the_first_sentence_names_the_one(directory: Path) -> None:
    shutil.copytree(FIXTURES / "3.6.0" / "sm_90" / "matmul_grouped", directory / "cache", dirs_exist_ok=True)
    assert run("baseline", "cache", "-o", "both.json").exit_code == 0
    for ptx in (directory / "cache").rglob("*.ptx"):
        ptx.write_text(ptx.read_text().replace("cp.async.wait_group \t4", "cp.async.wait_group \t0"))
    words = run("check", "cache", "--baseline", "both.json").stdout
    assert words.startswith("Failed: 1 gate (waits). matmul_kernel on sm_"), words


@pytest.mark.long
def test_a_name_and_a_target_narrow_both_sides(directory: Path) -> None:
    assert run("baseline", FIXTURES / "3.6.0", "-o", "all.json").exit_code == 0
    assert run("check", "cache", "matmul_kernel", "-t", "A100", "-b", "all.json").exit_code == 0
    assert run("check", "cache", "softmax", "-t", "A100", "-b", "all.json").exit_code == 1


def test_reports_are_written_beside_the_one_that_is_printed(directory: Path) -> None:
    drain(directory)
    files = ["r.sarif", "r.xml", "r.json", "r.md"]
    result = run("check", "cache", "-b", "facts.json", *(part for name in files for part in ("-o", name)))
    assert result.exit_code == 1
    assert result.stdout.startswith("Failed: 1 gate (waits).")
    assert json.loads((directory / "r.sarif").read_text())["version"] == "2.1.0"
    assert (directory / "r.xml").read_text().startswith("<?xml")
    assert json.loads((directory / "r.json").read_text())["failures"] == ["waits"]
    assert "wait depth 4 → 0" in (directory / "r.md").read_text(encoding="utf-8")


def test_annotations_point_at_the_loop_in_the_source(directory: Path) -> None:
    drain(directory)
    first, *_ = run("check", "cache", "-b", "facts.json", "--format", "github").stdout.splitlines()
    assert first.startswith(
        "::error file=kernels/matmul_grouped.py,line=81,title=matmul_kernel (sm_80)%3A waits::matmul_kernel (sm_80): "
        "Worse: the pipeline of the loop at matmul_grouped.py:81 drains every iteration (wait depth 4 → 0)"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["check", "cache", "-b", "none.json"], 3, "The baseline none.json could not be read"),
        (["check", "cache", "facts.json"], 3, "If facts.json is the baseline, write --baseline facts.json."),
        (["check", "cache", "-b", "."], 3, "could not be read"),
        (["check", "nowhere", "-b", "facts.json"], 3, "There is no directory"),
        (["check", "cache", "-b", "facts.json", "--fail-on", "sorrow"], 2, "Unknown gate 'sorrow' for --fail-on"),
        (["check", "cache", "-b", "facts.json", "--format", "pdf"], 2, "Unknown format 'pdf'"),
        (["check", "cache", "-b", "facts.json", "-o", "report.pdf"], 2, "The suffix of report.pdf names no format"),
        (["check", "cache", "nothing", "-b", "facts.json"], 2, "is called 'nothing'"),
        (["check", "cache", "-b", "facts.json", "-o", "no/where.json"], 3, "no/where.json could not be written"),
        (["baseline", "cache", "-o", "no/where.json"], 3, "no/where.json could not be written"),
        (["baseline", "."], 0, None),
        (["baseline", "empty"], 3, "No kernels in empty."),
        (["findings", "cache", "--format", "pdf"], 2, "Unknown format 'pdf'"),
    ],
)
def test_what_cannot_be_done_is_said_with_its_exit_code(
    directory: Path, arguments: list[str], code: int, message: str | None
) -> None:
    (directory / "empty").mkdir()
    result = run(*arguments)
    assert (result.exit_code, result.exception is None or isinstance(result.exception, SystemExit)) == (code, True)
    assert message is None or message in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("old", "new", "code", "message"),
    [
        ('"schema_version": 2', '"schema_version": 7', 3, "schema version 7"),
        ('"arch": "sm_80"', '"arch": "sm_90"', 2, "The baseline is for sm_90, but the cache is for sm_80."),
    ],
)
def test_a_baseline_of_another_kind_is_named(directory: Path, old: str, new: str, code: int, message: str) -> None:
    file = directory / "facts.json"
    file.write_text(file.read_text().replace(old, new))
    result = run("check", "cache", "-b", "facts.json")
    assert result.exit_code == code
    assert message in result.stderr


def test_a_baseline_of_another_release_is_checked_with_a_word_of_warning(directory: Path) -> None:
    file = directory / "facts.json"
    text = file.read_text()
    file.write_text(text.replace('"generator": "', '"generator": "older-'))
    result = run("check", "cache", "-b", "facts.json")
    assert result.exit_code == 0
    assert "was recorded by inspect-kernel older-" in result.stdout


# -- gates by direction ------------------------------------------------------------------


def test_an_improvement_passes_and_fails_only_if_strict(directory: Path) -> None:
    drain(directory)
    assert run("baseline", "cache", "-o", "drained.json").exit_code == 0
    shutil.rmtree(directory / "cache")
    shutil.copytree(MATMUL, directory / "cache")
    result = run("check", "cache", "-b", "drained.json")
    assert result.exit_code == 0
    assert result.stdout.startswith("Passed: no checked fact got worse (time, verdict, spills, ")
    assert "Better: the pipeline of the loop at matmul_grouped.py:81 no longer drains every iteration" in " ".join(
        result.stdout.split()
    )
    strict = run("check", "cache", "-b", "drained.json", "--strict")
    assert strict.exit_code == 1
    assert strict.stdout.startswith("Failed: 1 gate (waits). ")


def test_one_redundant_wait_more_is_neutral(directory: Path) -> None:
    (ptx,) = (directory / "cache").rglob("*.ptx")
    text = ptx.read_text()
    (line,) = {line for line in text.splitlines() if "cp.async.wait_group" in line and line.split()[-1].startswith("4")}
    ptx.write_text(text.replace(f"{line}\n", f"{line}\n{line}\n"))
    assert run("check", "cache", "-b", "facts.json").exit_code == 0
    assert run("check", "cache", "-b", "facts.json", "--strict").exit_code == 1


@pytest.mark.parametrize(("rows", "code"), [({"spills": 64, "occupancy": 3}, 0), ({"spills": 0}, 0)])
def test_spills_and_blocks_that_improved_never_fail(directory: Path, rows: dict[str, int], code: int) -> None:
    """A baseline of before: with spills that went away, and fewer blocks (the cache has 5)."""
    baseline = json.loads((directory / "facts.json").read_text())
    for fact in baseline["kernels"][0]["facts"]:
        fact["value"] = rows.get(fact["key"], fact["value"])
    baseline["kernels"][0]["digests"] = {}
    (directory / "before.json").write_text(json.dumps(baseline))
    result = run("check", "cache", "-b", "before.json", "--fail-on", "spills,occupancy,registers,any")
    assert result.exit_code == code, result.stdout


def test_every_format_has_one_line_with_the_cause(directory: Path) -> None:
    drain(directory)
    run("check", "cache", "-b", "facts.json", "-o", "r.sarif", "-o", "r.xml", "-o", "r.json")
    cause = "the pipeline of the loop at matmul_grouped.py:81 drains every iteration (wait depth 4 → 0)"
    (result,) = json.loads((directory / "r.sarif").read_text())["runs"][0]["results"]
    assert cause in result["message"]["text"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 81
    assert cause in (directory / "r.xml").read_text(encoding="utf-8")
    document = json.loads((directory / "r.json").read_text())
    assert document["strict"] is False
    assert cause in document["kernels"][0]["change"]["headline"]["sentence"]


def test_an_annotation_outside_of_the_tree_has_the_recorded_place(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain(directory)
    (directory / "elsewhere").mkdir()
    monkeypatch.chdir(directory / "elsewhere")
    text = run("check", "../cache", "-b", "../facts.json", "-f", "github").stdout
    assert text.startswith("::error file=kernels/matmul_grouped.py,line=81,title=matmul_kernel")
    path = directory / "facts.json"
    path.write_text(path.read_text().replace("kernels/matmul_grouped.py", "matmul_grouped.py"))  # no path is recorded
    assert run("check", "../cache", "-b", "../facts.json", "-f", "github").stdout.startswith("::error title=")


def test_facts_that_an_old_baseline_lacks_are_listed_once_and_fail_no_gate(directory: Path) -> None:
    """A baseline of a version that knew neither barriers per trip nor its own list of facts."""
    document = json.loads((directory / "facts.json").read_text(encoding="utf-8"))
    (kernel,) = document["kernels"]
    assert "trip.barriers" in document.pop("fact_keys")
    kernel["facts"] = [row for row in kernel["facts"] if "trip.barriers" not in row["key"]]
    (directory / "facts.json").write_text(json.dumps(document), encoding="utf-8")
    drain(directory)
    result = run("check", "cache", "--baseline", "facts.json", "--fail-on", "barriers")
    assert result.exit_code == 0
    assert " ".join(result.stdout.split()).count("Not in the baseline, so not compared: barriers.") == 1


def tensor(dtype: str, *shape: int) -> dict[str, object]:
    return {"shape": list(shape), "dtype": dtype, "alignment": 16}


MATRIX = tensor("float16", 256, 256)
SIZES = dict.fromkeys(("M", "N", "K", "stride_am", "stride_bk", "stride_cm"), 256)
MATMUL_LAUNCH = {"grid": [8, 1, 1], "args": {"a_ptr": MATRIX, "b_ptr": MATRIX, "c_ptr": MATRIX, **SIZES}}


def record_launch(source: Path, cache: Path, **launch: object) -> None:
    """A copy of a cache with a launch on record."""
    shutil.copytree(source, cache)
    (entry,) = open_cache(cache).entries
    rows = [{"hash": entry.hash, "kernel": entry.display_name, **launch}]
    (cache / MANIFEST).write_text(json.dumps({"schema_version": 1, "entries": [], "launches": rows}))


@pytest.mark.parametrize(
    ("target", "old", "new", "options", "code", "words"),
    [
        ("sm_80", "3.6.0", "3.9.0", ["--threshold", "5"], 0, "although facts got worse: barriers."),
        ("sm_80", "3.6.0", "3.9.0", [], 1, "Worse: more barriers (2 → 3 per iteration)"),
        ("gfx942", "3.6.0", "3.9.0", [], 0, "Passed: no checked fact got worse (time, "),
        ("sm_80", "3.6.0", "3.9.0", ["--fail-on", "barriers"], 1, "Failed: 1 gate (barriers)."),
        ("gfx942", "3.6.0", "3.9.0", ["--strict"], 1, "Failed: 4 gates (time, "),
        ("gfx942", "3.9.0", "3.6.0", [], 1, "Failed: 1 gate (time). matmul_kernel: Worse: 1."),
        ("gfx942", "3.9.0", "3.6.0", ["--threshold", "20"], 0, "Passed: no checked fact got worse (time, "),
    ],
)
def test_a_predicted_time_decides_alone(
    tmp_path: Path, target: str, old: str, new: str, options: list[str], code: int, words: str
) -> None:
    """One matmul by two releases: the new one has more barriers, and takes 4 % longer or less time."""
    record_launch(FIXTURES / old / target / "matmul_grouped", tmp_path / "old", **MATMUL_LAUNCH)
    recorded = run("baseline", tmp_path / "old", "-o", tmp_path / "b.json")
    assert recorded.stdout.endswith(", with 1 predicted time\n"), recorded.output
    new_cache = FIXTURES / new / target / "matmul_grouped"
    result = run("check", new_cache, "-b", tmp_path / "b.json", *options)
    assert (result.exit_code, words in " ".join(result.stdout.split())) == (code, True), result.stdout


def test_every_format_tells_the_times_and_the_cause(directory: Path) -> None:
    vectors = {"a_ptr": tensor("float16", 1024), "b_ptr": tensor("float16", 1024, 512), "c_ptr": tensor("float32", 512)}
    old, new = (FIXTURES / release / "gfx942" / "gemv_splitk" for release in ("3.9.0", "3.6.0"))
    record_launch(old, directory / "old", grid=[2, 8, 1], args={**vectors, "stride_bk": 512})
    assert run("baseline", "old", "-o", "b.json").exit_code == 0
    result = run("check", new, "-b", "b.json", "-f", "github", *(f"-ox.{x}" for x in ("sarif", "xml", "json", "md")))
    assert result.exit_code == 1
    texts = {path.suffix: path.read_text() for path in directory.glob("x.*")}
    for text in (result.stdout, *texts.values()):
        assert "Worse: more shared memory (2048 → 4096 B per CTA)" in text
    for text in (result.stdout, texts[".sarif"], texts[".xml"], texts[".md"]):
        assert "× the old one (" in text
    assert result.stdout.startswith("::error title=gemv_splitk (gfx942)%3A time::")
    assert [row["ruleId"] for row in json.loads(texts[".sarif"])["runs"][0]["results"]] == ["time"]
    assert '<failure type="time" message="Worse: ' in texts[".xml"]
    document = json.loads(texts[".json"])
    (kernel,) = document["kernels"]
    (time,) = json.loads((directory / "b.json").read_text())["kernels"][0]["times"]
    assert (document["failures"], kernel["failures"], document["threshold"]) == (["time"], ["time"], 3.0)
    assert kernel["price"]["left_microseconds"] == time["microseconds"]


@pytest.mark.long
def test_a_published_regression_fails_by_its_time(tmp_path: Path) -> None:
    """triton#9703 reports 1.84× for this tile on an H100; of a larger launch."""
    with tarfile.open(ROOT / "tests" / "cases" / "reduction_across_warps.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    root = tmp_path / "reduction_across_warps"
    arguments = {"desc": tensor("bfloat16", 256, 256), "out": tensor("float32", 256), "M": 256, "N": 256}
    entries = sorted(open_cache(root).entries, key=lambda entry: str(entry.triton_version))
    old, new = (root / entry.directory for entry in entries)
    record_launch(old, tmp_path / "old", grid=[2, 1, 1], args=arguments)
    assert run("baseline", tmp_path / "old", "-o", tmp_path / "b.json").exit_code == 0
    result = run("check", new, "-b", tmp_path / "b.json", "-o", tmp_path / "x.json")
    assert result.exit_code == 1
    assert "colmax: Worse: new reduction across warps: 0 → 2048 B of" in " ".join(result.stdout.split())
    (kernel,) = json.loads((tmp_path / "x.json").read_text())["kernels"]
    assert kernel["price"]["ratio"] == pytest.approx(1.84, rel=0.15)


def test_without_a_time_facts_decide_and_the_reason_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches = [FIXTURES / release / "sm_80" / "matmul_grouped" for release in ("3.6.0", "3.9.0")]
    record_launch(caches[0], tmp_path / "old", **MATMUL_LAUNCH)
    path = tmp_path / "b.json"

    def judge(*arguments: object) -> str:
        result = run("check", caches[1], "-b", path, *arguments)
        assert result.exit_code == 1, result.stdout
        return " ".join(result.stdout.split())

    run("baseline", tmp_path / "old", "-o", path, "--no-times")
    assert "Judged by facts, not by predicted time: 1 kernel (the baseline has no time of it)." in judge()
    document = json.loads(path.read_text())
    for kernel in document["kernels"]:
        del kernel["times"]  # a baseline of an older version
    path.write_text(json.dumps(document))
    assert "(the baseline has no time of it)" in judge()
    assert "Judged by facts" not in judge("--fail-on", "barriers")
    run("baseline", tmp_path / "old", "-o", path)
    path.write_text(path.read_text().replace('"generator": "', '"generator": "0.'))
    assert "inspect-kernel 0." in judge()


def test_a_launch_of_other_tiles_needs_a_record_of_its_own(tmp_path: Path) -> None:
    record_launch(FIXTURES / "3.6.0" / "gfx942" / "matmul_grouped", tmp_path / "old", **MATMUL_LAUNCH)
    (entry,) = open_cache(tmp_path / "old").entries
    predicted: list[LaunchRequest] = []

    def predict(artifact: Artifact, request: LaunchRequest, gpu: str | None) -> PairPrice:
        predicted.append(request)
        return PairPrice(1.0, 2.0, 2.0, "path", "path", "grid 8", "MI300X", right_microseconds=len(predicted))

    rows = group_launches(tmp_path / "old", [entry.directory])[entry.hash]
    (time,) = record_times(entry, rows, predict, None)
    assert isinstance(time, RecordedTime)
    recorded = replace(record(inspect_artifact(entry), lambda _: None), times=(time, time))
    price = price_record(recorded, Candidate(entry), [], tmp_path, predict)
    assert price.ratio == 3.0  # the worst of two launches
    assert [request.grid for request in predicted] == [(8, 1, 1)] * 3
    other = replace(recorded, summary=replace(recorded.summary, tiles=()))
    assert "its tiles changed" in price_record(other, Candidate(entry), [], tmp_path, predict).problem
    assert price_record(other, Candidate(entry), rows, tmp_path, predict).ratio == 5.0  # its own record
    retyped = [
        (
            {
                **row,
                "args": {n: {**x, "dtype": "float64"} if isinstance(x, dict) else x for n, x in row["args"].items()},
            },
            root,
        )
        for row, root in rows
    ]
    assert price_record(other, Candidate(entry), retyped, tmp_path, predict).ratio is not None

    def refuse(artifact: Artifact, request: LaunchRequest, gpu: str | None) -> PairPrice:
        return unknown_price("it depends on values of a_ptr")

    tensor = {"shape": [4], "dtype": "float16"}
    changed = [({**row, "args": {**row["args"], "M": 7, "a_ptr": tensor}}, root) for row, root in rows]
    number = rows[0][0]["args"]["M"]
    problem = price_record(recorded, Candidate(entry), changed, tmp_path, refuse).problem
    assert problem.startswith(f"its launch differs from the recorded one: M {number} → 7, a_ptr ")
    assert problem.endswith(" → float16[4]")
    assert price_record(recorded, Candidate(entry), rows, tmp_path, refuse).problem == "it depends on values of a_ptr"


@pytest.mark.parametrize("target", ["sm_80", pytest.param("gfx942", marks=pytest.mark.long)])
def test_one_launch_has_one_predicted_time_in_every_command(tmp_path: Path, target: str) -> None:
    """CTAs of a matrix product share operands, so that the time of a sample differs from that of the launch."""
    caches = [tmp_path / "old", tmp_path / "new"]
    for release, cache in zip(("3.6.0", "3.9.0"), caches, strict=True):
        record_launch(FIXTURES / release / target / "matmul_grouped", cache, **MATMUL_LAUNCH)
    run("baseline", caches[0], "-o", tmp_path / "b.json")
    (recorded,) = json.loads((tmp_path / "b.json").read_text())["kernels"][0]["times"]
    predicted = [json.loads(run("predict", cache, "--json").stdout)["time"]["us"] for cache in caches]
    run("check", caches[1], "-b", tmp_path / "b.json", "-o", tmp_path / "x.json")
    prices = [json.loads((tmp_path / "x.json").read_text())["kernels"][0]["price"]]
    prices += [json.loads(run("diff", *caches, "--json").stdout)["price"]]
    prices += [json.loads(run("regress", *caches, "--prices", "--json").stdout)["kernels"][0]["price"]]
    assert recorded["microseconds"] == pytest.approx(predicted[0], abs=0.01)
    for price in prices:
        times = [price["left_microseconds"], price["right_microseconds"]]
        assert times == pytest.approx(predicted, abs=0.01)
        assert price["is_sampled"] is recorded["is_sampled"] is (target == "gfx942")


def test_a_sampled_time_is_compared_with_that_of_a_sample(tmp_path: Path) -> None:
    """A launch that took too long on one of two machines: cycles are those of samples, on both."""
    record_launch(FIXTURES / "3.6.0" / "gfx942" / "matmul_grouped", tmp_path / "old", **MATMUL_LAUNCH)
    (entry,) = open_cache(tmp_path / "old").entries
    ((row, _),) = group_launches(tmp_path / "old", [entry.directory])[entry.hash]
    now = PairPrice(1.0, 30.0, 30.0, "l2", "l2", "grid 8", "A100", right_microseconds=9.0, is_sampled=False)
    recorded = record(inspect_artifact(entry), lambda _: None)
    for is_sampled, expected in ((False, (3.0, False, 3.0)), (True, (1.5, True, None))):
        time = RecordedTime(row, None, 3.0, 20.0, "l2", is_sampled)
        kernel = replace(recorded, times=(time,))
        price = price_record(kernel, Candidate(entry), [], tmp_path, lambda *_: now)
        assert (price.ratio, price.is_sampled, price.left_microseconds) == expected
