"""The warps of a multiprocessor, one by one: times derived by hand."""

from __future__ import annotations

from math import inf

import pytest

from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect, StepCost, walk_cta
from artifact_inspector.execution.timing.turnover import MOST_INSTRUCTIONS, Turnover

LOAD = (ControlCode(1, 0, None, ()), StepCost("lsu", 1, 400, is_global=True))
SECOND_LOAD = (ControlCode(1, 1, None, ()), StepCost("lsu", 1, 400, is_global=True))
USE, SECOND_USE = ((ControlCode(1, None, None, (scoreboard,)), StepCost("lsu", 200, 22)) for scoreboard in (0, 1))
PLAIN = (ControlCode(1, None, None, ()), StepCost(None, 0, 5))
MEETS = (ControlCode(1, None, None, ()), StepCost(None, 0, 5, effect=SchedulingEffect.CTA_BARRIER))


def made(steps: list[tuple[ControlCode, StepCost]], warps: int = 1, barrier: int = 0) -> Turnover:
    controls, costs = zip(*steps, strict=True)
    trace = range(len(steps))
    return Turnover(trace, controls, dict(zip(trace, costs, strict=True)), warps, interval=0, barrier=barrier)


def test_a_cta_by_itself_takes_as_long_as_its_walk() -> None:
    steps = [LOAD, USE, SECOND_LOAD, SECOND_USE]
    controls, costs = zip(*steps, strict=True)
    walk = walk_cta(range(4), controls, dict(enumerate(costs)), 1, 0)
    assert made(steps).run(1, 1) == walk.cycles


def test_nothing_waits_for_a_load_that_runs_far_ahead_but_its_transfer_takes_as_long() -> None:
    of_l2 = (LOAD[0], LOAD[1]._replace(l2_cycles=100.0))
    ahead = (LOAD[0], of_l2[1]._replace(latency_cycles=-inf))
    cycles = []
    for load in (of_l2, ahead):
        controls, costs = zip(load, USE, strict=True)
        cycles.append(walk_cta(range(2), controls, dict(enumerate(costs)), 1, 0).cycles)
    # 1 + 100 + 400 cycles until the load is done, then 200; else the use starts after the issue of the load
    assert cycles == [501 + 200, 1 + 200]
    controls, costs = zip(ahead, PLAIN, strict=True)
    assert walk_cta(range(2), controls, dict(enumerate(costs)), 1, 0).cycles == 101


def test_each_slot_is_used_again_when_its_cta_ends() -> None:
    turnover = made([PLAIN] * 10)
    assert turnover.run(6, 1) == 60
    assert turnover.ends == [10, 20, 30, 40, 50, 60]
    assert made([PLAIN] * 10).run(8, 4) == 20  # one scheduler each


def test_loads_before_everything_leave_the_unit_idle_while_all_wait() -> None:
    first = made([LOAD, SECOND_LOAD, USE, SECOND_USE]).run(4, 4)
    between = made([LOAD, USE, SECOND_LOAD, SECOND_USE]).run(4, 4)
    # the unit is busy for 4 CTAs x (2 + 400) cycles; with loads between, the second wait is covered by other CTAs
    assert 1608 <= between <= 1608 + 800
    assert 1608 <= first <= 1608 + 800
    assert first != between


def test_a_barrier_waits_for_the_last_warp_of_its_cta() -> None:
    # each warp has a scheduler of its own: 1 cycle, the barrier, 1 cycle
    assert made([MEETS, PLAIN], warps=4, barrier=20).run(1, 1) == 22


def test_the_oldest_warp_gets_the_room_in_the_queue() -> None:
    busy = (ControlCode(1, None, None, ()), StepCost("lsu", 4000, 0))
    turnover = made([busy, busy], warps=1)
    turnover.run(4, 4)
    assert turnover.ends == sorted(turnover.ends)


@pytest.mark.long
def test_a_long_launch_is_extrapolated_from_its_first_ctas_and_a_costly_one_is_not_simulated() -> None:
    steps = [LOAD, USE]
    simulated = made(steps).run(MOST_INSTRUCTIONS, 4)
    estimated = made(steps).estimate(MOST_INSTRUCTIONS, 4)
    assert estimated is not None
    assert abs(estimated / simulated - 1) < 0.01
    assert made([PLAIN] * 10_000, warps=4).estimate(8, 4) is None
    assert made(steps).estimate(8, 1) is None
