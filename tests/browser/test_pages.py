"""Pages as a browser shows them: from the disk, with no network, whatever the cache holds."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browsing import Browser
from saved import FIXTURES, ROOT

from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.files.cache import Cache, open_cache
from artifact_inspector.files.sources import read_python_source
from artifact_inspector.report.html import NO_SOURCES, ReadSource, Sources, cache_page, view_kernel
from artifact_inspector.report.html.table_page import TableData, kernel_table

KERNELS = ("copy", "gemv_splitk", "matmul_grouped", "matmul_square", "register_spill")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def written(cache: Cache, path: Path, read: ReadSource = NO_SOURCES) -> Path:
    kernels = [inspect_artifact(artifact) for artifact in cache.entries]
    views = [view_kernel(kernel, Sources(read)) for kernel in kernels]
    path.write_text(cache_page(cache, kernels, views), encoding="utf-8")
    return path


def from_here(file: str) -> str | None:
    return read_python_source(file, ROOT)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five kernels of one target."""
    root = tmp_path_factory.mktemp("cache")
    for name in KERNELS:
        shutil.copytree(FIXTURES / "3.6.0" / "sm_80" / name, root / name)
    return root


@pytest.fixture(scope="module")
def listed(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(open_cache(cache), tmp_path_factory.mktemp("pages") / "list.html", from_here)


@pytest.fixture(scope="module")
def matmul(cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    opened = open_cache(cache / "matmul_grouped")
    return written(opened, tmp_path_factory.mktemp("pages") / "matmul.html", from_here)


def names(window: Browser) -> list[str]:
    return window.texts("table.data tbody th")


@pytest.mark.long
def test_a_page_opens_from_the_disk_and_asks_for_nothing_else(window: Browser, listed: Path) -> None:
    window.fetched()
    window.faults()
    assert min(window.open(listed) for _ in range(3)) < 2000
    window.run("location.hash = 'k=' + JSON.parse(document.getElementById('about').textContent).leaves[2]")
    window.wait(lambda: window.texts("#kernel-title"))
    assert {url for url in window.fetched() if url != "about:blank"} == {listed.as_uri()}
    assert window.faults() == []


@pytest.mark.long
def test_a_filter_keeps_the_rows_that_hold_what_is_asked(window: Browser, listed: Path) -> None:
    window.open(listed)
    assert len(names(window)) == len(KERNELS)
    window.press("/")
    window.press("shared>8000")
    assert sorted(names(window)) == ["matmul_kernel", "matmul_square_kernel"]
    window.open(listed, "#filter=verdict:serial%20-gemv")
    assert names(window) == ["matmul_square_kernel"]
    assert window.texts("output")[0] == f"1 of {len(KERNELS)}"


@pytest.mark.long
def test_a_heading_sorts_by_its_column_and_says_so(window: Browser, listed: Path) -> None:
    window.open(listed)
    heading = window.run(
        "const all = [...document.querySelectorAll('thead button')];"
        "return all.findIndex(x => x.textContent === 'shared')"
    )
    window.click("thead button", heading)
    shared = [int(text) for text in window.texts(f"tbody td:nth-child({heading + 1})")]
    assert shared == sorted(shared, reverse=True)
    assert shared[0] == 30720
    assert window.run("return document.querySelectorAll('thead th')[arguments[0]].ariaSort", heading) == "descending"
    window.click("thead button", heading)
    assert [int(text) for text in window.texts(f"tbody td:nth-child({heading + 1})")] == shared[::-1]


@pytest.mark.long
def test_rows_stand_in_groups_that_close(window: Browser, listed: Path) -> None:
    window.open(listed, "#group=verdict")
    groups = window.texts("tr.group th")
    assert len(groups) > 2
    window.click("tr.group button")
    assert len(names(window)) == len(KERNELS) + len(groups) - int(re.findall(r"\d+$", groups[0])[0])
    assert window.run("return document.querySelector('tr.group button').ariaExpanded") == "false"


@pytest.mark.long
def test_a_row_opens_its_kernel_and_back_leads_to_the_list(window: Browser, listed: Path) -> None:
    window.open(listed, "#filter=matmul_kernel")
    window.click("tbody th a")
    window.wait(lambda: window.texts("#kernel-title"))
    assert window.texts("#kernel-title")[0].startswith("matmul_kernel")
    window.picture("kernel")
    assert window.run("return document.title").startswith("matmul_kernel")
    assert window.run("return [scrollY, document.activeElement.id]") == [0, "kernel-title"]
    window.driver.back()
    window.wait(lambda: window.run("return document.getElementById('kernel').hidden"))
    assert names(window) == ["matmul_kernel"]
    window.picture("list")


def ptx_of(cache: Path) -> list[str]:
    (path,) = (cache / "matmul_grouped").rglob("*.ptx")
    return path.read_text(encoding="utf-8").split("\n")


def lines_lit(window: Browser, pane: str) -> list[int]:
    script = "return code.panes.find(p => p.data.name === arguments[0]).lit"
    return sorted(one + 1 for one in window.run(f"return [...({script.removeprefix('return ')})]", pane))


@pytest.mark.long
def test_a_line_lights_its_lines_everywhere(window: Browser, matmul: Path, cache: Path) -> None:
    """What the file itself says of its lines is the judge: `.loc` in front of an instruction."""
    ptx = ptx_of(cache)
    at = next(number for number, text in enumerate(ptx, 1) if "mma.sync" in text)
    told = next(re.match(r"\s*\.loc\s+\d+ (\d+)", text) for text in reversed(ptx[:at]) if ".loc" in text)
    assert told is not None
    window.open(matmul, f"#line=ptx:{at}")
    source = int(told[1])
    assert lines_lit(window, "matmul_grouped.py") == [source]
    assert "tl.dot" in window.texts(".pane .line.lit code")[0]
    (ttgir,) = (cache / "matmul_grouped").rglob("*.ttgir")
    dots = [n for n, text in enumerate(ttgir.read_text(encoding="utf-8").split("\n"), 1) if "tt.dot" in text]
    assert dots
    assert set(dots) <= set(lines_lit(window, "ttgir"))
    assert f"matmul_grouped.py:{source}" in window.texts(".told")[0]
    window.picture("lit")


@pytest.mark.long
def test_an_event_of_the_timeline_leads_to_its_line(window: Browser, matmul: Path, cache: Path) -> None:
    window.open(matmul)
    assert {"TIMELINE", "TIMETABLE", "SHARED MEMORY"} <= set(window.texts("h2"))
    place = window.run(
        "const found = [...document.querySelectorAll('.picture:not([hidden]) [data-go^=\"ptx:\"]')]"
        "  .find(one => one.querySelector('title').textContent.includes('mma.sync'));"
        "found.focus(); return found.dataset.go"
    )
    window.press("\ue007")
    window.wait(lambda: "line=ptx" in window.run("return location.hash"))
    assert "mma.sync" in ptx_of(cache)[int(place.partition(":")[2]) - 1]
    assert lines_lit(window, "matmul_grouped.py")


@pytest.mark.long
def test_a_loop_is_looked_at_on_its_own(window: Browser, matmul: Path) -> None:
    window.open(matmul, "#zoom-timeline=loop%4081")
    shown = window.run(
        "return [...document.querySelectorAll('[data-picture=timeline]')].filter(x => !x.hidden).map(x => x.ariaLabel)"
    )
    assert shown == ["Timeline: loop@81"]


@pytest.mark.long
def test_pictures_are_printed_whole_and_the_code_is_not(window: Browser, matmul: Path) -> None:
    window.open(matmul)
    window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        drawn = "[data-picture=timeline]:not([hidden]) "
        assert window.run(f"return document.querySelector('{drawn}[data-go]').getBoundingClientRect().width")
        assert window.run(f"const box = document.querySelector('{drawn}'); return box.scrollWidth <= box.clientWidth")
        assert window.run("return document.querySelector('.panes').offsetHeight") == 0
        assert "TIMELINE" in window.texts("h2")
        window.picture("printed")
    finally:
        window.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.long
def test_keys_walk_through_lines_and_let_go(window: Browser, matmul: Path) -> None:
    window.open(matmul, "#line=matmul_grouped.py:82")
    window.run("document.querySelector('.lines').focus()")
    window.press("\ue015", "\ue007")  # down, enter
    assert "matmul_grouped.py%3A83" in window.run("return location.hash")
    assert lines_lit(window, "ptx")
    window.press("\ue00c")  # escape
    assert "line" not in window.run("return location.hash")
    assert not lines_lit(window, "ptx")


@pytest.mark.long
def test_ten_thousand_lines_scroll_with_few_of_them_in_the_page(window: Browser, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / "long"
    shutil.copytree(cache / "matmul_grouped", root)
    (ptx,) = root.rglob("*.ptx")
    ptx.write_text(ptx.read_text(encoding="utf-8") + "".join(f"// line {n}\n" for n in range(10_000)))
    window.open(written(open_cache(root), tmp_path / "long.html"), "#files=ptx")
    took = window.run(
        "const pane = code.shown[0], took = [];"
        "for (let n = 0; n < 60; n++) {"
        "  const before = performance.now();"
        "  pane.scroll.scrollTop = n * 3000; pane.draw(); pane.rows.getBoundingClientRect();"
        "  took.push(performance.now() - before); }"
        "return took.sort((a, b) => a - b)"
    )
    assert took[0] < 50, "however busy the machine is otherwise"
    window.run("const box = document.querySelector('.lines'); box.scrollTop = box.scrollHeight")
    window.wait(lambda: "// line 9999" in window.texts(".rows .line code"))
    assert len(window.texts(".rows .line")) < 150
    assert "source not found" in window.texts("p.note")[0]
    window.picture("long")


def test_a_stranger_cannot_make_the_page_do_anything(window: Browser, cache: Path, tmp_path: Path) -> None:
    root = tmp_path / "hostile"
    shutil.copytree(cache / "copy", root)
    (metadata,) = root.rglob("copy.json")
    told = json.loads(metadata.read_text(encoding="utf-8"))
    metadata.write_text(json.dumps({**told, "name": f"{HOSTILE}\u202egnp"}), encoding="utf-8")
    for suffix in ("ttir", "ttgir"):
        (text,) = root.rglob(f"*.{suffix}")
        content = text.read_text(encoding="utf-8").replace("copy.py", "javascript:alert(1)<img onerror=alert(1)>.py")
        text.write_text(f"// {HOSTILE} \u202egnp {{{{ 7 * 7 }}}}\n{content}", encoding="utf-8")
    page = written(open_cache(root), tmp_path / "hostile.html")
    window.faults()
    window.fetched()
    window.open(page, "#files=ttir|ttgir")
    assert window.texts("#kernel-title")[0].startswith(HOSTILE)
    assert f"// {HOSTILE} \\u202egnp {{{{ 7 * 7 }}}}" in window.texts(".rows .line code")
    assert (
        window.run("return document.images.length + document.querySelectorAll('[onerror], a[href^=java]').length") == 0
    )
    assert window.faults() == []
    assert {url for url in window.fetched() if url != "about:blank"} == {page.as_uri()}
    window.picture("hostile")


@pytest.mark.long
def test_no_serious_barrier_for_anybody(window: Browser, listed: Path, matmul: Path) -> None:
    """Every rule once for each kind of page; what a theme decides, in both."""
    for theme, rules in (("light", ()), ("dark", ("color-contrast",))):
        window.open(listed, f"#theme={theme}&sort=-shared")
        assert window.barriers(*rules) == []
        window.picture(f"list-{theme}")
    inks = []
    for theme, rules in (("light", ("color-contrast",)), ("dark", ())):
        window.open(matmul, f"#theme={theme}&files=ptx&line=ptx:187")
        assert window.barriers(*rules) == []
        window.picture(f"matmul-{theme}")
        inks.append(window.run("return getComputedStyle(document.querySelector('.ai-pic .ink')).fill"))
    assert inks[0] == inks[1], "what stands in a coloured box is dark in both"


@pytest.mark.long
def test_thousands_of_kernels_are_a_table_of_bounded_size(
    cache: Path, tmp_path: Path, window: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_cache(cache)
    kernels = [inspect_artifact(artifact) for artifact in opened.entries]

    def many_times(*given: Any) -> TableData:
        table = kernel_table(*given)
        return replace(table, lines=table.lines * 600)

    monkeypatch.setattr("artifact_inspector.report.html.pages.kernel_table", many_times)
    text = cache_page(opened, kernels, [])
    assert len(text.encode()) < 10_000_000
    (tmp_path / "thousands.html").write_text(text, encoding="utf-8")
    window.open(tmp_path / "thousands.html")
    assert window.texts("output")[0] == "3000"
    assert len(names(window)) < 500


def test_one_kernel_and_thirty_stay_small(listed: Path, matmul: Path) -> None:
    assert matmul.stat().st_size < 1_500_000
    assert listed.stat().st_size / len(KERNELS) < 6_000_000 / 30
