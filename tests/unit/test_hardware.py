"""The table of GPUs: one row each, every number with a source, and numbers that agree with each other."""

import re

import pytest

from artifact_inspector.execution.timing.ranking import gpu_model_of
from artifact_inspector.hardware.peaks import _PRODUCTS as _PEAKS
from artifact_inspector.hardware.peaks import Peaks, find_peaks
from artifact_inspector.hardware.products import find_product, matrix_rate
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


@ALL
def test_a_product_s_name_in_the_list_of_its_target_is_the_product_of_the_target(target: Target) -> None:
    """`-t A100` and `-t sm_80` are one GPU, with the bandwidth of that GPU."""
    product = target.gpu.product
    for name in target.product_names if product is not None else ():
        found = find_product(name)
        if found is not None and name in re.split(r"[- ]", product.name):
            assert found == product
            assert find_peaks(name) == find_peaks(product.name)


@pytest.mark.parametrize(
    ("gpu", "name"),
    [
        ("A100", "NVIDIA A100-SXM4-80GB"),
        ("a100-sxm4-40gb", "NVIDIA A100-SXM4-40GB"),
        ("A40", "A40"),
        (None, "NVIDIA A10"),
    ],
)
def test_predictions_name_the_exact_product_that_they_are_for(gpu: str | None, name: str) -> None:
    """An A40 is not listed: its name stays."""
    assert gpu_model_of(parse_target(gpu or "sm_86"), gpu).name == name


_ARCHITECTURES = {
    "V100": "sm_70", "T4": "sm_75", "A100": "sm_80", "A30": "sm_80", "A10": "sm_86", "RTX 4090": "sm_89", "L4": "sm_89",
    "L40S": "sm_89", "H100": "sm_90", "H200": "sm_90", "H20": "sm_90", "B200": "sm_100", "RTX 5090": "sm_120", "MI250X": "gfx90a",
    "MI210": "gfx90a", "MI300A": "gfx942", "MI325X": "gfx942", "MI300X": "gfx942", "MI350X": "gfx950", "MI355X": "gfx950",
    "MI50": "gfx906", "MI100": "gfx908",
}  # fmt: skip
_UNSTATED_CLOCK = ("H100 NVL", "H200 NVL", "B200")
"""No source states the clock of their peaks."""


def _target_of(peaks: Peaks) -> Target:
    return parse_target(next(arch for name, arch in _ARCHITECTURES.items() if peaks.product.startswith(name)))


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in _PEAKS], ids=str)
def test_every_rate_times_units_and_clock_is_the_peak_of_the_data_sheet(pattern: str) -> None:
    peaks = dict(_PEAKS)[pattern]
    gpu = _target_of(peaks).gpu
    product, rates = find_product(peaks.product), gpu.rates
    if peaks.product in _UNSTATED_CLOCK:
        assert peaks.product == "B200" or product.multiprocessors == 132
        return
    cycles = product.multiprocessors * product.megahertz * 1e6
    for unit, operand in {"fp16": "f16", "fp8": "f8", "fp4": "f4", "tf32": "tf32"}.items():
        if unit in peaks.flops and rates.matrix:  # gfx906 has no matrix unit
            rate = matrix_rate(rates, peaks.product, operand, "f32")
            assert 2 * rate * cycles == pytest.approx(peaks.flops[unit], rel=0.04), unit
    if peaks.product == "H20":
        return  # its published 44 TFLOPS in fp32 fit no clock of 78 SMs
    lanes = [rate for rate in (rates.fma32, rates.fma32_packed) if rate is not None]
    assert any(2 * rate * cycles == pytest.approx(peaks.flops["fp32"], rel=0.09) for rate in lanes)


@pytest.mark.parametrize(
    ("product", "arch", "narrow", "wide"),
    [
        ("RTX 2080 Ti", "sm_75", 512, 256),
        ("T4", "sm_75", 512, 512),
        ("Quadro RTX 5000", "sm_75", 512, 512),
        ("3090", "sm_86", 512, 256),
        ("A10", "sm_86", 512, 512),
        ("RTX A6000", "sm_86", 512, 512),
        ("NVIDIA GeForce RTX 4090", "sm_89", 512, 256),
        ("RTX 6000 Ada", "sm_89", 512, 512),
        ("RTX PRO 6000", "sm_120", 512, 512),
        ("H200", "sm_90", 2048, 2048),
    ],
)
def test_geforce_sums_in_32_bits_at_half_the_rate(product: str, arch: str, narrow: int, wide: int) -> None:
    rates = parse_target(arch).gpu.rates
    assert (matrix_rate(rates, product, "f16", "f16"), matrix_rate(rates, product, "f16", "f32")) == (narrow, wide)
    assert matrix_rate(rates, product, "i8", "s32") == rates.matrix.get("i8")
    assert matrix_rate(rates, product, "b1", "s32") is None


@ALL
def test_the_default_product_of_an_architecture_is_in_the_table_of_products(target: Target) -> None:
    product = target.gpu.product
    listed = None if product is None else find_product(product.name)
    assert listed is None or listed == product


def test_an_unknown_architecture_has_a_row_without_numbers() -> None:
    gpu = parse_target("sm_99").gpu
    assert (gpu.product, gpu.caches, gpu.rates, gpu.limits.multiprocessor) == (None, None, None, None)
