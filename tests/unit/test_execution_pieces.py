"""Registers in pieces, and shared memory that all CTAs hold alike, are what they are lane by lane."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from artifact_inspector.execution.interpreter.affine import FULL, AffineValue, as_plain_array
from artifact_inspector.execution.interpreter.cta_memory import CtaMemory
from artifact_inspector.execution.interpreter.lane_partition import (
    MOST_PARTS,
    LanePartition,
    as_array_value,
    select_rows,
    write_lanes,
)
from artifact_inspector.execution.interpreter.state_changes import chain_iterations
from artifact_inspector.execution.interpreter.values import UnknownValue, apply_to_low_bits, select_lanes
from tests.unit.test_execution_sass import run

ROWS, LANES = np.array([[0], [7], [11]], np.int64), np.arange(8, dtype=np.int64)[None]
VALUES: list[Any] = [5, ROWS, LANES, AffineValue(ROWS, LANES), AffineValue(3 * ROWS, 4 * LANES), ROWS * LANES]


def mask(*lanes: int) -> Any:
    return np.isin(LANES, lanes)


def array(value: Any) -> Any:
    return np.broadcast_to(as_plain_array(value), (3, 8))


@pytest.mark.parametrize("first", VALUES, ids=range(len(VALUES)))
@pytest.mark.parametrize("second", VALUES, ids=range(len(VALUES)))
def test_what_lanes_are_written_one_after_the_other_is_what_each_holds(first: Any, second: Any) -> None:
    held: Any = AffineValue(ROWS, 2 * LANES)
    expected = array(held)
    for on, value in ((mask(0, 1, 2), first), (mask(2, 3), second), (mask(0, 7), first), (mask(2, 3), first)):
        found = write_lanes(on, value, held)
        held = select_lanes(on, as_plain_array(value), as_array_value(held)) if found is None else found
        expected = np.where(on, array(value), expected)
        assert np.array_equal(array(as_array_value(held)), expected)
        if isinstance(held, LanePartition):
            assert np.array_equal(array(held.value_in(on))[:, on[0]], expected[:, on[0]])
            rows = np.array([2, 0])
            assert np.array_equal(np.broadcast_to(as_array_value(select_rows(held, rows)), (2, 8)), expected[rows])


def test_a_register_that_was_written_whole_is_in_pieces_no_more() -> None:
    held = write_lanes(mask(0, 1, 2, 3), AffineValue(ROWS, LANES), ROWS * 5)
    assert isinstance(held, LanePartition)
    assert write_lanes(mask(*range(8)), ROWS, held) is ROWS


def test_too_many_pieces_are_told_lane_by_lane() -> None:
    held: Any = UnknownValue(0, 0xFFFFFFFF, 1)
    for lane in range(MOST_PARTS - 1):
        held = write_lanes(np.arange(20)[None] == lane, ROWS * lane, held)
    assert isinstance(held, LanePartition)
    assert write_lanes(np.arange(20)[None] == MOST_PARTS, ROWS, held) is None


def test_lanes_that_know_nothing_do_not_spoil_the_others() -> None:
    held = write_lanes(mask(0, 1), UnknownValue(0, 0xFFFFFFFF, 2), AffineValue(ROWS, LANES))
    assert isinstance(held, LanePartition)
    assert isinstance(held.value_in(mask(5)), AffineValue)
    subset, every = held.value_in(mask(1)), held.materialize()
    assert isinstance(subset, UnknownValue)
    assert isinstance(every, UnknownValue)
    assert subset.missing_inputs == 2
    assert np.array_equal(np.asarray(every.unknown_bits) != 0, mask(0, 1))


def test_a_few_lanes_that_agree_keep_one_column() -> None:
    whole = np.where(LANES == 3, ROWS, ROWS * LANES)
    held = write_lanes(mask(3), whole, UnknownValue(0, FULL, 1))
    assert isinstance(held, LanePartition)
    assert np.array_equal(held.value_in(mask(3)), ROWS)


@pytest.mark.parametrize("rest", [ROWS * LANES, UnknownValue(0, FULL, 1)], ids=["known", "unknown"])
def test_iterations_begin_with_the_pieces_that_the_ones_before_ended_with(rest: Any) -> None:
    threads, count = 128, 20
    on = (np.arange(threads) == 0)[None]
    first = write_lanes(on, ROWS, np.tile(ROWS, threads) if isinstance(rest, np.ndarray) else rest)
    ends = np.arange(count * len(ROWS))[:, None] * 5 % 7
    ended = write_lanes(on, np.tile(ends, threads), select_rows(first, np.arange(count * len(ROWS)) % len(ROWS)))
    assert isinstance(ended, LanePartition)
    chain = chain_iterations(first, ended, (len(ROWS), threads), count)
    assert isinstance(chain, LanePartition)  # not an array of all lanes of all iterations
    assert all(np.size(subset.value) <= len(ends) for subset in chain.subsets if isinstance(subset.value, np.ndarray))
    assert np.array_equal(np.ravel(chain.value_in(on)), [*ROWS[:, 0], *ends[: -len(ROWS), 0]])
    if isinstance(rest, np.ndarray):
        assert np.array_equal(as_array_value(chain)[:, 1:], np.tile(ROWS, (count, threads - 1)))


DIVIDED = """
    S2R R0, SR_TID.X
    S2R R1, SR_CTAID.X
    IMAD R2, R1, 0x100, R0
    ISETP.GE.AND P0, PT, R0, 0x40, PT
    @P0 BRA `(.L_1)
    IMAD R2, R1, 0x40, R2
    IADD3 R2, R2, 0x1, RZ
    BRA `(.L_2)
    .L_1:
    IMAD R2, R1, 0x8, R0
    ISETP.EQ.AND P1, PT, R0, 0x41, PT
    @P1 IADD3 R2, R2, R1, RZ
    .L_2:
    SHFL.BFLY PT, R3, R2, 0x2, 0x1f
"""


def test_warps_that_do_different_work_hold_what_they_computed() -> None:
    machine, _, ended = run(DIVIDED, threads=128, ctas=64)
    assert not ended
    cta, lane = np.arange(64)[:, None], np.arange(128)[None]
    wanted = np.where(lane < 64, cta * 0x140 + lane + 1, cta * 8 + lane + (lane == 0x41) * cta)
    assert isinstance(machine.registers["R2"], LanePartition)
    assert np.array_equal(as_array_value(machine.registers["R2"]), wanted)
    assert np.array_equal(np.broadcast_to(as_array_value(machine.registers["R3"]), (64, 128)), wanted[:, lane[0] ^ 2])


def test_shared_memory_is_kept_once_until_a_cta_stores_something_of_its_own() -> None:
    shared, every = CtaMemory(), np.ones((1, 4), bool)
    at = np.arange(0, 16, 4, dtype=np.int64)[None]
    shared.store(at, 4, 10 * at, every)
    assert shared.content is not None
    assert len(shared.content) == 1
    three = np.broadcast_to(at, (3, 4))
    shared.store(three, 4, three + ROWS, np.broadcast_to(at == 8, (3, 4)))
    shared.store(at, 4, at + 1, at == 0)
    expected = np.array([[1, 40, 8 + row, 120] for row in (0, 7, 11)])
    for addresses in (at, three):
        found = shared.load(addresses, 4, np.ones(addresses.shape, bool))
        assert found is not None
        assert np.array_equal(found[0], expected)
    shared = shared.fork(np.array([1]))
    found = shared.load(at, 4, every)
    assert found is not None
    assert np.array_equal(found[0], expected[1:2])


@pytest.mark.parametrize("function", [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: 3 * a + b])
def test_bits_below_the_first_unknown_one_of_a_sum_or_product_are_known(function: Callable[[Any, Any], Any]) -> None:
    random = Random(5)
    for _ in range(200):
        first, second, first_bit = random.getrandbits(32), random.getrandbits(32), random.randrange(1, 32)
        unknown_bits = FULL & -(1 << first_bit) & (random.getrandbits(32) | 1 << first_bit)
        result = apply_to_low_bits(function, UnknownValue(first, unknown_bits, 1), second)
        assert isinstance(result, UnknownValue)
        known = ~result.unknown_bits & FULL
        assert known == (1 << first_bit) - 1
        other = first ^ (random.getrandbits(32) & unknown_bits)
        assert function(other, second) & known == result.data & known


def test_a_half_is_known_although_nothing_wrote_the_other_half_of_its_register() -> None:
    machine, _, _ = run("""
        MOV R2, 0x70005
        PRMT R1, R2, 0x7632, R1
        IMAD.IADD R3, R1, 0x1, R2
        IADD3 R3, R3, 0x1, RZ
        LOP3.LUT R4, R3, 0xffff, RZ, 0xc0, !PT
    """)
    assert isinstance(machine.registers["R3"], UnknownValue)
    assert machine.registers["R4"] == 7 + 5 + 1


@pytest.mark.parametrize(
    ("text", "known_bits", "expected"),
    [
        ("IMAD.U32 R3, R1, 0x10000, RZ", FULL, 0x70000),  # bf16 to float32
        ("SHF.L.U32 R3, R1, 0x10, RZ", FULL, 0x70000),
        ("SHF.L.U32 R3, R1, 0x4, RZ", 0xFFFFF, 0x70),
        ("SHF.R.U32.HI R3, RZ, 0x1f, R1", FULL - 1, 0),
        ("SHF.R.S32.HI R3, RZ, 0x10, R1", 0, 0),
    ],
)
def test_a_shift_moves_the_unknown_bits(text: str, known_bits: int, expected: int) -> None:
    machine, _, _ = run(f"MOV R2, 0x70005\nPRMT R1, R2, 0x7632, R1\n{text}")  # the upper half of R1 is unknown
    value = machine.registers["R3"]
    data, unknown_bits = (value.data, value.unknown_bits) if isinstance(value, UnknownValue) else (value, 0)
    assert np.all(np.asarray(unknown_bits) == FULL - known_bits)
    assert np.all(np.asarray(data) & known_bits == expected)


@pytest.mark.parametrize(
    ("dividend", "divisor", "is_slow"),
    [(6.0, 3.0, 0), (0.0, -3.0, 0), (6.0, 0.0, 1), (6.0, 1e-40, 1), (1e38, 1e-10, 1), (float("nan"), 1.0, 1)],
)
def test_a_division_of_unusual_numbers_takes_the_slow_path(dividend: float, divisor: float, is_slow: int) -> None:
    """For the usual ones, the quotient by the reciprocal and its remainder neither overflows nor is denormal."""
    words = [int(np.float32(number).view(np.uint32)) for number in (dividend, divisor)]
    machine, _, _ = run(f"MOV R1, {words[0]:#x}\nMOV R2, {words[1]:#x}\nFCHK P0, R1, R2\nSEL R3, 0x1, RZ, P0")
    assert np.all(np.asarray(machine.registers["R3"]) == is_slow)


@pytest.mark.parametrize(("mode", "expected"), [("", 1.0), (".RM", 1.0), (".RP", 1 + 2**-23), (".RZ", 1.0)])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_are_rounded_in_their_direction(mode: str, expected: float, sign: int) -> None:
    """1 + 2⁻²⁵ lies between 1 and the next number above."""
    words = [int(np.float32(sign * number).view(np.uint32)) for number in (1, 2**-25)]
    if sign < 0:
        expected = {".RM": -1 - 2**-23}.get(mode, -1.0)
    machine, _, _ = run(f"MOV R1, {words[0]:#x}\nMOV R2, {words[1]:#x}\nFADD{mode} R3, R1, R2")
    assert np.all(np.asarray(machine.registers["R3"]) == int(np.float32(expected).view(np.uint32)))


def test_the_stored_half_of_a_register_is_known_if_the_other_half_is_not() -> None:
    machine, _, _ = run("""
        MOV R2, 0x70005
        PRMT R1, R2, 0x7632, R1
        STS.U16 [0x40], R1
        LDS.U16 R3, [0x40]
        LDS R4, [R3]
    """)
    assert np.all(np.asarray(machine.registers["R3"]) == 7)
