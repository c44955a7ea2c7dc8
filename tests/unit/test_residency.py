"""Resident warps: the model of walks made by hand, and the picture of it."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from saved import saved

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.launch_requests import parse_document
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect, StepCost, walk_cta
from artifact_inspector.execution.timing.residency import (
    QUEUE_ENTRIES,
    SLOTS,
    Activity,
    Residency,
    StallReason,
    WarpTimeline,
    _ResidentWarp,
    _SharedUnits,
    find_residency,
    overlap_warps,
)
from artifact_inspector.pictures.residency import residency
from artifact_inspector.report.exchange.chrome_trace import chrome_trace
from artifact_inspector.report.html.launch import draw_launch

PLAIN = ControlCode(1, None, None, ())
LOAD = (ControlCode(2, 0, None, ()), StepCost("lsu", 2, 40, 4.0, 8.0))
USE = (ControlCode(4, None, None, (0,)), StepCost("fma", 1, 6))
PRODUCT = (ControlCode(2, 1, None, ()), StepCost("tensor", 50, 33))
SUM = (ControlCode(4, None, None, (1,)), StepCost("alu", 1, 6))
MEETS = (PLAIN, StepCost(None, 0, 6, effect=SchedulingEffect.CTA_BARRIER))
COPIES = (PLAIN, StepCost("lsu", 2, 400, 4.0, effect=SchedulingEffect.STARTS_COPY))
CLOSES = (PLAIN, StepCost(None, 0, 6, effect=SchedulingEffect.CLOSES_COPY_GROUP))
AWAITS = (PLAIN, StepCost(None, 0, 6, effect=SchedulingEffect.WAITS_FOR_COPIES, groups_left=1))
KINDS = [LOAD, USE, PRODUCT, SUM, MEETS, COPIES, CLOSES, AWAITS]


def overlapped(steps: list[Any], starts: list[float], warps: int = 1) -> tuple[Any, Any, float, Any]:
    controls, costs = zip(*steps, strict=True)
    return overlap_warps(range(len(steps)), controls, dict(enumerate(costs)), starts, warps)


def lane_of(steps: list[Any], starts: list[float], at: int = 0) -> WarpTimeline:
    found: WarpTimeline = overlapped(steps, starts)[0][at]
    return found


@pytest.mark.parametrize(
    "steps",
    [
        [LOAD, USE],
        [PRODUCT, PRODUCT, SUM],
        [COPIES, CLOSES, COPIES, CLOSES, AWAITS, MEETS, PRODUCT, SUM] * 5,
        KINDS * 7,
    ],
)
def test_one_warp_alone_takes_what_a_ranking_says(steps: list[Any]) -> None:
    controls, costs = zip(*steps, strict=True)
    alone = walk_cta(range(len(steps)), controls, dict(enumerate(costs)), 1, 20)
    assert overlapped(steps, [0.0])[2] == alone.cycles


def test_what_a_scoreboard_holds_is_waited_for_under_the_name_of_what_set_it() -> None:
    assert lane_of([LOAD, USE], [0.0]).cycles == {
        Activity.LOADS: 2,
        Activity.MEMORY: 2 + max(4, 8) + 40 - 2,
        Activity.ARITHMETIC: 4,
    }
    assert lane_of([PRODUCT, SUM], [0.0]).cycles == {Activity.MATRIX: 50 + 33, Activity.ARITHMETIC: 4}


def test_the_cycles_of_a_lane_fill_its_time_without_a_gap() -> None:
    lanes, _, cycles, _ = overlapped(KINDS * 4, [0.0, 100.0], 2)
    for lane in lanes:
        begins = 100.0 * lane.cta
        assert begins < sum(lane.cycles.values()) + begins <= cycles
        assert all(one.end == other.start for one, other in zip(lane.spans, lane.spans[1:], strict=False))


def test_a_wait_for_memory_is_hidden_behind_the_computes_of_another_cta() -> None:
    """One load of 50 cycles; the other CTA starts when the first waits, and its product takes 83."""
    steps = [LOAD, USE, PRODUCT, SUM]
    assert overlapped(steps, [0.0])[3] == 0
    # the second CTA's wait, cycles 62 to 110, stands behind the first one's product, 54 to 141
    hidden = overlapped(steps, [0.0, 60.0])[3]
    assert hidden == pytest.approx(48 / (48 + 48), abs=0.03)


def test_warps_leave_a_barrier_together() -> None:
    lanes = overlapped([(PLAIN, StepCost("double", 40, 6)), MEETS, LOAD], [0.0], 2)[0]
    first, second = (lane.cycles[Activity.BARRIER] for lane in lanes)
    assert first == second + 20  # a product of the one warp is 20 cycles in front of that of the other
    assert second == 20


def test_ctas_do_not_meet_at_each_others_barriers() -> None:
    alone = lane_of([MEETS, SUM], [0.0])
    assert lane_of([MEETS, SUM], [0.0, 5000.0]).cycles == alone.cycles


WAITS = {
    "scoreboard": (Activity.SHARED, StallReason.SHORT_SCOREBOARD),
    "copies": (Activity.MEMORY, StallReason.LONG_SCOREBOARD),
    "products": (Activity.MATRIX, StallReason.BARRIER),
    "queue": (Activity.SHARED, StallReason.MIO_THROTTLE),
}


@pytest.mark.parametrize("first", WAITS)
@pytest.mark.parametrize("second", [None, *WAITS])
@pytest.mark.parametrize("ready", [9.0, 10.0, 11.0])
def test_a_warp_waits_for_what_is_ready_last_and_for_nothing_that_is_ready_now(
    first: str, second: str | None, ready: float
) -> None:
    """At cycle 10, something is ready before, now, or later, and something else a cycle later than that."""
    names = [first] if second is None else [first, second]
    if len(set(names)) < len(names) or {"copies", "products"} <= set(names):
        return  # an instruction waits for groups of one kind
    warp = _ResidentWarp((0, 0), 10.0, _SharedUnits())
    effects = {"copies": SchedulingEffect.WAITS_FOR_COPIES, "products": SchedulingEffect.WAITS_FOR_PRODUCTS}
    effect = next((effects[name] for name in names if name in effects), SchedulingEffect.NOTHING)
    cost = StepCost("lsu", 2, 22, effect=effect, groups_left=1)
    warp.scoreboard_activities[5], warp.scoreboard_reasons[5] = WAITS["scoreboard"]
    for name, at in zip(names, (ready, ready + 1), strict=False):
        if name == "scoreboard":
            warp.scoreboard_ready[5] = at
        elif name == "queue":
            queue = warp.units.queue_of(0, cost)
            assert queue is not None
            queue.extend([at, *[99.0] * (QUEUE_ENTRIES - 1)])
        else:  # the last group may still be in flight, and the one before it may not
            groups = warp.copy_groups if name == "copies" else warp.product_groups
            groups += [0.0, at, 99.0]
    latest = ready if second is None else ready + 1
    expected = (latest, *WAITS[names[-1]]) if latest > 10 else (10.0, Activity.ISSUE, StallReason.WAIT)
    assert warp.next_issue(ControlCode(1, None, None, (5,)), cost) == expected


# -- why warps do not issue ------------------------------------------------------------------------------


def stalls_of(program: list[Any], warps: int, **options: Any) -> dict[tuple[int, str], float]:
    controls, costs = zip(*program, strict=True)
    stalls: dict[tuple[int, StallReason], float] = {}
    starts = [0.0] * len(options.get("offsets", [0]))
    overlap_warps(range(len(program)), controls, dict(enumerate(costs)), starts, warps, stalls=stalls, **options)
    return {(step, reason.value): cycles for (step, reason), cycles in stalls.items()}


def test_a_wait_for_products_of_a_warpgroup_counts_as_barrier() -> None:
    """Nsight Compute's source pages of 123 kernels: 97 % of the samples at `WARPGROUP.DEPBAR` are `stall_barrier`."""
    product = (PLAIN, StepCost("tensor", 50, 33, effect=SchedulingEffect.CLOSES_PRODUCT_GROUP))
    awaits = (PLAIN, StepCost(None, 0, 6, effect=SchedulingEffect.WAITS_FOR_PRODUCTS))
    assert stalls_of([product, awaits], 1) == {(1, "barrier"): 50 + 33 - 1}


def test_an_access_that_no_lane_makes_needs_no_entry_of_the_queue() -> None:
    loads = [(PLAIN, StepCost("lsu", 100, 22))] * 20
    waited = stalls_of([*loads, (PLAIN, StepCost("lsu", 1, 22))], 1)
    assert waited[20, "mio throttle"] > 0
    assert not any(step == 20 for step, _ in stalls_of([*loads, (PLAIN, StepCost("lsu", 0, 22))], 1))


def test_a_queue_holds_instructions_however_long_they_take() -> None:
    for cycles in (16, 32, 500):
        waits = stalls_of([(PLAIN, StepCost("lsu", cycles, 400, is_global=True))] * 20, 1)
        assert min(step for step, reason in waits if reason == "lg throttle") == QUEUE_ENTRIES + 1


def test_warps_that_compete_for_half_a_unit_are_half_of_the_time_not_selected() -> None:
    """Eight warps on four schedulers; an instruction occupies its scheduler's unit for two cycles."""
    waits = stalls_of([(PLAIN, StepCost("alu", 0.5 * 8, 6))] * 50, 8)
    by_reason = {reason: sum(v for (_, r), v in waits.items() if r == reason) for _, reason in waits}
    assert by_reason["math pipe throttle"] == pytest.approx(sum(by_reason.values()) / 2, rel=0.2)
    full = stalls_of([(PLAIN, StepCost("fma", 0.25 * 8, 6))] * 50, 8)
    assert {reason for _, reason in full} == {"not selected"}


def test_special_functions_queue_with_shared_accesses() -> None:
    waits = stalls_of([(PLAIN, StepCost("xu", 8, 15))] * 20, 1)
    assert {reason for _, reason in waits} == {"mio throttle"}


def test_ctas_in_the_middle_of_a_launch_are_at_different_places() -> None:
    """Two CTAs that use one unit and then another: in step each waits for the other, else for none."""
    steps = [(PLAIN, StepCost(unit, 50, 6)) for unit in ("double", "alu") for _ in range(10)]
    alone, in_step, apart = (sum(stalls_of(steps, 1, offsets=offsets).values()) for offsets in ([0], [0, 0], [0, 10]))
    assert apart == pytest.approx(2 * alone, rel=0.1)
    assert in_step > 1.9 * apart
    first_half = stalls_of(steps, 1, offsets=[0, 10], steps=10)
    assert {step for step, _ in first_half} == {*range(1, 10), *range(11, 20)}


def test_units_are_shared_and_never_more_than_busy() -> None:
    _, busy, cycles, _ = overlapped([PRODUCT] * 4 + [SUM], [0.0, 0.0, 0.0])
    assert cycles >= 3 * 4 * 50
    assert all(0 <= share <= 1 for shares in busy.values() for share in shares)
    assert sum(busy["tensor"]) / SLOTS * cycles == pytest.approx(3 * 4 * 50)


# -- the picture -----------------------------------------------------------------------------------------


def made(ctas: int = 2, warps: int = 2) -> Residency:
    lanes, busy, cycles, hidden = overlapped(KINDS * 6, [100.0 * at for at in range(ctas)], warps)
    return Residency("kernel<b>", "H200", ctas, warps, cycles, lanes, busy, hidden, 48, 48)


def test_the_picture_says_that_it_is_a_model_and_what_each_letter_means() -> None:
    svg = residency(made())
    assert "model, not measured" in svg
    assert "kernel&lt;b&gt; · 2 CTAs of 2 warps on one SM of H200" in svg
    for activity in (Activity.MEMORY, Activity.MATRIX):
        assert activity.value in svg
    assert len(re.findall(r"<title>CTA \d, warp \d, of", svg)) == 4
    assert "drawn:" not in svg


def test_a_launch_s_page_shows_it() -> None:
    launch: Any = SimpleNamespace(
        cta_order=None, shared_accesses=(), counters=SimpleNamespace(intensity=None, flop=None), kernel="kernel"
    )
    assert not list(draw_launch(launch, None))
    (drawing,) = draw_launch(launch, None, made())
    assert (drawing.title, drawing.missing) == ("Resident warps", "")
    assert "model, not measured" in str(drawing.views)


def test_what_is_not_drawn_is_said() -> None:
    svg = residency(replace(made(6, 8), modelled_instructions=10, notes=("not drawn: what others ask of lsu",)))
    assert "drawn: 5 of 8 warps of 6 of 6 CTAs" in svg
    assert "drawn: the first 10 of 48 instructions of each warp" in svg
    assert "not drawn: what others ask of lsu" in svg


_AMD_GEMV = (
    '{"grid": [28, 32], "args": {"a_ptr": {"shape": [4096], "dtype": "fp16"}, "stride_bk": 7168,'
    ' "b_ptr": {"shape": [4096, 7168], "dtype": "fp16"}, "c_ptr": {"shape": [7168], "dtype": "fp32"}}}'
)


def test_an_amd_kernel_s_waves_wait_for_the_loads_that_its_waitcnt_names() -> None:
    candidate = RankingCandidate(saved("3.6.0/gfx942/gemv_splitk").artifact, parse_document(_AMD_GEMV, "a test")[0], {})
    model = find_residency(candidate, None)
    assert (model.gpu, model.warps_per_cta) == ("AMD Instinct MI300X", 4)
    assert model.hidden_wait_share is not None
    assert all(lane.cycles[Activity.MEMORY] > 0 for lane in model.timelines)


def test_no_times_are_made_up_for_gpus_without_documented_latencies() -> None:
    candidate = RankingCandidate(
        saved("3.6.0/gfx1100/gemv_splitk").artifact, parse_document(_AMD_GEMV, "a test")[0], {}
    )
    with pytest.raises(UsageError, match="only Vega 20 and CDNA"):
        find_residency(candidate, None)


def test_the_trace_has_every_span_and_counter_of_the_model() -> None:
    model = made(2, 2)
    document = json.loads(json.dumps(chrome_trace(model)))
    events = document["traceEvents"]
    for lane in model.timelines:
        spans = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (lane.cta, lane.warp)]
        assert [(e["name"], e["ts"], e["ts"] + e["dur"]) for e in spans] == [
            (span.activity.value, span.start, pytest.approx(span.end)) for span in lane.spans
        ]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert names == {(lane.cta, lane.warp): f"warp {lane.warp}" for lane in model.timelines}
    for unit, shares in model.unit_utilization.items():
        counters = [e for e in events if e["ph"] == "C" and e["name"] == f"{unit} busy, %"]
        assert [e["args"]["busy"] for e in counters] == [round(100 * share, 2) for share in shares if any(shares)]
        assert all(e["pid"] not in {lane.cta for lane in model.timelines} for e in counters)
    assert document["otherData"]["gpu"] == "H200"


def check_trace_format(document: dict[str, Any]) -> None:
    """Refuse what the Trace Event Format does not define, and what Perfetto drops when it imports.

    Source: "Trace Event Format" (complete, counter and metadata events); perfetto, json_trace_parser_impl.cc, which
    truncates to nanoseconds, and slice_tracker.cc, which drops a slice that ends after the one around it.
    """
    tracks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for event in document["traceEvents"]:
        assert (type(event["pid"]), type(event["tid"]), type(event["name"])) == (int, int, str)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            continue
        assert math.isfinite(event["ts"])
        assert event["ts"] >= 0
        if event["ph"] == "C":
            assert event["args"]
            assert all(isinstance(value, int | float) for value in event["args"].values())
        else:
            assert event["ph"] == "X"
            assert event["dur"] >= 0
            start = int(event["ts"] * 1000)
            tracks.setdefault((event["pid"], event["tid"]), []).append((start, start + int(event["dur"] * 1000)))
    assert tracks
    for spans in tracks.values():
        enclosing: list[int] = []
        for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while enclosing and enclosing[-1] <= start:
                enclosing.pop()
            assert not enclosing or end <= enclosing[-1], "slices overlap in part"
            enclosing.append(end)


def test_the_trace_follows_the_published_format() -> None:
    document = json.loads(json.dumps(chrome_trace(made(3, 4)), allow_nan=False))
    check_trace_format(document)
    (first, second) = [x for x in document["traceEvents"] if x["ph"] == "X"][:2]
    for fault in ({"dur": -1}, {"ph": "B"}, {"pid": "0"}, {"ts": second["ts"] - 1, "dur": 2}):
        broken = {**document, "traceEvents": [{**first, "dur": second["ts"] - first["ts"]}, {**second, **fault}]}
        with pytest.raises((AssertionError, KeyError)):
            check_trace_format(broken)
