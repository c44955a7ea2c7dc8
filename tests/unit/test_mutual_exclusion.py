"""The arms of a branch exclude each other; what follows on any path does not."""

from __future__ import annotations

from collections.abc import Sequence

from handwritten import prepared

from artifact_inspector.analysis.flow.mutual_exclusion import MAX_PARTS, find_exclusive
from artifact_inspector.model import BasicBlock, EventKind, Function, Instruction, Stage
from artifact_inspector.model.instruction import Operands


def function(*successors: Sequence[int]) -> Function:
    """One instruction in each block."""
    nothing = Operands((), ())
    blocks = tuple(BasicBlock(n, f"b{n}", n, n + 1, tuple(after)) for n, after in enumerate(successors))
    instruction = Instruction(1, "nop", EventKind.OTHER, None, None, "", lambda _: nothing)
    return Function("k", 1, None, (), (instruction,) * len(blocks), blocks)


def exclusive(code: Function, parts: Sequence[Sequence[int]], loop: int | None = None) -> list[tuple[int, int]]:
    return find_exclusive(prepared(code, Stage.PTX), loop, parts)


# 0 → 1 | 2 → 3
DIAMOND = function((1, 2), (3,), (3,), ())
# 0 → 1 → (2 | 3) → 4 → 1, 5
LOOPED = function((1,), (2, 3), (4,), (4,), (1, 5), ())
# around 1 … 5 the loop 2 … 4, whose arms are 3 | 4
NESTED = function((1,), (2,), (3, 4), (5,), (5,), (2, 6), (1, 7), ())


def test_the_arms_of_a_branch_exclude_each_other() -> None:
    assert exclusive(DIAMOND, [[1], [2]]) == [(0, 1)]


def test_what_stands_in_front_or_behind_excludes_nothing() -> None:
    assert exclusive(DIAMOND, [[0], [1], [3]]) == []
    assert exclusive(DIAMOND, [[3], [0]]) == []


def test_a_part_in_both_arms_excludes_neither() -> None:
    assert exclusive(DIAMOND, [[1, 2], [2], [1]]) == [(1, 2)]


def test_parts_of_one_block_are_on_one_path() -> None:
    assert exclusive(DIAMOND, [[1], [1]]) == []
    assert exclusive(DIAMOND, [[1], []]) == []
    assert exclusive(DIAMOND, []) == []


def test_an_empty_part_excludes_nothing() -> None:
    assert exclusive(DIAMOND, [[], [1], [2]]) == [(1, 2)]


def test_a_part_outside_the_loop_excludes_nothing() -> None:
    assert exclusive(LOOPED, [[2], [5], [3]], loop=0) == [(0, 2)]


def test_the_next_iteration_is_a_path_for_the_function_but_not_for_the_loop() -> None:
    assert exclusive(LOOPED, [[2], [3]]) == []
    assert exclusive(LOOPED, [[2], [3]], loop=0) == [(0, 1)]
    assert exclusive(LOOPED, [[2], [4]], loop=0) == []


def test_an_inner_loop_goes_round_while_the_outer_stands_still() -> None:
    assert exclusive(NESTED, [[3], [4]], loop=0) == []
    assert exclusive(NESTED, [[3], [4]], loop=1) == [(0, 1)]


def test_beyond_the_bound_nothing_is_told() -> None:
    parts = [[0]] * (MAX_PARTS - 1) + [[1], [2]]
    assert exclusive(DIAMOND, parts) == []
    assert exclusive(DIAMOND, parts[1:]) == [(MAX_PARTS - 2, MAX_PARTS - 1)]
