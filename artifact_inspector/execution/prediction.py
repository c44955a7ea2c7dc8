"""The prediction for a launch: its counters, each line's share of them, and what it does wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from artifact_inspector.execution.interpreter.counters import Bounds, WarpAccess
from artifact_inspector.execution.interpreter.program import Step
from artifact_inspector.execution.order import CtaOrder, find_order
from artifact_inspector.execution.running import Run
from artifact_inspector.execution.totals import COPIES, Counters, add_up


@dataclass(frozen=True, slots=True)
class Line:
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
    is_copy: bool = False
    """Whether it copies from global to shared memory."""

    @property
    def extra_sectors(self) -> int | None:
        """Sectors beyond those that contiguous bytes would need."""
        return (
            None if self.sectors is None or self.sectors_ideal is None else self.sectors - self.sectors_ideal
        )

    @property
    def conflicts(self) -> int | None:
        """Excess wavefronts caused by bank conflicts."""
        known = self.wavefronts is not None and self.wavefronts_ideal is not None
        return (self.wavefronts or 0) - (self.wavefronts_ideal or 0) if known else None


@dataclass(frozen=True, slots=True)
class Outside:
    """An access outside of every tensor, which is a bug."""

    kind: str
    line: int
    source: str | None
    opcode: str
    cta: int
    lane: int
    """Thread number in its CTA."""
    address: int
    near: str


HELD = frozenset(("sm_90",))
"""Targets whose counters were validated, on an H100 and an H200."""


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """An instruction that accesses shared memory, and one of its warps lane by lane."""

    line: Line
    warp: WarpAccess


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
    by_line: tuple[Line, ...]
    by_source: tuple[Line, ...]
    """Totals by source line."""
    opcodes: Mapping[str, int]
    """Opcode without modifiers → instructions executed."""
    not_understood: tuple[str, ...]
    """Opcodes that are not supported, so that their results are unknown."""
    outside: tuple[Outside, ...]
    outside_count: int
    """Lanes that accessed memory outside of every tensor."""
    notes: tuple[str, ...]
    held_against_hardware: bool
    """Whether such counters were validated on a GPU of that target; so far those of sm_90 were."""
    cta_order: CtaOrder | None
    """The waves of CTAs; None if not requested, or if the launch did not run to its end."""
    shared_accesses: tuple[SharedAccess, ...]
    """Sorted by bank conflicts, most first; without copies and matrix products. Empty for AMD."""

    @property
    def is_amd(self) -> bool:
        """Whether it is AMD machine code, for which cache lines are counted instead of sectors."""
        return self.target.startswith("gfx")


def predict(run: Run, l2_bytes: int | None = None, wave: tuple[int, str] | None = None) -> Prediction:
    """The prediction from a simulated launch.

    Args:
        run: of a launch.
        wave: resident CTAs, and how their number was determined.
        l2_bytes: size of L2, for the range of `dram_bytes_read`.
    """
    counters, unknown = add_up(run, l2_bytes)
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
        outside_count=sum(run.counts.more_outside.values()),
        notes=run.launch.notes,
        held_against_hardware=program.target in HELD,
        cta_order=_order(run, wave, _fits(counters, l2_bytes)),
        shared_accesses=_shared_accesses(run, complete),
    )


def _shared_accesses(run: Run, complete: bool) -> tuple[SharedAccess, ...]:
    steps = run.loaded.program.steps
    found = [SharedAccess(_line(run, steps[at], complete), warp) for at, warp in run.counts.shared.items()]
    return tuple(sorted(found, key=lambda one: (-(one.line.conflicts or 0), one.line.line)))


def _fits(counters: Counters, l2_bytes: int | None) -> bool | None:
    """Whether everything read and written fits in L2; None if unknown."""
    read, written = counters.unique_bytes_read, counters.unique_bytes_written
    return None if None in (read, written, l2_bytes) else read + written <= l2_bytes  # type: ignore[operator]


def _order(run: Run, wave: tuple[int, str] | None, fits_l2: bool | None) -> CtaOrder | None:
    footprints = run.memory.footprints
    if wave is None or footprints is None or run.ended or run.sampled:
        return None
    return find_order(run.launch, footprints, run.loaded.tile_bytes, *wave, fits_l2)


def _line(run: Run, step: Step, complete: bool) -> Line:
    counts, at = run.counts, step.index
    known = complete and at not in counts.why

    def figure(held: list[int], needs_address: bool) -> int | None:
        return held[at] if complete and (known or not needs_address) else None

    amd = run.loaded.beginning is not None
    return Line(
        stage="amdgcn" if amd else "sass",
        line=step.line,
        source=step.place,
        opcode=step.opcode,
        executed=figure(counts.executed, False),
        sectors=None if amd else figure(counts.sectors, True),
        sectors_ideal=None if amd else figure(counts.sectors_ideal, True),
        wavefronts=None if amd else figure(counts.wavefronts, True),
        wavefronts_ideal=None if amd else figure(counts.wavefronts_ideal, True),
        cache_lines=figure(counts.sectors, True) if amd else None,
        is_copy=step.kind in COPIES,
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
        found.kind, step.line, step.place, step.opcode, found.cta, found.lane, found.address, found.near
    )
