"""Which loop of the program each loop of a stage is, told by hand from the lines that both hold."""

from __future__ import annotations

from handwritten import made, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.loop_matching import match_loops
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}, %x: tensor<8x8xf16>, %w: tensor<8x8xf32>"


def summed(name: int, line: int, *, closing: int | None = None) -> str:
    """A loop that loads on the line behind its own and adds up on the next."""
    return f"""
    %r{name} = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P} @{line + 1}
      %d = arith.addf %acc, %a : {T} @{line + 2}
      scf.yield %d : {T}
    }} @{closing or line}
    tt.store %o, %r{name} : {P}
"""


def program(*loops: str) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code("".join(loops), head=HEAD))


def matched(code: FunctionCode, reference: tuple[ReferenceRegion, ...]) -> dict[int, str]:
    return {natural: region.id for natural, region in match_loops(code, reference).items()}


TWO = program(summed(1, 10), summed(2, 20))
LOOPS = {1: (1, 2), 3: (3, 4)}


def test_loops_are_told_by_what_they_hold_in_any_order() -> None:
    assert matched(made(".", "L21 F22 b20", ".", "L11 F12 b10", ".", to=LOOPS), TWO) == {0: "loop@20", 1: "loop@10"}


def test_loads_and_computes_tell_a_loop_that_closes_nowhere() -> None:
    assert matched(made(".", "L11 F12 b", ".", "L21 F22 b", ".", to=LOOPS), TWO) == {0: "loop@10", 1: "loop@20"}


def test_where_a_loop_closes_weighs_more_than_what_it_holds() -> None:
    assert matched(made(".", "L11 F12 b20", ".", to={1: (1, 2)}), TWO) == {0: "loop@20"}


def test_of_two_that_close_alike_the_one_that_holds_the_loads_is_it() -> None:
    alike = program(summed(1, 10, closing=5), summed(2, 20, closing=5))
    code = made(".", "L21 F22 b5", ".", "L11 F12 b5", ".", to=LOOPS)
    assert matched(code, alike) == {0: "loop@5#2", 1: "loop@5"}


def test_loops_that_look_alike_are_taken_in_turn() -> None:
    twice = program(summed(1, 10), summed(2, 10))
    code = made(".", "L11 F12 b10", ".", "L11 F12 b10", ".", to=LOOPS)
    assert matched(code, twice) == {0: "loop@10", 1: "loop@10#2"}


def test_a_loop_that_holds_nothing_known_is_none_of_the_programs() -> None:
    assert matched(made(".", "L91 F92 b90", ".", to={1: (1, 2)}), TWO) == {}


def test_one_loop_of_the_program_may_stand_in_several_side_by_side() -> None:
    code = made(".", "L11 F12 b10", ".", "L11 F12 b10", ".", to=LOOPS)
    assert matched(code, TWO) == {0: "loop@10", 1: "loop@10"}


def test_of_nested_loops_only_one_is_it() -> None:
    nested = made(".", "L11", "L11 F12 b10", "b10", ".", to={2: (2, 3), 3: (1, 4)})
    assert list(matched(nested, TWO).values()) == ["loop@10"]


def test_a_loop_that_spins_on_a_barrier_is_none_though_it_closes_on_the_line() -> None:
    assert matched(made(".", "W b10", ".", to={1: (1, 2)}), TWO) == {}
    assert matched(made(".", "W L91 b10", ".", to={1: (1, 2)}), TWO) == {0: "loop@10"}


def test_without_loops_on_either_side_nothing_is_matched() -> None:
    assert match_loops(made("L11 F12"), TWO) == {}
    assert match_loops(made(".", "L11 F12 b10", ".", to={1: (1, 2)}), ()) == {}


# -- without places ---------------------------------------------------------------------

DOT = """
    %r9 = scf.for %i = %n to %n step %n iter_args(%acc = %w) -> (tensor<8x8xf32>)  : i32 {
      %d = tt.dot %x, %x, %acc : tensor<8x8xf16> * tensor<8x8xf16> -> tensor<8x8xf32>
      scf.yield %d : tensor<8x8xf32>
    }
"""


def lineless(*loops: str) -> tuple[ReferenceRegion, ...]:
    return find_reference(
        tensor_code("\n".join(line.partition(" @")[0] for line in "".join(loops).splitlines()), head=HEAD)
    )


def test_without_places_as_many_loops_at_the_same_depths_stand_in_order() -> None:
    reference = lineless(summed(1, 10), summed(2, 20))
    assert matched(made(".", "L F b", ".", "L F b", ".", to=LOOPS), reference) == {0: "loop#1", 1: "loop#2"}
    nested = made(".", "L", "L F b", "b", ".", to={2: (2, 3), 3: (1, 4)})
    assert matched(nested, reference) == {}


def test_without_places_loops_in_which_nothing_happens_are_passed_over() -> None:
    reference = lineless(summed(1, 10))
    assert matched(made(".", "I b", ".", "L F b", ".", to=LOOPS), reference) == {1: "loop#1"}


def test_without_places_the_loops_of_matrix_operations_are_told_by_them_alone() -> None:
    reference = lineless(summed(1, 10), DOT)
    three = made(".", "L b", ".", "L F b", ".", "M b", ".", to={1: (1, 2), 3: (3, 4), 5: (5, 6)})
    assert matched(three, reference) == {2: "loop#2"}


def test_without_places_a_number_that_does_not_fit_tells_nothing() -> None:
    three = made(".", "L F b", ".", "L F b", ".", "L F b", ".", to={1: (1, 2), 3: (3, 4), 5: (5, 6)})
    assert matched(three, lineless(summed(1, 10), summed(2, 20))) == {}


# -- loops that were flattened -----------------------------------------------------------

FLATTENED = f"""
    scf.for %j = %n to %n step %n  : i32 {{
      %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
        %a = tt.load %q : {P} @22
        %d = arith.addf %acc, %a : {T} @23
        scf.yield %d : {T}
      }} @21
      tt.store %o, %r : {P} @25
    }} @20
"""


def test_a_loop_flattened_into_the_one_around_is_told_by_what_it_holds() -> None:
    reference = program(FLATTENED)
    assert matched(made(".", "L22 F23 S25 b20", ".", to={1: (1, 2)}), reference) == {0: "loop@21"}


def test_one_place_tells_it_where_its_whole_body_is_one_line() -> None:
    reference = program(FLATTENED.replace("@23", "@22"))
    for letters, found in (("L22 F22 S25 b20", "loop@21"), ("L30 F30 S25 b20", "loop@20")):
        code = made(".", letters, ".", to={1: (1, 2)}, column=0)
        assert matched(code, reference) == {0: found}


def test_loops_that_stayed_nested_are_both_there() -> None:
    reference = program(FLATTENED)
    code = made(".", ".", "L22 F23 b21", "S25 b20", ".", to={2: (2, 3), 3: (1, 4)})
    assert matched(code, reference) == {0: "loop@20", 1: "loop@21"}


def test_a_flattened_loop_whose_loads_and_computes_stand_apart_is_both() -> None:
    reference = program(FLATTENED)
    code = made(".", "L22 L22 b20", ".", "F23 F23 b20", ".", to=LOOPS)
    assert matched(code, reference) == {0: "loop@21", 1: "loop@21"}


def test_without_places_loops_of_matrix_operations_at_other_depths_tell_nothing() -> None:
    three = made(".", "L b", ".", "M b", ".", "M b", ".", to={1: (1, 2), 3: (3, 4), 5: (5, 6)})
    assert matched(three, lineless(summed(1, 10), DOT)) == {}
    assert matched(made(".", "L", "M b", "b", ".", to={2: (2, 3), 3: (1, 4)}), lineless(DOT)) == {}
