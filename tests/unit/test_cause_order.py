"""What a diagnosis says of a cause that takes more time than the first one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.diagnosis.attribution import Attribution
from artifact_inspector.diagnosis.cause import CauseKind
from artifact_inspector.diagnosis.diagnose import describe_first, explain_order, name_second, urgency_of

FIRST = Attribution(CauseKind.UNCOALESCED, "k.py:3", 0.2, 0.2, "r")


@pytest.mark.parametrize(
    ("kind", "share", "words"),
    [
        (CauseKind.SERIAL_LOOP, 0.3, "the repair of the first cause often shrinks it"),
        (CauseKind.TYPE_CONVERSION, 0.3, "mixed precision needs most conversions"),
        (CauseKind.SERIAL_LOOP, 0.2, ""),
        (CauseKind.TYPE_CONVERSION, 0.1, ""),
        (CauseKind.SERIAL_LOOP, None, ""),
    ],
)
def test_a_larger_share_that_is_not_first_is_explained(kind: CauseKind, share: float | None, words: str) -> None:
    explained = explain_order(Attribution(kind, "k.py:4", share, share or 0.0, "r"), FIRST)
    assert explained == (f"; listed later, since {words}" if words else "")
    assert Attribution(kind, "k.py:4", share, share or 0.0, "r").as_cause(explained).text.endswith(f"{words or 'r'}.")


@pytest.mark.parametrize(
    ("kind", "line", "share", "named"),
    [
        (CauseKind.DIVISION, "k.py:4", 0.18, "as large: k.py:4 (18%)"),
        (CauseKind.DIVISION, "k.py:4", 0.16, "also: k.py:4 (16%)"),
        (CauseKind.DIVISION, "k.py:3", 0.2, "as large: there (20%)"),
        (CauseKind.DIVISION, "k.py:4", 0.09, ""),
        (CauseKind.NARROW_ACCESS, "k.py:4", 0.2, ""),
        (CauseKind.DIVISION, "k.py:4", None, ""),
    ],
)
def test_the_first_sentence_names_two_causes_of_a_similar_share(
    kind: CauseKind, line: str, share: float | None, named: str
) -> None:
    second = Attribution(kind, line, share, share or 0.0, "every iteration divides; do not")
    note = name_second([FIRST, second], [FIRST, second])
    assert note == (f"; {named}, every iteration divides" if named else "")


def test_what_to_do_gives_way_to_a_second_cause() -> None:
    first = replace(FIRST, reason=f"{'word ' * 17}end; do not")
    second = Attribution(CauseKind.DIVISION, "k.py:4", 0.18, 0.18, "every iteration divides")
    text = describe_first([first, second], [first, second]).text
    assert text.endswith("end; as large: k.py:4 (18%), every iteration divides.")
    longer = replace(first, reason=f"{'word ' * 24}end; do not")
    assert describe_first([longer, second], [longer, second]).text.endswith("end; do not.")


def test_a_single_cause_has_no_equal() -> None:
    assert name_second([FIRST], [FIRST]) == ""


@pytest.mark.parametrize(
    ("share", "note"),
    [
        (0.12, "; also: k.py:4 (12%), every iteration masks"),
        (0.06, "; also: k.py:4 (6%), every iteration masks"),
        (0.04, ""),
    ],
)
def test_a_generic_cause_comes_with_the_first_specific_one(share: float, note: str) -> None:
    first = Attribution(CauseKind.OCCUPANCY, None, 0.4, 0.4, "r")
    generic = Attribution(CauseKind.TAIL_WAVE, None, 0.2, 0.2, "r")
    specific = Attribution(CauseKind.MASKS, "k.py:4", share, share, "every iteration masks; do not")
    ordered = [first, generic, specific]
    assert name_second(ordered, ordered) == note


@pytest.mark.parametrize(
    ("share", "order"), [(0.3, ["narrow-access", "occupancy"]), (0.15, ["occupancy", "narrow-access"])]
)
def test_narrow_accesses_come_before_the_occupancy_that_they_lower(share: float, order: list[str]) -> None:
    causes = [
        Attribution(CauseKind.OCCUPANCY, None, 0.4, 0.4, "r"),
        Attribution(CauseKind.NARROW_ACCESS, "k.py:2", share, share, "r"),
    ]
    assert [one.kind.value for one in sorted(causes, key=lambda one: -urgency_of(one, causes))] == order


@pytest.mark.parametrize(
    ("line", "share", "order"),
    [
        ("k.py:2", 0.5, ["redundant-load", "uncoalesced"]),
        ("k.py:2", 0.3, ["uncoalesced", "redundant-load"]),
        ("k.py:9", 0.5, ["uncoalesced", "redundant-load"]),
    ],
)
def test_lanes_that_share_elements_scatter(line: str, share: float, order: list[str]) -> None:
    """On an H200, loading each word once made a dequantisation 5.3 times as fast, with both causes on one line."""
    causes = [
        Attribution(CauseKind.UNCOALESCED, "k.py:2", 0.8, 0.8, "r"),
        Attribution(CauseKind.REDUNDANT_LOAD, line, share, share, "r"),
    ]
    assert [one.kind.value for one in sorted(causes, key=lambda one: -urgency_of(one, causes))] == order
