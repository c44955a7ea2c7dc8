"""Formats and roundings agree with torch's conversions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from artifact_inspector.model.float_formats import (
    BFLOAT16,
    E4M3,
    E5M2,
    FLOAT16,
    FLOAT32,
    FloatFormat,
    Rounding,
    bits_of,
    numbers_of,
)

FORMATS = [
    (FLOAT16, torch.float16, torch.int16),
    (BFLOAT16, torch.bfloat16, torch.int16),
    (E4M3, torch.float8_e4m3fn, torch.uint8),
    (E5M2, torch.float8_e5m2, torch.uint8),
]
VALUES = np.concatenate(
    [
        np.random.default_rng(0).normal(size=4000) * 2.0 ** np.random.default_rng(1).integers(-18, 9, 4000),
        [0.0, -0.0, 1.0, 448.0, 2.0**-9, 2.0**-10, 3 * 2.0**-10, 1.0625, 1.1875, 65504.0, 2.0**-24, 2.0**-25],
    ]
).astype(np.float32)


@pytest.mark.parametrize(("target", "torch_type", "_bits"), FORMATS)
def test_all_bit_patterns_are_torchs_numbers(target: FloatFormat, torch_type: torch.dtype, _bits: torch.dtype) -> None:
    codes = np.arange(1 << target.bits)
    stored = torch.from_numpy(codes.astype(f"u{target.bits // 8}").view(f"i{target.bits // 8}"))
    expected = stored.view(torch_type).to(torch.float64).numpy()
    np.testing.assert_array_equal(numbers_of(codes, target), expected)


@pytest.mark.parametrize(("target", "torch_type", "bits"), FORMATS)
def test_numbers_are_rounded_as_torch_rounds(target: FloatFormat, torch_type: torch.dtype, bits: torch.dtype) -> None:
    values = VALUES[np.abs(VALUES) <= target.largest]
    expected = torch.from_numpy(values).to(torch_type).view(bits).numpy().astype(np.int64) & (1 << target.bits) - 1
    rounded = Rounding().to_format(values.astype(np.float64), target)
    np.testing.assert_array_equal(bits_of(rounded, target), expected)


def test_random_rounding_keeps_exact_numbers_and_takes_one_of_both_neighbours_of_others() -> None:
    exact = VALUES.astype(np.float64)
    np.testing.assert_array_equal(Rounding(3).to_format(exact, FLOAT32), exact)
    number = np.full(400, 1 + 2.0**-11 + 2.0**-12)
    assert set(Rounding(3).to_format(number, FLOAT16)) == {1.0, 1 + 2.0**-10}


def test_an_overflow_is_infinite() -> None:
    assert Rounding().to_format(np.array([65519.0, 65520.0, -1e9]), FLOAT16).tolist() == [65504.0, np.inf, -np.inf]
