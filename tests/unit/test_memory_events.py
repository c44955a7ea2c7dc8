"""What happens to loads in flight, instruction by instruction, read off a few lines of PTX by eye."""

from __future__ import annotations

from dataclasses import replace

from handwritten import code_of, made

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.overlap.memory_events import (
    GroupCommit,
    IssuedOperation,
    MemoryEvent,
    QueueWait,
    RegisterMoves,
    RegisterReads,
    ScoreboardWait,
    find_memory_events,
)
from artifact_inspector.formats import format_of
from artifact_inspector.model import Module, Queue, Stage, Transfer
from artifact_inspector.model.instruction import ControlInfo


def events(*body: str, target: str = "sm_80") -> list[tuple[MemoryEvent, ...]]:
    """By block; the first instruction is number 0."""
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    text = f".version 8.7\n.target {target}\n.visible .entry k()\n{{\n{lines}\n\tret;\n}}\n"
    return find_memory_events(code_of(Stage.PTX, text))


def flat(*body: str, target: str = "sm_80") -> list[tuple[int, object]]:
    return [(event.instruction_index, event.action) for block in events(*body, target=target) for event in block]


def kinds(*body: str, target: str = "sm_80") -> list[tuple[int, str]]:
    return [(at, type(what).__name__) for at, what in flat(*body, target=target)]


LOAD = "ld.global.f32 %f1, [%rd1]"


def test_a_load_is_in_flight_from_its_issue_to_the_first_use_of_its_register() -> None:
    (first, issue), (second, read) = flat(
        LOAD, "add.f32 %f9, %f8, %f8", "add.f32 %f3, %f1, %f9", "add.f32 %f4, %f1, %f1"
    )
    assert (first, second) == (0, 2)
    assert isinstance(issue, IssuedOperation)
    assert (issue.registers, issue.is_load, issue.transfer.bytes) == (("%f1",), True, 4)
    assert read == RegisterReads(frozenset({"%f1"}))


def test_each_load_is_a_statement_of_its_own_unless_one_line_of_assembly_holds_several() -> None:
    two = (LOAD, "ld.global.f32 %f2, [%rd1]", LOAD, "add.f32 %f3, %f1, %f2")
    assert [what.joins_previous for _, what in flat(*two) if isinstance(what, IssuedOperation)] == [False, False, False]


def test_a_load_that_nothing_uses_has_no_registers() -> None:
    ((_, issue),) = flat(LOAD)
    assert isinstance(issue, IssuedOperation)
    assert issue.registers == ()


def test_a_move_hands_the_value_on_and_is_no_use() -> None:
    found = flat(LOAD, "mov.b32 %r1, %f1", "add.s32 %r2, %r1, %r1")
    assert found[1:] == [(1, RegisterMoves((("%r1", ("%f1",)),))), (2, RegisterReads(frozenset({"%r1"})))]
    issue = found[0][1]
    assert isinstance(issue, IssuedOperation)
    assert issue.registers == ("%f1",)


def test_a_guarded_move_may_leave_what_was_there() -> None:
    moves = [
        what
        for _, what in flat(LOAD, "@%p1 mov.b32 %r1, %f1", "add.s32 %r2, %r1, %r1")
        if isinstance(what, RegisterMoves)
    ]
    assert [move.is_unconditional for move in moves] == [False]


def test_a_register_that_is_overwritten_is_let_go() -> None:
    found = flat(LOAD, "add.f32 %f1, %f8, %f8", "add.f32 %f2, %f1, %f1")
    assert found[1] == (1, RegisterReads(frozenset({"%f1"})))
    assert len(found) == 2  # the second use completes nothing


def test_a_register_that_is_filled_again_may_be_used_again() -> None:
    again = (LOAD, "add.f32 %f2, %f1, %f1", LOAD, "add.f32 %f3, %f1, %f1")
    assert kinds(*again) == [(0, "IssuedOperation"), (1, "RegisterReads"), (2, "IssuedOperation"), (3, "RegisterReads")]


def test_copies_are_closed_into_groups_and_waited_for() -> None:
    body = (
        "cp.async.cg.shared.global [%r1], [%rd1], 16", "cp.async.commit_group", "cp.async.wait_group 1",
        "st.shared.f32 [%r9], %f9",
    )  # fmt: skip
    issue, commit, wait = (what for _, what in flat(*body))
    assert isinstance(issue, IssuedOperation)
    assert (issue.transfer.queue, issue.transfer.bytes, issue.is_load) == (Queue.GROUP, 16, True)
    assert commit == GroupCommit(Queue.GROUP)
    assert isinstance(wait, QueueWait)
    assert (wait.wait.depth, wait.wait.queue) == (1, Queue.GROUP)


def test_a_wait_for_stores_is_none_for_loads() -> None:
    body = ("cp.async.bulk.wait_group.read 0", LOAD, "add.f32 %f3, %f1, %f1")
    assert kinds(*body, target="sm_90a") == [(1, "IssuedOperation"), (2, "RegisterReads")]


def test_a_plain_store_takes_no_place_in_any_queue() -> None:
    assert kinds("st.global.f32 [%rd1], %f1") == []


WGMMA = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2}, %rd3, %rd4, 1, 1, 1, 0, 0"


def test_asynchronous_products_fly_in_a_queue_of_their_own() -> None:
    body = (WGMMA, "wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0")
    found = flat(*body, target="sm_90a")
    assert [(at, type(what).__name__) for at, what in found] == [
        (0, "IssuedOperation"),
        (1, "GroupCommit"),
        (2, "QueueWait"),
    ]
    issue = found[0][1]
    assert isinstance(issue, IssuedOperation)
    assert (issue.transfer.queue, issue.is_load, issue.closes_group) == (Queue.MATRIX, False, False)


def test_commits_and_waits_of_products_that_are_not_there_are_passed_over() -> None:
    assert kinds("wgmma.commit_group.sync.aligned", "wgmma.wait_group.sync.aligned 0", target="sm_90a") == []
    kept = kinds(LOAD, "add.f32 %f3, %f1, %f1", "wgmma.commit_group.sync.aligned", target="sm_90a")
    assert kept == [(0, "IssuedOperation"), (1, "RegisterReads")]


def test_a_product_at_once_is_in_no_queue() -> None:
    mma = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1,%f2,%f3,%f4}, {%r5,%r6,%r7,%r8}, {%r9,%r10}, {%f1,%f2,%f3,%f4}"
    assert kinds(mma) == []


def test_events_stand_in_their_blocks_and_what_a_loop_hands_back_is_followed() -> None:
    first, loop, rest = events(
        LOAD, "mov.b32 %f5, %f1", "$L__BB0_1:", "add.f32 %f6, %f5, %f5", "ld.global.f32 %f7, [%rd2]",
        "mov.b32 %f5, %f7", "@%p1 bra $L__BB0_1",
    )  # fmt: skip
    assert [event.instruction_index for event in first] == [0, 1]
    assert [(event.instruction_index, type(event.action).__name__) for event in loop] == [
        (2, "RegisterReads"),
        (3, "IssuedOperation"),
        (4, "RegisterMoves"),
    ]
    assert rest == ()


def test_what_runs_in_front_of_the_first_load_is_not_looked_at() -> None:
    body = ("add.f32 %f3, %f1, %f1", "$L__BB0_1:", LOAD, "add.f32 %f4, %f1, %f1")
    assert kinds(*body) == [(1, "IssuedOperation"), (2, "RegisterReads")]


def test_copies_by_barriers_name_their_array() -> None:
    body = (
        "mov.b32 %r1, global_smem", "mbarrier.init.shared::cta.b64 [%r1], 1",
        "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 128",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r8], [%rd1, {%r2, %r3}], [%r1]",
        "mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r9",
    )  # fmt: skip
    found = [what for _, what in flat(*body, target="sm_90a")]
    arrays = [what.array for what in found if isinstance(what, IssuedOperation | GroupCommit | QueueWait)]
    assert len(arrays) == 3
    assert {array and array.start for array in arrays} == {0}


def test_machine_code_waits_for_the_scoreboards_that_count_its_loads_alone() -> None:
    def control(write: int | None, waits: int) -> ControlInfo:
        return ControlInfo(1, False, write, None, waits, None)

    code = made("L L F F")
    controls = (control(0, 0), control(3, 0), control(5, 1 << 0 | 1 << 4), control(None, 1 << 3))
    function = replace(code.function, control_codes=controls)
    language = replace(format_of(Stage.SASS), transfer=lambda *_: Transfer(4, Queue.USE))
    coded = FunctionCode(function, Module(Stage.SASS, "k", (), {}), language)
    (found,) = find_memory_events(coded)
    issues = [event.action.scoreboard for event in found if isinstance(event.action, IssuedOperation)]
    assert issues == [0, 3]
    # counters 4 and 5 count no load
    assert [(event.instruction_index, event.action) for event in found if isinstance(event.action, ScoreboardWait)] == [
        (2, ScoreboardWait(frozenset({0}))), (3, ScoreboardWait(frozenset({3}))),
    ]  # fmt: skip


def test_each_copy_is_a_statement_of_its_own() -> None:
    copy = "cp.async.cg.shared.global [%r1], [%rd1], 16"
    assert [what.joins_previous for _, what in flat(copy, copy) if isinstance(what, IssuedOperation)] == [False, False]
