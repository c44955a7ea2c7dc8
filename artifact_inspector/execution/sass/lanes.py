"""SASS instructions that cross the lanes of a warp: shuffles, votes, reductions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Unknown,
    Value,
    condense,
    data_of,
    is_true,
    signed,
    spread,
    widen,
)
from artifact_inspector.execution.sass.operands import (
    Build,
    Run,
    is_nothing,
    predicate,
    results,
    source,
    wide,
    write_all,
)
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine


def _lanes(machine: Machine, value: Any) -> Any:
    """A value by warp: (CTAs or 1, warps, lanes)."""
    warp = machine.program.warp
    rows = np.shape(value)[0] if np.ndim(value) == 2 else 1
    return spread(value, (rows, machine.threads)).reshape(rows, machine.threads // warp, warp)


def _from_warps(machine: Machine, value: Any) -> Any:
    """One value for each warp, repeated in all of its lanes."""
    return np.repeat(value, machine.program.warp, axis=1)


def _to_uniform(statement: Statement) -> Run:
    """R2UR: the first active lane's value for the warp."""
    name, beside, at = results(statement, 0)
    reader = source(statement.operands[at])

    def run(machine: Machine) -> None:
        value = reader(machine)
        mask = machine.on
        machine.on = widen(mask, machine.program.warp)
        if name is not None:
            machine.write(name, _first(machine, value, mask))
        write_all(machine, beside, True)

    return run


def _first(machine: Machine, value: Value, mask: Any) -> Value:
    if not isinstance(data_of(value), np.ndarray) or np.shape(data_of(value))[1] == 1:
        return value
    if isinstance(value, Unknown):
        return value if not isinstance(value.bad, np.ndarray) else Unknown(
            _first(machine, value.data, mask), _first(machine, value.bad, mask), value.why
        )  # fmt: skip
    on = _lanes(machine, mask)
    held = _lanes(machine, value)
    first = on.argmax(axis=2)
    rows = max(len(held), len(first))
    at = np.broadcast_to(first[:, :, None], (rows, *first.shape[1:], 1))
    found = np.take_along_axis(np.broadcast_to(held, (rows, *held.shape[1:])), at, axis=2)[:, :, 0]
    if (found == found.flat[0]).all():
        return found.flat[0].item()
    return _from_warps(machine, found)


def _elect(statement: Statement) -> Run:
    name, beside, _ = results(statement, 0)

    def run(machine: Machine) -> None:
        mask = machine.on
        lane = machine.environment.lane(machine)
        on = _lanes(machine, mask)
        first = _from_warps(machine, on.argmax(axis=2))
        if beside and beside[0] is not None:
            machine.write(beside[0], np.asarray(lane == first))
        if name is not None:
            machine.on = widen(mask, machine.program.warp)
            machine.write(name, 0 if not first.any() else first)

    return run


def _vote(statement: Statement) -> Run:
    first, *rest = statement.operands
    register = first.kind is OperandKind.REGISTER
    name = first.name if register and not is_nothing(first) else None
    target = rest[0] if register and len(rest) > 1 else first
    beside = [None if is_nothing(target) or target.kind is OperandKind.REGISTER else target.name]
    operand = statement.operands[-1]
    reader = predicate(operand)
    every, equal = statement.has("ALL"), statement.has("EQ")

    def run(machine: Machine) -> None:
        value = reader(machine)
        mask = machine.on
        machine.on = widen(mask, machine.program.warp)
        unknown = isinstance(value, Unknown) and is_true(machine._and(mask, value.bad))
        if unknown or equal:
            why = value.why if isinstance(value, Unknown) else machine.unknown("a vote").why
            ballot: Value = Unknown(0, FULL, why)
            found: Value = Unknown(False, True, why)
        elif isinstance(value, bool) and machine.group.lanes == machine.group.warps * machine.program.warp:
            ballot, found = (FULL if value else 0), value
        else:
            on, held = _lanes(machine, mask), _lanes(machine, data_of(value))
            votes = on & held
            weights = 1 << np.arange(machine.program.warp, dtype=np.int64)
            ballot = _from_warps(machine, (votes * weights).sum(axis=2))
            held_by = (votes == on).all(axis=2) if every else votes.any(axis=2)
            found = _from_warps(machine, held_by)
        write_all(machine, (name,), ballot)
        write_all(machine, beside, found)

    return run


def _shuffle(statement: Statement) -> Run:
    """SHFL: read another lane's register."""
    name, beside, at = results(statement, 0)
    value, lane, clamp = (source(operand) for operand in statement.operands[at : at + 3])
    kind = statement.modifiers[0]

    def run(machine: Machine) -> None:
        held, by, bound = (machine.settled(reader(machine)) for reader in (value, lane, clamp))
        unknown = next((v for v in (by, bound) if isinstance(v, Unknown)), None)
        if unknown is not None:
            write_all(machine, beside, Unknown(False, True, unknown.why))
            write_all(machine, (name,), Unknown(0, FULL, unknown.why))
            return
        own, step, limit = machine.environment.lane(machine), by, bound
        segment = (limit >> 8) & 31
        most = (own & segment) | (limit & 31 & ~segment)
        least = own & segment
        goes = {
            "IDX": least | (step & ~segment & 31), "UP": own - step, "DOWN": own + step, "BFLY": own ^ step,
        }[kind]  # fmt: skip
        inside = goes >= most if kind == "UP" else goes <= most
        origin = np.where(inside, goes, own) & 31
        write_all(machine, beside, True if inside.all() else inside)
        if name is not None:
            machine.write(name, _taken(machine, held, origin))

    return run


def _taken(machine: Machine, held: Value, origin: Any) -> Value:
    """A register of the lane of the warp that each lane selects."""
    if isinstance(held, Unknown):
        data, bad = _taken(machine, held.data, origin), _taken(machine, held.bad, origin)
        return condense(Unknown(data, bad, held.why))
    if not isinstance(held, np.ndarray) or held.shape[1] == 1:
        return held
    lanes = np.arange(machine.threads)
    places = lanes // machine.program.warp * machine.program.warp + origin
    if len(places) == 1:
        return held[:, places[0]]
    return np.take_along_axis(np.broadcast_to(held, places.shape), places, axis=1)


_JOINED: Mapping[str, Any] = {
    "MIN": np.minimum, "MAX": np.maximum, "SUM": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
_NEUTRAL: Mapping[str, int] = {"MIN": 1 << 62, "MAX": -(1 << 62), "AND": -1}


def _reduce(statement: Statement) -> Run:
    """REDUX: a reduction over the active lanes of a warp."""
    name, _, at = results(statement, 0)
    reader = source(statement.operands[at])
    kind = next((m for m in statement.modifiers if m in _JOINED), "AND")
    is_signed, of_floats = statement.has("S32"), statement.has("F32")

    def run(machine: Machine) -> None:
        value, mask = machine.settled(reader(machine)), machine.on
        machine.on = widen(mask, machine.program.warp)
        if name is None:
            return
        if isinstance(value, Unknown) or of_floats:
            nothing = (
                value if isinstance(value, Unknown) else machine.unknown(f"the result of {statement.opcode}")
            )
            machine.write(name, Unknown(0, FULL, nothing.why))
            return
        held = _lanes(machine, signed(value) if is_signed else value)
        taken = np.where(_lanes(machine, mask), held, _NEUTRAL.get(kind, 0))
        found = _JOINED[kind].reduce(taken, axis=2) & FULL
        same = (found == found.flat[0]).all()
        machine.write(name, int(found.flat[0]) if same else _from_warps(machine, found))

    return run


def _match(statement: Statement) -> Run:
    """MATCH: the lanes that hold the same number; ALL also tests whether all of them do."""
    name, beside, at = results(statement, 0)
    reader = wide(statement.operands[at]) if statement.has("U64") else source(statement.operands[at])
    every = statement.has("ALL")

    def run(machine: Machine) -> None:
        value, mask = machine.settled(reader(machine)), machine.on
        if isinstance(value, Unknown):
            found: Value = Unknown(0, FULL, value.why)
            holds: Value = Unknown(False, True, value.why)
        else:
            on, held = _lanes(machine, mask), _lanes(machine, value)
            equal = (held[:, :, :, None] == held[:, :, None, :]) & on[:, :, None, :]
            weights = 1 << np.arange(machine.program.warp, dtype=np.int64)
            found = (equal * weights).sum(axis=3).reshape(-1, machine.threads)
            whole = (equal == on[:, :, None, :]).all(axis=3).reshape(-1, machine.threads)
            found, holds = (np.where(whole, found, 0), whole) if every else (found, True)
        write_all(machine, (name,), found)
        write_all(machine, beside, holds)

    return run


LANES: Mapping[str, Build] = {
    "R2UR": _to_uniform,
    "ELECT": _elect,
    "VOTE": _vote,
    "VOTEU": _vote,
    "SHFL": _shuffle,
    "REDUX": _reduce,
    "CREDUX": _reduce,
    "MATCH": _match,
}
"""Opcode without modifiers → builder of its run."""
