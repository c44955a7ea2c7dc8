"""What a finding costs per trip of the main loop, in cycles of a warp scheduler: only to order findings and kernels.

The counts are those of the files; the costs are rough: issue rates, and the latency and bandwidth of the memory that
serves an access. `advise` predicts the share of a launch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from artifact_inspector.analysis.access.load_widths import MAX_BYTES, LoadWidth
from artifact_inspector.facts.kernel import KernelFacts

_LATENCY, _SCHEDULERS, _L1_BYTES = 600, 4, 128 << 10
"""Cycles of device memory; schedulers of a multiprocessor, and its L1."""
_FMA, _ACCESS, _L2_ACCESS = 2, 4, 13
"""A multiply-add on 16 lanes; 128 bytes of a warp at 128 bytes per cycle of the four schedulers; at 40, from L2."""


def _spills(kernel: KernelFacts) -> float:
    resources = kernel.resources
    stored, reloaded = resources.spill_bytes.value or 0, resources.reload_bytes.value
    threads = 32 * (kernel.artifact.num_warps or 1)
    cost = _ACCESS if stored * threads <= _L1_BYTES else _L2_ACCESS
    return (stored + (stored if reloaded is None else reloaded)) / 4 * cost


def _exposed_latency(kernel: KernelFacts) -> float:
    warps = (0 if kernel.occupancy is None else kernel.occupancy.warps) or 1
    return _LATENCY / max(1.0, warps / _SCHEDULERS)


def _narrow(accesses: Iterable[LoadWidth]) -> float:
    """The instructions beyond those of 16 bytes."""
    extra = 0.0
    for access in accesses:
        extra += sum(count * (1 - width / MAX_BYTES) for width, count in access.widths.items() if width < MAX_BYTES)
    return extra * _ACCESS


_PRICES: Mapping[str, Callable[[KernelFacts], float]] = {
    "AI002": _exposed_latency,
    "AI003": lambda x: 0.0 if x.num_stages == 1 else _exposed_latency(x),  # as requested
    "AI004": lambda x: 0.0 if x.principal_region is None else x.principal_region.fused_multiply_adds * _FMA,
    "AI007": _spills,
    "AI006": lambda x: _narrow(x.widths),
    "AI010": _exposed_latency,
    "AI022": lambda x: _narrow(x.store_widths),
    "AI023": _exposed_latency,
}


def estimate_share(kernel: KernelFacts, code: str) -> float:
    """Share of a trip of the main loop that a finding of a rule costs, from 0 to 1; 0 if it is not estimated."""
    cost, region = price(kernel, code), kernel.principal_region
    issued = 0.0 if region is None else sum(region.counts.values()) / max(1, region.unroll_factor)
    return cost / (cost + issued) if cost else 0.0


def price(kernel: KernelFacts, code: str) -> float:
    """Cycles per trip that a finding of a rule takes; 0 if they are not estimated."""
    return _PRICES[code](kernel) if code in _PRICES else 0.0
