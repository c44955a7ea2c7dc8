"""What commands print of saved kernels, word for word: every option of a report at least once.

`screens/<name>.txt` has each; `--update-golden` writes them anew where the change is meant. Numbers in them have their
own judges elsewhere: these tests notice whatever moves, and show a change of words as a diff. Where a terminal has
colours, styles are written as markup. What compiles, measures or asks an agent's server is given answers made by hand;
of a page its HTML and its data are kept, without what every page has.
"""

from __future__ import annotations

import base64
import json
import re
import shlex
import zlib
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import CliRunner

from artifact_inspector import inspect, inspect_cache
from artifact_inspector.cli import app
from tests.test_schemas import baseline, no_compiler  # noqa: F401 - fixtures
from tests.unit.test_serving import CALLS, ask

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "screens"
pytestmark = [pytest.mark.usefixtures("recalled"), pytest.mark.long]

SOFTMAX = (
    "--grid 64 --arg x_ptr=fp16[64,99] --arg y_ptr=fp16[64,99] --arg stride_x=99 --arg stride_y=99 --arg n_cols=99"
)
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

COLOURED = {
    "list": "3.6.0 -t gfx942",
    "kernel": "3.6.0/gfx942/register_spill k",
    "kernel_full": "3.6.0/sm_80/gemv_splitk k --full",
    "kernel_clusters": "3.6.0/sm_90/tma_warp_specialized k --full --on H200",
    "findings": "findings 3.6.0 -t gfx942",
    "diff": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target",
    "diff_caches": "diff 3.2.0 3.3.1",
    "regress": "regress 3.2.0 3.3.1 --all",
    "matrix": "matrix 3.6.0 softmax",
    "registers": "3.6.0/gfx942/flash_attention k --registers",
    "timeline": "3.6.0/sm_80/flash_attention k --timeline",
    "listing": "3.6.0/sm_80/masked_add k --ir --stage ttgir",
    "predict": f"predict 3.6.0/sm_80/softmax --gpu A100 {SOFTMAX}",
    "advise": "advise 3.6.0/gfx942/softmax --budget 0s",
    "rank": f"rank 3.6.0/sm_80 softmax --gpu A100 {SOFTMAX}",
    "check_memory": f"check-memory 3.6.0/sm_80/softmax {SOFTMAX[:-2]}100",
    "check": "check 3.6.0/gfx942 -b BASELINE --across target",
    "bandwidth": "predict --product 4096x1024@1024x4096 --dtype fp16 --time 0.0005 --gpu A100",
    "compile": "compile softmax -t T4,MI300X -o out",
    "capture": "capture -t T4 -o out python script.py",
    "bench": "bench softmax",
    "passes": "passes gemv_splitk -t gfx942 --all",
    "bisect": "bisect gemv_splitk -t gfx942",
    "try": "try gemv_splitk -t T4 --with num_warps=8",
    "watch": "watch 3.6.0/sm_86 --all --idle 0",
}
"""The same on a terminal with colours."""

MORE = {
    "explain_word": "findings --explain not-pipelined",
    "check_text": "check 3.6.0/gfx942 -b BASELINE --across target",
    "check_markdown": "check 3.6.0/gfx942 -b BASELINE --across target -f markdown",
    "check_junit": "check 3.6.0/gfx942 softmax -b BASELINE --across target -f junit",
    "check_github": "check 3.6.0/gfx942 -b BASELINE --across target -f github --strict",
    "pair_markdown": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target -f markdown",
    "pair_junit": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target -f junit",
    "rank_text": f"rank 3.6.0 softmax --where w4 -t sm_80,sm_75 {SOFTMAX}",
    "rank_brief": f"rank 3.6.0/sm_80 softmax --brief {SOFTMAX}",
    "predict_brief": f"predict 3.6.0/gfx942/softmax --brief {SOFTMAX}",
    "compile_verbose": "compile softmax -t T4,MI300X -o out --verbose",
    "bench_text": "bench softmax",
    "passes_text": "passes gemv_splitk -t gfx942",
    "bisect_text": "bisect gemv_splitk -t gfx942",
    "try_text": "try gemv_splitk -t T4 --with num_warps=8",
    "capture_text": "capture -t T4 -o out python script.py",
    "watch_text": "watch 3.6.0/sm_86 --all --idle 0",
    "graph_json": "3.6.0/sm_80/copy k --graph json --stage ttgir",
    "json_kernel": "3.6.0/sm_90/tma_warp_specialized k --json",
    "json_kernel_amd": "3.6.0/gfx942/register_spill k --json --on MI250X",
    "json_findings": "findings 3.6.0/sm_80 --json",
    "json_sarif": "findings 3.6.0/sm_80 -f sarif",
    "json_pair": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target --json",
    "json_diff": "diff 3.2.0 3.3.1 --json",
    "json_regress": "regress 3.2.0 3.3.1 --json",
    "json_matrix": "matrix 3.6.0 gemv_splitk --json",
    "json_causes": "matrix 3.6.0 matmul_kernel --why --json",
    "json_predict": f"predict 3.6.0/sm_80/softmax --gpu A100 {SOFTMAX} --json",
    "json_predict_amd": f"predict 3.6.0/gfx942/softmax {SOFTMAX} --json",
    "json_advise": "advise 3.6.0/sm_80/softmax --budget 0s --json",
    "json_rank": f"rank 3.6.0/sm_80 softmax {SOFTMAX} --json",
    "json_check_memory": f"check-memory 3.6.0/sm_80/softmax {SOFTMAX[:-2]}100 --json",
    "json_check_memory_sarif": f"check-memory 3.6.0/sm_80/softmax {SOFTMAX[:-2]}100 -f sarif",
    "json_check": "check 3.6.0/gfx942 softmax -b BASELINE --across target --json",
    "json_timeline": "3.6.0/sm_80/two_loops k --timeline --json",
    "json_registers": "3.6.0/gfx942/flash_attention k --registers --json",
    "json_listing": "3.6.0/gfx942/softmax k --ir --stage ttgir --json",
    "json_compile": "compile softmax -t T4,MI300X -o out --json",
    "json_capture": "capture --json -t T4 -o out python script.py",
    "json_bench": "bench softmax --json",
    "json_passes": "passes gemv_splitk -t gfx942 --all --json",
    "json_bisect": "bisect gemv_splitk -t gfx942 --json",
    "json_try": "try gemv_splitk -t T4 --with num_warps=8 --json",
    "json_watch": "watch 3.6.0/sm_86 --all --idle 0 --json",
    "json_baseline": "baseline 3.6.0/sm_80 softmax",
    "json_bandwidth": "predict --product 4096x1024@1024x4096 --time 0.0005 --gpu A100 --json",
    "page_kernel": "report 3.6.0/sm_80/two_loops -o PAGE",
    "page_amd": "report 3.6.0/gfx942/softmax -o PAGE",
    "page_pair": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target --html PAGE --brief",
    "page_diff": "diff 3.2.0 3.3.1 --html PAGE --brief",
    "page_matrix": "matrix 3.6.0 gemv_splitk --html PAGE --brief",
    "page_predict": f"predict 3.6.0/sm_80/softmax {SOFTMAX} --html PAGE --brief",
    "notebook_cache": "notebook 3.2.0",
    "notebook_kernel": "notebook 3.6.0/sm_80/two_loops",
    "notebook_spill": "notebook 3.6.0/gfx942/register_spill",
    **{f"list_w{columns}": "3.6.0 -t gfx942" for columns in (60, 76, 92, 150)},
    **{f"kernel_w{columns}": "3.6.0/sm_80/gemv_splitk k" for columns in (60, 150)},
    "regress_w70": "regress 3.2.0 3.3.1 --all",
    "diff_w70": "diff 3.6.0/sm_80/masked_add 3.6.0/gfx942/masked_add --across target",
    "matrix_w70": "matrix 3.6.0 gemv_splitk",
    "findings_w60": "findings 3.6.0/sm_80",
    "predict_w70": f"predict 3.6.0/sm_80/softmax --gpu A100 {SOFTMAX}",
    "rank_w70": f"rank 3.6.0/sm_80 softmax {SOFTMAX}",
    "bench_w70": "bench softmax",
    **{f"ask_{name}": f"ask {name}" for name in CALLS},
}
"""Further views, documents, and answers to agents; after BASELINE and PAGE the name of a file. `_w60`: 60 columns."""


def page_text(text: str) -> str:
    """What is of this page only: its HTML, and the data of its table; of a kernel if it is the only one."""
    text = re.sub(
        r"<style>.*?</style>|<script>.*?</script>|<meta[^>]*>|<footer>.*?</footer>", "", text, flags=re.DOTALL
    )
    kept: dict[str, object] = {}

    def take(match: re.Match[str]) -> str:
        name = re.sub(r"-[0-9a-f]+$", "", match[2])
        packed = "data-packed" in match[1]
        value = json.loads(zlib.decompress(base64.b64decode(match[3])) if packed else match[3])
        kept[name] = value if name not in kept else None
        return ""

    html = re.sub(r"<script ([^>]*) id=\"([^\"]*)\">(.*?)</script>", take, text, flags=re.DOTALL)
    return re.sub(r"\n\s*\n+", "\n", html) + json.dumps(
        {name: value for name, value in kept.items() if value}, indent=1
    )


def printed(command: str, folder: Path) -> str:
    """What a command prints, or the page that it writes."""
    page, record = folder / "page.html", folder / "baseline.json"
    words = [{"PAGE": str(page), "BASELINE": str(record)}.get(word, word) for word in shlex.split(command)]
    if words[0] == "ask":
        found = ask(words[1], CALLS[words[1]])
        return json.dumps(json.loads(found.content[0].text), indent=1).replace(str(ROOT), "/checkout")
    if words[0] == "notebook":
        shown = inspect(words[1]) if words[1].count("/") > 1 else inspect_cache(words[1])
        return shown._repr_html_().replace(str(ROOT), "/checkout")
    result = CliRunner().invoke(app, words)
    assert result.exit_code in (0, 1), result.output
    text = page_text(page.read_text(encoding="utf-8")) if page.exists() else result.stdout
    text = text.replace(str(folder), "/tmp").replace(str(ROOT), "/checkout")
    return f"exit {result.exit_code}\n{Text.from_ansi(text).markup if chr(27) in text else text}"


def hold(name: str, text: str, request: pytest.FixtureRequest) -> None:
    file = FOLDER / f"{name}.txt"
    if request.config.getoption("--update-golden", default=False):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_what_it_was(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(ROOT / "fixtures")
    hold(name, printed(SCREENS[name], tmp_path), request)


@pytest.mark.usefixtures("no_compiler")
@pytest.mark.parametrize("name", [*MORE, *(f"{name}_coloured" for name in COLOURED)])
def test_a_further_view_is_what_it_was(
    name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _, narrow, columns = name.rpartition("_w")
    monkeypatch.setenv("COLUMNS", columns if narrow and columns.isdigit() else "110")
    monkeypatch.setenv("NO_COLOR" if name in MORE else "FORCE_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR" if name in MORE else "NO_COLOR", raising=False)
    command = MORE.get(name) or COLOURED[name.removesuffix("_coloured")]
    if not command.startswith(("compile", "capture", "bench", "passes", "bisect", "try")):
        monkeypatch.chdir(ROOT / "fixtures")
    hold(name, printed(command, tmp_path), request)


def test_every_screen_has_its_file() -> None:
    names = {*SCREENS, *MORE, *(f"{name}_coloured" for name in COLOURED)}
    assert {file.stem for file in FOLDER.iterdir()} == names
