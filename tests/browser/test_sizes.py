"""Pages at the sizes of a screen and of a phone: nothing scrolls sideways, the table is on the first screen, zoom works."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from browsing import Browser
from saved import FIXTURES

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.report.html import NO_SOURCES, Sources, cache_page, view_kernel

SIZES = {"screen": (1400, 900), "phone": (400, 800)}


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A list with brief pages, and a kernel with pictures and code."""
    root, made = tmp_path_factory.mktemp("cache"), {}
    for name in ("copy", "gemv_splitk", "matmul_grouped", "register_spill"):
        shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / name, root / name)
    for name, path in (("list", root), ("kernel", root / "matmul_grouped")):
        cache = open_cache(path)
        kernels = [inspect_artifact(artifact) for artifact in cache.entries]
        views = [view_kernel(kernel, Sources(NO_SOURCES)) for kernel in kernels if name == "kernel"]
        made[name] = root.parent / f"{name}.html"
        made[name].write_text(cache_page(cache, kernels, views), encoding="utf-8")
    return made


def resize(window: Browser, size: str) -> None:
    width, height = SIZES[size]
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


@pytest.fixture(params=SIZES)
def size(request: pytest.FixtureRequest, window: Browser) -> object:
    resize(window, request.param)
    yield request.param
    window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


SIDEWAYS = """return [...document.querySelectorAll("html, .frame, .picture:not([hidden]), .card, .panes")]
  .filter(x => x.scrollWidth > x.clientWidth + 1).map(x => `${x.tagName}.${x.className} ${x.scrollWidth}>${x.clientWidth}`)"""
OVERLAPS = """const boxes = [...document.querySelectorAll("h1, .card, .frame, .bar > *, .legend, .lead")].filter(x => x.offsetParent);
  const meets = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
  return boxes.flatMap((x, n) => boxes.slice(n + 1).filter(y => !x.contains(y) && !y.contains(x)
    && meets(x.getBoundingClientRect(), y.getBoundingClientRect())).map(y => `${x.outerHTML.slice(0, 60)} / ${y.outerHTML.slice(0, 60)}`))"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("page", ["list", "brief", "kernel"])
def test_pages_fit_their_screen(window: Browser, pages: dict[str, Path], size: str, page: str, theme: str) -> None:
    path = pages["kernel" if page == "kernel" else "list"]
    window.faults()
    window.open(path, f"#theme={theme}")
    if page == "brief":
        window.click("tbody th a")
        window.wait(lambda: window.texts("#kernel-title"))
        assert "register_spill" in window.texts("#kernel-title")[0]  # the worst row is the first
        assert "spill to memory" in window.texts(".message")[0]
    assert window.run(SIDEWAYS) == []
    assert window.run(OVERLAPS) == []
    if page == "list":
        assert window.run("return document.querySelector('tbody th').getBoundingClientRect().bottom") < SIZES[size][1]
    window.picture(f"{page}-{size}-{theme}")
    assert window.barriers() == []
    assert window.faults() == []


@pytest.mark.exhaustive
def test_pictures_zoom_and_move_by_keys(window: Browser, pages: dict[str, Path], size: str) -> None:
    window.open(pages["kernel"])
    drawn = "document.querySelector('.picture:not([hidden]):not(.narrow)')"
    window.run(f"{drawn}.focus()")
    before = window.run(f"return {drawn}.querySelector('svg').getBoundingClientRect().width")
    window.press("+")
    window.press("+")
    after = window.run(f"return {drawn}.querySelector('svg').getBoundingClientRect().width")
    assert after == pytest.approx(before * 2.25, rel=0.01)
    left = window.run(f"return {drawn}.scrollLeft")
    window.press("\ue014")  # right
    window.wait(lambda: window.run(f"return {drawn}.scrollLeft") > left)
    window.press("0")
    assert window.run(f"return {drawn}.querySelector('svg').getBoundingClientRect().width") == pytest.approx(before)


@pytest.mark.exhaustive
def test_what_is_shown_is_exported_and_one_odd_row_colours_itself(window: Browser, pages: dict[str, Path]) -> None:
    window.open(pages["list"], "#filter=-copy&sort=registers")
    rows = [*csv.DictReader(io.StringIO(window.run("return table.csv()")))]
    assert [row["kernel"] for row in rows] == window.texts("tbody th")
    assert [int(row["regs"]) for row in rows] == sorted(int(row["regs"]) for row in rows)
    shares = window.run("return [...sharesOfBetter([0, 32, 32, 32], 'more')]")
    assert shares == [[0, 0], [32, pytest.approx(1 / 3)]]
