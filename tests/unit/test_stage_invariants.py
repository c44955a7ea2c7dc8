"""What the stages of a kernel say together: a departure is named, and a cause beside it is enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from artifact_inspector.analysis.order.region_facts import RegionFacts, RegionNote, RoundFacts
from artifact_inspector.analysis.order.stage_invariants import find_broken_invariants
from artifact_inspector.model import Basis, OrderVerdict, RegionKind, SourceLine, Stage

ROUND = RoundFacts(
    loads=2, first_load=4, last_load=5, first_compute=7, last_compute=7,
    sources=(SourceLine("k.py:3"),), names=("a",), shared=(), distances=(2,),
)  # fmt: skip
LOOP = RegionFacts(
    "loop@7", RegionKind.LOOP, 1, "straight", (3, 9), "L2 M1", "", OrderVerdict.PIPELINED, 2, Basis.SOURCE,
    (), (), (ROUND,), (), 1, 0, 1, "", False, None, (), True,
)  # fmt: skip
SERIAL = replace(LOOP, verdict=OrderVerdict.SERIAL, distance=None, rounds=(replace(ROUND, distances=(0,)),))
NOTE = (RegionNote("a cause"),)


def broken(**stages: RegionFacts) -> list[str]:
    return list(find_broken_invariants({Stage(name): (region,) for name, region in stages.items()}))


def test_stages_that_agree_break_nothing() -> None:
    assert broken(ttir=SERIAL, ttgir=LOOP, llir=LOOP, ptx=LOOP, sass=SERIAL) == []


@pytest.mark.parametrize(
    ("stages", "complaint"),
    [
        ({"ttgir": LOOP, "llir": SERIAL}, "loop@7 at llir: serial, but pipelined(2) at ttgir, and no cause is named"),
        (
            {"llir": LOOP, "ptx": replace(LOOP, distance=4, rounds=(replace(ROUND, distances=(4,)),))},
            "loop@7 at ptx: a load is 4 iterations ahead, but 2 at llir, and no cause is named",
        ),
        (
            {"ptx": replace(LOOP, unroll_factor=3)},
            "loop@7 at ptx: 2 loads of round 1 are no whole number in each of 3 copies",
        ),
        (
            {"ptx": replace(LOOP, kind=RegionKind.STRAIGHT)},
            "loop@7 at ptx: there is no such loop, but it is called pipelined(2)",
        ),
        ({"ptx": replace(LOOP, distance=None)}, "loop@7 at ptx: pipelined without a distance"),
    ],
)
def test_stages_that_contradict_each_other_are_named(stages: dict[str, RegionFacts], complaint: str) -> None:
    assert broken(**stages) == [complaint]


def test_a_cause_beside_it_explains_a_difference() -> None:
    assert broken(ttgir=LOOP, llir=replace(SERIAL, region_notes=NOTE)) == []
    moved = replace(LOOP, distance=4, rounds=(replace(ROUND, distances=(4,)),), region_notes=NOTE)
    assert broken(llir=LOOP, ptx=moved) == []
