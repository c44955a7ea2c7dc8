"""The cycles for which each instruction of a sampled launch occupies the units of a multiprocessor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from artifact_inspector.execution.interpreter.footprints import PAIR, SECTOR
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.l2_cache import WRITE_SHARE
from artifact_inspector.execution.launch_counters import local_bytes
from artifact_inspector.execution.timing.latency_walk import CtaWalk, SchedulingEffect, StepCost
from artifact_inspector.execution.timing.pipes import Pipe, bytes_per_lane, pipe_of, wait_effect
from artifact_inspector.execution.timing.sampling import LINE, LaunchSample
from artifact_inspector.hardware.gpu import Rates
from artifact_inspector.hardware.products import matrix_rate
from artifact_inspector.hardware.timing import TimingParameters

WARP_SIZE = 32


@dataclass(frozen=True, slots=True)
class GpuModel:
    """The properties of a GPU that a ranking needs."""

    name: str
    rates: Rates
    multiprocessors: int
    l2_bytes: int
    l1_bytes: int
    """L1 cache and shared memory of a multiprocessor together."""
    dram_bytes_per_cycle: float
    """Device memory bandwidth in bytes per cycle, by the data sheet."""
    timing: TimingParameters
    warp_size: int = WARP_SIZE


@dataclass(frozen=True, slots=True)
class SharedTraffic:
    """What is known of a launch beyond its sampled CTAs, if all of them were simulated."""

    fetched: Mapping[str, float]
    """Tensor → bytes of it that are fetched from device memory; others are fetched once."""
    written_share: float = 1.0
    """Share of the written bytes that leave the L2 before the launch ends."""
    filled: Mapping[str, float] = field(default_factory=dict)
    """Tensor → bytes that the L2 reads to complete sectors that were written in part."""
    l2_shares: Mapping[str, float] = field(default_factory=dict)
    """Tensor → share of the requests that the L2 delivers by themselves."""
    served_shares: Mapping[str, float] = field(default_factory=dict)
    """Tensor → share of the requests that the L2 serves, as those of a GPC are merged."""
    l1_shares: Mapping[str, float] = field(default_factory=dict)
    """Tensor → share of the requests that miss an L1 which keeps what the CTAs of its multiprocessor read."""


@dataclass(frozen=True, slots=True)
class CtaCosts:
    """The costs of a CTA."""

    step_costs: Mapping[int, StepCost]
    """Step → cost of one visit by all warps of the CTA."""
    off_trace_cycles: Mapping[str, float]
    """Unit → cycles of instructions that are not on the recorded trace."""
    fabric_cycles: float = 0.0
    """For which a CTA's data pass between the halves of the L2."""
    busy_shares: Mapping[str, float] = field(default_factory=dict)
    """Unit → share of its cycles for which its counters call it busy. The others only delay."""
    unknown_rates: tuple[str, ...] = ()
    """Matrix products whose rate no source states, which make the costs incomplete."""
    walks: dict[int, CtaWalk] = field(default_factory=dict, init=False, compare=False, repr=False)
    """Number of CTAs → their walk in lockstep; that of a persistent CTA has millions of steps."""


_PIPE_UNITS: Mapping[Pipe, str] = {
    Pipe.ALU: "alu", Pipe.FMA: "fma", Pipe.MULTIPLY: "fma", Pipe.HALF: "fma", Pipe.XU: "xu",
    Pipe.DOUBLE: "double",
}  # fmt: skip
_MATRIX_RATES: Mapping[str, str] = {
    "f16": "f16", "bf16": "f16", "tf32": "tf32", "e4m3": "f8", "e5m2": "f8", "s8": "i8", "u8": "i8", "f64": "f64",
    "e2m1": "f4", "e2m3": "f8", "e3m2": "f8",
}  # fmt: skip
"""Type of the operands → the operand type of its rate."""
COPY_PIPE_SHARE = 0.25
"""Share of a copy's cycles (writes of the banks) for which the L1's data pipe is busy, where the copy goes past the L1.
Measured on an H200: `l1tex__data_pipe_lsu_wavefronts` of 12 matrix products beyond their other wavefronts."""
_STORES = ("global_store", "tensor_store", "global_reduction", "global_atomic")


def _is_past_l1_copy(step: ProgramStep) -> bool:
    return "BYPASS" in step.opcode


class CtaCostModel:
    """The costs of a CTA, by NVIDIA's rules; `frame` is local bytes per thread, `shared` is bytes per CTA."""

    def __init__(
        self,
        sample: LaunchSample,
        chip: GpuModel,
        resident_ctas: int,
        frame: int,
        shared: int,
        shared_traffic: SharedTraffic = SharedTraffic({}),
    ) -> None:
        self.shared_traffic = shared_traffic
        self.sample, self.chip, self.timing = sample, chip, chip.timing
        self.counters, self.traffic = sample.counters, sample.traffic
        self.sampled_ctas = len(sample.ctas)
        self.visits = Counter(index for index in sample.trace if index >= 0)
        self.unknown_rates: dict[str, None] = {}
        ctas = sample.launch.ctas
        active = min(ctas, chip.multiprocessors)
        self.l2_rate = min(self.timing.l2_bytes * chip.multiprocessors / active, self.timing.l2_fill_bytes)
        self.dram_rate = chip.dram_bytes_per_cycle * self.timing.dram_share / active
        self.dram_share_of = self._fetched_shares(ctas, shared_traffic.fetched)
        resident = min(resident_ctas, -(-ctas // chip.multiprocessors))
        resident_frame_bytes = frame * sample.loaded.threads * resident
        l1_left_bytes = max(chip.l1_bytes - shared * resident, 0)
        resident_sectors = sum(
            sectors * max(1.0, resident * shared_traffic.l1_shares.get(name, 1.0))
            for name, sectors in self.traffic.sectors_read.items()
        )
        self.l1_keeps_reads = resident_sectors * SECTOR / self.sampled_ctas <= l1_left_bytes
        self.second_passes = frozenset() if self.l1_keeps_reads else self._second_passes()
        self.local_l1_miss_share = max(0.0, 1 - l1_left_bytes / resident_frame_bytes) if resident_frame_bytes else 0.0
        gpu_frame_bytes = resident_frame_bytes * chip.multiprocessors
        held_bytes = WRITE_SHARE * chip.l2_bytes
        self.local_l2_miss_share = max(0.0, 1 - held_bytes / gpu_frame_bytes) if gpu_frame_bytes else 0.0

    def _fetched_shares(self, ctas: int, fetched: Mapping[str, float]) -> dict[tuple[str, bool], float]:
        """(Tensor, whether read) → share of requested bytes that device memory transfers."""
        shares = {}
        sizes = {region.name: region.stop - region.start for region in self.traffic.regions}
        for reads, touched in ((True, self.traffic.sectors_read), (False, self.traffic.sectors_written)):
            for name, sectors in touched.items():
                requested_bytes = sectors * SECTOR / self.sampled_ctas * ctas
                if requested_bytes:
                    if reads and name in fetched:  # in pairs of sectors
                        transferred = min(requested_bytes * PAIR / SECTOR, fetched[name])
                    else:
                        transferred = min(requested_bytes, sizes[name])
                        if not reads:
                            transferred *= self.shared_traffic.written_share
                            transferred += self.shared_traffic.filled.get(name, 0.0)
                    shares[name, reads] = transferred / requested_bytes
        return shares

    def _second_passes(self) -> frozenset[int]:
        """Steps that begin to read after their tensor was read to its end: only sectors that were read before."""
        first_visits, read_until = dict[int, int](), dict[str, int]()
        for position, index in enumerate(self.sample.trace):
            first_visits.setdefault(index, position)
            if self.traffic.new_sectors.get(index):
                read_until[self.traffic.tensor_of_step.get(index, "")] = position
        return frozenset(
            index
            for index, tensor in self.traffic.tensor_of_step.items()
            if not self.traffic.new_sectors.get(index) and first_visits.get(index, -1) > read_until.get(tensor, -1)
        )

    def find(self) -> CtaCosts:
        """The costs of each executed step."""
        steps: dict[int, StepCost] = {}
        others: Counter[str] = Counter()
        program = self.sample.loaded.program
        for step in program.steps:
            if not self.counters.warps_executed[step.index]:
                continue
            visits = self.visits.get(step.index, 0)
            cost = self._step_cost(step, max(visits, 1))
            steps[step.index] = cost
            if not visits and cost.unit is not None:
                others.update({cost.unit: cost.busy_cycles, "l2": cost.l2_cycles, "dram": cost.dram_cycles})
                others.update({"lsu": cost.shared_read_cycles})
        return CtaCosts(steps, others, self._fabric_cycles(), self._busy_shares(steps), tuple(self.unknown_rates))

    def _busy_shares(self, costs: Mapping[int, StepCost]) -> dict[str, float]:
        """Of the L2, as requests are merged, and of the L1's data pipe, which copies past the L1 hardly use."""
        l2 = served = lsu = counted = 0.0
        for step in self.sample.loaded.program.steps:
            if (cost := costs.get(step.index)) is None:
                continue
            visits = self.visits.get(step.index, 1)
            l2 += cost.l2_cycles * visits
            served += cost.l2_cycles * visits * self._served_share(step)
            busy = cost.busy_cycles if cost.unit == "lsu" else 0.0
            lsu += (busy + cost.shared_read_cycles) * visits
            counted += (busy * (COPY_PIPE_SHARE if _is_past_l1_copy(step) else 1.0) + cost.shared_read_cycles) * visits
        return {"l2": served / l2 if l2 else 1.0, "lsu": counted / lsu if lsu else 1.0}

    def _served_share(self, step: ProgramStep) -> float:
        """Of the requests that the L2 delivers to multiprocessors."""
        tensor, shared = self.traffic.tensor_of_step.get(step.index, ""), self.shared_traffic
        delivered = shared.l2_shares.get(tensor, 1.0)
        return 1.0 if step.kind in _STORES else min(1.0, shared.served_shares.get(tensor, 1.0) / delivered)

    def _fabric_cycles(self) -> float:
        """Half of what is written or fetched crosses; of what many CTAs read, each half gets a copy."""
        if not self.timing.fabric_bytes:
            return 0.0
        steps, traffic = self.sample.loaded.program.steps, self.traffic
        stores = [step.index for step in steps if step.kind in _STORES]
        sectors = float(
            sum(traffic.requested_sectors.get(at, 0) - traffic.completed_sectors.get(at, 0) for at in stores)
        )
        fetched_share = {"local_store": 1.0, "local_load": self.local_l1_miss_share * self.local_l2_miss_share}
        sectors += sum(local_bytes(self.counters, step) / SECTOR * fetched_share.get(step.kind, 0.0) for step in steps)
        for name, requested in self.traffic.sectors_read.items():
            served = requested * self.shared_traffic.served_shares.get(name, 1.0)
            share = self.dram_share_of.get((name, True), 0.0) * requested / served
            sectors += 2 * served * share * (1 - 0.5 ** (1 / share)) if share else 0.0
        active = min(self.sample.launch.ctas, self.chip.multiprocessors)
        return sectors * SECTOR / self.sampled_ctas / self.timing.fabric_bytes * active / self.chip.multiprocessors

    def _step_cost(self, step: ProgramStep, visits: int) -> StepCost:
        pipe, timing = pipe_of(step), self.timing
        warps_per_visit = self.counters.warps_executed[step.index] / self.sampled_ctas / visits
        effect, groups_left = wait_effect(step, pipe)
        if pipe in _PIPE_UNITS:
            delay = {Pipe.XU: timing.special, Pipe.DOUBLE: timing.fp64}.get(pipe, timing.arithmetic)
            return StepCost(
                _PIPE_UNITS[pipe], warps_per_visit * WARP_SIZE / self._pipe_lanes(pipe), delay, effect=effect
            )
        if pipe is Pipe.TENSOR:
            delay = timing.warpgroup if "GMMA" in step.opcode else timing.mma
            wavefronts = self.counters.wavefronts[step.index] / self.sampled_ctas / visits
            return StepCost(
                "tensor",
                warps_per_visit * self._product_cycles(step),
                delay,
                effect=effect,
                shared_read_cycles=wavefronts * self._wavefront_cycles,
            )
        if pipe is Pipe.SHARED:
            wavefronts = self.counters.wavefronts[step.index] / self.sampled_ctas / visits
            return StepCost("lsu", wavefronts * self._wavefront_cycles, timing.shared, effect=effect)
        if pipe is Pipe.SHUFFLE:
            return StepCost("lsu", warps_per_visit, timing.shuffle, effect=effect)
        if pipe is Pipe.LOCAL:
            return self._local_cost(step, warps_per_visit)
        if pipe in (Pipe.GLOBAL, Pipe.COPY, Pipe.BULK):
            return self._global_cost(step, pipe, warps_per_visit, visits, effect)
        delay = timing.constant if pipe is Pipe.CONSTANT else timing.arithmetic
        return StepCost(None, 0.0, delay, effect=effect, groups_left=groups_left)

    @property
    def _wavefront_cycles(self) -> float:
        """Cycles of a shared memory wavefront."""
        return 128 / (self.chip.rates.shared_bytes or 128)

    def _pipe_lanes(self, pipe: Pipe) -> float:
        rates = self.chip.rates
        lane_count = {
            Pipe.ALU: rates.integer, Pipe.FMA: rates.fma32, Pipe.MULTIPLY: rates.multiply,
            Pipe.HALF: (rates.fma16 or 2 * rates.fma32) // 2, Pipe.XU: rates.special,
            Pipe.DOUBLE: rates.fma64,
        }[pipe]  # fmt: skip
        return lane_count or 16

    def _product_cycles(self, step: ProgramStep) -> float:
        """Cycles of one warp's matrix product."""
        flop = sum(count for _, count in step.lane_flop) * WARP_SIZE
        if not flop:
            return 1.0
        if step.matrix_types is None:  # `HFMA2.MMA`
            return flop / 2 / (self.chip.rates.fma16 or 2 * self.chip.rates.fma32)
        operand, accumulator = step.matrix_types
        rate = matrix_rate(self.chip.rates, self.chip.name, _MATRIX_RATES.get(operand, operand), accumulator)
        if rate is None:
            self.unknown_rates[f"the rate of {operand} matrix products with {accumulator} sums"] = None
            return 1.0
        if "GMMA" not in step.opcode and self.sample.loaded.program.arch_number == 90:
            return flop / 2 / rate / self.timing.warp_mma_share
        return flop / 2 / rate

    def _local_cost(self, step: ProgramStep, warps_per_visit: float) -> StepCost:
        """A spill, which is written through, or a reload, which hits L1 as far as the resident frames fit."""
        lane_bytes = bytes_per_lane(step)
        requested_bytes = (
            warps_per_visit * WARP_SIZE * lane_bytes * (1.0 if step.kind == "local_store" else self.local_l1_miss_share)
        )
        timing = self.timing
        delay = timing.l1 + self.local_l1_miss_share * (
            timing.l2 + self.local_l2_miss_share * (timing.dram - timing.l2) - timing.l1
        )
        return StepCost(
            "lsu",
            warps_per_visit * max(1.0, lane_bytes / 4),
            delay,
            requested_bytes / self.l2_rate,
            requested_bytes * self.local_l2_miss_share / self.dram_rate,
            is_global=True,
        )

    def _global_cost(
        self, step: ProgramStep, pipe: Pipe, warps_per_visit: float, visits: int, effect: SchedulingEffect
    ) -> StepCost:
        step_index, traffic, timing = step.index, self.traffic, self.timing
        is_store = step.kind in _STORES
        sample_visits = self.sampled_ctas * visits
        requested_sectors, lines = (
            traffic.requested_sectors.get(step_index, 0) / sample_visits,
            traffic.requested_lines.get(step_index, 0) / sample_visits,
        )
        new_sectors, bytes_moved = (
            traffic.new_sectors.get(step_index, 0) / sample_visits,
            self.counters.bytes_requested[step_index] / sample_visits,
        )
        contiguous_ranges = traffic.contiguous_ranges.get(step_index, 0) / sample_visits
        # all warps wait for the last sector, also for one that another warp of the CTA fetches already
        missing = traffic.missing_accesses.get(step_index, 0) / max(1, traffic.accesses.get(step_index, 0))
        if (
            step_index in self.counters.missing_inputs and not requested_sectors
        ):  # unknown addresses: assume contiguous ones
            bytes_moved = warps_per_visit * self.chip.warp_size * bytes_per_lane(step)
            requested_sectors = new_sectors = bytes_moved / SECTOR
            lines, contiguous_ranges, missing = bytes_moved / LINE, 1.0, 1.0
        if pipe is Pipe.BULK:
            lines = bytes_moved / LINE
        past_l1 = is_store or pipe is Pipe.BULK or _is_past_l1_copy(step)
        new_share = new_sectors / requested_sectors if requested_sectors else 0.0
        l1_miss_share = 1.0 if past_l1 or step_index in self.second_passes else new_share
        tensor = traffic.tensor_of_step.get(step_index, "")
        dram_share = self.dram_share_of.get((tensor, not is_store), 1.0)
        busy = max(lines, bytes_moved / LINE)
        if pipe is Pipe.COPY:
            wavefronts = self.counters.wavefronts[step_index] / sample_visits * self._wavefront_cycles
            busy = wavefronts / 2 if _is_past_l1_copy(step) else max(busy, wavefronts)
        l2_share = 1.0 if is_store else self.shared_traffic.l2_shares.get(tensor, 1.0)
        if self.l1_keeps_reads and not past_l1:
            l2_share = min(l2_share, self.shared_traffic.l1_shares.get(tensor, 1.0))
        l2 = l2_share * l1_miss_share * max(requested_sectors * SECTOR, lines * timing.l2_request_bytes)
        dram = dram_share * new_share * (requested_sectors * SECTOR + timing.dram_run_bytes * contiguous_ranges)
        if step.kind in ("global_reduction", "global_atomic"):
            delay: float = timing.atomic
        else:
            misses_l1 = 1.0 if l1_miss_share == 1.0 else missing
            delay = timing.l1 + misses_l1 * (
                timing.l2 + missing * min(1.0, dram_share) * (timing.dram - timing.l2) - timing.l1
            )
        if pipe is Pipe.BULK:
            delay += timing.tma
        return StepCost("lsu", busy, delay, l2 / self.l2_rate, dram / self.dram_rate, effect, is_global=True)
