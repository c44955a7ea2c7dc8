"""Which computes take loaded data first, through registers and shared memory; followed by hand."""

from __future__ import annotations

from handwritten import code_of, indices_of

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.taint import find_first_computes
from artifact_inspector.model import EventKind, Stage


def ptx(*statements: str) -> FunctionCode:
    body = "\n".join(f"\t{line};" for line in statements)
    return code_of(Stage.PTX, f".version 8.7\n.target sm_80\n.visible .entry k()\n{{\n{body}\n\tret;\n}}\n")


def taking(code: FunctionCode, *opcodes: str, trips: int = 1, also: frozenset[EventKind] = frozenset()) -> list[int]:
    """Of each compute, in text order, which loads (as bits) it takes first."""
    loads = [index for opcode in opcodes or ("global.f32",) for index in indices_of(code, opcode)]
    groups = {load: number for number, load in enumerate(loads)}
    everything = range(len(code.function.instructions))
    found = find_first_computes(code, everything, groups, trips, also)
    kinds = {EventKind.FLOAT, EventKind.MATRIX} | also
    return [found.get(i, 0) for i in everything if code.function.instructions[i].kind in kinds]


LOADS = ("ld.global.f32 %f1, [%rd1]", "ld.global.f32 %f2, [%rd2]")


def test_a_compute_takes_what_it_reads_and_one_on_its_result_takes_nothing() -> None:
    assert taking(ptx(*LOADS, "add.f32 %f3, %f1, %f2", "mul.f32 %f4, %f3, %f3")) == [0b11, 0]


def test_data_stays_what_it_is_through_a_move() -> None:
    assert taking(ptx(*LOADS, "mov.b32 %r1, %f2", "mov.b32 %f5, %r1", "add.f32 %f3, %f5, %f5")) == [0b10]


def test_a_register_that_is_written_again_holds_data_no_more() -> None:
    assert taking(ptx(*LOADS, "mov.f32 %f1, 0f00000000", "add.f32 %f3, %f1, %f1")) == [0]


def test_a_guarded_write_may_leave_what_was_there() -> None:
    kept = ptx(*LOADS, "@%p1 mov.f32 %f1, 0f00000000", "add.f32 %f3, %f1, %f1")
    assert taking(kept) == [0b01]
    both = ptx(*LOADS, "@%p1 mov.f32 %f1, %f2", "add.f32 %f3, %f1, %f1")
    assert taking(both) == [0b11]


def test_shared_memory_is_readable_at_once_for_who_stored_and_behind_a_barrier_for_all() -> None:
    through = (
        *LOADS, "st.shared.f32 [%r1], %f1", "bar.sync 0", "st.shared.f32 [%r1], %f2", "bar.sync 0",
        "ld.shared.f32 %f3, [%r1]", "add.f32 %f4, %f3, %f3",
    )  # fmt: skip
    assert taking(ptx(*through)) == [0b10]  # the second barrier publishes what was stored since the first
    early = (*LOADS, "st.shared.f32 [%r1], %f1", "ld.shared.f32 %f3, [%r1]", "add.f32 %f4, %f3, %f3")
    assert taking(ptx(*early)) == [0b01]


def test_a_barrier_behind_which_nothing_was_stored_leaves_what_is_readable() -> None:
    twice = (
        *LOADS, "st.shared.f32 [%r1], %f1", "bar.sync 0", "bar.sync 0", "ld.shared.f32 %f3, [%r1]",
        "add.f32 %f4, %f3, %f3",
    )  # fmt: skip
    assert taking(ptx(*twice)) == [0b01]


def test_stores_between_two_barriers_add_up() -> None:
    both = (
        *LOADS, "st.shared.f32 [%r1], %f1", "st.shared.f32 [%r2], %f2", "bar.sync 0",
        "ld.shared.f32 %f3, [%r1]", "add.f32 %f4, %f3, %f3",
    )  # fmt: skip
    assert taking(ptx(*both)) == [0b11]


def test_a_copy_past_the_registers_is_readable_without_a_store() -> None:
    copied = ptx("cp.async.cg.shared.global [%r1], [%rd1], 16", "ld.shared.f32 %f3, [%r1]", "add.f32 %f4, %f3, %f3")
    assert taking(copied, "shared.global") == [0b1]


def test_data_crosses_a_back_edge_on_the_second_trip_alone() -> None:
    rotated = ptx("add.f32 %f3, %f1, %f1", "ld.global.f32 %f1, [%rd1]")
    assert taking(rotated) == [0]
    assert taking(rotated, trips=2) == [0b1]


def test_the_result_of_a_compute_in_a_group_carries_that_group() -> None:
    code = ptx("add.f32 %f1, %f8, %f9", "mul.f32 %f2, %f1, %f1")
    (add,) = indices_of(code, "add.f32")
    (multiply,) = indices_of(code, "mul.f32")
    assert find_first_computes(code, [add, multiply], {add: 3}) == {multiply: 0b1000}


def test_other_kinds_are_told_when_they_are_asked_for() -> None:
    code = ptx(*LOADS, "st.global.f32 [%rd3], %f2")
    assert taking(code, also=frozenset({EventKind.GLOBAL_STORE})) == [0b10]
    (store,) = indices_of(code, "st.global.f32")
    assert store not in find_first_computes(code, range(4), {0: 0, 1: 1})


def test_without_loads_in_groups_nothing_is_taken() -> None:
    code = ptx(*LOADS, "add.f32 %f3, %f1, %f2")
    assert find_first_computes(code, range(4), {}) == {}
