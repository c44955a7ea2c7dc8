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
| `dram_bytes_read` | `dram__bytes_read.sum` |

**Source** Nsight Compute documentation, "Metrics Reference".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from artifact_inspector.execution.interpreter.footprints import SECTOR
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.l2_cache import USABLE_L2_SHARE, L2Estimate
from artifact_inspector.execution.simulation import SimulatedLaunch


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
    """Copies by the tensor memory accelerator, in both directions."""
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
    flop: Mapping[str, int] | None
    """Type → floating-point operations of lanes whose guard holds; a multiply-add counts as two."""
    barriers: int | None
    """`BAR` instructions of warps."""
    divergent_branches: int | None
    """Branches of warps whose lanes diverged."""
    masked_lanes: int | None
    """Inactive lanes of global loads, stores and copies."""
    memory_lanes: int | None
    """All lanes of these, active or not."""

    @property
    def total_flop(self) -> int | None:
        """Total of all types."""
        return None if self.flop is None else sum(self.flop.values())

    @property
    def intensity(self) -> float | None:
        """FLOP per distinct byte that is read or written."""
        bytes_read, bytes_written = self.unique_bytes_read, self.unique_bytes_written
        total = self.total_flop
        if total is None or bytes_read is None or bytes_written is None or not bytes_read + bytes_written:
            return None
        return total / (bytes_read + bytes_written)


LOCAL_KINDS = ("local_load", "local_store")
"""Kinds of steps that access local memory, where registers are spilled."""
COPY_KINDS = ("copy",)
"""Kinds of steps that copy from global to shared memory."""
_INSTRUCTION_KINDS: Mapping[str, tuple[str, ...]] = {
    "tensor_instructions": ("tensor",),
    "global_load_instructions": ("global_load",),
    "global_store_instructions": ("global_store",),
    "global_atomic_instructions": ("global_reduction", "global_atomic"),
    "async_copy_instructions": COPY_KINDS,
    "tensor_copy_instructions": ("tensor_load", "tensor_store"),
    "shared_load_instructions": ("shared_load",),
    "shared_store_instructions": ("shared_store",),
    "matrix_load_instructions": ("matrix_load",),
    "matrix_store_instructions": ("matrix_store",),
    "shared_atomic_instructions": ("shared_atomic",),
    "local_load_instructions": ("local_load",),
    "local_store_instructions": ("local_store",),
    "barriers": ("barrier",),
}
_SECTOR_COUNTERS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "global_load_sectors": ("sectors", ("global_load", "copy")),
    "global_load_sectors_ideal": ("sectors_ideal", ("global_load", "copy")),
    "global_store_sectors": ("sectors", ("global_store",)),
    "global_store_sectors_ideal": ("sectors_ideal", ("global_store",)),
    "global_atomic_sectors": ("sectors", ("global_reduction", "global_atomic")),
}
_GLOBAL_KINDS = ("global_load", "global_store", "copy", "global_reduction", "global_atomic")
_READING_KINDS = ("global_load", "copy", "tensor_load", "scalar_load")
_WRITING_KINDS = ("global_store", "global_reduction", "global_atomic", "tensor_store")
_SECTORS_ON_AMD = "AMD caches transfer whole lines: see cache_lines"
NOT_ON_AMD: Mapping[str, str] = {
    **dict.fromkeys(_SECTOR_COUNTERS, _SECTORS_ON_AMD),
    **dict.fromkeys(("shared_wavefronts", "shared_wavefronts_ideal"), "passes over LDS are not counted"),
    "dram_bytes_read": "cache line fills of AMD are not modelled",
}
"""Counter → why it is not available for AMD."""


def total_counters(
    run: SimulatedLaunch, l2_bytes: int | None, l2: L2Estimate | None = None
) -> tuple[Counters, Mapping[str, str]]:
    """The counters of a run, and the reason for each that is null.

    Args:
        run: of a launch.
        l2_bytes: size of L2, for the range of `dram_bytes_read`.
        l2: the modelled traffic, if the launch may not fit in L2.
    """
    return _CounterTotals(run, l2_bytes, l2).counters()


class _CounterTotals:
    """Totals counters, and records why one is unknown."""

    def __init__(self, run: SimulatedLaunch, l2_bytes: int | None, l2: L2Estimate | None) -> None:
        self.run = run
        self.l2_bytes = l2_bytes
        self.l2 = l2
        self.steps = run.loaded.program.steps
        self.unknown_reasons: dict[str, str] = {}
        ended = list(dict.fromkeys(f"{_step_place(end.step)}: {', '.join(end.reasons)}" for end in run.unfinished))
        self.stop_reason = "; ".join(ended[:3]) or None

    def counters(self) -> tuple[Counters, Mapping[str, str]]:
        counts = self.run.counters
        # unlike ncu's source page, the hardware counter counts a WARPSYNC after a BSYNC once per merged part
        executed = sum(counts.warps_executed) + self._sum_of_kinds(counts.reconverged_parts, ("warp_sync",))
        totals: dict[str, Any] = {"instructions": self._known_or_none("instructions", executed)}
        for name, kinds in _INSTRUCTION_KINDS.items():
            totals[name] = self._known_or_none(name, self._sum_of_kinds(counts.warps_executed, kinds))
        for name, (counter_name, kinds) in _SECTOR_COUNTERS.items():
            totals[name] = self._known_or_none(name, self._sum_of_kinds(getattr(counts, counter_name), kinds), kinds)
        for name in ("shared_wavefronts", "shared_wavefronts_ideal"):
            per_step = getattr(counts, name.removeprefix("shared_"))
            totals[name] = self._known_or_none(name, sum(per_step), None, is_shared=True)
        bytes_read, bytes_written = self.run.memory.count_unique_bytes()
        for name, value, kinds in (("read", bytes_read, _READING_KINDS), ("written", bytes_written, _WRITING_KINDS)):
            totals[f"unique_bytes_{name}"] = self._known_or_none(
                f"unique_bytes_{name}", value, kinds, counts_bytes=True
            )
        totals["dram_bytes_read"] = self._dram_bytes_read()
        totals["cache_lines"] = None
        if self.run.loaded.initial_state is not None:
            totals["cache_lines"] = self._known_or_none(
                "cache_lines", self._sum_of_kinds(counts.sectors, _GLOBAL_KINDS), _GLOBAL_KINDS
            )
            for name, reason in NOT_ON_AMD.items():
                totals[name], self.unknown_reasons[name] = None, reason
        totals["flop"] = self._known_or_none("flop", self._total_flop())
        totals["divergent_branches"] = self._known_or_none("divergent_branches", sum(counts.divergent_warps))
        lanes = self.run.loaded.program.warp_size * self._sum_of_kinds(counts.warps_executed, _GLOBAL_KINDS)
        active = self._sum_of_kinds(counts.active_threads, _GLOBAL_KINDS)
        totals["memory_lanes"] = self._known_or_none("memory_lanes", lanes)
        totals["masked_lanes"] = self._known_or_none("masked_lanes", lanes - active, _GLOBAL_KINDS)
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
    ) -> Any:
        """The value, or None with the reason recorded."""
        if self.stop_reason is not None:
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
            and ((kinds is not None and step.kind in kinds) or (is_shared and _is_shared(step)))
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

    def _dram_bytes_read(self) -> CounterRange | None:
        """Code, and every sector once if all of it fits in L2, otherwise as often as the model says.

        Local memory of spilled registers may be fetched as often as it is accessed: its place in L2 is not modelled.
        """
        if self._known_or_none("dram_bytes_read", 0, (*_READING_KINDS, *_WRITING_KINDS), counts_bytes=True) is None:
            return None
        sectors, sectors_written = self.run.memory.count_sectors()
        code = self.run.loaded.program.code_bytes
        low = sectors * SECTOR + code
        footprint = (sectors + sectors_written) * SECTOR
        requested_bytes = self._sum_of_kinds(self.run.counters.sectors, ("global_load", "copy")) * SECTOR + code
        spilled_bytes = sum(
            self.run.counters.warps_executed[step.index] * 32 * local_bytes_per_lane(step.opcode)
            for step in self.steps
            if step.kind in LOCAL_KINDS
        )
        if spilled_bytes:
            return CounterRange(low, max(low, requested_bytes) + spilled_bytes)
        if self.l2_bytes is not None and footprint <= USABLE_L2_SHARE * self.l2_bytes:
            return CounterRange(low, low)
        if self.l2 is not None:
            return CounterRange(
                round(sectors * SECTOR * self.l2.low) + code, round(sectors * SECTOR * self.l2.high) + code
            )
        if self.l2_bytes is not None and footprint <= self.l2_bytes:
            return CounterRange(low, low)
        return CounterRange(low, max(low, requested_bytes))


def local_bytes_per_lane(opcode: str) -> int:
    """Bytes per lane of an access to local memory.

    Example:
        >>> local_bytes_per_lane("LDL.128"), local_bytes_per_lane("LDL.LU"), local_bytes_per_lane("LDL.U8")
        (16, 4, 1)
    """
    modifiers = opcode.split(".")[1:]
    return next((size for name, size in _LOCAL_BYTES.items() if name in modifiers), 4)


_LOCAL_BYTES = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}


def _is_shared(step: ProgramStep) -> bool:
    return step.kind.startswith(("shared", "matrix")) or step.kind == "copy"


def _step_place(step: ProgramStep) -> str:
    return f"{step.opcode} at line {step.line}" + (f" ({step.source_place})" if step.source_place else "")
