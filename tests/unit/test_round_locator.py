"""Where the rounds of a small program ended up; stages are made of letters with lines of k.py."""

from __future__ import annotations

from dataclasses import replace

from handwritten import made, tensor_code

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.order.placement import Placement, PreviousStage
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.analysis.order.round_locator import locate_rounds
from artifact_inspector.model import Basis, EventKind, Operands

T, P = "tensor<8xf32>", "tensor<8x!tt.ptr<f32>>"
HEAD = f"%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %z: {T}, %o: {P}, %i: tensor<8xi32>"


def loaded(name: str, line: int, pointer: str = "%q") -> str:
    """A load of an address made from a pointer."""
    return f"""
    %{name}b = tt.splat {pointer} : !tt.ptr<f32> -> {P}
    %{name}p = tt.addptr %{name}b, %i : {P}, tensor<8xi32>
    %{name} = tt.load %{name}p : {P} @{line}"""


# two rounds: a · a stored, b · c stored, and a load that is only stored
PROGRAM = (
    loaded("a", 3, "%p") + f"\n%d = arith.mulf %a, %a : {T} @4\ntt.store %o, %d : {P} @5"
    + loaded("b", 6) + loaded("c", 7) + f"\n%e = arith.mulf %b, %c : {T} @8\ntt.store %o, %e : {P} @9"
    + loaded("f", 10) + f"\ntt.store %o, %f : {P} @11"
)  # fmt: skip


def program(body: str = PROGRAM) -> tuple[FunctionCode, tuple[ReferenceRegion, ...]]:
    code = tensor_code(body, head=HEAD)
    return code, find_reference(code)


def straight(code: FunctionCode, reference: tuple[ReferenceRegion, ...], *, exact: bool = False) -> Region:
    return find_regions(code, reference, exact=exact)[0]


def placed(*blocks: str, before: PreviousStage | None = None, home: int | None = None) -> Placement:
    _, reference = program()
    code = made(*blocks, home=home)
    return locate_rounds(code, straight(code, reference), before)


def loads(found: Placement) -> list[list[list[int]]]:
    return [[statement.loads for statement in item.statements] for item in found.rounds]


def memory(found: Placement) -> PreviousStage:
    """What a stage tells the next one."""
    statements = [statement for item in found.rounds for statement in item.statements]
    return PreviousStage(
        {s.program.index: len(s.loads) for s in statements},
        {number: len(item.computes) for number, item in enumerate(found.rounds)},
        {}, 1,
    )  # fmt: skip


def test_the_stage_of_the_program_has_its_rounds_as_they_are() -> None:
    code, reference = program()
    found = locate_rounds(code, straight(code, reference, exact=True), None)
    assert [len(item.statements) for item in found.rounds] == [1, 2]
    assert all(item.identified_computes == frozenset(item.computes) for item in found.rounds)
    assert (found.basis, found.unassigned, found.is_uncertain) == (Basis.SOURCE, ["k.py:10"], False)


def test_loads_and_computes_are_found_again_by_their_place() -> None:
    found = placed("L3 L3 F4 S5 L6 L7 F8 S9 L10 S11")
    assert loads(found) == [[[0, 1]], [[4], [5]]]
    assert [item.computes for item in found.rounds] == [[2], [6]]
    assert (found.basis, found.notes, found.unassigned) == (Basis.SOURCE, [], ["k.py:10"])
    assert all(item.identity is not None for item in found.rounds)


def test_without_a_program_rounds_are_runs_of_loads() -> None:
    code = made("L F")
    assert locate_rounds(code, straight(code, ()), None).basis is Basis.DATAFLOW


def test_what_is_left_of_a_loop_has_no_rounds() -> None:
    code, reference = made("L3 F4"), program()[1]
    gone = replace(straight(code, reference), residue=(0,))
    assert locate_rounds(code, gone, None) == Placement([], [], Basis.SOURCE)
    lineless = made("L F")
    assert locate_rounds(lineless, gone, None).basis is Basis.DATAFLOW


def test_a_stage_without_lines_is_read_by_dataflow() -> None:
    code, reference = made("L L F L L F"), program()[1]
    assert locate_rounds(code, straight(code, reference), None).basis is Basis.DATAFLOW


def test_loads_that_lost_their_line_are_taken_in_order_for_what_is_missing() -> None:
    found = placed("L3 F4 S5 L1 L7 F8 S9 L10", home=1)
    assert loads(found) == [[[0]], [[3], [4]]]
    assert found.rounds[1].statements[0].is_uncertain
    assert not found.rounds[0].statements[0].is_uncertain
    assert found.rounds[1].identity is None
    (note,) = found.notes
    assert note.message == ("loads without a line were assigned, in order, to the statements without a load")


def test_too_few_of_them_are_taken_for_none() -> None:
    found = placed("L3 F4 S5 L1 F8 S9 L10", home=1)
    assert loads(found)[1][0] == loads(found)[1][1] == []


def test_a_load_without_a_line_of_its_own_may_be_part_of_its_neighbours_wider_one() -> None:
    found = placed("L3 F4 S5 L6 F8 S9 L10")
    assert loads(found) == [[[0]], [[3], [3]]]
    assert [s.is_merged for s in found.rounds[1].statements] == [False, True]
    (note,) = found.notes
    assert note.message == "the load of c (k.py:7) has no line of its own: it is merged with the load of b (k.py:6)"


def test_one_wide_load_may_be_several_of_a_pointer_in_a_row() -> None:
    three = loaded("a", 3) + loaded("b", 4) + loaded("c", 5)
    body = three + f"\n%d = arith.mulf %a, %b : {T} @6\n%e = arith.mulf %d, %c : {T} @7\ntt.store %o, %e : {P} @8"
    _, reference = program(body)
    code = made("L3 F6 F7 S8")
    found = locate_rounds(code, straight(code, reference), None)
    assert loads(found) == [[[0], [0], [0]]]
    assert [s.is_merged for s in found.rounds[0].statements] == [False, True, True]


def test_only_loads_from_one_pointer_can_be_one() -> None:
    other = PROGRAM.replace("%bb = tt.splat %q", "%bb = tt.splat %qq")
    code = tensor_code(other, head=HEAD + ", %qq: !tt.ptr<f32>")
    stage = made("L3 F4 S5 L7 F8 S9 L10")
    found = locate_rounds(stage, straight(stage, find_reference(code)), None)
    assert loads(found) == [[[0]], [[], [3]]]


def test_loads_that_others_have_too_many_are_those_that_are_missing() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    found = placed("L3 L3 F4 S5 L7 F8 S9 L10", before=before)
    assert loads(found) == [[[0]], [[1], [4]]]


def test_loads_at_a_place_of_none_are_taken_if_they_are_as_many_as_are_missing() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    # line 8 is that of a compute, which loads nothing
    found = placed("L3 F4 S5 L6 L8 F8 S9 L10", before=before)
    assert loads(found) == [[[0]], [[3], [4]]]
    assert placed("L3 F4 S5 L6 L8 L8 F8 S9 L10", before=before).rounds[1].statements[1].is_merged


def test_of_what_the_stage_before_did_not_hold_nothing_is_due() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    fewer = replace(before, loads=dict(list(before.loads.items())[:2]))
    assert placed("L3 F4 S5 L6 L8 F8 S9 L10", before=fewer).rounds[1].statements[1].is_merged


def test_a_store_of_a_loaded_value_at_its_line_is_no_stray_load() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    found = placed("L3 F4 S5 L6 L9 F8 S9 L10", before=before)  # 9 is the line of a store
    assert found.rounds[1].statements[1].is_merged


TWICE = loaded("a", 3) + loaded("b", 3) + f"\n%d = arith.mulf %a, %b : {T} @4\ntt.store %o, %d : {P} @5"


def test_loads_at_one_place_are_shared_in_equal_runs_and_an_odd_number_is_a_guess() -> None:
    _, reference = program(TWICE)
    for letters, runs, guessed in (("L3 L3 L3 L3 F4", [[0, 1], [2, 3]], False), ("L3 L3 L3 F4", [[0], [1, 2]], True)):
        code = made(letters)
        found = locate_rounds(code, straight(code, reference), None)
        assert loads(found) == [runs]
        assert [s.is_uncertain for s in found.rounds[0].statements] == [guessed, guessed]


def test_loads_at_one_place_are_told_apart_by_what_they_were_at_the_stage_before() -> None:
    _, reference = program(TWICE)
    first, second = (statement.index for statement in reference[0].statements)
    code = made("L3 L3 A3 A3 A3 A3 F4")
    region = straight(code, reference)
    copies, load = frozenset({EventKind.ASYNC_COPY}), frozenset({EventKind.GLOBAL_LOAD})
    for kinds, runs in (
        ({first: copies, second: load}, [[2, 3, 4, 5], [0, 1]]),
        ({first: load, second: load}, [[0, 1, 2], [3, 4, 5]]),
        ({first: copies}, [[0, 1, 2], [3, 4, 5]]),
    ):
        before = replace(memory(locate_rounds(code, region, None)), kinds=kinds)
        assert loads(locate_rounds(code, region, before)) == [runs]


SCALAR = EventKind.SCALAR_LOAD


def scalar(letters: str, before: PreviousStage | None, *, at: int = 1, made_by: int = 0) -> list[list[list[int]]]:
    """Loads of the program where one goes through the scalar cache, to an address that another made."""
    code = made(letters)
    instructions = list(code.function.instructions)
    instructions[at] = instructions[at]._replace(kind=SCALAR, decode=lambda _: Operands((), ("s4",)))
    instructions[made_by] = instructions[made_by]._replace(decode=lambda _: Operands(("s4",), ()))
    changed = FunctionCode(replace(code.function, instructions=tuple(instructions)), code.module, code.language)
    return loads(locate_rounds(changed, straight(changed, program()[1]), before))


def test_a_load_through_the_scalar_cache_counts_where_it_is_due() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    letters = "S2 L3 F4 S5 L6 L7 F8 S9 L10"
    assert scalar(letters, before)[0] == [[1]]
    assert scalar(letters, None)[0] == [[]]
    assert scalar(letters, before, made_by=3)[0] == [[]]  # an argument of the kernel: its address is given


def test_one_at_another_line_is_that_of_the_statement_that_lacks_a_load() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    assert scalar("S2 L11 F4 S5 L6 L7 F8 S9 L10", before)[0] == [[1]]
    assert scalar("S2 L11 F4 S5 L6 L7 F8 S9 L10", before, made_by=3)[0] == [[]]


def test_of_loads_in_one_clause_those_that_only_follow_are_left_to_others() -> None:
    before = memory(placed("L3 F4 S5 L6 L7 F8 S9 L10"))
    code = made("L3 L3 F4 S5 L7 F8 S9 L10")  # the second load bears the line of the clause's first
    clause = FunctionCode(replace(code.function, clause_followers=frozenset({1})), code.module, code.language)
    found = locate_rounds(clause, straight(clause, program()[1]), before)
    assert loads(found) == [[[0]], [[1], [4]]]


def test_loads_in_front_of_a_loop_are_its_prologue() -> None:
    _, reference = program(f"""
        %r = scf.for %j = %n to %n step %n iter_args(%acc = %z) -> ({T})  : i32 {{
          %a = tt.load %o : {P} @22
          %d = arith.addf %acc, %a : {T} @23
          scf.yield %d : {T}
        }} @21
        tt.store %o, %r : {P} @25
    """)
    code = made("A22 A22", "F23 A22 b21", "S25", to={1: (1, 2)})
    loop = find_regions(code, reference, exact=False)[1]
    found = locate_rounds(code, loop, None)
    ((statement,),) = (item.statements for item in found.rounds)
    assert (statement.loads, statement.loads_before_loop) == ([3], [0, 1])


def test_the_first_load_of_all_may_be_the_wider_one_too() -> None:
    body = loaded("a", 3) + loaded("b", 4) + f"\n%d = arith.mulf %a, %b : {T} @5\ntt.store %o, %d : {P} @6"
    _, reference = program(body)
    code = made("L3 F5 S6")
    found = locate_rounds(code, straight(code, reference), None)
    assert loads(found) == [[[0], [0]]]
    assert [statement.is_merged for statement in found.rounds[0].statements] == [False, True]


def test_of_loads_in_a_clause_the_last_are_left_where_the_stage_before_had_fewer() -> None:
    _, reference = program()
    before = memory(placed("L3 L3 F4 S5 L6 L7 F8 S9 L10"))
    plain = made("L3 L3 L3 L3 F4 S5 L6 L7 F8 S9 L10")
    code = FunctionCode(replace(plain.function, clause_followers=frozenset({1, 2, 3})), plain.module, plain.language)
    found = locate_rounds(code, straight(code, reference), before)
    # two were due, four stand there: the one clause has one end, and that load is nobody's
    assert loads(found)[0] == [[0, 1, 2]]
