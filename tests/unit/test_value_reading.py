"""Numbers that are read back from the words of facts, on the words that saved kernels have."""

from __future__ import annotations

import pytest
from saved import saved

from artifact_inspector.model import MatrixUnit, OrderVerdict
from artifact_inspector.vocabulary.fact import Value
from artifact_inspector.vocabulary.rows import summarise
from artifact_inspector.vocabulary.value_reading import (
    compare_widths,
    read_matrix,
    read_strictest_waits,
    read_verdict,
    read_widths,
)


@pytest.mark.parametrize(
    ("value", "expected"), [(("16 ×4", "4 ×1"), {16: 4, 4: 1}), (("2 ×8",), {2: 8}), (("? ×2",), None), (None, {})]
)
def test_widths(value: Value, expected: dict[int, int] | None) -> None:
    assert read_widths(value) == expected


@pytest.mark.parametrize(
    ("left", "right", "means"),
    [
        ({16: 4}, {8: 8}, (16, 8)),
        ({16: 4}, {16: 4, 4: 1}, (16, 1040 / 68)),  # one more scalar
        ({16: 12, 8: 24, 4: 1}, {16: 12, 4: 1, 1: 64}, (388 / 37, 260 / 77)),  # copies of a prologue → loads of bytes
        ({4: 1, 2: 256}, {4: 1, 2: 16}, (1040 / 516, 80 / 36)),  # fewer bytes, fewer instructions
        ({16: 4}, {}, None),
    ],
)
def test_mean_widths_mirror_each_other(
    left: dict[int, int], right: dict[int, int], means: tuple[float, float] | None
) -> None:
    assert compare_widths(left, right) == (None if means is None else pytest.approx(means))
    assert compare_widths(right, left) == (None if means is None else pytest.approx(means[::-1]))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (("cp.async.wait_group 4",), {"cp.async.wait_group": 4}),
        (("s_waitcnt vmcnt 1 and 0 ×5",), {}),  # two words before the figure: not one instruction
        (("cp.async.wait_group 2 and 0 ×2",), {"cp.async.wait_group": 0}),
        (("first use of the register",), {}),
    ],
)
def test_waits(value: Value, expected: dict[str, int]) -> None:
    assert read_strictest_waits(value) == expected


@pytest.mark.parametrize(
    ("kernel", "units", "bits", "generation"),
    [
        ("3.6.0/sm_80/matmul_grouped", {MatrixUnit.MMA}, 16, 1),
        ("3.6.0/sm_80/matmul_square", {MatrixUnit.MMA}, 32, 1),
        ("3.6.0/sm_90/matmul_grouped", {MatrixUnit.WGMMA}, 16, 2),
        ("3.6.0/sm_100/matmul_grouped", {MatrixUnit.TCGEN05}, 16, 3),
        ("3.6.0/gfx942/matmul_grouped", {MatrixUnit.MFMA}, 16, None),
        ("3.6.0/gfx1100/matmul_grouped", {MatrixUnit.WMMA}, 16, None),
    ],
)
def test_matrix_units_of_saved_kernels(kernel: str, units: set[MatrixUnit], bits: int, generation: int | None) -> None:
    words = read_matrix(summarise(saved(kernel).facts).facts["loop1.mma"])
    assert (words.units, words.operand_bits, words.generation) == (units, bits, generation)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("pipelined(2)", OrderVerdict.PIPELINED),
        ("partly pipelined(2)", OrderVerdict.PARTLY_PIPELINED),
        ("serial", OrderVerdict.SERIAL),
        ("nonsense", None),
    ],
)
def test_verdicts(text: str, verdict: OrderVerdict | None) -> None:
    assert read_verdict(text) is verdict
