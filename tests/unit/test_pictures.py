"""Pictures: well-formed, told apart without colour, readable in both modes, and inert whatever a cache holds."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from saved import saved, saved_kernels

from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.lane import Event, Lane
from artifact_inspector.facts.scene import Scene, find_scene
from artifact_inspector.facts.timetable import find_timetable
from artifact_inspector.model import COMPUTES, EventKind, Stage
from artifact_inspector.pictures._block_row import lay_out
from artifact_inspector.pictures._canvas import DARK, FAMILIES, FAMILY_OF, INK, LIGHT, NUMBERED_FILLS, STYLE, Canvas
from artifact_inspector.pictures.pair_timelines import pair_timelines
from artifact_inspector.pictures.resources import occupancy_bars, shared_map
from artifact_inspector.pictures.timeline import draw_scene, timeline
from artifact_inspector.pictures.timetable import timetable

MATMUL = "3.6.0/sm_80/matmul_grouped"
KERNELS = (
    MATMUL,
    "3.6.0/sm_80/flash_attention",
    "3.6.0/gfx942/flash_attention",
    "3.6.0/sm_90/tma_warp_specialized",
    "3.6.0/sm_80/no_line_info",
    "2.1.0/sm_80/matmul_grouped",
)
SVG = "{http://www.w3.org/2000/svg}"


def contrast(first: str, second: str) -> float:
    """The contrast of two colours, 1 to 21.

    Source: WCAG 2.2, definitions of relative luminance and contrast ratio.
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def facts(path: str) -> KernelFacts:
    return saved(path).facts


def texts(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [node.text or "" for node in ElementTree.fromstring(svg).iter(f"{SVG}title")]


# -- colours ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_words_and_lines_stand_out_from_the_page(colours: dict[str, str]) -> None:
    for name in ("text", "faint", "accent", "alarm"):
        assert contrast(colours[name], colours["paper"]) >= 4.5, name
    assert contrast(colours["line"], colours["paper"]) >= 3


@pytest.mark.parametrize("family", FAMILIES)
def test_words_stand_out_from_every_fill(family: str) -> None:
    assert contrast(INK, FAMILIES[family]) >= 4.5
    # a fill may be faint on the page: its edge, in the colour of words, is what bounds it
    assert f".ai-pic .{family}{{fill:{FAMILIES[family]}}}" in STYLE


def test_contrast_is_that_of_the_guidelines() -> None:
    # WebAIM's checker, for the grey that is just enough on white
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_every_kind_with_a_letter_has_a_fill_and_no_two_kinds_a_letter() -> None:
    shown = [kind for kind in EventKind if kind.letter and kind is not EventKind.UNKNOWN]
    assert set(FAMILY_OF) == set(shown)
    assert set(FAMILY_OF.values()) | set(NUMBERED_FILLS) <= set(FAMILIES)
    assert len({kind.letter for kind in shown}) == len(shown)


# -- the timeline ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", KERNELS)
def test_a_timeline_is_well_formed_and_names_every_stage(path: str) -> None:
    svg = timeline(facts(path))
    assert {stage.value for stage in facts(path).stages} <= set(texts(svg))
    assert not re.search(r"<script|href|url\(|@import", svg)
    assert svg == timeline(facts(path))


def test_each_event_bears_its_letter_and_tells_its_instruction_and_source() -> None:
    svg = timeline(facts(MATMUL), "loop@81", (Stage.PTX,))
    assert {"W", "B", "s8", "M16", "A4", "K", "A"} <= set(texts(svg))
    (matrix,) = (title for title in titles(svg) if title.startswith("16 × matrix op"))
    assert "mma.sync" in matrix
    assert "matmul_grouped.py:85" in matrix


def test_a_load_is_drawn_to_the_wait_that_completes_it() -> None:
    svg = timeline(facts(MATMUL), "loop@81", (Stage.PTX,))
    (own,) = (title for title in titles(svg) if "3 iterations later" in title)
    assert own.startswith("5 loads issued")
    assert "80 bytes per thread" in own
    assert "cp.async.wait_group" in own


def test_what_is_not_known_is_said() -> None:
    svg = timeline(facts("3.6.0/sm_90/tma_warp_specialized"))
    assert "in flight: unknown" in texts(svg)
    assert any("loads in flight unknown" in text for text in texts(svg))


def test_each_partition_has_a_strip_of_its_own() -> None:
    shown = texts(timeline(facts("3.6.0/sm_90/tma_warp_specialized"), stages=(Stage.TTGIR,)))
    assert [name for name in shown if name in ("default", "partition0", "partition1")] == [
        "default",
        "partition0",
        "partition1",
    ]


def test_of_many_functions_the_first_are_drawn_and_the_others_counted() -> None:
    scene = find_scene(facts(MATMUL), None, (Stage.PTX,))
    shown = texts(draw_scene(replace(scene, lanes=scene.lanes * 100)))
    assert shown.count("ptx") == 32
    assert "ptx: the first 32 of 100 functions and partitions are drawn" in shown


def test_no_two_blocks_of_a_row_overlap_and_none_leaves_it() -> None:
    for path in KERNELS:
        for lane in find_scene(facts(path)).lanes:
            row = lay_out(lane.events, 100, 400, 0, lane.instructions)
            ends = [(block.x, block.x + block.width) for block in row.blocks]
            assert all(one[1] <= other[0] + 1e-6 for one, other in pairwise(ends))
            assert not ends or (ends[0][0] >= 100 and ends[-1][1] <= 500 + 1e-6)


def test_a_kernel_of_many_instructions_is_summarised_and_says_so() -> None:
    lane = find_scene(facts(MATMUL), None, (Stage.PTX,)).lanes[0]
    many = tuple(_moved(event, 400 * copy) for copy in range(1_200) for event in lane.events)
    long = replace(lane, events=many, instructions=480_000, spans=(lane.spans[0]._replace(stop=480_000),))
    scene = replace(find_scene(facts(MATMUL), None, (Stage.PTX,)), lanes=(long,))
    svg = draw_scene(scene)
    assert len(svg) < 200_000
    assert any("runs merged" in text for text in texts(svg)) or "×1200" in texts(svg)


def _moved(event: Event, by: int) -> Event:
    step = event.step
    return replace(event, step=step._replace(start=step.start + by, stop=step.stop + by, repetitions=1 + by % 7))


@pytest.mark.parametrize(
    "hostile",
    ["</title><script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\u202egnp.exe", "a\x00\x1b[2J", "]]>&lt;"],
)
def test_what_a_cache_says_is_text(hostile: str) -> None:
    scene = find_scene(facts(MATMUL), None, (Stage.PTX,))
    lane = _hostile(scene.lanes[0], hostile)
    svg = draw_scene(replace(scene, kernel=hostile, target=hostile, lanes=(lane,)))
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "<img" not in svg
    assert "\u202e" not in svg


def _hostile(lane: Lane, text: str) -> Lane:
    events = tuple(replace(event, first=replace(event.first, text=text, opcode=text)) for event in lane.events)
    return replace(lane, function=text, file=text, events=events)


def test_a_long_text_is_cut() -> None:
    canvas = Canvas()
    canvas.text(0, 10, "x" * 100_000)
    assert len(canvas.render(10, 10, "y" * 100_000, "z" * 100_000)) < 5_000


def test_a_region_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"no region 'loop@1'.* It has straight, loop@81"):
        find_scene(facts(MATMUL), "loop@1")


# -- the others ------------------------------------------------------------------------------------------


def test_the_timetable_of_a_matmul_of_four_stages() -> None:
    # num_stages 4: three iterations in front of the loop, three buffers, `wait_group 4` of 2 groups each
    # leaves two, so what a trip copies is complete three trips later.
    found = find_timetable(facts(MATMUL))
    assert (found.distance, found.lag, found.buffers) == (3, 3, 3)
    assert found.order == (EventKind.WAIT, EventKind.MATRIX, EventKind.ASYNC_COPY)
    told = titles(timetable(facts(MATMUL)))
    assert "iteration 3: loaded in buffer 0" in told
    assert "buffer 1 holds iteration 4" in told


def drawn_spans(svg: str, what: str) -> dict[int, tuple[float, float]]:
    """Iteration → left and right edge of its box of one sort."""
    spans = {}
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title, box = group.find(f"{SVG}title"), group.find(f"{SVG}rect")
        matched = re.match(rf"iteration (\d+): {what}", (title.text or "") if title is not None else "")
        if matched and box is not None:
            left = float(box.get("x", "nan"))
            spans[int(matched[1])] = left, left + float(box.get("width", "nan"))
    return spans


def check_drawn_overlap(kernel: KernelFacts) -> bool:
    """Compare the iterations drawn in flight at a trip's first compute with those of the events; False if not drawn."""
    try:
        table, svg = find_timetable(kernel), timetable(kernel)
    except UsageError:
        return False
    lane = find_scene(kernel, table.region, (table.stage,)).lanes[0]
    compute = next(kind for kind in table.order if kind in COMPUTES)
    kinds = {compute} if compute is EventKind.MATRIX else COMPUTES
    steps = [event.step for event in lane.events]
    at = next(step.start for step in steps if step.region == table.region and step.kind in kinds)
    in_flight = [
        flight.back_edges + 1 - (flight.end <= at) - (flight.start > at)
        for flight in (span.flight for span in lane.load_spans)
        if flight.end is not None and not flight.is_after_loop and steps[flight.step].region == table.region
    ]
    middle = sum(drawn_spans(svg, "computed")[1]) / 2
    drawn = sum(left < middle < right for left, right in drawn_spans(svg, "in flight").values())
    assert drawn == max(in_flight)
    return True


@pytest.mark.parametrize("path", [MATMUL, "3.6.0/sm_100/dot_scaled"])
def test_a_timetable_draws_the_overlap_of_its_events(path: str) -> None:
    assert check_drawn_overlap(facts(path))


@pytest.mark.exhaustive
def test_every_timetable_draws_the_overlap_of_its_events() -> None:
    assert sum(check_drawn_overlap(kernel.facts) for kernel in saved_kernels()) > 40


def test_a_loop_that_is_not_pipelined_has_no_timetable_and_the_reason_is_told() -> None:
    with pytest.raises(UsageError, match="num_stages 1 requests no pipelining"):
        timetable(facts("3.6.0/sm_80/matmul_square"))


def test_the_shared_map_names_every_allocation_with_its_place() -> None:
    told = titles(shared_map(facts(MATMUL)))
    assert len(told) == 3
    assert "24,576 B, 3 buffers at 0" in told[0]
    assert "6,144 B, 3 buffers at 24,576" in told[1]


def test_the_binding_resource_is_marked_in_words() -> None:
    svg = occupancy_bars(facts("3.6.0/sm_80/gemv_splitk"))
    assert "7 ← limit" in texts(svg)
    assert any("28 of 64 warps" in text for text in texts(svg))


def test_two_kernels_are_marked_where_they_part_and_aligned_by_round() -> None:
    pair = compare_kernels(facts("3.2.0/sm_75/gemv_splitk"), facts("3.2.0/gfx90a/gemv_splitk"))
    svg = pair_timelines(pair, ("sm_75", "gfx90a"))
    assert any(text.startswith("▼ ttgir: first divergence") for text in texts(svg))
    places = re.findall(r"<g data-side=\"(\w+)\">|data-go=\"(\w+:\d+)\"", svg)
    assert places[0] == ("sm_75", "")  # a side stands in front of every place
    assert {side for side, _ in places if side} == {"sm_75", "gfx90a"}
    rounds = re.findall(r"float op, round 2.*?\n.*?\n.*?<rect x=\"([\d.]+)\"", svg)
    assert len(rounds) >= 2
    assert rounds[0] == rounds[1]  # of ttir, one below the other


def test_the_same_kernel_twice_does_not_part() -> None:
    pair = compare_kernels(facts(MATMUL), facts(MATMUL))
    assert not any("part" in text for text in texts(pair_timelines(pair)))


def test_a_page_may_have_the_rules_once() -> None:
    assert "<style>" not in timeline(facts(MATMUL), style=False)
    assert isinstance(find_scene(facts(MATMUL)), Scene)
