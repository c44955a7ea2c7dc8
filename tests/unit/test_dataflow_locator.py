"""Rounds in a stage without lines: by number and by the flow of data, followed by eye in PTX."""

from __future__ import annotations

from dataclasses import replace

import pytest
from handwritten import code_of, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.dataflow_locator import (
    find_computes_using,
    locate_by_dataflow,
    locate_by_runs,
    locate_by_structure,
)
from artifact_inspector.analysis.order.placement import Placement, PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.analysis.order.round_locator import locate_rounds
from artifact_inspector.model import Basis, Stage
from artifact_inspector.model.limits import ROUNDS

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}"
LOADED = f"""
    %a = tt.load %q : {P}
    %c = arith.mulf %a, %z : {T}
    tt.store %o, %c : {P}"""
TWO_LOADS = f"""
    %a = tt.load %q : {P}
    %b = tt.load %q : {P}
    %c = arith.mulf %a, %b : {T}
    tt.store %o, %c : {P}"""
LOOP = f"""
    %r = scf.for %j = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P}
      %d = arith.addf %acc, %a : {T}
      scf.yield %d : {T}
    }}
    tt.store %o, %r : {P}
"""


def twice(body: str) -> str:
    return body + "".join(
        f"{line}\n" for line in body.replace("%a", "%e").replace("%b", "%f").replace("%c", "%g").splitlines()
    )


def program(body: str) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code(body, head=HEAD))


def ptx(*body: str) -> FunctionCode:
    lines = "\n".join(line if line.endswith(":") else f"\t{line};" for line in body)
    return code_of(Stage.PTX, f".version 8.7\n.target sm_80\n.visible .entry k()\n{{\n{lines}\n\tret;\n}}\n")


def region(code: FunctionCode, reference: tuple[ReferenceRegion, ...], number: int = 0) -> Region:
    return find_regions(code, reference, exact=False)[number]


def by_dataflow(
    code: FunctionCode, reference: tuple[ReferenceRegion, ...], number: int = 0, before: PreviousStage | None = None
) -> Placement:
    there = region(code, reference, number)
    assert there.reference is not None
    return locate_by_dataflow(code, there, there.reference, before)


def loads(found: Placement) -> list[list[list[int]]]:
    return [[statement.loads for statement in item.statements] for item in found.rounds]


def computes(found: Placement) -> list[list[int]]:
    return [item.computes for item in found.rounds]


def load(n: int) -> str:
    return f"ld.global.f32 %f{n}, [%rd{n}]"


def multiply(n: int) -> str:
    return f"mul.f32 %f{n + 50}, %f{n}, %f99"


def test_computes_of_rounds_are_those_that_take_their_data_first() -> None:
    code = ptx(load(1), load(2), multiply(2), "add.f32 %f3, %f1, %f2", "add.f32 %f4, %f3, %f3")
    assert find_computes_using(code, region(code, ()), [[0], [1]]) == {2: 0b10, 3: 0b11}


def test_a_wide_load_of_two_rounds_gives_both_what_takes_it() -> None:
    code = ptx(load(1), load(2), multiply(2), multiply(1))
    assert find_computes_using(code, region(code, ()), [[0], [0, 1]]) == {2: 0b10, 3: 0b11}


def test_as_many_runs_as_rounds_are_the_rounds() -> None:
    code = ptx(load(1), multiply(1), load(2), load(3), multiply(2), multiply(3))
    found = by_dataflow(code, program(twice(LOADED)))
    assert loads(found) == [[[0]], [[2, 3]]]
    assert computes(found) == [[1], [4, 5]]
    assert (found.basis, found.is_uncertain, found.notes) == (Basis.DATAFLOW, False, [])


def test_rounds_that_load_alike_have_equal_shares_of_one_run() -> None:
    code = ptx(load(1), load(2), load(3), load(4), multiply(1), multiply(2), multiply(3), multiply(4))
    found = by_dataflow(code, program(twice(LOADED)))
    assert loads(found) == [[[0, 1]], [[2, 3]]]
    assert computes(found) == [[4, 5], [6, 7]]


def test_a_single_round_has_all_loads() -> None:
    code = ptx(load(1), multiply(1), load(2), multiply(2))
    assert loads(by_dataflow(code, program(TWO_LOADS))) == [[[0], [2]]]


def test_rounds_that_load_otherwise_cannot_be_told_apart() -> None:
    reference = program(LOADED + TWO_LOADS.replace("%a", "%e").replace("%c", "%g"))
    code = ptx(load(1), load(2), load(3), multiply(1), multiply(2), multiply(3))
    found = by_dataflow(code, reference)
    assert found.is_uncertain
    assert found.notes == [RegionNote("its loads cannot be distinguished without source lines")]
    assert computes(found) == [[], []]


def test_copies_in_front_of_a_loop_are_whole_iterations_or_nothing_is_told() -> None:
    inside = (
        "$L__BB0_1:",
        "cp.async.cg.shared.global [%r1], [%rd1], 16",
        "ld.shared.f32 %f1, [%r1]",
        multiply(1),
        "@%p1 bra $L__BB0_1",
    )
    copy = "cp.async.cg.shared.global [%r2], [%rd2], 16"
    two = by_dataflow(ptx(copy, copy, *inside), program(LOOP), 1)
    ((statement,),) = (item.statements for item in two.rounds)
    assert (statement.loads, statement.loads_before_loop, two.is_uncertain) == ([2], [0, 1], False)


def test_what_stands_behind_a_loop_or_is_of_another_kind_is_not_in_front_of_it() -> None:
    copy = "cp.async.cg.shared.global [%r1], [%rd1], 16"
    inside = ("$L__BB0_1:", copy, "ld.shared.f32 %f1, [%r1]", multiply(1), "@%p1 bra $L__BB0_1")
    found = by_dataflow(ptx(copy, load(7), *inside, copy), program(LOOP), 1)
    ((statement,),) = (item.statements for item in found.rounds)
    assert (statement.loads, statement.loads_before_loop, found.is_uncertain) == ([2], [0], False)


def test_plain_loads_in_front_of_a_loop_leave_open_whether_it_is_pipelined() -> None:
    inside = ("$L__BB0_1:", load(1), load(2), multiply(1), multiply(2), "@%p1 bra $L__BB0_1")
    found = by_dataflow(ptx(load(9), *inside), program(LOOP), 1)
    assert found.is_uncertain
    assert found.notes == [RegionNote("1 loads before the loop do not match 2 per iteration, 0 ahead")]
    alone = by_dataflow(ptx("$L__BB0_1:", load(1), multiply(1), "@%p1 bra $L__BB0_1"), program(LOOP), 1)
    assert (alone.is_uncertain, computes(alone)) == (False, [[1]])


def test_prologue_copies_are_no_loads_of_the_straight_code() -> None:
    copy = "cp.async.cg.shared.global [%r2], [%rd2], 16"
    body = (copy, load(5), multiply(5), "$L__BB0_1:", copy, "@%p1 bra $L__BB0_1")
    assert loads(by_dataflow(ptx(*body), program(LOADED))) == [[[1]]]
    straight = (copy, load(5), multiply(5))
    assert loads(by_dataflow(ptx(*straight), program(LOADED))) == [[[0, 1]]]


def test_a_loop_without_computes_on_its_data_has_its_matrix_operations() -> None:
    mma = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2}, %rd3, %rd4, 1, 1, 1, 0, 0"
    code = ptx("$L__BB0_1:", load(1), mma, "@%p1 bra $L__BB0_1")
    assert computes(by_dataflow(code, program(LOOP), 1)) == [[1]]


# -- from the code alone ------------------------------------------------------------------


def test_from_the_code_alone_each_run_of_loads_with_computes_is_a_round() -> None:
    code = ptx(load(1), load(2), multiply(1), load(3), multiply(3), load(4))
    found = locate_by_runs(code, region(code, ()))
    assert loads(found) == [[[0, 1]], [[3]]]
    assert computes(found) == [[2], [4]]
    assert (found.is_uncertain, found.unassigned) == (False, [])


def test_from_the_code_alone_copies_in_front_of_a_loop_are_its_prologue() -> None:
    copy = "cp.async.cg.shared.global [%r1], [%rd1], 16"
    inside = ("$L__BB0_1:", copy, "ld.shared.f32 %f1, [%r1]", multiply(1), "@%p1 bra $L__BB0_1")
    code = ptx(copy, copy, *inside)
    ((statement,),) = (item.statements for item in locate_by_runs(code, region(code, (), 1)).rounds)
    assert (statement.loads, statement.loads_before_loop) == ([2], [0, 1])


def test_from_the_code_alone_loads_in_front_of_a_loop_tell_nothing() -> None:
    code = ptx(load(9), "$L__BB0_1:", load(1), multiply(1), "@%p1 bra $L__BB0_1")
    found = locate_by_runs(code, region(code, (), 1))
    assert found.is_uncertain
    assert found.notes == [RegionNote("1 loads before the loop and 1 inside: unknown whether it is pipelined")]
    alone = ptx("$L__BB0_1:", load(1), multiply(1), "@%p1 bra $L__BB0_1")
    assert not locate_by_runs(alone, region(alone, (), 1)).is_uncertain


def test_from_the_code_alone_products_by_descriptor_take_all_loads() -> None:
    mma = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2}, %rd3, %rd4, 1, 1, 1, 0, 0"
    code = ptx("cp.async.cg.shared.global [%r1], [%rd1], 16", mma)
    found = locate_by_runs(code, region(code, ()))
    assert (loads(found), computes(found)) == ([[[0]]], [[1]])
    assert locate_by_runs(ptx(mma), region(ptx(mma), ())).rounds == []


# -- a stage that is itself in tensor-level form --------------------------------------------


def by_structure(body: str, reference: tuple[ReferenceRegion, ...], number: int = 0) -> Placement | None:
    code = tensor_code(body, head=HEAD)
    there = region(code, reference, number)
    assert there.reference is not None
    return locate_by_structure(code, there, there.reference)


def test_as_many_rounds_as_in_the_program_are_those() -> None:
    found = by_structure(twice(LOADED), program(twice(LOADED)))
    assert found is not None
    assert [len(item.loads) for item in found.rounds] == [1, 1]
    assert [len(item.computes) for item in found.rounds] == [1, 1]
    assert all(item.identified_computes for item in found.rounds)


def test_another_number_of_rounds_or_of_loads_is_not_the_program() -> None:
    assert by_structure(LOADED, program(twice(LOADED))) is None
    assert by_structure(LOADED, program(TWO_LOADS)) is None
    assert by_structure(TWO_LOADS, program(LOADED)) is not None


def test_assembly_has_no_such_form() -> None:
    code = ptx(load(1), multiply(1))
    there = region(code, program(LOADED))
    assert there.reference is not None
    assert locate_by_structure(code, there, there.reference) is None
    assert replace(there, reference=None).reference is None


def test_copies_that_were_peeled_off_with_their_products_are_not_of_the_next_iterations() -> None:
    mma = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2}, {%f3}, {%f4}, {%f1, %f2}"
    copy = "cp.async.cg.shared.global [%r1], [%rd1], 16"
    inside = ("$L__BB0_1:", copy, "ld.shared.f32 %f3, [%r1]", mma, mma, "@%p1 bra $L__BB0_1")
    there = program(LOOP)
    # one turn ahead; two products in front of a loop of two are one iteration that was peeled off
    distances = {statement.index: 1 for item in there[1].rounds for statement in item.statements}
    before = PreviousStage({}, {}, distances, 1)
    peeled = by_dataflow(ptx(copy, copy, mma, mma, *inside), there, 1, before)
    assert (peeled.is_uncertain, peeled.notes) == (False, [])
    for front in ((copy, copy), (copy, copy, mma), (copy, copy, copy, mma, mma)):
        found = by_dataflow(ptx(*front, *inside), there, 1, before)
        assert found.is_uncertain
        assert found.notes == [
            RegionNote(f"{front.count(copy)} loads before the loop do not match 1 per iteration, 1 ahead")
        ]


def test_more_rounds_than_are_told_apart_are_unknown_and_the_bound_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "ld.global.b32 %r{0}, [%rd1]", "add.f32 %f{0}, %f0, %r{0}"
    code = ptx(*(part.format(number) for number in range(3) for part in line))
    written = program(twice(twice(LOADED)))
    assert len(locate_by_runs(code, region(code, ())).rounds) == 3
    monkeypatch.setenv(ROUNDS.variable, "2")
    for reference in ((), written):
        found = locate_rounds(code, region(code, reference), None)
        assert (found.rounds, found.is_uncertain) == ([], True)
        assert f"more than 2 rounds, the limit of the analysis: set {ROUNDS.variable}" in found.notes[0].message
