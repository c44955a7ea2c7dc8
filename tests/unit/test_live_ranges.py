"""Under which names, and for how long, memory is in use: read off small functions by eye."""

from __future__ import annotations

import pytest
from handwritten import code_of

from artifact_inspector.analysis.shared.live_ranges import SharedMemoryLiveness
from artifact_inspector.model import Stage

HEAD = """
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90"} {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %c = arith.constant 0 : i32
"""
TILE = "!ttg.memdesc<128x32xf16, #shared, #smem, mutable>"
TILES = "!ttg.memdesc<2x128x32xf16, #shared, #smem, mutable>"
ALLOC = f"%a = ttg.local_alloc : () -> {TILE}"
LOOP = "scf.for %i = %c to %c step %c  : i32 {"


def load(value: str, result: str = "x") -> str:
    return f"%{result} = ttg.local_load %{value} : {TILE} -> tensor<128x32xf16, #blocked>"


def other(name: str) -> str:
    return f"%{name} = arith.constant 7 : i32"


def use_of(*body: str) -> tuple[SharedMemoryLiveness, int]:
    """Who uses memory in a function, and the operation that allocates %a."""
    text = HEAD + "\n".join(body) + "\n    tt.return\n  }\n}\n"
    code = code_of(Stage.TTGIR, text)
    index = next(at for at, one in enumerate(code.instructions) if one.text.strip().startswith("%a = "))
    return SharedMemoryLiveness(code), index


def text_at(memory: SharedMemoryLiveness, index: int) -> str:
    return memory.code.function.instructions[index].text.strip()


def lived(*body: str) -> tuple[str, str]:
    """The first and the last operation at which %a is live."""
    memory, index = use_of(*body)
    first, last = memory.live_range(index, memory.aliases(index)[0])
    return text_at(memory, first), text_at(memory, last)


def test_memory_lives_from_its_allocation_to_its_last_use() -> None:
    assert lived(other("n"), ALLOC, load("a"), load("a", "y"), other("m")) == (ALLOC, load("a", "y"))


def test_memory_that_nothing_uses_lives_for_its_allocation_alone() -> None:
    assert lived(ALLOC, other("m")) == (ALLOC, ALLOC)


def test_a_view_names_memory_anew() -> None:
    alloc = f"%a = ttg.local_alloc : () -> {TILES}"
    view = f"%v = ttg.memdesc_index %a[%c] : {TILES} -> {TILE}"
    body = (alloc, view, other("n"), load("v"), other("m"))
    assert lived(*body) == (alloc, load("v"))
    memory, index = use_of(*body)
    names, users = memory.aliases(index)
    assert (len(names), [text_at(memory, user) for user in users]) == (2, [view, load("v")])


def test_what_is_loaded_from_memory_is_no_name_of_it() -> None:
    double = "%d = arith.addf %x, %x : tensor<128x32xf16, #blocked>"
    memory, index = use_of(ALLOC, load("a"), double)
    names, users = memory.aliases(index)
    assert (len(names), [text_at(memory, user) for user in users]) == (1, [load("a")])


def test_memory_read_in_a_loop_is_needed_in_every_iteration() -> None:
    end = "scf.yield"
    assert lived(ALLOC, LOOP, load("a"), other("m"), end, "}", other("n")) == (ALLOC, end)


def test_memory_allocated_in_a_loop_is_needed_no_longer_than_its_use() -> None:
    assert lived(LOOP, ALLOC, load("a"), other("m"), "scf.yield", "}") == (ALLOC, load("a"))


def test_memory_read_in_a_loop_inside_is_needed_until_the_outermost_ends() -> None:
    inner = LOOP.replace("%i", "%j")
    body = (ALLOC, LOOP, inner, load("a"), "scf.yield", "}", other("m"), "scf.yield {outer}", "}")
    assert lived(*body) == (ALLOC, "scf.yield {outer}")
    within = (LOOP, ALLOC, inner, load("a"), "scf.yield {inner}", "}", other("m"), "scf.yield", "}")
    assert lived(*within) == (ALLOC, "scf.yield {inner}")


@pytest.mark.parametrize("after", [True, False])
def test_memory_that_a_loop_carries_lives_under_the_names_of_its_argument_and_result(after: bool) -> None:
    loop = f"%r = scf.for %i = %c to %c step %c iter_args(%arg = %a) -> ({TILE})  : i32 {{"
    end = f"scf.yield %arg : {TILE}"
    body = [ALLOC, loop, load("arg"), end, "}", other("m"), *([load("r", "z")] if after else []), other("n")]
    assert lived(*body) == (ALLOC, load("r", "z") if after else end)


PARTITIONS = (
    "ttg.warp_specialize()",
    "default {",
    "DEFAULT",
    "ttg.warp_yield",
    "}",
    "partition0() num_warps(4) {",
    other("o"),
    "ttg.warp_return",
    "}",
    "partition1() num_warps(4) {",
    other("q"),
    "ttg.warp_return {last}",
    "} : () -> ()",
)


def specialised(inside: str) -> list[str]:
    return [inside if line == "DEFAULT" else line for line in PARTITIONS]


def test_an_operation_with_partitions_is_one_to_what_was_there_before() -> None:
    first, last = lived(ALLOC, *specialised(load("a")), other("n"))
    assert (first, last.split("(")[0]) == (ALLOC, "ttg.warp_specialize")


def test_an_operation_with_partitions_counts_behind_all_they_hold() -> None:
    memory, index = use_of(ALLOC, *specialised(load("a")), other("n"))
    texts = [one.text.strip() for one in memory.code.function.instructions]
    (operation,) = (at for at, text in enumerate(texts) if text.startswith("ttg.warp_specialize"))
    last = texts.index("ttg.warp_return {last}")
    assert memory.time_of(operation) == 2 * last + 1
    assert memory.time_of(index) == 2 * index
    assert memory.time_of(last) < memory.time_of(operation) < memory.time_of(last + 1)


def test_memory_of_a_partition_is_its_own() -> None:
    body = list(PARTITIONS)
    at = body.index(other("q"))
    body[at : at + 1] = [ALLOC, load("a"), other("q")]
    memory, index = use_of(*["ttg.warp_yield {0}" if line == "DEFAULT" else line for line in body])
    assert lived(*["ttg.warp_yield {0}" if line == "DEFAULT" else line for line in body]) == (ALLOC, load("a"))
    block = memory.code.flow.block_of[index]
    operation, number = memory.partition[block]
    assert (text_at(memory, operation).partition("(")[0], number) == ("ttg.warp_specialize", 2)
    assert memory.partition.get(0) is None


def test_memory_that_a_loop_begins_with_is_needed_no_longer_than_its_use_there() -> None:
    body = (
        "%b = ttg.local_alloc : () -> " + TILE,
        ALLOC,
        f"%r = scf.for %i = %c to %c step %c iter_args(%m = %a) -> ({TILE})  : i32 {{",
        load("m"),
        other("n"),
        f"scf.yield %b : {TILE}",
        "}",
    )
    assert lived(*body) == (ALLOC, load("m"))
