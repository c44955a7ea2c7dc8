"""Two caches: how much each kernel changed, what that shuts, and the four ways in which it is told."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from saved import FIXTURES
from typer.testing import CliRunner, Result

from artifact_inspector.cli import app
from artifact_inspector.comparison.consequence import decisiveness_of
from artifact_inspector.comparison.corpus import (
    GATES,
    Change,
    Corpus,
    Degree,
    compare_candidates,
    compare_corpora,
    parse_gates,
)
from artifact_inspector.comparison.matching import Candidate
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.diff import PairReport
from artifact_inspector.report.exchange.junit import junit_text
from artifact_inspector.report.exchange.markdown import corpus_markdown
from artifact_inspector.vocabulary.fact import Sign

pytestmark = pytest.mark.usefixtures("recalled")

SOURCES = FIXTURES / "3.6.0/sm_80"
Edit = Callable[[Path], None]


def rewrite(suffix: str, change: Callable[[str], str]) -> Edit:
    def edit(cache: Path) -> None:
        (file,) = cache.rglob(f"*.{suffix}")
        text = file.read_text(encoding="utf-8")
        assert change(text) != text
        file.write_text(change(text), encoding="utf-8")

    return edit


def all_of(*edits: Edit) -> Edit:
    def edit(cache: Path) -> None:
        for one in edits:
            one(cache)

    return edit


def shifted(text: str) -> str:
    """Every line of the source three further down."""
    text = re.sub(r'(loc\("[^"]*":)(\d+):', lambda x: f"{x[1]}{int(x[2]) + 3}:", text)
    text = re.sub(r"(\bline: )(\d+)", lambda x: f"{x[1]}{int(x[2]) + 3}", text)
    return re.sub(r"^(\s+\.loc\s+\d+ )(\d+)", lambda x: f"{x[1]}{int(x[2]) + 3}", text, flags=re.M)


nothing: Edit = all_of()
values_renamed = rewrite("ttir", lambda text: re.sub(r"%(\d+)", r"%9\1", text))
registers_renamed = rewrite("ptx", lambda text: re.sub(r"%(r|rd|p)(\d+)\b", r"%\g<1>9\2", text))
lines_shifted = all_of(*(rewrite(suffix, shifted) for suffix in ("ttir", "ttgir", "llir", "ptx")))
opcode_changed = rewrite("ptx", lambda text: re.sub(r"\bshr\.u32\b", "shr.s32", text, count=1))
loop_counts_otherwise = rewrite("ptx", lambda text: re.sub(r"\badd\.s32\b", "sub.s32", text, count=1))
wait_drained = rewrite("ptx", lambda text: text.replace("cp.async.wait_group \t4", "cp.async.wait_group \t0"))


def compared(left: Path, right: Path, *, always: bool = False) -> Corpus:
    return compare_corpora(open_cache(left).entries, open_cache(right).entries, inspect_artifact, always=always)


def changed(tmp_path: Path, edit: Edit, kernel: str = "matmul_grouped", *, always: bool = False) -> Change:
    for side in ("a", "b"):
        shutil.copytree(SOURCES / kernel, tmp_path / side)
    edit(tmp_path / "b")
    (change,) = compared(tmp_path / "a", tmp_path / "b", always=always).changes
    return change


def test_a_pair_alike_in_all_that_counts_is_read_only_where_it_is_wanted_always() -> None:
    one, other = (Candidate(open_cache(SOURCES / "matmul_grouped").entries[0]) for _ in range(2))
    assert compare_candidates(one, other, inspect_artifact).pair is None
    assert compare_candidates(one, other, inspect_artifact, always=True).pair is not None


# -- degrees ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edit", "degree"),
    [
        (nothing, Degree.IDENTICAL),
        (values_renamed, Degree.BENIGN),
        (registers_renamed, Degree.BENIGN),
        (lines_shifted, Degree.BENIGN),
        (all_of(values_renamed, registers_renamed, lines_shifted), Degree.BENIGN),
        (opcode_changed, Degree.CODE),
        (loop_counts_otherwise, Degree.CODE),
        (wait_drained, Degree.CHANGED),
        (all_of(values_renamed, lines_shifted, wait_drained), Degree.CHANGED),
    ],
)
def test_a_kernel_changed_as_much_as_it_was_edited(edit: Edit, degree: Degree, tmp_path: Path) -> None:
    change = changed(tmp_path, edit)
    assert change.degree is degree
    assert bool(change.facts) is (degree is Degree.CHANGED)
    assert (change.pair is None) is (degree in (Degree.IDENTICAL, Degree.BENIGN))


sum_is_difference = rewrite("ttgir", lambda text: text.replace("arith.addi", "arith.subi", 1))


def without_machine_code(cache: Path) -> None:
    for file in [file for suffix in ("llir", "ptx", "cubin") for file in cache.rglob(f"*.{suffix}")]:
        file.unlink()


@pytest.mark.parametrize(
    ("edit", "rest"),
    [
        (without_machine_code, "no fact differs."),
        (all_of(sum_is_difference, without_machine_code), "no fact differs, but the code does."),
    ],
)
def test_what_could_not_be_compared_comes_first(edit: Edit, rest: str, tmp_path: Path) -> None:
    change = changed(tmp_path, edit, always=True)
    assert change.pair is not None
    lead = PairReport(change.pair, change=change).lead
    expected = "Not compared: the right kernel has no llir, assembly, binary. In the files of both, "
    assert lead.plain == expected + rest


@pytest.mark.parametrize("kernel", ["matmul_grouped", "nested_loops", "noinline_helper"])
def test_no_fact_depends_on_the_line_that_a_kernel_stands_in(kernel: str, tmp_path: Path) -> None:
    change = changed(tmp_path, lines_shifted, kernel, always=True)
    assert change.degree is Degree.BENIGN
    assert change.compared_facts
    assert not change.facts


def test_a_drained_wait_is_told_as_waits_and_nothing_of_the_compiler(tmp_path: Path) -> None:
    change = changed(tmp_path, wait_drained)
    assert change.categories[0] == "waits"
    assert {"verdict", "mma", "shared", "registers"}.isdisjoint(change.categories)
    (depth,) = (fact for fact in change.facts if fact.key.endswith("pipeline.depth"))
    assert (depth.left, depth.right) == (4, 0)


def test_facts_and_categories_stand_most_telling_first(tmp_path: Path) -> None:
    change = changed(tmp_path, wait_drained)
    ranks = [decisiveness_of(fact) for fact in change.facts]
    assert ranks == sorted(ranks)
    assert change.facts[0].key == "loop1.pipeline.depth"
    assert change.direction is Sign.WORSE


# -- two caches ------------------------------------------------------------------------

KERNELS = {
    "flash_attention": (nothing, Degree.IDENTICAL),
    "softmax": (values_renamed, Degree.BENIGN),
    "persistent_matmul": (loop_counts_otherwise, Degree.CODE),
    "matmul_grouped": (wait_drained, Degree.CHANGED),
}


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with two caches of which four kernels are in both, and one in each alone."""
    root = tmp_path_factory.mktemp("caches")
    for kernel, (edit, _) in KERNELS.items():
        for side in ("a", "b"):
            shutil.copytree(SOURCES / kernel, root / side / kernel)
        edit(root / "b" / kernel)
    shutil.copytree(SOURCES / "two_loops", root / "a" / "two_loops")
    shutil.copytree(SOURCES / "while_loop", root / "b" / "while_loop")
    (root / "empty").mkdir()
    return root


@pytest.fixture
def corpus(caches: Path) -> Corpus:
    return compared(caches / "a", caches / "b")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["diff", *arguments])


@pytest.fixture
def inside(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(caches)
    monkeypatch.setenv("COLUMNS", "100")


def test_the_worst_stands_first(corpus: Corpus) -> None:
    worst = [Degree.CHANGED, Degree.CODE, Degree.BENIGN, Degree.IDENTICAL]
    assert [change.degree for change in corpus.changes] == worst
    assert {degree: corpus.count(degree) for degree in worst} == dict.fromkeys(worst, 1)
    assert not corpus.is_same


def test_what_one_side_alone_has_is_gone_or_new(corpus: Corpus) -> None:
    assert [len(corpus.matching.left), len(corpus.matching.right)] == [1, 1]
    assert corpus.failures(["gone", "new"]) == ("gone", "new")


def test_gates_are_shut_by_what_differs_and_by_nothing_else(corpus: Corpus) -> None:
    shut = corpus.failures(GATES)
    assert set(shut) == {*corpus.by_category, "code", "gone", "new", "any"}
    assert shut == tuple(gate for gate in GATES if gate in shut)
    assert corpus.failures(["verdict", "spills"]) == ()
    assert corpus.failures([]) == ()
    worst, code, benign, identical = corpus.changes
    assert code.failures(GATES) == ("code", "any")
    assert benign.failures(GATES) == identical.failures(GATES) == ()
    assert worst.failures(["waits", "mma"]) == ("waits",)


def test_a_gate_has_a_known_name() -> None:
    assert parse_gates(["waits, Spills", "any"]) == ("waits", "spills", "any")
    with pytest.raises(UsageError, match="Unknown gate 'sorrow' for --fail-on"):
        parse_gates(["sorrow"])


@pytest.mark.usefixtures("inside")
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["a", "a"], 0),
        (["a", "b"], 1),
        (["a/softmax", "b/softmax"], 0),
        (["a/persistent_matmul", "b/persistent_matmul"], 1),
        (["a", "b", "--fail-on", "verdict,spills,mma"], 0),
        (["a", "b", "--fail-on", "time"], 2),
        (["a", "b", "--fail-on", "spills", "--fail-on", "waits"], 1),
        (["a", "b", "--fail-on", "new"], 1),
        (["a", "a", "--fail-on", "any"], 0),
        (["a", "empty"], 3),
        (["empty", "b", "--fail-on", "gone"], 3),
        (["a", "b", "--fail-on", "sorrow"], 2),
        (["a", "b", "--across", "colour"], 2),
        (["a", "b", "--format", "pdf"], 2),
        (["a"], 2),
        (["a:nothing", "b"], 2),
        (["a:two_loops", "b:while_loop"], 1),
        (["a", "b", "--left", "sm_90"], 2),
        (["a", "nowhere"], 3),
        (["empty", "empty"], 3),
    ],
)
def test_exit_codes_are_those_of_diff(arguments: list[str], code: int) -> None:
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert bool(result.stdout) is (code < 2)
    assert bool(result.stderr) is (code > 1)


@pytest.mark.usefixtures("inside")
def test_the_report_starts_with_the_summary() -> None:
    first, *rest = run("a", "b", "--fail-on", "waits").stdout.splitlines()
    assert first == ("4 kernels compared · 1 identical · 1 differ in names and line numbers only")
    assert rest[0].startswith("1 with different code but equal facts · 1 changed · 1 worse · 1 only on the left")
    page = Path("page.html")
    run("a", "b", "--html", page)
    text = re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
    assert "1 changed · 1 worse · 1 only on the left" in text
    # the head of the list, which has no count of its own: a list of many kernels is cut
    assert re.search(r"\n1 only on the left *\n", text)
    assert "Failed: 1 gate (waits)." in rest


@pytest.mark.usefixtures("inside")
def test_json_holds_every_kernel_worst_first() -> None:
    document = json.loads(run("a", "b", "--json", "--fail-on", "waits,spills").stdout)
    assert [kernel["degree"] for kernel in document["kernels"]] == ["changed", "code", "benign", "identical"]
    assert document["counts"] == {"identical": 1, "benign": 1, "code": 1, "changed": 1, "unknown": 0}
    assert (document["gates"], document["failures"]) == (["waits", "spills"], ["waits"])
    assert (len(document["only_left"]), len(document["only_right"]), document["same"]) == (1, 1, False)


@pytest.mark.usefixtures("inside")
def test_a_cache_with_itself_is_the_same() -> None:
    document = json.loads(run("a", "a", "--json").stdout)
    assert document["same"] is True
    assert {kernel["degree"] for kernel in document["kernels"]} == {"identical"}
    assert [kernel["facts"] for kernel in document["kernels"]] == [[]] * 5


@pytest.mark.usefixtures("inside")
def test_a_file_that_cannot_be_read_costs_its_kernel_alone(tmp_path: Path) -> None:
    shutil.copytree("b", tmp_path / "b")
    (ptx,) = (tmp_path / "b" / "softmax").rglob("*.ptx")
    ptx.write_bytes(b"\0\xff not PTX {{{")
    document = json.loads(run("a", str(tmp_path / "b"), "--json").stdout)
    assert len(document["kernels"]) == 4
    degrees = {kernel["left"]["name"]: kernel["degree"] for kernel in document["kernels"]}
    assert degrees["softmax_kernel"] in ("code", "changed")
    assert list(degrees.values()).count("identical") == 1


@pytest.mark.long
def test_the_other_way_round_is_the_mirror_image() -> None:
    one, other = (
        compared(FIXTURES / left, FIXTURES / right) for left, right in (("3.2.0", "3.3.1"), ("3.3.1", "3.2.0"))
    )

    def told(change: Change) -> tuple[object, ...]:
        facts = {fact.key: {fact.left, fact.right} for fact in change.facts}
        return change.degree, set(change.categories), facts

    there = {(x.right.artifact.hash, x.left.artifact.hash): told(x) for x in other.changes}
    assert {(x.left.artifact.hash, x.right.artifact.hash): told(x) for x in one.changes} == there
    assert [x.artifact for x in one.matching.left] == [x.artifact for x in other.matching.right]
    assert one.by_category == other.by_category


# -- Markdown --------------------------------------------------------------------------


def many(corpus: Corpus, name: str, count: int = 400) -> Corpus:
    """A corpus of many changes, and as many kernels on one side alone, all of one name."""
    worst = corpus.changes[0]
    candidate = Candidate(replace(worst.left.artifact, display_name=name))
    return replace(
        corpus,
        changes=(replace(worst, left=candidate, right=candidate),) * count,
        matching=replace(corpus.matching, left=(candidate,) * count),
    )


def rows(markdown: str) -> list[str]:
    return [line for line in markdown.splitlines() if line.startswith("|")]


@pytest.mark.long
@pytest.mark.parametrize("length", [1, 300, 900, 950, 1000, 1050, 1100, 2000, 70_000])
def test_a_comment_holds_any_corpus_whole_or_cut_between_its_parts(corpus: Corpus, length: int) -> None:
    markdown = corpus_markdown(many(corpus, "k" * length), ["waits"])
    assert len(markdown) <= 65_536
    assert "400 kernels compared" in markdown
    assert "⚠ Failed: 1 gate (waits)." in markdown
    assert markdown.count("```") % 2 == 0
    assert markdown.count("<details>") == markdown.count("</details>")
    if length in (1, 70_000):
        assert ("and 350 more" in markdown) is (length == 1)
        assert ("cut to the size of a comment" in markdown) is (length == 70_000)


def test_rows_of_a_comment_have_four_cells_whatever_a_kernel_is_called(corpus: Corpus) -> None:
    for line in rows(corpus_markdown(many(corpus, "a|b\n<img>`c`", 3), [])):
        assert len(re.findall(r"(?<!\\)\|", line)) == 5
        assert "<img>" not in line


@pytest.mark.usefixtures("inside")
def test_a_comment_tells_the_kernels_that_changed_worst_first() -> None:
    found = rows(run("a", "b", "--format", "markdown").stdout)
    assert len(found) == 4
    assert "matmul_kernel" in found[2]
    assert "wait depth 4 → 0" in found[2]
    assert "softmax" not in "".join(found)


# -- JUnit XML -------------------------------------------------------------------------


@pytest.mark.usefixtures("inside")
def test_each_kernel_is_a_test_case() -> None:
    library = pytest.importorskip("junitparser", reason="junitparser is not installed")
    (suite,) = library.JUnitXml.fromstring(run("a", "b", "--format", "junit").stdout.encode())
    assert (suite.tests, suite.failures, suite.skipped, suite.errors) == (6, 4, 0, 0)
    told = {case.name.partition("[")[0]: case.result for case in suite}
    assert told["flash_attention_kernel"] == told["softmax_kernel"] == []
    (failure,) = told["matmul_kernel"]
    assert failure.message.startswith(
        "Worse: the pipeline of the loop at matmul_grouped.py:81 drains every iteration (wait depth 4 → 0)"
    )
    assert "wait depth 4 → 0" in failure.text


@pytest.mark.usefixtures("inside")
def test_what_shuts_no_gate_fails_no_case() -> None:
    library = pytest.importorskip("junitparser", reason="junitparser is not installed")
    xml = run("a", "b", "--format", "junit", "--fail-on", "spills").stdout
    (suite,) = library.JUnitXml.fromstring(xml.encode())
    assert (suite.tests, suite.failures, suite.skipped) == (6, 0, 2)
    assert "wait depth 4 → 0" in xml


@pytest.mark.parametrize("name", ["k\x00\x1b[1m", "a\ufffe\uffff", "\udc80k", "<&\"'>", "a\tb\nc\rd"])
def test_a_name_that_xml_cannot_hold_still_makes_a_document(name: str, corpus: Corpus) -> None:
    root = ElementTree.fromstring(junit_text(many(corpus, name, 2), ["gone"]).encode())
    cases = root.findall("testsuite/testcase")
    assert len(cases) == 2 + 2 + 1
    assert {case.get("name", "")[:1] for case in cases} <= {name[0], "\\", cases[-1].get("name", "")[:1]}
