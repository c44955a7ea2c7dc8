"""What a pass through a loop loads for what it multiplies, against sums done by hand."""

from __future__ import annotations

import pytest
from saved import saved

from artifact_inspector.analysis.resources.intensity import Intensity


@pytest.mark.parametrize(
    ("path", "loaded", "flop"),
    [
        ("3.6.0/sm_80/fused_linear", (64 * 32 + 32 * 64) * 2, 2 * 64 * 64 * 32),
        ("3.6.0/sm_80/matmul_grouped", (128 * 32 + 32 * 32) * 2, 2 * 128 * 32 * 32),
        ("3.6.0/gfx942/matmul_grouped", (128 * 32 + 32 * 32) * 2, 2 * 128 * 32 * 32),
    ],
)
def test_two_matmuls_load_8192_and_10240_bytes_for_the_same_flop(path: str, loaded: int, flop: int) -> None:
    kernel = saved(path).facts
    assert kernel.principal is not None
    found = kernel.intensity(kernel.principal)
    assert found == Intensity(loaded, flop, "f16")
    assert found.flop_per_byte == flop / loaded


def test_a_region_without_dots_has_none() -> None:
    assert saved("3.6.0/sm_80/layer_norm").facts.intensity("straight") is None
