"""Execution order and natural loops."""

from collections.abc import Iterator

import pytest

from artifact_inspector.analysis.flow.control_flow import MAX_LOOP_DEPTH, ControlFlow, find_control_flow
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


def test_loops_nested_too_deep_to_be_told_are_part_of_the_deepest_that_is() -> None:
    # Header i leads to header i + 1; the innermost goes back to all of them in turn.
    extra = 3
    depth = MAX_LOOP_DEPTH + extra
    heads = [(i + 1,) for i in range(depth)]
    tails = [(depth - 1 - i, depth + 1 + i) for i in range(depth)]
    found = flow(*heads, *tails, ())
    assert len(found.loops) == MAX_LOOP_DEPTH
    assert [loop.depth for loop in found.loops] == list(range(1, MAX_LOOP_DEPTH + 1))
    assert found.loop_of[depth] == MAX_LOOP_DEPTH - 1
    assert found.loops[-1].blocks == set(range(MAX_LOOP_DEPTH - 1, depth + extra + 1))


@pytest.mark.parametrize("length", [5000])
def test_a_long_chain_of_blocks_is_no_matter_of_recursion(length: int) -> None:
    found = flow(*((i + 1,) for i in range(length - 1)), ())
    assert found.order == tuple(range(length))


def test_a_ladder_of_loops_takes_steps_in_proportion_to_its_rungs() -> None:
    def steps(rungs: int) -> int:
        taken = 0

        class Counted(tuple[int, ...]):
            def __iter__(self) -> Iterator[int]:
                nonlocal taken
                taken += 1
                return super().__iter__()

        heads = [Counted((i + 1,)) for i in range(rungs)]
        tails = [Counted((rungs - 1 - i, rungs + 1 + i)) for i in range(rungs)]
        find_control_flow(function(*heads, *tails, ()))
        return taken

    assert steps(1200) < 2.2 * steps(600)
