"""Trips of loops that run side by side count and touch what they do one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from artifact_inspector.execution.interpreter import induction, loops, state_changes
from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.interpreter.affine import AffineValue
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_partition import as_array_value
from artifact_inspector.execution.interpreter.launch_log import LaunchLog
from artifact_inspector.execution.interpreter.loops import LoopAccelerator
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import InputNames, UnknownValue
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors
from artifact_inspector.execution.sass.environment import SassEnvironment
from artifact_inspector.execution.sass.semantics import read_program
from artifact_inspector.execution.simulation import UnfinishedCtas, run_machines
from artifact_inspector.formats import format_of
from artifact_inspector.model import Stage
from artifact_inspector.model.text import SourceText

HEAD = '\t.headerflags\t@"EF_CUDA_SM90"\n\t.type\tk,@function\nk:\n'
PLACE = "S2R R0, SR_TID.X\nS2R R1, SR_CTAID.X\n"
ADDRESS = """
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    IMAD.WIDE R2, R0, 0x4, R2
    IMAD R10, R1, 0x2000, RZ
    IADD3 R2, P0, R2, R10, RZ
    IADD3.X R3, RZ, R3, RZ, P0, !PT
    MOV R8, RZ
"""
AGAIN = """
    IADD3 R2, P0, R2, 0x80, RZ
    IADD3.X R3, RZ, R3, RZ, P0, !PT
    IADD3 R8, R8, 0x1, RZ
    ISETP.LT.AND P1, PT, R8, 0x28, PT
    @P1 BRA `(.L_1)
"""
"""Forty trips, each 128 bytes farther on."""

LOOPS = {
    "a sum grows": ".L_1:\nLDG.E R4, desc[UR4][R2.64]",
    "a ring of three buffers goes round": """
    .L_1:
    ISETP.GT.AND P2, PT, R5, 0x1, PT
    IADD3 R6, R5, 0x1, RZ
    SEL R5, R6, RZ, !P2
    IMAD R7, R5, 0x404, R10
    LDG.E R4, desc[UR4][R2.64]
    STS.128 [R7], R12
    """,
    "a guard turns off": """
    .L_1:
    ISETP.LT.AND P2, PT, R8, 0x1e, PT
    @P2 LDG.E R4, desc[UR4][R2.64]
    """,
    "a word is spilled": """
    .L_1:
    LDL R6, [R1+0x8]
    IADD3 R6, R6, 0x4, RZ
    STL [R1+0x8], R6
    STG.E desc[UR4][R2.64], R6
    """,
    "some trips copy nothing, and some lanes write zeros": """
    .L_1:
    ISETP.LT.AND P2, PT, R8, 0x1e, PT
    ISETP.NE.AND P3, PT, R0, 0x5, P2
    IMAD R7, R0, 0x10, RZ
    LDGSTS.E.128 [R7], desc[UR4][R2.64], P2
    LDGSTS.E.BYPASS.128 [R7+0x400], desc[UR4][R2.64], P3
    @P2 LDGSTS.E.128 [R7], desc[UR4][R2.64]
    """,
    "half of a register is what is left of an address": """
    .L_1:
    PRMT R9, R9, 0x7632, RZ
    IMAD R7, R9, 0x4, RZ
    LDS R4, [R7]
    IMAD R9, R8, R8, R0
    """,
    "what grows as no sum does goes on to another": """
    .L_1:
    LDS R4, [R7]
    IMAD R7, R9, 0x4, RZ
    LOP3.LUT R7, R7, 0x1ffc, RZ, 0xc0, !PT
    IMAD R9, R8, R8, R0
    """,
    "a loop stands in a loop": """
    .L_1:
    MOV R11, RZ
    .L_2:
    LDS R4, [R11]
    IADD3 R11, R11, 0x4, RZ
    ISETP.LT.AND P3, PT, R11, 0x40, PT
    @P3 BRA `(.L_2)
    LDG.E R4, desc[UR4][R2.64]
    """,
}
"""Loops of which trips can run side by side."""
ONE_BY_ONE = ("a loop stands in a loop", "a guard turns off", "some trips copy nothing, and some lanes write zeros")
"""Those of which too few trips in a row are alike."""
REFUSING = {
    "a number grows threefold": """
    .L_1:
    IMAD R9, R9, 0x3, 0x1
    LOP3.LUT R6, R9, 0x1ffc, RZ, 0xc0, !PT
    LDS R4, [R6]
    """,
    "every seventh trip goes another way": """
    .L_1:
    IMAD.HI.U32 R6, R8, 0x24924925, RZ
    IMAD R6, R6, -0x7, R8
    ISETP.NE.AND P2, PT, R6, RZ, PT
    @P2 BRA `(.L_3)
    LDG.E R4, desc[UR4][R2.64]
    .L_3:
    NOP
    """,
    "what was given is written and read again": """
    .L_1:
    LDG.E R4, desc[UR4][R2.64]
    LDG.E R6, desc[UR4][R2.64+0x80]
    ISETP.GE.AND P2, PT, R8, 0x14, PT
    @P2 STG.E desc[UR4][R2.64], R4
    LOP3.LUT R6, R6, 0x7c, RZ, 0xc0, !PT
    LDS R7, [R6]
    """,
    "the last trips leave the tensor": """
    .L_1:
    LDG.E R4, desc[UR4][R2.64+0x3000]
    """,
    "known numbers go through shared memory": """
    .L_1:
    IMAD R6, R0, 0x4, RZ
    STS [R6], R8
    LDS R7, [R6]
    IMAD R7, R7, 0x4, RZ
    LDS R4, [R7]
    """,
    "a trip reads what the one before stored": """
    IMAD R6, R0, 0x4, RZ
    STS [R6], RZ
    .L_1:
    LDS R7, [R6]
    IMAD R7, R7, 0x4, RZ
    LDS R4, [R7]
    IMAD R7, R8, R0, RZ
    STS [R6], R7
    """,
    "a number begins anew after twenty trips": """
    .L_1:
    IADD3 R9, R9, 0x4, RZ
    ISETP.LT.AND P2, PT, R9, 0x50, PT
    SEL R9, R9, RZ, P2
    IMAD R7, R9, R0, RZ
    LDS R4, [R7]
    """,
    "a word is spilled late": """
    .L_1:
    ISETP.GE.AND P2, PT, R8, 0x14, PT
    LDS R4, [R8]
    @P2 STL [R1+0x10], R8
    """,
    "what is missed first is missed in a later trip": """
    .L_1:
    ISETP.GE.AND P2, PT, R8, 0x1e, PT
    ISETP.GE.AND P3, PT, R8, 0x14, PT
    @P2 S2R R7, SR_CLOCKLO
    @P3 S2R R7, SR_GLOBALTIMERLO
    MOV R7, RZ
    """,
    "lanes leave one after the other": """
    .L_1:
    LDG.E R4, desc[UR4][R2.64]
    ISETP.GT.AND P2, PT, R8, R0, PT
    @P2 EXIT
    """,
}


MANY = 70
"""CTAs whose registers are kept as sums of what CTAs and lanes have."""


class Ran(NamedTuple):
    counts: StepCounters
    memory: GlobalMemory
    ended: list[UnfinishedCtas]
    way: list[int]
    registers: dict[str, Any]
    proven: list[int]
    """Trips that ran side by side, each time."""
    names: tuple[str, ...]
    stream: AccessStream
    log: LaunchLog


def run(
    body: str, ctas: int, loops: LoopAccelerator | None, monkeypatch: pytest.MonkeyPatch, steps: int = 20_000
) -> Ran:
    lines, at = [HEAD], 0
    for line in (PLACE + ADDRESS + body).strip().splitlines():
        text = line.strip()
        if text.endswith(":"):
            lines.append(text + "\n")
        elif text:
            lines.append(f"        /*{at:04x}*/                   {text} ;\n")
            at += 16
    lines.append(f"        /*{at:04x}*/                   EXIT ;\n")
    module = format_of(Stage.SASS).parse(SourceText("k.sass", "".join(lines)), Stage.SASS)
    program = read_program(module, "k", parameters=[(0x210, 8)])
    assert program.unsupported_opcodes == ()
    tensor = Tensor((2048 * (ctas + 1),), "i32", values=tuple(range(2048 * (ctas + 1))))
    launch = place_tensors(KernelLaunch((ctas, 1, 1), {"a": tensor}))
    names, counts, memory = InputNames(), StepCounters(len(program.steps), steps), GlobalMemory(launch)
    stream = memory.footprints = AccessStream(launch, 1 << 12)
    environment = SassEnvironment(program, launch, [("a", launch.arguments["a"])], 64, names)
    machine = Machine(program, np.arange(ctas), 64, memory, counts, names, environment, loops)
    machine.registers.update(dict.fromkeys(("R5", "R9", "UR4", "UR5"), 0))
    log = machine.log = LaunchLog(counts, is_exact=True)
    machine.trace = []
    proven: list[int] = []
    commit = induction.IterationHypothesis._commit

    def note(guess: induction.IterationHypothesis, *given: Any) -> None:
        proven.append(guess.count)
        commit(guess, *given)

    monkeypatch.setattr(induction.IterationHypothesis, "_commit", note)
    ended = run_machines(machine)
    monkeypatch.undo()
    return Ran(counts, memory, ended, [*log.trace_of(0)], machine.registers, proven, names.names_in(-1), stream, log)


def assert_same(one: Ran, other: Ran, *, joined: bool = False) -> None:
    took = {"arrays", "spent"} if joined else {"arrays"}
    for name in StepCounters.__dataclass_fields__.keys() - took:  # what it took, not what it is
        assert getattr(one.counts, name) == getattr(other.counts, name), name
    for mine, its in zip(one.memory.regions, other.memory.regions, strict=True):
        mine.mark_pending()
        its.mark_pending()
        assert (mine.read_marks == its.read_marks).all()
        assert (mine.written_marks == its.written_marks).all()
        assert (mine.content is None) is (its.content is None)
    assert [(end.step.index, end.ctas, end.reasons) for end in one.ended] == [
        (end.step.index, end.ctas, end.reasons) for end in other.ended
    ]
    assert one.way == other.way
    assert one.names == other.names
    if joined:  # the machine that began is not the one that ended
        return
    assert one.registers.keys() == other.registers.keys()
    for name, value in one.registers.items():
        value, was = as_array_value(value), as_array_value(other.registers[name])
        if isinstance(value, UnknownValue):
            assert isinstance(was, UnknownValue), name
            assert np.all(value.unknown_bits == was.unknown_bits), name
            assert value.missing_inputs == was.missing_inputs, name
        else:
            assert np.array_equal(*np.broadcast_arrays(value, was)), name


@pytest.mark.parametrize(
    "ctas", [pytest.param(1, marks=pytest.mark.exhaustive), 2, pytest.param(MANY, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", LOOPS)
def test_what_is_proven_is_what_runs_one_by_one(name: str, ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(LOOPS[name] + AGAIN, ctas, LoopAccelerator(), monkeypatch)
    assert_same(found, run(LOOPS[name] + AGAIN, ctas, None, monkeypatch))
    assert max(found.proven, default=0) >= 20 or name in ONE_BY_ONE


@pytest.mark.parametrize(
    "ctas", [pytest.param(1, marks=pytest.mark.exhaustive), 2, pytest.param(MANY, marks=pytest.mark.long)]
)
@pytest.mark.parametrize("name", REFUSING)
def test_what_cannot_be_proven_runs_one_by_one(name: str, ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = REFUSING[name] + AGAIN
    assert_same(run(body, ctas, LoopAccelerator(), monkeypatch), run(body, ctas, None, monkeypatch))


ORDERED = ("a sum grows", "a guard turns off", "some trips copy nothing, and some lanes write zeros")
TURNS = ".L_1:\nIADD3 R9, R8, R1, RZ\nISETP.LT.AND P2, PT, R9, 0x1e, PT\n@P2 LDG.E R4, desc[UR4][R2.64]\n" + (
    "LDG.E R4, desc[UR4][R2.64+0x800]\n"
)
"""A load that every CTA skips from another trip on, beside one that none skips."""


def order_of(ran: Ran, cta: int) -> list[tuple[int, ...]]:
    events = ran.stream.events()
    rows = np.stack([events.positions, events.steps, events.samples], axis=1)[events.ctas == cta]
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("ctas", [2, pytest.param(MANY, marks=pytest.mark.long)])
@pytest.mark.parametrize("body", [*(LOOPS[name] for name in ORDERED), TURNS])
def test_accesses_are_in_the_order_of_one_cta_whose_trips_run_one_by_one(
    body: str, ctas: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, alone = (run(body + AGAIN, *how, monkeypatch) for how in ((ctas, LoopAccelerator()), (1, None)))
    assert found.proven or body in map(LOOPS.get, ONE_BY_ONE)
    assert order_of(found, 0) == order_of(alone, 0) != []
    assert found.stream.lengths[0] == alone.stream.lengths[0]
    together = run(body + AGAIN, ctas, None, monkeypatch)
    assert found.stream.lengths.tolist() == together.stream.lengths.tolist()
    assert all(order_of(found, cta) == order_of(together, cta) for cta in range(ctas))


def test_what_the_last_trip_left_is_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    body = """
    .L_1:
    IADD3 R8, R8, 0x1, RZ
    ISETP.LT.AND P1, PT, R8, 0x28, PT
    @!P1 BRA `(.L_9)
    IMAD R11, R8, R0, RZ
    LDS R4, [R11]
    BRA `(.L_1)
    .L_9:
    NOP
    """
    found = run(body, 1, LoopAccelerator(), monkeypatch)
    assert_same(found, run(body, 1, None, monkeypatch))
    assert max(found.proven) >= 20
    assert found.registers["R11"].ravel()[:3].tolist() == [0, 39, 78]


@pytest.mark.parametrize("ctas", [1, 3, pytest.param(MANY, marks=pytest.mark.long)])
def test_ctas_that_go_round_differently_often(ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = LOOPS["a sum grows"] + AGAIN.replace("R8, 0x28", "R8, R10").replace("0x1, RZ", "0x100, RZ")
    assert_same(run(body, ctas, LoopAccelerator(), monkeypatch), run(body, ctas, None, monkeypatch), joined=True)


TILES = """
    .L_1:
    ISETP.GT.AND P2, PT, R5, 0x1, PT
    IADD3 R6, R5, 0x1, RZ
    SEL R5, R6, RZ, !P2
    IMAD R7, R5, 0x404, R10
    LDG.E R4, desc[UR4][R2.64]
    STS.128 [R7], R12
    IADD3 R2, P0, R2, 0x10, RZ
    IADD3.X R3, RZ, R3, RZ, P0, !PT
    IADD3 R8, R8, 0x1, RZ
    ISETP.NE.AND P3, PT, R8, 0x28, PT
    @P3 BRA `(.L_4)
    MOV R8, RZ
    IADD3 R9, R9, 0x1, RZ
    IMAD R11, R9, R9, RZ
    IMAD R11, R11, -0x8, RZ
    IADD3 R2, R2, R11, RZ
    .L_4:
    ISETP.LT.AND P1, PT, R9, 0xa, PT
    @P1 BRA `(.L_1)
"""
"""Ten tiles of forty trips around a ring of three buffers; the next tile begins where no sum leads."""


@pytest.mark.parametrize(
    "ctas", [pytest.param(1, marks=pytest.mark.exhaustive), 2, pytest.param(MANY, marks=pytest.mark.long)]
)
def test_most_trips_of_every_tile_run_side_by_side(ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(TILES, ctas, LoopAccelerator(), monkeypatch)
    assert_same(found, run(TILES, ctas, None, monkeypatch))
    assert sum(found.proven) >= 0.85 * 10 * 40


START = """
    IMAD R6, R0, 0x4, RZ
    STS [R6], R0
    STL [R5+0x8], R0
"""
PARTING = """
    .L_1:
    IADD3 R12, R1, R8, RZ
    LOP3.LUT R12, R12, 0x3, RZ, 0xc0, !PT
    MOV R11, RZ
    .L_2:
    LDG.E R4, desc[UR4][R2.64]
    IADD3 R11, R11, 0x1, RZ
    ISETP.LE.AND P3, PT, R11, R12, PT
    @P3 BRA `(.L_2)
    IMAD R6, R0, 0x4, RZ
    LDS R7, [R6]
    LOP3.LUT R7, R7, 0x7f, RZ, 0xc0, !PT
    IMAD R7, R7, R11, R12
    STS [R6], R7
    LDL R9, [R5+0x8]
    LOP3.LUT R9, R9, 0x7c, RZ, 0xc0, !PT
    LDS R4, [R9]
    STL [R5+0x8], R7
"""
"""In every trip CTAs go round an inner loop differently often, and use what they had before they parted."""


@pytest.mark.parametrize("ctas", [2, 5, MANY])
def test_ctas_that_part_in_every_trip_meet_again(ctas: int, monkeypatch: pytest.MonkeyPatch) -> None:
    body = START + PARTING + AGAIN.replace("0x28", "0x10")
    found, alone = (run(body, ctas, loops, monkeypatch, 100_000) for loops in (LoopAccelerator(), None))
    assert_same(found, alone, joined=True)
    assert found.counts.spent < 1500 < alone.counts.spent or ctas == 2


def test_a_cta_counts_among_others_what_it_counts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    body = START + PARTING + AGAIN.replace("0x28", "0x10")
    among_others, alone = (run(body, ctas, LoopAccelerator(), monkeypatch, 100_000) for ctas in (5, 1))
    assert among_others.way == alone.way
    counted = among_others.log.counters_of(np.array([0]))
    assert [counted.warps_executed, counted.threads_executed, counted.wavefronts] == [
        alone.counts.warps_executed, alone.counts.threads_executed, alone.counts.wavefronts
    ]  # fmt: skip
    paths = {among_others.log.trace_of(cta) for cta in range(5)}
    assert len(paths) > 1


def test_ctas_of_which_some_end_do_not_wait_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    body = START + PARTING.replace("IMAD R6", "ISETP.EQ.AND P2, PT, R12, 0x3, PT\n@P2 EXIT\nIMAD R6", 1) + AGAIN
    assert_same(run(body, 9, LoopAccelerator(), monkeypatch), run(body, 9, None, monkeypatch), joined=True)


def test_a_loop_that_does_not_end_meets_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(".L_1:\nIADD3 R8, R8, 0x1, RZ\nBRA `(.L_1)", 1, LoopAccelerator(), monkeypatch)
    assert [end.reasons for end in found.ended] == [("no end after 20000 steps",)]


def test_what_the_next_trips_add_is_read_off_those_before() -> None:
    seen = [state_changes.StateChange({"R1": step}) for step in (1, 1, 7, 1, 1, 7, 1)]
    loop = loops._LoopHistory()
    loop.changes = seen
    assert [change.increments["R1"] for change in loop.predict_changes()[0]] == [1, 7, 1]
    loop.changes = seen[:3]
    assert loop.predict_changes() == ([], set())
    loop.proven_changes = seen[:3]
    loop.changes = [seen[2]]
    assert [change.increments["R1"] for change in loop.predict_changes()[0]] == [1, 1, 7]


def test_a_tile_that_always_begins_alike_needs_no_look_at_a_regular_trip_first() -> None:
    loop = loops._LoopHistory()
    loop.proven_changes, loop.proven_after = [state_changes.StateChange({"R1": 4})], 2
    loop.changes, loop.observed_iterations = (
        [state_changes.StateChange({"R1": 96})],
        1,
    )  # from the last tile to this one
    assert loop.predict_changes()[0] == []
    loop.early_start = 1
    assert loop.predict_changes()[0] == loop.proven_changes


@pytest.mark.parametrize("tiles", [10, 40])
def test_few_runs_look_for_more_trips_than_tiles_have(tiles: int, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    usual = loops.IterationHypothesis.run
    monkeypatch.setattr(
        loops.IterationHypothesis, "run", lambda guess, **options: counts.append(guess.count) or usual(guess, **options)
    )
    body = TILES.replace("ISETP.LT.AND P1, PT, R9, 0xa", f"ISETP.LT.AND P1, PT, R9, {tiles:#x}")
    body = body.replace("IMAD R7, R5, 0x404, R10", "MOV R7, R10").replace("-0x8", "-0x1")
    found = run(body, 2, LoopAccelerator(), monkeypatch)
    assert sum(found.proven) >= 0.85 * tiles * 40
    assert sum(count == loops.FEWEST_ITERATIONS for count in counts) <= 9


def test_what_no_period_tells_is_odd() -> None:
    loop = loops._LoopHistory()
    loop.changes = [state_changes.StateChange({"R1": 4, "R2": step}) for step in (1, 2, 4, 8, 16, 32)]
    foreseen, odd = loop.predict_changes()
    assert [change.increments for change in foreseen] == [{"R1": 4}]
    assert odd == {"R2"}


@pytest.mark.parametrize(
    ("value", "added", "expected"),
    [
        (0xFFFFFFFF, [1], [0xFFFFFFFF, 0, 1, 2]),
        (0, [1, 0xFFFFFFFF], [0, 1, 0, 1]),
        (True, [True, False], [True, False, False, True]),
    ],
)
def test_a_register_goes_round_with_its_trips(value: int, added: list[int], expected: list[int]) -> None:
    found = state_changes.predict_register(value, added, 3, ctas=1)
    assert found.all_values.ravel().tolist() == expected
    assert found.final_value == expected[-1]


def test_an_affine_register_of_one_cta_goes_round_with_its_trips() -> None:
    lanes = np.arange(4)[None]
    found = state_changes.predict_register(AffineValue(np.array([[8]]), lanes), [4], 3, ctas=1)
    assert np.array_equal(as_array_value(found.all_values), lanes + np.array([[8], [12], [16], [20]]))
    assert np.array_equal(as_array_value(found.final_value), lanes + 20)
