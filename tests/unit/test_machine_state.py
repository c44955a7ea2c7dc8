"""A state that is split by CTA and merged again is the same, lane by lane; what a speculative run accesses is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.affine import AffineValue
from artifact_inspector.execution.interpreter.global_memory import GlobalMemory
from artifact_inspector.execution.interpreter.lane_partition import LanePartition, LaneSubset, as_array_value
from artifact_inspector.execution.interpreter.state import LaneGroup, MachineState
from artifact_inspector.execution.interpreter.values import UnknownValue, apply, data_of, unknown_bits_of
from artifact_inspector.execution.launch import KernelLaunch, Tensor, place_tensors

CTAS, THREADS = 6, 1024
ROWS = np.arange(CTAS, dtype=np.int64)[:, None] ** 2
LANES = np.arange(THREADS, dtype=np.int64)[None]
HALF = LANES < THREADS // 2
REGISTERS: dict[str, Any] = {
    "number": 7, "rows": ROWS, "lanes": LANES, "affine": AffineValue(ROWS, LANES), "array": ROWS * LANES,
    "predicate": ROWS * LANES % 3 == 0, "unknown": UnknownValue(0, 0xFFFFFFFF, 1),
    "partly": UnknownValue(ROWS * LANES, np.where(HALF, ROWS, 0), 2),
    "partition": LanePartition((LaneSubset(HALF, AffineValue(ROWS, LANES)), LaneSubset(~HALF, ROWS))),
}  # fmt: skip


def state() -> MachineState:
    made = MachineState(np.arange(CTAS), THREADS, 32, dict(REGISTERS), {"B0": (ROWS > 4) & HALF}, {}, ROWS == 9)
    made.early_arrivals = {"BAR 1": np.arange(CTAS)}
    made.local_memory.lane_words[8] = ROWS * LANES
    made.shared_memory.store(4 * ROWS, 4, ROWS + 1, np.ones((CTAS, 1), bool))
    made.groups = [LaneGroup(5, ROWS != 9, made)]
    return made


def planes(made: MachineState) -> dict[str, Any]:
    """Everything of a state as arrays of all lanes."""
    found: dict[str, Any] = {"ctas": made.ctas}
    for name, register in [*made.registers.items(), *made.local_memory.lane_words.items()]:
        value = as_array_value(register)
        unknown = np.broadcast_to(np.asarray(unknown_bits_of(value)) != 0, made.shape)
        found[f"{name} unknown"] = unknown
        found[str(name)] = np.where(unknown, 0, np.broadcast_to(np.asarray(data_of(value)), made.shape))
    for name, mask in [*made.barriers.items(), ("exited", made.exited), ("group", made.groups[0].mask)]:
        found[name] = np.broadcast_to(mask, made.shape)
    found["arrivals"] = np.broadcast_to(made.early_arrivals["BAR 1"], made.rows)
    memory = made.shared_memory
    assert memory.content is not None
    assert memory.known_marks is not None
    found["shared"] = np.where(memory.known_marks, memory.content, 255)
    return found


def assert_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    assert found.keys() == expected.keys()
    for name, array in found.items():
        assert np.array_equal(array, expected[name]), name


def never(name: str) -> Any:
    raise AssertionError(name)


def test_what_is_split_and_merged_is_the_same() -> None:
    parts = [state().fork(np.array(rows)) for rows in ([0, 1], [2], [3, 4, 5])]
    assert_same(planes(MachineState.merge(parts, never)), planes(state()))


def test_a_register_that_one_part_never_wrote_is_uninitialized_there() -> None:
    parts = [state().fork(np.arange(3)), state().fork(np.arange(3, 6))]
    del parts[1].registers["rows"]
    merged = MachineState.merge(parts, lambda name: UnknownValue(0, 0xFFFFFFFF, 8)).registers["rows"]
    assert isinstance(merged, UnknownValue)
    assert np.broadcast_to(merged.unknown_bits, (CTAS, 1)).ravel().tolist() == [0] * 3 + [0xFFFFFFFF] * 3


def test_iterations_repeat_all_ctas_in_order_but_for_what_is_replaced() -> None:
    tiled = planes(state().tile(3, {"array": 11}))
    for name, array in planes(state()).items():
        expected = np.full((3 * CTAS, THREADS), 11) if name == "array" else np.concatenate([array] * 3)
        assert np.array_equal(tiled[name], expected), name


def test_what_a_fork_changes_stays_with_it() -> None:
    first = state()
    forked = first.fork(np.arange(CTAS))
    forked.registers["number"], forked.local_memory.lane_words[8] = 8, 1
    forked.shared_memory.make_unknown()
    assert_same(planes(first), planes(state()))


def test_a_speculative_run_leaves_no_marks_unless_it_is_committed() -> None:
    launch = place_tensors(KernelLaunch((1, 1, 1), {"x": Tensor((8,), "int32")}))
    memory = GlobalMemory(launch)
    address = np.array([memory.regions[0].start])
    with memory.speculate() as journal:
        memory.touch(address, 4, is_write=False)
    assert memory.count_unique_bytes() == (0, 0)
    memory.commit(journal, 1)
    assert memory.count_unique_bytes() == (4, 0)


def test_a_mistake_in_semantics_is_no_reason_to_try_again() -> None:
    calls: list[object] = []

    def mistaken(value: Any) -> Any:
        calls.append(value)
        return value.no_such_operation

    with pytest.raises(AttributeError):
        apply(mistaken, AffineValue(ROWS, LANES))
    assert len(calls) == 1
