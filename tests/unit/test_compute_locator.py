"""Where the direct computes of a round stand at a stage; stages are made of letters with lines of k.py."""

from __future__ import annotations

from handwritten import code_of, made, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import Placement, PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.analysis.order.regions import find_regions
from artifact_inspector.analysis.order.round_locator import locate_rounds
from artifact_inspector.model import Stage

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}, %x: tensor<8x8x!tt.ptr<f16>>, %w: tensor<8x8xf32>"


def program(body: str) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code(body, head=HEAD))


def placed(
    code: FunctionCode, reference: tuple[ReferenceRegion, ...], before: PreviousStage | None = None
) -> Placement:
    return locate_rounds(code, find_regions(code, reference, exact=False)[0], before)


def computes(found: Placement) -> list[list[int]]:
    return [item.computes for item in found.rounds]


def ptx(*statements: str) -> FunctionCode:
    """Statements with their line of k.py in front: `7 add.f32 …`."""
    lines = (f"\t.loc 1 {line} 1\n\t{text};" for line, _, text in (one.partition(" ") for one in statements))
    body = "\n".join(lines)
    return code_of(
        Stage.PTX, f'.version 8.7\n.target sm_80\n.file 1 "k.py"\n.visible .entry k()\n{{\n{body}\n\tret;\n}}\n'
    )


TWO = program(f"""
    %a = tt.load %q : {P} @3
    %c = arith.mulf %a, %z : {T} @4
    %d = arith.addf %c, %z : {T} @5
    tt.store %o, %d : {P} @6
    %b = tt.load %o : {P} @7
    %e = arith.mulf %b, %z : {T} @8
    tt.store %o, %e : {P} @9
""")


def test_a_compute_at_its_own_place_is_it() -> None:
    found = placed(made("L3 F4 F4 F5 S6 L7 F8 S9"), TWO)
    assert computes(found) == [[1, 2], [6]]
    assert found.notes == []
    # the computes of the program that were found, by their number there
    assert [len(item.identified_computes or ()) for item in found.rounds] == [1, 1]


def test_a_compute_that_was_contracted_stands_in_its_consumer() -> None:
    code = ptx(
        "3 ld.global.f32 %f1, [%rd1]", "5 fma.rn.f32 %f2, %f1, %f9, %f9", "6 st.global.f32 [%rd9], %f2",
        "7 ld.global.f32 %f3, [%rd2]", "8 mul.f32 %f4, %f3, %f9", "9 st.global.f32 [%rd9], %f4",
    )  # fmt: skip
    found = placed(code, TWO)
    assert computes(found) == [[1], [4]]
    assert found.notes == [RegionNote("computes were contracted into their consumers", 1)]


def test_a_round_none_of_whose_lines_is_left_is_found_by_its_data() -> None:
    code = ptx(
        "3 ld.global.f32 %f1, [%rd1]", "5 fma.rn.f32 %f2, %f1, %f9, %f9", "6 st.global.f32 [%rd9], %f2",
        "7 ld.global.f32 %f3, [%rd2]", "40 mul.f32 %f4, %f3, %f9", "9 st.global.f32 [%rd9], %f4",
    )  # fmt: skip
    found = placed(code, TWO)
    assert computes(found) == [[1], [4]]
    assert RegionNote("computes located by dataflow: none is at its line", 2) in found.notes


def test_a_round_without_loads_is_left_without_computes() -> None:
    assert computes(placed(made("L3 F4 S6"), TWO)) == [[1], []]


ONE_LINE = program(f"""
    %a = tt.load %q : {P} @3
    %c = arith.mulf %a, %z : {T} @8
    tt.store %o, %c : {P} @6
    %b = tt.load %q : {P} @7
    %e = arith.mulf %b, %z : {T} @8
    tt.store %o, %e : {P} @9
""")


def test_computes_of_two_rounds_on_one_line_are_told_apart_by_the_loads_that_they_take() -> None:
    code = ptx(
        "3 ld.global.f32 %f1, [%rd1]", "7 ld.global.f32 %f3, [%rd2]", "8 mul.f32 %f4, %f3, %f9",
        "8 mul.f32 %f2, %f1, %f9", "9 st.global.f32 [%rd9], %f4", "6 st.global.f32 [%rd9], %f2",
    )  # fmt: skip
    assert computes(placed(code, ONE_LINE)) == [[3], [2]]


def test_where_data_does_not_tell_them_apart_they_are_shared_in_equal_runs() -> None:
    assert computes(placed(made("L3 L7 F8 F8 F8 F8 S6 S9"), ONE_LINE)) == [[2, 3], [4, 5]]


MIXED = program(f"""
    %a = tt.load %x : tensor<8x8x!tt.ptr<f16>> @3
    %d = tt.dot %a, %a, %w : tensor<8x8xf16> * tensor<8x8xf16> -> tensor<8x8xf32> @8
    tt.store %x, %d : tensor<8x8x!tt.ptr<f32>> @5
    %b = tt.load %q : {P} @7
    %e = arith.mulf %b, %z : {T} @8
    tt.store %o, %e : {P} @9
""")


def test_a_matrix_operation_on_a_line_is_never_what_became_of_a_multiplication() -> None:
    assert computes(placed(made("L3 L7 F8 M8 F8 M8 S5 S9"), MIXED)) == [[3, 5], [2, 4]]


LOOP = program(f"""
    %r = scf.for %j = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P} @22
      %d = arith.addf %acc, %a : {T} @23
      scf.yield %d : {T}
    }} @21
    tt.store %o, %r : {P} @25
""")


def test_computes_in_front_of_a_loop_are_those_of_peeled_iterations() -> None:
    code = made("L22 F23 F23", "F23 L22 F23 b21", "S25", to={1: (1, 2)})
    loop = find_regions(code, LOOP, exact=False)[1]
    (item,) = locate_rounds(code, loop, None).rounds
    assert (item.computes, item.computes_before_loop) == ([3, 5], [1, 2])


def test_more_computes_were_known_than_stand_at_the_line() -> None:
    code = ptx(
        "3 ld.global.f32 %f1, [%rd1]", "4 mul.f32 %f2, %f1, %f9", "5 fma.rn.f32 %f6, %f1, %f9, %f9",
        "6 st.global.f32 [%rd9], %f2", "7 ld.global.f32 %f3, [%rd2]", "8 mul.f32 %f4, %f3, %f9",
    )  # fmt: skip
    assert computes(placed(code, TWO)) == [[1], [5]]
    found = placed(code, TWO, PreviousStage({}, {0: 2, 1: 1}, {}, 1))
    assert computes(found) == [[1, 2], [5]]
    assert found.notes == [RegionNote("computes were contracted into their consumers", 1)]


COMPARED = program("""
    %a = tt.load %g : tensor<8x!tt.ptr<i32>> @3
    %m = arith.cmpi eq, %a, %k : tensor<8xi32> @4
    %w = arith.extui %m : tensor<8xi1> to tensor<8xi32> @5
    tt.store %h, %w : tensor<8x!tt.ptr<i32>> @6
""")


def test_integer_operations_count_where_the_round_is_one_of_integers_alone() -> None:
    assert computes(placed(made("L3 I4 I5 S6"), COMPARED)) == [[1]]
    assert computes(placed(made("L3 I4 F5 S6 L7 F8 S9"), TWO)) == [[2], [5]]


def test_the_maximum_of_a_value_and_itself_is_no_compute() -> None:
    reference = program(f"%a = tt.load %q : {P} @3\n%c = arith.maxnumf %a, %z : {T} @4\ntt.store %o, %c : {P} @6")
    body = """
\t.loc 1 4 1 ; k.py:4:1
\tv_dual_max_num_f32 v9, v5, v5 :: v_dual_mov_b32 v8, v7
\t.loc 1 3 1 ; k.py:3:1
\tglobal_load_b32 v1, v[2:3], off
\t.loc 1 4 1 ; k.py:4:1
\tv_max_num_f32_e32 v1, v1, v1
\tv_max_num_f32_e32 v1, v9, v1
\ts_endpgm
"""
    head = '\t.amdgcn_target "amdgcn-amd-amdhsa--gfx1250"\n\t.file 1 "k.py"\n\t.type k,@function\nk:\n'
    code = code_of(Stage.AMDGCN, head + body)
    ((found,),) = computes(placed(code, reference))
    assert code.instructions[found].text == "v_max_num_f32_e32 v1, v9, v1"
