"""Why a loop is not pipelined: each condition of the pipeliner by itself, in a loop that meets all others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from artifact_inspector.analysis.order.region_facts import RegionFacts, RoundFacts
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers
from artifact_inspector.analysis.overlap.loop_properties import LoopLoad, LoopProperties
from artifact_inspector.analysis.overlap.pipeline_causes import (
    Evidence,
    LoopHistory,
    PipelineCause,
    find_cause,
    find_lost_pipelining,
)
from artifact_inspector.analysis.overlap.waits import WaitFacts
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Basis, OrderVerdict, Queue, RegionKind, Stage, TritonVersion

CHAIN = (("k.py", 7, 1),)
LOAD = LoopLoad(12, "a (k.py:7)", CHAIN, frozenset({0}), False)
FORM = LoopProperties(11, None, True, None, False, None, None, ((LOAD,),))
EMPTY = LoopBuffers(FORM, (), (), (12,), (), (), (14,), {}, (), (), (), None, {})
ROUND = RoundFacts(1, 12, 12, 14, 14, (), (), (), (0,))
SERIAL = RegionFacts(
    "loop@6", RegionKind.LOOP, 1, "straight", (11, 15), "L1 M1", "", OrderVerdict.SERIAL, None, Basis.SOURCE,
    (), (), (ROUND,), (), 1, 0, 1, "", False, None, (), True,
)  # fmt: skip


def asked(region: RegionFacts = SERIAL, form: LoopProperties | None = FORM, **changes: Any) -> LoopHistory:
    """A loop of a kernel compiled for three stages, with TTIR, TTGIR and PTX."""
    before = replace(EMPTY, properties=form, **changes.pop("before", {}))
    tiles = replace(EMPTY, properties=changes.pop("tiles_form", form), **changes.pop("tiles", {}))
    last = replace(EMPTY, properties=None, **changes.pop("last", {}))
    given: dict[str, Any] = {
        "num_stages": 3,
        "target": parse_target("sm_80"),
        "version": TritonVersion("3.6.0"),
        "facts": {Stage.PTX: region},
        "buffers": {Stage.TTIR: before, Stage.TTGIR: tiles, Stage.PTX: last},
        "stage": Stage.PTX,
    }
    return LoopHistory(**{**given, **changes})


def cause(loop: LoopHistory) -> PipelineCause:
    found, notes = find_cause(loop)
    assert found is not None
    assert notes == ()
    return found


def test_a_loop_that_meets_every_condition_has_no_known_cause() -> None:
    assert find_cause(asked()) == (None, ("no cause was found in the IR",))


@pytest.mark.parametrize("verdict", [OrderVerdict.PIPELINED, OrderVerdict.UNKNOWN, OrderVerdict.GONE])
def test_of_a_loop_that_is_pipelined_or_unknown_nothing_is_asked(verdict: OrderVerdict) -> None:
    assert find_cause(asked(replace(SERIAL, verdict=verdict))) == (None, ())


@pytest.mark.parametrize("verdict", [OrderVerdict.SERIAL, OrderVerdict.INTERLEAVED, OrderVerdict.PARTLY_PIPELINED])
def test_of_every_other_order_a_cause_is_looked_for(verdict: OrderVerdict) -> None:
    assert find_cause(asked(replace(SERIAL, verdict=verdict)))[1] == ("no cause was found in the IR",)


def test_a_loop_without_loads_or_computes_has_nothing_to_pipeline() -> None:
    assert cause(asked(replace(SERIAL, verdict=OrderVerdict.NO_LOADS))) == PipelineCause("the loop itself has no loads")
    assert "feeds a compute" in cause(asked(replace(SERIAL, verdict=OrderVerdict.NO_COMPUTE))).message


def test_a_loop_that_a_compiler_made_is_not_asked() -> None:
    found, notes = find_cause(asked(form=None))
    assert found is None
    assert "not in the source" in notes[0]


@pytest.mark.parametrize("stages", [0, 1])
def test_one_stage_asks_for_none(stages: int) -> None:
    found = cause(asked(num_stages=stages))
    assert found == PipelineCause(f"num_stages {stages} requests no pipelining")
    assert find_cause(asked(num_stages=2))[0] is None


def test_what_the_loop_itself_asks_for_holds_and_its_line_proves_it() -> None:
    found = cause(asked(form=replace(FORM, requested_stages=1)))
    assert found == PipelineCause(
        "the loop itself requests no pipelining: tt.num_stages = 1", (Evidence(Stage.TTIR, 11),)
    )
    assert find_cause(asked(num_stages=1, form=replace(FORM, requested_stages=3)))[0] is None


def test_a_0_that_is_first_seen_in_ttgir_is_no_question() -> None:
    loop = asked(form=replace(FORM, requested_stages=0))
    assert loop.loop_num_stages == 0
    later = replace(loop, buffers={stage: b for stage, b in loop.buffers.items() if stage is not Stage.TTIR})
    assert (later.loop_num_stages, later.effective_num_stages, later.first_stage) == (None, 3, Stage.TTGIR)


@pytest.mark.parametrize(("target", "is_cause"), [("sm_75", True), ("sm_80", False), ("gfx90a", False)])
def test_before_sm_80_there_is_no_asynchronous_copy(target: str, is_cause: bool) -> None:
    found, _ = find_cause(asked(target=parse_target(target)))
    assert (found is not None) is is_cause
    assert found is None or "no asynchronous copy" in found.message


@pytest.mark.parametrize(
    ("version", "target", "stages", "is_cause"),
    [
        ("3.1.0", "gfx942", 2, True), ("3.0.0", "gfx942", 2, True), ("3.1.0", "gfx942", 0, False),
        ("3.2.0", "gfx942", 2, False), ("3.1.0", "sm_80", 2, False),
    ],
)  # fmt: skip
def test_two_releases_pipeline_for_amd_at_zero_stages_only(
    version: str, target: str, stages: int, is_cause: bool
) -> None:
    loop = asked(version=TritonVersion(version), target=parse_target(target), num_stages=stages)
    found, _ = find_cause(loop)
    assert (found is not None) is is_cause
    assert found is None or f"only at num_stages 0, requested were {stages}" in found.message


def test_only_counted_innermost_loops_are_pipelined() -> None:
    at_loop = (Evidence(Stage.TTIR, 11),)
    assert cause(asked(form=replace(FORM, is_counted=False))).evidence == at_loop
    inner = cause(asked(form=replace(FORM, inner_loop_line=13)))
    assert inner.message.startswith("contains another loop")
    assert inner.evidence == (Evidence(Stage.TTIR, 13),)


def test_a_loop_without_a_dot_must_ask_itself() -> None:
    without = {"before": {"matrix": ()}}
    assert cause(asked(**without)).message.startswith("no dot in the loop")
    assert find_cause(asked(form=replace(FORM, requested_stages=3), **without))[0] is None
    rounds = replace(FORM, rounds=())
    assert find_cause(asked(form=rounds, **without))[0] is None


def test_a_value_of_the_iteration_before_the_last_is_seen_where_the_pipeliner_saw_it() -> None:
    old = replace(FORM, unchanged_value_line=19)
    assert cause(asked(tiles_form=old)).evidence == (Evidence(Stage.TTGIR, 19),)
    assert find_cause(asked(form=old, tiles_form=FORM))[0] is None


def load(**changes: Any) -> LoopProperties:
    return replace(FORM, rounds=((LOAD._replace(**changes),),))


def test_a_load_under_a_branch_is_not_pipelined() -> None:
    found = cause(asked(form=load(is_conditional=True)))
    assert found.message.startswith("a (k.py:7) is under a branch of the loop")
    assert found.evidence == (Evidence(Stage.TTIR, 12),)


def test_a_load_that_feeds_no_dot_is_not_unless_the_loop_asks() -> None:
    nowhere = load(levels=frozenset())
    assert cause(asked(form=nowhere)).message == "a (k.py:7) feeds no operand A or B of a dot in the loop"
    assert find_cause(asked(form=replace(nowhere, requested_stages=3)))[0] is None


def test_a_load_at_two_levels_is_not_pipelined() -> None:
    assert "both directly and through loads" in cause(asked(form=load(levels=frozenset({0, 1})))).message


@pytest.mark.parametrize(("level", "stages", "is_cause"), [(1, 2, True), (1, 3, False), (2, 3, True), (0, 1, False)])
def test_a_load_of_addresses_needs_a_stage_of_its_own(level: int, stages: int, is_cause: bool) -> None:
    partly = replace(SERIAL, verdict=OrderVerdict.PARTLY_PIPELINED)
    found, _ = find_cause(asked(partly, form=load(levels=frozenset({level})), num_stages=stages))
    assert (found is not None) is is_cause
    assert found is None or f"num_stages {stages} has no stage for it" in found.message


@pytest.mark.parametrize(("bits", "is_cause"), [(16, True), (31, True), (32, False), (0, False)])
def test_a_load_narrower_than_a_copy_is_not_pipelined(bits: int, is_cause: bool) -> None:
    found, _ = find_cause(asked(tiles={"widths": {CHAIN: (bits, 23)}}))
    assert (found is not None) is is_cause
    assert found is None or found == PipelineCause(
        f"a (k.py:7) is {bits} bits wide, but an asynchronous copy needs at least 32",
        (Evidence(Stage.TTIR, 12), Evidence(Stage.TTGIR, 23)),
    )


def test_a_width_is_found_by_as_much_of_the_chain_as_the_stage_keeps() -> None:
    long = (*CHAIN, ("k.py", 30, 1), ("k.py", 40, 1))
    form = load(chain=long)
    assert cause(asked(form=form, last={"widths": {long[:2]: (16, 40)}})).evidence[1] == Evidence(Stage.PTX, 40)
    assert cause(asked(form=form, last={"widths": {long[:1]: (8, 41)}})).evidence[1] == Evidence(Stage.PTX, 41)
    assert find_cause(asked(form=load(chain=None), last={"widths": {CHAIN: (8, 41)}}))[0] is None


def test_a_cause_must_hold_for_each_load_that_is_late() -> None:
    branch = LOAD._replace(is_conditional=True, line=13, label="b")
    two = replace(FORM, rounds=((LOAD, branch),))
    both_late = replace(SERIAL, rounds=(replace(ROUND, distances=(0, 0)),))
    found, notes = find_cause(asked(both_late, form=two))
    assert found is None
    assert notes == ("b is under a branch of the loop, and only unconditional loads are pipelined",
                     "no cause was found in the IR")  # fmt: skip
    one_late = replace(SERIAL, rounds=(replace(ROUND, distances=(1, 0)),))
    assert cause(asked(one_late, form=two)).evidence == (Evidence(Stage.TTIR, 13),)


def test_loads_that_cannot_be_told_apart_have_no_cause() -> None:
    two = replace(FORM, rounds=((LOAD, LOAD._replace(is_conditional=True)),))
    assert find_cause(asked(form=two))[0] is None
    assert find_cause(asked(form=replace(FORM, rounds=((LOAD,), (LOAD,)))))[0] is None


# -- what is lost on the way -----------------------------------------------------------

PLANNED = {"waits": (WaitFacts(21, "ttg.async_wait", 2, Queue.GROUP),), "copies": (20, 22), "commits": {Queue.GROUP: 2}}
DRAINED = {
    "waits": (WaitFacts(50, "cp.async.wait_group", 0, Queue.GROUP),),
    "copies": (48,),
    "commits": {Queue.GROUP: 2},
}


def test_a_wait_for_all_where_ttgir_left_some_in_flight_is_a_loss() -> None:
    found = find_lost_pipelining(asked(tiles=PLANNED, last=DRAINED))
    assert found == PipelineCause(
        "TTGIR leaves 2 ÷ 2 = 1 iterations in flight at its wait, but ptx waits for all of them",
        (Evidence(Stage.TTGIR, 21), Evidence(Stage.PTX, 50)),
    )


def test_nothing_is_lost_where_none_was_planned_or_some_stay() -> None:
    stays = {**DRAINED, "waits": (WaitFacts(50, "cp.async.wait_group", 1, Queue.GROUP),)}
    assert find_lost_pipelining(asked(tiles=PLANNED, last=stays)) is None
    zero = {**PLANNED, "waits": (WaitFacts(21, "ttg.async_wait", 0, Queue.GROUP),)}
    assert find_lost_pipelining(asked(tiles=zero, last=DRAINED)) is None
    assert find_lost_pipelining(asked(tiles={**PLANNED, "commits": {}}, last=DRAINED)) is None


def test_without_ttgir_or_behind_it_nothing_can_be_lost() -> None:
    loop = asked(tiles=PLANNED, last=DRAINED)
    assert find_lost_pipelining(replace(loop, buffers={Stage.PTX: loop.last_buffers})) is None
    assert find_lost_pipelining(replace(loop, stage=Stage.TTGIR, facts={Stage.TTGIR: SERIAL})) is None


def test_what_is_left_of_a_loop_that_was_made_one_with_its_inner_loop_says_so() -> None:
    found, notes = find_cause(asked(form=replace(FORM, requests_flattening=True)))
    assert found is None
    assert notes == ("flattened with the loop inside it: this loop runs only if the inner one has no iterations",)
