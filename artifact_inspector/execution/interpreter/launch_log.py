"""What a sample needs of CTAs that run at once: the path of each, its counters and its accesses.

A CTA by itself costs as many calls of numpy as all together: of matmul_persistent_descriptor (sm_80), four CTAs took a
third of the time of `predict`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.affine import IntArray
from artifact_inspector.execution.interpreter.counters import StepCounters
from artifact_inspector.execution.interpreter.footprints import AccessRecorder, FootprintAccess

_COUNTERS = ("warps_executed", "threads_executed", "wavefronts")
_MOST_BYTES = 1 << 27
"""Most bytes of addresses that are kept."""

_Part: TypeAlias = tuple[IntArray, list[int], IntArray, NDArray[np.float64]]
"""Part of a path: CTAs, steps in order; some steps, and their counters for an average CTA on the machine."""
_KeptAccess: TypeAlias = tuple[FootprintAccess, IntArray, IntArray]
"""An access without equal rows, and of each CTA the row of its addresses and that of its mask."""


class LaunchLog(AccessRecorder):
    """The log of a launch.

    Args:
        counters: of the launch.
        is_exact: whether a trace is that of its CTA, so that iterations with other paths do not run in parallel.
    """

    def __init__(self, counters: StepCounters, *, is_exact: bool) -> None:
        self.counters, self.is_exact, self.is_complete = counters, is_exact, True
        self._parts: list[_Part] = []
        """Those of a CTA are in the order of its path."""
        self._accesses: list[tuple[list[_KeptAccess], int]] = []
        self.kept_bytes, self._totals = 0, np.zeros((len(_COUNTERS), counters.step_count))

    def close(self, ctas: IntArray, trace: list[int], step: int = -1, executed: tuple[int, int] = (0, 0)) -> list[int]:
        """End a part of the path of some CTAs; returns the beginning of the next one.

        Args:
            step: of the branch at which CTAs leave. It belongs to the next part, as they run it again.
            executed: warps and threads of that step.
        """
        earlier_totals, following = self._totals, [] if step < 0 or trace[-1:] != [step] else trace[-1:]
        self._totals = np.array([getattr(self.counters, name) for name in _COUNTERS], np.float64)
        self._totals[:2, step] -= executed
        steps = np.flatnonzero((self._totals != earlier_totals).any(axis=0))
        counts = (self._totals - earlier_totals)[:, steps] / len(ctas)
        self._parts.append((ctas, trace[: len(trace) - len(following)], steps, counts))
        return following

    def add_iterations(self, accesses: Sequence[FootprintAccess], rows: int) -> None:
        """Record accesses."""
        compact = [_compact(access) for access in accesses if access.addresses.size] if self.is_complete else []
        self.kept_bytes += sum(access.addresses.nbytes for access, *_ in compact if len(access.addresses) > 1)
        if self.kept_bytes > _MOST_BYTES:
            self.is_complete, compact, self._accesses = False, [], []
        self._accesses.append((compact, rows))

    def trace_of(self, cta: int) -> tuple[int, ...]:
        """The steps of a CTA."""
        return tuple(chain.from_iterable(trace for ctas, trace, *_ in self._parts if cta in ctas))

    def counters_of(self, ctas: IntArray) -> StepCounters:
        """The counters of some CTAs, each of which counts as the average of those on its machines."""
        totals = np.zeros_like(self._totals)
        for members, _, steps, counts in self._parts:
            totals[:, steps] += counts * np.isin(ctas, members).sum()
        counters = StepCounters(self.counters.step_count, self.counters.step_limit)
        for name, values in zip(_COUNTERS, totals.round().astype(np.int64).tolist(), strict=True):
            setattr(counters, name, values)
        counters.missing_inputs = self.counters.missing_inputs
        return counters

    def accesses_of(self, ctas: IntArray) -> Iterator[tuple[list[FootprintAccess], int]]:
        """The accesses of some CTAs, as they were recorded."""
        rows_of: dict[int, IntArray] = {}
        for accesses, rows in self._accesses:
            for access, *_ in accesses:
                if id(access.ctas) not in rows_of:
                    rows_of[id(access.ctas)] = np.flatnonzero(np.isin(access.ctas, ctas))
            yield [_select_rows(rows_of[id(entry[0].ctas)], *entry) for entry in accesses], rows


def _compact(access: FootprintAccess) -> _KeptAccess:
    """An access in little memory; with several rows of addresses, each lane is relative to the first."""
    lanes, mask, offsets = access.addresses, access.mask, access.cta_offsets
    if len(lanes) > 1:
        offsets = lanes[:, 0].copy()
        lanes = lanes - offsets[:, None]
    (lanes, lane_rows), (mask, mask_rows) = (_distinct_rows(rows, len(access.ctas)) for rows in (lanes, mask))
    return access._replace(addresses=lanes, mask=mask, cta_offsets=offsets), lane_rows, mask_rows


def _distinct_rows(rows: Any, ctas: int) -> tuple[Any, IntArray]:
    """The distinct rows, and which of them each CTA has."""
    if rows is None or len(rows) == 1:
        return rows, np.broadcast_to(np.int64(0), ctas)
    weights = np.random.default_rng(0).integers(1 << 62, size=rows.shape[1])
    _, firsts, row_of_cta = np.unique(rows @ weights, return_index=True, return_inverse=True)
    distinct = rows[firsts]
    return (distinct, row_of_cta) if np.array_equal(distinct[row_of_cta], rows) else (rows, np.arange(ctas))


def _select_rows(rows: IntArray, access: FootprintAccess, lane_rows: IntArray, mask_rows: IntArray) -> FootprintAccess:
    lanes, mask, offsets = access.addresses, access.mask, access.cta_offsets
    offsets = None if offsets is None else offsets[rows]
    if len(lanes) > 1 and offsets is not None:
        lanes, offsets = lanes[lane_rows[rows]] + offsets[:, None], None
    mask = mask if mask is None or len(mask) == 1 else mask[mask_rows[rows]]
    own_rows = access.rows_of_machine(rows)
    return access._replace(ctas=access.ctas[rows], addresses=lanes, mask=mask, rows=own_rows, cta_offsets=offsets)
