"""Merges machines at the same step into one machine that runs the CTAs of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import (
    Known,
    Mask,
    Unknown,
    Value,
    bits_unknown,
    data_of,
    told_apart,
)
from artifact_inspector.execution.interpreter.machine import Group, Machine
from artifact_inspector.execution.interpreter.pieces import Piece, Pieces, whole_of
from artifact_inspector.execution.interpreter.scratch import Scratch
from artifact_inspector.execution.interpreter.shifted import is_worth_it, stacked_sums


def arrive(machine: Machine, *, came: bool) -> list[Machine]:
    """Record that a machine arrived at its reconvergence point, or ended; returns the machines that continue.

    Args:
        machine: the machine that has stopped.
        came: whether it is at its reconvergence point.
    """
    meeting = machine.meeting
    while meeting is not None:
        meeting.awaited -= 1
        if came:
            meeting.here.append(machine)
        if meeting.awaited:
            return []
        joined = _joined(meeting.here)
        for one in joined:
            one.meeting = meeting.outer
        if joined:
            if meeting.outer is not None:
                meeting.outer.awaited += len(joined) - 1
            return joined
        meeting, came = meeting.outer, False
    return []


def _joined(machines: Sequence[Machine]) -> list[Machine]:
    """One machine from several at the same step; the machines themselves if they cannot be merged."""
    words = [machine.local.words.keys() for machine in machines]
    if len(machines) < 2 or any(keys != words[0] for keys in words):
        return list(machines)
    return [_join(machines)]


def _join(machines: Sequence[Machine]) -> Machine:
    first = machines[0]
    rows = [machine.rows for machine in machines]
    joined = object.__new__(Machine)
    joined.__dict__.update(first.__dict__)
    joined.ctas = np.concatenate([machine.ctas for machine in machines])
    joined.sums = is_worth_it(len(joined.ctas), first.threads)
    joined.loops = None if first.loops is None else first.loops.fresh()
    names = dict.fromkeys(name for machine in machines for name in machine.registers)
    joined.registers = {
        name: _held([_register(machine, name) for machine in machines], rows, joined) for name in names
    }
    barriers = dict.fromkeys(name for machine in machines for name in machine.barriers)
    joined.barriers = {
        name: _masks([machine.barriers.get(name, False) for machine in machines], rows) for name in barriers
    }
    saved = dict.fromkeys(name for machine in machines for name in machine.saved)
    joined.saved = {
        name: _masks([machine.saved.get(name, False) for machine in machines], rows) for name in saved
    }
    told = dict.fromkeys(name for machine in machines for name in machine.arrivals)
    joined.arrivals = {
        name: _told([machine.arrivals.get(name, 0) for machine in machines], rows) for name in told
    }
    joined.exited = _masks([machine.exited for machine in machines], rows)
    joined.way = next((machine.way for machine in machines if machine.way is not None), None)
    joined.local, joined.shared = Scratch(), _shared([machine.shared for machine in machines], rows)
    joined.local.words = {
        at: _held([machine.local.words[at] for machine in machines], rows, joined) for at in first.local.words
    }
    mask = _masks([machine.groups[0].mask for machine in machines], rows)
    joined.groups, joined.waiting = [Group(first.groups[0].pc, mask, joined)], []
    joined.group = joined.groups[0]
    return joined


def _register(machine: Machine, name: str) -> Value:
    held = machine.registers.get(name)
    return machine.read(name) if held is None else held


def _held(parts: Sequence[Value], rows: Sequence[int], joined: Machine) -> Value:
    """A register of all CTAs."""
    first = parts[0]
    if all(part is first for part in parts) and not np.ndim(data_of(first)) and not isinstance(first, Pieces):
        return first
    cut = [part for part in parts if isinstance(part, Pieces)]
    if joined.sums and len(cut) == len(parts) and all(cut[0].is_cut_as(part) for part in cut[1:]):
        return Pieces(
            tuple(
                Piece(pieces[0].mask, _held([piece.value for piece in pieces], rows, joined))
                for pieces in zip(*(part.parts for part in cut), strict=True)
            )
        )
    if joined.sums and (found := stacked_sums(parts, rows)) is not None:
        return found
    values = [whole_of(part) for part in parts]
    data = _stacked([data_of(value) for value in values], rows)
    if not any(isinstance(value, Unknown) for value in values):
        return told_apart(data, joined.shape) if joined.sums else data
    bad: list[Any] = [bits_unknown(value) for value in values]
    if all(isinstance(data_of(value), (bool, np.bool_)) or _is_bools(data_of(value)) for value in values):
        bad = [np.not_equal(part, 0) if isinstance(part, np.ndarray) else bool(part) for part in bad]
    why = 0
    for value in values:
        why |= value.why if isinstance(value, Unknown) else 0
    return Unknown(data, _stacked(bad, rows), why)


def _is_bools(value: Known) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == np.bool_


def _stacked(parts: Sequence[Known], rows: Sequence[int]) -> Known:
    """Numbers or arrays stacked by CTA; one number if all are equal."""
    first = parts[0]
    if not any(isinstance(part, np.ndarray) for part in parts) and all(part == first for part in parts):
        return first
    arrays: list[NDArray[Any]] = [np.atleast_2d(np.asarray(part)) for part in parts]
    if all(len(array) == 1 and np.array_equal(array, arrays[0]) for array in arrays):
        return first
    lanes = max(array.shape[1] for array in arrays)
    return np.concatenate(
        [np.broadcast_to(array, (count, lanes)) for array, count in zip(arrays, rows, strict=True)]
    )


def _masks(parts: Sequence[Mask], rows: Sequence[int]) -> Mask:
    found: Mask = _stacked(parts, rows)
    return found


def _told(parts: Sequence[Any], rows: Sequence[int]) -> Any:
    if all(np.size(part) == 1 and part == parts[0] for part in parts):
        return parts[0]
    return np.concatenate([np.broadcast_to(part, count) for part, count in zip(parts, rows, strict=True)])


def _shared(parts: Sequence[Scratch], rows: Sequence[int]) -> Scratch:
    found = Scratch()
    found.most = parts[0].most
    for part in parts:
        found.why |= part.why
    size = max((part.data.shape[1] for part in parts if part.data is not None), default=0)
    if size:
        found.data = _stacked([_padded(part.data, size) for part in parts], rows)
        found.known = _stacked([_padded(part.known, size) for part in parts], rows)
        if len(found.data) != len(found.known):
            shape = (sum(rows), size)
            found.data, found.known = (
                np.broadcast_to(found.data, shape).copy(),
                np.broadcast_to(found.known, shape).copy(),
            )
    return found


def _padded(held: NDArray[np.uint8] | None, size: int) -> NDArray[np.uint8]:
    if held is None:
        return np.zeros((1, size), np.uint8)
    return np.pad(held, ((0, 0), (0, size - held.shape[1])))
