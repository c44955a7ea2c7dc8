"""What is in flight at one point of a program, queue by queue."""

from __future__ import annotations

import pickle

from artifact_inspector.analysis.overlap.barrier_arrays import BarrierArray
from artifact_inspector.analysis.overlap.memory_events import (
    GroupCommit,
    IssuedOperation,
    QueueWait,
    RegisterMoves,
    RegisterReads,
    ScoreboardWait,
)
from artifact_inspector.analysis.overlap.queue_state import InFlightOperation, QueueState
from artifact_inspector.model import Queue, Transfer, WaitOp

COPY = IssuedOperation(Transfer(16, Queue.GROUP), is_load=True)
PRODUCT = IssuedOperation(Transfer(None, Queue.MATRIX), is_load=False)


def wait(queue: Queue, depth: int, *, closes: bool = False) -> QueueWait:
    return QueueWait(WaitOp("w", depth, queue, includes_uncommitted=closes))


def test_the_last_product_of_a_group_closes_it_where_no_commit_does() -> None:
    board = QueueState()
    for trip in range(3):
        board.issue(2 * trip, PRODUCT, 0, 0)
        board.issue(2 * trip + 1, PRODUCT._replace(closes_group=True), 0, 0)
        board.wait(wait(Queue.MATRIX, 1))
    assert board.pending(wait(Queue.MATRIX, 1)) == (2, 1)  # of the last trip alone


def test_loads_in_flight_are_told_apart_by_the_region_that_issues_them() -> None:
    board = QueueState()
    board.issue(0, COPY, 0, 7)
    board.commit(GroupCommit(Queue.GROUP))
    board.issue(1, COPY, 0, 8)
    board.commit(GroupCommit(Queue.GROUP))
    assert (board.count_from((7,)), board.count_from((7, 8)), board.count_from((9,))) == (1, 2, 0)
    twin = board.copy()
    board.wait(wait(Queue.GROUP, 1))
    assert (board.count_from((7,)), board.count_from((8,)), twin.count_from((7,))) == (0, 1, 1)


def test_a_wait_for_all_takes_copies_that_no_commit_has_closed() -> None:
    board = QueueState()
    board.issue(0, COPY, 0, 0)
    assert board.wait(wait(Queue.GROUP, 0)) == []
    assert [flight.index for flight in board.wait(wait(Queue.GROUP, 0, closes=True))] == [0]


def use(*registers: str, moved: int | None = 4, joins: bool = False) -> IssuedOperation:
    return IssuedOperation(Transfer(moved, Queue.USE), is_load=True, registers=registers, joins_previous=joins)


def indices(flights: list[InFlightOperation]) -> list[int]:
    return sorted(flight.index for flight in flights)


def test_the_first_read_of_a_register_completes_its_load_and_no_other() -> None:
    board = QueueState()
    board.issue(0, use("a", "b"), 0, 0)
    board.issue(1, use("c", moved=8), 0, 0)
    assert board.bytes_per_thread == 12
    assert indices(board.read_registers(RegisterReads(frozenset({"b"})))) == [0]
    assert board.read_registers(RegisterReads(frozenset({"a"}))) == []
    assert (len(board.loads_in_flight), board.bytes_per_thread) == (1, 8)


def test_a_register_filled_again_ends_what_it_held_unless_another_holds_it_too() -> None:
    board = QueueState()
    board.issue(0, use("a", "b"), 0, 0)
    assert board.issue(1, use("a"), 0, 0) == []
    assert indices(board.issue(2, use("b"), 0, 0)) == [0]
    assert sorted(flight.index for flight in board.loads_in_flight) == [1, 2]


def test_loads_of_one_statement_share_their_registers() -> None:
    board = QueueState()
    board.issue(0, use("a"), 0, 0)
    assert board.issue(1, use("a", joins=True), 0, 0) == []
    assert indices(board.read_registers(RegisterReads(frozenset("a")))) == [0, 1]


def test_a_value_that_moves_is_waited_for_where_it_went() -> None:
    board = QueueState()
    board.issue(0, use("a"), 0, 0)
    assert board.move(RegisterMoves((("x", ("a",)),))) == []
    assert board.issue(1, use("a"), 0, 0) == []  # x holds it still
    assert indices(board.read_registers(RegisterReads(frozenset("x")))) == [0]


def test_values_that_swap_names_do_so_at_once() -> None:
    board = QueueState()
    board.issue(0, use("a"), 0, 0)
    board.issue(1, use("b"), 0, 0)
    board.move(RegisterMoves((("a", ("b",)), ("b", ("a",)))))
    assert indices(board.read_registers(RegisterReads(frozenset("a")))) == [1]
    assert indices(board.read_registers(RegisterReads(frozenset("b")))) == [0]


def test_a_move_that_may_not_happen_leaves_what_was_there() -> None:
    board = QueueState()
    board.issue(0, use("a"), 0, 0)
    board.issue(1, use("b"), 0, 0)
    board.move(RegisterMoves((("a", ("b",)),), is_unconditional=False))
    assert indices(board.read_registers(RegisterReads(frozenset("a")))) == [0, 1]
    other = QueueState()
    other.issue(0, use("a"), 0, 0)
    other.issue(1, use("b"), 0, 0)
    assert indices(other.move(RegisterMoves((("a", ("b",)),)))) == [0]


def test_a_load_that_fills_nothing_is_not_followed() -> None:
    board = QueueState()
    assert board.issue(0, use(), 0, 0) == []
    assert board.loads_in_flight == set()


def test_a_wait_leaves_as_many_of_the_youngest_as_it_says() -> None:
    counted = IssuedOperation(Transfer(4, Queue.LOADS), is_load=True)
    board = QueueState()
    for index in range(4):
        board.issue(index, counted if index != 1 else counted._replace(is_load=False), 0, 0)
    assert board.pending(wait(Queue.LOADS, 1)) == (3, None)  # the store takes a place and is none
    assert indices(board.wait(wait(Queue.LOADS, 2))) == [0]
    assert indices(board.wait(wait(Queue.LOADS, 1))) == [2]
    assert indices(board.wait(wait(Queue.LOADS, 1))) == []
    assert indices(board.wait(wait(Queue.LOADS, 0))) == [3]


def test_groups_are_left_by_number_however_many_copies_they_hold() -> None:
    board = QueueState()
    for index in range(4):
        board.issue(index, COPY, 0, 0)
        if index % 2:
            board.commit(GroupCommit(Queue.GROUP))
    assert board.pending(wait(Queue.GROUP, 1)) == (4, 2)
    assert indices(board.wait(wait(Queue.GROUP, 1))) == [0, 1]
    assert indices(board.wait(wait(Queue.GROUP, 1))) == []
    assert indices(board.wait(wait(Queue.GROUP, 0))) == [2, 3]


def test_an_empty_group_is_one() -> None:
    board = QueueState()
    board.issue(0, COPY, 0, 0)
    board.commit(GroupCommit(Queue.GROUP))
    board.commit(GroupCommit(Queue.GROUP))
    assert indices(board.wait(wait(Queue.GROUP, 1))) == [0]


def test_a_scoreboard_of_the_machine_is_cleared_with_all_that_it_counts() -> None:
    board = QueueState()
    for index, counter in enumerate((2, 3, 2)):
        board.issue(index, use()._replace(scoreboard=counter), 0, 0)
    assert indices(board.clear(ScoreboardWait(frozenset({2, 5})))) == [0, 2]
    assert indices(board.clear(ScoreboardWait(frozenset({2})))) == []
    assert indices(board.clear(ScoreboardWait(frozenset({3})))) == [1]


TWO = BarrierArray(0, 2)
TILE = IssuedOperation(Transfer(None, Queue.PHASE, is_per_block=True), is_load=True, array=TWO)
OPENED = GroupCommit(Queue.PHASE, Transfer(512, None), TWO)
PHASE = QueueWait(WaitOp("w", None, Queue.PHASE), TWO)


def test_a_phase_bears_the_bytes_that_its_barrier_expects_once() -> None:
    board = QueueState()
    board.commit(OPENED)
    board.issue(0, TILE, 0, 0)
    board.issue(1, TILE, 0, 0)
    assert (board.bytes_per_block, board.unknown_sizes, board.pending(PHASE)) == (512, 0, (2, 1))
    assert indices(board.wait(PHASE)) == [0, 1]
    assert (board.bytes_per_block, board.pending(PHASE), board.wait(PHASE)) == (0, (0, 0), [])


def test_more_phases_than_barriers_end_the_eldest() -> None:
    board = QueueState()
    ended = []
    for index in range(3):
        board.commit(OPENED)
        ended.append(indices(board.issue(index, TILE, 0, 0)))
    assert ended == [[], [], [0]]
    assert board.pending(PHASE) == (2, 2)


def test_copies_at_barriers_that_are_not_known_are_not_followed() -> None:
    board = QueueState()
    assert board.issue(0, TILE._replace(array=None), 0, 0) == []
    assert board.loads_in_flight == set()
    board.issue(1, TILE, 0, 0)
    assert board.unknown_sizes == 1  # nothing told what its barrier expects
    board.drop_copies([0])
    assert (board.loads_in_flight, board.unknown_sizes) == (set(), 0)


def test_two_states_with_the_same_in_flight_are_alike() -> None:
    one, other = QueueState(), QueueState()
    for clock, board in ((0, one), (50, other)):
        board.issue(3, COPY, clock, 0)
        board.issue(4, use("a"), clock, 0)
    assert one.signature() == other.signature()
    other.read_registers(RegisterReads(frozenset("a")))
    assert one.signature() != other.signature()
    one.read_registers(RegisterReads(frozenset("a")))
    assert one.signature() == other.signature()
    one.commit(GroupCommit(Queue.GROUP))
    assert one.signature() != other.signature()


def test_a_load_that_a_move_gives_a_second_name_flies_until_the_last_name_is_gone() -> None:
    board = QueueState()
    board.issue(0, use("a"), 0, 0)
    assert board.move(RegisterMoves((("b", ("a",)),), is_unconditional=True)) == []
    assert board.move(RegisterMoves((("a", ("x",)),), is_unconditional=True)) == []  # b still holds it
    assert indices(board.move(RegisterMoves((("b", ("x",)),), is_unconditional=True))) == [0]


def test_loads_that_are_complete_leave_no_trace_however_many_regions_they_stood_in() -> None:
    board = QueueState()
    for region in range(9):
        board.issue(region, IssuedOperation(Transfer(4, Queue.USE), is_load=True, registers=("a",)), region, region)
        board.read_registers(RegisterReads(frozenset(("a",))))
    assert pickle.dumps(board.copy()) == pickle.dumps(QueueState())
