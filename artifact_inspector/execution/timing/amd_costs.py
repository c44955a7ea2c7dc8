"""Cycles of AMD's instructions on a compute unit of Vega 20 or CDNA. Not compared with a GPU.

Vector memory operations complete in order: each is a group, and `s_waitcnt vmcnt(n)` leaves n of them. The LDS and
scalar loads share a scoreboard, on which every `lgkmcnt` wait is complete.

**Source** AMD CDNA 1 to 4 white papers and ISA manuals (rates, waits); latencies are rounded from "Testing AMD's Giant
MI300X" (Chips and Cheese, 2024), and stand for those of its relatives.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from artifact_inspector.errors import UsageError
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.timing.control_codes import ControlCode
from artifact_inspector.execution.timing.costs import CtaCostModel, GpuModel
from artifact_inspector.execution.timing.latency_walk import SchedulingEffect, StepCost
from artifact_inspector.execution.timing.pipes import Pipe
from artifact_inspector.formats.amdgcn.operations import loads_left
from artifact_inspector.hardware.peaks import find_peaks
from artifact_inspector.hardware.products import product_of
from artifact_inspector.hardware.targets import Target
from artifact_inspector.hardware.timing import TimingParameters

WAVE = 64
_TIMING = TimingParameters(
    dram=800, l2=250, l1=120, shared=64, shuffle=64, special=16, arithmetic=4, fp64=8, constant=60,
    barrier=16, atomic=500, mma=32, l2_bytes=50.0, l2_request_bytes=64, dram_share=0.8, dram_read_share=0.8,
    cta_launch=100,
)  # fmt: skip
_MODELLED = ("gfx906", "gfx908", "gfx90a", "gfx942", "gfx950")
_INFINITY_CACHE = {"gfx942": 256 << 20, "gfx950": 256 << 20}
"""Bytes of the cache between L2 and device memory: CDNA 3 and 4 white papers."""
_ISSUE_CYCLES = 4
"""A SIMD of 16 lanes takes four cycles for a wave: CDNA 3 ISA, "Vector ALU"."""
_LDS_SCOREBOARD = 0
_SPECIAL = re.compile(r"v_(exp|log|rcp|rsq|sqrt|sin|cos)_")
_PRODUCT = re.compile(r"v_(mul_lo|mul_hi|mad_u64|mad_i64)_[ui](32|64)")
_RATES = {
    "fp16": "f16", "bf16": "f16", "xf32": "tf32", "tf32": "tf32", "fp32": "f32", "fp64": "f64", "fp8": "f8",
    "int8": "i8"
}  # fmt: skip


def amd_gpu_model(target: Target, gpu: str | None) -> GpuModel:
    """The GPU that launches are diagnosed for.

    Raises:
        UsageError: its rates are not known.
    """
    product, limits, rates = product_of(target, gpu), target.limits.multiprocessor, target.gpu.rates
    peaks = None if product is None else find_peaks(gpu or product.name) or find_peaks(product.name)
    if str(target.arch) not in _MODELLED or product is None or limits is None or rates is None or peaks is None:
        raise UsageError(
            f"Cannot predict times for {gpu or target}: of AMD's GPUs, only Vega 20 and CDNA are modelled.",
            "Use gfx90a, gfx942 or gfx950.",
        )
    return GpuModel(
        product.name,
        rates,
        product.multiprocessors,
        _INFINITY_CACHE.get(str(target.arch), product.l2_mib << 20),
        limits.shared,
        peaks.bandwidth / ((product.megahertz or 1700) * 1e6),
        _TIMING,
        WAVE,
    )


def read_waits(steps: Sequence[ProgramStep], target: str) -> tuple[ControlCode, ...]:
    """What each instruction waits for and holds, as control codes."""
    controls = []
    for step in steps:
        waits_for_lds = step.opcode.startswith("s_waitcnt") and "lgkmcnt" in step.text
        holds_lds = step.opcode.startswith(("ds_", "s_load", "s_buffer_load"))
        stall = 1 if step.opcode.startswith(("s_waitcnt", "s_nop")) else _ISSUE_CYCLES
        awaited = (_LDS_SCOREBOARD,) if waits_for_lds else ()
        controls.append(ControlCode(stall, _LDS_SCOREBOARD if holds_lds else None, None, awaited))
    return tuple(controls)


class AmdCostModel(CtaCostModel):
    """The costs of a CTA by AMD's rules."""

    def _step_cost(self, step: ProgramStep, visits: int) -> StepCost:
        opcode, timing, rates = step.opcode, self.timing, self.chip.rates
        waves = self.counters.warps_executed[step.index] / self.sampled_ctas / visits
        if step.kind == "tensor":
            return StepCost("tensor", waves * self._matrix_cycles(step), timing.mma)
        if step.kind in ("local_load", "local_store"):
            return self._global_cost(step, Pipe.LOCAL, waves, visits, SchedulingEffect.STARTS_GROUP)
        if opcode.startswith(("global_", "buffer_", "flat_", "scratch_")):
            return self._global_cost(step, Pipe.GLOBAL, waves, visits, SchedulingEffect.STARTS_GROUP)
        if opcode.startswith(("ds_bpermute", "ds_permute", "ds_swizzle")):
            return StepCost("lsu", waves * 2, timing.shuffle)
        if opcode.startswith("ds_"):
            wavefronts = self.counters.wavefronts[step.index] / self.sampled_ctas / visits
            return StepCost("lsu", wavefronts * self._wavefront_cycles, timing.shared)
        if opcode.startswith("s_waitcnt"):
            left = loads_left(opcode, step.text, self.sample.loaded.program.target)
            if left is not None:
                return StepCost(None, 0.0, 0.0, effect=SchedulingEffect.WAITS_FOR_COPIES, groups_left=left)
        if opcode.startswith("s_barrier"):
            return StepCost(None, 0.0, 0.0, effect=SchedulingEffect.CTA_BARRIER)
        if not opcode.startswith("v_"):
            return StepCost(None, 0.0, timing.constant if opcode.startswith("s_load") else 0.0)
        if _SPECIAL.match(opcode):
            return StepCost("alu", waves * WAVE / (rates.special or 16), timing.special)
        lanes = rates.multiply if _PRODUCT.match(opcode) else rates.integer
        return StepCost("alu", waves * WAVE / lanes, timing.arithmetic)

    def _matrix_cycles(self, step: ProgramStep) -> float:
        """Cycles of a wave's matrix product."""
        cycles = 0.0
        for kind, flop in step.lane_flop:
            rate = self.chip.rates.matrix.get(_RATES.get(kind, kind))
            if rate is None:
                self.unknown_rates[f"the rate of {kind} matrix products"] = None
            cycles += flop * WAVE / 2 / (rate or 1)
        return cycles or float(_ISSUE_CYCLES)
