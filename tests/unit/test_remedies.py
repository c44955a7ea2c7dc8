"""A finding whose remedy is a switch: the switch is compiled, and what it changed is told."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from saved import FIXTURES, ROOT, saved
from typer.testing import CliRunner

from artifact_inspector import cli
from artifact_inspector.analysis.resources.usage import ResourceFigure
from artifact_inspector.api import remedies
from artifact_inspector.api.remedies import switches_of
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.findings import RULES, Switch, SwitchKind
from artifact_inspector.formats.mlir.rewriting import with_divisor, with_input_precision
from artifact_inspector.model.version import TritonVersion

pytestmark = pytest.mark.usefixtures("recalled")

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="Compiling needs Triton (Linux).")
HEADER = 'tt.func public @k(%x_ptr: !tt.ptr<f32> {tt.divisibility = 8 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) {'


@pytest.mark.parametrize(
    ("kernel", "switches"),
    [
        ("3.6.0/sm_80/masked_add", {"AI006 n divisible by 16", "AI022 n divisible by 16"}),
        ("3.6.0/sm_80/register_spill", {"AI007 maxnreg=255", "AI007 num_warps=2", "AI007 num_stages=2"}),
        ("3.6.0/sm_80/flash_attention", {"AI002 num_stages=3", "AI002 num_stages=4", "AI002 num_stages=5"}),
        ("3.6.0/sm_80/unaligned_columns", {"AI006 x_ptr, stride, cols divisible by 16", "AI022 cols divisible by 16"}),
    ],
)
def test_a_finding_names_the_switch_that_its_own_figures_suggest(kernel: str, switches: set[str]) -> None:
    found = {f"{finding.code} {switch.description}" for finding, switch in switches_of(saved(kernel).facts)}
    assert found == switches


@pytest.mark.parametrize(("n", "description"), [(1024, "n divisible by 16"), (1000, "pad rows to a multiple of 16")])
def test_a_recorded_launch_rules_a_divisor_out(n: int, description: str, tmp_path: Path) -> None:
    facts = saved("3.6.0/sm_80/masked_add").facts
    launch = {"hash": facts.artifact.hash, "args": {"n": n}}
    (tmp_path / "inspect-kernel.json").write_text(
        json.dumps({"schema_version": 1, "entries": [], "launches": [launch]})
    )
    artifact = replace(facts.artifact, files={"ttir": tmp_path / "ENTRY" / "k.ttir"})
    found = switches_of(replace(facts, artifact=artifact))
    assert len(found) == 2
    assert all(switch.description.startswith(description) for _, switch in found)


def test_registers_that_cost_a_block_are_bounded() -> None:
    facts = saved("3.6.0/sm_80/gemv_splitk").facts
    taken = replace(facts.resources, registers=ResourceFigure(136, "cubin"))
    found = [f"{finding.code} {switch.description}" for finding, switch in switches_of(replace(facts, resources=taken))]
    assert found == ["AI008 maxnreg=128"]


def test_only_rules_about_what_a_compile_can_be_told_have_switches() -> None:
    codes = {rule.code for rule in RULES if rule.switches is not None}
    assert codes == {"AI002", "AI004", "AI005", "AI006", "AI007", "AI008", "AI013", "AI020", "AI022"}


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("n", "%n: i32 {tt.divisibility = 16 : i32} loc"),
        ("x_ptr", "%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc"),
    ],
)
def test_a_divisor_is_told_of_the_argument_that_is_meant(argument: str, said: str) -> None:
    told = with_divisor(HEADER, argument, 16)
    assert told is not None
    assert said in told
    assert told.replace("16", "8").count("divisibility = 8") == told.count("divisibility")


def test_an_argument_is_found_by_its_place_where_the_text_numbers_it() -> None:
    told = with_divisor('tt.func public @k(%arg0: i32 loc("m"(#l)), %arg1: i32 loc("n"(#l))) {', "n", 16)
    assert told == (
        'tt.func public @k(%arg0: i32 loc("m"(#l)), %arg1: i32 {tt.divisibility = 16 : i32} loc("n"(#l))) {'
    )


def test_other_attributes_of_an_argument_stay() -> None:
    text = 'tt.func public @k(%x: !tt.ptr<f16> {tt.pointer_range = 32 : i32} loc("x"(#l))) {'
    told = with_divisor(text, "x", 16)
    assert told is not None
    assert "{tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}" in told


def test_what_has_no_place_for_a_switch_stays_untried() -> None:
    assert with_divisor(HEADER, "m", 16) is None
    assert with_divisor("no function", "n", 16) is None
    assert with_input_precision("%1 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf16>", "tf32") is None


def test_dots_of_full_precision_are_told_another() -> None:
    said = "  %1 = tt.dot %a, %b, %c, inputPrecision = ieee : tensor<16x16xf32> * tensor<16x16xf32>"
    assert with_input_precision(said, "tf32") == said.replace("ieee", "tf32")


@pytest.fixture(scope="module")
def tried() -> dict:
    pytest.importorskip("triton")
    answer = CliRunner().invoke(
        cli.app, ["findings", str(FIXTURES / "3.6.0" / "sm_80" / "masked_add"), "--try", "--json"]
    )
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


@pytest.mark.long
def test_a_switch_that_helps_is_told_with_what_it_changed(tried: dict) -> None:
    (kernel,) = tried["kernels"]
    narrow = next(one for one in kernel["trials"] if one["finding"]["code"] == "AI006")
    assert (narrow["reached"], narrow["is_resolved"]) == (True, True)
    assert narrow["effect"].startswith("The code changed (from TTIR on): signature i32→i32:16")
    widths = next(fact for fact in narrow["facts"] if fact["key"] == "loads.widths")
    assert (widths["left"], widths["right"]) == (["4 ×8"], ["16 ×2"])
    assert any("from the cached TTIR" in note for note in kernel["notes"])


def test_a_kernel_without_findings_has_nothing_to_try() -> None:
    words = ["findings", str(FIXTURES / "3.6.0" / "sm_80" / "matmul_grouped"), "--try"]
    assert CliRunner().invoke(cli.app, words).stdout.strip() == "No findings"


@pytest.mark.long
def test_what_was_tried_is_a_document(tried: dict) -> None:
    schema = json.loads((ROOT / "docs" / "schema" / "v2" / "remedies.schema.json").read_text())
    Draft202012Validator(schema).validate(tried)


@pytest.mark.long
@needs_triton
def test_a_text_that_this_release_cannot_read_costs_its_own_rows(tmp_path: Path) -> None:
    answer = CliRunner().invoke(
        cli.app, ["findings", str(FIXTURES / "3.6.0" / "sm_80" / "flash_attention"), "--try"], env={"COLUMNS": "200"}
    )
    assert answer.exit_code == 0, answer.output
    assert "num_stages=3: " in answer.stdout


def test_many_kernels_are_not_compiled_by_accident() -> None:
    answer = CliRunner().invoke(cli.app, ["findings", str(FIXTURES / "3.6.0"), "narrow", "--try", "-f", "sarif"])
    assert answer.exit_code == 2
    assert "--try prints text or JSON" in answer.stderr


def test_a_switch_is_told_in_words() -> None:
    assert Switch(SwitchKind.OPTION, "num_stages", 4).description == "num_stages=4"
    assert Switch(SwitchKind.DIVISIBLE, "n", 16).description == "n divisible by 16"


def test_a_spill_under_a_request_for_occupancy_suggests_to_lower_it() -> None:
    artifact = saved("3.6.0/gfx942/register_spill").artifact
    kernels = [
        inspect_artifact(replace(artifact, metadata={**artifact.metadata, "waves_per_eu": waves})) for waves in (0, 2)
    ]
    suggested = [[switch.description for finding, switch in switches_of(x) if finding.code == "AI007"] for x in kernels]
    assert suggested[1] == ["waves_per_eu=1", *suggested[0]]


def test_a_kernel_is_compiled_again_by_its_own_release_only_if_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(remedies, "find_interpreter", lambda *release, **options: asked.append((release, options)))
    assert remedies.find_release(TritonVersion("3.7.0"), "3.9.0") == ("3.7.0", None)
    assert asked == [(("3.7.0", None), {"may_create": False})]
    for version in (None, TritonVersion("3.9.0"), TritonVersion("3.7.0=/bin/sh")):
        assert remedies.find_release(version, "3.9.0") == ("3.9.0", None)
    assert len(asked) == 1
