"""Unloaded latencies of a GPU, and sustained memory rates, in cycles of the multiprocessor's clock.

*Measured* values are from chains of dependent instructions and from streaming kernels on an H200 and an H100
(tests/oracle/measured/latencies.cu and .json). The two GPUs agree within 4 % unless both values are listed.
Values without a source were fitted so that the order of eight kernels' configurations matches their times on
an H200 (docs/ranking.md). They are also used for the relatives of sm_90: a ranking needs their proportions,
not their last digit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimingParameters:
    """Unloaded latencies in cycles, and rates that data sheets do not state."""

    dram: int = 850
    """A load from device memory under load. Measured without load: 655 (H100: 678), and 735 (712) where
    nothing near the address had been read before."""
    l2: int = 280
    """A hit in the L2 cache. Measured; 270 in Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
    Architecture via Microbenchmarking" (2024), table of latencies."""
    l1: int = 34
    """A hit in the L1 cache. Measured."""
    shared: int = 22
    """A load from shared memory, in addition to its wavefronts. Measured."""
    shuffle: int = 23
    """In addition to the issue cycle. Measured."""
    special: int = 15
    """A transcendental function, F2I, POPC or FLO, in addition to the two cycles that they occupy their unit.
    Measured."""
    arithmetic: int = 5
    """A fixed-latency instruction that uses a scoreboard. Measured: FFMA, IMAD, LOP3, PRMT, I2FP, F2FP."""
    fp64: int = 7
    """DADD and DFMA, in addition to the cycle that they occupy their unit. Measured."""
    constant: int = 30
    """A load from constant memory at a register address, or of a special register. Measured."""
    barrier: int = 13
    """A CTA barrier that all other warps have reached; `barrier_per_warp` is added per warp. Measured: 14.9
    cycles for 1 warp, 20.9 for 4, 45 for 16, 77 for 32."""
    barrier_per_warp: int = 2
    atomic: int = 528
    """An atomic in the L2 cache that returns the old value. Measured."""
    mma: int = 24
    """A matrix product of register operands until its result can be read, in addition to the issue cycle.
    Measured: equal for fp16, tf32 and int8."""
    warpgroup: int = 59
    """A warpgroup's product including fence and wait, in addition to the time in the tensor pipe. Measured."""
    tma: int = 73
    """Additional latency of a tensor memory accelerator copy over a load. Measured: 1024 bytes without a tensor map."""
    cta_launch: int = 157
    """Minimum time between the starts of two CTAs on one multiprocessor. Measured: empty CTAs of 1 to 16 warps."""
    cta_launch_per_warp: int = 7
    """Minimum time between CTA starts per warp of the CTA, where larger. Measured: 222 cycles for 32 warps."""
    cta_turnaround: int = 331
    """From the start of an empty CTA to the start of its successor in the same slot. Measured: CTAs with 200
    KiB of shared memory each, and half of it where two are resident."""
    l2_bytes: float = 36.0
    """Bytes per cycle that each multiprocessor gets from the L2 cache when all request data. Measured: 35.1
    to 38.0 for contiguous requests; 33.7 for random requests of 64 bytes or more."""
    l2_request_bytes: int = 60
    """Cost of an L2 request of a line, in bytes of L2 slice bandwidth, however few bytes are used. Measured:
    1.66 cycles for requests to separate lines."""
    l2_fill_bytes: float = 64.0
    """Maximum bytes per cycle that one multiprocessor receives from the L2 cache: A100 white paper."""
    l2_peak_bytes: float = 39.0
    """Bytes per cycle and multiprocessor that the L2's slices deliver at most: two sectors per cycle of each slice.
    Measured: `lts__lts2xbar_cycles_active`, 94 slices at 0.86 of the multiprocessors' clock."""
    fabric_bytes: float = 0.0
    """Bytes per cycle and multiprocessor that pass between the two halves of an L2, counted as what is fetched from
    device memory or written; 0 where it has no halves. See `FABRIC_BYTES`."""
    dram_share: float = 0.84
    """Sustained share of the data sheet's memory bandwidth. Measured: 0.83 with as many writes as reads
    (H100: 0.85), 0.92 (0.89) for reads only."""
    dram_read_share: float = 0.92
    """The same for reads only."""
    dram_run_bytes: float = 30.0
    """Cost of each contiguous range of a DRAM request, in bytes of DRAM bandwidth."""
    launch_us: float = 2.0
    """Microseconds of a launch in addition to the time of its CTAs. Measured."""
    fewest_bound_share: float = 0.6
    """Share of the time for which a unit must be busy to limit a launch: Nsight Compute's rule, below which latency
    does."""
    lockstep_share: float = 0.5
    """Share of the first wave's CTAs, which start together, that stay in step: their phases compete for the
    same units instead of filling each other's waits."""
    stagger_exponent: float = 0.5
    """Exponent of the number of phases over which starts of CTAs are spread, by which fewer stay in step; 0 for a
    predicted time, whose share was fitted without."""
    launch_lockstep_share: float = 0.125
    """The same for a predicted time. Fitted on half of the launches of docs/lab/time.md."""
    contention_exponent: int = 4
    """Exponent of the norm by which units that are nearly as busy as the bottleneck slow it down."""
    warp_mma_share: float = 0.62
    """Share of the tensor pipe's rate that warp-level products reach on GPUs with warpgroup instructions: Luo
    et al., "Tensor Core". Measured: 0.66 with 8 warps, 0.57 with 4."""


LSU_QUEUE_CYCLES = 64
"""Cycles of work that the queue of the load/store unit holds; a warp with more has to wait. No source states it."""
FABRIC_BYTES = {90: 16.6}
"""Architecture → `fabric_bytes`. Measured on an H200: `lts__ltcfabric2ltc_cycles_active` of 94 launches, which such a
rate predicts within 6 % in the median (docs/lab/time.md)."""
TIMING = TimingParameters()

BOUNDS = {
    "dram": "device memory", "l2": "L2", "fabric": "L2", "lsu": "shared memory and L1", "tensor": "tensor cores",
    "fma": "multiply-adds", "alu": "integer arithmetic", "xu": "special functions", "double": "double precision",
    "issue": "instruction issue", "launch": "starting CTAs", "path": "latency", "atomics": "atomics on one address",
}  # fmt: skip
"""What bounds a launch: the unit or the path of a CTA → words."""
