"""The audit of all saved kernels and some launches: what a picture draws is recomputed from events and counters."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from saved import ROOT, saved_kernels
from svg_elements import SVG, boxes_by_title, elements

from artifact_inspector.cli._loading import make_disassembler
from artifact_inspector.comparison.pair import compare_kernels
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.kernel_loader import load_kernel
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.launch_requests import LaunchRequest, parse_document
from artifact_inspector.execution.prediction import predict_counters
from artifact_inspector.execution.simulation import simulate_launch
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.residency import Activity, Residency, find_residency
from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.files.artifact import Artifact
from artifact_inspector.files.cache import open_cache
from artifact_inspector.pictures.cta_grid import MAX_WAVES, cta_grid
from artifact_inspector.pictures.pair_timelines import pair_timelines
from artifact_inspector.pictures.residency import ACTIVITY_STYLES, LEFT, MARGIN, residency
from artifact_inspector.pictures.timeline import draw_scene, make_strips

AREA = re.compile(r'<path d="M\S+ (\S+?)H([^"]*)Z" class="area line edge box"')


def pending(lane: Lane, start: int, stop: int) -> list[float]:
    """The amounts in flight between two instructions: bytes per thread if all sizes are known, else loads."""
    in_bytes = all(level.bytes is not None for level in lane.levels)
    amounts = [float((level.bytes if in_bytes else level.loads) or 0) for level in lane.levels]
    bounds = [*(level.start for level in lane.levels), stop]
    return [
        amount for amount, (first, last) in zip(amounts, pairwise(bounds), strict=True) if first < stop and last > start
    ]


def check_strip(base: str, steps: str, amounts: list[float]) -> None:
    heights = {round(float(base) - float(y), 1) for y in re.findall(r"V([\d.]+)", steps)}
    expected = {28 * amount / max(amounts) for amount in amounts} | {0.0}
    assert max(heights) == 28
    assert all(min(abs(height - other) for other in expected) <= 0.11 for height in heights)
    if len(amounts) < 400:  # none is left out, but those within a pixel
        assert len(heights) >= min(2, len({round(x, 1) for x in expected}))


@pytest.mark.exhaustive
def test_every_strip_of_every_timeline_is_as_tall_as_the_loads_that_are_pending() -> None:
    strips_drawn = several = 0
    for kernel in saved_kernels():
        scene = find_scene(kernel.facts, None)
        strips = [(x, pending(x.lane, x.cuts[0][0], x.cuts[-1][1])) for x in make_strips(scene)]
        with_loads = [amounts for _, amounts in strips if any(amounts)]
        drawn = AREA.findall(draw_scene(scene))
        assert len(drawn) == len(with_loads), kernel.path
        several += len(strips) != len(scene.lanes)
        for (base, steps), amounts in zip(drawn, with_loads, strict=True):
            check_strip(base, steps, amounts)
            strips_drawn += 1
    assert strips_drawn > 300
    assert several > 2  # warp-specialised kernels have more strips than lanes


@pytest.mark.exhaustive
def test_the_timelines_of_two_kernels_part_where_their_stages_do() -> None:
    """Each saved kernel beside the next of its name: another target, or another version."""
    by_name = defaultdict(list)
    for kernel in saved_kernels():
        by_name[kernel.facts.artifact.display_name].append(kernel)
    compared = parted = 0
    for kernels in by_name.values():
        for left, right in pairwise(kernels):
            pair = compare_kernels(left.facts, right.facts)
            try:
                svg = pair_timelines(pair, ("a", "b"))
            except UsageError:
                assert not any(x.left and x.right for x in pair.regions)
                continue
            compared += 1
            both = [x for x in pair.regions if x.left is not None and x.right is not None]
            steps = [next((s.step for s in x.stages if s.compared and not s.agree), None) for x in both]
            expected = next(filter(None, steps), None)
            told = re.findall(r">▼ (\w+): first divergence", svg)
            drawn_steps = set(re.findall(r"data-go=\"(\w+):", svg))
            if told:
                assert told == [expected], (left.path, right.path)
                parted += 1
            else:
                assert expected is None or not drawn_steps, (left.path, right.path)
            region = next(iter([x for x, step in zip(both, steps, strict=True) if step] or both))
            scenes = find_scene(left.facts, region.left), find_scene(right.facts, region.right)
            tallest = []
            for scene in scenes:
                for lane in scene.lanes:
                    span = lane.span_of(scene.region or "")
                    assert span is not None
                    tallest.append(pending(lane, span.start, span.stop))
            for base, area in AREA.findall(svg):  # each is that of a lane of one of the two
                heights = {round(float(base) - float(y), 1) for y in re.findall(r"V([\d.]+)", area)}
                fits = [
                    all(min(abs(h - 28 * a / max(amounts)) for a in [*amounts, 0.0]) <= 0.11 for h in heights)
                    for amounts in tallest if any(amounts)
                ]  # fmt: skip
                assert any(fits), (left.path, right.path)
    assert compared > 60
    assert parted > 10


def launches() -> Iterator[tuple[Artifact, KernelLaunch, LaunchRequest, Disassemble]]:
    """A launch of eight CTAs of each saved kernel with a cubin."""
    for cubin in sorted((ROOT / "fixtures").rglob("*.cubin")):
        (entry,) = open_cache(cubin.parent).entries
        disassemble = make_disassembler((entry,), None, sass=True)
        assert disassemble is not None
        loaded = load_kernel(entry, disassemble)
        arguments = {
            x.argument: {"shape": [4096, 256], "dtype": x.type.lstrip("*")} if x.type.startswith("*") else 256
            for x in loaded.parameters if x.type
        }  # fmt: skip
        (request,) = parse_document(json.dumps({"grid": [4, 2], "args": arguments}), "launch")
        yield entry, match_launch(loaded, request, entry.constants)[1], request, disassemble


@pytest.mark.exhaustive
def test_the_grid_of_each_launch_has_the_waves_and_bytes_of_its_ctas() -> None:
    drawn = 0
    for entry, launch, _, disassemble in launches():
        run = simulate_launch(load_kernel(entry, disassemble), launch, footprints=True)
        for size in (1, 3, 8):
            prediction = predict_counters(run, wave=(size, "as given"))
            order = prediction.cta_order
            if order is None or not order.tiles:
                continue
            drawn += 1
            svg = cta_grid(prediction)
            tiles_of: dict[int, set[tuple[int, int]]] = defaultdict(set)
            for at, tile in enumerate(order.tiles):
                tiles_of[at // size].add(tile)
            painted: Counter[int] = Counter()
            for title in boxes_by_title(svg):
                if found := re.fullmatch(r"wave (\d+): row \d+, columns (\d+) to (\d+)", title):
                    painted[int(found[1])] += int(found[3]) - int(found[2]) + 1
            last = {tile: wave for wave, tiles in tiles_of.items() for tile in tiles}  # a later CTA writes over it
            if max(max(tile) for tile in order.tiles) < 128:
                assert {wave - 1: count for wave, count in painted.items() if wave} == Counter(last.values())
            widths = [float(x["width"]) for x in elements(svg, "rect", classes="box edge") if float(x["height"]) == 15]
            shown = order.waves[:MAX_WAVES]
            full = 960 - 14 - (14 + 380 + 40)
            peak = max(wave.bytes_requested for wave in order.waves) or 1
            figures = [number / peak for x in shown for number in (x.bytes_requested, x.distinct_bytes_read)]
            assert [width / full for width in widths[: len(figures)]] == pytest.approx(figures, abs=0.001)
            assert all(wave.distinct_bytes_read <= wave.bytes_requested for wave in order.waves)
            assert sum(wave.ctas for wave in order.waves) <= len(order.tiles)
    assert drawn > 5


def check_residency(model: Residency) -> None:
    """Bars, titles and shares of a picture are those of the warps' time spans."""
    svg = residency(model)
    scale = (960 - LEFT - MARGIN) / model.cycles
    family_of = {family: activity for activity, (_, family) in ACTIVITY_STYLES.items()}
    lanes = {(lane.cta, lane.warp): lane for lane in model.timelines}
    seen = 0
    for group in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        title = group.find(f"{SVG}title")
        found = re.match(r"CTA (\d+), warp (\d+), of ([\d,]+) cycles: (.*)", "" if title is None else title.text or "")
        if not found:
            continue
        seen += 1
        lane = lanes[int(found[1]), int(found[2])]
        told = {name: int(n.replace(",", "")) for n, name in re.findall(r"([\d,]+) ([^;]+?)(?:;|$)", found[4])}
        long: dict[Activity, float] = defaultdict(float)
        for box in group.findall(f"{SVG}rect"):
            width = float(box.attrib["width"])
            if abs(width - 10) > 1e-9 or float(box.attrib["height"]) != 11:  # not the letter of a wait
                long[family_of[box.attrib["class"]]] += width
        spent: dict[Activity, float] = defaultdict(float)
        for span in lane.spans:
            spent[span.activity] += span.end - span.start
        for activity in Activity:
            assert long[activity] / scale == pytest.approx(spent[activity], abs=max(1, len(lane.spans)) * 0.06 / scale)
            # a slot shows its most frequent activity: the title has the cycles of all
            assert abs(told.get(activity.value, 0) - spent[activity]) <= 0.25 * model.cycles
        assert sum(told.values()) == pytest.approx(sum(spent.values()), rel=0.05, abs=len(told) + 1)
    assert seen > 0
    for unit, shares in model.unit_utilization.items():
        assert all(0 <= share <= 1.001 for share in shares), unit


@pytest.mark.exhaustive
def test_the_warps_of_each_launch_are_drawn_as_long_as_they_work_and_wait() -> None:
    drawn = 0
    for entry, _, request, disassemble in launches():
        check_residency(find_residency(RankingCandidate(entry, request, entry.constants), disassemble))
        drawn += 1
    assert drawn > 12
