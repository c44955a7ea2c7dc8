"""The predicted time of a launch, and what it would be without some of its work."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.analysis.resources.usage import Resources
from artifact_inspector.diagnosis.source_operations import SourceOperations, read_source_operations
from artifact_inspector.errors import UsageError
from artifact_inspector.execution.argument_matching import match_launch
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import SECTOR
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.kernel_loader import LoadedKernel, load_kernel
from artifact_inspector.execution.timing.amd_costs import AmdCostModel, amd_gpu_model, read_waits
from artifact_inspector.execution.timing.candidates import RankingCandidate
from artifact_inspector.execution.timing.control_codes import ControlCode, read_control_codes
from artifact_inspector.execution.timing.costs import WARP_SIZE, CtaCostModel, CtaCosts, GpuModel, SharedTraffic
from artifact_inspector.execution.timing.dram_traffic import fetched_bytes
from artifact_inspector.execution.timing.launch_time import (
    at_clock,
    launch_clock,
    share_written_back,
    with_launch_timing,
)
from artifact_inspector.execution.timing.ranking import gpu_model_of, score_launch, turnover_cycles
from artifact_inspector.execution.timing.residency import overlap_sample
from artifact_inspector.execution.timing.sampling import GlobalTraffic, LaunchSample, sample_evenly
from artifact_inspector.facts.inspection import inspect_artifact
from artifact_inspector.facts.kernel import occupancy_of
from artifact_inspector.facts.modules import Disassemble
from artifact_inspector.files.binaries import read_cubin, read_function_code
from artifact_inspector.hardware.products import product_of
from artifact_inspector.hardware.targets import Target, parse_target

_SCALED_COUNTERS = (
    "warps_executed", "threads_executed", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal",
    "bytes_requested", "active_threads",
)  # fmt: skip
_MOST_SECTORS = 1 << 25
"""Sectors of the window of CTAs from which traffic of device memory is derived: it takes up to 10 s."""
_WAITS = ("s_waitcnt", "DEPBAR", "WARPGROUP.DEPBAR")
"""Instructions that only wait."""
_SCALED_TRAFFIC = ("requested_lines", "new_sectors", "requested_sectors", "completed_sectors", "contiguous_ranges")
_RATE_OF = {
    "fp16": "f16", "bf16": "f16", "tf32": "tf32", "fp32": "tf32", "fp8": "f8", "int8": "i8", "fp64": "f64",
    "fp4": "f4"
}  # fmt: skip
_RATE_OF_LOADED = {"f16": "f16", "bf16": "f16", "i8": "i8"}
"""The same of loaded elements that a wider dot multiplies: it could multiply them as they are."""


@dataclass(frozen=True, slots=True)
class TimeModel:
    """What predicts the time of a kernel."""

    controls: Sequence[ControlCode]
    gpu: GpuModel
    resident_ctas: int
    frame_bytes: int
    shared_bytes: int
    traffic: SharedTraffic
    _first: list[tuple[LaunchSample, tuple[float, Mapping[str, float]]]] = field(
        default_factory=list, init=False, compare=False, repr=False
    )

    def score(
        self, sample: LaunchSample, *, resident: int | None = None, hidden: Collection[int] = (), is_ahead: bool = False
    ) -> float:
        """Cycles of a launch.

        Args:
            sample: of the launch, perhaps without some work.
            resident: resident CTAs per multiprocessor; None for those of the kernel.
            hidden: loads whose latency is hidden.
            is_ahead: whether nothing waits for the transfer of their bytes either, as in a deep pipeline.
        """
        if not hidden and resident in (None, self.resident_ctas):
            return self._score(sample)[0]
        costs = self._costs(sample)
        latency = -inf if is_ahead else 0.0
        of_hidden = {at: cost._replace(latency_cycles=latency) for at, cost in costs.step_costs.items() if at in hidden}
        costs = replace(costs, step_costs={**costs.step_costs, **of_hidden})
        return score_launch(sample, costs, self.controls, self.gpu, resident or self.resident_ctas)[0]

    def terms(self, sample: LaunchSample) -> Mapping[str, float]:
        """Unit → cycles of a launch."""
        return self._score(sample)[1]

    def _score(self, sample: LaunchSample) -> tuple[float, Mapping[str, float]]:
        """Cycles and terms; those of the first sample, the unchanged launch, are kept for the rules."""
        for first, result in self._first:
            if first is sample:
                return result
        result = score_launch(sample, self._costs(sample), self.controls, self.gpu, self.resident_ctas)[:2]
        if not self._first:
            self._first.append((sample, result))
        return result

    def _costs(self, sample: LaunchSample) -> CtaCosts:
        model = CtaCostModel if self.gpu.warp_size == WARP_SIZE else AmdCostModel
        return model(sample, self.gpu, self.resident_ctas, self.frame_bytes, self.shared_bytes, self.traffic).find()

    def microseconds(self, sample: LaunchSample, cycles: float) -> float:
        """The time of a launch that takes some cycles, as Nsight Compute's `gpu__time_duration`."""
        return cycles / launch_clock(self.gpu, sample, self.terms(sample), cycles) + self.gpu.timing.launch_us

    def turnover(self, sample: LaunchSample) -> float:
        """Cycles if CTAs end and start one by one, as `predict` has them; 0 if that takes too long to simulate."""
        if self.gpu.warp_size != WARP_SIZE:
            return 0.0
        return turnover_cycles(sample, self._costs(sample), self.controls, self.gpu, self.resident_ctas)

    def overlap(self, sample: LaunchSample) -> float | None:
        """Share of the cycles in which others work while a warp waits for global memory; None without such waits."""
        resident = min(self.resident_ctas, -(-sample.launch.ctas // self.gpu.multiprocessors))
        return overlap_sample(sample, self._costs(sample), self.controls, self.gpu, resident)[1][3]

    def unknown_rates(self, sample: LaunchSample) -> tuple[str, ...]:
        """Rates that no source states, without which times are not predicted."""
        return self._costs(sample).unknown_rates


@dataclass(frozen=True, slots=True)
class LaunchModel:
    """A sampled launch with what is needed to attribute its time."""

    sample: LaunchSample
    operations: SourceOperations
    target: Target
    resources: Resources
    occupancy: Occupancy
    multiprocessors: int | None
    time: TimeModel | None
    """None if times are not predicted: AMD, or paths that depend on missing inputs."""
    launch_time: TimeModel | None
    """The same with the device memory of this launch, as `predict` models it: the shares of causes were set without."""
    cycles: float | None
    visits: Mapping[int, int]
    """Step → times that the recorded CTA executed it; more than once in a loop."""
    unrolled_lines: frozenset[str]
    """Lines of loops that the machine code unrolls completely."""

    @property
    def chasing_lines(self) -> frozenset[str]:
        """Lines of loads in loops whose address is a loaded value of the previous iteration."""
        chains = self.operations.chained_loads
        chasing = {line for line, origins in chains.items() if line in origins}
        return frozenset(line for line, origins in chains.items() if line in chasing or origins & chasing)

    @property
    def is_amd(self) -> bool:
        """Whether it is AMD machine code."""
        return self.sample.loaded.initial_state is not None

    @property
    def steps(self) -> tuple[ProgramStep, ...]:
        """The kernel's instructions."""
        return self.sample.loaded.program.steps

    @property
    def counters(self) -> StepCounters:
        """Counters of the sampled CTAs."""
        return self.sample.counters

    @property
    def traffic(self) -> GlobalTraffic:
        """Global memory traffic of the sampled CTAs."""
        return self.sample.traffic

    def is_in_loop(self, step: ProgramStep) -> bool:
        """Whether a step was executed more than once, or belongs to an unrolled loop."""
        visits = self.visits.get(step.index, 0)
        return visits > 1 or (visits > 0 and step.source_place in self.unrolled_lines)

    def bytes_per_lane(self, steps: Sequence[ProgramStep]) -> float:
        """Bytes of a thread at a time, on average over accesses to global memory; 0 without any."""
        lanes = sum(self.traffic.active_lanes.get(step.index, 0) for step in steps)
        return sum(self.counters.bytes_requested[step.index] for step in steps) / lanes if lanes else 0.0

    def share_without_latency(self, **options: Any) -> float | None:
        """Share of the time that is saved if loads of loops had no latency beyond the transfer of their bytes."""
        loads = [step for step in self.steps if step.kind in ("global_load", "copy", "tensor_load")]
        return self.share_of(self.sample, hidden={step.index for step in loads if self.is_in_loop(step)}, **options)

    def share_of(self, sample: LaunchSample, **options: Any) -> float | None:
        """Share of the time that another sample saves; None if times are not predicted."""
        if self.time is None or not self.cycles:
            return None
        return max(0.0, 1 - self.time.score(sample, **options) / self.cycles)

    def instruction_share(self, steps: Collection[int]) -> float:
        """Share of executed instructions: the order of causes where times are not predicted."""
        executed = self.counters.warps_executed
        return sum(executed[index] for index in steps) / max(1, sum(executed))


def model_launch(
    candidate: RankingCandidate,
    disassemble: Disassemble | None,
    *,
    gpu: str | None = None,
    limit: int = 50_000_000,
    fetched: Callable[..., Mapping[str, float]] = fetched_bytes,
) -> LaunchModel:
    """The model of one launch.

    Args:
        gpu: product name; None selects the default product of the kernel's target.
        fetched: computes the traffic of device memory, or reads it from the result cache.

    Raises:
        UsageError: arguments are missing or wrong, or the grid is empty.
        CacheError: the kernel has no readable machine code.
    """
    artifact = candidate.artifact
    loaded, launch = match_launch(load_kernel(artifact, disassemble), candidate.request, candidate.constants)
    target = artifact.target or parse_target(loaded.program.target)
    limits = target if gpu is None else parse_target(gpu)
    resources = inspect_artifact(loaded.artifact, None, lambda kernel: kernel.resources).resources
    occupancy = occupancy_of(resources, limits, resources.registers.value)
    sample = sample_evenly(loaded, launch, limit, tracks_addresses=True)
    time = _time_model(loaded, sample, target, resources, occupancy, gpu, limit, fetched)
    product = product_of(limits, gpu)
    operations, visits = read_source_operations(artifact), Counter(sample.trace)
    return LaunchModel(
        sample=sample,
        operations=operations,
        target=target,
        resources=resources,
        occupancy=occupancy,
        multiprocessors=None if product is None else product.multiprocessors,
        time=time,
        launch_time=None if time is None else _with_launch_traffic(time, sample),
        cycles=None if time is None else time.score(sample),
        visits=visits,
        unrolled_lines=_unrolled_lines(operations, loaded.program.steps, visits),
    )


def bytes_read(model: LaunchModel) -> float:
    """Bytes that a launch reads from device memory; the distinct ones where what is fetched again is unknown."""
    fetched = {} if model.time is None else model.time.traffic.fetched
    return sum(fetched.values()) or sum(model.sample.distinct_bytes(model.traffic.sectors_read).values())


def _with_launch_traffic(time: TimeModel, sample: LaunchSample) -> TimeModel:
    """The model with the device memory of this launch, as `predict` has it; AMD's rates are for any launch."""
    if time.gpu.warp_size != WARP_SIZE:
        return time
    traffic, fetched = sample.traffic, time.traffic.fetched
    read, written = (sum(sample.distinct_bytes(x).values()) for x in (traffic.sectors_read, traffic.sectors_written))
    share = share_written_back(written, time.gpu.l2_bytes)
    gpu = with_launch_timing(time.gpu, sum(fetched.values()) or read, written * share)
    time = replace(time, gpu=gpu, traffic=SharedTraffic(fetched, share))
    clocked = at_clock(gpu, launch_clock(gpu, sample, time.terms(sample), time.score(sample)))
    return time if clocked is gpu else replace(time, gpu=clocked)


def _time_model(
    loaded: LoadedKernel,
    sample: LaunchSample,
    target: Target,
    resources: Resources,
    occupancy: Occupancy,
    gpu: str | None,
    limit: int,
    find_fetched: Callable[..., Mapping[str, float]],
) -> TimeModel | None:
    """What predicts the time; None if rates are unknown, or paths depend on missing inputs."""
    if not occupancy.blocks or sample.unfinished:
        return None
    controls: Sequence[ControlCode]
    frame_bytes = 0
    try:
        if loaded.cubin is None:
            gpu_model = amd_gpu_model(target, gpu)
            controls = read_waits(loaded.program.steps, loaded.program.target)
        else:
            gpu_model = gpu_model_of(target, gpu)
            controls = read_control_codes(read_function_code(loaded.cubin, loaded.program.name))
            frame_bytes = read_cubin(loaded.cubin, loaded.program.name).frame_bytes or 0
    except UsageError:
        return None
    fetched = find_fetched(
        sample, occupancy.blocks, gpu_model.multiprocessors, gpu_model.l2_bytes, limit, _MOST_SECTORS
    )
    time = TimeModel(
        controls, gpu_model, occupancy.blocks, frame_bytes, int(resources.shared.value or 0), SharedTraffic(fetched)
    )
    return None if time.unknown_rates(sample) else time


def without_work(sample: LaunchSample, fractions: Mapping[int, float]) -> LaunchSample:
    """A sample in which only a fraction of the executions of some steps is left.

    What follows a removed instruction uses its operands, so that its waits stay.
    """
    waits = [index for index in fractions if sample.loaded.program.steps[index].opcode.startswith(_WAITS)]
    fractions = {index: fraction for index, fraction in fractions.items() if index not in waits}
    counters = _copy_counters(sample.counters)
    for name in _SCALED_COUNTERS:
        per_step = getattr(counters, name)
        for index, fraction in fractions.items():
            per_step[index] = per_step[index] * fraction
    traffic = sample.traffic
    scaled: dict[str, Any] = {name: dict(getattr(traffic, name)) for name in _SCALED_TRAFFIC}
    for values in scaled.values():
        for index, fraction in fractions.items():
            if index in values:
                values[index] = values[index] * fraction
    visits: Counter[int] = Counter()
    trace = []
    for index in sample.trace:
        if index < 0:  # removed before
            trace.append(index)
            continue
        fraction = fractions.get(index, 1.0)
        visits[index] += 1
        is_left = fraction == 1.0 or int(visits[index] * fraction) > int((visits[index] - 1) * fraction)
        trace.append(index if is_left else ~index)
    return replace(sample, counters=counters, traffic=replace(traffic, **scaled), trace=tuple(trace))


def with_contiguous_accesses(sample: LaunchSample, steps: Collection[int]) -> LaunchSample:
    """A sample in which the lanes of some accesses request contiguous bytes."""
    traffic, bytes_requested = sample.traffic, sample.counters.bytes_requested
    sectors, ideal = sample.counters.sectors, sample.counters.sectors_ideal
    if sample.loaded.initial_state is not None:  # AMD counts cache lines
        sectors = [traffic.requested_sectors.get(index, 0) for index in range(len(sectors))]
        ideal = [min(-(-size // SECTOR), count) for size, count in zip(bytes_requested, sectors, strict=True)]
    requested, new = dict(traffic.requested_sectors), dict(traffic.new_sectors)
    lines, ranges = dict(traffic.requested_lines), dict(traffic.contiguous_ranges)
    # loads of one line share sectors: together they fetch at least what their lanes request
    needed, fetched = sum(ideal[index] for index in steps), sum(new.get(index, 0) for index in steps)
    fetched_fraction = min(1.0, needed / max(1, fetched))
    for index in steps:
        fraction = ideal[index] / max(1, sectors[index])
        requested[index] = int(requested.get(index, 0) * fraction)
        new[index] = int(fetched * fetched_fraction * ideal[index] / max(1, needed))
        lines[index] = min(lines.get(index, 0), max(1, bytes_requested[index] // 128))
        ranges[index] = max(1, min(int(ranges.get(index, 0) * fetched_fraction), lines[index]))
    return replace(
        sample,
        traffic=replace(
            traffic, requested_sectors=requested, new_sectors=new, requested_lines=lines, contiguous_ranges=ranges
        ),
    )


def without_conflicts(sample: LaunchSample, steps: Collection[int]) -> LaunchSample:
    """A sample in which some steps have no bank conflicts."""
    counters = _copy_counters(sample.counters)
    for index in steps:
        counters.wavefronts[index] = counters.wavefronts_ideal[index]
    return replace(sample, counters=counters)


def _copy_counters(counters: StepCounters) -> StepCounters:
    copied = StepCounters(counters.step_count, counters.step_limit)
    copied.add(counters, 0, None)  # type: ignore[arg-type]  # the step only names a limit that is not reached
    return copied


def _unrolled_lines(
    operations: SourceOperations, steps: Sequence[ProgramStep], visits: Mapping[int, int]
) -> frozenset[str]:
    """Lines of loops none of whose instructions is executed twice."""
    most_visits: dict[str, int] = {}
    for step in steps:
        if step.source_place is not None:
            most_visits[step.source_place] = max(most_visits.get(step.source_place, 0), visits.get(step.index, 0))
    return frozenset(
        line
        for lines in operations.loops
        if max((most_visits.get(line, 0) for line in lines), default=0) == 1
        for line in lines
    )


def roofline_cycles(model: LaunchModel, time: TimeModel, written_share: float = 1.0) -> float:
    """The larger of memory time and product time, in cycles; memory at its sustained rate.

    Source: Williams, Waterman and Patterson, Roofline: An Insightful Visual Performance Model (CACM 52, 2009).
    """
    rate = time.gpu.dram_bytes_per_cycle * time.gpu.timing.dram_share
    return max(_used_bytes(model, written_share) / rate, product_cycles(model, time))


def _used_bytes(model: LaunchModel, written_share: float) -> float:
    """Distinct bytes that the launch uses: sectors as far as lanes request their bytes, and a share of the written."""
    sample, traffic = model.sample, model.traffic
    scale = sample.launch.ctas / len(sample.ctas)
    sizes = {region.name: region.stop - region.start for region in traffic.regions}
    requested: defaultdict[tuple[str, bool], float] = defaultdict(float)
    for index, name in traffic.tensor_of_step.items():
        requested[name, "store" not in model.steps[index].kind] += model.counters.bytes_requested[index]
    total = 0.0
    for is_read, share, touched in ((True, 1.0, traffic.sectors_read), (False, written_share, traffic.sectors_written)):
        for name, count in touched.items():
            # several accesses may use a sector together
            used = min(1.0, requested[name, is_read] / (count * SECTOR)) if requested[name, is_read] else 1.0
            total += min(count * SECTOR * scale, sizes.get(name, count * SECTOR * scale)) * used * share
    return total


def product_cycles(model: LaunchModel, time: TimeModel) -> float:
    """Cycles of all dots at the peak of the matrix unit."""
    rates, sample = time.gpu.rates.matrix, model.sample
    cycles = 0.0
    for step in model.steps:
        if step.kind != "tensor" and not model.operations.has(step.source_place, "tt.dot"):
            continue
        narrow = _RATE_OF_LOADED.get(model.operations.wide_dots.get(step.source_place or "", ("", ""))[1])
        for kind, count in step.lane_flop:
            rate = rates.get(narrow or _RATE_OF.get(kind, "f16")) or rates.get("f16") or 1024
            cycles += count * model.counters.threads_executed[step.index] / 2 / rate
    return cycles * sample.launch.ctas / len(sample.ctas) / time.gpu.multiprocessors
