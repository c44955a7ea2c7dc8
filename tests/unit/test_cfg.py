"""Execution order and natural loops."""

import pytest

from artifact_inspector.analysis.flow.cfg import ControlFlow, control_flow, find_control_flow
from artifact_inspector.model import BasicBlock, EventKind, Function, Instruction, Operands


def function(*successors: tuple[int, ...]) -> Function:
    """A function of one instruction a block, with these edges."""
    instructions = tuple(
        Instruction(i + 1, "op", EventKind.OTHER, None, None, "op", lambda _: Operands((), ()))
        for i in range(len(successors))
    )
    blocks = tuple(BasicBlock(i, f"b{i}", i, i + 1, edges) for i, edges in enumerate(successors))
    return Function("f", 1, None, (), instructions, blocks)


def flow(*successors: tuple[int, ...]) -> ControlFlow:
    return find_control_flow(function(*successors))


def test_a_single_block_has_no_loops() -> None:
    assert flow(()) == ControlFlow((0,), (0,), (), (None,), (0,))


def test_a_diamond_keeps_the_order_of_the_text() -> None:
    assert flow((1, 2), (3,), (3,), ()).order == (0, 1, 2, 3)


def test_a_block_moved_behind_its_successor_runs_before_it() -> None:
    # LLVM puts cold blocks at the end of the text: 0 → 3 → 1.
    assert flow((3,), (2,), (), (1,)).order == (0, 3, 1, 2)


def test_a_loop_is_found_with_header_latch_and_body() -> None:
    found = flow((1,), (2, 3), (1,), ())
    (loop,) = found.loops
    assert (loop.header, loop.latches, loop.blocks, loop.parent, loop.depth) == (1, (2,), {1, 2}, None, 1)
    assert found.loop_of == (None, 0, 0, None)


def test_a_block_that_is_its_own_latch_is_a_loop() -> None:
    (loop,) = flow((1,), (1, 2), ()).loops
    assert loop.blocks == {1}


def test_nested_loops_name_their_parent_and_depth() -> None:
    found = flow((1,), (2,), (2, 3), (1, 4), ())
    outer, inner = found.loops
    assert (outer.header, outer.depth, outer.parent) == (1, 1, None)
    assert (inner.header, inner.depth, inner.parent) == (2, 2, 0)
    assert found.encloses(0, 1)
    assert found.encloses(None, 1)
    assert not found.encloses(1, 0)


def test_two_loops_in_a_row_are_no_parents_of_each_other() -> None:
    first, second = flow((1,), (1, 2), (2, 3), ()).loops
    assert (first.header, second.header) == (1, 2)
    assert first.parent is None
    assert second.parent is None


def test_blocks_of_a_loop_stay_together_when_an_exit_stands_between_them() -> None:
    # The exit 2 is written between the header 1 and the latch 3.
    found = flow((1,), (2, 3), (), (1,))
    assert found.order.index(3) == found.order.index(1) + 1


def test_unreachable_blocks_come_last_and_have_a_position() -> None:
    found = flow((2,), (), (3,), ())
    assert found.order == (0, 2, 3, 1)
    assert sorted(found.position) == [0, 1, 2, 3]


def test_irreducible_flow_is_ordered_without_a_natural_loop() -> None:
    found = flow((1, 2), (2,), (1,))
    assert sorted(found.order) == [0, 1, 2]
    assert found.loops == ()


def test_the_graph_has_an_edge_for_every_successor() -> None:
    graph = control_flow(function((1, 2), (3,), (3,), ()))
    assert sorted(graph.edges) == [(0, 1), (0, 2), (1, 3), (2, 3)]


@pytest.mark.parametrize("length", [5000])
def test_a_long_chain_of_blocks_is_no_matter_of_recursion(length: int) -> None:
    found = flow(*((i + 1,) for i in range(length - 1)), ())
    assert found.order == tuple(range(length))
