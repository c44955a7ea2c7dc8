"""What a launch will do, added up: counters with the meaning that Nsight Compute gives them, and by line.

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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from artifact_inspector.execution.interpreter.counters import Bounds, WarpAccess
from artifact_inspector.execution.interpreter.footprints import SECTOR
from artifact_inspector.execution.interpreter.program import Step
from artifact_inspector.execution.order import CtaOrder, find_order
from artifact_inspector.execution.running import Run


@dataclass(frozen=True, slots=True)
class Range:
    """A number that lies between two; both are it where it is known."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of a whole launch; None where one depends on what was not given."""

    instructions: int | None
    """Instructions that warps execute, whether or not their guard holds."""
    tensor_instructions: int | None
    """Of the tensor pipe: matrix products, and on Hopper `HFMA2.MMA`."""
    global_load_instructions: int | None
    global_store_instructions: int | None
    global_atomic_instructions: int | None
    """Atomics and reductions."""
    async_copy_instructions: int | None
    """`LDGSTS`."""
    tensor_copy_instructions: int | None
    """Copies by the tensor memory accelerator, either way."""
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
    """Sectors of 32 bytes that loads and asynchronous copies ask for."""
    global_load_sectors_ideal: int | None
    """The same had the lanes' bytes stood side by side."""
    global_store_sectors: int | None
    global_store_sectors_ideal: int | None
    global_atomic_sectors: int | None
    cache_lines: int | None
    """Lines of the first-level cache that waves ask for; of AMD, whose sectors are null."""
    shared_wavefronts: int | None
    """Passes over shared memory, of all accesses to it."""
    shared_wavefronts_ideal: int | None
    """Without bank conflicts."""
    unique_bytes_read: int | None
    """Bytes of global memory that are read, each counted once."""
    unique_bytes_written: int | None
    dram_bytes_read: Range | None
    """What comes from device memory into a cold second-level cache."""
    flop: Mapping[str, int] | None
    """Type → floating-point operations of lanes whose guard holds, a multiply-add counted as two."""
    barriers: int | None
    """`BAR` of warps."""
    divergent_branches: int | None
    """Warps whose lanes parted at a branch, each time."""
    masked_lanes: int | None
    """Lanes of loads, stores and copies in global memory that are switched off."""
    memory_lanes: int | None
    """Lanes of the same, on or off."""

    @property
    def flop_in_all(self) -> int | None:
        """Of all types together."""
        return None if self.flop is None else sum(self.flop.values())

    @property
    def intensity(self) -> float | None:
        """FLOP for each byte that is read or written at least once."""
        read, written = self.unique_bytes_read, self.unique_bytes_written
        total = self.flop_in_all
        if total is None or read is None or written is None or not read + written:
            return None
        return total / (read + written)


@dataclass(frozen=True, slots=True)
class Line:
    """What one instruction, or all of one source line, will do."""

    stage: str
    line: int
    """Of the stage's text."""
    source: str | None
    """`file:line` of the kernel's source."""
    opcode: str
    executed: int | None
    sectors: int | None
    sectors_ideal: int | None
    wavefronts: int | None
    wavefronts_ideal: int | None
    cache_lines: int | None
    """Of AMD's first-level cache; null for NVIDIA."""
    is_copy: bool = False
    """True for a copy from global into shared memory."""

    @property
    def extra_sectors(self) -> int | None:
        """Sectors beyond those that its bytes would fill side by side."""
        return (
            None if self.sectors is None or self.sectors_ideal is None else self.sectors - self.sectors_ideal
        )

    @property
    def conflicts(self) -> int | None:
        """Passes over shared memory that banks in conflict add."""
        known = self.wavefronts is not None and self.wavefronts_ideal is not None
        return (self.wavefronts or 0) - (self.wavefronts_ideal or 0) if known else None


@dataclass(frozen=True, slots=True)
class Outside:
    """An access outside of every tensor: a bug that was found."""

    kind: str
    line: int
    source: str | None
    opcode: str
    cta: int
    lane: int
    """Thread in its CTA."""
    address: int
    near: str


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """An instruction that accesses shared memory, and one of its warps lane by lane."""

    line: Line
    warp: WarpAccess


@dataclass(frozen=True, slots=True)
class Prediction:
    """What one launch of a kernel will do."""

    kernel: str
    hash: str
    target: str
    grid: tuple[int, int, int]
    threads: int
    """Of a CTA."""
    counters: Counters
    unknown: Mapping[str, str]
    """Counter → what it depends on and was not given."""
    sampled: bool
    """Only some CTAs ran, each for those like it."""
    by_line: tuple[Line, ...]
    by_source: tuple[Line, ...]
    """Added up by source line."""
    opcodes: Mapping[str, int]
    """Opcode without modifiers → instructions executed."""
    not_understood: tuple[str, ...]
    """Opcodes whose results are unknown because nothing says here what they compute."""
    outside: tuple[Outside, ...]
    outside_count: int
    """Lanes that accessed memory outside of every tensor."""
    notes: tuple[str, ...]
    held_against_hardware: bool
    """Whether such figures were held against counters of a GPU of that vendor; AMD's were not."""
    cta_order: CtaOrder | None
    """The waves of CTAs; None where it was not asked for, or the launch did not run to its end."""
    shared_accesses: tuple[SharedAccess, ...]
    """Those that lose most to bank conflicts first; no copies, no products, and none of AMD."""


def predict(run: Run, l2_bytes: int | None = None, wave: tuple[int, str] | None = None) -> Prediction:
    """What a run adds up to.

    Args:
        run: of a launch.
        wave: CTAs that run side by side, and whence that is known.
        l2_bytes: of the second-level cache, for the range of `dram_bytes_read`.
    """
    counters, unknown = _Sums(run, l2_bytes).counters()
    program, loaded = run.loaded.program, run.loaded
    complete = not run.ended
    lines = tuple(_line(run, step, complete) for step in program.steps if run.counts.executed[step.index])
    opcodes: defaultdict[str, int] = defaultdict(int)
    for step in program.steps:
        opcodes[step.opcode.partition(".")[0]] += run.counts.executed[step.index]
    return Prediction(
        kernel=loaded.artifact.display_name,
        hash=loaded.artifact.hash,
        target=program.target,
        grid=run.launch.grid,
        threads=loaded.threads,
        counters=counters,
        unknown=unknown,
        sampled=run.sampled,
        by_line=lines,
        by_source=_by_source(lines),
        opcodes={name: count for name, count in sorted(opcodes.items(), key=lambda row: -row[1]) if count},
        not_understood=tuple(
            step.opcode
            for step in {step.opcode: step for step in program.steps}.values()
            if not step.is_understood
        ),
        outside=tuple(_outside(run, found) for found in run.counts.outside),
        outside_count=run.counts.more_outside,
        notes=run.launch.notes,
        held_against_hardware=loaded.beginning is None,
        cta_order=_order(run, wave, l2_bytes),
        shared_accesses=_shared_accesses(run, complete),
    )


def _shared_accesses(run: Run, complete: bool) -> tuple[SharedAccess, ...]:
    steps = run.loaded.program.steps
    found = [SharedAccess(_line(run, steps[at], complete), warp) for at, warp in run.counts.shared.items()]
    return tuple(sorted(found, key=lambda one: (-(one.line.conflicts or 0), one.line.line)))


def _order(run: Run, wave: tuple[int, str] | None, l2_bytes: int | None) -> CtaOrder | None:
    footprints = run.memory.footprints
    if wave is None or footprints is None or run.ended or run.sampled:
        return None
    return find_order(run.launch, footprints, run.loaded.tile_bytes, *wave, l2_bytes)


def _source(step: Step) -> str | None:
    return None if step.source is None else f"{step.source[0].rpartition('/')[2]}:{step.source[1]}"


def _line(run: Run, step: Step, complete: bool) -> Line:
    counts, at = run.counts, step.index
    known = complete and at not in counts.why

    def figure(held: list[int], needs_address: bool) -> int | None:
        return held[at] if complete and (known or not needs_address) else None

    amd = run.loaded.beginning is not None
    return Line(
        stage="amdgcn" if amd else "sass",
        line=step.line,
        source=_source(step),
        opcode=step.opcode,
        executed=figure(counts.executed, False),
        sectors=None if amd else figure(counts.sectors, True),
        sectors_ideal=None if amd else figure(counts.sectors_ideal, True),
        wavefronts=None if amd else figure(counts.wavefronts, True),
        wavefronts_ideal=None if amd else figure(counts.wavefronts_ideal, True),
        cache_lines=figure(counts.sectors, True) if amd else None,
        is_copy=step.kind in _COPIES,
    )


def _by_source(lines: Iterable[Line]) -> tuple[Line, ...]:
    groups: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.source is not None:
            groups[line.source].append(line)
    return tuple(
        Line("source", _place(source)[1], source, "", **_added_up(group))
        for source, group in sorted(groups.items(), key=lambda row: _place(row[0]))
    )


def _added_up(lines: Sequence[Line]) -> dict[str, Any]:
    names = ("executed", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal", "cache_lines")
    return {name: _added(getattr(line, name) for line in lines) for name in names}


def _place(source: str) -> tuple[str, int]:
    file, _, line = source.rpartition(":")
    return file, int(line)


def _added(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _outside(run: Run, found: Bounds) -> Outside:
    step = run.loaded.program.steps[found.index]
    return Outside(
        found.kind, step.line, _source(step), step.opcode, found.cta, found.lane, found.address, found.near
    )


_COPIES = ("copy",)
_INSTRUCTIONS: Mapping[str, tuple[str, ...]] = {
    "tensor_instructions": ("tensor",),
    "global_load_instructions": ("global_load",),
    "global_store_instructions": ("global_store",),
    "global_atomic_instructions": ("global_reduction", "global_atomic"),
    "async_copy_instructions": _COPIES,
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
_LINES = "AMD's caches move whole lines: see cache_lines"
NOT_OF_AMD: Mapping[str, str] = {
    **dict.fromkeys(_SECTORS, _LINES),
    **dict.fromkeys(("shared_wavefronts", "shared_wavefronts_ideal"), "passes over LDS are not counted"),
    "dram_bytes_read": "lines that caches of AMD fill are not followed",
}
"""Counter → why it has no figure for AMD."""
_TENSOR_COPIES = ("tensor_load", "tensor_store")


class _Sums:
    """Adds up, and keeps why what cannot be known is not."""

    def __init__(self, run: Run, l2_bytes: int | None) -> None:
        self.run = run
        self.l2_bytes = l2_bytes
        self.steps = run.loaded.program.steps
        self.unknown: dict[str, str] = {}
        ended = list(dict.fromkeys(f"{_where(end.step)}: {', '.join(end.reasons)}" for end in run.ended))
        self.stopped = "; ".join(ended[:3]) or None

    def counters(self) -> tuple[Counters, Mapping[str, str]]:
        counts = self.run.counts
        # the hardware's counter, not ncu's source page, counts a WARPSYNC behind a BSYNC for each part joined
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
        everything = (*_GLOBAL, *_TENSOR_COPIES, "scalar_load")
        found["unique_bytes_read"] = self._told("unique_bytes_read", read, everything)
        found["unique_bytes_written"] = self._told("unique_bytes_written", written, everything)
        found["dram_bytes_read"] = self._dram(found["unique_bytes_read"])
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
        self, name: str, value: Any, kinds: tuple[str, ...] | None = (), *, shared: bool = False
    ) -> Any:
        """The value, or None with the reason why it is not known."""
        if self.stopped is not None:
            self.unknown[name] = self.stopped
            return None
        reasons = [
            f"{_where(step)}: {', '.join(self.run.names.of(self.run.counts.why[step.index]))}"
            for step in self.steps
            if step.index in self.run.counts.why
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

    def _dram(self, read: int | None) -> Range | None:
        """Code and every sector once where all fits in the second-level cache; else up to what is asked."""
        if read is None:
            self.unknown["dram_bytes_read"] = self.unknown["unique_bytes_read"]
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
    source = _source(step)
    return f"{step.opcode} at line {step.line}" + (f" ({source})" if source else "")
