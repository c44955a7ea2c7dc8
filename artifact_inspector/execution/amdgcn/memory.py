"""AMDGCN accesses to global memory, LDS, scratch and kernel arguments.

**Source** AMD Instinct MI300 ISA, "Buffer Addressing" and "LDS Operations"; RDNA 3 ISA, the same chapters.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.operands import Reader, Run, on_lanes, source, wide
from artifact_inspector.execution.interpreter.access import (
    access_global,
    load_global,
    load_shared,
    lose_shared,
    store_shared,
)
from artifact_inspector.execution.interpreter.asked import Lanes, lanes_of
from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Mask,
    Unknown,
    Value,
    apply,
    choose,
    is_true,
    spread,
)
from artifact_inspector.formats.amdgcn.operations import Action, Meaning
from artifact_inspector.formats.amdgcn.statement import Bank, Operand, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.amdgcn.operands import Build
    from artifact_inspector.execution.interpreter.machine import Machine


def _offset(statement: Statement) -> int:
    return statement.number("offset")


def _write(
    machine: Machine, names: tuple[str, ...], values: list[Value], meaning: Meaning, inside: Mask = True
) -> None:
    """Write loaded words to registers; 0 for lanes outside the range of the buffer."""
    for name, value in zip(names, values, strict=False):
        if meaning.keeps:
            value = machine.unknown("the other half of a register")
        elif meaning.signed:
            sign = 1 << (8 * meaning.size - 1)
            value = apply(lambda v, sign=sign: ((v ^ sign) - sign) & FULL, value)
        machine.write(name, choose(inside, value, 0) if inside is not True else value)


def _words(meaning: Meaning) -> int:
    return max(meaning.size // 4, 1)


# ── Buffers ──────────────────────────────────────────────────────────────────────────────────────


class _Buffer:
    """The address of a buffer instruction: a descriptor in four scalar registers, plus offsets."""

    def __init__(self, statement: Statement, size: int, first: int) -> None:
        operands = statement.operands[first:]
        at = next(n for n, o in enumerate(operands) if o.bank is Bank.SCALAR and len(o.names) == 4)
        self.words = [source(operands[at], n) for n in range(4)]
        vector = operands[:at]
        indexed = statement.has("idxen")
        self.lane = source(vector[-1], 1 if indexed else 0) if vector and statement.has("offen") else None
        self.index = source(vector[-1]) if vector and indexed else None
        self.base = source(operands[at + 1]) if len(operands) > at + 1 else (lambda _machine: 0)
        self.fixed = _offset(statement)
        self.size = size

    def find(self, machine: Machine) -> tuple[Value, Mask]:
        """The address of each lane, and the lanes in range. Others read 0 and write nothing."""
        low, high, records, _flags = (reader(machine) for reader in self.words)
        lane = self.lane(machine) if self.lane is not None else 0
        offset = apply(lambda a, b: a + b + self.fixed, lane, self.base(machine))
        if self.index is not None:
            stride = apply(lambda v: v >> 16 & 0x3FFF, high)
            offset = apply(lambda a, i, s: a + i * s, offset, self.index(machine), stride)
        base = apply(lambda a, b: a | (b & 0xFFFF) << 32, low, high)
        address = apply(lambda a, b: a + b, base, offset)
        within = apply(lambda o, n: o + self.size <= n, offset, records)
        if isinstance(within, Unknown):
            return address, True
        return address, within if isinstance(within, np.ndarray) else bool(within)


def _inside(machine: Machine, within: Mask) -> Mask:
    return machine.on if within is True else machine._and(machine.on, within)


def _copied(machine: Machine, lanes: Lanes | None, size: int) -> None:
    """A direct copy from global memory to LDS; its LDS address is not modelled."""
    value = load_global(machine, lanes, size, 1)[0]
    held = value if isinstance(value, Unknown) else machine.unknown("data copied into LDS")
    lose_shared(machine, held.why)


def _load_buffer(statement: Statement, meaning: Meaning) -> Run:
    to_shared = statement.has("lds") or meaning.into_shared
    where = _Buffer(statement, meaning.size, 0 if to_shared else 1)
    names = () if to_shared else statement.operands[0].names

    def run(machine: Machine) -> None:
        address, within = where.find(machine)
        mask = _inside(machine, within)
        lanes = access_global(machine, address, meaning.size, reads=True, writes=False, mask=mask)
        if to_shared:
            _copied(machine, lanes, meaning.size)
            return
        if lanes is None and not is_true(mask) and machine.maybe is None:
            values: list[Value] = [0] * _words(meaning)
        else:
            values = list(load_global(machine, lanes, meaning.size, _words(meaning)))
        if is_true(machine.on) or machine.maybe is not None:
            _write(machine, names, values, meaning, within)

    return on_lanes(run)


def _store_buffer(statement: Statement, meaning: Meaning) -> Run:
    where = _Buffer(statement, meaning.size, 1)

    def run(machine: Machine) -> None:
        address, within = where.find(machine)
        access_global(machine, address, meaning.size, reads=False, writes=True, mask=_inside(machine, within))

    return on_lanes(run)


def _atomic_buffer(statement: Statement, meaning: Meaning) -> Run:
    where = _Buffer(statement, meaning.size, 1)
    names = statement.operands[0].names if _returns(statement) else ()

    def run(machine: Machine) -> None:
        address, within = where.find(machine)
        access_global(machine, address, meaning.size, reads=False, writes=True, mask=_inside(machine, within))
        for name in names:
            machine.write(name, machine.unknown("the result of an atomic"))

    return on_lanes(run)


def _returns(statement: Statement) -> bool:
    return any(statement.has(name) for name in ("glc", "sc0")) or "RETURN" in statement.modifiers.get(
        "th", ""
    )


# ── Global memory by address ─────────────────────────────────────────────────────────────────────


def _address(statement: Statement, at: int) -> Reader:
    """Reader of an address plus offset: a vector register pair, or a scalar pair (last) plus one register."""
    lane, last = statement.operands[at], statement.operands[-1]
    base = last if last.bank is Bank.SCALAR and len(last.names) == 2 else None
    fixed = _offset(statement)
    if base is None:
        reader = wide(lane)
        return lambda machine: apply(lambda v: v + fixed, reader(machine))
    scalar, vector = wide(base), source(lane)
    return lambda machine: apply(lambda a, b: a + b + fixed, scalar(machine), vector(machine))


def _load_global(statement: Statement, meaning: Meaning) -> Run:
    to_shared = meaning.into_shared or statement.has("lds")
    names = () if to_shared else statement.operands[0].names
    where = _address(statement, 0 if to_shared else 1)

    def run(machine: Machine) -> None:
        lanes = access_global(machine, where(machine), meaning.size, reads=True, writes=False)
        if to_shared:
            _copied(machine, lanes, meaning.size)
        elif is_true(machine.on) or machine.maybe is not None:
            _write(machine, names, list(load_global(machine, lanes, meaning.size, _words(meaning))), meaning)

    return on_lanes(run)


def _store_global(statement: Statement, meaning: Meaning) -> Run:
    where = _address(statement, 0)

    def run(machine: Machine) -> None:
        access_global(machine, where(machine), meaning.size, reads=False, writes=True)

    return on_lanes(run)


def _atomic_global(statement: Statement, meaning: Meaning) -> Run:
    returns = _returns(statement)
    names = statement.operands[0].names if returns else ()
    where = _address(statement, 1 if returns else 0)

    def run(machine: Machine) -> None:
        access_global(machine, where(machine), meaning.size, reads=False, writes=True)
        for name in names:
            machine.write(name, machine.unknown("the result of an atomic"))

    return on_lanes(run)


# ── Scalar loads ─────────────────────────────────────────────────────────────────────────────────


def _load_scalar(statement: Statement, meaning: Meaning) -> Run:
    """Load kernel arguments, or memory at an address that is uniform for the wave."""
    target, base = statement.operands[0], wide(statement.operands[1])
    others = [source(operand) for operand in statement.operands[2:3]]
    fixed, words = _offset(statement), _words(meaning)

    def run(machine: Machine) -> None:
        address = base(machine)
        for other in others:
            address = apply(lambda a, b: a + b, address, other(machine))
        address = _common(machine, apply(lambda v: v + fixed, address))
        if isinstance(address, int) and (given := machine.environment.arguments(address, meaning.size)):
            values: list[Value] = given
        else:
            values = _of_memory(machine, address, words)
        for name, value in zip(target.names, values, strict=False):
            machine.write(name, value)

    return run


def _common(machine: Machine, address: Value) -> Value:
    """An address as one number if all active lanes agree on it."""
    on = spread(machine.on, machine.shape)
    if isinstance(address, Unknown):
        if spread(address.bad, machine.shape)[on].any():
            return address
        address = address.data
    if isinstance(address, np.ndarray) and on.any():
        held = spread(address, machine.shape)[on]
        return int(held[0]) if (held == held[0]).all() else address
    return address


def _of_memory(machine: Machine, address: Value, words: int) -> list[Value]:
    """Words that a wave loads once for all of its lanes."""
    lane = machine.environment.lane(machine)
    first: Any = np.asarray(lane == 0)
    mask = machine._and(machine.on, first) if machine.on is not True else first
    lanes = access_global(machine, address, 4 * words, reads=True, writes=False, mask=mask)
    values = load_global(machine, lanes, 4 * words, words)
    return [_to_waves(machine, value) for value in values]


def _to_waves(machine: Machine, value: Value) -> Value:
    if isinstance(value, Unknown):
        data, bad = (_to_waves(machine, held) for held in (value.data, value.bad))
        return Unknown(data, bad, value.why)
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    firsts = value[:, :: machine.program.warp]
    if (firsts == firsts.flat[0]).all():
        return int(firsts.flat[0])
    return np.repeat(firsts, machine.program.warp, axis=1)


def _load_scalar_buffer(statement: Statement, meaning: Meaning) -> Run:
    target, descriptor = statement.operands[:2]
    low, high = source(descriptor), source(descriptor, 1)
    others = [source(operand) for operand in statement.operands[2:3]]
    fixed, words = _offset(statement), _words(meaning)

    def run(machine: Machine) -> None:
        address = apply(lambda a, b: (a | (b & 0xFFFF) << 32) + fixed, low(machine), high(machine))
        for other in others:
            address = apply(lambda a, b: a + b, address, other(machine))
        for name, value in zip(target.names, _of_memory(machine, address, words), strict=False):
            machine.write(name, value)

    return run


# ── LDS ──────────────────────────────────────────────────────────────────────────────────────────


def _places(statement: Statement, meaning: Meaning, at: int) -> list[Reader]:
    """Readers of the LDS addresses of each lane, one or two."""
    base = source(statement.operands[at])
    if meaning.places == 1:
        offsets = [_offset(statement)]
    else:
        each = meaning.size * meaning.stride
        offsets = [statement.number(name) * each for name in ("offset0", "offset1")]

    def moved(offset: int) -> Reader:
        return lambda machine: apply(lambda v: (v + offset) & FULL, base(machine))

    return [moved(offset) for offset in offsets]


def _load_shared(statement: Statement, meaning: Meaning) -> Run:
    names = statement.operands[0].names
    places, words = _places(statement, meaning, 1), _words(meaning)

    def run(machine: Machine) -> None:
        found: list[Value] = []
        for place in places:
            lanes = lanes_of(machine, place(machine))
            found += list(load_shared(machine, lanes, meaning.size, words))
        if is_true(machine.on) or machine.maybe is not None:
            _write(machine, names, found, meaning)

    return on_lanes(run)


def _store_shared(statement: Statement, meaning: Meaning) -> Run:
    places, words = _places(statement, meaning, 0), _words(meaning)
    given = [
        [source(operand, n) for n in range(words)] for operand in statement.operands[1 : 1 + len(places)]
    ]

    def run(machine: Machine) -> None:
        for place, readers in zip(places, given, strict=True):
            values = [reader(machine) for reader in readers]
            if meaning.keeps:
                values = [apply(lambda v: v >> 16, value) for value in values]
            store_shared(machine, lanes_of(machine, place(machine)), meaning.size, values)

    return on_lanes(run)


def _atomic_shared(statement: Statement, meaning: Meaning) -> Run:
    returns = "_rtn" in statement.base
    places = _places(statement, meaning, 1 if returns else 0)
    names = statement.operands[0].names if returns else ()

    def run(machine: Machine) -> None:
        lanes = lanes_of(machine, places[0](machine))
        store_shared(
            machine, lanes, meaning.size, [machine.unknown("the result of an atomic")] * _words(meaning)
        )
        for name in names:
            machine.write(name, machine.unknown("the result of an atomic"))

    return on_lanes(run)


# ── Scratch ──────────────────────────────────────────────────────────────────────────────────────


def _scratch(statement: Statement, first: int) -> Reader:
    parts: list[Operand] = [
        o
        for o in statement.operands[first:]
        if o.bank in (Bank.VECTOR, Bank.SCALAR, Bank.NUMBER) and len(o.names) < 2
    ]
    readers, fixed = [source(operand) for operand in parts], _offset(statement)

    def read(machine: Machine) -> Value:
        found: Value = fixed
        for reader in readers:
            found = apply(lambda a, b: a + b, found, reader(machine))
        return found

    return read


def _load_scratch(statement: Statement, meaning: Meaning) -> Run:
    names, where = statement.operands[0].names, _scratch(statement, 1)

    def run(machine: Machine) -> None:
        address = where(machine)
        values: list[Value] = []
        for word in range(_words(meaning)):
            held = machine.local.load_word(address + 4 * word) if isinstance(address, int) else None
            values.append(
                machine.unknown("the content of scratch memory") if held is None or meaning.size < 4 else held
            )
        _write(machine, names, values, meaning)

    return on_lanes(run)


def _store_scratch(statement: Statement, meaning: Meaning) -> Run:
    # Scratch instructions take the address first, buffer instructions the data.
    buffer = statement.base.startswith("buffer")
    data = statement.operands[0 if buffer else 1]
    rest = statement._replace(
        operands=statement.operands[1:] if buffer else (statement.operands[0], *statement.operands[2:])
    )
    where, readers = _scratch(rest, 0), [source(data, n) for n in range(_words(meaning))]

    def run(machine: Machine) -> None:
        address = where(machine)
        if not isinstance(address, int):
            machine.local.words.clear()
            return
        for word, reader in enumerate(readers):
            value = reader(machine) if meaning.size >= 4 else machine.unknown("the content of scratch memory")
            machine.local.store_word(address + 4 * word, value, machine.on)

    return on_lanes(run)


MEMORY: Mapping[Action, Build] = {
    Action.LOAD_SCALAR: _load_scalar,
    Action.LOAD_SCALAR_BUFFER: _load_scalar_buffer,
    Action.LOAD_BUFFER: _load_buffer,
    Action.STORE_BUFFER: _store_buffer,
    Action.ATOMIC_BUFFER: _atomic_buffer,
    Action.LOAD_GLOBAL: _load_global,
    Action.STORE_GLOBAL: _store_global,
    Action.ATOMIC_GLOBAL: _atomic_global,
    Action.LOAD_SCRATCH: _load_scratch,
    Action.STORE_SCRATCH: _store_scratch,
    Action.LOAD_SHARED: _load_shared,
    Action.STORE_SHARED: _store_shared,
    Action.ATOMIC_SHARED: _atomic_shared,
}
"""Action → builder of its run."""
