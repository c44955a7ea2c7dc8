"""A region at one stage as it is printed, and the letters of its events."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handwritten import made

from artifact_inspector.analysis.order.region_facts import (
    RegionFacts,
    RoundFacts,
    RoundPair,
    RoundPlacement,
    signature_of,
)
from artifact_inspector.model import Basis, EventKind, OrderVerdict, PairOrder, RegionKind, SourceLine

PLAIN = RegionFacts(
    "loop@7", RegionKind.LOOP, 1, "straight", (3, 9), "L2 F10 L1", "", OrderVerdict.INTERLEAVED, None, Basis.SOURCE,
    (), (), (), (), 0, 0, 1, "", False, None, (), True, {"global_load": 3, "float": 10, "shuffle": 32},
)  # fmt: skip


@pytest.mark.parametrize(
    ("f", "g", "letter"),
    [
        (0.0, 1.0, PairOrder.INTERLEAVED),
        (1.0, 0.0, PairOrder.CLUSTERED),
        (0.5, 0.5, PairOrder.MIXED),
        (0.0, 0.0, PairOrder.MIXED),
    ],
)
def test_two_rounds_are_in_order_where_all_loads_are(f: float, g: float, letter: PairOrder) -> None:
    assert RoundPair(f, g).order is letter


def test_events_of_one_kind_in_a_row_are_one_run_and_others_are_passed_over() -> None:
    code = made("L L I F m F b B L ?")
    assert signature_of(code.function.instructions) == "L2 F2 B1 L1 ?1"
    assert signature_of(()) == ""


def test_events_of_every_kind_are_counted_those_without_a_letter_too() -> None:
    assert PLAIN.count(EventKind.GLOBAL_LOAD) == 3
    assert PLAIN.count(EventKind.FLOAT) == 10
    assert PLAIN.count(EventKind.SHUFFLE) == 32
    assert PLAIN.count(EventKind.BARRIER) == 0


@pytest.mark.parametrize(
    ("changes", "phrase"),
    [
        ({}, "interleaved"),
        ({"verdict": OrderVerdict.PIPELINED, "distance": 2}, "pipelined(2)"),
        ({"verdict": OrderVerdict.PIPELINED, "distance": (1, 3)}, "pipelined(1–3)"),
        ({"verdict": OrderVerdict.PIPELINED, "distance": (2, 2)}, "pipelined(2)"),
        ({"verdict": OrderVerdict.PIPELINED, "distance": 0}, "pipelined(0)"),
        ({"verdict": OrderVerdict.GROUPED, "groups": "{1 2}{3}"}, "grouped {1 2}{3}"),
        ({"unroll_factor": 4}, "interleaved ×4"),
        (
            {
                "verdict": OrderVerdict.MIXED,
                "pairs": (RoundPair(1.0, 0.0), RoundPair(0.25, 1 / 3), RoundPair(0.5, 0.0)),
            },
            "mixed (f=0.25 g=0.33)",
        ),
    ],
)
def test_a_verdict_is_printed_with_its_figures(changes: dict[str, object], phrase: str) -> None:
    assert replace(PLAIN, **changes).phrase == phrase  # type: ignore[arg-type]


def test_the_layout_leaves_the_copies_out() -> None:
    assert replace(PLAIN, unroll_factor=4).verdict_text == "interleaved"


def test_what_is_left_of_a_loop_stands_in_straight_code_under_its_name() -> None:
    assert not PLAIN.is_dissolved_loop
    assert replace(PLAIN, kind=RegionKind.STRAIGHT).is_dissolved_loop
    assert not replace(PLAIN, kind=RegionKind.STRAIGHT, id="helper/straight").is_dissolved_loop


def test_a_round_tells_its_callers_where_one_was_inlined() -> None:
    inlined, plain = SourceLine(("h.py:3", "k.py:9")), SourceLine(("k.py:4",))
    found = RoundFacts(2, 1, 2, 3, 4, (inlined, plain), (), (), ())
    assert found.called_from == (("k.py:9",), ())
    assert replace(found, sources=(plain,)).called_from == ()
    assert found.placement == RoundPlacement(2, 1, 2, 3, 4)
