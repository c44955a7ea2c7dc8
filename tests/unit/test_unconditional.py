"""What every iteration of a loop runs, and what stands under a condition."""

from __future__ import annotations

from collections.abc import Sequence

from handwritten import prepared

from artifact_inspector.analysis.flow.mutual_exclusion import find_unconditional_blocks
from artifact_inspector.model import BasicBlock, EventKind, Function, Instruction, Stage
from artifact_inspector.model.instruction import Operands


def always(loop: int, *successors: Sequence[int]) -> frozenset[int]:
    """Of a function with one instruction in each block."""
    nothing = Operands((), ())
    blocks = tuple(BasicBlock(n, f"b{n}", n, n + 1, tuple(after)) for n, after in enumerate(successors))
    instruction = Instruction(1, "nop", EventKind.OTHER, None, None, "", lambda _: nothing)
    code = Function("k", 1, None, (), (instruction,) * len(blocks), blocks)
    return find_unconditional_blocks(prepared(code, Stage.PTX), loop)


def test_the_arms_of_a_branch_are_not_run_by_every_iteration() -> None:
    # 0 → 1 → (2 | 3) → 4 → 1, 5
    assert always(0, (1,), (2, 3), (4,), (4,), (1, 5), ()) == {1, 4}


def test_a_loop_inside_that_is_always_entered_belongs_to_the_iteration_around_it() -> None:
    # around 1 … 5 the loop 2 … 4, whose arms are 3 | 4
    nested: list[Sequence[int]] = [(1,), (2,), (3, 4), (5,), (5,), (2, 6), (1, 7), ()]
    assert always(0, *nested) == {1, 2, 5, 6}
    assert always(1, *nested) == {2, 5}


def test_a_loop_inside_that_may_run_no_iteration_does_not() -> None:
    # around 1 … 3 the loop of block 2 alone, which block 1 may leave out
    assert always(0, (1,), (2, 3), (2, 3), (1, 4), ()) == {1, 3}


def test_every_way_back_counts() -> None:
    # 2 goes back to 1 by itself, or through 3
    assert always(0, (1,), (2,), (1, 3), (1, 4), ()) == {1, 2}


def test_a_chain_of_ways_back_is_gone_through_once() -> None:
    # each of 20,000 blocks goes on or back to the first: none holds what was passed in front of it
    count = 20_000
    ways: list[Sequence[int]] = [(1,), *((1, n + 1) for n in range(1, count)), (1, count + 1), ()]
    assert always(0, *ways) == {1}
