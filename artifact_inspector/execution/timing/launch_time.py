"""The predicted time of a simulated launch, what limits it, and where its warps wait.

Cycles are those of a ranking (`ranking`) for average CTAs. CTAs with more work than others prolong the launch: they
are placed one by one on the multiprocessors, in launch order, and proceed at the rate of the modelled residency. The
work of a CTA is interpolated by its number of memory accesses.

The range and the overhead of a launch were set on launches in docs/lab/time.md; other launches were predicted
before they were measured.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.analysis.resources.usage import find_resources
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.footprints import PAIR, SECTOR, Footprints
from artifact_inspector.execution.interpreter.program import GLOBAL_KINDS
from artifact_inspector.execution.l2_cache import WRITE_SHARE, L2Estimate
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.execution.timing.control_codes import ControlCode, read_control_codes
from artifact_inspector.execution.timing.costs import CtaCostModel, CtaCosts, GpuModel, SharedTraffic
from artifact_inspector.execution.timing.merged_reads import shares_delivered, shares_past_l1, shares_served
from artifact_inspector.execution.timing.ranking import (
    LATENCY_TERM,
    LAUNCH_TERM,
    cta_rates,
    gpu_model_of,
    resident_ctas_of,
    score_launch,
    turnover_cycles,
)
from artifact_inspector.execution.timing.residency import StallReason, overlap_sample
from artifact_inspector.execution.timing.sampling import EQUAL_WORK, LaunchSample, sample_launch, sample_simulated
from artifact_inspector.files.binaries import read_cubin, read_function_code
from artifact_inspector.hardware.products import clock_of
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.hardware.timing import BOUNDS, TimingParameters

MEMORY_TERMS = frozenset(("dram", "l2", "fabric"))
"""Units that all multiprocessors share."""
ALIKE_SHARE = 0.02
"""Units are as busy as each other within this share of the time."""
TIME_RANGE = (0.7, 1.45)
"""The range of a predicted time, relative to it."""
_SAMPLED_CTAS = 4
_FEWEST_STALL_SHARE = 0.005
"""Smallest share of all stalled cycles that is reported."""


@dataclass(frozen=True, slots=True)
class LaunchTime:
    """The predicted time of a launch with cold caches."""

    us: float
    """Microseconds, as Nsight Compute's `gpu__time_duration`."""
    low: float
    high: float
    gpu: str
    """The product."""
    bound: str
    """What limits it: `latency`, `device memory`, `L2` …"""
    terms: Mapping[str, float]
    """Unit → microseconds that it is busy."""
    waves: int
    """Waves of CTAs."""
    imbalance: float
    """Time over that of CTAs which all work as much as a typical one: above 1 if a few take longer, below 1 if
    many have less to do."""
    overlap: float | None
    """Share of the cycles in which a warp waits for global memory while another computes; None if none waits."""
    is_validated: bool
    """Whether such times were compared with measurements on this product."""
    bound_alike: tuple[str, ...] = ()
    """Other units that are as busy as `bound`, within two points of a hundred."""


@dataclass(frozen=True, slots=True)
class LineStall:
    """Why warps do not issue the instructions of a line."""

    line: str
    """`file:line` of the kernel's source; `opcode at line` of the machine code if unknown."""
    reason: str
    """In Nsight Compute's terms."""
    cycles: float
    """Average cycles of a warp."""


_VALIDATED_PRODUCTS = ("NVIDIA H200",)


def estimate_time(
    run: SimulatedLaunch, gpu: str | None, l2: L2Estimate | None, limit: int
) -> tuple[LaunchTime | None, tuple[LineStall, ...]]:
    """The time of a launch and the stalls of its warps; None and nothing if its rates or its path are unknown.

    Args:
        gpu: product name; None selects the default product of the kernel's target.
        l2: modelled L2 traffic, if the launch may not fit in L2.
    """
    loaded, artifact = run.loaded, run.loaded.artifact
    if run.unfinished or run.is_sampled or loaded.cubin is None or loaded.initial_state is not None:
        return None, ()
    if any(loaded.program.steps[index].kind in GLOBAL_KINDS for index in run.counters.missing_inputs):
        return None, ()  # whether their sectors are many or few decides the time
    own_target = artifact.target or parse_target(loaded.program.target)
    try:
        gpu_model = gpu_model_of(own_target, gpu)
    except UsageError:
        return None, ()
    cubin = read_cubin(loaded.cubin, loaded.program.name)
    resources = find_resources(artifact.target, artifact.metadata, binary=cubin)
    resident_limit = resident_ctas_of(own_target if gpu is None else parse_target(gpu), resources)
    footprints = run.memory.footprints
    if not resident_limit or not isinstance(footprints, Footprints):
        return None, ()
    fetched = _fetched_bytes(run, l2)
    written_share = share_written_back(run.memory.count_sectors()[1] * SECTOR, gpu_model.l2_bytes)
    written = run.memory.count_sectors()[1] * SECTOR * written_share
    filled = run.memory.count_filled()
    gpu_model = with_launch_timing(gpu_model, sum(fetched.values()) + sum(filled.values()), written)
    model = _TimeModel(
        run, gpu_model, resident_limit, cubin.frame_bytes or 0, int(resources.shared.value or 0),
        read_control_codes(read_function_code(loaded.cubin, loaded.program.name)),
        SharedTraffic(
            fetched,
            written_share,
            filled,
            shares_delivered(footprints),
            shares_served(footprints, gpu_model.multiprocessors, resident_limit),
            shares_past_l1(footprints, gpu_model.multiprocessors),
        ),
        limit,
    )  # fmt: skip
    return model.estimate(footprints.accesses_of_cta)


def _fetched_bytes(run: SimulatedLaunch, l2: L2Estimate | None) -> dict[str, float]:
    """Tensor → bytes that are fetched from device memory: its distinct pairs of sectors, or what the L2 model says."""
    if l2 is None or run.stream is None:
        return {name: float(size) for name, size in run.memory.count_fetched().items()}
    fetched = {}
    for region in run.memory.regions:
        first, last = np.searchsorted(run.stream.pairs * PAIR, [region.start, region.stop])
        fetched[region.name] = float(l2.requests_of_sample[1, first:last].sum() * run.stream.spacing * PAIR)
    return fetched


def find_bounds(
    terms: Mapping[str, float], timing: TimingParameters, cycles: float, filled: float = 1.0
) -> tuple[str, ...]:
    """What limits a launch: the busiest unit, if its rate is at least 60 % of its peak, and those that are as busy.

    Starting CTAs comes after the units, whose peaks are measured. If nothing reaches 60 %, it is latency.

    Args:
        terms: unit → cycles that it is busy, on the fullest multiprocessor.
        filled: mean work of a multiprocessor over that of the fullest, as peaks are those of all.
    """
    sustained = {"dram": timing.dram_share, "l2": timing.l2_bytes / timing.l2_peak_bytes, LATENCY_TERM: 0.0}
    shares = {
        name: busy * sustained.get(name, 1.0) * (1.0 if name in MEMORY_TERMS else filled) / cycles
        for name, busy in terms.items()
    }
    ordered = sorted(shares, key=lambda name: (name == LAUNCH_TERM, -shares[name]))
    least = max(timing.fewest_bound_share, shares[ordered[0]] - ALIKE_SHARE)
    return tuple(name for name in ordered if shares[name] >= least) or (LATENCY_TERM,)


def with_launch_timing(gpu_model: GpuModel, fetched: float, written: float) -> GpuModel:
    """A GPU for times: its device memory is as fast as for a launch that fetches and writes back so many bytes.

    Device memory moves the requested sectors, however they are scattered, as Nsight Compute counts them.
    """
    timing = gpu_model.timing
    share_lost = 2 * (timing.dram_read_share - timing.dram_share) * written / max(1.0, written + fetched)
    return replace(
        gpu_model,
        timing=replace(
            timing,
            dram_share=timing.dram_read_share - share_lost,
            dram_run_bytes=0.0,
            lockstep_share=timing.launch_lockstep_share,
            stagger_exponent=0.0,
        ),
    )


def matrix_share(sample: LaunchSample, terms: Mapping[str, float], cycles: float) -> float:
    """Share of the time for which matrix units are busy; 0 without matrix products (`HFMA2.MMA` is none)."""
    steps, executed = sample.loaded.program.steps, sample.counters.warps_executed
    has_products = any(step.matrix_types is not None and executed[step.index] for step in steps)
    return min(1.0, terms.get("tensor", 0.0) / cycles) if has_products else 0.0


def launch_clock(gpu_model: GpuModel, sample: LaunchSample, terms: Mapping[str, float], cycles: float) -> float:
    """The clock of the multiprocessors in MHz, which matrix products lower."""
    return clock_of(gpu_model.name, matrix_share(sample, terms, cycles))


def at_clock(gpu_model: GpuModel, megahertz: float) -> GpuModel:
    """A GPU whose multiprocessors have another clock: memory keeps its own, so that it does more in each cycle.

    With its own clock it is the same object.
    """
    timing, gain = gpu_model.timing, clock_of(gpu_model.name, 0.0) / megahertz
    if gain == 1.0:
        return gpu_model
    return replace(
        gpu_model, dram_bytes_per_cycle=gpu_model.dram_bytes_per_cycle * gain,
        timing=replace(
            timing,
            l2_bytes=timing.l2_bytes * gain,
            l2_peak_bytes=timing.l2_peak_bytes * gain,
            fabric_bytes=timing.fabric_bytes * gain,
        ),
    )  # fmt: skip


def share_written_back(written: float, l2_bytes: int) -> float:
    """Share of the written bytes that leave the L2 before the launch ends: what exceeds a share of it, as measured."""
    return max(0.0, 1 - WRITE_SHARE * l2_bytes / written) if written else 0.0


@dataclass(frozen=True, slots=True)
class _TimeModel:
    run: SimulatedLaunch
    gpu_model: GpuModel
    resident_limit: int
    frame_bytes: int
    shared_bytes: int
    controls: Sequence[ControlCode]
    traffic: SharedTraffic
    limit: int

    def _sample(self, ctas: NDArray[np.int64] | None) -> tuple[LaunchSample, CtaCosts]:
        sample = sample_simulated(self.run, ctas)
        if sample is None:
            sample = sample_launch(self.run.loaded, self.run.launch, limit=self.limit, ctas=ctas)
        return sample, self._costs(sample)

    def _costs(self, sample: LaunchSample) -> CtaCosts:
        return CtaCostModel(
            sample, self.gpu_model, self.resident_limit, self.frame_bytes, self.shared_bytes, self.traffic
        ).find()

    def estimate(self, accesses: NDArray[np.int64]) -> tuple[LaunchTime | None, tuple[LineStall, ...]]:
        ctas = None
        if accesses.min() < accesses.max():
            by_distance = np.argsort(np.abs(accesses - accesses.mean()), kind="stable")
            ctas = np.sort(by_distance[:_SAMPLED_CTAS])
        sample, costs = self._sample(ctas)
        if sample.unfinished or costs.unknown_rates or not sample.trace:
            return None, ()
        score, terms, _ = score_launch(sample, costs, self.controls, self.gpu_model, self.resident_limit)
        megahertz = launch_clock(self.gpu_model, sample, terms, score)  # which matrix products leave
        gpu_model = at_clock(self.gpu_model, megahertz)
        model = self if gpu_model is self.gpu_model else replace(self, gpu_model=gpu_model)
        costs = costs if model is self else model._costs(sample)
        return model._time_of(sample, costs, megahertz, None if ctas is None else accesses)

    def _time_of(
        self, sample: LaunchSample, costs: CtaCosts, megahertz: float, accesses: NDArray[np.int64] | None
    ) -> tuple[LaunchTime, tuple[LineStall, ...]]:
        """The time and stalls; `accesses` of each CTA if they differ."""
        imbalance, mean_work = 1.0, 1.0
        chip, timing = self.gpu_model, self.gpu_model.timing
        score, terms, waves = score_launch(sample, costs, self.controls, chip, self.resident_limit)
        score = max(score, turnover_cycles(sample, costs, self.controls, chip, self.resident_limit))
        fullest = -(-sample.launch.ctas // chip.multiprocessors)
        resident = min(self.resident_limit, fullest)
        if accesses is not None:
            imbalance, mean_work = self._imbalance(accesses, sample, costs, resident)
            terms = {name: cycles * (1 if name == LATENCY_TERM else mean_work) for name, cycles in terms.items()}
        us = score * imbalance / megahertz + timing.launch_us
        filled = sample.launch.ctas / (fullest * chip.multiprocessors)
        counted = {name: cycles * costs.busy_shares.get(name, 1.0) for name, cycles in terms.items()}
        bounds = [BOUNDS[bound] for bound in find_bounds(counted, timing, megahertz * us, filled)]
        stalls: dict[tuple[int, StallReason], float] = {}
        trace, overlap = overlap_sample(sample, costs, self.controls, chip, resident, stalls=stalls)
        if waves > 1 or len(trace) < len(sample.trace):
            stalls.clear()
            overlap_sample(sample, costs, self.controls, chip, resident, stalls=stalls, in_step=False)
        time = LaunchTime(
            us=round(us, 2),
            low=round(us * TIME_RANGE[0], 2),
            high=round(us * TIME_RANGE[1], 2),
            gpu=chip.name,
            bound=bounds[0],
            terms={name: round(cycles / megahertz, 2) for name, cycles in terms.items()},
            waves=waves,
            imbalance=round(imbalance, 3),
            overlap=None if overlap[3] is None else round(overlap[3], 3),
            is_validated=chip.name in _VALIDATED_PRODUCTS,
            bound_alike=tuple(name for name in dict.fromkeys(bounds) if name != bounds[0]),
        )
        return time, self._stalls_by_line(stalls, len(sample.trace) / len(trace), len(overlap[0]))

    def _imbalance(
        self, accesses: NDArray[np.int64], sample: LaunchSample, costs: CtaCosts, resident: int
    ) -> tuple[float, float]:
        """Time of the launch over that of CTAs which all work as much as the sampled ones; and the mean work."""
        mean_cycles, rates = cta_rates(sample, costs, self.controls, self.gpu_model, resident)
        typical, least, most = float(accesses[sample.ctas].mean()), int(accesses.argmin()), int(accesses.argmax())
        work = accesses / typical
        if accesses[least] < EQUAL_WORK * accesses[most]:  # else they take as much longer as they access more
            least_cycles, most_cycles = (
                mean_cycles if accesses[cta] == typical else self._cycles_of(cta, resident) for cta in (least, most)
            )
            if least_cycles is None or most_cycles is None:
                return 1.0, 1.0
            ends = [least_cycles, mean_cycles, max(most_cycles, mean_cycles)]
            work = np.interp(accesses, [accesses[least], typical, accesses[most]], ends) / mean_cycles
        multiprocessors = self.gpu_model.multiprocessors
        equal = makespan(np.ones_like(work), rates, multiprocessors)
        return makespan(work, rates, multiprocessors) / equal, float(work.mean())

    def _cycles_of(self, cta: int, resident: int) -> float | None:
        """Cycles of a CTA by itself; None if its path is unknown."""
        sample, costs = self._sample(np.array([cta], np.int64))
        if sample.unfinished or not sample.trace:
            return None
        return cta_rates(sample, costs, self.controls, self.gpu_model, resident)[0]

    def _stalls_by_line(
        self, stalls: Mapping[tuple[int, StallReason], float], scale: float, warps: int
    ) -> tuple[LineStall, ...]:
        totals: defaultdict[tuple[str, str], float] = defaultdict(float)
        steps = self.run.loaded.program.steps
        for (index, reason), cycles in stalls.items():
            step = steps[index]
            totals[step.source_place or f"{step.opcode} at {step.line}", reason.value] += cycles * scale / warps
        least = sum(totals.values()) * _FEWEST_STALL_SHARE
        rows = [
            LineStall(line, reason, round(cycles, 1)) for (line, reason), cycles in totals.items() if cycles > least
        ]
        return tuple(sorted(rows, key=lambda row: (-row.cycles, row.line, row.reason)))


def makespan(work: NDArray[np.float64], rates: Sequence[float], multiprocessors: int) -> float:
    """Cycles until the last CTA ends, if CTAs start in order wherever one ended.

    Args:
        work: of each CTA, relative to a typical one.
        rates: typical CTAs that complete per cycle if 1, 2 … share a multiprocessor.

    Example:
        >>> makespan(np.array([1.0, 1.0, 1.0, 3.0]), [0.5], 2)
        8.0
    """
    slots = len(rates)
    per_cta = [0.0, *(rate / count for count, rate in enumerate(rates, 1))]
    remaining: list[list[float]] = [[] for _ in range(multiprocessors)]
    for cta in range(min(len(work), slots * multiprocessors)):
        remaining[cta % multiprocessors].append(float(work[cta]))
    upcoming, end = min(len(work), slots * multiprocessors), 0.0
    queue = [(min(ctas) / per_cta[len(ctas)], at) for at, ctas in enumerate(remaining) if ctas]
    heapq.heapify(queue)
    clocks = [0.0] * multiprocessors
    while queue:
        time, at = heapq.heappop(queue)
        done = (time - clocks[at]) * per_cta[len(remaining[at])]
        clocks[at] = end = time
        ctas = [left - done for left in remaining[at] if left - done > 1e-9]
        while len(ctas) < slots and upcoming < len(work):
            ctas.append(float(work[upcoming]))
            upcoming += 1
        remaining[at] = ctas
        if ctas:
            heapq.heappush(queue, (time + min(ctas) / per_cta[len(ctas)], at))
    return end
