"""Single numbers of views next to the facts: where labels of pictures stand, how many are left out, and decimals."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from launched import gemv
from saved import saved
from svg_elements import boxes_by_title, elements

from artifact_inspector.analysis.shared.shared_memory_usage import Allocation
from artifact_inspector.comparison.pair_price import PairPrice
from artifact_inspector.execution.cta_order import CtaOrder, Wave
from artifact_inspector.findings._rule import Finding, Remark, Severity
from artifact_inspector.findings._switch import Switch, SwitchKind
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.pictures.cta_grid import cta_grid
from artifact_inspector.pictures.resources import shared_map
from artifact_inspector.report.change_effect import RemediesReport, RemedyTrial
from artifact_inspector.report.compilation import _first_and_count
from artifact_inspector.report.console import to_text
from artifact_inspector.report.exchange import markdown
from artifact_inspector.report.html.drawings import WIDTH
from artifact_inspector.report.html.launch import draw_launch
from artifact_inspector.report.json._encoding import encode
from artifact_inspector.report.json.cache import kernel_document
from artifact_inspector.serving.catalog import PARTS
from artifact_inspector.serving.items import kernel_items

MATMUL = "3.6.0/sm_80/matmul_grouped"


# -- pictures --------------------------------------------------------------------------------------------


def an_allocation(line: int, size: int, offset: int) -> Allocation:
    return Allocation(size, 1, line, None, "scratch", None, "", True, line, line, offset)


def test_the_number_of_a_small_allocation_stands_beside_it_and_above_others() -> None:
    """Three small allocations at one place, one elsewhere, and a large one that makes them small."""
    places = [(50, 100, 30_000), (50, 100, 30_000), (50, 100, 30_000), (10, 100, 0), (1, 65_000, 500), (99, 8, 65_492)]
    entries = tuple(an_allocation(*place) for place in places)
    bill = SimpleNamespace(entries=entries, declared=None, peak=65_500, note="")
    kernel: Any = SimpleNamespace(bill=bill, artifact=SimpleNamespace(display_name="k"))
    svg = shared_map(kernel)
    boxes = {title.partition(".")[0]: box for title, box in boxes_by_title(svg).items()}
    beside_boxes = [x for x in elements(svg, "text") if x.get("class") == "small" and x[""] in boxes]
    labels = {x[""]: (float(x["x"]), float(x["y"])) for x in beside_boxes}
    beside = {
        number: (min(box["x"] + box["width"] + 3, 960 - 14 - 12), max(box["y"] + 3, 52 + 9))
        for number, box in boxes.items()
    }
    above = {"2": 9, "3": 18}
    assert set(labels) == set(boxes) == set("123456")
    for number, (x, y) in labels.items():
        expected = beside[number][0], beside[number][1] - above.get(number, 0)
        assert (x, y) == pytest.approx(expected, abs=0.11), number


def test_the_number_of_a_wave_stands_in_the_middle_of_its_drawn_tiles() -> None:
    """150 rows of 70 tiles, of which 128 rows are drawn; a wave has 35 whole rows."""
    tiles = tuple((n // 70, n % 70) for n in range(150 * 70))
    waves = tuple(Wave(35 * 70, 100, 50, 1000, 9) for _ in range(5))
    order = CtaOrder(35 * 70, "as given", waves, 5, 600, 3000, 400, False, (), tiles, ())
    svg = cta_grid(replace(gemv(), cta_order=order))
    cell, left, top = 380 / 128, 14 + 7 + 3, 64
    numbers = {x[""]: (float(x["x"]), float(x["y"])) for x in elements(svg, "text", classes="ink bold")}
    assert set(numbers) == {"1", "2", "3", "4"}
    for wave, (first, end) in enumerate([(0, 35), (35, 70), (70, 105), (105, 128)], 1):
        expected = left + 35 * cell, top + (first + end) / 2 * cell + 4
        assert numbers[str(wave)] == pytest.approx(expected, abs=0.11)
    assert "drawn: 128 × 70 of 150 × 70 tiles" in svg


def test_a_picture_of_a_launch_takes_a_page_s_width_if_it_is_drawn_that_wide() -> None:
    sections = list(draw_launch(gemv(), find_peaks("H200")))
    assert {"banks", "roofline"} <= {section.id for section in sections}
    for section in sections:
        (width,) = {re.search(r'viewBox="0 0 (\d+)', str(view))[1] for view in section.views}  # type: ignore[index]
        assert section.is_wide is (int(width) >= WIDTH), section.id


# -- tables and JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", range(8))
def test_as_many_facts_as_a_row_does_not_show_are_counted(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [f"sentence {number}" for number in range(count)]
    monkeypatch.setattr(markdown, "describe_change", lambda change: iter(sentences))
    side = saved(MATMUL)
    change: Any = SimpleNamespace(
        right=SimpleNamespace(artifact=side.artifact, target="sm_80"), categories=("waits",), degree=None
    )
    cell = markdown._row(change).split(" | ")[3].removesuffix(" |")
    shown = min(count, markdown.MAX_FACTS)
    more = [f"and {count - shown} more"] if count > shown else []
    assert cell == "<br>".join([*sentences[:shown], *more])


@pytest.mark.parametrize(("texts", "shown"), [([], ""), (["a"], "a"), (["a", "b"], "a +1"), (["a", "b", "c"], "a +2")])
def test_texts_beyond_the_first_are_counted(texts: list[str], shown: str) -> None:
    assert _first_and_count(texts) == shown


def test_tried_options_stand_below_their_finding_without_a_gap() -> None:
    remark = Remark("Loads wait.", None)
    finding = Finding("AI001", "loads", Severity.WARNING, remark)
    trials = [
        RemedyTrial(finding, Switch(SwitchKind.OPTION, "num_stages", stages), None, None, "out of memory")
        for stages in (4, 5)
    ]
    kernel = saved(MATMUL).facts
    lines = [line.rstrip() for line in to_text(RemediesReport([(kernel, trials, ["A note."])]), 100).splitlines()]
    assert lines[0].startswith(kernel.artifact.display_name)
    assert lines[1] == "  AI001  Loads wait."
    assert [line[:22] for line in lines[2:4]] == [f"         num_stages={stages}:" for stages in (4, 5)]
    assert [line for line in lines[4:] if line] == ["  A note."]


def test_numbers_of_a_priced_pair_have_as_many_decimals_as_are_significant() -> None:
    third = 1 / 3
    price = PairPrice(
        third, third, third, "dram", "lsu", "grid 1", "H100", left_microseconds=third, right_microseconds=2 * third
    )
    document = encode(price)
    found = {key: value for key, value in document.items() if isinstance(value, float)}
    assert sorted(map(str, found.values())) == ["0.3", "0.3", "0.333", "0.333", "0.667"]
    assert {key for key, value in found.items() if value == 0.3} == {key for key in found if "cycles" in key}


# -- parts of a kernel for an agent ----------------------------------------------------------------------


@pytest.mark.parametrize("path", [MATMUL, "3.6.0/gfx942/flash_attention"])
def test_each_part_of_a_kernel_has_what_its_document_has(path: str) -> None:
    kernel = saved(path).facts
    document = encode(kernel_document(kernel))
    by_part = {name: list(kernel_items(kernel, [name])) for name in PARTS}
    assert list(kernel_items(kernel, PARTS)) == [item for name in PARTS for item in by_part[name]]
    assert {item["part"] for items in by_part.values() for item in items} <= set(PARTS)
    regions = [(stage, region) for stage, found in document["stages"].items() for region in found["regions"]]
    assert regions
    assert [(item["stage"], item["id"]) for item in by_part["regions"]] == [(stage, x["id"]) for stage, x in regions]
    assert [item["stage"] for item in by_part["stages"]] == list(document["stages"])
    one = regions[-1][1]["id"]
    assert [item["id"] for item in kernel_items(kernel, ["regions"], one)] == [
        region["id"] for _, region in regions if region["id"] == one
    ]
    for name in ("loads", "shared_allocations", "remarks"):
        assert len(by_part[name]) == len(document[name] or ())
