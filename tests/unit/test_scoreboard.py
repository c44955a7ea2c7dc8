"""What is in flight at one point of a program, queue by queue."""

from __future__ import annotations

from artifact_inspector.analysis.overlap.memory_events import Commit, Issue, WaitFor
from artifact_inspector.analysis.overlap.scoreboard import Scoreboard
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
