"""Where buffers are placed, worked out by hand from Triton's algorithm."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.shared.allocator import BufferRequest, place_buffers


def test_small_buffers_fill_the_gap_beside_a_big_one() -> None:
    # a lives 0–4 and takes 100 bytes at 0; b and c live one after the other and share what follows.
    placed = place_buffers([BufferRequest(100, 1, 0, 4), BufferRequest(50, 1, 0, 2), BufferRequest(50, 1, 2, 4)])
    assert (placed.offsets, placed.size) == ((0, 100, 100), 150)


def test_partitions_never_share_although_their_lines_do_not_meet() -> None:
    apart = [BufferRequest(64, 16, 0, 2, group=1, partition=0), BufferRequest(64, 16, 4, 6, group=1, partition=1)]
    assert place_buffers(apart).size == 128
    assert place_buffers([request._replace(group=None) for request in apart]).size == 64


def test_nothing_takes_no_room() -> None:
    assert place_buffers([]) == ((), 0)


def test_a_buffer_that_begins_as_another_ends_takes_its_place() -> None:
    assert place_buffers([BufferRequest(8, 1, 0, 2), BufferRequest(8, 1, 2, 4)]) == ((0, 0), 8)


def test_buffers_that_share_one_moment_do_not_share_a_place() -> None:
    assert place_buffers([BufferRequest(8, 1, 0, 3), BufferRequest(8, 1, 2, 4)]) == ((0, 8), 16)


@pytest.mark.parametrize(("bytes_before", "offset"), [(15, 16), (16, 16), (17, 32)])
def test_a_place_is_the_next_multiple_of_the_alignment(bytes_before: int, offset: int) -> None:
    found = place_buffers([BufferRequest(bytes_before, 1, 0, 2), BufferRequest(4, 16, 0, 2)])
    assert found == ((0, offset), offset + 4)


def test_the_largest_comes_first_and_equals_as_they_come() -> None:
    requests = [BufferRequest(4, 1, 0, 2), BufferRequest(8, 1, 0, 2), BufferRequest(8, 1, 0, 2)]
    assert place_buffers(requests) == ((16, 0, 8), 20)


def test_buffers_are_placed_as_they_come_where_size_does_not_count() -> None:
    requests = [BufferRequest(4, 1, 0, 2), BufferRequest(8, 1, 0, 2), BufferRequest(8, 1, 0, 2)]
    assert place_buffers(requests, by_size=False) == ((0, 4, 12), 20)


def test_a_buffer_that_fits_no_single_slot_waits_for_those_that_do() -> None:
    # The first slot behind a is free from 0 to 2 alone, that behind b from 2 to 4: c (0 to 4) lies past both.
    requests = [BufferRequest(8, 1, 0, 2), BufferRequest(4, 1, 2, 4), BufferRequest(2, 1, 0, 4)]
    assert place_buffers(requests) == ((0, 0, 8), 10)


def test_two_that_were_moved_to_one_place_are_moved_apart() -> None:
    # b and c come past a at the alignment of each, and meet there: the second time c goes past b.
    requests = [BufferRequest(16, 1, 0, 6), BufferRequest(8, 32, 0, 4), BufferRequest(8, 32, 2, 6)]
    found = place_buffers(requests)
    assert found == ((0, 32, 64), 72)


@pytest.mark.parametrize(
    ("group", "partition", "size"),
    [(1, 1, 128), (1, 0, 64), (2, 1, 64), (None, None, 64)],
    ids=["another partition", "the same partition", "another operation", "outside"],
)
def test_only_partitions_of_one_operation_run_beside_each_other(
    group: int | None, partition: int | None, size: int
) -> None:
    first = BufferRequest(64, 16, 0, 2, group=1, partition=0)
    assert place_buffers([first, BufferRequest(64, 16, 4, 6, group, partition)]).size == size


def test_a_buffer_in_conflict_goes_behind_the_farthest_of_those() -> None:
    # Each partition's buffer was placed at 0, as their times do not meet; of three, the third goes past both.
    requests = [BufferRequest(size, 1, 2 * at, 2 * at + 1, 1, at) for at, size in enumerate((64, 32, 16))]
    assert place_buffers(requests) == ((0, 64, 96), 112)
