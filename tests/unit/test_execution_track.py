"""Where loads are issued and complete, in a matmul whose PTX was read by hand."""

from __future__ import annotations

from itertools import pairwise

from saved import saved

from artifact_inspector.facts.lane import Lane
from artifact_inspector.facts.scene import find_scene
from artifact_inspector.model import Stage


def lane(path: str, stage: Stage) -> Lane:
    (found,) = find_scene(saved(path).facts, None, (stage,)).lanes
    return found


def flights(found: Lane) -> list[tuple[int, int | None, int, bool]]:
    """Loads, line of what completes them, trips later, behind the loop: those of one wait put together."""
    together: dict[tuple[str, int | None, int, bool], int] = {}
    for loading in found.load_spans:
        flight = loading.flight
        where = None if loading.completion is None else loading.completion.line
        key = (found.events[flight.step].step.region, where, flight.back_edges, flight.is_after_loop)
        together[key] = together.get(key, 0) + flight.loads
    return [(loads, *key[1:]) for key, loads in together.items()]


def test_the_prologue_of_a_matmul_completes_in_the_first_trips_and_its_loop_three_trips_later() -> None:
    # Three iterations of 4 + 1 copies in front of the loop; `wait_group 4` at its head leaves two of them,
    # so each completes one; what a trip copies completes three trips later, or at `wait_group 0` behind it.
    found = lane("3.6.0/sm_80/matmul_grouped", Stage.PTX)
    waits = [event.first.line for event in found.events if event.letter == "W"]
    head, drain = waits
    assert flights(found) == [
        (5, head, 0, False),
        (5, head, 1, False),
        (5, head, 2, False),
        (5, head, 3, False),
        (5, drain, 0, True),
    ]


def test_what_is_in_flight_falls_at_the_waits() -> None:
    # 15 copies of 16 bytes in front of the loop's wait, 10 behind it, none behind the last.
    found = lane("3.6.0/sm_80/matmul_grouped", Stage.PTX)
    loads = [level.loads for level in found.levels]
    assert max(loads) == 15
    assert [after for before, after in pairwise(loads) if after < before] == [10, 0]
    assert all(level.bytes == 16 * level.loads for level in found.levels)


def test_the_events_of_a_lane_are_those_of_the_signatures() -> None:
    for stage in saved("3.6.0/sm_80/flash_attention").stages:
        found = lane("3.6.0/sm_80/flash_attention", stage)
        facts = saved("3.6.0/sm_80/flash_attention").facts.stages[stage]
        counted = sum(event.step.repetitions for event in found.events)
        told = sum(int(run[1:]) for region in facts.regions for run in region.signature.split())
        assert counted == told


def test_a_register_completes_its_load_where_it_is_first_used() -> None:
    found = lane("3.6.0/sm_80/copy", Stage.PTX)
    assert not any(loading.flight.is_by_wait for loading in found.load_spans)
    assert all(loading.completion is not None for loading in found.load_spans)
