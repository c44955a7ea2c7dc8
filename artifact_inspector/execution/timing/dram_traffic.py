"""Bytes that a launch fetches from device memory, from a window of its CTAs.

The first CTAs of the launch are simulated, some waves of them. The second half of the window stands for all
later CTAs: what stays in L2 has been fetched by then. Of CTAs that share no data, a few stand for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.access_stream import AccessStream
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import PAIR
from artifact_inspector.execution.kernel_loader import LoadedKernel
from artifact_inspector.execution.l2_cache import USABLE_L2_SHARE, find_read_misses
from artifact_inspector.execution.launch import KernelLaunch
from artifact_inspector.execution.simulation import run_in_portions, set_up_launch
from artifact_inspector.execution.timing.sampling import LaunchSample

WINDOW_WAVES = 4
_SAMPLES_PER_CACHE = 1024
_MOST_PARTS = 2048
"""Parts of the L2 that all tensors fill, up to which a few CTAs are simulated with theirs: two million samples."""
_FEWEST_REUSES = 1.25
"""Requested bytes per distinct byte, from which CTAs share data."""


def exceeds_l2(sample: LaunchSample, l2_bytes: int) -> bool:
    """Whether a launch reuses data and does not fit in L2, so that its waves decide what is fetched."""
    requested, distinct, distinct_written = _requested_bytes(sample)
    reuses = requested >= _FEWEST_REUSES * distinct
    return reuses and distinct + distinct_written > USABLE_L2_SHARE * l2_bytes


def _repeats_passes(sample: LaunchSample, resident: int, l2_bytes: int) -> bool:
    """Whether CTAs that share no data read theirs again, which exceeds the L2 for all resident CTAs."""
    (read, distinct, _), traffic = _requested_bytes(sample), sample.traffic
    again = [
        count
        for step, count in traffic.requested_sectors.items()
        if not traffic.new_sectors.get(step) and traffic.sectors_read.get(traffic.tensor_of_step.get(step, ""))
    ]
    repeats = sum(again) >= (_FEWEST_REUSES - 1) * sum(traffic.sectors_read.values()) > 0
    parts = sum(region.stop - region.start for region in traffic.regions) / l2_bytes * resident / len(sample.ctas)
    is_alone = read < _FEWEST_REUSES * distinct and parts < _MOST_PARTS
    return repeats and is_alone and read / sample.launch.ctas * resident > l2_bytes


def _requested_bytes(sample: LaunchSample) -> tuple[float, float, float]:
    """Bytes that the launch requests; and the distinct bytes that it reads and writes."""
    read, written = sample.traffic.sectors_read, sample.traffic.sectors_written
    by_tensor = (sample.requested_bytes(read), sample.distinct_bytes(read), sample.distinct_bytes(written))
    requested, distinct, distinct_written = (sum(sizes.values()) for sizes in by_tensor)
    return requested, distinct, distinct_written


def fetched_bytes(
    sample: LaunchSample,
    ctas_per_multiprocessor: int,
    multiprocessors: int,
    l2_bytes: int,
    limit: int,
    most_sectors: float = math.inf,
    *,
    stream: AccessStream | None = None,
) -> Mapping[str, float]:
    """Tensor → bytes of it that are fetched from device memory.

    Empty where it is the distinct bytes: if they fit in L2, or if CTAs share hardly any. Empty too if a path or an
    address depends on a missing input.

    Args:
        most_sectors: sectors that the window may request; it has fewer waves if that is exceeded, but two at least.
        stream: of at least the window, if it is recorded; by default it is simulated.
    """
    traffic, ctas = sample.traffic, sample.launch.ctas
    resident = min(ctas, ctas_per_multiprocessor * multiprocessors)
    window = window_ctas(sample, ctas_per_multiprocessor * multiprocessors, most_sectors)
    if stream is None and _repeats_passes(sample, resident, l2_bytes):  # each CTA has its part of the L2
        window = ctas_per_multiprocessor = len(sample.ctas)
        multiprocessors, l2_bytes = 1, l2_bytes * window // resident
    elif not (window and exceeds_l2(sample, l2_bytes)):
        return {}
    if stream is None:
        stream = record_window(sample.loaded, sample.launch, l2_bytes, limit, np.arange(window, dtype=np.int64))
    if stream is None:
        return {}
    stream = stream.of_first(window)
    events = stream.events()
    misses = find_read_misses(stream, ctas_per_multiprocessor, multiprocessors, l2_bytes)
    half = window // 2 if window >= resident else 0
    weights = np.where(events.ctas < half, 1.0, (ctas - half) / (window - half)) * misses
    addresses = stream.pairs[events.samples] * PAIR
    totals = {}
    for name, tensor in sample.launch.tensors.items():
        start = tensor.pointer or 0
        is_inside = (addresses >= start - PAIR) & (addresses < start + tensor.bytes)
        if traffic.sectors_read.get(name) and is_inside.any():
            totals[name] = float(weights[is_inside].sum()) * stream.spacing * PAIR
    return totals


def window_ctas(sample: LaunchSample, resident: int, most_sectors: float = math.inf) -> int:
    """CTAs of the window; 0 if it would request too many sectors. `resident`: CTAs that run at once."""
    sectors_per_cta = max(1.0, sum(sample.traffic.requested_sectors.values()) / len(sample.ctas))
    waves = max(2, int(min(WINDOW_WAVES, most_sectors / (sectors_per_cta * resident))))
    window = min(sample.launch.ctas, waves * resident)
    return 0 if window * sectors_per_cta > 2 * most_sectors else window


def record_window(
    loaded: LoadedKernel, launch: KernelLaunch, l2_bytes: int, limit: int, ctas: NDArray[np.int64]
) -> AccessStream | None:
    """The accesses of some CTAs to a sample of sectors; None if a path or an address depends on a missing input."""
    counters = StepCounters(len(loaded.program.steps), limit, counts_requests=False)
    setup = set_up_launch(loaded, launch, counters)
    setup.memory.tracks_touches = False
    stream = setup.memory.footprints = AccessStream(setup.launch, l2_bytes, _SAMPLES_PER_CACHE)
    return None if run_in_portions(setup, ctas) or counters.missing_inputs else stream
