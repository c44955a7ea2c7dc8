"""Peak dense arithmetic and memory bandwidth of a GPU, by its driver's device name.

Peaks belong to a product, not an architecture: an H100 and an H200 run the same code at different bandwidths.
A number without a source is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Peaks:
    """The vendor's peak rates of one device."""

    product: str
    flops: Mapping[str, float]
    """FLOP/s by type, without sparsity, with fp32 accumulators: fp4, fp8, fp16 (also bf16), tf32, and fp32
    (without matrix unit)."""
    bandwidth: float
    """Bytes/s of device memory, reads and writes combined."""
    source: str

    def peak_for_type(self, element_type: str) -> tuple[str, float] | None:
        """The type whose peak limits arithmetic of `element_type`, and that peak; None where no source states one.

        The compiler widens a type that the device lacks; the peak is that of the wider type.
        """
        return next(((wider, self.flops[wider]) for wider in _WIDER_TYPES[element_type] if wider in self.flops), None)


_WIDER_TYPES = {
    "fp4": ("fp4", "fp16", "fp32"), "fp8": ("fp8", "fp16", "fp32"), "fp16": ("fp16", "fp32"),
    "tf32": ("tf32", "fp32"), "fp32": ("fp32",),
}  # fmt: skip


def peak_type(type_name: str) -> str:
    """The peak that limits products of a type, as users write the type; empty if none does (integers).

    Example:
        >>> [peak_type(word) for word in ("bf16", "fp8e4nv", "tf32", "fp32", "int8")]
        ['fp16', 'fp8', 'tf32', 'fp32', '']
    """
    lowered = type_name.strip().lower()
    if lowered.startswith("fp8"):
        return "fp8"
    return {"bf16": "fp16", "f16": "fp16", "f32": "fp32"}.get(lowered, lowered if lowered in _WIDER_TYPES else "")


def _peaks(product: str, terabytes: float, source: str, **teraflops: float) -> Peaks:
    return Peaks(product, {unit: 1e12 * rate for unit, rate in teraflops.items()}, 1e12 * terabytes, source)


_H100 = "NVIDIA H100 Tensor Core GPU datasheet (half of the rate with sparsity)"
_H200 = "NVIDIA H200 Tensor Core GPU datasheet (half of the rate with sparsity)"
_A100 = "NVIDIA A100 Tensor Core GPU datasheet"
_ADA = "NVIDIA Ada GPU Architecture whitepaper (FP32 accumulators)"
_BLACKWELL = "NVIDIA RTX Blackwell GPU Architecture whitepaper (FP32 accumulators)"
_HGX = "NVIDIA HGX platform datasheet, B200: an eighth of eight GPUs, without sparsity"
_MI200 = "AMD CDNA 2 whitepaper; AMD Instinct MI200 series datasheet"
_MI300 = "AMD Instinct MI300X, MI300A and MI325X datasheets"
_MI350 = "AMD Instinct MI350X and MI355X datasheets"

_PRODUCTS = (
    (r"\bH200 NVL\b", _peaks("H200 NVL", 4.8, _H200, fp8=1670.5, fp16=835.5, tf32=417.5, fp32=60)),
    (r"\bH200\b", _peaks("H200", 4.8, _H200, fp8=1979, fp16=989.5, tf32=494.5, fp32=67)),
    (r"\bH100 PCIe\b", _peaks("H100 PCIe", 2.0, _H100, fp8=1513, fp16=756.5, tf32=378, fp32=51)),
    (r"\bH100 NVL\b", _peaks("H100 NVL", 3.9, _H100, fp8=1670.5, fp16=835.5, tf32=417.5, fp32=60)),
    (r"\bH100\b", _peaks("H100 SXM", 3.35, _H100, fp8=1979, fp16=989.5, tf32=494.5, fp32=67)),
    (r"\bH20\b", _peaks("H20", 4.0, "NVIDIA H20 datasheet", fp8=296, fp16=148, tf32=74, fp32=44)),
    (r"\bA100\b(-SXM.*80GB\b|(?!.*GB\b))", _peaks("A100 80GB SXM", 2.039, _A100, fp16=312, tf32=156, fp32=19.5)),
    (r"\bA100\b.*80GB\b", _peaks("A100 80GB PCIe", 1.935, _A100, fp16=312, tf32=156, fp32=19.5)),
    (r"\bA100\b", _peaks("A100 40GB", 1.555, _A100, fp16=312, tf32=156, fp32=19.5)),
    (r"\bA30\b", _peaks("A30", 0.933, "NVIDIA A30 Tensor Core GPU datasheet", fp16=165, tf32=82, fp32=10.3)),
    (r"\bA10\b", _peaks("A10", 0.6, "NVIDIA A10 Tensor Core GPU datasheet", fp16=125, tf32=62.5, fp32=31.2)),
    (r"\bT4\b", _peaks("T4", 0.32, "NVIDIA T4 Tensor Core GPU datasheet", fp16=65, fp32=8.1)),
    (r"\bV100-SXM2\b", _peaks("V100 SXM2", 0.9, "NVIDIA V100 Tensor Core GPU datasheet", fp16=125, fp32=15.7)),
    (r"\bL4\b", _peaks("L4", 0.3, "NVIDIA L4 datasheet (half of sparse)", fp8=242.5, fp16=121, tf32=60, fp32=30.3)),
    (r"\bL40S\b", _peaks("L40S", 0.864, "NVIDIA L40S datasheet", fp8=733, fp16=362.05, tf32=183, fp32=91.6)),
    (r"\bRTX 4090\b(?! D| Laptop)", _peaks("RTX 4090", 1.008, _ADA, fp8=330.3, fp16=165.2, tf32=82.6, fp32=82.6)),
    (
        r"\bRTX 5090\b(?! D| Laptop)",
        _peaks("RTX 5090", 1.792, _BLACKWELL, fp4=1676, fp8=419, fp16=209.5, tf32=104.8, fp32=104.8),
    ),
    (r"\bB200\b", _peaks("B200", 8.0, _HGX, fp4=9000, fp8=4500, fp16=2250, tf32=1125, fp32=75)),
    (r"\bMI50\b", _peaks("MI50", 1.024, "AMD Radeon Instinct MI50 datasheet (no matrix unit)", fp16=26.5, fp32=13.3)),
    (r"\bMI100\b", _peaks("MI100", 1.2288, "AMD Instinct MI100 datasheet", fp16=184.6, fp32=23.1)),
    # a device is one of the product's two dies
    (r"\bMI250X\b", _peaks("MI250X, one die", 1.6384, _MI200, fp16=191.5, fp32=23.95)),
    (r"\bMI210\b", _peaks("MI210", 1.6384, _MI200, fp16=181, fp32=22.6)),
    (r"\bMI300A\b", _peaks("MI300A", 5.3, _MI300, fp8=1961.2, fp16=980.6, tf32=490.3, fp32=122.6)),
    (r"\bMI325X\b", _peaks("MI325X", 6.0, _MI300, fp8=2614.9, fp16=1307.4, tf32=653.7, fp32=163.4)),
    (r"\bMI300X\b", _peaks("MI300X", 5.3, _MI300, fp8=2614.9, fp16=1307.4, tf32=653.7, fp32=163.4)),
    (r"\bMI350X\b", _peaks("MI350X", 8.0, _MI350, fp4=9227.5, fp8=4613.7, fp16=2306.9, fp32=144.2)),
    (r"\bMI355X\b", _peaks("MI355X", 8.0, _MI350, fp4=10066.3, fp8=5033.2, fp16=2516.6, fp32=157.3)),
)
"""Regular expression of the device name → its peaks; the first match wins."""


def find_peaks(device: str) -> Peaks | None:
    """The peaks of the device with that name, as `torch.cuda.get_device_name` returns it; None if unknown.

    Example:
        >>> find_peaks("NVIDIA H100 80GB HBM3").bandwidth / 1e12
        3.35
    """
    return next((peaks for pattern, peaks in _PRODUCTS if re.search(pattern, device, re.IGNORECASE)), None)


BANDWIDTH_RANGE = (10.0, 20_000.0)
"""Plausible memory bandwidth in GB/s: 64 bits of LPDDR3 reach 14.9, the best row of the table 8000."""


def peaks_of_product(name: str) -> Peaks | None:
    """The peaks of a product named by the user, in any case, or only by the number in its name.

    Example:
        >>> peaks_of_product("4090").product, peaks_of_product("h100 pcie").product, peaks_of_product("320")
        ('RTX 4090', 'H100 PCIe', None)
    """
    peaks = find_peaks(name.strip())
    if peaks is not None or not re.fullmatch(r"\d{3,5}", name.strip()):
        return peaks
    numbered = (peaks for _, peaks in _PRODUCTS if name.strip() in re.findall(r"\d+", peaks.product))
    return next(numbered, None)


def bandwidth_only_peaks(bandwidth: float) -> Peaks:
    """The peaks of a device of which only the memory bandwidth in GB/s is known."""
    return Peaks("", {}, bandwidth * 1e9, "as specified")
