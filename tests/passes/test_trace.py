"""Which pass changed a kernel: a saved compile of Triton 3.2.0 with all its texts, and compiles made here."""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from artifact_inspector.cli import app
from artifact_inspector.compiling.ask.request import KernelRequest
from artifact_inspector.errors import UsageError
from artifact_inspector.files.cache import Artifact, open_cache
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.passes.dump_facts import Topic
from artifact_inspector.passes.dump_log import trace_log
from artifact_inspector.passes.dumps import Dump, DumpLanguage, PassTimes, read_dumps
from artifact_inspector.passes.subject import subject_of_request, trace_passes
from artifact_inspector.passes.trace import _COMPARABLE_TOPICS, PassLevel, PassRun, PassTrace, trace_dumps
from artifact_inspector.report.passes import describe_passes, text_difference

SAVED = Path(__file__).parent / "3.2.0-gfx942-gemv_splitk"


def saved_dumps() -> Iterator[Dump]:
    with lzma.open(SAVED / "texts.txt.xz", "rt", encoding="utf-8") as lines:
        yield from read_dumps(lines)


def saved_artifact() -> Artifact:
    (artifact,) = open_cache(SAVED / "entry").entries
    return artifact


@cache
def saved_trace() -> PassTrace:
    times = PassTimes((SAVED / "times.txt").read_text(encoding="utf-8").splitlines())
    return trace_dumps(saved_artifact(), saved_dumps(), times, tuple(Topic))


def changing(found: PassTrace, key: str) -> list[PassRun]:
    return [step for step in found.steps if any(change.key == key for change in step.changes)]


def test_every_header_in_the_text_is_a_dump() -> None:
    with lzma.open(SAVED / "texts.txt.xz", "rt", encoding="utf-8") as lines:
        headers = sum("IR Dump " in line for line in lines)
    found = list(saved_dumps())
    assert len(found) == headers
    assert {dump.language for dump in found} == set(DumpLanguage)


@pytest.mark.long
def test_the_pass_that_clusters_the_loads_of_the_gemv_is_named_in_both_spellings() -> None:
    (step,) = changing(saved_trace(), "straight.verdict")
    assert step.name == "TritonAMDGPUReorderInstructions"
    assert step.argument == "tritonamdgpu-reorder-instructions"
    assert step.level is PassLevel.TTGIR
    (change,) = (change for change in step.changes if change.key == "straight.verdict")
    assert (change.value_before, change.value_after) == ("interleaved", "clustered")


@pytest.mark.long
def test_coalescing_widens_the_loads() -> None:
    steps = [step for step in saved_trace().steps if step.argument == "tritongpu-coalesce"]
    widened = [c for step in steps for c in step.changes if c.topic is Topic.WIDTHS]
    assert widened
    assert all((change.value_before, change.value_after) == (("2",), ("16",)) for change in widened)


def test_layout_conversions_go_where_the_pass_that_removes_them_ran() -> None:
    counts = [
        (step.argument, change.value_before, change.value_after)
        for step in saved_trace().steps
        for change in step.changes
        if change.key == "conversions"
    ]
    assert ("tritongpu-remove-layout-conversions", 20, 3) in counts


def test_the_scheduler_of_the_back_end_is_seen_in_its_machine_code() -> None:
    arguments = [step.argument for step in changing(saved_trace(), "machine.order")]
    assert "machine-scheduler" in arguments


def test_what_a_kernel_calls_changes_nothing_until_it_is_inlined() -> None:
    assert not [step for step in saved_trace().steps if step.level is PassLevel.TTIR and step.changes]


def test_a_pass_that_leaves_the_text_as_it_was_changed_nothing() -> None:
    alike = [step for step in saved_trace().steps if step.changed_text is False]
    assert len(alike) > 100
    assert not any(step.changes for step in alike)


def test_the_passes_of_mlir_bear_their_times() -> None:
    timed = [step for step in saved_trace().steps if step.level is PassLevel.TTGIR and step.seconds is not None]
    assert len(timed) > 15
    assert all(0 <= step.seconds < 10 for step in timed if step.seconds is not None)


def test_the_report_opens_with_the_pass_that_decided() -> None:
    lines = list(describe_passes(saved_trace()))
    assert lines[2] == (
        "order: last changed by TritonAMDGPUReorderInstructions (ttgir): straight verdict interleaved → clustered"
    )


@pytest.mark.long
def test_a_passes_difference_is_that_of_its_texts_without_places() -> None:
    shown: list[str] = []

    def keep(step: PassRun, level: PassLevel, before: str, after: str) -> None:
        if step.argument == "tritonamdgpu-reorder-instructions":
            shown.extend(text_difference(step, before, after))

    trace_dumps(saved_artifact(), saved_dumps(), PassTimes([]), (Topic.ORDER,), keep)
    moved = [line for line in shown if line.startswith(("+ ", "- ")) and "tt.load" in line]
    assert moved
    assert not any("loc(" in line for line in shown)


@pytest.mark.long
def test_only_what_is_asked_for_is_followed() -> None:
    found = trace_dumps(saved_artifact(), saved_dumps(), PassTimes([]), (Topic.LAYOUTS,))
    assert {change.topic for step in found.steps for change in step.changes} == {Topic.LAYOUTS}


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["no text of a pass\n"],
        ["// -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //\n"],
        ["; *** IR Dump After SROAPass on [module] ***\n", "define void @k() {\n"],
        ["# *** IR Dump After X (x) ***:\n", "\x00\n"],
    ],
)
def test_texts_that_are_cut_off_cost_no_more_than_themselves(lines: list[str]) -> None:
    found = trace_dumps(saved_artifact(), read_dumps(lines), PassTimes(lines), tuple(Topic))
    assert found.steps[-1].level is PassLevel.ASSEMBLY


@pytest.mark.exhaustive
def test_the_pipeliner_gives_a_matmul_its_depth_and_its_waits() -> None:
    pytest.importorskip("triton")
    tile = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 8}
    request = KernelRequest("matmul_grouped", constexprs=tile, options={})
    found = trace_passes(
        subject_of_request(request, parse_target("sm_80")), (Topic.ORDER, Topic.PIPELINE, Topic.MATRIX, Topic.REGISTERS)
    )
    step = changing(found, "loop1.verdict")[-1]
    assert step.argument == "tritongpu-pipeline"
    after = {change.key: change.value_after for change in step.changes}
    assert after["loop1.verdict"] == "pipelined(3)"
    assert changing(found, "loop1.pipeline.depth")
    ptxas = found.steps[-1]
    assert ptxas.name == "ptxas"
    # of what both texts can tell, and never that one of them spells an instruction otherwise
    assert "registers" in {change.key for change in ptxas.changes}
    assert all(
        isinstance(change.value_after, int) for change in ptxas.changes if change.topic not in _COMPARABLE_TOPICS
    )


@pytest.mark.exhaustive
def test_a_gemv_of_one_warp_is_clustered_by_a_pass_of_llvm() -> None:
    pytest.importorskip("triton")
    constants = {"BLOCK_N": 256, "BLOCK_K": 16}
    request = KernelRequest("gemv_splitk", constexprs=constants, options={"num_warps": 1})
    found = trace_passes(subject_of_request(request, parse_target("sm_75")), (Topic.ORDER,))
    by_llvm = [step for step in changing(found, "straight.verdict") if step.level is PassLevel.LLVM]
    assert [step.changes[0].value_after for step in by_llvm] == ["clustered"]


@pytest.mark.long
def test_the_unroller_makes_four_rounds_of_one_and_a_loop_for_the_rest() -> None:
    pytest.importorskip("triton")
    place = f"{Path(__file__).with_name('unrolled.py')}:row_sums"
    request = KernelRequest(place, signature="*fp32,*fp32,i32,256,4", options={"num_stages": 1})
    found = trace_passes(subject_of_request(request, parse_target("sm_80")), (Topic.LOOPS, Topic.ORDER))
    (step,) = [step for step in changing(found, "loops") if step.level is PassLevel.TTIR]
    assert (step.name, step.argument) == ("TritonLoopUnroll", "triton-loop-unroll")
    after = {change.key: change.value_after for change in step.changes}
    assert after["loops"] == ("loop1", "loop1#2")
    assert after["loop1.order"] == "L(total) F L(total) F L(total) F L(total) F"


@pytest.mark.exhaustive
def test_a_log_of_a_program_has_the_history_of_each_compile(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    with lzma.open(SAVED / "texts.txt.xz", "rt", encoding="utf-8") as lines:
        text = lines.read()
    log.write_text(f"loading weights\n{text}", encoding="utf-8")
    logged, saved = trace_log(log, None, tuple(Topic)), saved_trace()
    assert logged.target == "gfx942"

    def history(trace: PassTrace) -> list[tuple]:
        # a log has neither assembly nor metadata: the release, which sizes depend on, and the warps are unknown
        unknown = ("shared.layout conversion", "straight.in_flight.bytes")
        steps = [(step, [change for change in step.changes if change.key not in unknown]) for step in trace.steps]
        return [(step.name, step.changed_text, changes) for step, changes in steps if step.line]

    assert history(logged) == history(saved)
    other = text.replace("@gemv_splitk", "@second_kernel")
    log.write_text(text + other, encoding="utf-8")
    second = trace_log(log, "second", tuple(Topic))
    assert [(step.name, step.changes) for step in second.steps] == [(step.name, step.changes) for step in logged.steps]
    assert second.steps[0].line == text.count("\n") + logged.steps[0].line - 1
    with pytest.raises(UsageError, match="2 of 2 compiles match"):
        trace_log(log, None, tuple(Topic))
    done = CliRunner().invoke(app, ["passes", str(log), "second", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["passes"]["kernel"] == "second_kernel"
    log.write_text("// -----// IR Dump Before Inliner (inline) ('builtin.module' operation) //----- //\nmodule {\n}\n")
    assert CliRunner().invoke(app, ["passes", str(log)]).exit_code == 3
