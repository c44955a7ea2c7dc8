"""SASS accesses to global, shared, local and constant memory, and atomics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from artifact_inspector.execution.interpreter.access import (
    access_atomic,
    access_copied,
    access_global,
    access_shared,
    keep_global,
    load_global,
    load_shared,
    not_in_shared,
    past_l1_served,
    store_shared,
)
from artifact_inspector.execution.interpreter.asked import Lanes, lanes_of
from artifact_inspector.execution.interpreter.lanes import FULL, Mask, Unknown, Value, apply, data_of, is_true
from artifact_inspector.execution.interpreter.numbers import cut
from artifact_inspector.execution.sass.operands import (
    Build,
    Reader,
    Run,
    following,
    is_nothing,
    predicate,
    results,
    source,
    wide,
)
from artifact_inspector.formats.sass.statement import Operand, OperandKind, Statement, bytes_moved

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

_SCALE = re.compile(r"X(\d+)$")


def _address(operand: Operand, *, is_global: bool, extended: bool = True) -> Reader:
    """Reader of the address of each lane: 64 bits for global memory, otherwise 32."""
    readers: list[Reader] = []
    for name, suffix in operand.parts:
        register = Operand(OperandKind.REGISTER, name)
        is_pair = is_global and ("64" in suffix or (not suffix and (name.startswith("U") or extended)))
        if is_pair and not is_nothing(register):
            readers.append(wide(register))
            continue
        scale = next((int(found[1]) for part in suffix if (found := _SCALE.match(part))), 1)
        readers.append(_scaled(source(register), scale) if scale > 1 else source(register))
    offset = operand.value

    def read(machine: Machine) -> Value:
        found: Value = offset
        for reader in readers:
            found = apply(lambda a, b: a + b, found, reader(machine))
        return found if is_global else apply(lambda v: v & FULL, found)

    return read


def _scaled(reader: Reader, scale: int) -> Reader:
    return lambda machine: apply(lambda v: v * scale, reader(machine))


def _addresses(statement: Statement) -> list[Operand]:
    return [operand for operand in statement.operands if operand.kind is OperandKind.ADDRESS]


def _data(statement: Statement) -> Operand | None:
    """The register that is stored: the last operand that is not an address."""
    rest = [o for o in statement.operands if o.kind in (OperandKind.REGISTER, OperandKind.NUMBER)]
    return rest[-1] if rest else None


_SIGNED = {"S8": 8, "S16": 16}


def _narrow(statement: Statement, value: Value) -> Value:
    """A loaded byte or half-word, sign-extended if signed."""
    bits = next((_SIGNED[m] for m in statement.modifiers if m in _SIGNED), None)
    return value if bits is None else apply(lambda v: cut(v, bits, is_signed=True) & FULL, value)


def _write_words(machine: Machine, name: str | None, values: list[Value]) -> None:
    if name is not None:
        for step, value in enumerate(values):
            machine.write(following(name, step), value)


# ── Global memory ────────────────────────────────────────────────────────────────────────────────


def _load_global(statement: Statement) -> Run:
    name, _, _ = results(statement, 0)
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=True, extended=statement.has("E"))
    words = max(size // 4, 1)

    def run(machine: Machine) -> None:
        lanes = access_global(machine, at(machine), size, reads=True, writes=False)
        values = [_narrow(statement, value) for value in load_global(machine, lanes, size, words)]
        if is_true(machine.on) or machine.maybe is not None:
            _write_words(machine, name, values)

    return run


def _store_global(statement: Statement) -> Run:
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=True, extended=statement.has("E"))

    def run(machine: Machine) -> None:
        access_global(machine, at(machine), size, reads=False, writes=True)

    return run


def _atomic_global(statement: Statement) -> Run:
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=True, extended=statement.has("E"))
    returns = statement.base.startswith("ATOM")
    names = _written(statement) if returns else []
    data = _data(statement)
    stored = source(data) if data is not None and statement.has("EXCH") and size == 4 else None

    def run(machine: Machine) -> None:
        lanes = access_global(machine, at(machine), size, reads=False, writes=True, updates=True)
        if lanes is not None:
            keep_global(machine, lanes, size, None if stored is None else stored(machine))
        for name in names:
            machine.write(name, _nothing_of(machine, name, "the result of an atomic"))

    return run


def _nothing_of(machine: Machine, name: str, why: str) -> Value:
    found = machine.unknown(why)
    return Unknown(False, True, found.why) if name.lstrip("U").startswith("P") else found


def _written(statement: Statement) -> list[str]:
    """All registers and predicates that an atomic writes."""
    name, beside, _ = results(statement, 0)
    size = max(bytes_moved(statement.opcode) // 4, 1)
    names = [following(name, step) for step in range(size)] if name is not None else []
    return names + [found for found in beside if found is not None]


def _copy_to_shared(statement: Statement) -> Run:
    """LDGSTS: copy from global to shared memory; a false last predicate writes zeros and reads nothing."""
    size = bytes_moved(statement.opcode)
    first, second = _addresses(statement)[:2]
    if first.prefix == "desc":  # operand order of some versions
        first, second = second, first
    target = _address(first, is_global=False)
    origin = _address(second, is_global=True, extended=statement.has("E"))
    chosen = [o for o in statement.operands if o.kind is OperandKind.PREDICATE]
    given = [predicate(o) for o in chosen]
    past_l1, words = statement.has("BYPASS"), max(size // 4, 1)
    # Nsight Compute counts wavefronts of a copy past the L1 as if P0 did not hold.
    as_zeros, as_read = (
        past_l1 and any(o.name == "P0" and o.invert is inverted for o in chosen) for inverted in (False, True)
    )

    def run(machine: Machine) -> None:
        mask: Mask = machine.on
        for reader in given:
            holds = reader(machine)
            if isinstance(holds, Unknown) and is_true(mask & holds.bad):
                machine.counts.mark(machine.step.index, holds.why)
            data = data_of(holds)
            mask = mask & data if not isinstance(mask, bool) else (data if mask else False)
        address = origin(machine)
        near = target(machine)
        served = past_l1_served(machine, near) if past_l1 else None
        lanes = access_global(machine, address, size, reads=True, writes=False, mask=mask, served=served)
        if as_zeros:
            into = access_shared(machine, near, size)
        else:
            taken = lanes_of(machine, address) if as_read else lanes
            into = access_copied(machine, near, size, taken, past_l1=past_l1)
        values: Sequence[Value] = [0] * words
        if lanes is not None or machine.counts.why.get(machine.step.index):
            values = load_global(machine, lanes, size, words)
        store_shared(machine, into, size, values)

    return run


# ── Shared memory ────────────────────────────────────────────────────────────────────────────────


def _load_shared(statement: Statement) -> Run:
    name, _, _ = results(statement, 0)
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=False)
    words = max(size // 4, 1)

    def run(machine: Machine) -> None:
        lanes = access_shared(machine, at(machine), size, loads=True)
        values = [_narrow(statement, value) for value in load_shared(machine, lanes, size, words)]
        if is_true(machine.on) or machine.maybe is not None:
            _write_words(machine, name, values)

    return run


def _stored(statement: Statement) -> tuple[int, Reader, list[Reader]]:
    """Bytes that each lane stores, a reader of the address, and readers of the words."""
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=False)
    operand = _data(statement)
    return size, at, [] if operand is None else [source(operand, step=n) for n in range(max(size // 4, 1))]


def _store_shared(statement: Statement) -> Run:
    size, at, readers = _stored(statement)

    def run(machine: Machine) -> None:
        lanes = access_shared(machine, at(machine), size)
        store_shared(machine, lanes, size, [reader(machine) for reader in readers])

    return run


_MATRICES = re.compile(r"88(?:\.(\d))?(?=\.|$)|\.(\d)$")


def _matrix(statement: Statement) -> Run:
    """LDSM, STSM: 8 rows of 16 bytes per matrix; 8 lanes hold the row addresses of each matrix.

    A lane gets two neighbours of one row, or of one column if transposed: lane / 4 selects the row, lane % 4
    the pair.

    **Source** PTX ISA, "Warp-level matrix load instruction: ldmatrix".
    """
    found = _MATRICES.search(statement.opcode)
    count = int((found[1] or found[2] or 1) if found is not None else 1)
    at = _address(_addresses(statement)[0], is_global=False)
    loads, turned = statement.base == "LDSM", "MT88" in statement.opcode
    name = results(statement, 0)[0] if loads else None
    operand = None if loads else _data(statement)
    readers = [] if operand is None else [source(operand, step=n) for n in range(count)]

    def run(machine: Machine) -> None:
        lane = machine.environment.lane(machine)
        mask: Mask = machine.on & (lane < 8 * count) if machine.on is not True else lane < 8 * count
        mask = True if count == 4 and machine.on is True else mask
        lanes = access_shared(machine, at(machine), 16, mask, served=8)
        if loads:
            parts = [_matrix_lanes(machine, lanes, n, turned=turned) for n in range(count)]
            _write_words(machine, name, [_load_pair(machine, part) for part in parts])
        elif lanes is None:
            store_shared(machine, None, 16, [])
        else:
            for n, reader in enumerate(readers):
                _store_pair(machine, _matrix_lanes(machine, lanes, n, turned=turned), reader(machine))

    return run


def _matrix_lanes(machine: Machine, rows: Lanes | None, number: int, *, turned: bool) -> list[Lanes]:
    """The address of each lane's part of a matrix: a word, or two half-words if transposed."""
    if rows is None:
        return []
    if rows.starts is not None and machine.on is not True and len(machine.on) > 1:
        rows = rows.each
    lane = np.arange(machine.threads)
    first, row, pair = lane // 32 * 32 + 8 * number, lane % 32 // 4, lane % 4
    whose = [(2 * pair + half, 2 * row) for half in (0, 1)] if turned else [(row, 4 * pair)]
    on = None if machine.on is True else np.broadcast_to(machine.on, rows.addresses.shape)
    return [
        Lanes(rows.addresses[:, first + of] + beside, on, rows.repeat, rows.starts) for of, beside in whose
    ]


def _load_pair(machine: Machine, parts: list[Lanes]) -> Value:
    if not parts:
        return not_in_shared(machine)
    low, *rest = [load_shared(machine, part, 4 // len(parts), 1)[0] for part in parts]
    return apply(lambda a, b: a | b << 16, low, rest[0]) if rest else low


def _store_pair(machine: Machine, parts: list[Lanes], value: Value) -> None:
    for half, part in enumerate(parts):
        held = value if len(parts) == 1 else apply(lambda v, by=16 * half: v >> by & 0xFFFF, value)
        store_shared(machine, part, 4 // len(parts), [held])


def _atomic_shared(statement: Statement) -> Run:
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=False)
    names = _written(statement)
    added_up = statement.has("POPC")  # lanes with the same address are combined first
    operands = 2 if statement.has("CAS") or statement.has("CAST") else 1
    data = _data(statement)
    sets = source(data) if data is not None and statement.has("OR") and size == 4 else None

    def run(machine: Machine) -> None:
        if added_up:
            lanes = access_shared(machine, at(machine), size)
        else:
            lanes = access_atomic(machine, at(machine), size, operands)
        nothing = machine.unknown("the result of an atomic")
        left: list[Value] = [nothing] * max(size // 4, 1)
        alone = np.broadcast_to(machine.on, machine.shape).sum(axis=1).max() <= 1
        if sets is not None and lanes is not None and alone:
            held = load_shared(machine, lanes, size, 1)[0]
            left = [apply(lambda a, b: a | b, held, sets(machine))]
        store_shared(machine, lanes, size, left)
        for name in names:
            machine.write(name, _nothing_of(machine, name, "the result of an atomic"))

    return run


# ── Local memory and constants ───────────────────────────────────────────────────────────────────


def _load_local(statement: Statement) -> Run:
    name, _, _ = results(statement, 0)
    size = bytes_moved(statement.opcode)
    at = _address(_addresses(statement)[0], is_global=False)

    def run(machine: Machine) -> None:
        address = at(machine)
        values: list[Value] = []
        for word in range(max(size // 4, 1)):
            held = machine.local.load_word(address + 4 * word) if isinstance(address, int) else None
            values.append(machine.unknown("the content of local memory") if held is None else held)
        if size < 4:
            shift = 8 * (address & 3) if isinstance(address, int) else 0
            values = [apply(lambda v: (v >> shift) & ((1 << 8 * size) - 1), values[0])]
        _write_words(machine, name, [_narrow(statement, value) for value in values])

    return run


def _store_local(statement: Statement) -> Run:
    size, at, readers = _stored(statement)

    def run(machine: Machine) -> None:
        address = at(machine)
        if not isinstance(address, int):
            machine.local.words.clear()
            return
        for word, reader in enumerate(readers):
            value = reader(machine)
            if size < 4:
                value = value if address % 4 == 0 else machine.unknown("the content of local memory")
            machine.local.store_word((address + 4 * word) & ~3, value, machine.on)

    return run


def _load_constant(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    operand = statement.operands[at]
    size = bytes_moved(statement.opcode)
    readers = [source(operand, step=n) for n in range(max(size // 4, 1))]

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        if size < 4 and operand.kind is OperandKind.CONSTANT and not operand.parts:
            values = [machine.environment.constant(operand.bank, operand.value, size)]
        _write_words(machine, name, [_narrow(statement, value) for value in values])

    return run


# ── Matrix products ──────────────────────────────────────────────────────────────────────────────


def _warpgroup_product(statement: Statement) -> Run:
    """HGMMA and similar: four warps share the reads of B; each reads its part of A unless A is in registers.

    Wavefronts as measured with ncu on an H200: n/4 for the four warps, and four more per warp for A.
    """
    shape = next((m for m in statement.modifiers if m.count("x") == 2), "0x0x0")
    first = next((o for o in statement.operands[1:] if o.kind is not OperandKind.PREDICATE), None)
    columns = int(shape.split("x")[1])
    each = columns + (64 if first is not None and first.prefix == "gdesc" else 0)  # in sixteenths per warp

    def run(machine: Machine) -> None:
        counts, index = machine.counts, machine.step.index
        counts.wavefronts[index] += each * machine.group.warps // 16
        counts.wavefronts_ideal[index] += each * machine.group.warps // 16

    return run


MEMORY: Mapping[str, Build] = {
    "LDG": _load_global,
    "LD": _load_global,
    "STG": _store_global,
    "ST": _store_global,
    "RED": _atomic_global,
    "REDG": _atomic_global,
    "ATOM": _atomic_global,
    "ATOMG": _atomic_global,
    "LDGSTS": _copy_to_shared,
    "LDS": _load_shared,
    "STS": _store_shared,
    "LDSM": _matrix,
    "STSM": _matrix,
    "ATOMS": _atomic_shared,
    "REDS": _atomic_shared,
    "LDL": _load_local,
    "STL": _store_local,
    "LDC": _load_constant,
    "ULDC": _load_constant,
    "LDCU": _load_constant,
    "HGMMA": _warpgroup_product,
    "IGMMA": _warpgroup_product,
    "QGMMA": _warpgroup_product,
    "BGMMA": _warpgroup_product,
}
"""Opcode without modifiers → builder of its run."""
