"""What pages are told, without a browser."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from saved import FIXTURES, ROOT, saved

from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.pressure import pressure_of
from artifact_inspector.files.cache import open_cache
from artifact_inspector.files.sources import read_python_source
from artifact_inspector.model import Stage
from artifact_inspector.report.html import NO_SOURCES, Sources, cache_page, view_kernel
from artifact_inspector.report.html.code import FilePane, LinkedCode, linked_code
from artifact_inspector.report.html.rendering import data_element

MATMUL = "3.6.0/sm_80/matmul_grouped"


def code_of(kernel: KernelFacts, files: Mapping[str, str] | None = None) -> LinkedCode:
    if files is None:
        return linked_code({"": kernel}, Sources(lambda file: read_python_source(file, ROOT)))
    return linked_code({"": kernel}, Sources(lambda file: files.get(Path(file).name)))


def pane(code: LinkedCode, name: str) -> FilePane:
    return next(one for one in code.panes if one.name == name)


def test_every_character_of_a_file_stands_in_its_pane() -> None:
    code = code_of(saved(MATMUL).facts)
    assert pane(code, "ptx").text == saved(MATMUL).text(Stage.PTX).expandtabs(4).removesuffix("\n")
    told = (ROOT / "kernels" / "matmul_grouped.py").read_text(encoding="utf-8")
    assert pane(code, "matmul_grouped.py").text == told.removesuffix("\n")


def test_colours_take_each_line_to_its_end() -> None:
    for one in code_of(saved(MATMUL).facts).panes:
        lines = one.text.split("\n")
        assert len(one.colours) == len(lines) == len(one.links)
        for line, colour in zip(lines, one.colours, strict=True):
            runs = one.patterns[colour].split()
            assert sum(int(run.lstrip("abcdefghijklmnopqrstuvwxyz")) for run in runs) == len(line)


def test_a_source_that_was_edited_since_is_not_shown_as_the_one_that_was_compiled() -> None:
    text = (ROOT / "kernels" / "matmul_grouped.py").read_text(encoding="utf-8")
    moved = code_of(saved(MATMUL).facts, {"matmul_grouped.py": "\n" * 40 + text})
    assert "differs from the compiled source" in moved.missing[0]
    assert "tl.dot" not in pane(moved, "matmul_grouped.py").text
    same = code_of(saved(MATMUL).facts, {"matmul_grouped.py": text})
    assert same.missing == ()


def test_what_is_not_there_is_said() -> None:
    assert "source not found" in code_of(saved(MATMUL).facts, {}).missing[0]
    without = code_of(saved("3.6.0/gfx942/no_line_info").facts, {})
    assert any("lines cannot be linked" in sentence for sentence in without.missing)


def test_registers_alive_stand_beside_machine_code() -> None:
    """The most of them is what the command for registers says, and no more than a thread is given."""
    kernel = saved("3.6.0/gfx942/matmul_grouped").facts
    margins = {margin.title: margin for margin in pane(code_of(kernel, {}), "amdgcn").margins}
    assert margins["registers"].maximum == pressure_of(kernel.artifact).peak <= (kernel.resources.registers.value or 0)


def test_a_page_says_what_it_cannot_draw() -> None:
    content: Any = view_kernel(saved("3.6.0/sm_80/matmul_square").facts, Sources(NO_SOURCES)).content
    assert all(drawing.views or drawing.missing for drawing in content["drawings"])
    assert content["limit"]["message"]


@pytest.mark.parametrize("text", ["</script>", "<!--", "\u202e", "a\x00b", "\u2028", "&lt;"])
def test_data_in_a_page_end_no_element_and_turn_no_line_round(text: str) -> None:
    element = str(data_element("x", {text: [text]}))
    assert element.count("<") == 2
    assert element.isascii()
    assert element.isprintable()


def test_the_policy_of_a_page_names_its_own_script_alone() -> None:
    """The judge is the text of the page: its script, as a browser takes it, has the digest that is named."""
    kernel = saved(MATMUL).facts
    text = cache_page(open_cache(FIXTURES / MATMUL), [kernel], [view_kernel(kernel, Sources(NO_SOURCES))])
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; script-src 'sha256-{digest}'" in unescape(text)
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", text)
    templates = ROOT / "artifact_inspector" / "report" / "html" / "templates"
    for asset in ("style.css", "view.js", "table.js", "pivot.js", "code.js", "page.js"):
        assert (templates / asset).read_text(encoding="utf-8").strip() in text
