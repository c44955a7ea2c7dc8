"""Text, JSON, page, MCP and language server print one first sentence about a kernel."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("mcp")

from artifact_inspector.api import advice
from artifact_inspector.cli import app
from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.cli._pages import view_kernels
from artifact_inspector.diagnosis.cause import Cause, CauseKind, Diagnosis
from artifact_inspector.diagnosis.diagnose import diagnose, with_time
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.report.html.kernel import make_detail
from artifact_inspector.serving import lsp
from artifact_inspector.serving.mcp import _tool_result
from artifact_inspector.serving.roots import AllowedDirectories
from artifact_inspector.serving.tool import ToolContext

CACHE = Path(__file__).parents[2] / "fixtures" / "3.2.0"
run = lambda *words: CliRunner().invoke(app, [*words], env={"COLUMNS": "200"})  # noqa: E731
WORDS = [str(CACHE), "gemv_splitk", "-t", "gfx90a"]


@pytest.mark.long
def test_the_first_sentence_is_the_same_on_five_surfaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("ARTIFACT_INSPECTOR_INDEX", "")
    diagnoses: list[Any] = []

    def diagnose_once(*arguments: Any, **options: Any) -> Any:  # the simulation takes a second
        diagnoses.extend([] if diagnoses else [diagnose(*arguments, **options)])
        return diagnoses[0]

    monkeypatch.setattr(advice, "diagnose", diagnose_once)
    text = run("advise", *WORDS, "--budget", "0").stdout
    (row,) = json.loads(run("advise", *WORDS, "--budget", "0", "--json").stdout)["kernels"]
    sentence = row["summary"]
    assert "compare-and-swap" in sentence
    assert sentence in re.sub(r"\s+", " ", text)
    ((entry, _),) = advice.assume_launches(open_cache(CACHE), "gemv_splitk", [parse_target("gfx90a")])
    _, (view,) = view_kernels(SimpleNamespace(artifacts=[entry], disassemble=None))  # type: ignore[arg-type]
    assert f"<p>{sentence}" in html.unescape(make_detail(view, "k", "").markup)
    context = ToolContext(AllowedDirectories([CACHE]))
    (content,) = _tool_result(
        context, "advise", {"cache": str(CACHE), "kernel": "gemv_splitk", "target": "gfx90a"}
    ).content
    assert json.loads(content.text)["items"][0]["summary"] == sentence
    variant = SimpleNamespace(kernel=SimpleNamespace(artifact=entry))
    monkeypatch.setattr(lsp, "_find_variant", lambda *_: variant)
    assert lsp._advise(None, "gemv_splitk", "gfx90a") == sentence


@pytest.mark.parametrize(
    ("microseconds", "sentence"),
    [
        (100.0, "Nothing stands out: within 20% of the roofline."),
        (90.0, "Nothing stands out: within 11% of the roofline."),
        (160.0, "Nothing stands out: 50% of the roofline's speed."),
        (70.0, "Nothing stands out: within 0% of the roofline."),
    ],
)
def test_the_sentence_says_what_the_printed_times_say(microseconds: float, sentence: str) -> None:
    sampled = Diagnosis(
        "k", "0", "sm_90", "H100", (1, 1, 1), 88.0, 80.0, (), "Nothing stands out: within 9% of the roofline."
    )
    timed = with_time(sampled, microseconds, "L2")
    assert (timed.microseconds, timed.summary, timed.bound) == (microseconds, sentence, "L2")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CauseKind.BOUND, "No single cause: its largest cost is L2; 64% of the roofline's speed."),
        (CauseKind.BOUND, "No single cause: its largest cost is L2 (9% of it at k.py:3); 64% of the roofline's speed."),
        (CauseKind.FEW_BYTES, "The launch: too few bytes are in flight: the latency of each CTA bounds it."),
    ],
)
def test_advise_names_the_bound_that_predict_names(kind: CauseKind, text: str) -> None:
    """All CTAs of a GEMM share operands in L2, a sample does not: tensor cores limit it, not the L2."""
    sampled = Diagnosis(
        "k", "0", "sm_90", "H100", (1, 1, 1), 719.0, 457.0, (Cause(kind, None, None, text),), text, bound="L2"
    )
    timed = with_time(sampled, 628.0, "tensor cores")
    assert timed.summary == "No single cause: its largest cost is tensor cores; 73% of the roofline's speed."
    assert timed.causes[0].text == timed.summary


@pytest.mark.parametrize("name", ["copy", "softmax", "masked_add"])
def test_the_distance_is_that_of_the_two_times(name: str) -> None:
    ((entry, request),) = advice.assume_launches(open_cache(CACHE.parent / "3.6.0" / "sm_80" / name), None, [])
    disassemble = make_disassembler([entry], None, sass=True)
    (diagnosis,) = advice.diagnose_launches([(entry, request)], disassemble)
    assert diagnosis.microseconds
    assert diagnosis.roofline_microseconds
    share = diagnosis.roofline_microseconds / diagnosis.microseconds
    words = f"within {1 - share:.0%} of the roofline" if share >= 0.8 else f"{share:.0%} of the roofline's speed"
    assert words in diagnosis.summary
