"""A walk through functions made of letters, with events put in by hand; what settles is counted on paper."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from handwritten import made

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.overlap.barrier_arrays import BarrierArray
from artifact_inspector.analysis.overlap.loads_in_flight import find_unknown_reasons
from artifact_inspector.analysis.overlap.memory_events import (
    GroupCommit,
    IssuedOperation,
    MemoryEvent,
    QueueWait,
    RegisterReads,
)
from artifact_inspector.analysis.overlap.steady_state import MAX_TRIPS, InFlightWalk, RegionMeasurement
from artifact_inspector.model import Queue, Transfer, WaitOp
from artifact_inspector.model.limits import LOADS_IN_FLIGHT

What = IssuedOperation | GroupCommit | QueueWait | RegisterReads
COPY = IssuedOperation(Transfer(16, Queue.GROUP), is_load=True)
CLOSE = GroupCommit(Queue.GROUP)


def wait(depth: int, queue: Queue = Queue.GROUP) -> QueueWait:
    return QueueWait(WaitOp("w", depth, queue))


def filled(*registers: str, moved: int | None = 4) -> IssuedOperation:
    return IssuedOperation(Transfer(moved, Queue.USE), is_load=True, registers=registers)


def walk(code: FunctionCode, what: Mapping[int, What], threads: int | None = 32) -> InFlightWalk:
    events: list[list[MemoryEvent]] = [[] for _ in code.function.blocks]
    for index, happens in sorted(what.items()):
        events[code.flow.block_of[index]].append(MemoryEvent(index, happens))
    found = InFlightWalk(code, [tuple(block) for block in events], find_regions(code, (), exact=False), threads)
    found.run()
    return found


def measures(code: FunctionCode, what: Mapping[int, What], threads: int | None = 32) -> list[RegionMeasurement]:
    """Of the straight code, then of each loop."""
    return walk(code, what, threads).measures


def test_straight_code_is_measured_as_it_is_passed() -> None:
    code = made("L F L F . F")
    (found,) = measures(
        code, {0: filled("a"), 2: filled("b"), 3: RegisterReads(frozenset("a")), 5: RegisterReads(frozenset("b"))}
    )
    assert (found.loads, found.bytes, found.computes) == (2, 2 * 4 * 32, 3)
    assert found.levels == {0: (0, 1), 2: (1, 2), 3: (2, 1), 5: (1, 0)}
    # two instructions stand strictly between each load and its use
    assert found.distances == [2, 2]
    # the computes at 1 and 3 run while a load is in flight; that at 5 is the use itself
    assert found.overlapped_computes == 2


def test_bytes_are_unknown_where_a_load_or_the_threads_are() -> None:
    code, use = made("L F"), RegisterReads(frozenset("a"))
    assert measures(code, {0: filled("a", moved=None), 1: use})[0].bytes is None
    of_block = IssuedOperation(Transfer(64, Queue.GROUP, is_per_block=True), is_load=True)
    assert measures(code, {0: of_block}, None)[0].bytes is None
    assert measures(code, {0: of_block}, 32)[0].bytes == 64
    assert measures(code, {0: filled("a"), 1: use}, None)[0].bytes == 4
    assert measures(made("F F"), {})[0].bytes == 0


def test_a_loop_is_measured_when_it_has_settled() -> None:
    # each trip waits until one group is left, computes, and copies: two fly at most, one across the back edge
    code = made(".", "W F A K", ".", to={1: (1, 2)})
    _, loop = measures(code, {1: wait(1), 3: COPY, 4: CLOSE})
    assert (loop.loads, loop.commits) == (2, 1)
    passed = loop.waits[1]
    assert (passed.in_flight_before, passed.in_flight_after, passed.groups, passed.drains) == (2, 1, 1, False)
    # a copy is complete at the wait two trips later: 2 · 4 instructions further, less those two steps
    assert loop.distances == [2 * 4 - 2 - 1]
    assert loop.levels == {1: (2, 1), 3: (1, 2)}
    assert (loop.computes, loop.overlapped_computes) == (1, 1)


def test_a_wait_that_leaves_nothing_drains_the_loop() -> None:
    code = made(".", "W F A K", ".", to={1: (1, 2)})
    _, loop = measures(code, {1: wait(0), 3: COPY, 4: CLOSE})
    assert loop.waits[1].drains
    assert (loop.loads, loop.waits[1].in_flight_before, loop.waits[1].in_flight_after) == (1, 1, 0)
    assert loop.overlapped_computes == 0


def test_a_wait_that_finds_nothing_drains_nothing() -> None:
    code = made("W")
    passed = measures(code, {0: wait(0)})[0].waits[0]
    assert (passed.in_flight_before, passed.in_flight_after, passed.drains) == (0, 0, False)


def test_what_was_copied_in_front_is_not_the_loops_to_drain() -> None:
    code = made("A K", "W F", ".", to={1: (1, 2)})
    _, loop = measures(code, {0: COPY, 1: CLOSE, 2: wait(0)})
    assert not loop.waits[2].drains


def test_a_loop_that_never_settles_is_given_up_with_all_around_it() -> None:
    code = made(".", ".", "A", ".", ".", to={2: (2, 3), 3: (1, 4)})
    found = walk(code, {2: COPY})
    assert found.unsettled_loops == {0, 1}
    assert found.measures[2].loads == MAX_TRIPS
    settled = walk(made(".", "W A K", ".", to={1: (1, 2)}), {1: wait(0), 2: COPY, 3: CLOSE})
    assert settled.unsettled_loops == set()


def test_behind_a_loop_that_never_settles_nothing_is_known_to_fly() -> None:
    code = made(".", "A", "W", to={1: (1, 2)})
    straight, _ = measures(code, {1: COPY, 2: wait(0)})
    assert straight.waits[2].in_flight_before == 0


def test_a_branch_around_a_block_is_no_way_in_and_of_two_arms_the_fuller_counts() -> None:
    around = made("L b", "F", "F", to={0: (1, 2)})
    use = RegisterReads(frozenset("a"))
    assert measures(around, {0: filled("a"), 2: use})[0].overlapped_computes == 0
    arms = made("b", "L", "L L", "W", to={0: (1, 2), 1: (3,), 2: (3,)})
    counted = IssuedOperation(Transfer(4, Queue.LOADS), is_load=True)
    found = measures(arms, {1: counted, 2: counted, 3: counted, 4: wait(0, Queue.LOADS)})
    assert found[0].waits[4].in_flight_before == 2


def test_what_flies_in_one_arm_does_not_in_the_other() -> None:
    arms = made("b", "L", "W", ".", to={0: (1, 2), 1: (3,), 2: (3,)})
    counted = IssuedOperation(Transfer(4, Queue.LOADS), is_load=True)
    assert measures(arms, {1: counted, 2: wait(0, Queue.LOADS)})[0].waits[2].in_flight_before == 0


def test_loads_of_no_known_end_and_those_that_nothing_reads_are_kept_apart() -> None:
    code = made("L L")
    (found,) = measures(code, {0: IssuedOperation(Transfer(4, None), is_load=True), 1: filled()})
    assert (found.unknown_loads, found.unused_loads, found.loads) == ({0}, {1}, 0)


def test_a_load_that_completes_behind_its_own_loop_has_no_distance_in_it() -> None:
    code = made(".", "L", "F", to={1: (1, 2)})
    straight, loop = measures(code, {1: filled("a"), 2: RegisterReads(frozenset("a"))})
    assert straight.distances == loop.distances == []


def test_a_load_in_front_completes_in_the_loop_for_the_code_in_front() -> None:
    code = made("L", "F", ".", to={1: (1, 2)})
    straight, loop = measures(code, {0: filled("a"), 1: RegisterReads(frozenset("a"))})
    assert (straight.distances, loop.distances) == ([0], [])


ARRAY = BarrierArray(0, 2)
PHASED = IssuedOperation(Transfer(64, Queue.PHASE, is_per_block=True), is_load=True, array=ARRAY)


def phase(array: BarrierArray | None) -> QueueWait:
    return QueueWait(WaitOp("w", None, Queue.PHASE), array)


def test_copies_whose_barrier_another_partition_waits_for_are_foreign() -> None:
    code = made(".", "A", ".", "W", ".", to={1: (1, 2), 3: (3, 4)})
    found = walk(code, {1: PHASED, 3: phase(ARRAY)})
    assert found.foreign_barriers == {0}
    own = walk(made(".", "W A", ".", to={1: (1, 2)}), {1: phase(ARRAY), 2: PHASED})
    assert own.foreign_barriers == set()


def test_a_wait_in_a_loop_inside_is_one_of_the_loop_around() -> None:
    code = made(".", "A", "W", ".", ".", to={2: (2, 3), 3: (1, 4)})
    assert walk(code, {1: PHASED, 2: phase(ARRAY)}).foreign_barriers == set()


@pytest.mark.parametrize(("array", "is_told"), [(ARRAY, True), (None, True), (BarrierArray(8, 1), False)])
def test_a_wait_for_a_barrier_where_no_copy_arrives_is_passed_over(array: BarrierArray | None, is_told: bool) -> None:
    code = made("A W")
    (found,) = measures(code, {0: PHASED, 1: phase(array)})
    assert (1 in found.waits) is is_told
    assert found.has_phases


def test_a_phase_ends_where_its_barrier_is_needed_again() -> None:
    code = made("K A K A")
    array = BarrierArray(0, 1)
    opened, copied = GroupCommit(Queue.PHASE, array=array), PHASED._replace(array=array)
    (found,) = measures(code, {0: opened, 1: copied, 2: opened, 3: copied})
    assert found.is_bounded
    (room,) = measures(code, {0: opened, 1: PHASED, 2: opened, 3: PHASED})
    assert not room.is_bounded


def diamonds(count: int) -> tuple[FunctionCode, dict[int, What]]:
    """Branches one behind the other, whose arms copy and never wait."""
    blocks: list[str] = []
    to: dict[int, tuple[int, ...]] = {}
    copies: dict[int, What] = {}
    for number in range(count):
        first = 3 * number
        blocks += [".", "A", "A"]
        to |= {first: (first + 1, first + 2), first + 1: (first + 3,)}
        copies |= {first + 1: COPY, first + 2: COPY}
    return made(*blocks, ".", to=to), copies


def test_what_was_taken_by_one_arm_of_a_branch_is_not_kept_behind_it() -> None:
    found = walk(*diamonds(40))
    assert found.measures[0].loads == 40
    assert len({id(state) for state in found._final_states.values()}) == 1
    assert not found.is_crowded


def test_more_in_flight_at_branches_than_is_carried_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    # each branch copies what flies there: 0, 1, … 39 loads, each as a load and as a member of an open group
    needed = sum(1 + 2 * flying for flying in range(40))
    monkeypatch.setenv(LOADS_IN_FLIGHT.variable, str(needed))
    assert not walk(*diamonds(40)).is_crowded
    monkeypatch.setenv(LOADS_IN_FLIGHT.variable, str(needed - 1))
    crowded = walk(*diamonds(40))
    assert crowded.is_crowded
    assert [LOADS_IN_FLIGHT.variable in word for words in find_unknown_reasons(crowded).values() for word in words] == [
        True
    ]
