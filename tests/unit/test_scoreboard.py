"""What is in flight at one point of a program, queue by queue."""

from __future__ import annotations

import pickle

from artifact_inspector.analysis.overlap.barriers import BarrierArray
from artifact_inspector.analysis.overlap.memory_events import Clears, Commit, Issue, Moves, Reads, WaitFor
from artifact_inspector.analysis.overlap.scoreboard import Flight, Scoreboard
from artifact_inspector.model import Queue, Transfer, Wait

COPY = Issue(Transfer(16, Queue.GROUP), is_load=True)
PRODUCT = Issue(Transfer(None, Queue.MATRIX), is_load=False)


def wait(queue: Queue, depth: int, *, closes: bool = False) -> WaitFor:
    return WaitFor(Wait("w", depth, queue, closes=closes))


def test_the_last_product_of_a_group_closes_it_where_no_commit_does() -> None:
    board = Scoreboard()
    for trip in range(3):
        board.issue(2 * trip, PRODUCT, 0, 0)
        board.issue(2 * trip + 1, PRODUCT._replace(closes=True), 0, 0)
        board.wait(wait(Queue.MATRIX, 1))
    assert board.pending(wait(Queue.MATRIX, 1)) == (2, 1)  # of the last trip alone


def test_loads_in_flight_are_told_apart_by_the_region_that_issues_them() -> None:
    board = Scoreboard()
    board.issue(0, COPY, 0, 7)
    board.commit(Commit(Queue.GROUP))
    board.issue(1, COPY, 0, 8)
    board.commit(Commit(Queue.GROUP))
    assert (board.flying_from((7,)), board.flying_from((7, 8)), board.flying_from((9,))) == (1, 2, 0)
    twin = board.copy()
    board.wait(wait(Queue.GROUP, 1))
    assert (board.flying_from((7,)), board.flying_from((8,)), twin.flying_from((7,))) == (0, 1, 1)


def test_a_wait_for_all_takes_copies_that_no_commit_has_closed() -> None:
    board = Scoreboard()
    board.issue(0, COPY, 0, 0)
    assert board.wait(wait(Queue.GROUP, 0)) == []
    assert [flight.index for flight in board.wait(wait(Queue.GROUP, 0, closes=True))] == [0]


def use(*registers: str, moved: int | None = 4, joins: bool = False) -> Issue:
    return Issue(Transfer(moved, Queue.USE), is_load=True, registers=registers, joins=joins)


def indices(flights: list[Flight]) -> list[int]:
    return sorted(flight.index for flight in flights)


def test_the_first_read_of_a_register_completes_its_load_and_no_other() -> None:
    board = Scoreboard()
    board.issue(0, use("a", "b"), 0, 0)
    board.issue(1, use("c", moved=8), 0, 0)
    assert board.of_thread == 12
    assert indices(board.read(Reads(frozenset({"b"})))) == [0]
    assert board.read(Reads(frozenset({"a"}))) == []
    assert (len(board.flying), board.of_thread) == (1, 8)


def test_a_register_filled_again_ends_what_it_held_unless_another_holds_it_too() -> None:
    board = Scoreboard()
    board.issue(0, use("a", "b"), 0, 0)
    assert board.issue(1, use("a"), 0, 0) == []
    assert indices(board.issue(2, use("b"), 0, 0)) == [0]
    assert sorted(flight.index for flight in board.flying) == [1, 2]


def test_loads_of_one_statement_share_their_registers() -> None:
    board = Scoreboard()
    board.issue(0, use("a"), 0, 0)
    assert board.issue(1, use("a", joins=True), 0, 0) == []
    assert indices(board.read(Reads(frozenset("a")))) == [0, 1]


def test_a_value_that_moves_is_waited_for_where_it_went() -> None:
    board = Scoreboard()
    board.issue(0, use("a"), 0, 0)
    assert board.move(Moves((("x", ("a",)),))) == []
    assert board.issue(1, use("a"), 0, 0) == []  # x holds it still
    assert indices(board.read(Reads(frozenset("x")))) == [0]


def test_values_that_swap_names_do_so_at_once() -> None:
    board = Scoreboard()
    board.issue(0, use("a"), 0, 0)
    board.issue(1, use("b"), 0, 0)
    board.move(Moves((("a", ("b",)), ("b", ("a",)))))
    assert indices(board.read(Reads(frozenset("a")))) == [1]
    assert indices(board.read(Reads(frozenset("b")))) == [0]


def test_a_move_that_may_not_happen_leaves_what_was_there() -> None:
    board = Scoreboard()
    board.issue(0, use("a"), 0, 0)
    board.issue(1, use("b"), 0, 0)
    board.move(Moves((("a", ("b",)),), always=False))
    assert indices(board.read(Reads(frozenset("a")))) == [0, 1]
    other = Scoreboard()
    other.issue(0, use("a"), 0, 0)
    other.issue(1, use("b"), 0, 0)
    assert indices(other.move(Moves((("a", ("b",)),)))) == [0]


def test_a_load_that_fills_nothing_is_not_followed() -> None:
    board = Scoreboard()
    assert board.issue(0, use(), 0, 0) == []
    assert board.flying == set()


def test_a_wait_leaves_as_many_of_the_youngest_as_it_says() -> None:
    counted = Issue(Transfer(4, Queue.LOADS), is_load=True)
    board = Scoreboard()
    for index in range(4):
        board.issue(index, counted if index != 1 else counted._replace(is_load=False), 0, 0)
    assert board.pending(wait(Queue.LOADS, 1)) == (3, None)  # the store takes a place and is none
    assert indices(board.wait(wait(Queue.LOADS, 2))) == [0]
    assert indices(board.wait(wait(Queue.LOADS, 1))) == [2]
    assert indices(board.wait(wait(Queue.LOADS, 1))) == []
    assert indices(board.wait(wait(Queue.LOADS, 0))) == [3]


def test_groups_are_left_by_number_however_many_copies_they_hold() -> None:
    board = Scoreboard()
    for index in range(4):
        board.issue(index, COPY, 0, 0)
        if index % 2:
            board.commit(Commit(Queue.GROUP))
    assert board.pending(wait(Queue.GROUP, 1)) == (4, 2)
    assert indices(board.wait(wait(Queue.GROUP, 1))) == [0, 1]
    assert indices(board.wait(wait(Queue.GROUP, 1))) == []
    assert indices(board.wait(wait(Queue.GROUP, 0))) == [2, 3]


def test_an_empty_group_is_one() -> None:
    board = Scoreboard()
    board.issue(0, COPY, 0, 0)
    board.commit(Commit(Queue.GROUP))
    board.commit(Commit(Queue.GROUP))
    assert indices(board.wait(wait(Queue.GROUP, 1))) == [0]


def test_a_scoreboard_of_the_machine_is_cleared_with_all_that_it_counts() -> None:
    board = Scoreboard()
    for index, counter in enumerate((2, 3, 2)):
        board.issue(index, use()._replace(counter=counter), 0, 0)
    assert indices(board.clear(Clears(frozenset({2, 5})))) == [0, 2]
    assert indices(board.clear(Clears(frozenset({2})))) == []
    assert indices(board.clear(Clears(frozenset({3})))) == [1]


TWO = BarrierArray(0, 2)
TILE = Issue(Transfer(None, Queue.PHASE, of_block=True), is_load=True, array=TWO)
OPENED = Commit(Queue.PHASE, Transfer(512, None), TWO)
PHASE = WaitFor(Wait("w", None, Queue.PHASE), TWO)


def test_a_phase_bears_the_bytes_that_its_barrier_expects_once() -> None:
    board = Scoreboard()
    board.commit(OPENED)
    board.issue(0, TILE, 0, 0)
    board.issue(1, TILE, 0, 0)
    assert (board.of_block, board.unknown, board.pending(PHASE)) == (512, 0, (2, 1))
    assert indices(board.wait(PHASE)) == [0, 1]
    assert (board.of_block, board.pending(PHASE), board.wait(PHASE)) == (0, (0, 0), [])


def test_more_phases_than_barriers_end_the_eldest() -> None:
    board = Scoreboard()
    ended = []
    for index in range(3):
        board.commit(OPENED)
        ended.append(indices(board.issue(index, TILE, 0, 0)))
    assert ended == [[], [], [0]]
    assert board.pending(PHASE) == (2, 2)


def test_copies_at_barriers_that_are_not_known_are_not_followed() -> None:
    board = Scoreboard()
    assert board.issue(0, TILE._replace(array=None), 0, 0) == []
    assert board.flying == set()
    board.issue(1, TILE, 0, 0)
    assert board.unknown == 1  # nothing told what its barrier expects
    board.forget([0])
    assert (board.flying, board.unknown) == (set(), 0)


def test_two_states_with_the_same_in_flight_are_alike() -> None:
    one, other = Scoreboard(), Scoreboard()
    for clock, board in ((0, one), (50, other)):
        board.issue(3, COPY, clock, 0)
        board.issue(4, use("a"), clock, 0)
    assert one.signature() == other.signature()
    other.read(Reads(frozenset("a")))
    assert one.signature() != other.signature()
    one.read(Reads(frozenset("a")))
    assert one.signature() == other.signature()
    one.commit(Commit(Queue.GROUP))
    assert one.signature() != other.signature()


def test_a_load_that_a_move_gives_a_second_name_flies_until_the_last_name_is_gone() -> None:
    board = Scoreboard()
    board.issue(0, use("a"), 0, 0)
    assert board.move(Moves((("b", ("a",)),), always=True)) == []
    assert board.move(Moves((("a", ("x",)),), always=True)) == []  # b still holds it
    assert indices(board.move(Moves((("b", ("x",)),), always=True))) == [0]


def test_loads_that_are_complete_leave_no_trace_however_many_regions_they_stood_in() -> None:
    board = Scoreboard()
    for region in range(9):
        board.issue(region, Issue(Transfer(4, Queue.USE), is_load=True, registers=("a",)), region, region)
        board.read(Reads(frozenset(("a",))))
    assert pickle.dumps(board.copy()) == pickle.dumps(Scoreboard())
