"""The cycles for which each instruction of a sampled launch occupies the units of a multiprocessor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from artifact_inspector.execution.interpreter.footprints import SECTOR
from artifact_inspector.execution.interpreter.program import Step
from artifact_inspector.execution.timing.pipes import Pipe, moved_bytes, pipe_of, what_it_does
from artifact_inspector.execution.timing.sampling import LINE, Sample
from artifact_inspector.execution.timing.walking import Cost, Does
from artifact_inspector.hardware.gpu import Rates
from artifact_inspector.hardware.timing import Timing

WARP = 32


@dataclass(frozen=True, slots=True)
class Chip:
    """The properties of a GPU that a ranking needs."""

    name: str
    rates: Rates
    multiprocessors: int
    l2_bytes: int
    l1_bytes: int
    """L1 cache and shared memory of a multiprocessor together."""
    dram_bytes: float
    """Device memory bandwidth in bytes per cycle, by the data sheet."""
    timing: Timing


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of a CTA."""

    steps: Mapping[int, Cost]
    """Step → cost of one visit by all warps of the CTA."""
    others: Mapping[str, float]
    """Unit → cycles of instructions that are not on the recorded trace."""
    dram_bytes: float
    """Fewest bytes that the launch moves between device memory and L2."""


_LANES: Mapping[Pipe, str] = {
    Pipe.ALU: "alu", Pipe.FMA: "fma", Pipe.MULTIPLY: "fma", Pipe.HALF: "fma", Pipe.XU: "xu",
    Pipe.DOUBLE: "double",
}  # fmt: skip
_MATRIX: Mapping[str, str] = {
    "fp16": "f16", "bf16": "f16", "tf32": "tf32", "fp8": "f8", "int8": "i8", "fp64": "f64", "fp4": "f4",
}  # fmt: skip


def find_costs(sample: Sample, chip: Chip, blocks: int, frame_bytes: int, shared_bytes: int) -> Costs:
    """The costs of a CTA of a sampled launch.

    Args:
        sample: of the launch.
        chip: the GPU.
        blocks: resident CTAs per multiprocessor.
        frame_bytes: local memory per thread.
        shared_bytes: shared memory per CTA.
    """
    return _Costs(sample, chip, blocks, frame_bytes, shared_bytes).costs()


class _Costs:
    def __init__(self, sample: Sample, chip: Chip, blocks: int, frame: int, shared: int) -> None:
        self.sample, self.chip, self.timing = sample, chip, chip.timing
        self.counts, self.traffic = sample.counts, sample.traffic
        self.number = len(sample.ctas)
        self.visits = Counter(sample.way)
        ctas = sample.launch.ctas
        active = min(ctas, chip.multiprocessors)
        self.l2_rate = min(self.timing.l2_bytes * chip.multiprocessors / active, self.timing.fill_bytes)
        self.dram_rate = chip.dram_bytes * self.timing.dram_share / active
        self.misses, self.dram_bytes = self._misses(ctas)
        held = frame * sample.loaded.threads * min(blocks, -(-ctas // chip.multiprocessors))
        left = max(chip.l1_bytes - shared * blocks, 0)
        self.local_l2 = max(0.0, 1 - left / held) if held else 0.0
        whole = held * chip.multiprocessors
        self.local_dram = max(0.0, 1 - chip.l2_bytes / 2 / whole) if whole else 0.0

    def _misses(self, ctas: int) -> tuple[dict[tuple[str, bool], float], float]:
        """(Tensor, whether read) → distinct share of requested bytes; and the total of distinct bytes."""
        found, total = {}, 0.0
        sizes = {region.name: region.stop - region.start for region in self.traffic.regions}
        for reads, touched in ((True, self.traffic.read), (False, self.traffic.written)):
            for name, sectors in touched.items():
                asked = sectors * SECTOR / self.number * ctas
                if asked:
                    distinct = min(asked, sizes[name])
                    found[name, reads] = distinct / asked
                    total += distinct
        return found, total

    def costs(self) -> Costs:
        steps: dict[int, Cost] = {}
        others: Counter[str] = Counter()
        program = self.sample.loaded.program
        for step in program.steps:
            if not self.counts.executed[step.index]:
                continue
            visits = self.visits.get(step.index, 0)
            cost = self._cost(step, max(visits, 1))
            steps[step.index] = cost
            if not visits and cost.unit is not None:
                others.update({cost.unit: cost.busy, "l2": cost.l2, "dram": cost.dram})
                others.update({"lsu": cost.reads})
        return Costs(steps, others, self.dram_bytes)

    def _cost(self, step: Step, visits: int) -> Cost:
        pipe, timing = pipe_of(step), self.timing
        each = self.counts.executed[step.index] / self.number / visits
        does, left = what_it_does(step, pipe)
        if pipe in _LANES:
            delay = {Pipe.XU: timing.special, Pipe.DOUBLE: timing.double}.get(pipe, timing.arithmetic)
            return Cost(_LANES[pipe], each * WARP / self._lanes(pipe), delay, does=does)
        if pipe is Pipe.TENSOR:
            delay = timing.warpgroup if "GMMA" in step.opcode else timing.tensor
            waves = self.counts.wavefronts[step.index] / self.number / visits
            return Cost("tensor", each * self._product(step), delay, does=does, reads=waves * self._wave)
        if pipe is Pipe.SHARED:
            waves = self.counts.wavefronts[step.index] / self.number / visits
            return Cost("lsu", waves * self._wave, timing.shared, does=does)
        if pipe is Pipe.SHUFFLE:
            return Cost("lsu", each, timing.shuffle, does=does)
        if pipe is Pipe.LOCAL:
            return self._local(step, each)
        if pipe in (Pipe.GLOBAL, Pipe.COPY, Pipe.BULK):
            return self._global(step, pipe, each, visits, does)
        delay = timing.constant if pipe is Pipe.CONSTANT else timing.arithmetic
        return Cost(None, 0.0, delay, does=does, left=left)

    @property
    def _wave(self) -> float:
        """Cycles of a shared memory wavefront."""
        return 128 / (self.chip.rates.shared_bytes or 128)

    def _lanes(self, pipe: Pipe) -> float:
        rates = self.chip.rates
        found = {
            Pipe.ALU: rates.integer, Pipe.FMA: rates.fma32, Pipe.MULTIPLY: rates.multiply,
            Pipe.HALF: (rates.fma16 or 2 * rates.fma32) // 2, Pipe.XU: rates.special,
            Pipe.DOUBLE: rates.fma64,
        }[pipe]  # fmt: skip
        return found or 16

    def _product(self, step: Step) -> float:
        """Cycles of one warp's matrix product."""
        flop = sum(count for _, count in step.work) * WARP
        if not flop:
            return 1.0
        rates = self.chip.rates.matrix
        rate = rates.get(_MATRIX.get(step.work[0][0], "f16")) or rates.get("f16") or 1024
        if "GMMA" not in step.opcode and self.sample.loaded.program.arch == 90:
            return flop / 2 / rate / self.timing.mma_share
        return flop / 2 / rate

    def _local(self, step: Step, each: float) -> Cost:
        """A spill, which is written through, or a reload, which hits L1 as far as the resident frames fit."""
        moved = moved_bytes(step)
        asked = each * WARP * moved * (1.0 if step.kind == "local_store" else self.local_l2)
        timing = self.timing
        delay = timing.l1 + self.local_l2 * (
            timing.l2 + self.local_dram * (timing.dram - timing.l2) - timing.l1
        )
        return Cost(
            "lsu",
            each * max(1.0, moved / 4),
            delay,
            asked / self.l2_rate,
            asked * self.local_dram / self.dram_rate,
        )

    def _global(self, step: Step, pipe: Pipe, each: float, visits: int, does: Does) -> Cost:
        at, traffic, timing = step.index, self.traffic, self.timing
        stores = step.kind in ("global_store", "tensor_store", "global_reduction", "global_atomic")
        per = self.number * visits
        asked, lines = traffic.asked.get(at, 0) / per, traffic.lines.get(at, 0) / per
        fresh, moved = traffic.fresh.get(at, 0) / per, self.counts.bytes[at] / per
        runs = traffic.runs.get(at, 0) / per
        if at in self.counts.why and not asked:  # unknown addresses: assume contiguous ones
            moved = each * WARP * moved_bytes(step)
            asked = fresh = moved / SECTOR
            lines, runs = moved / LINE, 1.0
        if pipe is Pipe.BULK:
            lines = moved / LINE
        past_l1 = stores or pipe is Pipe.BULK or "BYPASS" in step.opcode
        new = fresh / asked if asked else 0.0
        misses = 1.0 if past_l1 else new
        share = self.misses.get((traffic.whose.get(at, ""), not stores), 1.0)
        busy = max(lines, moved / LINE)
        if pipe is Pipe.COPY:
            busy = max(busy, self.counts.wavefronts[at] / per * self._wave)
        l2 = misses * max(asked * SECTOR, lines * timing.l2_request)
        dram = share * new * (asked * SECTOR + timing.dram_run * runs)
        if step.kind in ("global_reduction", "global_atomic"):
            delay: float = timing.atomic
        else:
            delay = timing.l1 + misses * (timing.l2 + new * share * (timing.dram - timing.l2) - timing.l1)
        if pipe is Pipe.BULK:
            delay += timing.bulk
        return Cost("lsu", busy, delay, l2 / self.l2_rate, dram / self.dram_rate, does)
