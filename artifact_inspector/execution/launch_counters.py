"""Counters of a whole launch, as defined by Nsight Compute.

| counter | Nsight Compute |
|---|---|
| `instructions` | `smsp__inst_executed.sum` |
| `tensor_instructions` | `sm__inst_executed_pipe_tensor.sum` |
| `global_load_instructions`, `global_store_instructions` | `smsp__inst_executed_op_global_ld`, `_st` |
| `async_copy_instructions` | `smsp__inst_executed_op_ldgsts` |
| `shared_load_instructions`, `shared_store_instructions` | `smsp__inst_executed_op_shared_ld`, `_st` |
| `matrix_load_instructions` | `smsp__inst_executed_op_ldsm` |
| `global_load_sectors`, `global_store_sectors` | `l1tex__t_sectors_pipe_lsu_mem_global_op_ld`, `_st` |
| `shared_wavefronts`, `shared_wavefronts_ideal` | `memory_l1_wavefronts_shared`, `_ideal` |
| `dram_bytes_read`, `dram_bytes_written` | `dram__bytes_read.sum`, `dram__bytes_write.sum` |
| `local_load_sectors`, `local_store_sectors` | `l1tex__t_sectors_pipe_lsu_mem_local_op_ld`, `_st` |

**Source** Nsight Compute documentation, "Metrics Reference".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import PAIR, SECTOR
from artifact_inspector.execution.interpreter.program import GLOBAL_KINDS, ProgramStep, StepKind
from artifact_inspector.execution.l2_cache import USABLE_L2_SHARE, L2Estimate
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.files.binaries import read_cubin


@dataclass(frozen=True, slots=True)
class CounterRange:
    """A range of numbers; both ends are equal if the number is known."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Counters of a whole launch; None if one depends on a missing input."""

    instructions: int | None
    """Instructions that warps execute, whether or not their guard holds."""
    tensor_instructions: int | None
    """Instructions of the tensor pipe: matrix products, and on Hopper `HFMA2.MMA`."""
    global_load_instructions: int | None
    global_store_instructions: int | None
    global_atomic_instructions: int | None
    """Atomics and reductions."""
    async_copy_instructions: int | None
    """`LDGSTS`."""
    tensor_copy_instructions: int | None
    """Copies by the tensor memory accelerator, in both directions, of warps whose guard holds."""
    shared_load_instructions: int | None
    """`LDS`."""
    shared_store_instructions: int | None
    """`STS`."""
    matrix_load_instructions: int | None
    """`LDSM`."""
    matrix_store_instructions: int | None
    """`STSM`."""
    shared_atomic_instructions: int | None
    local_load_instructions: int | None
    local_store_instructions: int | None
    local_load_sectors: int | None
    """32-byte sectors of spilled registers that warps load; those that L1 lacks come from L2."""
    local_store_sectors: int | None
    """The same for stores; all of them go through to L2."""
    global_load_sectors: int | None
    """32-byte sectors requested by loads and asynchronous copies."""
    global_load_sectors_ideal: int | None
    """The same if the bytes of the lanes were contiguous."""
    global_store_sectors: int | None
    global_store_sectors_ideal: int | None
    global_atomic_sectors: int | None
    cache_lines: int | None
    """L1 cache lines requested by waves on AMD, whose sectors are null."""
    shared_wavefronts: int | None
    """Passes over shared memory, of all accesses to it."""
    shared_wavefronts_ideal: int | None
    """Without bank conflicts."""
    unique_bytes_read: int | None
    """Distinct bytes of global memory that are read."""
    unique_bytes_written: int | None
    dram_bytes_read: CounterRange | None
    """Bytes fetched from device memory into a cold L2."""
    dram_bytes_written: CounterRange | None
    """Bytes of the launch that L2 writes to device memory before it ends."""
    flop: Mapping[str, int] | None
    """Type → floating-point operations of lanes whose guard holds; a multiply-add counts as two."""
    barriers: int | None
    """`BAR` instructions of warps."""
    divergent_branches: int | None
    """Branches of warps whose lanes diverged."""
    masked_lanes: int | None
    """Inactive lanes of global loads, stores and copies of which another lane of the CTA is active."""
    memory_lanes: int | None
    """All lanes of these, active or not."""

    @property
    def total_flop(self) -> int | None:
        """Total of all types."""
        return None if self.flop is None else sum(self.flop.values())

    @property
    def intensity(self) -> float | None:
        """FLOP per distinct byte that is read or written."""
        bytes_read, bytes_written, total = self.unique_bytes_read, self.unique_bytes_written, self.total_flop
        if total is None or bytes_read is None or bytes_written is None or not bytes_read + bytes_written:
            return None
        return total / (bytes_read + bytes_written)


LOCAL_KINDS: tuple[StepKind, ...] = ("local_load", "local_store")
"""Kinds of steps that access local memory, where registers are spilled."""
COPY_KINDS: tuple[StepKind, ...] = ("copy",)
"""Kinds of steps that copy from global to shared memory."""
_TENSOR_COPY_KINDS: tuple[StepKind, ...] = ("tensor_load", "tensor_store")
_INSTRUCTION_KINDS: Mapping[str, tuple[StepKind, ...]] = {
    "tensor_instructions": ("tensor",), "global_load_instructions": ("global_load",),
    "global_store_instructions": ("global_store",),
    "global_atomic_instructions": ("global_reduction", "global_atomic"), "async_copy_instructions": COPY_KINDS,
    "shared_load_instructions": ("shared_load",), "shared_store_instructions": ("shared_store",),
    "matrix_load_instructions": ("matrix_load",), "matrix_store_instructions": ("matrix_store",),
    "shared_atomic_instructions": ("shared_atomic",), "local_load_instructions": ("local_load",),
    "local_store_instructions": ("local_store",), "barriers": ("barrier",),
}  # fmt: skip
_SECTOR_COUNTERS: Mapping[str, tuple[str, tuple[StepKind, ...]]] = {
    "global_load_sectors": ("sectors", ("global_load", "copy")),
    "global_load_sectors_ideal": ("sectors_ideal", ("global_load", "copy")),
    "global_store_sectors": ("sectors", ("global_store",)),
    "global_store_sectors_ideal": ("sectors_ideal", ("global_store",)),
    "global_atomic_sectors": ("sectors", ("global_reduction", "global_atomic")),
}
_READING_KINDS: tuple[StepKind, ...] = ("global_load", "copy", "tensor_load", "scalar_load")
_WRITING_KINDS: tuple[StepKind, ...] = ("global_store", "global_reduction", "global_atomic", "tensor_store")
_SECTORS_ON_AMD = "AMD caches transfer whole lines: see cache_lines"
NOT_ON_AMD: Mapping[str, str] = {
    **dict.fromkeys(_SECTOR_COUNTERS, _SECTORS_ON_AMD),
    **dict.fromkeys(("shared_wavefronts", "shared_wavefronts_ideal"), "passes over LDS are not counted"),
    **dict.fromkeys(("dram_bytes_read", "dram_bytes_written"), "cache line fills of AMD are not modelled"),
    **dict.fromkeys(("local_load_sectors", "local_store_sectors"), "accesses to scratch memory are not sized"),
}
"""Counter → why it is not available for AMD."""


def total_counters(
    run: SimulatedLaunch, l2_bytes: int | None, l2: L2Estimate | None = None, resident_ctas: int | None = None
) -> tuple[Counters, Mapping[str, str]]:
    """The counters of a run, and the reason for each that is null.

    Args:
        l2_bytes: size of L2, for the range of `dram_bytes_read`.
        l2: the modelled traffic, if the launch may not fit in L2.
        resident_ctas: of the GPU, whose spilled registers share the L2.
    """
    return _CounterTotals(run, l2_bytes, l2, resident_ctas).counters()


class _CounterTotals:
    """Totals counters, and records why one is unknown."""

    def __init__(
        self, run: SimulatedLaunch, l2_bytes: int | None, l2: L2Estimate | None, resident_ctas: int | None
    ) -> None:
        self.run, self.l2_bytes, self.l2 = run, l2_bytes, l2
        self.fits_l2 = fits_in_l2(run, l2_bytes, resident_ctas)
        self.steps = run.loaded.program.steps
        self.spilled = {
            kind: sum(local_bytes(run.counters, step) for step in self.steps if step.kind == kind)
            for kind in LOCAL_KINDS
        }
        """Kind of access → bytes of local memory that lanes access."""
        self.unknown_reasons: dict[str, str] = {}
        ended = list(dict.fromkeys(f"{_step_place(end.step)}: {', '.join(end.reasons)}" for end in run.unfinished))
        self.stop_reason = "; ".join(ended[:3]) or None
        self.uncounted = [self.steps[at] for at in run.uncounted_steps]

    def counters(self) -> tuple[Counters, Mapping[str, str]]:
        counts = self.run.counters
        # unlike ncu's source page, the hardware counter counts a WARPSYNC after a BSYNC once per merged part
        executed = sum(counts.warps_executed) + self._sum_of_kinds(counts.reconverged_parts, ("warp_sync",))
        totals: dict[str, Any] = {"instructions": self._known_or_none("instructions", executed)}
        for name, kinds in _INSTRUCTION_KINDS.items():
            executed = self._sum_of_kinds(counts.warps_executed, kinds)
            totals[name] = self._known_or_none(name, executed, counted=_is_of(kinds))
        undecided = _TENSOR_COPY_KINDS if sum(counts.undecided_copies) else ()
        totals["tensor_copy_instructions"] = self._known_or_none(
            "tensor_copy_instructions", sum(counts.tensor_copies), undecided, counted=_is_of(_TENSOR_COPY_KINDS)
        )
        for name, (counter_name, kinds) in _SECTOR_COUNTERS.items():
            sectors = self._sum_of_kinds(getattr(counts, counter_name), kinds)
            totals[name] = self._known_or_none(name, sectors, kinds, counted=_is_of(kinds))
        for name in ("shared_wavefronts", "shared_wavefronts_ideal"):
            per_step = getattr(counts, name.removeprefix("shared_"))
            totals[name] = self._known_or_none(name, sum(per_step), None, is_shared=True)
        bytes_read, bytes_written = self.run.memory.count_unique_bytes()
        for name, value, kinds in (("read", bytes_read, _READING_KINDS), ("written", bytes_written, _WRITING_KINDS)):
            totals[f"unique_bytes_{name}"] = self._known_or_none(
                f"unique_bytes_{name}", value, kinds, counts_bytes=True, counted=_is_of(kinds)
            )
        for kind, size in self.spilled.items():
            name = f"{kind}_sectors"
            totals[name] = self._known_or_none(name, size // SECTOR, counted=_is_of((kind,)))
        totals["dram_bytes_read"] = self._dram_bytes_read()
        totals["dram_bytes_written"] = self._dram_bytes_written()
        totals["cache_lines"] = None
        if self.run.loaded.initial_state is not None:
            totals["cache_lines"] = self._known_or_none(
                "cache_lines", self._sum_of_kinds(counts.sectors, GLOBAL_KINDS), GLOBAL_KINDS
            )
            for name, reason in NOT_ON_AMD.items():
                totals[name], self.unknown_reasons[name] = None, reason
        totals["flop"] = self._known_or_none("flop", self._total_flop(), counted=lambda step: bool(step.lane_flop))
        totals["divergent_branches"] = self._known_or_none("divergent_branches", sum(counts.divergent_warps))
        # a pipeline's last iterations execute copies of nothing: no CTA's lanes are switched off one by one
        threads, warp_size = self.run.loaded.threads, self.run.loaded.program.warp_size
        issued = [warp_size * warps for warps in counts.warps_executed]
        used = [min(each, threads * (ctas or each)) for each, ctas in zip(issued, counts.accessing_ctas, strict=True)]
        lanes, active = (self._sum_of_kinds(counter, GLOBAL_KINDS) for counter in (used, counts.active_threads))
        totals["memory_lanes"] = self._known_or_none("memory_lanes", lanes)
        totals["masked_lanes"] = self._known_or_none("masked_lanes", lanes - active, GLOBAL_KINDS)
        names = {entry.name for entry in fields(Counters)}
        assert names == set(totals), names ^ set(totals)
        return Counters(**totals), self.unknown_reasons

    def _sum_of_kinds(self, per_step: list[int], kinds: tuple[str, ...]) -> int:
        return sum(per_step[step.index] for step in self.steps if step.kind in kinds)

    def _known_or_none(
        self,
        name: str,
        value: Any,
        kinds: tuple[str, ...] | None = (),
        *,
        is_shared: bool = False,
        counts_bytes: bool = False,
        counted: Callable[[ProgramStep], bool] = lambda step: True,
    ) -> Any:
        """The value, or None with the reason recorded; steps that are not `counted` do not contribute to it."""
        if self.stop_reason is not None and any(map(counted, self.uncounted)):
            self.unknown_reasons[name] = self.stop_reason
            return None
        counts = self.run.counters
        reasons = [
            f"{_step_place(step)}: {', '.join(self.run.input_names.names_in(missing_inputs))}"
            for step in self.steps
            if (
                missing_inputs := counts.missing_inputs.get(step.index, 0)
                | (counts.unknown_pointers.get(step.index, 0) if counts_bytes else 0)
            )
            and ((kinds is not None and step.kind in kinds) or (is_shared and step.kind.startswith(_SHARED_KINDS)))
        ]
        if reasons:
            self.unknown_reasons[name] = "; ".join(dict.fromkeys(reasons[:3]))
            return None
        return value

    def _total_flop(self) -> dict[str, int]:
        flop_by_type: defaultdict[str, int] = defaultdict(int)
        for step in self.steps:
            for kind, flop_per_lane in step.lane_flop:
                flop_by_type[kind] += flop_per_lane * self.run.counters.threads_executed[step.index]
        return {kind: count for kind, count in sorted(flop_by_type.items()) if count}

    def _dram_bytes_written(self) -> CounterRange | None:
        """What exceeds the L2 at least; at most every written sector, once if all fits in L2, else per request.

        Spilled registers are dirty lines: the L2 writes them when it needs their space.
        """
        if self._known_or_none("dram_bytes_written", 0, _WRITING_KINDS, counts_bytes=True) is None:
            return None
        written = self.run.memory.count_sectors()[1] * SECTOR
        low = 0 if self.l2_bytes is None else max(0, written - self.l2_bytes)
        if self.fits_l2:
            return CounterRange(low, written)
        requested = self._sum_of_kinds(self.run.counters.sectors, _WRITING_KINDS) * SECTOR
        return CounterRange(low, max(written, requested) + self.spilled["local_store"])

    def _dram_bytes_read(self) -> CounterRange | None:
        """Code, and every pair of sectors once if all of it fits in L2, otherwise as often as the model says.

        Of sectors that were written in part, the L2 reads the rest, except of some that it still holds. Spilled
        registers fill whole sectors: they are fetched only when they are loaded again.
        """
        if self._known_or_none("dram_bytes_read", 0, (*_READING_KINDS, *_WRITING_KINDS), counts_bytes=True) is None:
            return None
        memory, code = self.run.memory, self.run.loaded.program.code_bytes
        fetched, filled = sum(memory.count_fetched().values()), sum(memory.count_filled().values())
        code_and_filled = code + max(0, filled - _MOST_UNFILLED_BYTES)
        low, most_filled = fetched + code_and_filled, min(filled, _MOST_UNFILLED_BYTES)
        requested_bytes = (
            self._sum_of_kinds(self.run.counters.sectors, ("global_load", "copy")) * PAIR + code_and_filled
        )
        if self.fits_l2:
            return CounterRange(low, low + most_filled)
        if any(self.spilled.values()):
            return CounterRange(low, max(low, requested_bytes) + most_filled + self.spilled["local_load"])
        if self.l2 is not None:
            least, most = (round(fetched * share) + code_and_filled for share in (self.l2.low, self.l2.high))
            return CounterRange(least, most + most_filled)
        return CounterRange(low, max(low, requested_bytes) + most_filled)


_MOST_UNFILLED_BYTES = 6_000_000
"""Bytes of sectors written in part whose rest is not yet read when a launch ends: 1.9 to 5.4 MB on an H200."""


def fits_in_l2(run: SimulatedLaunch, l2_bytes: int | None, resident_ctas: int | None) -> bool:
    """Whether all tensors, and the local memory of the resident CTAs, fit in the usable part of the L2."""
    loaded, size = run.loaded, sum(run.memory.count_fetched().values()) + run.memory.count_sectors()[1] * SECTOR
    if any(local_bytes(run.counters, step) for step in loaded.program.steps):
        cubin = None if loaded.cubin is None else read_cubin(loaded.cubin, loaded.program.name)
        if cubin is None or cubin.frame_bytes is None or resident_ctas is None:
            return False
        size += cubin.frame_bytes * loaded.threads * min(run.launch.ctas, resident_ctas)
    return l2_bytes is not None and size <= USABLE_L2_SHARE * l2_bytes


def local_bytes(counters: StepCounters, step: ProgramStep) -> int:
    """Bytes of spilled registers that the lanes of an instruction load or store."""
    lanes = counters.threads_executed[step.index] if step.kind in LOCAL_KINDS else 0
    return lanes * local_bytes_per_lane(step.opcode)


def local_bytes_per_lane(opcode: str) -> int:
    """Bytes per lane of an access to local memory.

    Example:
        >>> local_bytes_per_lane("LDL.128"), local_bytes_per_lane("LDL.LU"), local_bytes_per_lane("LDL.U8")
        (16, 4, 1)
    """
    modifiers = opcode.split(".")[1:]
    return next((size for name, size in _LOCAL_BYTES.items() if name in modifiers), 4)


_LOCAL_BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def _is_of(kinds: tuple[str, ...]) -> Callable[[ProgramStep], bool]:
    """Whether a step is of one of some kinds."""
    return lambda step: step.kind in kinds


_SHARED_KINDS = ("shared", "matrix", "copy")


def _step_place(step: ProgramStep) -> str:
    return f"{step.opcode} at line {step.line}" + (f" ({step.source_place})" if step.source_place else "")
