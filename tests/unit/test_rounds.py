"""Rounds read off tensor-level IR, on small modules written by hand after real ones."""

from textwrap import dedent

from handwritten import prepared

from artifact_inspector.analysis.order.rounds import StageRounds, find_rounds
from artifact_inspector.formats.mlir.parser import FORMAT
from artifact_inspector.model import Function, Stage
from artifact_inspector.model.text import SourceText

T, P = "tensor<64xf32>", "tensor<64x!tt.ptr<f32>>"


def parse(body: str) -> Function:
    text = f"module {{\n  tt.func public @k(%p: {P}, %q: {P}, %n: i32) {{\n{dedent(body)}\n    tt.return\n  }}\n}}\n"
    return FORMAT.parse(SourceText("k.ttir", text), Stage.TTIR).functions[0]


def rounds(body: str) -> tuple[Function, StageRounds]:
    function = parse(body)
    found = find_rounds(prepared(function, Stage.TTIR))
    assert found is not None
    return function, found


def shape(body: str) -> list[tuple[list[str], list[str]]]:
    """For each round, the values its loads define and the values its direct computes define."""
    function, found = rounds(body)

    def names(indices: list[int]) -> list[str]:
        return [",".join(function.instructions[i].operands.results) for i in indices]

    return [(names([s.index for s in r.statements]), names(list(r.computes))) for r in found.rounds]


def reduction(value: str, result: str) -> str:
    return f"""
    {result} = "tt.reduce"({value}) <{{axis = 0 : i32}}> ({{
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tt.reduce.return %s : f32
    }}) : ({T}) -> f32"""


def test_two_loads_that_meet_in_a_product_are_one_round() -> None:
    body = f"""
    %a = tt.load %p : {P}
    %b = tt.load %q : {P}
    %m = arith.mulf %a, %b : {T}
    {reduction("%m", "%r")}
    tt.store %p, %m : {P}
    """
    assert shape(body) == [(["%a", "%b"], ["%m"])]


def test_each_reduction_starts_a_round_of_its_own() -> None:
    body = f"""
    %a = tt.load %p : {P}
    {reduction("%a", "%r")}
    %b = tt.load %q : {P}
    {reduction("%b", "%s2")}
    """
    assert shape(body) == [(["%a"], ["%r"]), (["%b"], ["%s2"])]


def test_an_operand_of_both_rounds_belongs_to_the_first_and_is_shared() -> None:
    body = f"""
    %z = tt.load %p : {P}
    %a = tt.load %q : {P}
    %u = arith.subf %a, %z : {T}
    {reduction("%u", "%r")}
    %b = tt.load %q : {P}
    %v = arith.subf %b, %z : {T}
    {reduction("%v", "%s2")}
    """
    assert shape(body) == [(["%z", "%a"], ["%u"]), (["%b"], ["%v"])]
    _, found = rounds(body)
    assert [[s.is_shared for s in r.statements] for r in found.rounds] == [[True, False], [False]]


def test_a_load_that_only_addresses_another_joins_its_round_as_an_index() -> None:
    body = f"""
    %i = tt.load %q : {P}
    %j = tt.addptr %p, %i : {P}, {T}
    %a = tt.load %j : {P}
    {reduction("%a", "%r")}
    """
    _, found = rounds(body)
    (item,) = found.rounds
    assert [s.is_index for s in item.statements] == [True, False]


def test_a_load_that_feeds_only_a_mask_forms_no_round() -> None:
    body = f"""
    %m = tt.load %q : {P}
    %c = arith.cmpi sgt, %m, %m : {T}
    %a = tt.load %p, %c : {P}
    {reduction("%a", "%r")}
    """
    function, found = rounds(body)
    assert [len(r.statements) for r in found.rounds] == [1]
    assert [function.instructions[s.index].operands.results for s in found.unassigned_loads] == [("%m",)]


def test_a_copy_forms_no_round() -> None:
    body = f"""
    %a = tt.load %p : {P}
    tt.store %q, %a : {P}
    """
    _, found = rounds(body)
    assert found.rounds == ()
    assert len(found.unassigned_loads) == 1


def test_data_that_meets_no_anchor_is_grouped_by_the_store_it_ends_in() -> None:
    body = f"""
    %a = tt.load %p : {P}
    %b = tt.load %q : {P}
    %m = arith.addf %a, %b : {T}
    tt.store %q, %m : {P}
    """
    assert shape(body) == [(["%a", "%b"], ["%m"])]


def test_a_reduction_over_extent_one_is_a_move() -> None:
    body = f"""
    %a = tt.load %p : {P}
    %r = "tt.reduce"(%a) <{{axis = 0 : i32}}> ({{
    ^bb0(%x: f32, %y: f32):
      %s = arith.addf %x, %y : f32
      tt.reduce.return %s : f32
    }}) : (tensor<1x64xf32>) -> {T}
    %b = tt.load %q : {P}
    %m = arith.mulf %r, %b : {T}
    tt.store %q, %m : {P}
    """
    assert shape(body) == [(["%a", "%b"], ["%m"])]


def test_a_float_that_the_loop_carries_is_an_anchor() -> None:
    body = f"""
    %c0 = arith.constant 0 : i32
    %z = arith.constant dense<0.0> : {T}
    %acc = scf.for %i = %c0 to %n step %c0 iter_args(%s = %z) -> ({T}) : i32 {{
      %a = tt.load %p : {P}
      %t = arith.addf %s, %a : {T}
      %b = tt.load %q : {P}
      %u = arith.mulf %b, %b : {T}
      tt.store %q, %u : {P}
      scf.yield %t : {T}
    }}
    """
    assert shape(body) == [(["%a"], ["%t"]), (["%b"], ["%u"])]


def test_a_load_for_the_next_iteration_is_one_ahead() -> None:
    body = f"""
    %c0 = arith.constant 0 : i32
    %z = arith.constant dense<0.0> : {T}
    %first = tt.load %p : {P}
    %r:2 = scf.for %i = %c0 to %n step %c0 iter_args(%s = %z, %x = %first) -> ({T}, {T}) : i32 {{
      %next = tt.load %q : {P}
      %t = arith.addf %s, %x : {T}
      scf.yield %t, %next : {T}, {T}
    }}
    """
    function, found = rounds(body)
    distances = {
        function.instructions[s.index].operands.results[0]: (r.loop, s.distance)
        for r in found.rounds
        for s in r.statements
    }
    assert distances == {"%first": (None, 0), "%next": (0, 1)}


def test_names_reused_in_sibling_regions_are_different_values() -> None:
    body = f"""
    %c0 = arith.constant 0 : i32
    scf.for %i = %c0 to %n step %c0 : i32 {{
      %1 = tt.load %p : {P}
      %2 = arith.mulf %1, %1 : {T}
      tt.store %q, %2 : {P}
    }}
    scf.for %i = %c0 to %n step %c0 : i32 {{
      %1 = tt.load %p : {P}
      tt.store %q, %1 : {P}
    }}
    """
    _, found = rounds(body)
    assert [r.loop for r in found.rounds] == [0]
    assert [s.loop for s in found.unassigned_loads] == [1]


def test_data_passes_through_both_branches_of_an_if() -> None:
    body = f"""
    %c = arith.constant true
    %a = tt.load %p : {P}
    %v = scf.if %c -> ({T}) {{
      %b = tt.load %q : {P}
      %m = arith.addf %a, %b : {T}
      scf.yield %m : {T}
    }} else {{
      scf.yield %a : {T}
    }}
    {reduction("%v", "%r")}
    """
    assert shape(body) == [(["%a", "%b"], ["%m", "%r"])]


def test_a_load_that_computes_on_its_own_account_stays_in_its_round_though_it_addresses_another() -> None:
    body = f"""
    %i = tt.load %q : {P}
    {reduction("%i", "%r")}
    %j = tt.addptr %p, %i : {P}, {T}
    %a = tt.load %j : {P}
    {reduction("%a", "%s2")}
    """
    assert shape(body) == [(["%i"], ["%r"]), (["%a"], ["%s2"])]


def test_one_element_that_decides_which_address_is_taken_is_no_index() -> None:
    body = f"""
    %k = tt.load %s : !tt.ptr<i1>
    %j = arith.select %k, %p, %q : {P}
    %a = tt.load %j : {P}
    {reduction("%a", "%r")}
    """
    assert shape(body) == [(["%a"], ["%r"])]
    assert shape(body.replace("%k = tt.load %s : !tt.ptr<i1>", "%k = tt.load %s : tensor<64x!tt.ptr<i1>>")) == [
        (["%k", "%a"], ["%r"])
    ]


def test_a_compute_that_decides_what_is_reduced_is_one_of_the_round() -> None:
    body = f"""
    %a = tt.load %p : {P}
    %c = arith.mulf %a, %a : {T}
    %m = arith.cmpf ogt, %c, %z : {T}
    %s0 = arith.select %m, %z, %c0 : {T}
    {reduction("%s0", "%r")}
    """
    assert shape(body) == [(["%a"], ["%c"])]
    _, found = rounds(body)
    (item,) = found.rounds
    (compare,) = found.consumers(item.computes[0], item.anchor)
    assert found.consumers(compare, item.anchor) == [item.anchor]


def test_data_that_only_chooses_what_is_computed_on_and_stored_is_of_a_round() -> None:
    body = f"""
    %a = tt.load %q : tensor<64x!tt.ptr<i1>>
    %s = arith.select %a, %y, %z : {T}
    %m = arith.mulf %s, %s : {T}
    tt.store %p, %m : {P}
    """
    assert shape(body) == [(["%a"], ["%m"])]
    assert shape(body.replace("tensor<64x!tt.ptr<i1>>", "!tt.ptr<i1>")) == []  # one element chooses a way


def test_a_copy_belongs_to_the_matrix_operation_of_its_own_loop_if_another_one_reads_its_buffer_too() -> None:
    tile, many = "!ttg.memdesc<64x64xf16, #s, #m, mutable>", "!ttg.memdesc<2x64x64xf16, #s, #m, mutable>"

    def multiply(tag: str) -> str:
        return f"""
        %u{tag} = ttg.memdesc_index %tiles[%n] : {many} -> {tile}
        ttng.tc_gen5_mma %u{tag}, %u{tag}, %acc[], %true, %true : {tile}, {tile}, {tile}"""

    body = f"""
    %tiles = ttg.local_alloc : () -> {many}
    %acc = ttng.tmem_alloc : () -> {tile}
    %first = ttg.memdesc_index %tiles[%n] : {many} -> {tile}
    ttg.async_copy_global_to_local %p, %first : {P} -> {tile}
    scf.for %i = %n to %n step %n : i32 {{
      {multiply("1")}
      scf.for %k = %n to %n step %n : i32 {{
        %a = ttg.memdesc_index %tiles[%k] : {many} -> {tile}
        ttg.async_copy_global_to_local %p, %a : {P} -> {tile}
        {multiply("2")}
      }}
    }}
    """
    function, found = rounds(body)
    products = [i for i, operation in enumerate(function.instructions) if operation.opcode.endswith("mma")]
    assert [(r.loop, r.anchor) for r in found.rounds] == [(None, products[0]), (1, products[1])]


def test_the_scale_of_each_unrolled_step_belongs_to_its_step() -> None:
    """A GEMV of quantised weights with a scale for each group: both scales end in the store, each after its own sum."""
    steps = "".join(
        f"""
    %a{n} = tt.load %p : {P}
    %s{n} = tt.load %x : !tt.ptr<f32>
    {reduction(f"%a{n}", f"%r{n}")}
    %m{n} = arith.mulf %r{n}, %s{n} : f32"""
        for n in (1, 2)
    )
    body = f"""
    %x = tt.addptr %z, %n : !tt.ptr<f32>, i32
    {steps}
    %sum = arith.addf %m1, %m2 : f32
    tt.store %x, %sum : !tt.ptr<f32>
    """
    assert [loads for loads, _ in shape(body)] == [["%a1", "%s1"], ["%a2", "%s2"]]


def test_the_scale_of_a_single_sum_ends_in_the_store() -> None:
    body = f"""
    %a = tt.load %p : {P}
    %x = tt.addptr %z, %n : !tt.ptr<f32>, i32
    {reduction("%a", "%r")}
    %s = tt.load %x : !tt.ptr<f32>
    %m = arith.mulf %r, %s : f32
    tt.store %x, %m : !tt.ptr<f32>
    """
    assert [loads for loads, _ in shape(body)] == [["%a"], ["%s"]]
