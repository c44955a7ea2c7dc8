"""The table of GPUs: one row each, every number with a source, and numbers that agree with each other."""

import pytest

from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.targets import KNOWN_TARGETS, Target, parse_target

ALL = pytest.mark.parametrize("target", KNOWN_TARGETS, ids=str)


@ALL
def test_every_number_of_a_row_has_a_source(target: Target) -> None:
    gpu = target.gpu
    assert gpu.product_names
    assert gpu.limits.source
    for part in (gpu.caches, gpu.rates):
        assert part is None or part.source


@ALL
def test_a_row_holds_what_its_architecture_can_hold(target: Target) -> None:
    caches, rates = target.gpu.caches, target.gpu.rates
    if caches is None or rates is None:
        assert target.arch == "gfx1250"
        return
    assert caches.line % 32 == 0
    assert caches.banks in (32, 64)
    assert rates.fma32_packed is None or rates.fma32_packed == 2 * rates.fma32
    assert ("f8" in rates.matrix) <= (rates.matrix.get("f8") == 2 * rates.matrix.get("f16", 0))
    assert bool(rates.matrix) <= (target.limits.matrix_unit != "none")


@pytest.mark.parametrize(
    ("arch", "device", "share"),
    [
        ("sm_70", "Tesla V100-SXM2-16GB", 1),
        ("sm_75", "Tesla T4", 1),
        ("sm_80", "NVIDIA A100-SXM4-80GB", 1),
        ("sm_86", "NVIDIA A10", 1),
        ("sm_89", "NVIDIA GeForce RTX 4090", 0.5),  # sums in 32 bits
        ("sm_90", "NVIDIA H100 80GB HBM3", 1),
        ("sm_120", "NVIDIA GeForce RTX 5090", 0.5),
        ("gfx90a", "AMD Instinct MI210", 1),
        ("gfx942", "AMD Instinct MI300X", 1),
        ("gfx950", "AMD Instinct MI350X", 1),
    ],
)
def test_rates_units_and_clock_multiply_to_the_peak_of_the_data_sheet(arch: str, device: str, share: float) -> None:
    gpu, peaks = parse_target(arch).gpu, find_peaks(device)
    product, rates = gpu.product, gpu.rates
    cycles = product.multiprocessors * product.megahertz * 1e6
    assert 2 * rates.matrix["f16"] * cycles * share == pytest.approx(peaks.flops["fp16"], rel=0.04)
    lanes = [rate for rate in (rates.fma32, rates.fma32_packed) if rate is not None]
    assert any(2 * rate * cycles == pytest.approx(peaks.flops["fp32"], rel=0.09) for rate in lanes)


def test_an_unknown_architecture_has_a_row_without_numbers() -> None:
    gpu = parse_target("sm_99").gpu
    assert (gpu.product, gpu.caches, gpu.rates, gpu.limits.multiprocessor) == (None, None, None, None)
