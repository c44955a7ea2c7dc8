"""Pages that hold kernels against each other, and that show a launch."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import Browser
from saved import FIXTURES, ROOT, saved
from typer.testing import CliRunner

from artifact_inspector.cli import app

RUNNER = CliRunner()


def page(path: Path, *words: str) -> Path:
    done = RUNNER.invoke(app, [*words, "--html", str(path)])
    assert done.exit_code in (0, 1), done.output
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the sources of the fixtures lie."""
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One GEMV for two GPUs."""
    path = tmp_path_factory.mktemp("pages") / "pair.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return page(path, "diff", "fixtures/3.2.0:gemv", "--left", "sm_75", "--right", "gfx942")


@pytest.mark.exhaustive
def test_a_comparison_marks_the_stage_where_two_kernels_part(window: Browser, pair: Path) -> None:
    """That Triton 3.2 clusters the loads of this kernel in TTGIR stands in the first lines of the README."""
    window.faults()
    window.open(pair)
    assert window.texts("[data-parting] th") == ["ttgir"]
    assert "Triton GPU passes" in window.texts("[data-parting]")[0]
    assert "interleaved" in window.texts("[data-parting]")[0]
    assert "clustered" in window.texts("[data-parting]")[0]
    assert {"gemv_splitk.py", "sm_75 ttgir", "gfx942 ttgir"} <= set(window.texts(".pane h3"))
    assert window.texts("table.both th[scope=row]")
    assert window.faults() == []
    window.picture("pair")
    assert window.barriers(inside=".limit") == []


@pytest.mark.long
def test_an_event_of_the_picture_of_both_leads_to_its_line_in_its_own_kernel(window: Browser, pair: Path) -> None:
    window.open(pair)
    for target in ("sm_75", "gfx942"):
        asked, lit = window.run(
            """const event = document.querySelector(`[data-picture]:not([hidden]) g[data-side="${arguments[0]}"] g[data-go]`);
            event.dispatchEvent(new MouseEvent("click", { bubbles: true }));
            const [, stage, line] = /^(.*):(\\d+)$/.exec(event.dataset.go);
            const pane = code.panes.find(p => p.data.name === `${arguments[0]} ${stage}`);
            return [Number(line), [...(pane?.lit ?? [])]];""",
            target,
        )
        assert asked - 1 in lit, (target, asked, lit)  # panes count from 0


@pytest.mark.long
def test_a_line_of_the_source_lights_lines_of_both_kernels(window: Browser, pair: Path) -> None:
    window.open(pair, "#line=gemv_splitk.py:29")
    for target in ("sm_75", "gfx942"):
        lit = window.run(
            "return code.panes.filter(p => p.data.name === arguments[0]).flatMap(p => [...p.lit].map(n => p.lines[n]))",
            f"{target} ttgir",
        )
        assert any("tt.load" in line for line in lit), target


@pytest.mark.long
def test_the_pass_stands_where_two_kernels_part(
    window: Browser, tmp_path: Path, here: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "artifact_inspector.cli.diff.attribute_passes", lambda pair, facts: (["sm_75: no <pass> at all"], "")
    )
    words = ["diff", "fixtures/3.2.0:gemv", "--left", "sm_75", "--right", "gfx942", "--passes"]
    window.open(page(tmp_path / "passes.html", *words))
    assert window.texts(".limit .plain li") == ["sm_75: no <pass> at all"]


@pytest.mark.long
def test_decisive_facts_of_two_kernels_stand_first(window: Browser, tmp_path: Path, here: None) -> None:
    """A matmul that has no matrix instructions on one side: that costs more than any order."""
    cache = str(FIXTURES / "3.6.0")
    window.open(page(tmp_path / "pair.html", "diff", f"{cache}:matmul_kernel", "--left", "sm_75", "--right", "sm_80"))
    first = window.texts("table.both:not(.stages) tbody tr")[0]
    assert "multiply-adds in place of MMAs" in first or "matrix instructions" in first
    assert window.run("return document.querySelector('table.both:not(.stages) tbody tr').className") == "decisive"


@pytest.mark.long
def test_two_caches_are_a_table_with_a_page_for_each_pair(window: Browser, tmp_path: Path, here: None) -> None:
    cache = str(FIXTURES / "3.2.0")
    made = page(tmp_path / "caches.html", "diff", cache, "--left", "sm_80", "--right", "gfx942", "--across", "target")
    window.open(made)
    assert window.texts("tbody th") == ["matmul_kernel"]
    window.click("tbody th a")
    window.wait(lambda: window.texts("#kernel-title"))
    assert "sm_80 | gfx942" in window.texts("#kernel-title")[0]


@pytest.mark.long
def test_a_matrix_is_a_grid_of_one_figure_at_a_time(window: Browser, tmp_path: Path, here: None) -> None:
    window.faults()
    window.open(page(tmp_path / "matrix.html", "matrix", str(FIXTURES / "3.2.0"), "matmul_kernel"))
    heads = window.texts(".pivot thead th")
    assert {"sm_80 · 3.2", "gfx942 · 3.2"} <= set(heads)
    window.run(
        "const choice = document.querySelector('[data-pivot] select'); choice.value = 'shared';"
        "choice.dispatchEvent(new Event('change'))"
    )
    shared = saved("3.2.0/sm_80/matmul_grouped").artifact.shared_bytes
    assert window.texts(".pivot tbody td")[heads.index("sm_80 · 3.2") - 1] == str(shared)
    assert "figure=shared" in window.run("return location.hash")
    assert "more is worse" in window.texts("[data-pivot] .bar .soft")[0]
    assert window.run("return document.querySelectorAll('.pivot tbody td.h8').length") == 0  # both are equal
    assert window.faults() == []
    window.picture("matrix")
    assert window.barriers(inside="[data-pivot]") == []


@pytest.mark.long
def test_a_matrix_marks_the_worst_value(window: Browser, tmp_path: Path, here: None) -> None:
    window.open(page(tmp_path / "matrix.html", "matrix", str(FIXTURES / "3.6.0"), "matmul_kernel"), "#figure=shared")
    sizes = [int(text) if text.isdecimal() else 0 for text in window.texts(".pivot tbody td")]
    marked = window.run("return [...document.querySelectorAll('.pivot tbody td')].map((one) => one.matches('.h8'))")
    assert min(sizes) < max(sizes)
    assert [size == max(sizes) for size in sizes] == marked


@pytest.mark.long
def test_a_launch_stands_beside_its_lines(window: Browser, tmp_path: Path, here: None) -> None:
    """512 elements by a CTA of 128 threads, one load instruction for each: four warps in every CTA."""
    cache = str(FIXTURES / "3.6.0" / "sm_80" / "copy")
    words = ["predict", cache, "--grid", "8"]
    for name, value in (("x_ptr", "fp16[4096]"), ("y_ptr", "fp16[4096]"), ("n", "4096")):
        words += ["--arg", f"{name}={value}"]
    window.faults()
    window.open(page(tmp_path / "launch.html", *words), "#files=sass")
    assert "grid 8×1×1" in window.texts("#launch-title")[0]
    executed = window.run(
        "const pane = code.panes.find(p => p.data.name === 'sass');"
        "const at = pane.lines.findIndex(text => text.includes('LDG'));"
        "return pane.data.margins.find(m => m.title === 'executed').lines[at + 1]"
    )
    assert executed == 8 * 4
    assert window.faults() == []
    window.picture("launch")
    assert window.barriers(inside="[aria-labelledby=launch-title]") == []
