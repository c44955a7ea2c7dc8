"""How long one thing takes on a GPU when nothing else is in its way, and what its memory sustains.

Cycles of the multiprocessor's clock. What names no source was chosen so that the order of eight kernels'
configurations is the one that an H200 (sm_90) timed (docs/ranking.md). They serve its kin too: a ranking
needs their proportions, not their last digit.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """Unloaded latencies in cycles, and rates that data sheets do not give."""

    dram: int = 850
    """A load that comes from device memory."""
    l2: int = 270
    """A load that the second-level cache has: Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU
    Architecture via Microbenchmarking" (2024), table of latencies."""
    l1: int = 40
    """A load that the first-level cache has: the same."""
    shared: int = 30
    """A load from shared memory: the same."""
    shuffle: int = 24
    special: int = 24
    """A transcendental, a conversion."""
    arithmetic: int = 6
    """What has a scoreboard though it takes a fixed time."""
    double: int = 30
    constant: int = 30
    """A special register, a constant."""
    barrier: int = 20
    """A barrier of the CTA that all other warps have reached."""
    atomic: int = 300
    """An atomic in the second-level cache that returns its old value."""
    tensor: int = 33
    """A matrix product of registers until its sums can be read."""
    warpgroup: int = 64
    """A warpgroup's product beyond the time that the tensor pipe takes for it."""
    bulk: int = 170
    """What a copy by the tensor memory accelerator takes longer than a load: the same, TMA."""
    launch: int = 160
    """Between the starts of two CTAs on one multiprocessor, at least."""
    launch_warp: int = 2
    """The same for each warp of a CTA above two."""
    l2_bytes: float = 44.0
    """Bytes in a cycle that each multiprocessor gets from the second-level cache when all ask."""
    l2_request: int = 64
    """Bytes whose time a slice of the second-level cache takes for any request of a line, however little of
    it is wanted."""
    fill_bytes: float = 64.0
    """Bytes in a cycle that one multiprocessor can take from the second-level cache: A100 white paper."""
    dram_share: float = 0.84
    """Of the data sheet's bandwidth that is sustained."""
    dram_run: float = 30.0
    """Bytes whose time device memory loses for each stretch without a gap that is asked for together."""
    in_step: float = 0.5
    """How much of the first wave's CTAs, which start together, go in step: their phases meet at the same
    units instead of filling each other's waits."""
    crowding: int = 4
    """Exponent of the norm by which units that are nearly as busy as the busiest get in its way."""
    mma_share: float = 0.62
    """Of the tensor pipe's rate that products of single warps reach where warpgroups have their own: Luo et
    al., "Tensor Core"."""


TIMING = Timing()
