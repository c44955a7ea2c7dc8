"""Which array of barriers an operand points into, through addresses of any length."""

from __future__ import annotations

import pytest

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.overlap.barrier_arrays import BarrierArray, find_barrier_arrays
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Stage
from artifact_inspector.model.text import SourceText


def arrays(*body: str) -> list[BarrierArray | None]:
    """Of the waits in some PTX, in text order."""
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    text = f".version 8.7\n.target sm_90\n.visible .entry k(\n\t.param .u64 k_0\n)\n{{\n{lines}\n\tret;\n}}\n"
    language = format_of(Stage.PTX)
    module = language.parse(SourceText("k", text), Stage.PTX)
    code = FunctionCode(module.functions[0], module, language)
    barriers = {}
    for index in code.of_kind[EventKind.WAIT]:
        wait = language.wait(code.function.instructions[index], module)
        assert wait is not None
        barriers[index] = wait.barrier
    found = find_barrier_arrays(code, barriers)
    return [found.get(index) for index in barriers]


def wait(register: str) -> str:
    return f"mbarrier.try_wait.parity.shared.b64 %p1, [{register}], %r9"


def test_a_constant_address_is_a_barrier_of_its_own() -> None:
    assert arrays("mov.b32 %r1, global_smem", "add.s32 %r2, %r1, 24", wait("%r2")) == [BarrierArray(24, 1)]


def test_an_address_that_a_loop_moves_is_that_of_as_many_barriers_as_are_initialised_side_by_side() -> None:
    made = [
        line
        for n in range(3)
        for line in (f"add.s32 %r2{n}, %r1, {64 + 8 * n}", f"mbarrier.init.shared::cta.b64 [%r2{n}], 1")
    ]
    turned = [
        "$L__BB0_1:",
        "shl.b32 %r5, %r4, 3",
        "add.s32 %r6, %r1, %r5",
        "add.s32 %r7, %r6, 64",
        wait("%r7"),
        "@%p2 bra $L__BB0_1",
    ]
    assert arrays("mov.b32 %r1, global_smem", *made, *turned) == [BarrierArray(64, 3)]


def test_an_address_of_no_known_origin_is_told_of_no_array() -> None:
    assert arrays("ld.param.b32 %r1, [k_0]", wait("%r1")) == [None]


@pytest.mark.parametrize("steps", [4, 5000])
def test_an_address_is_followed_through_any_number_of_steps(steps: int) -> None:
    chain = [f"add.s32 %r{n + 101}, %r{n + 100}, 8" for n in range(steps)]
    found = arrays("mov.b32 %r100, global_smem", *chain, wait(f"%r{steps + 100}"))
    assert found == [BarrierArray(8 * steps, 1)]


MEMORY = "#shared, #smem, mutable"


@pytest.mark.parametrize(("kind", "slots"), [("3x1xi64", 3), ("1xi64", 1)])
def test_at_tensor_level_an_allocation_is_an_array_of_as_many_barriers_as_it_has_rows(kind: str, slots: int) -> None:
    one = f"!ttg.memdesc<1xi64, {MEMORY}>"
    part = f"%b = ttg.memdesc_index %m[%n] : !ttg.memdesc<{kind}, {MEMORY}> -> {one}" if slots > 1 else ""
    text = f"""module {{
  tt.func public @k(%n: i32) {{
    %m = ttg.local_alloc : () -> !ttg.memdesc<{kind}, {MEMORY}>
    {part}
    ttng.wait_barrier {"%b" if slots > 1 else "%m"}, %n : {one}
    tt.return
  }}
}}
"""
    language = format_of(Stage.TTGIR)
    module = language.parse(SourceText("k", text), Stage.TTGIR)
    code = FunctionCode(module.functions[0], module, language)
    (index,) = code.of_kind[EventKind.WAIT]
    wait = language.wait(code.function.instructions[index], module)
    assert wait is not None
    (found,) = find_barrier_arrays(code, {index: wait.barrier}).values()
    assert found is not None
    assert found.slots == slots


def turns(*offsets: int) -> list[str]:
    """An address that is the first at first, and the second from then on; each has its barrier."""
    first, second = offsets[:2]
    inits = [
        line
        for n, offset in enumerate(offsets)
        for line in (f"add.s32 %r3{n}, %r1, {offset}", f"mbarrier.init.shared::cta.b64 [%r3{n}], 1")
    ]
    return [
        "mov.b32 %r1, global_smem",
        *inits,
        f"add.s32 %r2, %r1, {first}",
        "$L__BB0_1:",
        wait("%r2"),
        f"add.s32 %r2, %r1, {second}",
        "@%p2 bra $L__BB0_1",
    ]


def test_an_address_that_a_loop_exchanges_is_that_of_the_array_that_holds_both() -> None:
    assert arrays(*turns(72, 64)) == [BarrierArray(64, 2)]
    assert arrays(*turns(64, 64, 72)) == [BarrierArray(64, 1)]


def test_an_address_that_a_loop_replaces_by_something_unknown_is_told_of_no_array() -> None:
    known = ("mov.b32 %r1, global_smem", "add.s32 %r2, %r1, 64")
    assert arrays(*known, "$L__BB0_1:", wait("%r2"), "add.s32 %r2, %r7, %r8", "@%p2 bra $L__BB0_1") == [None]
