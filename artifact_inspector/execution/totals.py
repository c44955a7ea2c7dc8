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
from artifact_inspector.execution.interpreter.program import Step
from artifact_inspector.execution.running import Run


@dataclass(frozen=True, slots=True)
class Range:
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
    dram_bytes_read: Range | None
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
    def flop_in_all(self) -> int | None:
        """Total of all types."""
        return None if self.flop is None else sum(self.flop.values())

    @property
    def intensity(self) -> float | None:
        """FLOP per distinct byte that is read or written."""
        read, written = self.unique_bytes_read, self.unique_bytes_written
        total = self.flop_in_all
        if total is None or read is None or written is None or not read + written:
            return None
        return total / (read + written)


COPIES = ("copy",)
"""Kinds of steps that copy from global to shared memory."""
_INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "tensor_instructions": ("tensor",),
    "global_load_instructions": ("global_load",),
    "global_store_instructions": ("global_store",),
    "global_atomic_instructions": ("global_reduction", "global_atomic"),
    "async_copy_instructions": COPIES,
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
_SECTORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "global_load_sectors": ("sectors", ("global_load", "copy")),
    "global_load_sectors_ideal": ("sectors_ideal", ("global_load", "copy")),
    "global_store_sectors": ("sectors", ("global_store",)),
    "global_store_sectors_ideal": ("sectors_ideal", ("global_store",)),
    "global_atomic_sectors": ("sectors", ("global_reduction", "global_atomic")),
}
_GLOBAL = ("global_load", "global_store", "copy", "global_reduction", "global_atomic")
_READING = ("global_load", "copy", "tensor_load", "scalar_load")
_WRITING = ("global_store", "global_reduction", "global_atomic", "tensor_store")
_LINES = "AMD caches transfer whole lines: see cache_lines"
NOT_OF_AMD: Mapping[str, str] = {
    **dict.fromkeys(_SECTORS, _LINES),
    **dict.fromkeys(("shared_wavefronts", "shared_wavefronts_ideal"), "passes over LDS are not counted"),
    "dram_bytes_read": "cache line fills of AMD are not modelled",
}
"""Counter → why it is not available for AMD."""


def add_up(run: Run, l2_bytes: int | None) -> tuple[Counters, Mapping[str, str]]:
    """The counters of a run, and the reason for each that is null.

    Args:
        run: of a launch.
        l2_bytes: size of L2, for the range of `dram_bytes_read`.
    """
    return _Sums(run, l2_bytes).counters()


class _Sums:
    """Totals counters, and records why one is unknown."""

    def __init__(self, run: Run, l2_bytes: int | None) -> None:
        self.run = run
        self.l2_bytes = l2_bytes
        self.steps = run.loaded.program.steps
        self.unknown: dict[str, str] = {}
        ended = list(dict.fromkeys(f"{_where(end.step)}: {', '.join(end.reasons)}" for end in run.ended))
        self.stopped = "; ".join(ended[:3]) or None

    def counters(self) -> tuple[Counters, Mapping[str, str]]:
        counts = self.run.counts
        # unlike ncu's source page, the hardware counter counts a WARPSYNC after a BSYNC once per merged part
        executed = sum(counts.executed) + self._sum(counts.rejoined, ("warp_sync",))
        found: dict[str, Any] = {"instructions": self._told("instructions", executed)}
        for name, kinds in _INSTRUCTIONS.items():
            found[name] = self._told(name, self._sum(counts.executed, kinds))
        for name, (what, kinds) in _SECTORS.items():
            found[name] = self._told(name, self._sum(getattr(counts, what), kinds), kinds)
        for name in ("shared_wavefronts", "shared_wavefronts_ideal"):
            held = getattr(counts, name.removeprefix("shared_"))
            found[name] = self._told(name, sum(held), None, shared=True)
        read, written = self.run.memory.unique()
        for name, value, kinds in (("read", read, _READING), ("written", written, _WRITING)):
            found[f"unique_bytes_{name}"] = self._told(f"unique_bytes_{name}", value, kinds, bytes=True)
        found["dram_bytes_read"] = self._dram()
        found["cache_lines"] = None
        if self.run.loaded.beginning is not None:
            found["cache_lines"] = self._told("cache_lines", self._sum(counts.sectors, _GLOBAL), _GLOBAL)
            for name, reason in NOT_OF_AMD.items():
                found[name], self.unknown[name] = None, reason
        found["flop"] = self._told("flop", self._flop())
        found["divergent_branches"] = self._told("divergent_branches", sum(counts.divergent))
        lanes = self.run.loaded.program.warp * self._sum(counts.executed, _GLOBAL)
        active = self._sum(counts.active, _GLOBAL)
        found["memory_lanes"] = self._told("memory_lanes", lanes)
        found["masked_lanes"] = self._told("masked_lanes", lanes - active, _GLOBAL)
        names = {entry.name for entry in fields(Counters)}
        assert names == set(found), names ^ set(found)
        return Counters(**found), self.unknown

    def _sum(self, held: list[int], kinds: tuple[str, ...]) -> int:
        return sum(held[step.index] for step in self.steps if step.kind in kinds)

    def _told(
        self,
        name: str,
        value: Any,
        kinds: tuple[str, ...] | None = (),
        *,
        shared: bool = False,
        bytes: bool = False,
    ) -> Any:
        """The value, or None with the reason recorded."""
        if self.stopped is not None:
            self.unknown[name] = self.stopped
            return None
        counts = self.run.counts
        reasons = [
            f"{_where(step)}: {', '.join(self.run.names.of(why))}"
            for step in self.steps
            if (why := counts.why.get(step.index, 0) | (counts.elsewhere.get(step.index, 0) if bytes else 0))
            and ((kinds is not None and step.kind in kinds) or (shared and _is_shared(step)))
        ]
        if reasons:
            self.unknown[name] = "; ".join(dict.fromkeys(reasons[:3]))
            return None
        return value

    def _flop(self) -> dict[str, int]:
        found: defaultdict[str, int] = defaultdict(int)
        for step in self.steps:
            for kind, each in step.work:
                found[kind] += each * self.run.counts.lanes[step.index]
        return {kind: count for kind, count in sorted(found.items()) if count}

    def _dram(self) -> Range | None:
        """Code and every sector once if all of it fits in L2; otherwise up to the requested sectors."""
        if self._told("dram_bytes_read", 0, (*_READING, *_WRITING), bytes=True) is None:
            return None
        sectors, written = self.run.memory.sectors()
        code = self.run.loaded.program.bytes
        low = sectors * SECTOR + code
        footprint = (sectors + written) * SECTOR
        if self.l2_bytes is not None and footprint <= self.l2_bytes:
            return Range(low, low)
        asked = self._sum(self.run.counts.sectors, ("global_load", "copy")) * SECTOR + code
        return Range(low, max(low, asked))


def _is_shared(step: Step) -> bool:
    return step.kind.startswith(("shared", "matrix")) or step.kind == "copy"


def _where(step: Step) -> str:
    return f"{step.opcode} at line {step.line}" + (f" ({step.place})" if step.place else "")
