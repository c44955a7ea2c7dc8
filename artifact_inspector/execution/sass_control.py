"""SASS's branches, convergence barriers, special registers and what crosses lanes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.lanes import (
    FULL,
    Unknown,
    Value,
    apply,
    data_of,
    is_true,
    signed,
    spread,
    widen,
)
from artifact_inspector.execution.program import Undecided
from artifact_inspector.execution.sass_operands import (
    Build,
    Run,
    following,
    is_nothing,
    predicate,
    results,
    source,
    wide,
    words,
)
from artifact_inspector.formats._sass_statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.machine import Machine

__all__ = ["CONTROL", "NOTHING", "branch_to"]

WORD = 16
"""Bytes of an instruction."""


def branch_to(statement: Statement, target: int | None) -> Run:
    """A branch whose place is known when the program is read."""
    conditions = [predicate(o) for o in statement.operands if o.kind is OperandKind.PREDICATE]
    splits, whole = statement.has("DIV"), statement.has("CONV")

    def run(machine: Machine) -> bool | None:
        if target is None:
            raise Undecided(machine.step, ("where a branch goes, which is not written",))
        if splits or whole:
            full = machine.group.lanes == machine.group.warps * machine.program.warp
            return machine.branch(full is whole, target) if full is whole else False
        taken: Value = True
        for condition in conditions:
            taken = (
                apply(np.logical_and, taken, condition(machine)) if taken is not True else condition(machine)
            )
        if isinstance(taken, (bool, np.bool_)) and not taken:
            return False
        return machine.branch(taken, target)

    return run


def _branch_by_register(statement: Statement) -> Run:
    """BRX, RET: where a register says; RET counts from the function's start, BRX from itself."""
    operand = next(o for o in statement.operands if o.kind is OperandKind.REGISTER)
    offset = sum(o.value for o in statement.operands if o.kind is OperandKind.NUMBER)
    relative = statement.base in ("BRX", "BRXU")
    reader = source(operand)

    def run(machine: Machine) -> bool | None:
        value = reader(machine)
        if isinstance(value, Unknown):
            raise Undecided(machine.step, machine.names.of(value.why))
        base = machine.step.address + WORD + offset if relative else 0
        targets = spread(value, machine.shape)
        wanted = np.unique(targets[spread(machine.on, machine.shape)]).tolist()
        if not wanted:
            return False
        target = wanted[0]
        place = machine.program.places.get((target + base) & FULL)
        if place is None:
            raise Undecided(machine.step, (f"address {target + base:#x}, which holds no code",))
        if len(wanted) == 1:
            return machine.branch(True, place)
        step, groups = machine.step.index, len(machine.groups)
        machine.group.pc = step  # lanes that go elsewhere run it anew, and are counted then
        machine.branch(value == target, place)
        if len(machine.groups) > groups:
            others = machine.groups[-2]
            machine.counts.executed[step] -= others.warps
            machine.counts.lanes[step] -= others.lanes
        return True

    return run


def _exit(_statement: Statement) -> Run:
    return lambda machine: machine.leave()


def _begin(statement: Statement) -> Run:
    barrier = statement.operands[0].name

    def run(machine: Machine) -> None:
        machine.begin_convergence(barrier)

    return run


def _converge(statement: Statement) -> Run:
    barrier = statement.operands[0].name
    return lambda machine: machine.wait_for(barrier)


def _break(statement: Statement) -> Run:
    barrier = next(o.name for o in statement.operands if o.name.startswith("B"))
    return lambda machine: machine.leave_convergence(barrier)


def _meet(statement: Statement) -> Run:
    """BAR: a barrier of the CTA; who waits for all its threads does so with those that have not ended."""
    numbers = [o for o in statement.operands if o.kind is OperandKind.NUMBER]
    registers = [o for o in statement.operands if o.kind is OperandKind.REGISTER]
    count = numbers[1].value if len(numbers) > 1 else None
    waits = not statement.has("ARV")
    if registers or not numbers or statement.has("RED"):
        return lambda _machine: None
    name = f"BAR {numbers[0].value}"
    return lambda machine: machine.meet(name, count, waits=waits)


def _move_barrier(statement: Statement) -> Run:
    """BMOV: a convergence barrier is kept in a register for a while, or cleared."""
    target, origin = statement.operands[0], statement.operands[1]

    def run(machine: Machine) -> None:
        if target.name.startswith("B"):
            machine.barriers[target.name] = machine.saved.get(origin.name, True)
            return
        if not is_nothing(target):
            machine.saved[target.name] = machine.barriers.get(origin.name, True)
            machine.write(target.name, machine.unknown("lanes of a convergence barrier"))
        if statement.has("CLEAR"):
            machine.barriers.pop(origin.name, None)

    return run


# ── Special registers ────────────────────────────────────────────────────────────────────────────


def _special(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    operand = statement.operands[at]
    double = statement.base == "CS2R" and not statement.has("32")

    def run(machine: Machine) -> None:
        if name is None:
            return
        value: Value = 0 if is_nothing(operand) else machine.environment.special(machine, operand.name)
        machine.write(name, value)
        if double:
            machine.write(following(name), 0 if is_nothing(operand) else value)

    return run


# ── Across lanes ─────────────────────────────────────────────────────────────────────────────────


def _lanes(machine: Machine, value: Any) -> Any:
    """A value by warp: (CTAs, warps, lanes)."""
    warp = machine.program.warp
    return spread(value, machine.shape).reshape(machine.rows, machine.threads // warp, warp)


def _from_warps(machine: Machine, value: Any) -> Any:
    """One value for each warp, in all of its lanes."""
    return np.repeat(value, machine.program.warp, axis=1)


def _to_uniform(statement: Statement) -> Run:
    """R2UR: the first lane's value for the warp."""
    name, beside, at = results(statement, 0)
    reader = source(statement.operands[at])

    def run(machine: Machine) -> None:
        value = reader(machine)
        mask = machine.on
        machine.on = widen(mask, machine.program.warp)
        if name is not None:
            machine.write(name, _first(machine, value, mask))
        for target in beside:
            if target is not None:
                machine.write(target, True)

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
    found = np.take_along_axis(held, first[:, :, None], axis=2)[:, :, 0]
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
        if name is not None:
            machine.write(name, ballot)
        for target in beside:
            if target is not None:
                machine.write(target, found)

    return run


def _shuffle(statement: Statement) -> Run:
    """SHFL: another lane's register."""
    name, beside, at = results(statement, 0)
    value, lane, clamp = (source(operand) for operand in statement.operands[at : at + 3])
    kind = statement.modifiers[0]

    def run(machine: Machine) -> None:
        held, by, bound = value(machine), lane(machine), clamp(machine)
        for target in beside:
            if target is not None:
                machine.write(target, Unknown(False, True, machine.unknown("a shuffle's bounds").why))
        if name is None:
            return
        unknown = next((v for v in (held, by, bound) if isinstance(v, Unknown)), None)
        if unknown is not None:
            machine.write(name, Unknown(0, FULL, unknown.why))
            return
        if isinstance(held, int):
            machine.write(name, held)
            return
        own = _lanes(machine, machine.environment.lane(machine))
        step, limit = _lanes(machine, by), _lanes(machine, bound)
        segment = (limit >> 8) & 31
        most = (own & segment) | (limit & 31 & ~segment)
        least = own & segment
        goes = {
            "IDX": least | (step & ~segment & 31), "UP": own - step, "DOWN": own + step, "BFLY": own ^ step,
        }[kind]  # fmt: skip
        inside = goes >= most if kind == "UP" else goes <= most
        origin = np.where(inside, goes, own) & 31
        machine.write(name, np.take_along_axis(_lanes(machine, held), origin, axis=2).reshape(machine.shape))

    return run


_JOINED: Mapping[str, Any] = {
    "MIN": np.minimum, "MAX": np.maximum, "SUM": np.add, "AND": np.bitwise_and, "OR": np.bitwise_or,
    "XOR": np.bitwise_xor,
}  # fmt: skip
_NEUTRAL: Mapping[str, int] = {"MIN": 1 << 62, "MAX": -(1 << 62), "AND": -1}


def _reduce(statement: Statement) -> Run:
    """REDUX: one number of all lanes of a warp that are on."""
    name, _, at = results(statement, 0)
    reader = source(statement.operands[at])
    kind = next((m for m in statement.modifiers if m in _JOINED), "AND")
    is_signed, of_floats = statement.has("S32"), statement.has("F32")

    def run(machine: Machine) -> None:
        value, mask = reader(machine), machine.on
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
    """MATCH: the lanes that hold the same number; ALL tells with it whether all of them do."""
    name, beside, at = results(statement, 0)
    reader = wide(statement.operands[at]) if statement.has("U64") else source(statement.operands[at])
    every = statement.has("ALL")

    def run(machine: Machine) -> None:
        value, mask = reader(machine), machine.on
        if isinstance(value, Unknown):
            found: Value = Unknown(0, FULL, value.why)
            holds: Value = Unknown(False, True, value.why)
        else:
            on, held = _lanes(machine, mask), _lanes(machine, value)
            equal = (held[:, :, :, None] == held[:, :, None, :]) & on[:, :, None, :]
            weights = 1 << np.arange(machine.program.warp, dtype=np.int64)
            found = (equal * weights).sum(axis=3).reshape(machine.shape)
            whole = (equal == on[:, :, None, :]).all(axis=3).reshape(machine.shape)
            found, holds = (np.where(whole, found, 0), whole) if every else (found, True)
        if name is not None:
            machine.write(name, found)
        for target in beside:
            if target is not None:
                machine.write(target, holds)

    return run


# ── What only has to succeed ─────────────────────────────────────────────────────────────────────


def _succeed(statement: Statement) -> Run:
    """A wait that is over, an allocation that succeeds: predicates hold, registers are not known."""
    name, beside, _ = _targets(statement)

    def run(machine: Machine) -> None:
        for target in beside:
            if target is not None:
                machine.write(target, True)
        if name is not None:
            machine.write(name, machine.unknown(f"the result of {statement.opcode}"))

    return run


def _targets(statement: Statement) -> tuple[str | None, list[str | None], int]:
    if not any(o.kind is OperandKind.REGISTER for o in statement.operands):
        beside: list[str | None] = [
            o.name for o in statement.operands if o.kind is OperandKind.PREDICATE and not is_nothing(o)
        ]
        return None, beside[:1], 0
    first = next((o for o in statement.operands if o.kind is not OperandKind.PREDICATE), None)
    if first is None or first.kind is not OperandKind.REGISTER:
        return None, [
            None if is_nothing(o) else o.name
            for o in statement.operands[:1]
            if o.kind is OperandKind.PREDICATE
        ], 0  # fmt: skip
    return results(statement, 0)


def _nothing(_statement: Statement) -> Run:
    return lambda _machine: None


CONTROL: Mapping[str, Build] = {
    "BRX": _branch_by_register,
    "BRXU": _branch_by_register,
    "RET": _branch_by_register,
    "EXIT": _exit,
    "KILL": _exit,
    "BPT": _exit,
    "BSSY": _begin,
    "BSYNC": _converge,
    "BREAK": _break,
    "BMOV": _move_barrier,
    "BAR": _meet,
    "S2R": _special,
    "S2UR": _special,
    "CS2R": _special,
    "CS2UR": _special,
    "R2UR": _to_uniform,
    "ELECT": _elect,
    "VOTE": _vote,
    "VOTEU": _vote,
    "SHFL": _shuffle,
    "REDUX": _reduce,
    "CREDUX": _reduce,
    "MATCH": _match,
    "SYNCS": _succeed,
    "USETMAXREG": _succeed,
    "UTCATOMSWS": _succeed,
}

NOTHING = words("""
    NOP DEPBAR MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL CCTLT UCCTL YIELD NANOSLEEP WARPSYNC LDGDEPBAR
    ARRIVES WARPGROUP WARPGROUPSET UTMACMDFLUSH UTMACCTL UTMAPF UBLKPF UTCBAR UTCCP UTCSHIFT UCGABAR_ARV
    UCGABAR_WAIT PREEXIT ACQBULK PMTRIG UVIRTCOUNT ENDCOLLECTIVE SETMAXREG STTM UTCHMMA UTCQMMA UTCIMMA
    UTCOMMA
    """)
"""Instructions that change nothing that is followed here."""
