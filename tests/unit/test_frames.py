"""What a file of a cache holds stays in its frame, whatever a report is written as."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.text import Text

from artifact_inspector.cli._exit import exit_codes
from artifact_inspector.comparison.baseline import record
from artifact_inspector.comparison.corpus import GATES, Corpus, compare_corpora
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.console import MAX_WIDTH, make_console, show, to_text
from artifact_inspector.report.corpus import CorpusReport
from artifact_inspector.report.exchange.junit import junit_text
from artifact_inspector.report.exchange.markdown import corpus_markdown
from artifact_inspector.report.exchange.sarif import sarif_document, workflow_commands
from artifact_inspector.report.json import as_text
from artifact_inspector.report.json.baseline import baseline_text, recorded_text
from artifact_inspector.report.json.comparison import corpus_document
from artifact_inspector.report.remarks import GATE_RULES, change_remarks

FIXTURES = Path(__file__).parents[2] / "fixtures"
NAMES = (
    "::error file=a.py::x",
    "a\n::stop-commands::t",
    "##[error]x",
    "##vso[task.setvariable variable=PATH]x",
    "k`<script>`x",
    "``` | <img src=x> @someone [a](http://e) ```",
    "a\x1b[2J\u202eb",
    "</failure><![CDATA[",
)


@pytest.fixture(scope="module", params=NAMES)
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """Two caches whose kernels bear a hostile name: one that changed, one that is alone."""

    def called(artifact: Artifact) -> Artifact:
        return replace(artifact, name=request.param, display_name=request.param, stem=request.param)

    sides = [
        [called(x) for x in open_cache(FIXTURES / "3.6.0" / place).entries]
        for place in ("sm_80/softmax", "sm_75/gemv_splitk")
    ]
    left, right = (side[0] for side in sides)
    same = [replace(left, target=right.target), left]
    return compare_corpora(same, [right], inspect_artifact, across=())


def lines(text: str) -> Iterator[str]:
    return (line.lstrip() for line in re.split(r"\r|\n", text))


def assert_harmless(text: str) -> None:
    assert not any(line.startswith("::") for line in lines(text))
    assert not re.search(r"##\w*\[", text)
    assert text.replace("\n", " ").isprintable()


def test_no_report_gives_an_order_to_who_runs_it(corpus: Corpus) -> None:
    out = io.StringIO()
    show(CorpusReport(corpus, GATES), out)
    assert_harmless(out.getvalue())
    assert_harmless(as_text(corpus_document(corpus, GATES), "utf-8"))
    assert_harmless(as_text(corpus_document(corpus, GATES), "ascii"))
    assert_harmless(junit_text(corpus, GATES))
    assert_harmless(as_text(sarif_document(GATE_RULES, change_remarks(corpus, GATES, lambda _: None)), "utf-8"))


def test_what_is_escaped_for_a_frame_reads_back_as_it_was(corpus: Corpus) -> None:
    name = corpus.matching.left[0].artifact.display_name
    document = json.loads(as_text(corpus_document(corpus, GATES), "utf-8"))
    assert document["only_left"][0]["name"] == name
    cases = ElementTree.fromstring(junit_text(corpus, GATES)).iter("testcase")
    assert any(case.get("name", "").startswith(escape_unprintable(name)) for case in cases)


def test_markdown_keeps_its_table_and_its_code(corpus: Corpus) -> None:
    text = corpus_markdown(corpus, GATES)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text, flags=re.S)
    for marked in ("<script", "<img", "@someone"):
        assert marked not in outside
    assert not re.search(r"(?<!\\)\[a\](?=\()", outside)
    for row in (line for line in text.splitlines() if line.startswith("|")):
        assert len(re.findall(r"(?<!\\)\|", row)) == 5


def test_an_annotation_is_one_line(corpus: Corpus) -> None:
    remarks = list(change_remarks(corpus, GATES, lambda _: None))
    said = workflow_commands(remarks).splitlines()
    assert len(said) == len(remarks)
    assert all(re.match(r"::(error|warning|notice) ", line) and line.isprintable() for line in said)


def test_a_baseline_orders_nothing() -> None:
    (artifact,) = open_cache(FIXTURES / "3.6.0" / "sm_80" / "softmax").entries
    named = replace(artifact, name="##[error]x", display_name="##[error]x")
    text = "".join(baseline_text(map(recorded_text, [record(inspect_artifact(named), lambda _: None)])))
    assert_harmless(text)
    assert json.loads(text)["kernels"][0]["name"] == "##[error]x"


def test_evidence_of_a_test_orders_nothing() -> None:
    assert_harmless(to_text(Text("::error::x\n ##[group]y"), 80))


def test_markers_show_as_they_are_written() -> None:
    assert escape_unprintable("a\x1b[2J\u202eb\U000e0041") == "a\\x1b[2J\\u202eb\\U000e0041"
    with redirect_stdout(io.StringIO()) as out:
        show(Text("a\u202eb"), out)
    assert out.getvalue() == "a\\u202eb\n"


@pytest.mark.parametrize("said", ["9" * 5000, "9" * 9, "0", "many"])
@pytest.mark.parametrize("variable", ["COLUMNS", "LINES"])
def test_a_width_that_is_none_or_beyond_any_screen_is_bounded(
    variable: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, said)
    stream = io.StringIO()
    assert make_console(stream).width <= MAX_WIDTH
    show(Text("x", justify="right"), stream)
    assert stream.getvalue().strip() == to_text(Text("x"), 80).strip() == "x"


def test_an_error_moves_no_cursor_and_orders_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), exit_codes(json=False):
        raise CacheError("a\x1b[2J\u202eb\n::error::x", "\x07 ##[error]x")
    said = capsys.readouterr().err
    assert said.startswith("inspect-kernel: a\\x1b[2J\\u202eb\n")
    assert_harmless(said)


def test_memory_that_runs_out_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended, exit_codes(json=False):
        raise MemoryError
    assert ended.value.code == 3
    assert capsys.readouterr().err == "inspect-kernel: Out of memory. Inspect fewer kernels at a time: give a NAME.\n"
