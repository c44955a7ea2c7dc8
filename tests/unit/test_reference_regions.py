"""The program as written: its regions, rounds and places, read by eye from tensor-level IR."""

from __future__ import annotations

import pytest
from handwritten import indices_of, made, tensor_code

from artifact_inspector.analysis.order.reference_regions import (
    MAX_CONSUMER_DEPTH,
    ReferenceRegion,
    equal_runs,
    find_reference,
    loop_names,
)
from artifact_inspector.model import Stage

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%q: {P}, %n: i32, %z: {T}, %o: {P}, %b: i1"


def regions(body: str, *, pipelined: bool = False) -> tuple[ReferenceRegion, ...]:
    return find_reference(tensor_code(body, head=HEAD), pipelined=pipelined)


def place(line: int) -> tuple[tuple[str, int, int], ...]:
    return (("k.py", line, 1),)


SUM = f"""
    %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a_1 = tt.load %q : {P} @6
      %3 = tt.load %o : {P} @7
      %c = arith.mulf %a_1, %3 : {T} @8
      %d = arith.addf %acc, %c : {T} @9
      scf.yield %d : {T}
    }} @5
    tt.store %o, %r : {P} @10
"""


def test_straight_code_stands_first_and_then_the_loops_by_their_line() -> None:
    straight, loop = regions(SUM)
    assert (straight.id, straight.loop, straight.parent, straight.depth, straight.chain) == (
        "straight", None, None, 0, None,
    )  # fmt: skip
    assert (loop.id, loop.loop, loop.parent, loop.depth, loop.chain) == ("loop@5", 0, "straight", 1, place(5))


def test_a_round_has_its_statements_with_names_and_lines_and_its_computes_with_their_places() -> None:
    _, loop = regions(SUM)
    (found,) = loop.rounds
    assert [(s.name, s.source, s.chain) for s in found.statements] == [
        ("a", "k.py:6", place(6)), ("", "k.py:7", place(7)),
    ]  # fmt: skip
    (compute,) = found.computes
    # its own place, then that of what takes its result: the sum, which is the anchor and ends the steps
    assert compute.chains == (frozenset({place(8)}), frozenset({place(9)}))
    assert not compute.is_integer
    assert found.anchored_in == "loop@5"
    assert loop.statements == found.statements


def test_places_and_stores_are_told_by_region() -> None:
    straight, loop = regions(SUM)
    assert loop.chains >= {place(6), place(7), place(8), place(9)}
    assert place(10) in straight.chains
    assert straight.sinks == {place(10)}
    assert loop.sinks == frozenset()
    assert not loop.has_matrix


def test_a_load_whose_data_goes_into_a_loop_is_lent_to_it() -> None:
    straight, loop = regions(f"""
        %a = tt.load %q : {P} @3
        %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
          %d = arith.addf %acc, %a : {T} @6
          scf.yield %d : {T}
        }} @5
        tt.store %o, %r : {P} @9
    """)
    assert (straight.outer_load_count, loop.outer_load_count) == (0, 1)
    assert [item.anchored_in for item in straight.rounds] == ["loop@5"]


def test_a_load_that_nothing_computes_on_is_another() -> None:
    (straight,) = regions(f"%a = tt.load %q : {P} @3\ntt.store %o, %a : {P} @4")
    assert straight.rounds == ()
    assert [statement.source for statement in straight.unassigned_loads] == ["k.py:3"]


def test_rounds_in_the_arms_of_a_branch_exclude_each_other() -> None:
    (straight,) = regions(f"""
        scf.if %b {{
          %a = tt.load %q : {P} @4
          %c = arith.mulf %a, %a : {T} @5
          tt.store %o, %c : {P} @6
        }} else {{
          %e = tt.load %o : {P} @8
          %f = arith.mulf %e, %e : {T} @9
          tt.store %q, %f : {P} @10
        }} @3
    """)
    assert straight.exclusive == ((0, 1),)


def test_a_loop_that_is_to_be_flattened_says_so() -> None:
    flattened = SUM.replace("} @5", "} {tt.flatten} @5")
    assert [region.is_flattened for region in regions(flattened)] == [False, True]
    assert [region.is_flattened for region in regions(SUM)] == [False, False]


def test_the_steps_to_a_consumer_end_somewhere() -> None:
    chain = "\n".join(f"%x{n + 1} = arith.mulf %x{n}, %z : {T} @{20 + n}" for n in range(MAX_CONSUMER_DEPTH + 3))
    (straight,) = regions(f"%x0 = tt.load %q : {P} @3\n{chain}\ntt.store %o, %x{MAX_CONSUMER_DEPTH + 3} : {P} @90")
    (compute,) = straight.rounds[0].computes
    assert len(compute.chains) == len(compute.steps) == MAX_CONSUMER_DEPTH
    assert compute.chains[0] == {place(20)}
    assert compute.chains[-1] == {place(20 + MAX_CONSUMER_DEPTH - 1)}


def test_loops_are_named_by_line_and_numbered_where_that_does_not_tell_them_apart() -> None:
    one = "scf.for %i = %n to %n step %n  : i32 {\n}"
    assert loop_names(tensor_code(f"{one} @5\n{one} @6", head=HEAD)) == ["loop@5", "loop@6"]
    assert loop_names(tensor_code(f"{one} @5\n{one} @5\n{one} @5", head=HEAD)) == ["loop@5", "loop@5#2", "loop@5#3"]
    assert loop_names(tensor_code(f"{one}\n{one}", head=HEAD)) == ["loop#1", "loop#2"]


@pytest.mark.parametrize(
    ("count", "runs"),
    [
        (1, [[1, 2, 3, 4]]), (2, [[1, 2], [3, 4]]), (3, [[1], [2], [3, 4]]), (4, [[1], [2], [3], [4]]),
        (5, [[1], [1], [2], [3], [4]]), (8, [[1], [1], [2], [2], [3], [3], [4], [4]]),
    ],
)  # fmt: skip
def test_runs_are_as_equal_as_can_be_and_neighbours_share_what_is_too_few(count: int, runs: list[list[int]]) -> None:
    assert equal_runs([1, 2, 3, 4], count) == runs


def test_nothing_is_divided_into_empty_runs() -> None:
    assert equal_runs([], 2) == [[], []]


MEMORY = "#shared, #smem, mutable"
TILE = f"!ttg.memdesc<8xf32, {MEMORY}>"
AHEAD = f"""
    %m = ttg.local_alloc : () -> {TILE}
    %p = ttg.async_copy_global_to_local %q, %m : {P} -> <8xf32, {MEMORY}> @6
    %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
      %a = ttg.local_load %m : {TILE} -> {T} @6
      %d = arith.addf %acc, %a : {T} @9
      %c = ttg.async_copy_global_to_local %q, %m : {P} -> <8xf32, {MEMORY}> @6
      scf.yield %d : {T}
    }} @5
    tt.store %o, %r : {P} @10
"""


def test_copies_in_front_of_a_loop_are_folded_into_the_load_that_they_begin() -> None:
    code = tensor_code(AHEAD, Stage.TTGIR, head=HEAD)
    first, inside = indices_of(code, "async_copy_global_to_local")
    straight, loop = find_reference(code, pipelined=True)
    assert straight.rounds == ()
    ((statement,),) = (item.statements for item in loop.rounds)
    assert (statement.index, statement.prologue) == (inside, (first,))
    plain, unfolded = find_reference(code)
    assert [s.index for s in plain.statements] == [first]
    assert [s.prologue for s in unfolded.statements] == [()]


def test_a_copy_of_another_line_is_a_load_of_its_own_but_for_copies_without_lines() -> None:
    other = AHEAD.replace("<8xf32, #shared, #smem, mutable> @6\n    %r", "<8xf32, #shared, #smem, mutable> @4\n    %r")
    assert other != AHEAD
    code = tensor_code(other, Stage.TTGIR, head=HEAD)
    _, loop = find_reference(code, pipelined=True)
    assert [len(s.prologue) for s in loop.statements] == [1]  # asynchronous copies both, one for one


def test_a_text_that_is_no_program_has_no_regions_to_tell() -> None:
    assert find_reference(made("L3 F4 S5")) == ()


def test_a_plain_load_in_front_of_a_loop_is_of_its_own_line() -> None:
    text = f"""
        %m = ttg.local_alloc : () -> {TILE}
        %p = tt.load %q : {P} @4
        ttg.local_store %p, %m : {T} -> {TILE}
        %r = scf.for %i = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
          %a = ttg.local_load %m : {TILE} -> {T} @6
          %d = arith.addf %acc, %a : {T} @9
          %c = tt.load %q : {P} @6
          ttg.local_store %c, %m : {T} -> {TILE}
          scf.yield %d : {T}
        }} @5
        tt.store %o, %r : {P} @10
    """
    code = tensor_code(text, Stage.TTGIR, head=HEAD)
    plain, loop = find_reference(code, pipelined=True)
    assert [s.prologue for s in loop.statements] == [()]
    assert [s.index for s in plain.statements] == indices_of(code, "tt.load")[:1]
