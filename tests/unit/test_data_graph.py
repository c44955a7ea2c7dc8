"""Where loaded data goes in tensor-level IR; the edges are drawn by hand from a few operations."""

from __future__ import annotations

from handwritten import indices_of, tensor_code

from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, NO_LOOP, PLAIN_EDGE, DataGraph
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import Stage

T = "tensor<8xf32>"
P = "tensor<8x!tt.ptr<f32>>"
MEM = "!ttg.memdesc<8xf32, #s, #smem, mutable>"


def only(code: FunctionCode, opcode: str) -> int:
    (index,) = indices_of(code, opcode)
    return index


def value(code: FunctionCode, opcode: str) -> int:
    """What the one operation of this opcode gives."""
    (result,) = code.values.results[only(code, opcode)]
    return result


def reached(graph: DataGraph, start: int) -> set[int]:
    """All nodes that data in one comes to."""
    found, pending = set[int](), [start]
    while pending:
        for after, _ in graph.successors[pending.pop()]:
            if after not in found:
                found.add(after)
                pending.append(after)
    return found


def test_a_load_takes_its_address_and_gives_its_data_and_computes_end_the_steps() -> None:
    code = tensor_code(f"""
        %a = tt.load %q : {P}
        %b = tt.reshape %a : {T} -> {T}
        %c = arith.mulf %b, %b : {T}
        tt.store %q, %c : {P}
    """, head=f"%q: {P}")  # fmt: skip
    graph = DataGraph(code)
    load, compute, store = only(code, "tt.load"), only(code, "mulf"), only(code, "tt.store")
    assert graph.operands[load] == [0]
    assert graph.results[load] == [value(code, "tt.load")]
    assert graph.successors[value(code, "tt.load")] == [(value(code, "reshape"), PLAIN_EDGE)]
    assert graph.predecessors[value(code, "reshape")] == [(value(code, "tt.load"), PLAIN_EDGE)]
    assert graph.successors[value(code, "reshape")] == []
    assert graph.users[value(code, "reshape")] == [compute]
    assert graph.producer == {value(code, "mulf"): compute}
    assert graph.operands[store] == [value(code, "mulf")]


def test_the_condition_of_a_selection_is_a_bound_and_what_is_selected_is_data() -> None:
    code = tensor_code(f"""
        %s = arith.select %m, %a, %b : tensor<8xi1>, {T}
    """, head=f"%m: tensor<8xi1>, %a: {T}, %b: {T}")  # fmt: skip
    graph, chosen = DataGraph(code), value(code, "select")
    assert [graph.successors[n] for n in range(3)] == [
        [(chosen, CONDITION_EDGE)],
        [(chosen, PLAIN_EDGE)],
        [(chosen, PLAIN_EDGE)],
    ]


LOOP = f"""
    %c0 = arith.constant 0 : i32
    %z = arith.constant dense<0.0> : {T}
    %r = scf.for %i = %c0 to %n step %c0 iter_args(%x = %z) -> ({T})  : i32 {{
      %a = tt.load %q : {P}
      %y = tt.reshape %x : {T} -> {T}
      scf.yield %a : {T}
    }}
    %u = tt.reshape %r : {T} -> {T}
"""


def test_data_crosses_the_back_edge_of_its_loop_and_leaves_it_as_its_result() -> None:
    code = tensor_code(LOOP, head=f"%q: {P}, %n: i32")
    graph = DataGraph(code)
    loaded = value(code, "tt.load")
    inside, outside = (code.values.results[index][0] for index in indices_of(code, "reshape"))
    kinds = {kind for _, kind in graph.successors[loaded]}
    assert kinds == {0, PLAIN_EDGE}  # to the argument by the back edge of loop 0, to the result without
    assert {inside, outside} <= reached(graph, loaded)


def test_values_live_in_the_loop_that_holds_them_and_its_result_outside() -> None:
    code = tensor_code(LOOP, head=f"%q: {P}, %n: i32")
    graph = DataGraph(code)
    inside, outside = (code.values.results[index][0] for index in indices_of(code, "reshape"))
    assert graph.loop_of_node[value(code, "tt.load")] == graph.loop_of_node[inside] == 0
    assert graph.loop_of_node[outside] is None
    targets = {handed.target for flows in code.values.flows for handed in flows}
    assert {graph.loop_of_node[target] for target in targets} == {0, None}


def test_a_buffer_holds_what_was_stored_and_lives_everywhere() -> None:
    code = tensor_code(f"""
        %m = ttg.local_alloc : () -> {MEM}
        %a = tt.load %q : {P}
        ttg.local_store %a, %m : {T} -> {MEM}
        %b = ttg.local_load %m : {MEM} -> {T}
    """, Stage.TTGIR, head=f"%q: {P}")  # fmt: skip
    graph = DataGraph(code)
    assert value(code, "local_load") in reached(graph, value(code, "tt.load"))
    assert NO_LOOP in graph.loop_of_node


def test_in_straight_code_a_load_of_shared_memory_sees_only_what_was_stored_before() -> None:
    code = tensor_code(f"""
        %m = ttg.local_alloc : () -> {MEM}
        %a = tt.load %q : {P}
        ttg.local_store %a, %m : {T} -> {MEM}
        %b = ttg.local_load %m : {MEM} -> {T}
        %c = arith.constant dense<0.0> : {T}
        ttg.local_store %c, %m : {T} -> {MEM}
        %d = ttg.local_load %m : {MEM} -> {T}
    """, Stage.TTGIR, head=f"%q: {P}")  # fmt: skip
    graph = DataGraph(code)
    first, second = (code.values.results[index][0] for index in indices_of(code, "local_load"))
    constant = value(code, "constant")
    assert first not in reached(graph, constant)
    assert second in reached(graph, constant)
    assert {first, second} <= reached(graph, value(code, "tt.load"))


def test_a_view_names_the_buffer_that_it_is_part_of() -> None:
    code = tensor_code(f"""
        %m = ttg.local_alloc : () -> !ttg.memdesc<2x8xf32, #s, #smem, mutable>
        %v = ttg.memdesc_index %m[%n] : !ttg.memdesc<2x8xf32, #s, #smem, mutable> -> {MEM}
        %w = ttg.memdesc_index %m[%n] : !ttg.memdesc<2x8xf32, #s, #smem, mutable> -> {MEM}
        %a = tt.load %q : {P}
        ttg.local_store %a, %v : {T} -> {MEM}
        %b = ttg.local_load %w : {MEM} -> {T}
    """, Stage.TTGIR, head=f"%q: {P}, %n: i32")  # fmt: skip
    graph = DataGraph(code)
    assert value(code, "local_load") in reached(graph, value(code, "tt.load"))


def test_a_copy_fills_its_buffer() -> None:
    code = tensor_code(f"""
        %m = ttg.local_alloc : () -> {MEM}
        %t = ttg.async_copy_global_to_local %q, %m : {P} -> {MEM}
        %b = ttg.local_load %m : {MEM} -> {T}
    """, Stage.TTGIR, head=f"%q: {P}")  # fmt: skip
    graph, copy = DataGraph(code), only(code, "async_copy_global_to_local")
    assert len(graph.results[copy]) == 2  # its token and the buffer
    assert value(code, "local_load") in set().union(*(reached(graph, node) for node in graph.results[copy][1:]))


def test_a_loop_may_be_the_first_operation() -> None:
    code = tensor_code(f"""
        %r = scf.for %i = %n to %n step %n iter_args(%x = %z) -> ({T})  : i32 {{
          %a = tt.load %q : {P}
          scf.yield %a : {T}
        }}
        %u = tt.reshape %r : {T} -> {T}
    """, head=f"%q: {P}, %n: i32, %z: {T}")  # fmt: skip
    graph = DataGraph(code)
    targets = {handed.target for flows in code.values.flows for handed in flows}
    assert {graph.loop_of_node[target] for target in targets} == {0, None}
