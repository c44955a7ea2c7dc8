"""What campaigns found, made as small as it goes: each once brought about what no file may."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.shared import scratch
from artifact_inspector.analysis.shared.layouts import Layout
from artifact_inspector.formats.sass.statement import OperandKind, parse_statement
from artifact_inspector.model import Stage
from artifact_inspector.model.encoding import LayoutKind
from tests.fuzz.checks import check_text, within
from tests.fuzz.paper import run_on_paper


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
    assert parse_statement("FADD R1, R2, 3.6.0").operands[-1].kind is OperandKind.TEXT
    assert parse_statement("FADD R1, R2, 1.5.H0").operands[-1].real == 1.5


@pytest.mark.parametrize("suffix", ["amdgcn", "sass"])
def test_damaged_code_is_run_on_paper_or_refused(suffix: str) -> None:
    assert {run_on_paper(suffix, number) for number in range(4)} <= {"run", "refused"}


def test_a_reduction_without_lanes_is_not_known() -> None:
    held = Layout((4,), (), (), (1, 2), (4,), (0,), (1,), LayoutKind.BLOCKED)
    with within(1):
        assert scratch._converted(held, 0, [32], None) is None  # type: ignore[arg-type]
