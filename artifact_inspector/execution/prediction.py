"""The prediction for a launch: its counters, each line's share of them, and what it does wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.execution.cta_order import CtaOrder, find_cta_order
from artifact_inspector.execution.interpreter.counters import OutOfBoundsAccess, WarpAccess
from artifact_inspector.execution.interpreter.footprints import SECTOR, Footprints
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.l2_cache import L2Estimate, estimate_l2
from artifact_inspector.execution.launch_counters import (
    COPY_KINDS,
    LOCAL_KINDS,
    Counters,
    fits_in_l2,
    local_bytes,
    total_counters,
)
from artifact_inspector.execution.simulation import SimulatedLaunch
from artifact_inspector.execution.timing.launch_time import LaunchTime, LineStall, estimate_time


@dataclass(frozen=True, slots=True)
class LinePrediction:
    """The counters of one instruction, or of one source line."""

    stage: str
    line: int
    """Line in the text of the stage."""
    source: str | None
    """`file:line` of the kernel's source."""
    opcode: str
    executed: int | None
    sectors: int | None
    sectors_ideal: int | None
    wavefronts: int | None
    wavefronts_ideal: int | None
    cache_lines: int | None
    """L1 cache lines requested on AMD; null for NVIDIA."""
    cache_lines_ideal: int | None = None
    """The same if the bytes of the lanes were contiguous."""
    local_sectors: int | None = None
    """32-byte sectors of spilled registers; null for AMD."""
    is_copy: bool = False
    """Whether it copies from global to shared memory."""

    @property
    def is_amd_store(self) -> bool:
        """Whether it is an AMD instruction that stores: `buffer_store_dwordx2`."""
        return "_store_" in self.opcode

    @property
    def excess_sectors(self) -> int | None:
        """Sectors (AMD: cache lines) beyond those that contiguous bytes would need."""
        requested, ideal = (
            (self.sectors, self.sectors_ideal)
            if self.cache_lines is None
            else (self.cache_lines, self.cache_lines_ideal)
        )
        return None if requested is None or ideal is None else requested - ideal

    @property
    def bank_conflicts(self) -> int | None:
        """Excess wavefronts caused by bank conflicts."""
        is_known = self.wavefronts is not None and self.wavefronts_ideal is not None
        return (self.wavefronts or 0) - (self.wavefronts_ideal or 0) if is_known else None


@dataclass(frozen=True, slots=True)
class OutOfBoundsReport:
    """An access outside of every tensor, which is a bug."""

    kind: str
    line: int
    source: str | None
    opcode: str
    cta: int
    thread: int
    """Thread number in its CTA."""
    address: int
    nearest_tensor: str


VALIDATED_TARGETS = frozenset(("sm_90",))
"""Targets whose counters were validated, on an H100 and an H200."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """An instruction that accesses shared memory, and one of its warps lane by lane."""

    line: LinePrediction
    warp_access: WarpAccess


@dataclass(frozen=True, slots=True)
class L2Prediction:
    """How often a launch that starts with a cold L2 finds its data in a cache."""

    dram_bytes_read: int
    """Expected bytes fetched from device memory; `dram_bytes_read` of the counters is their range."""
    hit_rate: float
    """Share of the requests for pairs of sectors, which the L2 fetches together, that do not reach device memory."""
    hit_rate_by_tensor: Mapping[str, float]
    hit_rate_by_source: Mapping[str, float]
    """`file:line` of the kernel's source → the same for its requests."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The prediction for one launch of a kernel."""

    kernel: str
    hash: str
    target: str
    grid: tuple[int, int, int]
    threads: int
    """Threads of a CTA."""
    counters: Counters
    unknown: Mapping[str, str]
    """Counter → the missing input that it depends on."""
    sampled: bool
    """Whether only some CTAs ran and represent the others."""
    by_line: tuple[LinePrediction, ...]
    by_source: tuple[LinePrediction, ...]
    """Totals by source line."""
    opcodes: Mapping[str, int]
    """Opcode without modifiers → instructions executed."""
    has_matrix_products: bool
    """Whether the tensor pipe multiplies matrices: on Hopper, it also runs `HFMA2.MMA`, which moves constants."""
    unsupported_opcodes: tuple[str, ...]
    """Opcodes that are not supported, so that their results are unknown."""
    out_of_bounds: tuple[OutOfBoundsReport, ...]
    out_of_bounds_lanes: int
    """Lanes that accessed memory outside of every tensor."""
    notes: tuple[str, ...]
    is_validated_on_hardware: bool
    """Whether such counters were validated on a GPU of that target; so far those of sm_90 were."""
    cta_order: CtaOrder | None
    """The waves of CTAs; None if not requested, or if the launch did not run to its end."""
    l2: L2Prediction | None
    """L2 hit rates; None if everything fits in L2, or if the launch did not run to its end."""
    time: LaunchTime | None
    """Its predicted time; None if not requested, for AMD, or if rates or the path are unknown."""
    stalls: tuple[LineStall, ...]
    """Why warps wait, by source line, most cycles first; for an average CTA."""
    shared_accesses: tuple[SharedAccess, ...]
    """Sorted by bank conflicts, most first; without copies and matrix products. Empty for AMD."""
    repeats_work: bool = False
    """Whether partitions compute the same tile, which a note reports: the FLOP are a multiple of those needed."""

    @property
    def is_amd(self) -> bool:
        """Whether it is AMD machine code, for which cache lines are counted instead of sectors."""
        return self.target.startswith("gfx")


def predict_counters(
    run: SimulatedLaunch,
    l2_bytes: int | None = None,
    wave: tuple[int, str] | None = None,
    multiprocessors: int | None = None,
    *,
    l2_caches: int = 1,
    timed_gpu: str | None = None,
    limit: int | None = None,
) -> Prediction:
    """The prediction from a simulated launch.

    Args:
        wave: resident CTAs, and how their number was determined.
        l2_bytes: size of L2, for the range of `dram_bytes_read`.
        multiprocessors: number of them, among which resident CTAs are distributed.
        l2_caches: number of them, among which CTAs are distributed in turn.
        timed_gpu: product whose time is predicted; None selects the default product of the kernel's target.
        limit: steps after which a sampled CTA counts as endless; None predicts no time.
    """
    l2 = _estimate_l2(run, l2_bytes, wave, multiprocessors)
    counters, unknown = total_counters(run, l2_bytes, l2, None if wave is None else wave[0])
    program, loaded = run.loaded.program, run.loaded
    time, stalls = (None, ()) if limit is None else estimate_time(run, timed_gpu, l2, limit)
    uncounted = run.uncounted_steps
    lines = tuple(
        _line_prediction(run, step, step.index not in uncounted)
        for step in program.steps
        if run.counters.warps_executed[step.index]
    )
    opcodes: defaultdict[str, int] = defaultdict(int)
    for step in program.steps:
        opcodes[step.opcode.partition(".")[0]] += run.counters.warps_executed[step.index]
    return Prediction(
        kernel=loaded.artifact.display_name,
        hash=loaded.artifact.hash,
        target=program.target,
        grid=run.launch.grid,
        threads=loaded.threads,
        counters=counters,
        unknown=unknown,
        sampled=run.is_sampled,
        by_line=lines,
        by_source=_by_source(lines),
        opcodes={name: count for name, count in sorted(opcodes.items(), key=lambda row: -row[1]) if count},
        has_matrix_products=any(
            step.kind == "tensor" and (step.matrix_types is not None or loaded.cubin is None) for step in program.steps
        ),
        unsupported_opcodes=tuple(dict.fromkeys(step.opcode for step in program.steps if not step.is_supported)),
        out_of_bounds=tuple(_out_of_bounds_report(run, access) for access in run.counters.out_of_bounds),
        out_of_bounds_lanes=sum(run.counters.out_of_bounds_lanes.values()),
        notes=run.notes,
        is_validated_on_hardware=program.target in VALIDATED_TARGETS,
        cta_order=_cta_order(run, wave, counters, l2_bytes, l2_caches),
        l2=None if l2 is None or counters.dram_bytes_read is None else _l2_prediction(run, l2),
        time=time,
        stalls=stalls,
        shared_accesses=_shared_accesses(run, uncounted),
    )


def _shared_accesses(run: SimulatedLaunch, uncounted: frozenset[int]) -> tuple[SharedAccess, ...]:
    steps = run.loaded.program.steps
    accesses = [
        SharedAccess(_line_prediction(run, steps[at], at not in uncounted), warp)
        for at, warp in run.counters.worst_shared_access.items()
    ]
    return tuple(sorted(accesses, key=lambda access: (-(access.line.bank_conflicts or 0), access.line.line)))


def _estimate_l2(
    run: SimulatedLaunch, l2_bytes: int | None, wave: tuple[int, str] | None, multiprocessors: int | None
) -> L2Estimate | None:
    """The L2 traffic of an NVIDIA launch that may not fit in L2 and ran to its end."""
    stream, is_amd = run.stream, run.loaded.initial_state is not None
    if stream is None or l2_bytes is None or wave is None or run.unfinished or run.is_sampled or is_amd:
        return None
    if any(run.counters.warps_executed[step.index] for step in run.loaded.program.steps if step.kind in LOCAL_KINDS):
        return None  # spilled registers take space in L2 too
    if fits_in_l2(run, l2_bytes, wave[0]):
        return None
    multiprocessors = min(wave[0], multiprocessors or wave[0])
    return estimate_l2(stream, -(-wave[0] // multiprocessors), multiprocessors, l2_bytes)


def _l2_prediction(run: SimulatedLaunch, l2: L2Estimate) -> L2Prediction:
    stream = run.stream
    assert stream is not None
    by_tensor = {
        name: l2.hit_rate_in(stream, tensor.pointer or 0, (tensor.pointer or 0) + tensor.bytes)
        for name, tensor in run.launch.tensors.items()
    }
    steps_by_source: defaultdict[str, list[int]] = defaultdict(list)
    for step in run.loaded.program.steps:
        if step.index in l2.requests_of_step and step.source_place is not None:
            steps_by_source[step.source_place].append(step.index)
    fetched = sum(run.memory.count_fetched().values())
    return L2Prediction(
        dram_bytes_read=round(fetched * l2.fetches_per_pair) + run.loaded.program.code_bytes,
        hit_rate=round(l2.hit_rate, 4),
        hit_rate_by_tensor={name: round(rate, 4) for name, rate in by_tensor.items() if rate is not None},
        hit_rate_by_source={
            source: round(l2.hit_rate_of(steps), 4)
            for source, steps in sorted(steps_by_source.items(), key=lambda row: _split_source_place(row[0]))
        },
    )


def _cta_order(
    run: SimulatedLaunch, wave: tuple[int, str] | None, counters: Counters, l2_bytes: int | None, l2_caches: int
) -> CtaOrder | None:
    footprints = run.memory.footprints
    if wave is None or not isinstance(footprints, Footprints) or run.unfinished or run.is_sampled:
        return None
    is_unknown = None in (counters.unique_bytes_read, counters.unique_bytes_written, l2_bytes)
    fits_l2 = None if is_unknown else fits_in_l2(run, l2_bytes, wave[0])
    return find_cta_order(run.launch, footprints, run.loaded.tile_bytes, *wave, fits_l2, l2_caches)


def _line_prediction(run: SimulatedLaunch, step: ProgramStep, is_complete: bool) -> LinePrediction:
    counts, step_index = run.counters, step.index
    is_known = is_complete and step_index not in counts.missing_inputs

    def counter_value(counter: list[int], needs_address: bool) -> int | None:
        return counter[step_index] if is_complete and (is_known or not needs_address) else None

    amd = run.loaded.initial_state is not None
    return LinePrediction(
        stage="amdgcn" if amd else "sass", line=step.line, source=step.source_place, opcode=step.opcode,
        executed=counter_value(counts.warps_executed, False),
        sectors=None if amd else counter_value(counts.sectors, True),
        sectors_ideal=None if amd else counter_value(counts.sectors_ideal, True),
        wavefronts=None if amd else counter_value(counts.wavefronts, True),
        wavefronts_ideal=None if amd else counter_value(counts.wavefronts_ideal, True),
        cache_lines=counter_value(counts.sectors, True) if amd else None,
        cache_lines_ideal=counter_value(counts.sectors_ideal, True) if amd else None,
        local_sectors=local_bytes(counts, step) // SECTOR if is_complete and not amd else None,
        is_copy=step.kind in COPY_KINDS,
    )  # fmt: skip


def _by_source(lines: Iterable[LinePrediction]) -> tuple[LinePrediction, ...]:
    groups: defaultdict[str, list[LinePrediction]] = defaultdict(list)
    for line in lines:
        if line.source is not None:
            groups[line.source].append(line)
    return tuple(
        LinePrediction("source", _split_source_place(source)[1], source, "", **_line_totals(group))
        for source, group in sorted(groups.items(), key=lambda row: _split_source_place(row[0]))
    )


def _line_totals(lines: Sequence[LinePrediction]) -> dict[str, Any]:
    names = (
        "executed", "sectors", "sectors_ideal", "wavefronts", "wavefronts_ideal", "cache_lines", "cache_lines_ideal",
        "local_sectors",
    )  # fmt: skip
    values = {name: [getattr(line, name) for line in lines] for name in names}
    return {name: None if None in numbers else sum(numbers) for name, numbers in values.items()}


def _split_source_place(source: str) -> tuple[str, int]:
    file, _, line = source.rpartition(":")
    return file, int(line)


def _out_of_bounds_report(run: SimulatedLaunch, access: OutOfBoundsAccess) -> OutOfBoundsReport:
    step = run.loaded.program.steps[access.step_index]
    return OutOfBoundsReport(
        access.kind, step.line, step.source_place, step.opcode, access.cta, access.thread, access.address,
        access.nearest_tensor,
    )  # fmt: skip
