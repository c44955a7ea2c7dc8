"""What commands print of saved kernels, word for word: every option of a report at least once.

`screens/<name>.txt` has each; `--update-golden` writes them anew where the change is meant. Numbers in them have their
own judges elsewhere: these tests notice whatever moves, and show a change of words as a diff.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from artifact_inspector.cli import app

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "screens"
pytestmark = [pytest.mark.usefixtures("recalled"), pytest.mark.long]

SCREENS = {
    "list_brief": "3.9.0 --brief --limit 12",
    "list_sorted": "3.9.0 -t sm_80 --sort occupancy --limit 8",
    "list_legend": "3.2.0 --legend",
    "list_verdict": "3.2.0 --verdict clustered --full",
    "list_finding": "3.2.0 --finding AI001 --severity note",
    "kernel_brief": "3.6.0/sm_80/matmul_grouped matmul --brief",
    "kernel_full_hopper": "3.6.0/sm_90/tma_warp_specialized k --full",
    "kernel_full_blackwell": "3.6.0/sm_100/fused_linear k --full",
    "kernel_full_amd": "3.6.0/gfx942/flash_attention k --full",
    "kernel_full_rdna": "3.6.0/gfx1100/softmax k --full",
    "kernel_full_spill": "3.6.0/gfx942/register_spill k --full",
    "kernel_full_atomics": "3.6.0/gfx90a/gemv_splitk k --full",
    "kernel_full_loops": "3.6.0/sm_80/nested_loops k --full",
    "kernel_stage": "3.6.0/sm_80/gemv_splitk k --stage ptx",
    "kernel_on_another_gpu": "3.6.0/sm_80/matmul_grouped --on L40S",
    "timeline_wide": "3.6.0/sm_80/flash_attention k --timeline",
    "timeline_amd": "3.6.0/gfx942/matmul_grouped k --timeline",
    "timeline_loops": "3.6.0/sm_80/two_loops k --timeline --stage ttgir",
    "registers_amd": "3.6.0/gfx942/flash_attention k --registers",
    "registers_nvidia": "3.6.0/sm_89/matmul_grouped k --registers --sass",
    "ir_with_notes": "3.6.0/sm_80/masked_add k --ir --stage ttgir",
    "ir_region": "3.6.0/gfx942/matmul_grouped k --ir --stage amdgcn --region loop@81 --context 1",
    "graph_dot": "3.6.0/sm_80/copy k --graph dot",
    "findings_amd": "findings 3.6.0 -t gfx942",
    "findings_brief": "findings 3.2.0 --brief",
    "findings_explain": "findings --explain AI001",
    "findings_github": "findings 3.2.0 -f github",
    "diff_gpus": "diff 3.2.0 --left sm_75 --right gfx90a --across target",
    "diff_brief": "diff 3.2.0 3.3.1 --brief",
    "diff_kernel": "diff 3.3.1/gfx942/gemv_splitk 3.6.0/gfx942/gemv_splitk --changes",
    "diff_why": "diff 3.6.0/sm_90/matmul_grouped 3.6.0/sm_100/matmul_grouped --across target --why",
    "diff_markdown": "diff 3.2.0 3.3.1 -f markdown",
    "diff_junit": "diff 3.2.0 3.3.1 -f junit",
    "matrix_sorted": "matrix 3.6.0 softmax --sort registers",
    "matrix_why": "matrix 3.6.0 gemv --why",
    "matrix_brief": "matrix 3.6.0 matmul_kernel --brief",
    "cache_verify": "cache verify 3.6.0/sm_75",
    "predict_softmax": "predict 3.6.0/sm_80/softmax --grid 64 --arg x_ptr=fp16[64,99] --arg y_ptr=fp16[64,99]"
    " --arg stride_x=99 --arg stride_y=99 --arg n_cols=99",
    "predict_lines_amd": "predict 3.6.0/gfx942/softmax --grid 64 --arg x_ptr=fp16[64,99] --arg y_ptr=fp16[64,99]"
    " --arg stride_x=99 --arg stride_y=99 --arg n_cols=99",
    "bandwidth": "predict --product 4096x1024@1024x4096 --dtype fp16 --time 0.0005 --gpu A100",
    "advise_softmax": "advise 3.6.0/gfx942/softmax --budget 0s",
    "check_memory_softmax": "check-memory 3.6.0/sm_80/softmax --grid 64 --arg x_ptr=fp16[64,99]"
    " --arg y_ptr=fp16[64,99] --arg stride_x=99 --arg stride_y=99 --arg n_cols=100",
    "check_memory_github": "check-memory 3.6.0/sm_80/softmax -f github --grid 64 --arg x_ptr=fp16[64,99]"
    " --arg y_ptr=fp16[64,99] --arg stride_x=99 --arg stride_y=99 --arg n_cols=100",
    "check_memory_junit": "check-memory 3.6.0/sm_80/softmax -f junit --grid 64 --arg x_ptr=fp16[64,99]"
    " --arg y_ptr=fp16[64,99] --arg stride_x=99 --arg stride_y=99 --arg n_cols=100",
    "svg_diff": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target --svg timeline",
    "svg_timeline": "3.6.0/sm_80/two_loops k --svg timeline",
    "svg_timetable": "3.6.0/sm_80/matmul_grouped k --svg timetable",
    "svg_partitions": "3.6.0/sm_90/tma_warp_specialized k --svg partitions",
    "svg_shared": "3.6.0/sm_80/layer_norm k --svg shared",
    "svg_occupancy": "3.6.0/gfx942/flash_attention k --svg occupancy",
    "svg_grid": "predict 3.6.0/sm_80/softmax --svg grid --ctas-per-wave 16 --grid 64 --arg x_ptr=fp16[64,112] --arg y_ptr=fp16[64,112]"
    " --arg stride_x=112 --arg stride_y=112 --arg n_cols=112",
    "svg_roofline": "predict 3.6.0/sm_80/softmax --svg roofline --gpu A100 --grid 64 --arg x_ptr=fp16[64,112] --arg y_ptr=fp16[64,112]"
    " --arg stride_x=112 --arg stride_y=112 --arg n_cols=112",
    "svg_banks": "predict 3.6.0/sm_80/softmax --svg banks --line 20 --grid 64 --arg x_ptr=fp16[64,112] --arg y_ptr=fp16[64,112]"
    " --arg stride_x=112 --arg stride_y=112 --arg n_cols=112",
    "svg_residency": "predict 3.6.0/sm_80/softmax --svg residency --grid 64 --arg x_ptr=fp16[64,112] --arg y_ptr=fp16[64,112]"
    " --arg stride_x=112 --arg stride_y=112 --arg n_cols=112",
}  # fmt: skip
"""Name → command in the directory of fixtures."""


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_what_it_was(name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(ROOT / "fixtures")
    result = CliRunner().invoke(app, shlex.split(SCREENS[name]))
    assert result.exit_code in (0, 1), result.output
    text = f"exit {result.exit_code}\n{result.stdout}"
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_screen_has_its_file() -> None:
    assert {file.stem for file in FOLDER.iterdir()} == set(SCREENS)
