"""What campaigns found, made as small as it goes: each once brought about what no file may."""

from __future__ import annotations

import json
import math
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from artifact_inspector.analysis.shared import scratch_memory
from artifact_inspector.analysis.shared.register_layouts import Layout
from artifact_inspector.api.saved import SavedIR
from artifact_inspector.compiling.ask.manifest import read_manifest
from artifact_inspector.compiling.ask.request import parse_configs
from artifact_inspector.compiling.untrusted import UntrustedRecord
from artifact_inspector.errors import CacheError, UsageError
from artifact_inspector.execution.interpreter.global_memory import TensorMemory
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import Tensor, encode_argument
from artifact_inspector.execution.launch_requests import parse_document_of
from artifact_inspector.execution.timing.variations import compile_variations
from artifact_inspector.facts.encoding import join
from artifact_inspector.facts.graph import graph_of
from artifact_inspector.facts.lazy import FactSource
from artifact_inspector.files.cache import Artifact, cache_in_memory, open_cache
from artifact_inspector.formats.sass.statement import SassOperandKind, parse_statement
from artifact_inspector.model import Stage
from artifact_inspector.model.encoding import LayoutKind
from artifact_inspector.passes.dumps import PassTimes
from artifact_inspector.passes.subject import subject_of_entry
from artifact_inspector.report.json import as_text
from artifact_inspector.vocabulary.variant_labels import _typed
from tests.fuzz.checks import check_text, within
from tests.fuzz.paper import run_on_paper

COPY = Path(__file__).parents[2] / "fixtures" / "3.6.0" / "sm_80" / "copy"


@pytest.mark.parametrize(
    ("stage", "text"),
    [
        (
            Stage.LLIR,
            'target triple = "amdgcn-amd-amdhsa"\ndefine amdgpu_kernel void @k(<4 x float> %a) {\n'
            "  %b = call <4 x float> @llvm.amdgcn.mfma.f32.16x0x16f16(<4 x half> %a, <4 x half> %a)\n  ret void\n}\n",
        ),
        (
            Stage.TTIR,
            "module {\n  tt.func public @k(%a: tensor<16x16xf16>, %c: tensor<0x16xf32>) {\n"
            "    %0 = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<0x16xf32>\n"
            "    tt.return\n  }\n}\n",
        ),
        (Stage.SASS, "\tcode for sm_80\n\t\tFunction : k\n        /*0000*/  FADD R1, R2, 3.6.0 ;\n"),
    ],
    ids=["a matrix product of no extent", "a dot of no row", "a number with two points"],
)
def test_what_was_found_is_read_or_refused(stage: Stage, text: str) -> None:
    with within(2):
        assert check_text(text, stage)


def test_a_number_with_two_points_is_a_text() -> None:
    assert parse_statement("FADD R1, R2, 3.6.0").operands[-1].kind is SassOperandKind.TEXT
    assert parse_statement("FADD R1, R2, 1.5.H0").operands[-1].float_value == 1.5


@pytest.mark.parametrize("suffix", [pytest.param("amdgcn", marks=pytest.mark.long), "sass"])
def test_damaged_code_is_run_on_paper_or_refused(suffix: str) -> None:
    assert {run_on_paper(suffix, number) for number in range(4)} <= {"run", "refused"}


def test_a_reduction_without_lanes_is_not_known() -> None:
    held = Layout((4,), (), (), (1, 2), (4,), (0,), (1,), LayoutKind.BLOCKED)
    with within(1):
        assert scratch_memory._conversion_bytes_of_reduction(held, 0, [32], None) is None  # type: ignore[arg-type]


def _entry(**metadata: Any) -> Artifact:
    (entry, *_) = open_cache(COPY).entries
    return replace(entry, metadata={**entry.metadata, **metadata})


def test_no_word_of_a_cache_chooses_what_is_run_or_written() -> None:
    asked = subject_of_entry(_entry(ptx_options="-o /tmp/pwn", ir_override="/etc/passwd", instrumentation_mode="pwn"))
    assert asked.request["options"].keys().isdisjoint({"ptx_options", "ir_override", "instrumentation_mode"})
    assert any("ptx_options" in note for note in asked.notes)
    other = _entry()
    assert other.triton_version is not None
    with pytest.raises(UsageError, match="not a version of Triton"):
        subject_of_entry(replace(other, triton_version=type(other.triton_version)("3.6.0=halt")))


def test_code_that_lies_in_a_cache_is_not_compiled(tmp_path: Path) -> None:
    shutil.copytree(next(COPY.glob("*/")), tmp_path / "entry")
    (tmp_path / "evil.py").write_text("raise SystemExit(77)\n")
    row = {"directory": "entry", "place": f"{tmp_path / 'evil.py'}:k", "target": "sm_80", "types": 7}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"entries": [row]}))
    (base,) = open_cache(tmp_path).entries
    with pytest.raises(UsageError, match="only in a record is not imported"):
        compile_variations(base, {"num_warps": ("4",)}, tmp_path / "out")


@pytest.mark.parametrize("text", ["²", "0", "-1", "9" * 5000, "", "1.0"])
def test_a_number_of_configurations_is_one(text: str) -> None:
    with pytest.raises(UsageError, match="or a number"):
        parse_configs(text)


def test_a_float_beyond_what_a_parameter_holds_is_infinite() -> None:
    assert encode_argument(-1e300, 4) == encode_argument(-math.inf, 4)


def test_what_is_touched_of_a_huge_tensor_is_counted_in_passing() -> None:
    region = TensorMemory("x", Tensor((1 << 30,), "fp16", pointer=1 << 40))
    region.split_granules(2)
    region.read_marks[[5, 6, 1 << 29]] = 1
    region.written_marks[5] = 1
    with within(2):
        assert region.count_touched(region.read_marks) == (6, 2)
        assert region.count_touched(region.read_marks, region.written_marks) == (6, 2)


@pytest.mark.parametrize("values", [[{}], ["x"], [None], [1 << 64]])
def test_values_of_a_tensor_are_numbers(values: list[Any]) -> None:
    with pytest.raises(UsageError, match="x has values that are not numbers"):
        parse_document_of({"grid": [1], "args": {"x": {"shape": [1], "dtype": "i32", "values": values}}}, "it")


def test_a_delete_is_escaped_in_json() -> None:
    assert as_text({"a": "\x7f"}, "utf-8", indent=None) == '{"a": "\\u007f"}\n'


def test_inline_assembly_of_any_length_takes_little_time() -> None:
    text = (
        'target triple = "nvptx64-nvidia-cuda"\ndefine void @k(i32 %0) {\n  call void asm sideeffect "'
        + "ld.global.b32 %r1, [%r2];" * 20_000
        + '", "r"(i32 %0)\n  ret void\n}\n'
    )
    with within(4):
        assert check_text(text, Stage.LLIR)


@pytest.mark.parametrize("metadata", [{"num_ctas": 1 << 30}, {"num_ctas": -5}, {"global_scratch_size": -1}])
def test_a_cluster_or_scratch_that_no_gpu_has_is_refused_or_passed_over(metadata: dict[str, Any]) -> None:
    if metadata.get("num_ctas", 0) > 16:
        with pytest.raises(CacheError, match="Expected at most 16"):
            load_kernel(_entry(**metadata), None)
        return
    loaded = load_kernel(_entry(**metadata), None)
    assert (loaded.cluster_size, loaded.scratch_bytes) == (1, 0)


def test_rows_of_a_record_are_of_the_kinds_that_we_write(tmp_path: Path) -> None:
    row = {"place": 7, "types": [7, "x", "x=i32"], "constants": "x", "options": [1], "directory": "a", "hash": []}
    (tmp_path / "inspect-kernel.json").write_text(json.dumps({"entries": [row]}))
    assert read_manifest(tmp_path) == [{"types": ["x=i32"], "directory": "a"}]


def test_problems_that_are_none_are_looked_for_again() -> None:
    recalled = FactSource(_entry(), join({"problems": "7"}))
    assert recalled.problems == ()


def test_what_a_failed_assertion_tells_moves_no_cursor() -> None:
    (kernel, *_) = SavedIR([COPY]).all()
    odd = replace(kernel, details=replace(kernel.details, artifact=_entry()))
    with pytest.raises(AssertionError) as told:
        odd._fail("is \x1b[2J", ())
    assert "\x1b" not in str(told.value)


def test_an_infinite_number_is_not_known_in_json() -> None:
    assert as_text({"a": math.inf, "b": {"c": [math.nan, 1.5]}}, "utf-8", indent=None) == (
        '{"a": null, "b": {"c": [null, 1.5]}}\n'
    )


def test_a_time_of_thousands_of_digits_is_none() -> None:
    assert PassTimes([f"  {'9' * 400}.0 ( 10.0%)  Inliner"]).mlir_seconds(["Inliner"]) == [None]


def test_a_text_with_more_names_than_types_is_labelled() -> None:
    program = SimpleNamespace(arguments=("a", "b"), signature=("i32",))
    assert _typed(program) == ["a:i32"]  # type: ignore[arg-type]


def test_a_graph_of_thousands_of_blocks_takes_little_time() -> None:
    lines = "".join(f"@%p1 bra $L{n};\nld.global.b32 %r{n}, [%rd1];\n$L{n}:\n" for n in range(1500))
    text = f".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{{\n{lines}ret;\n}}\n"
    (artifact,) = cache_in_memory("k", {"ptx": text.encode()}).entries
    with within(4):
        graph = graph_of(artifact, None, None)
    assert graph is not None


def test_a_place_that_no_file_can_have_is_refused() -> None:
    record = UntrustedRecord.of_row({"place": "\ud800.py:k"})
    with pytest.raises(UsageError, match="only in a record is not imported"):
        record.resolve_kernel_path("k", None)


def test_the_message_of_a_release_that_refuses_a_kernel_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """`bisect` wrote the first line of a compiler's message as it was; compilers quote names of the kernel."""
    from artifact_inspector.passes.bisection import Bisection, ReleaseResult
    from artifact_inspector.report.console import write_lines
    from artifact_inspector.report.passes import describe_bisection

    releases = (ReleaseResult("3.5.1", {}, "error in \x1b]0;pwn\x07\nmore"), ReleaseResult("3.6.0", {}, None))
    write_lines("\n".join(describe_bisection(Bisection("k", "sm_80", (), releases, None, ()))) + "\n", sys.stdout)
    assert "error in \\x1b]0;pwn\\x07" in capsys.readouterr().out
