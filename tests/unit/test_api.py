"""Kernels as a program holds them say what KernelFacts says, and refuse what they are not."""

from __future__ import annotations

import json
import re
import shutil
from collections import namedtuple
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest
from saved import FIXTURES, saved, saved_kernels

from artifact_inspector import (
    CacheError,
    CapturedKernel,
    CompileError,
    CompileResult,
    InspectorError,
    Stage,
    UsageError,
    inspect,
    inspect_cache,
    open_cache,
    parse_target,
)
from artifact_inspector.api import Inspection
from artifact_inspector.api.notebook import CaptureTable
from artifact_inspector.compiling.ask.capturing import Launch
from artifact_inspector.compiling.capture.recorder import CallSite
from artifact_inspector.findings.limit import find_limit
from artifact_inspector.model import OrderVerdict, RegionKind
from artifact_inspector.report.json import encode
from artifact_inspector.report.json.cache import cache_document

MATMUL = "3.6.0/sm_80/matmul_grouped"


@pytest.fixture(scope="module")
def matmul() -> Inspection:
    return inspect(FIXTURES / MATMUL)


# -- what is inspected ------------------------------------------------------------------------


def compiled(path: str, **own: object) -> SimpleNamespace:
    """What Triton's compiled kernel holds: every stage, and the metadata as a named tuple."""
    artifact = saved(path).artifact
    asm = {
        suffix: file.read_bytes() if suffix in ("cubin", "hsaco") else file.read_text(encoding="utf-8")
        for suffix, file in artifact.files.items()
        if suffix != "json"
    }
    target = SimpleNamespace(**artifact.metadata["target"])  # type: ignore[arg-type]
    fields = {**artifact.metadata, "target": target}
    metadata = namedtuple("KernelMetadata", sorted(fields))(**fields)
    return SimpleNamespace(
        asm=asm, metadata=metadata, src=SimpleNamespace(name=artifact.stem), hash=artifact.hash, **own
    )


@pytest.mark.parametrize("path", [MATMUL, "3.9.0/gfx942/matmul_grouped", "3.2.0/gfx942/gemv_splitk"])
def test_a_compiled_kernel_says_what_its_files_say(path: str) -> None:
    held = inspect(compiled(path))
    read = inspect(FIXTURES / path)
    assert held.facts == read.facts
    assert held.facts.facts == read.facts.facts
    assert held.details.artifact.hash == read.details.artifact.hash
    assert (held.name, held.target, held.triton_version) == (read.name, read.target, read.triton_version)
    assert held.details.problems == read.details.problems == ()


def test_a_compiled_kernel_of_triton_2_is_read_too() -> None:
    artifact = saved("2.1.0/sm_80/matmul_grouped").artifact
    asm = {suffix: file.read_bytes() for suffix, file in artifact.files.items() if suffix != "json"}
    texts = {suffix: content if suffix == "cubin" else content.decode() for suffix, content in asm.items()}
    kernel = SimpleNamespace(
        asm={"ast": "<function>", **texts},
        metadata=dict(artifact.metadata),
        fn=SimpleNamespace(__name__="matmul_kernel"),
    )
    held, read = inspect(kernel), inspect(FIXTURES / "2.1.0/sm_80/matmul_grouped")
    assert held.facts == read.facts
    assert (held.name, held.details.artifact.name) == (read.name, read.details.artifact.name)
    assert re.fullmatch("[0-9a-f]{64}", held.details.artifact.hash)


def test_a_kernel_that_is_compiled_in_the_background_is_waited_for() -> None:
    later = SimpleNamespace(result=lambda: compiled(MATMUL))
    assert inspect(later).loop().phrase == "pipelined(3)"


def test_metadata_that_no_json_has_costs_nothing() -> None:
    kernel = compiled(MATMUL)
    kernel.metadata = {**kernel.metadata._asdict(), "extra": {1, 2}, "hook": print}
    assert inspect(kernel).registers == 95


def test_a_single_file_is_all_that_is_known() -> None:
    entry = saved(MATMUL).artifact.files["ptx"].parent
    alone = inspect(entry / "matmul_kernel.ptx")
    assert [*alone.details.stages] == [Stage.PTX]
    assert alone.target is not None
    assert alone.triton_version == "3.6.0"  # by the metadata beside it
    assert inspect(entry / "matmul_kernel.json").facts == inspect(entry).facts


def test_a_single_file_without_metadata_is_read(tmp_path: Path) -> None:
    shutil.copy(saved(MATMUL).artifact.files["ptx"], tmp_path / "mine.ptx")  # type: ignore[arg-type]
    kernel = inspect(tmp_path / "mine.ptx")
    assert (kernel.name, str(kernel.target)) == ("mine", "sm_80")
    assert kernel.loop().verdict == "pipelined"


def test_a_truncated_file_is_named_and_judged_no_further(tmp_path: Path) -> None:
    text = saved(MATMUL).artifact.files["ptx"].read_text(encoding="utf-8")
    (tmp_path / "mine.ptx").write_text(text[: text.index("$L__BB0_2:")])
    kernel = inspect(tmp_path / "mine.ptx").details
    assert kernel.truncated == "truncated: ptx"
    (region,) = kernel.stages[Stage.PTX].regions
    assert (region.kind, region.verdict) == (RegionKind.STRAIGHT, OrderVerdict.UNKNOWN)
    assert kernel.stages[Stage.PTX].work[region.id].in_flight.compute_overlap is None
    assert find_limit(kernel).description.startswith("A file of this kernel is cut off (truncated: ptx)")


def test_an_inspection_is_itself(matmul: Inspection) -> None:
    assert inspect(matmul) is matmul


def test_a_name_and_a_target_pick_one_of_many() -> None:
    assert inspect(FIXTURES / "3.3.1", name="gemv", target="MI300X").title == "gemv_splitk for gfx942"


class JITFunction:
    __name__ = "add_kernel"


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (None, "None is not a compiled kernel. A launch returns None under TRITON_INTERPRET=1"),
        (3, "An int is not a compiled kernel."),
        (SimpleNamespace(asm="text"), "A SimpleNamespace is not a compiled kernel."),
        (JITFunction(), "add_kernel is a kernel's source, not a compiled kernel. Inspect what a launch"),
    ],
)
def test_what_was_not_compiled_is_refused_with_a_remedy(thing: object, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        inspect(thing)
    assert str(caught.value).startswith(message)
    assert caught.value.remedy is not None


def test_what_the_compiler_refused_is_told_with_its_message() -> None:
    refused = CompileResult("k", parse_target("sm_80"), 0.1, None, "k.py:3: no such type")
    with pytest.raises(CompileError, match=r"k\.py:3: no such type"):
        inspect(refused)
    made = CompileResult("k", parse_target("sm_80"), 0.1, FIXTURES / MATMUL, None)
    assert inspect(made).loop().phrase == "pipelined(3)"


def test_a_compiled_kernel_with_nothing_in_it_is_no_kernel() -> None:
    with pytest.raises(CacheError, match="No kernels in"):
        inspect(SimpleNamespace(asm={}, metadata=None))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nowhere", "There is no directory nowhere"),
        ("README.md", "README.md is not a file of a compiled kernel. Those end in .amdgcn, .cubin"),
        ("docs/decisions", "No kernels in docs/decisions."),
        ("fixtures/3.3.1", r"kernels match in fixtures/3.3.1: .*gemv_splitk \(gfx942\)"),
    ],
)
def test_a_path_that_leads_to_no_single_kernel_is_named(
    path: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(FIXTURES.parent)
    with pytest.raises(InspectorError, match=message) as caught:
        inspect(path)
    assert caught.value.remedy is not None
    assert [frame.name for frame in caught.traceback][1:] == ["wrapper"]  # the caller's line, then one of ours


# -- what it says ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [k.path for k in saved_kernels() if k.version == "3.6.0" and k.target in ("sm_90", "gfx942")]
)
def test_the_view_says_what_the_facts_say(path: str) -> None:
    view, facts = inspect(FIXTURES / path), saved(path).facts
    assert view.verdict == facts.verdict
    assert view.findings == tuple(view.findings)
    assert {region.id for region in view.regions} == {
        region.id for stage in facts.stages.values() for region in stage.regions
    }
    for region in view.regions:
        last = next(s for s in reversed(facts.stages.values()) if s.region(region.id) is not None)
        assert region.last == last.region(region.id)
        assert region.stage is last.stage
        assert region.at(last.stage.value) is region.last
    if facts.principal is not None and facts.principal in {loop.id for loop in view.loops}:
        assert view.loop().id == facts.principal
        line = int(facts.principal.rpartition("@")[2]) if facts.principal.startswith("loop@") else None
        assert line is None or view.loop(line).id == facts.principal


def test_a_wrong_name_is_answered_with_those_that_there_are(matmul: Inspection) -> None:
    for ask, message in (
        (lambda: matmul.loop(3), "has no loop 'loop@3'. It has loop@81 (pipelined(3))."),
        (lambda: matmul.region("x"), "no region 'x'. It has straight (no-loads), loop@81 (pipelined(3))."),
        (lambda: matmul.stage("sass"), "no readable stage 'sass'. It has ttir, ttgir, llir, ptx."),
        (lambda: matmul.loop().at(Stage.AMDGCN), "no readable stage 'amdgcn'."),
        (lambda: inspect(FIXTURES / "3.6.0/sm_80/gemv_splitk").loop(), "for sm_80 has no loop. Its regions are"),
    ):
        with pytest.raises(UsageError) as caught:
            ask()
        assert message in str(caught.value)


@pytest.mark.long
def test_no_single_loop_is_the_principal_one_of_straight_code() -> None:
    straight = [
        view
        for view in (inspect(FIXTURES / k.path) for k in saved_kernels(version="3.6.0", target="sm_80"))
        if view.details.principal == "straight" and len(view.loops) > 1
    ]
    for view in straight:
        with pytest.raises(UsageError, match="none the principal one"):
            view.loop()


def test_matrix_instructions_are_those_that_grep_finds(matmul: Inspection) -> None:
    lines = saved(MATMUL).text(Stage.PTX).splitlines()
    found = sum("mma.sync.aligned.m16n8k16" in line for line in lines)
    first, last = matmul.loop().lines
    inside = sum("mma.sync" in line for line in lines[first - 1 : last])
    matmul.assert_mma(count=found)
    matmul.assert_mma(count=found, op="mma.sync", shape="m16n8k16")
    matmul.loop().assert_mma(count=inside)
    matmul.loop().assert_mma()
    for wrong in (found - 1, found + 1, 0):
        with pytest.raises(AssertionError, match=f"has {found} matrix instructions at ptx; expected {wrong}"):
            matmul.assert_mma(count=wrong)
    with pytest.raises(AssertionError, match=r"present: 16 × mma\.sync m16n8k16"):
        matmul.loop().assert_mma(op="wgmma.mma_async")
    with pytest.raises(AssertionError, match="has no m64n64k16 at ptx"):
        matmul.assert_mma(shape="m64n64k16")


def test_a_kernel_without_matrix_instructions_fails_with_the_reason() -> None:
    kernel = inspect(FIXTURES / "3.6.0/sm_75/matmul_square")
    kernel.assert_mma(count=0)
    with pytest.raises(AssertionError) as caught:
        kernel.assert_mma()
    assert "has no matrix instructions at ptx; expected at least 1" in str(caught.value)
    assert "AI004 fma-instead-of-mma" in str(caught.value)


def test_an_order_is_asserted_of_the_principal_region() -> None:
    was, is_ = inspect(FIXTURES / "3.2.0/gfx942/gemv_splitk"), inspect(FIXTURES / "3.3.1/gfx942/gemv_splitk")
    is_.assert_interleaved()
    was.assert_clustered()
    with pytest.raises(AssertionError, match="is interleaved at amdgcn, not clustered"):
        is_.assert_clustered()
    with pytest.raises(AssertionError) as caught:
        was.assert_interleaved()
    said = str(caught.value)
    assert said.startswith("straight of gemv_splitk for gfx942 is clustered at amdgcn, not interleaved\n\n")
    for stage in ("ttir", "ttgir", "llir", "amdgcn"):
        assert was.region().at(stage).signature.split()[0] in said
    assert "What it is likely to cost" in said


def test_a_pipeline_is_asserted_with_its_distance(matmul: Inspection) -> None:
    matmul.assert_pipelined()
    matmul.loop().assert_pipelined(3)
    with pytest.raises(AssertionError, match=r"is pipelined\(3\); expected a distance of 2"):
        matmul.assert_pipelined(2)


def test_spills_fail_with_their_lines_and_unknown_ones_with_the_reason(matmul: Inspection) -> None:
    matmul.assert_no_spills()
    spilled = inspect(FIXTURES / "3.6.0/gfx942/register_spill")
    stores = re.findall(
        r"scratch_store|buffer_store\S* .* off, s\[\d+:\d+\], ", saved("3.6.0/gfx942/register_spill").text(Stage.AMDGCN)
    )
    with pytest.raises(AssertionError) as caught:
        spilled.assert_no_spills()
    assert "spills 380 B of registers per thread" in str(caught.value)
    assert f"{len(stores)} stores of local memory at amdgcn lines 37, 38," in str(caught.value)
    unknown = inspect(FIXTURES / "3.2.0/sm_80/matmul_grouped")
    assert unknown.spill_bytes is None
    with pytest.raises(AssertionError, match=r"may spill registers \(unknown: no cubin in the cache"):
        unknown.assert_no_spills()


def test_findings_fail_by_code_by_name_and_by_severity(matmul: Inspection) -> None:
    matmul.assert_no_findings()
    spilling = inspect(FIXTURES / "3.6.0/gfx942/register_spill")
    for word in ("AI007", "register-spill"):
        with pytest.raises(AssertionError, match="AI007 register-spill"):
            spilling.assert_no_findings("AI001", word)
    with pytest.raises(UsageError, match="Unknown finding 'AI999'"):
        matmul.assert_no_findings("AI999")
    with pytest.raises(AssertionError, match="AI007 register-spill"):
        spilling.assert_no_findings()


def test_a_verdict_is_a_word(matmul: Inspection) -> None:
    verdict = matmul.loop().verdict
    assert verdict == "pipelined"
    assert {verdict: 1}["pipelined"] == 1
    assert json.dumps([verdict]) == '["pipelined"]'


# -- how it shows itself ------------------------------------------------------------------------


class Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += "" if tag in ("span", "code") else "\n"

    def handle_data(self, data: str) -> None:
        self.text += data


def text_of(html: str) -> str:
    parser = Text()
    parser.feed(html)
    assert parser.open == []
    return parser.text


def test_the_html_is_the_timeline_and_the_report(matmul: Inspection) -> None:
    picture, _, report = matmul._repr_html_().partition("</svg>\n")
    assert picture.startswith("<svg")
    assert [lane for lane in ("ttir", "ttgir", "llir", "ptx") if f">{lane}</text>" in picture] == ["ttgir", "ptx"]
    words = set(matmul.report(width=400).replace("█", " ").replace("▒", " ").replace("·", " ").split())
    assert words - set(re.split(r"[\s·]+", text_of(report))) == set()
    assert "shared memory  30720 B per block" in matmul.report()
    region = text_of(matmul.loop()._repr_html_())
    assert "W1 B1 s8 M16 B1 A4 K1 A1 K1" in region
    assert "shared memory  " not in region


def test_names_in_files_are_no_markup(tmp_path: Path) -> None:
    text = saved(MATMUL).text(Stage.PTX).replace("matmul_kernel", "k_script_")
    (tmp_path / "[bold]<script>.ptx").write_text(text, encoding="utf-8")
    html = inspect(tmp_path / "[bold]<script>.ptx")._repr_html_()
    assert "<script>" not in html
    assert "[bold]&lt;script&gt;" in html


def test_what_is_printed_fits_a_line(matmul: Inspection) -> None:
    assert repr(matmul) == "<matmul_kernel for sm_80 by Triton 3.6.0: loop@81 pipelined(3)>"
    assert repr(matmul.loop()) == "<loop@81 of matmul_kernel for sm_80: pipelined(3), ptx lines 342–467, 16 MMA>"
    assert repr(matmul.facts) == "<facts of matmul_kernel for sm_80>"


# -- records ------------------------------------------------------------------------------------


def test_records_are_flat_of_the_same_columns_and_say_what_the_json_says() -> None:
    columns = set()
    for path in (MATMUL, "3.6.0/gfx942/matmul_grouped", "3.2.0/sm_75/gemv_splitk", "3.6.0/sm_100/matmul_descriptor"):
        view = inspect(FIXTURES / path)
        (document,) = encode(cache_document(view.cache, [view.details]))["kernels"]
        records = view.to_records()
        columns.add(tuple(records[0]))
        assert all(tuple(record) == tuple(records[0]) for record in records)
        assert all(type(x) in (str, int, float, bool, type(None)) for record in records for x in record.values())
        regions = [(stage, region) for stage, found in document["stages"].items() for region in found["regions"]]
        assert len(records) == len(regions)
        for record, (stage, region) in zip(records, regions, strict=True):
            assert (record["stage"], record["region"]) == (stage, region["id"])
            for key in ("verdict", "phrase", "signature", "matrix", "unroll_factor", "kind", "depth"):
                assert record[key] == region[key]
            assert [record["first_line"], record["last_line"]] == region["lines"]
            assert record["max_loads_in_flight"] == region["in_flight"]["max_loads"]
            assert record["registers"] == document["resources"]["registers"]
            assert record["is_main"] is (region["id"] == document["main_region"])
    assert len(columns) == 1


@pytest.mark.long
def test_records_make_a_data_frame_and_a_table(matmul: Inspection) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(matmul.to_records())
    assert list(frame[frame.region == "loop@81"].phrase) == ["serial", *["pipelined(3)"] * 3]
    pyarrow = pytest.importorskip("pyarrow")
    assert pyarrow.Table.from_pylist(matmul.to_records()).num_rows == len(frame)


# -- several kernels in a notebook ---------------------------------------------------------------


def test_kernels_of_a_cache_are_a_table_and_still_come_one_after_the_other() -> None:
    cache = open_cache(FIXTURES / "3.9.0" / "sm_80")
    kernels = inspect_cache(cache)
    first = next(kernels)
    html = kernels._repr_html_()
    assert html.count("<tr") >= len(cache.entries) + 1
    assert all(entry.display_name in html for entry in cache.entries)
    assert [x.artifact.hash for x in (first, *kernels)] == [entry.hash for entry in cache.entries]


def test_findings_are_a_table_of_code_severity_and_place() -> None:
    findings = inspect(FIXTURES / "3.6.0" / "sm_80" / "flash_attention").findings
    assert isinstance(findings, tuple)
    html = findings._repr_html_()
    assert html.count("<tr") == len(findings) == 1
    assert {"AI002", "note"} <= set(text_of(html).split())
    assert "…" not in html


def test_a_capture_is_a_table_with_whole_constants(tmp_path: Path) -> None:
    target, place = parse_target("T4"), CallSite("lib/a.py:3", "script.py:9")
    constants = {f"BLOCK_{n}": "128" for n in range(9)}
    launch = Launch((8, 1, 1), "lib/a.py:3", "script.py:9", 2)
    held = CaptureTable(tmp_path)
    for digest, own in (("ab12", constants), ("cd34", dict.fromkeys(constants, "64"))):
        held.append(
            CapturedKernel(
                "scale", digest, target, {"x": "*fp32:16"}, own, {"num_warps": 4}, (launch,), 0, place, 0.5,
                tmp_path, None, None,
            )
        )  # fmt: skip
    words = text_of(held._repr_html_()).split()
    assert {f"{name}={value}" for name, value in constants.items()} <= set(words)
    assert "2 of 2 kernels captured for sm_75" in " ".join(words)


def test_facts_of_the_report_are_attributes(matmul: Inspection) -> None:
    text = " ".join(matmul.report().split())
    assert f"registers {matmul.registers} per thread" in text
    assert (matmul.spills, matmul.spills == matmul.spill_bytes) == (0, True)
    assert "spills none" in text
    assert matmul.occupancy is not None
    assert f"occupancy {matmul.occupancy.blocks} blocks, {matmul.occupancy.warps} of" in text
    assert matmul.limit.sentence in text


def test_a_failure_prints_a_finding_once() -> None:
    kernel = inspect(FIXTURES / "3.6.0/sm_80/masked_add")
    with pytest.raises(AssertionError, match="has 2 findings: AI006 narrow-loads, AI022 narrow-stores\n") as failure:
        kernel.assert_no_findings()
    for finding in kernel.findings:
        assert " ".join(str(failure.value).split()).count(finding.remark.message) == 1


def test_a_strip_is_as_wide_as_its_cell(matmul: Inspection) -> None:
    html = matmul._repr_html_()
    assert "█" not in html
    assert "left:0%;width:26.7%" in html  # the first of three buffers of 8192 B of 30720
