"""Traffic between L2 and device memory: the accesses of all CTAs, in the order of their execution.

CTAs start in launch order, as many as are resident, and each is replaced when it ends. All proceed at the same rate,
except that of several CTAs on one SM the older ones are slightly faster. Their accesses pass one LRU cache of pairs of
sectors, which the L2 fetches together. It is smaller than the L2, because the halves of an L2 both hold data that SMs
of both sides read.

The constants below were set once, before they were compared with the measurements in docs/lab/l2.md.

**Source** Mattson et al., "Evaluation Techniques for Storage Hierarchies" (1970): LRU; NVIDIA A100 white paper,
"L2 cache": two partitions.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.access_stream import AccessStream, StreamEvents
from artifact_inspector.execution.interpreter.footprints import PAIR

CAPACITY_SHARES = (35 / 60, 37.5 / 60, 40 / 60)
"""Usable shares of the L2; the estimate is the mean of the results. Set as MiB of the 60 MiB of an H200."""
WRITE_SHARE = 25 / 60
"""Share of the L2 that holds written lines before they leave it. Measured on an H200."""
AGE_ADVANTAGE = 0.1
"""How much faster than average the oldest CTA of an SM proceeds, and how much slower the youngest."""
USABLE_L2_SHARE = min(CAPACITY_SHARES)
_LOW_MARGIN, _HIGH_MARGIN = 0.85, 1.3
"""Margins of the range around the results."""
_MOST_SCHEDULED_CTAS = 50_000
"""Most CTAs that are replaced one by one; more proceed in waves."""


@dataclass(frozen=True, slots=True)
class L2Estimate:
    """Estimated traffic of a launch that starts with a cold L2."""

    fetches_per_pair: float
    """Times that a pair of sectors is fetched from device memory, averaged over the distinct pairs that are read."""
    low: float
    """The same at the low end of the range."""
    high: float
    requests_of_step: Mapping[int, tuple[int, float]]
    """Index of the instruction → sampled pairs that it requests, and those of them that come from device memory."""
    requests_of_sample: NDArray[np.float64]
    """The same by sampled pair, shape (2, samples)."""

    @property
    def hit_rate(self) -> float:
        """Share of the requested pairs of sectors that do not come from device memory."""
        return self.hit_rate_of(self.requests_of_step)

    def hit_rate_of(self, steps: Iterable[int]) -> float:
        """The same for the requests of some instructions."""
        rows = [self.requests_of_step[step] for step in steps]
        requests = sum(row[0] for row in rows)
        return 1 - sum(row[1] for row in rows) / requests if requests else 0.0

    def hit_rate_in(self, stream: AccessStream, start: int, stop: int) -> float | None:
        """The same for the addresses from `start` up to `stop`; None if none of them is read."""
        first, last = np.searchsorted(stream.pairs * PAIR, [start, stop])
        requests, misses = self.requests_of_sample[:, first:last].sum(axis=1).tolist()
        return 1 - misses / requests if requests else None


def estimate_l2(stream: AccessStream, ctas_per_multiprocessor: int, multiprocessors: int, l2_bytes: int) -> L2Estimate:
    """The traffic of a launch.

    Args:
        stream: accesses of all its CTAs.
        l2_bytes: size of the L2.
    """
    events = stream.events()
    reads = int(events.is_read.sum())
    distinct = len(np.unique(events.samples[events.is_read]))
    if not reads:
        return L2Estimate(1.0, 1.0, 1.0, {}, np.zeros((2, len(stream.pairs))))
    results: list[float] = []
    misses = np.zeros(len(events.samples))
    advantages = (0.0, AGE_ADVANTAGE) if ctas_per_multiprocessor > 1 else (0.0,)
    for advantage in advantages:
        order = _execution_order(stream, ctas_per_multiprocessor, multiprocessors, advantage)
        ordered_samples = events.samples[order]
        for capacity in _capacities(stream, l2_bytes):
            missed = np.zeros(len(order), bool)
            missed[order] = lru_misses(ordered_samples, capacity)
            missed &= events.is_read
            results.append(missed.sum() / distinct)
            if advantage == advantages[-1]:
                misses += missed / len(CAPACITY_SHARES)
    mean = float(misses.sum()) / distinct
    return L2Estimate(
        fetches_per_pair=mean, low=max(min(results) * _LOW_MARGIN, min(1.0, *results)),
        high=min(max(results) * _HIGH_MARGIN, max(reads / distinct, *results)),
        requests_of_step={
            step: (int(requests), missed_share)
            for step, (requests, missed_share) in enumerate(_totals(events.steps, misses, events.is_read).T.tolist())
            if requests
        },
        requests_of_sample=_totals(events.samples, misses, events.is_read, len(stream.pairs)),
    )  # fmt: skip


def _totals(
    groups: NDArray[np.int32], values: NDArray[np.float64], selected: NDArray[np.bool_], group_count: int = 0
) -> NDArray[np.float64]:
    """The number of selected values of each group, and their sum."""
    sizes = np.bincount(groups[selected], minlength=group_count)
    return np.array([sizes, np.bincount(groups[selected], values[selected], group_count)])


def find_read_misses(
    stream: AccessStream, ctas_per_multiprocessor: int, multiprocessors: int, l2_bytes: int
) -> NDArray[np.float64]:
    """How likely each access is a read that comes from device memory: the mean over the usable shares of the L2.

    Arguments as of `estimate_l2`; the stream may be that of the CTAs that start first.
    """
    events = stream.events()
    order = _execution_order(stream, ctas_per_multiprocessor, multiprocessors, AGE_ADVANTAGE)
    misses = np.zeros(len(order))
    for capacity in _capacities(stream, l2_bytes):
        misses[order] += lru_misses(events.samples[order], capacity) / len(CAPACITY_SHARES)
    return misses * events.is_read


def _capacities(stream: AccessStream, l2_bytes: int) -> list[int]:
    """Sampled pairs of sectors that the usable shares of the L2 hold."""
    return [max(1, int(l2_bytes * share / PAIR / stream.spacing)) for share in CAPACITY_SHARES]


def _execution_order(
    stream: AccessStream, ctas_per_multiprocessor: int, multiprocessors: int, advantage: float
) -> NDArray[np.int64]:
    """Indices of the recorded accesses in order of time; simultaneous ones in order of their CTAs."""
    events = stream.events()
    times = event_times(events, stream.lengths, ctas_per_multiprocessor, multiprocessors, advantage)
    order: NDArray[np.int64] = np.lexsort((events.samples, events.ctas, times))
    return order


def lru_misses(lines: NDArray[np.int32], capacity: int) -> NDArray[np.bool_]:
    """Which accesses miss in an LRU cache that is empty at first.

    Args:
        lines: the line of each access, in order of time.
        capacity: lines that the cache holds.

    Example:
        >>> lru_misses(np.array([1, 2, 1, 3, 2]), 2).tolist()
        [True, True, False, True, True]
    """
    cached: OrderedDict[int, None] = OrderedDict()
    touch, evict = cached.move_to_end, cached.popitem
    misses: list[int] = []
    room = capacity
    for index, line in enumerate(lines.tolist()):
        if line in cached:
            touch(line)
            continue
        misses.append(index)
        cached[line] = None
        if room:
            room -= 1
        else:
            evict(last=False)
    result = np.zeros(len(lines), bool)
    result[misses] = True
    return result


def event_times(
    events: StreamEvents,
    lengths: NDArray[np.int64],
    ctas_per_multiprocessor: int,
    multiprocessors: int,
    advantage: float,
) -> NDArray[np.float64]:
    """The time of each access, in accesses of an average CTA.

    Args:
        lengths: accesses of each CTA.
        advantage: how much faster than average the oldest CTA of a multiprocessor proceeds.
    """
    if len(lengths) > _MOST_SCHEDULED_CTAS:
        waves = events.ctas // (ctas_per_multiprocessor * multiprocessors)
        return np.asarray(waves * float(lengths.max() + 1) + events.positions, np.float64)
    progress = schedule_ctas(lengths.tolist(), ctas_per_multiprocessor, multiprocessors, advantage)
    sizes = [len(points) for points in progress]
    ctas = np.repeat(np.arange(len(progress)), sizes)
    times_of_points, positions = np.array([point for points in progress for point in points]).reshape(-1, 2).T
    stride = float(lengths.max()) + 2.0
    times = np.interp(events.ctas * stride + events.positions, ctas * stride + positions, times_of_points)
    return np.asarray(times, np.float64)


def schedule_ctas(
    lengths: Sequence[int], ctas_per_multiprocessor: int, multiprocessors: int, advantage: float
) -> list[list[tuple[float, float]]]:
    """Points (time, accesses done) of each CTA, between which it proceeds evenly.

    Args:
        lengths: accesses of each CTA.
        advantage: how much faster than average the oldest CTA of a multiprocessor proceeds.

    Example:
        >>> schedule_ctas([2, 4, 2], 1, 2, 0.0)
        [[(0.0, 0.0), (2.0, 2.0)], [(0.0, 0.0), (4.0, 4.0)], [(2.0, 0.0), (4.0, 2.0)]]
    """
    total = len(lengths)
    slots = min(total, ctas_per_multiprocessor * multiprocessors)
    points: list[list[tuple[float, float]]] = [[] for _ in range(total)]
    residents: list[list[int]] = [[] for _ in range(multiprocessors)]
    clocks = [0.0] * multiprocessors
    for cta in range(slots):
        residents[cta % multiprocessors].append(cta)
        points[cta].append((0.0, 0.0))
    upcoming = slots
    queue: list[tuple[float, int]] = []

    def rates(count: int) -> list[float]:
        return [1 + advantage * (1 - 2 * age / (count - 1)) for age in range(count)] if count > 1 else [1.0]

    def plan(at: int) -> None:
        ctas = residents[at]
        if ctas:
            delays = [
                (lengths[cta] - points[cta][-1][1]) / rate for cta, rate in zip(ctas, rates(len(ctas)), strict=True)
            ]
            heapq.heappush(queue, (clocks[at] + min(delays), at))

    for at in range(multiprocessors):
        plan(at)
    while queue:
        time, at = heapq.heappop(queue)
        elapsed, clocks[at] = time - clocks[at], time
        remaining = []
        for cta, rate in zip(residents[at], rates(len(residents[at])), strict=True):
            done = points[cta][-1][1] + elapsed * rate
            is_finished = done > lengths[cta] - 1e-6
            points[cta].append((time, float(lengths[cta]) if is_finished else done))
            if not is_finished:
                remaining.append(cta)
        freed = len(residents[at]) - len(remaining)
        started = range(upcoming, min(upcoming + freed, total))
        upcoming += len(started)
        for cta in started:
            points[cta].append((time, 0.0))
        residents[at] = [*remaining, *started]
        plan(at)
    return points
