"""How long one thing takes on a GPU when nothing else is in its way, and what its memory sustains.

Cycles of the multiprocessor's clock. *Measured* is by chains of dependent instructions and by streams on an
H200 and an H100 (tests/oracle/measured/latencies.cu and .json), which agree within 4 % unless both are
told. What names no source was chosen so that the order of eight kernels' configurations is the one that an
H200 timed (docs/ranking.md). They serve the kin of sm_90 too: a ranking needs their proportions, not their
last digit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Unloaded latencies in cycles, and rates that data sheets do not give."""

    dram: int = 850
    """A load that comes from device memory, while others do: alone it was measured to take 655 (H100:
    678), and 735 (712) where nothing near it had been read before."""
    l2: int = 280
    """A load that the second-level cache has. Measured; 270 in Luo et al., "Benchmarking and Dissecting
    the Nvidia Hopper GPU Architecture via Microbenchmarking" (2024), table of latencies."""
    l1: int = 34
    """A load that the first-level cache has. Measured."""
    shared: int = 22
    """A load from shared memory, beyond its wavefront. Measured."""
    shuffle: int = 23
    """Beyond the cycle that it is issued in. Measured."""
    special: int = 15
    """A transcendental, a conversion of F2I, POPC, FLO beyond the two cycles that they keep their unit.
    Measured."""
    arithmetic: int = 5
    """What has a scoreboard though it takes a fixed time. Measured: FFMA, IMAD, LOP3, PRMT, I2FP, F2FP."""
    double: int = 7
    """DADD, DFMA beyond the cycle that they keep their unit. Measured."""
    constant: int = 30
    """A load from constant memory by an address, a special register. Measured."""
    barrier: int = 13
    """A barrier of the CTA that all other warps have reached, and what each warp takes to reach it.
    Measured: 14.9 cycles of 1 warp, 20.9 of 4, 45 of 16, 77 of 32."""
    barrier_warp: int = 2
    atomic: int = 528
    """An atomic in the second-level cache that returns its old value. Measured."""
    tensor: int = 24
    """A matrix product of registers until its sums can be read, beyond the cycle that it is issued in.
    Measured: fp16, tf32 and int8 alike."""
    warpgroup: int = 59
    """A warpgroup's product beyond the time that the tensor pipe takes for it, its fence and its wait.
    Measured."""
    bulk: int = 73
    """What a copy by the tensor memory accelerator takes longer than a load. Measured: 1024 bytes without
    a map."""
    launch: int = 157
    """Between the starts of two CTAs on one multiprocessor, at least. Measured: CTAs of 1 to 16 warps
    that do nothing."""
    launch_warp: int = 7
    """The same for each warp of a CTA, where that is more. Measured: 222 cycles of 32 warps."""
    turn: int = 331
    """From the start of a CTA that does nothing to that of the next in its place. Measured: CTAs with 200
    KiB of shared memory each, and half of it where two have place."""
    l2_bytes: float = 36.0
    """Bytes in a cycle that each multiprocessor gets from the second-level cache when all ask. Measured:
    35.1 to 38.0, side by side; 33.7 in pieces of 64 bytes and more at random."""
    l2_request: int = 60
    """Bytes whose time a slice of the second-level cache takes for any request of a line, however little of
    it is wanted. Measured: 1.66 cycles, alone in their lines."""
    fill_bytes: float = 64.0
    """Bytes in a cycle that one multiprocessor can take from the second-level cache: A100 white paper."""
    dram_share: float = 0.84
    """Of the data sheet's bandwidth that is sustained. Measured: 0.83 where as much is written as read
    (H100: 0.85), 0.92 (0.89) where it is read alone."""
    dram_run: float = 30.0
    """Bytes whose time device memory loses for each stretch without a gap that is asked for together."""
    in_step: float = 0.5
    """How much of the first wave's CTAs, which start together, go in step: their phases meet at the same
    units instead of filling each other's waits."""
    crowding: int = 4
    """Exponent of the norm by which units that are nearly as busy as the busiest get in its way."""
    mma_share: float = 0.62
    """Of the tensor pipe's rate that products of single warps reach where warpgroups have their own: Luo et
    al., "Tensor Core". Measured: 0.66 with 8 warps, 0.57 with 4."""


TIMING = Timing()
