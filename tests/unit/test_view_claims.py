"""What views claim is recomputed from events and counters: which lines are the worst, how tall and long things are drawn,
and which paths a server may open."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from itertools import pairwise
from math import log10
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launched import gemv
from saved import ROOT, saved, saved_kernels
from svg_elements import boxes_by_title, elements

from artifact_inspector.cli._pictures import draw_launches
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.cta_order import AlternativeOrder, CtaOrder, Wave
from artifact_inspector.execution.interpreter.banks import count_warp_wavefronts
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch_requests import parse_document, resolve_launch
from artifact_inspector.execution.prediction import LinePrediction, Prediction, predict_counters
from artifact_inspector.execution.roofline import Roofline
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.launch_time import LaunchTime
from artifact_inspector.execution.timing.residency import Residency
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.files.cache import open_cache
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.model import Stage
from artifact_inspector.pictures._canvas import width_of
from artifact_inspector.pictures.bank_conflicts import bank_conflicts, find_access
from artifact_inspector.pictures.cta_grid import cta_grid
from artifact_inspector.pictures.partitions import partitions
from artifact_inspector.pictures.residency import residency
from artifact_inspector.pictures.resources import occupancy_bars, shared_map
from artifact_inspector.pictures.roofline import roofline
from artifact_inspector.pictures.timeline import draw_scene, timeline
from artifact_inspector.pictures.timetable import timetable
from artifact_inspector.report.console import to_text
from artifact_inspector.report.html.launch import line_counters
from artifact_inspector.report.prediction import MAX_LINES, PredictionReport
from artifact_inspector.report.timeline import TimelineReport
from artifact_inspector.serving.roots import AllowedDirectories

MATMUL = "3.6.0/sm_80/matmul_grouped"
LANE = r"lane .*: banks? (\d+)"


# -- the worst lines of a launch -------------------------------------------------------------------------


def a_line(number: int, **counters: int | None) -> LinePrediction:
    none: dict[str, Any] = dict.fromkeys(("sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal"), 0)
    return LinePrediction("source", number, f"k.py:{number}", "", 7, cache_lines=None, **{**none, **counters})


def printed_lines(lines: tuple[LinePrediction, ...]) -> list[list[str]]:
    """The rows of the table: location and counters."""
    text = to_text(PredictionReport([replace(gemv(), by_source=lines)]), 200)
    return [row.split() for row in text.splitlines() if re.match(r" +\S+\.py:\d+ ", row)]


@pytest.mark.parametrize(
    "wasteful",
    [
        {"wavefronts": 3, "wavefronts_ideal": 2},
        {"sectors": 3, "sectors_ideal": 2},
        {"sectors": 1000, "sectors_ideal": 999, "wavefronts": 5, "wavefronts_ideal": 5},
    ],
)
def test_a_line_with_any_waste_goes_before_all_lines_without(wasteful: dict[str, int]) -> None:
    ideal = [a_line(n, sectors=900 + n, sectors_ideal=900 + n) for n in range(1, MAX_LINES + 2)]
    rows = printed_lines((*ideal, a_line(99, **wasteful)))
    # of the others those with most traffic, the costliest first
    assert [row[0] for row in rows] == [f"k.py:{n}" for n in (99, *range(MAX_LINES + 1, 2, -1))]


counts = st.integers(0, 6)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(counts, counts, counts, counts), min_size=1, max_size=30))
def test_the_lines_of_a_launch_are_those_with_most_excess_sectors_and_bank_conflicts(
    drawn: list[tuple[int, int, int, int]],
) -> None:
    lines = [
        a_line(n, sectors=a + b, sectors_ideal=a, wavefronts=c + d, wavefronts_ideal=c)
        for n, (a, b, c, d) in enumerate(drawn, 1)
    ]
    touching = [(b + d, a + b + c + d, n) for n, (a, b, c, d) in enumerate(drawn, 1) if a + b + c + d]
    rows = printed_lines(tuple(lines))
    shown = [int(row[0].partition(":")[2]) for row in rows]
    assert len(shown) == len(rows) == min(MAX_LINES, len(touching))
    cost = {n: (waste, touched) for waste, touched, n in touching}
    assert set(shown) <= set(cost)
    left = [cost[n] for n in cost if n not in shown]
    assert not left or max(left) <= min(cost[n] for n in shown)
    assert [cost[n] for n in shown] == sorted((cost[n] for n in shown), reverse=True)


def test_a_prediction_starts_with_problems_and_lines_and_ends_with_counters() -> None:
    text = to_text(PredictionReport([gemv()]), 200)
    positions = [text.index(mark) for mark in ("AI016 bank-conflicts", " executed ", "instructions ")]
    assert positions == sorted(positions)
    assert "0 divergent" not in text


def test_instructions_of_the_tensor_pipe_are_no_matrix_products_where_the_kernel_has_no_dot() -> None:
    prediction = replace(gemv(), counters=replace(gemv().counters, tensor_instructions=4))
    assert not prediction.has_matrix_products
    assert "4 HFMA2.MMA in the tensor pipe, no matrix product" in to_text(PredictionReport([prediction]), 200)
    assert "(4 tensor)" in to_text(PredictionReport([replace(prediction, has_matrix_products=True)]), 200)


def test_each_row_prints_the_counters_of_its_line() -> None:
    rows = printed_lines((a_line(4, sectors=4096, sectors_ideal=1024, wavefronts=64, wavefronts_ideal=2),))
    assert rows == [["k.py:4", "7", "4,096", "1,024", "64", "2"]]
    lines = tuple(replace(x, stage="source", source=f"k.py:{x.line}") for x in gemv().by_line)
    worst = max(lines, key=lambda x: (x.wavefronts or 0) - (x.wavefronts_ideal or 0))
    (row,) = [row for row in printed_lines(lines) if row[0] == worst.source]
    assert [int(number.replace(",", "")) for number in row[1:]] == [
        n for n in (worst.executed, worst.sectors, worst.sectors_ideal, worst.wavefronts, worst.wavefronts_ideal) if n
    ]


def test_the_margins_of_a_page_are_the_counters_of_each_line() -> None:
    launch = replace(gemv(), by_source=(a_line(4, sectors=9, sectors_ideal=2), a_line(5, wavefronts=9)))
    margins = line_counters(launch)
    expected: dict[tuple[str, str, int], float] = {}
    for line in (*launch.by_line, *launch.by_source):
        pane = (line.source or "").rpartition(":")[0] if line.stage == "source" else line.stage
        conflicts, excess = (None if None in pair else pair[0] - pair[1] for pair in (
            (line.wavefronts, line.wavefronts_ideal), (line.sectors, line.sectors_ideal),
        ))  # fmt: skip
        named = {"executed": line.executed, "sectors": line.sectors, "excess sectors": excess}
        for title, number in {**named, "bank conflicts": conflicts}.items():
            if number:
                expected[pane, title, line.line] = number
    found = {
        (pane, title, line): n for pane, heat in margins.items() for title, x in heat.items() for line, n in x.items()
    }
    assert found == expected
    assert {title for _, title, _ in found} == {"executed", "sectors", "excess sectors", "bank conflicts"}


# -- drawn heights and lengths ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("intensity", "peak", "bandwidth"),
    [(0.3, 989.4e12, 4.8e12), (206.0, 989.4e12, 4.8e12), (5000.0, 989.4e12, 1e12), (12.0, 65e12, 0.32e12)],
)
def test_a_launch_lies_on_the_roof_at_its_intensity(intensity: float, peak: float, bandwidth: float) -> None:
    svg = roofline([("k", Roofline("GPU", "fp16", intensity, peak, bandwidth))])
    scale = {"P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6}
    labels = [x for x in elements(svg, "text", classes="small faint") if re.fullmatch(r"[\d.e+-]+( [PTGM])?", x[""])]
    across = {float(x[""]): float(x["x"]) for x in labels if x["text-anchor"] == "middle"}
    up = {
        float(x[""].split()[0]) * scale[x[""].split()[1]]: float(x["y"]) - 3
        for x in labels if x["text-anchor"] == "end"
    }  # fmt: skip

    def place(value: float, axis: dict[float, float]) -> float:
        low, high = min(axis), max(axis)
        return axis[low] + (axis[high] - axis[low]) * (log10(value) - log10(low)) / (log10(high) - log10(low))

    (point,) = [x for x in elements(svg, "rect", classes="box edge") if float(x["width"]) == float(x["height"]) == 16]
    rate = min(peak, intensity * bandwidth)
    assert float(point["x"]) + 8 == pytest.approx(place(intensity, across), abs=0.3)
    assert float(point["y"]) + 8 == pytest.approx(place(rate, up), abs=0.3)
    (roof,) = elements(svg, "path", classes="thick edge")
    start_y, ridge_x, flat_y = (float(n) for n in re.fullmatch(r"M84 (\S+)L(\S+) (\S+)H\S+", roof["d"]).groups())  # type: ignore[union-attr]
    assert ridge_x == pytest.approx(place(peak / bandwidth, across), abs=0.3)
    assert flat_y == pytest.approx(place(peak, up), abs=0.3)
    assert start_y == pytest.approx(place(min(across) * bandwidth, up), abs=0.3)
    bound = "memory" if intensity * bandwidth < peak else "compute"
    assert any(x[""].endswith(f"{bound}-bound") for x in elements(svg, "text"))


@pytest.mark.parametrize("path", [MATMUL, "3.6.0/sm_80/flash_attention", "3.6.0/gfx942/softmax"])
def test_the_amount_in_flight_is_as_tall_as_the_loads_that_are_pending(path: str) -> None:
    scene = find_scene(saved(path).facts, None)
    drawn = re.findall(r'<path d="M\S+ (\S+?)H([^"]*)Z" class="area line edge box"', draw_scene(scene))
    lanes = [lane for lane in scene.lanes if any(level.loads for level in lane.levels)]
    assert len(drawn) == len(lanes) > 0
    for (base, steps), lane in zip(drawn, lanes, strict=True):
        # recount: a load is pending from its issue to its end, in every iteration that it crosses
        in_bytes = all(level.bytes is not None for level in lane.levels)
        amounts = [float(level.bytes if in_bytes else level.loads) for level in lane.levels]  # type: ignore[arg-type]
        heights = {round(float(base) - float(y), 1) for y in re.findall(r"V([\d.]+)", steps)}
        expected = {round(28 * amount / max(amounts), 1) for amount in amounts} | {0.0}
        assert max(heights) == 28
        assert all(min(abs(height - other) for other in expected) <= 0.11 for height in heights)


def test_the_amount_in_a_terminal_has_eighths_of_the_peak() -> None:
    scene = find_scene(saved(MATMUL).facts, None, (Stage.PTX,))
    (lane,) = scene.lanes
    levels = [level.bytes or 0.0 for level in lane.levels]
    text = to_text(TimelineReport(scene), 120)
    (row,) = [line for line in text.splitlines() if re.match(r"^[ ▁▂▃▄▅▆▇█]+  ≤ ", line)]
    eighths = {" ▁▂▃▄▅▆▇█".index(c) for c in row.partition("  ≤")[0].rstrip()}
    assert max(eighths) == 8
    assert eighths - {0} <= {-int(-8 * level // max(levels)) for level in levels}
    assert f"≤ {max(levels):g} B/thread in flight" in text


@pytest.mark.parametrize("path", [MATMUL, "3.6.0/gfx942/softmax", "3.6.0/sm_75/matmul_square"])
def test_a_bar_of_occupancy_is_as_long_as_the_blocks_that_its_resource_allows(path: str) -> None:
    occupancy = saved(path).facts.occupancy
    assert occupancy is not None
    bars = boxes_by_title(occupancy_bars(saved(path).facts, width=640))
    most = max(occupancy.blocks_by_resource.values())
    for resource, blocks in occupancy.blocks_by_resource.items():
        title = f"{resource}: {blocks} blocks" + (", the limit" if blocks == occupancy.blocks else "")
        assert bars[title]["width"] == pytest.approx(max(2, 360 * blocks / most), abs=0.06)


@pytest.mark.parametrize("path", [MATMUL, "3.6.0/sm_90/flash_attention"])
def test_an_allocation_is_drawn_at_its_offset_as_tall_as_its_bytes(path: str) -> None:
    bill = saved(path).facts.bill
    assert bill is not None
    assert bill.peak
    boxes = boxes_by_title(shared_map(saved(path).facts, width=960))
    first, last = min(x.first for x in bill.entries), max(x.last for x in bill.entries) + 1
    for number, entry in enumerate(bill.entries, 1):
        (box,) = [box for title, box in boxes.items() if title.startswith(f"{number}. ")]
        assert entry.offset is not None
        assert entry.bytes is not None
        tall = max(4, 260 * entry.bytes / bill.peak)
        assert box["height"] == pytest.approx(tall, abs=0.06)
        assert box["y"] == pytest.approx(min(52 + 260 * entry.offset / bill.peak, 52 + 260 - tall), abs=0.06)
        scale = (960 - 14 - 70) / (last - first)
        assert box["x"] == pytest.approx(70 + (entry.first - first) * scale, abs=0.06)
        assert box["width"] == pytest.approx(max(6, (entry.last + 1 - entry.first) * scale), abs=0.06)


def test_a_tile_bears_the_wave_of_its_cta_and_a_bar_the_bytes_of_its_wave() -> None:
    tiles = tuple((n % 3, n // 3) for n in range(12))  # column-major
    waves = tuple(Wave(5, 100 * (n + 1), n, 1000, 9) for n in range(3))
    others = (AlternativeOrder("row-major", 450, None),)
    order = CtaOrder(5, "as given", waves, 3, 600, 3000, 400, False, others, tiles, ())
    svg = cta_grid(replace(gemv(), cta_order=order))
    numbers = [x for x in elements(svg, "text", classes="ink small") if x.get("text-anchor") == "middle"]
    rows = sorted({float(x["y"]) for x in numbers})
    columns = sorted({float(x["x"]) for x in numbers})
    drawn = {(rows.index(float(x["y"])), columns.index(float(x["x"]))): int(x[""]) for x in numbers}
    assert drawn == {tile: at // 5 + 1 for at, tile in enumerate(tiles)}
    bars = [x for x in elements(svg, "rect", classes="box edge") if float(x["height"]) == 15]
    full = 960 - 14 - (14 + 380 + 40)
    widths = [float(x["width"]) / full for x in bars]
    requested_and_distinct = [share for wave in waves for share in (1, wave.distinct_bytes_read / 1000)]
    assert widths == pytest.approx([*requested_and_distinct, 1, 450 / 600], abs=0.001)


def test_the_bars_of_banks_are_as_tall_as_the_wavefronts_that_serve_them() -> None:
    for access in gemv().shared_accesses[:4]:
        warp = access.warp_access
        # each distinct word of a bank takes a wavefront of its own; lanes of equal words share it
        words = {(a + at) // 4 for a in warp.addresses if a is not None for at in range(0, max(4, warp.size), 4)}
        svg = bank_conflicts(gemv(), access)
        bars = {title: box["height"] for title, box in boxes_by_title(svg).items() if title.startswith("bank ")}
        per_bank = Counter(word % 32 for word in words)
        if warp.size <= 4 and not warp.operands:
            counts = {int(title.split()[1].rstrip(":")): int(title.split()[2]) for title in bars}
            assert counts == per_bank
        tallest = max(int(title.split()[2]) for title in bars)
        for title, height in bars.items():
            assert height == pytest.approx(46 * int(title.split()[2]) / tallest, abs=0.06)


def test_the_lines_between_banks_pass_every_lane() -> None:
    for access in gemv().shared_accesses[:3]:
        svg = bank_conflicts(gemv(), access)
        ends = re.findall(r'<path d="M(\S+) (\S+)L(\S+) (\S+)" class="line rule dotted"', svg)
        columns = sorted(float(x) for x, *_ in ends)
        assert {round(right - left) for left, right in pairwise(columns)} == {round((columns[-1] - columns[0]) / 32)}
        ((top, bottom),) = {(float(top), float(bottom)) for _, top, _, bottom in ends}
        boxes = [box for title, box in boxes_by_title(svg).items() if title.startswith("lane ")]
        assert len(boxes) == sum(address is not None for address in access.warp_access.addresses)
        assert all(top <= box["y"] < box["y"] + box["height"] <= bottom for box in boxes)
        first_banks = [
            (int(m[1]), box["x"]) for title, box in boxes_by_title(svg).items() if (m := re.match(LANE, title))
        ]
        assert all(float(ends[bank][0]) <= x <= float(ends[bank + 1][0]) for bank, x in first_banks)
        height = (bottom - top) / len(access.warp_access.addresses)
        assert all((box["y"] - top) % height <= 1.01 for box in boxes)


@pytest.mark.parametrize("width", [300, 420, 560, 700])
def test_no_line_of_text_of_a_picture_of_banks_leaves_it(width: int) -> None:
    svg = bank_conflicts(gemv(), gemv().shared_accesses[0], width=width)
    lines = [x for x in elements(svg, "text") if float(x["x"]) == 14 and float(x["y"]) < 60]
    assert len(lines) == 3
    for line, size in zip(lines, (13, 11, 9), strict=True):
        assert 14 + width_of(line[""], size) <= width, line


@pytest.mark.parametrize(
    "draw", [timetable, timeline, partitions, occupancy_bars, shared_map, residency, roofline, cta_grid, bank_conflicts]
)
def test_a_picture_has_its_style_unless_a_page_gives_one(draw: Callable[..., str]) -> None:
    assert signature(draw).parameters["style"].default is True
    if draw in (timetable, timeline, occupancy_bars, shared_map):
        kernel = saved(MATMUL).facts
        assert ("<style" in draw(kernel), "<style" in draw(kernel, style=False)) == (True, False)


def test_a_unit_is_drawn_as_busy_as_the_model_says() -> None:
    shares = (0.0, 0.25, 1.0, 0.5)
    svg = residency(Residency("k", "H200", 1, 1, 100.0, (), {"lsu": shares, "alu": (0.01,) * 4}, None, 1, 1))
    ((base, steps),) = re.findall(r'<path d="M\S+ (\S+?)V([^"]*)Z" class="area"', svg)
    heights = [float(base) - float(step.partition("H")[0]) for step in steps.split("V")]
    assert heights == pytest.approx([16 * share for share in (*shares, 0)], abs=0.06)
    assert any(x[""] == "44% busy" for x in elements(svg, "text"))


# -- which paths a server may open -----------------------------------------------------------------------

NAMES = ("in", "in-too", "out", "..", ".", "to-out", "to-in", "to-root", "file")
"""Directories, one whose name begins like that of the root, links, and a file."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    for name in ("in", "in/in", "in-too", "out", "out/in"):
        (place / name).mkdir()
        (place / name / "file").write_text("")
    (place / "in" / "to-out").symlink_to(place / "out")
    (place / "out" / "to-in").symlink_to(place / "in")
    (place / "in" / "to-root").symlink_to("/")
    (place / "in" / "to-in").symlink_to("in")
    return place


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(NAMES), max_size=5), st.booleans(), st.booleans())
def test_a_path_is_allowed_where_its_real_path_is_below_a_root(
    place: Path, names: list[str], is_absolute: bool, has_two_roots: bool
) -> None:
    roots = [place / "in", *([place / "out" / "in"] if has_two_roots else [])]
    path = str(Path(place if is_absolute else "", *names))
    real = os.path.realpath(place / "in" / path)
    expected = any(real == os.path.realpath(root) or real.startswith(f"{os.path.realpath(root)}/") for root in roots)
    allowed = AllowedDirectories(roots)
    if expected:
        assert str(allowed.resolve(path)) == real
        if os.path.exists(place / "in" / path):  # noqa: PTH110 - as the other oracle, not by pathlib
            assert allowed.resolve_name(f"{path}:k") == f"{real}:k"
    else:
        with pytest.raises(UsageError, match="outside of the directories"):
            allowed.resolve(path)
        if "/" in path:
            with pytest.raises(UsageError, match="outside of the directories"):
                allowed.resolve_name(path)


def test_a_program_that_does_not_exist_yet_is_below_the_first_root(tmp_path: Path) -> None:
    assert AllowedDirectories([tmp_path]).resolve_name("new.py:kernel") == f"{tmp_path.resolve()}/new.py:kernel"


def test_an_entry_with_any_file_outside_of_the_roots_is_left_out(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for directory in (root / "own", root / "linked", outside):
        directory.mkdir(parents=True)
    for name in ("k.ttir", "k.ptx"):
        (root / "own" / name).write_text("//")
        (outside / name).write_text("//")
    (root / "linked" / "k.ttir").write_text("//")
    (root / "linked" / "k.ptx").symlink_to(outside / "k.ptx")
    cache = AllowedDirectories([root]).open_cache(str(root))
    assert [entry.directory for entry in cache.entries] == ["own"]
    assert [problem.path for problem in cache.problems if "outside" in problem.problem] == ["linked"]


# -- the audit: all saved kernels and measured launches ---------------------------------------------------


def has_occupancy(path: str) -> bool:
    occupancy = saved(path).facts.occupancy
    return occupancy is not None and bool(occupancy.blocks_by_resource) and bool(occupancy.blocks)


def has_placed_allocations(path: str) -> bool:
    bill = saved(path).facts.bill
    return bill is not None and bool(bill.peak) and all(x.offset is not None and x.bytes for x in bill.entries)


def has_levels(path: str) -> bool:
    """Whether each lane with loads is drawn in one strip."""
    scene = find_scene(saved(path).facts, None)
    lanes = sum(any(level.loads for level in lane.levels) for lane in scene.lanes)
    return lanes == draw_scene(scene).count("area line edge box") > 0


AUDITS = [
    (has_occupancy, test_a_bar_of_occupancy_is_as_long_as_the_blocks_that_its_resource_allows),
    (has_placed_allocations, test_an_allocation_is_drawn_at_its_offset_as_tall_as_its_bytes),
    (has_levels, test_the_amount_in_flight_is_as_tall_as_the_loads_that_are_pending),
]


@pytest.mark.exhaustive
@pytest.mark.parametrize(("applies", "check"), AUDITS, ids=["occupancy", "shared", "timeline"])
def test_no_picture_of_a_saved_kernel_contradicts_its_facts(
    applies: Callable[[str], bool], check: Callable[[str], None]
) -> None:
    drawn, wrong = 0, []
    for kernel in saved_kernels():
        if applies(kernel.path):
            drawn += 1
            try:
                check(kernel.path)
            except AssertionError as error:
                wrong.append(f"{kernel.path}: {str(error)[:200]}")
    assert wrong == []
    assert drawn > 60


def predictions() -> Iterator[Prediction]:
    """The launches whose counters were measured."""
    for place in sorted((ROOT / "tests" / "oracle" / "counters").iterdir()):
        entries = [x for x in open_cache(place).entries if "sass" in x.files] if place.is_dir() else []
        for entry in entries[:1]:
            loaded = load_kernel(entry, None)
            (request,) = parse_document((place / "launch.json").read_text(), "launch.json")
            launch = resolve_launch(request, [parameter.argument for parameter in loaded.parameters])
            yield predict_counters(simulate_launch(loaded, launch))


def check_worst_access(prediction: Prediction) -> None:
    """The drawn access loses the most wavefronts of all that can be drawn, and its picture says how many."""
    conflicts = {
        (line.stage, line.line): line.wavefronts - line.wavefronts_ideal
        for line in prediction.by_line
        if line.wavefronts is not None and line.wavefronts_ideal is not None and not line.is_copy
    }
    drawable = {(x.line.stage, x.line.line) for x in prediction.shared_accesses}
    try:
        access = find_access(prediction)
    except UsageError:
        assert not any(conflicts.get(at) for at in drawable)
        return
    worst = conflicts[access.line.stage, access.line.line]
    assert worst == max(conflicts.get(at, 0) for at in drawable) > 0
    wavefronts, ideal = count_warp_wavefronts(access.warp_access)
    svg = bank_conflicts(prediction, access)
    assert f"{wavefronts} wavefront" in svg
    assert f"{ideal} without conflicts" in svg
    served = {int(number) for number in re.findall(r'class="ink small"[^>]*>(\d+)<', svg)}
    assert served == set(range(1, max(served) + 1))


def test_a_roofline_needs_no_gpu_where_the_time_has_one() -> None:
    time = LaunchTime(1.0, 1.0, 1.0, "NVIDIA H200", "latency", {}, 1, 1.0, None, is_validated=True)
    prediction = replace(gemv(), time=time)
    assert draw_launches([prediction], "roofline", None) == draw_launches([prediction], "roofline", find_peaks("H200"))


def test_the_drawn_access_is_the_worst() -> None:
    check_worst_access(gemv())


@pytest.mark.exhaustive
def test_the_drawn_access_of_each_measured_launch_is_the_worst() -> None:
    launches = list(predictions())
    assert len(launches) > 4
    for prediction in launches:
        check_worst_access(prediction)


@pytest.mark.exhaustive
def test_arrows_between_partitions_go_forward_in_time() -> None:
    drawn = 0
    for kernel in saved_kernels():
        try:
            svg = partitions(kernel.facts)
        except UsageError:
            continue
        drawn += 1
        strokes = re.findall(r'<path d="M([\d.]+) [\d.]+L([\d.]+) [\d.]+" class="line go"', svg)
        arrows = strokes[::3]  # two strokes of the tip follow each
        assert arrows, kernel.path
        assert all(float(cause) <= float(wait) for cause, wait in arrows), kernel.path
    assert drawn > 2
