"""Two signatures over each other: nothing is lost, and left and right are treated alike."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from artifact_inspector.comparison.alignment import MOST_RUNS, SignatureColumn, align

runs = st.builds("{}{}".format, st.sampled_from("LFXWBMsStRC"), st.integers(min_value=1, max_value=300))
signatures = st.lists(runs, max_size=30).map(" ".join)


def flipped(columns: tuple[SignatureColumn, ...] | None) -> list[tuple[str, str]] | None:
    return None if columns is None else [(column.right, column.left) for column in columns]


def test_runs_of_one_letter_stand_in_one_column() -> None:
    columns = align("L2 F2 L2 F3 R1", "L4 X1 F2 X1 F3 R1")
    assert columns is not None
    together = [tuple(column) for column in columns if column.left and column.right]
    assert together == [("L2", "L4"), ("F2", "F2"), ("F3", "F3"), ("R1", "R1")]
    assert [column.left for column in columns if not column.right] == ["L2"]
    assert [column.right for column in columns if not column.left] == ["X1", "X1"]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("", "", []),
        ("L1", "", [("L1", "")]),
        ("", "L1", [("", "L1")]),
        ("L1", "L16", [("L1", "L16")]),
        ("L1", "F1", [("L1", ""), ("", "F1")]),
    ],
)
def test_small_signatures_are_aligned_as_one_would_by_hand(
    left: str, right: str, expected: list[tuple[str, str]]
) -> None:
    columns = align(left, right)
    assert columns is not None
    assert sorted(map(tuple, columns)) == sorted(expected)


@given(signatures, signatures)
@example("L2 F2 L2", "L4 X1 F2")
def test_each_side_of_the_columns_spells_its_signature_again(left: str, right: str) -> None:
    columns = align(left, right)
    assert columns is not None
    assert " ".join(column.left for column in columns if column.left) == left
    assert " ".join(column.right for column in columns if column.right) == right


@given(signatures, signatures)
def test_a_column_holds_runs_of_one_letter_and_none_is_empty(left: str, right: str) -> None:
    for column in align(left, right) or ():
        assert column.left or column.right
        assert not (column.left and column.right) or column.left[0] == column.right[0]


@given(signatures, signatures)
@example("L1 F1", "F1 L1")
@example("L1 F1", "L2 F1")
def test_the_other_way_round_is_the_mirror_image(left: str, right: str) -> None:
    assert flipped(align(left, right)) == [tuple(column) for column in align(right, left) or ()]


@given(signatures)
def test_a_signature_stands_over_itself(signature: str) -> None:
    assert align(signature, signature) == tuple(SignatureColumn(run, run) for run in signature.split())


def test_signatures_too_long_to_read_are_not_aligned() -> None:
    most = " ".join(["L1", "F1"] * (MOST_RUNS // 2))
    assert align(most, "L1") is not None
    assert align(f"{most} L1", "L1") is None
    assert align("L1", f"{most} L1") is None
