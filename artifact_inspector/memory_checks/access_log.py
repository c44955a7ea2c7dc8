"""The global accesses of a launch that checks need: misaligned ones, bytes stored, and intervals per CTA."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.intervals import intervals_of
from artifact_inspector.execution.interpreter.observation import AccessObserver, GlobalAccess
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.launch import KernelLaunch, separate_tensors

MOST_INTERVALS = 1 << 25
"""Intervals of a launch that are compared."""
_ROW_SHIFT = 42
"""Bits of an offset within a tensor: 4 TiB."""


class AccessKind(Enum):
    """What the accesses of an interval do."""

    READ = "reads"
    WRITE = "writes"
    ATOMIC = "updates by an atomic"


def is_atomic(step: ProgramStep) -> bool:
    """Whether a step updates global memory as an atomic, or only prepares that."""
    return (
        step.starts_swap
        or step.kind in ("global_atomic", "global_reduction")
        or step.opcode.startswith(("UTMAREDG", "UBLKRED"))
    )


@dataclass(frozen=True, slots=True)
class MisalignedAccess:
    """The first misaligned access of a step."""

    step: ProgramStep
    cta: int
    thread: int
    address: int
    size: int


class FirstAccess(NamedTuple):
    """The first access to a tensor."""

    step: ProgramStep
    cta: int
    address: int


_EXCHANGE = re.compile(r"\.EXCH|_swap(_x2)? ")
"""An atomic whose result does not depend on what was in memory."""


@dataclass(frozen=True, slots=True)
class TensorIntervals:
    """Byte intervals of one tensor that CTAs access."""

    starts: list[NDArray[np.int64]] = field(default_factory=list)
    stops: list[NDArray[np.int64]] = field(default_factory=list)
    ctas: list[NDArray[np.int64]] = field(default_factory=list)
    kinds: list[AccessKind] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


class AccessLog(AccessObserver):
    """Observes the global accesses of a launch.

    Args:
        launch: with an address for every tensor.
        recorded: tensors whose intervals are recorded.
        checks_alignment: whether the GPU faults on misaligned accesses.
    """

    def __init__(self, launch: KernelLaunch, recorded: Collection[str] = (), *, checks_alignment: bool) -> None:
        tensors = separate_tensors(launch)
        self._tensors = [(t.pointer or 0, (t.pointer or 0) + t.bytes, name) for name, t in tensors]
        self._recorded = frozenset(recorded)
        self._unwritten = {name for name, tensor in tensors if tensor.is_initialized is False}
        self.first_reads: dict[str, FirstAccess] = {}
        """Tensor without values → its first access, if that reads."""
        self._checks_alignment = checks_alignment
        self.misaligned: dict[int, MisalignedAccess] = {}
        """Step → its first misaligned access."""
        self.misaligned_lanes: dict[int, int] = {}
        self.stored_bytes: dict[str, int] = {}
        """Tensor → bytes of all plain stores, each counted as often as it is written."""
        self.updated_tensors: set[str] = set()
        """Tensors that atomics update."""
        self.intervals: dict[str, TensorIntervals] = {}
        """Tensor → its intervals, if recorded."""
        self.interval_count = 0

    @property
    def is_complete(self) -> bool:
        """Whether all intervals were recorded."""
        return self.interval_count <= MOST_INTERVALS

    def observe_global(self, access: GlobalAccess) -> None:
        """Check the alignment of an access, and record what it stores."""
        if self._recorded:
            self._record(access)
            return
        active = access.active_addresses
        if not active.size:
            return
        if self._checks_alignment and not access.is_box and access.size > 1:
            self._check_alignment(access, active)
        if access.is_write:
            self._add_stored(access, active)
        if self._unwritten:
            self._note_first_access(access, active)

    def _check_alignment(self, access: GlobalAccess, active: NDArray[np.int64]) -> None:
        low_bits, offsets = access.size - 1, access.cta_offsets
        if offsets is None:
            wrong = int(np.count_nonzero(active & low_bits)) * access.repeats
        elif not ((active + offsets[0]) & low_bits).any() and not ((offsets - offsets[0]) & low_bits).any():
            return
        else:
            rows = zip(*np.unique(offsets & low_bits, return_counts=True), strict=True)
            wrong = sum(int(np.count_nonzero((active + residue) & low_bits)) * int(count) for residue, count in rows)
        if wrong:
            index = access.step.index
            self.misaligned_lanes[index] = self.misaligned_lanes.get(index, 0) + wrong
            if index not in self.misaligned:
                self.misaligned[index] = _first_misaligned(access)

    def _add_stored(self, access: GlobalAccess, active: NDArray[np.int64]) -> None:
        low, high = _bounds(access, active)
        stored = active.size * access.repeats * access.size
        for start, stop, name in self._tensors:
            if high < start or low >= stop:
                continue
            if is_atomic(access.step):
                self.updated_tensors.add(name)
            else:
                self.stored_bytes[name] = self.stored_bytes.get(name, 0) + stored

    def _note_first_access(self, access: GlobalAccess, active: NDArray[np.int64]) -> None:
        low, high = _bounds(access, active)
        for start, stop, name in self._tensors:
            if name in self._unwritten and low < stop and high >= start:
                self._unwritten.discard(name)
                if not access.is_write or (is_atomic(access.step) and not _EXCHANGE.search(access.step.text)):
                    self.first_reads[name] = FirstAccess(access.step, int(access.ctas[0]), max(low, start))

    # ── Intervals ────────────────────────────────────────────────────────────────────────────────

    def _record(self, access: GlobalAccess) -> None:
        active = access.active_addresses
        if not active.size or self.interval_count > MOST_INTERVALS:
            return
        low, high = _bounds(access, active)
        for start, stop, name in self._tensors:
            if name in self._recorded and low < stop and high >= start:
                self._record_in_tensor(access, name, start, stop, is_inside=low >= start and high < stop)

    def _record_in_tensor(self, access: GlobalAccess, name: str, start: int, stop: int, *, is_inside: bool) -> None:
        ctas, offsets = access.ctas, access.cta_offsets
        if len(access.addresses) == 1:  # all CTAs access the same lanes, plus an offset
            lanes = access.active_addresses
            shifts = np.zeros(len(ctas), np.int64) if offsets is None else offsets
            runs = intervals_of(lanes, access.size)
            starts, stops = runs.at(shifts)
            owners = ctas.repeat(len(runs.starts))
            if not is_inside:
                inside = (starts < stop) & (stops > start)
                starts, stops, owners = starts[inside], stops[inside], owners[inside]
        else:
            rows = np.repeat(np.arange(len(access.addresses)), access.addresses.shape[1])
            flat = access.addresses.ravel()
            used = np.ones(len(flat), bool) if access.mask is None else access.mask.ravel()
            used = used if is_inside else used & (flat >= start) & (flat < stop)
            coded = (rows[used] << _ROW_SHIFT) + (flat[used] - start)
            runs = intervals_of(coded, access.size)
            owners = ctas[runs.starts >> _ROW_SHIFT]
            starts = (runs.starts & ((1 << _ROW_SHIFT) - 1)) + start
            stops = starts + (runs.stops - runs.starts)
        if not len(starts):
            return
        kind = AccessKind.WRITE if access.is_write else AccessKind.READ
        kind = AccessKind.ATOMIC if is_atomic(access.step) else kind
        intervals = self.intervals.setdefault(name, TensorIntervals())
        intervals.starts.append(starts)
        intervals.stops.append(stops)
        intervals.ctas.append(owners)
        intervals.kinds.append(kind)
        intervals.steps.append(access.step.index)
        self.interval_count += len(starts)


def _bounds(access: GlobalAccess, active: NDArray[np.int64]) -> tuple[int, int]:
    """The lowest and the highest address of an access by all CTAs."""
    low, high = int(active.min()), int(active.max())
    if access.cta_offsets is None:
        return low, high
    return low + int(access.cta_offsets.min()), high + int(access.cta_offsets.max())


def _first_misaligned(access: GlobalAccess) -> MisalignedAccess:
    """The first misaligned lane of an access that has one."""
    low_bits, lanes = access.size - 1, access.addresses.shape[1]
    offsets = np.zeros(1, np.int64) if access.cta_offsets is None else access.cta_offsets
    for number, offset in enumerate(offsets.tolist()):
        wrong = ((access.addresses + offset) & low_bits) != 0
        wrong = wrong if access.mask is None else wrong & access.mask
        if wrong.any():
            row, thread = divmod(int(wrong.argmax()), lanes)
            cta = int(access.ctas[number if access.cta_offsets is not None else row])
            return MisalignedAccess(access.step, cta, thread, int(access.addresses[row, thread]) + offset, access.size)
    raise AssertionError("no lane of the access is misaligned")
