"""A device's name finds its product, and no other one's peaks."""

import pytest

from artifact_inspector.hardware.peaks import _PRODUCTS, find_peaks


@pytest.mark.parametrize(
    ("device", "product"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H200 NVL", "H200 NVL"),
        ("NVIDIA H100 80GB HBM3", "H100 SXM"),
        ("NVIDIA H100 PCIe", "H100 PCIe"),
        ("NVIDIA H20", "H20"),
        ("NVIDIA A100-SXM4-80GB", "A100 80GB SXM"),
        ("NVIDIA A100 80GB PCIe", "A100 80GB PCIe"),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB"),
        ("NVIDIA A10", "A10"),
        ("Tesla T4", "T4"),
        ("Tesla V100-SXM2-16GB", "V100 SXM2"),
        ("NVIDIA L4", "L4"),
        ("NVIDIA L40S", "L40S"),
        ("NVIDIA GeForce RTX 4090", "RTX 4090"),
        ("NVIDIA B200", "B200"),
        ("AMD Instinct MI250X", "MI250X, one die"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD Instinct MI325X", "MI325X"),
    ],
)
def test_the_name_that_a_driver_gives_finds_the_product(device, product):
    assert find_peaks(device).product == product


@pytest.mark.parametrize(
    "device", ["NVIDIA GH200 480GB", "NVIDIA GeForce RTX 4090 D", "NVIDIA A100X", "NVIDIA GB200", "NVIDIA L40", ""]
)
def test_another_product_has_no_peaks_of_its_relatives(device):
    assert find_peaks(device) is None


def test_every_product_names_its_source_and_loses_half_per_step_up_in_width():
    for _, peaks in _PRODUCTS:
        assert peaks.source
        assert 1e11 < peaks.bandwidth < 1e13
        order = [peaks.flops[unit] for unit in ("fp8", "fp16", "tf32", "fp32") if unit in peaks.flops]
        assert order == sorted(order, reverse=True), peaks.product
        if "fp8" in peaks.flops:
            assert peaks.flops["fp8"] / peaks.flops["fp16"] == pytest.approx(2, rel=0.02)


def test_what_a_device_lacks_is_bounded_by_what_it_is_widened_to():
    a100, h200 = find_peaks("NVIDIA A100-SXM4-80GB"), find_peaks("NVIDIA H200")
    assert a100.peak_for_type("fp8") == ("fp16", 312e12)
    assert h200.peak_for_type("fp4") == ("fp16", 989.5e12)
    assert find_peaks("Tesla T4").peak_for_type("tf32") == ("fp32", 8.1e12)
