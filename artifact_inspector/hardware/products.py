"""The size and clock of each product, and how fast its matrix units accumulate in 32 bits.

Products of one architecture differ: an L4 has 58 SMs, an RTX 4090 has 128. GeForce products sum matrix
products of 16-bit, 8-bit and tf32 operands in 32-bit floats at half the rate; T4, A10, L4, L40S, RTX PRO and all
data-centre products do not.

**Source** SMs, compute units, L2 and clocks: the vendors' data sheets and architecture white papers (T4, A100,
A30, GA102, AD102, H100, RTX Blackwell; CDNA 2, CDNA 3, CDNA 4, also for XCDs). The L2 of an H200 is what its driver
reports (`l2CacheSize`: 62,914,560 bytes). Clocks are those of the quoted peaks. Halved
rates: the white papers of Turing, GA102, Ada and RTX Blackwell ("Peak FP16 Tensor TFLOPS with FP32 Accumulate").
The matrix units of an H20 are taken for a quarter of an H100's: its published 148 TFLOPS are that at 1,853 MHz.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from artifact_inspector.hardware.gpu import Product, Rates
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model.text import split_option_values

_PRODUCTS = (
    (r"\bH200 NVL\b", Product("NVIDIA H200 NVL", 132, 141, 60, 1785)),
    (r"\bH200\b", Product("NVIDIA H200", 132, 141, 60, 1830)),
    (r"\bH100 PCIE\b", Product("NVIDIA H100 PCIe", 114, 80, 50, 1620)),
    (r"\bH100 NVL\b", Product("NVIDIA H100 NVL", 132, 94, 50, 1785)),
    (r"\bH100\b", Product("NVIDIA H100 80GB HBM3", 132, 80, 50, 1830)),
    (r"\bH20\b", Product("NVIDIA H20", 78, 96, 60, 1850)),
    (r"\bA100\b(.*80GB\b|(?!.*GB\b))", Product("NVIDIA A100-SXM4-80GB", 108, 80, 40, 1410)),
    (r"\bA100\b", Product("NVIDIA A100-SXM4-40GB", 108, 40, 40, 1410)),
    (r"\bA30\b", Product("NVIDIA A30", 56, 24, 24, 1440)),
    (r"\bA10\b", Product("NVIDIA A10", 72, 24, 6, 1695)),
    (r"\bT4\b", Product("Tesla T4", 40, 16, 4, 1590)),
    (r"\bV100[- ]SXM2\b", Product("Tesla V100-SXM2-16GB", 80, 16, 6, 1530)),
    (r"\bL40S\b", Product("NVIDIA L40S", 142, 48, 96, 2520)),
    (r"\bL4\b", Product("NVIDIA L4", 58, 24, 48, 2040)),
    (r"\b(?:RTX )?4090\b(?! ?D| LAPTOP)", Product("NVIDIA GeForce RTX 4090", 128, 24, 72, 2520)),
    (r"\b(?:RTX )?5090\b(?! ?D| LAPTOP)", Product("NVIDIA GeForce RTX 5090", 170, 32, 96, 2407)),
    (r"\bMI50\b", Product("AMD Instinct MI50", 60, 32, 4, 1725)),
    (r"\bMI100\b", Product("AMD Instinct MI100", 120, 32, 8, 1502)),
    (r"\bMI250X\b", Product("AMD Instinct MI250X", 110, 64, 8, 1700)),
    (r"\bMI210\b", Product("AMD Instinct MI210", 104, 64, 8, 1700)),
    (r"\bMI300A\b", Product("AMD Instinct MI300A", 228, 128, 4, 2100, 6)),
    (r"\bMI325X\b", Product("AMD Instinct MI325X", 304, 256, 4, 2100, 8)),
    (r"\bMI300X\b", Product("AMD Instinct MI300X", 304, 192, 4, 2100, 8)),
    (r"\bMI350X\b", Product("AMD Instinct MI350X", 256, 288, 4, 2200, 8)),
    (r"\bMI355X\b", Product("AMD Instinct MI355X", 256, 288, 4, 2400, 8)),
)
"""Regular expression of the name in capitals → its data; the first match wins."""
_MEASURED_CLOCKS = {"NVIDIA H200": (1980, 1810, 1500), "NVIDIA H100 80GB HBM3": (1980, 1810, 1500)}
"""Name → MHz under load: without matrix products, with few of them, and with a matrix unit that is always busy, which
draws more power. Measured on an H200 (docs/lab/time.md); both have 700 W and a maximum of 1,980 MHz."""
_QUARTER_RATE = re.compile(r"\bH20\b")
_HALF_RATE = re.compile(r"\b(?:RTX ?)?[2-5]0[5-9]0(?!\d)")
"""GeForce RTX 20 to 50: `RTX 4090`, `3060 Ti`; not `RTX 4000` or `RTX PRO 6000`."""
_HALVED_OPERANDS = ("f16", "tf32", "f8")


def find_product(name: str) -> Product | None:
    """The product with that name, as a driver returns it or a user types it; None if it is not listed.

    Example:
        >>> find_product("nvidia l4").multiprocessors, find_product("RTX 4090").l2_mib, find_product("RTX 4070")
        (58, 72, None)
    """
    upper = name.strip().upper()
    return next((product for pattern, product in _PRODUCTS if re.search(pattern, upper)), None)


def modelled_product(gpu: str | None, targets: Iterable[str] | None) -> str | None:
    """The product to model: the given one; without one, the only name among the targets if it is a product's.

    Example:
        >>> modelled_product(None, ["H200"]), modelled_product(None, ["sm_90"]), modelled_product("H100", ["H200"])
        ('H200', None, 'H100')
    """
    names = split_option_values(targets or [])
    return gpu or (names[0] if len(names) == 1 and find_product(names[0]) else None)


def product_of(target: Target, name: str | None = None) -> Product | None:
    """The named product; without a listed name, the default product of the target."""
    return (find_product(name) if name else None) or target.gpu.product


def clock_of(name: str, matrix_share: float) -> float:
    """MHz of a product under load.

    Args:
        matrix_share: share of the time for which its matrix units are busy; 0 only without matrix products.

    Example:
        >>> clock_of("H200", 0.0), clock_of("H200", 0.5), clock_of("NVIDIA A100-SXM4-80GB", 0.5)
        (1980.0, 1655.0, 1410.0)
    """
    product = find_product(name)
    peak = (product.megahertz if product is not None else None) or 1800
    highest, high, low = _MEASURED_CLOCKS.get("" if product is None else product.name, (peak, peak, peak))
    return float(high - (high - low) * matrix_share if matrix_share else highest)


RATE_NAMES = {
    "bf16": "f16", "xf32": "tf32", "s8": "i8", "u8": "i8",
    **dict.fromkeys(("f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ", "e4m3", "e5m2"), "f8"),
}  # fmt: skip
"""Element type of a matrix instruction, or of a dot → its name in `Rates.matrix`, if another one."""


def matrix_rate(rates: Rates, product: str, operand: str, accumulator: str) -> int | None:
    """Dense multiply-adds of matrix instructions per SM and cycle; None where no source states a number.

    Args:
        operand: type of the operands: `f16` (also bf16), `tf32`, `f8`, `f4`, `i8`, `f32`, `f64`.
        accumulator: type of the sums: `f16`, `f32`, `s32` …

    Example:
        >>> from artifact_inspector.hardware.targets import parse_target
        >>> [matrix_rate(parse_target("sm_89").gpu.rates, "RTX 4090", "f16", sums) for sums in ("f16", "f32")]
        [512, 256]
    """
    rate = rates.matrix.get(operand)
    if rate is not None and _QUARTER_RATE.search(product.upper()):
        return rate // 4
    is_halved = operand in _HALVED_OPERANDS and accumulator == "f32" and _HALF_RATE.search(product.upper())
    return rate // 2 if rate is not None and is_halved else rate
