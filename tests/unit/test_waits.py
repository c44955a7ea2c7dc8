"""Waits and the numbers read off them, each on an example of its own."""

from __future__ import annotations

import pytest
from handwritten import code_of

from artifact_inspector.analysis.overlap.waits import WaitFacts, find_waits, iterations_left, least_depth
from artifact_inspector.model import Queue, Stage, WaitPurpose


@pytest.mark.parametrize(
    ("depth", "each", "left"),
    [(4, 2, 2), (1, 2, 0.5), (2, 3, 0.67), (0, 2, 0), (None, 2, None), (4, None, None), (4, 0, None)],
)
def test_iterations_left_are_the_depth_by_what_one_iteration_adds(
    depth: int | None, each: float | None, left: float | None
) -> None:
    found = iterations_left(depth, each)
    assert (found, isinstance(found, int)) == (left, isinstance(left, int))


def test_the_least_depth_is_that_of_the_strictest_wait_that_names_one() -> None:
    phase, loose, strict = (WaitFacts(n, "w", depth, Queue.GROUP) for n, depth in enumerate((None, 4, 1)))
    assert least_depth((phase, loose, strict)) == 1
    assert least_depth((phase,)) is None


@pytest.mark.parametrize("queue", Queue)
def test_a_wait_for_loads_counts_them_and_any_other_says_what_it_is_for(queue: Queue) -> None:
    counting = {Queue.GROUP, Queue.LOADS, Queue.COPIES, Queue.TENSORS}
    wait = WaitFacts(1, "w", 0, queue)
    assert wait.is_for_loads is (queue in counting)
    assert queue.completes_loads is (queue in counting | {Queue.PHASE})
    assert queue.is_counter is (queue in counting - {Queue.GROUP})
    assert (wait.purpose is WaitPurpose.LOADS) is (queue in counting)


def test_waits_are_found_with_the_region_that_they_stand_in() -> None:
    text = """.version 8.7
.target sm_80
.visible .entry k(
\t.param .u64 k_0
)
{
$L__BB0_1:
\tcp.async.wait_group 2;
\t@%p1 bra $L__BB0_1;
\tcp.async.wait_all;
\tret;
}
"""
    code = code_of(Stage.PTX, text)
    regions = {block.index: f"block {block.index}" for block in code.blocks}
    loop, behind = find_waits(code, regions)
    assert loop == WaitFacts(8, "cp.async.wait_group", 2, Queue.GROUP, loop.region)
    assert (behind.op, behind.depth, behind.region != loop.region) == ("cp.async.wait_all", 0, True)
