"""SASS logic, moves, selections, bit operations and packed predicates.

**Source** as for `sass.integer`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Unknown,
    Value,
    apply,
    bits_unknown,
    choose,
    data_of,
    invert,
    is_spoiled,
)
from artifact_inspector.execution.interpreter.numbers import as_predicate, each
from artifact_inspector.execution.interpreter.shifted import whole
from artifact_inspector.execution.sass.operands import (
    Build,
    Run,
    both,
    either,
    is_nothing,
    least,
    move,
    not_understood,
    plain,
    predicate,
    results,
    source,
    wide,
    write_wide,
    writes,
)
from artifact_inspector.formats.sass.statement import Operand, OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Logic ────────────────────────────────────────────────────────────────────────────────────────


def _lut(table: int, a: Any, b: Any, c: Any) -> Any:
    """Any function of three bits; the highest bit of the table is the result for a=1, b=1, c=1."""
    found: Any = 0
    for row in range(8):
        if table >> row & 1:
            term = a if row & 4 else a ^ FULL
            term = term & (b if row & 2 else b ^ FULL) & (c if row & 1 else c ^ FULL)
            found = found | term
    return found


_SHORT: Mapping[int, Callable[[Any, Any, Any], Any]] = {
    0xC0: lambda a, b, _c: a & b,
    0xFC: lambda a, b, _c: a | b,
    0x3C: lambda a, b, _c: a ^ b,
    0x33: lambda _a, b, _c: b ^ FULL,
    0x30: lambda a, b, _c: a & (b ^ FULL),
    0xF8: lambda a, b, c: a | (b & c),
    0xFE: lambda a, b, c: a | b | c,
    0x96: lambda a, b, c: a ^ b ^ c,
    0x80: lambda a, b, c: a & b & c,
    0x78: lambda a, b, c: a ^ (b & c),
    0xEA: lambda a, b, c: (a & b) | c,
    0x6C: lambda a, b, c: (a & c) ^ b,
    0xC8: lambda a, b, c: (a | c) & b,
    0xF2: lambda a, b, c: a | ((b ^ FULL) & c),
}


def _logic(statement: Statement) -> Run:
    name, beside, at = results(statement, 0)
    *sources, table = statement.operands[at : at + 4]
    more = statement.operands[at + 4 :]
    readers = [source(operand) for operand in sources]
    number = table.value & 0xFF
    function = _SHORT.get(number) or partial(_lut, number)
    combine = predicate(more[0]) if more else None
    wants_both = statement.has("PAND")

    def run(machine: Machine) -> None:
        first, second, third = readers
        found = _logic_known(number, function, (first(machine), second(machine), third(machine)))
        if name is not None:
            machine.write(name, found)
        if beside and beside[0] is not None:
            holds = as_predicate(apply(lambda v: v != 0, found))
            if combine is not None:
                holds = (both if wants_both else either)(holds, combine(machine))
            machine.write(beside[0], holds)

    return run


def _logic_known(table: int, function: Callable[..., Any], values: tuple[Value, Value, Value]) -> Value:
    """The result of a lookup table; a bit is known if its unknown inputs make no difference."""
    free = [at for at, value in enumerate(values) if isinstance(value, Unknown)]
    if not free:
        return function(*values)
    values = tuple(map(whole, values))
    why = 0
    for value in values:
        why |= value.why if isinstance(value, Unknown) else 0
    if _matters(table, values, free):
        return Unknown(0, FULL, why)
    first: Any = None
    bad: Any = 0
    for tried in range(1 << len(free)):
        inputs = [data_of(value) for value in values]
        for place, at in enumerate(free):
            data, spoiled, _ = values[at]
            inputs[at] = (data & (FULL ^ spoiled)) | (spoiled if tried >> place & 1 else 0)
        found = _lut(table, *inputs)
        if first is None:
            first = found
        else:
            bad = bad | (first ^ found)
    return Unknown(first, bad, why) if np.any(bad) else first


def _matters(table: int, values: tuple[Value, ...], free: list[int]) -> bool:
    """Whether entirely unknown inputs, the others being zero, leave no bit of the result known."""
    if any(is_spoiled(values[at]) is False for at in free):
        return False
    if any(value.__class__ is not int or value for at, value in enumerate(values) if at not in free):
        return False
    rows = [row for row in range(8) if all(at in free or not row >> (2 - at) & 1 for at in range(3))]
    return len({table >> row & 1 for row in rows}) > 1


def _predicates(statement: Statement) -> Run:
    """PLOP3: two functions of three predicates."""
    operands = statement.operands
    targets = [None if is_nothing(o) else o.name for o in operands[:2]]
    readers = [predicate(operand) for operand in operands[2:5]]
    tables = [operand.value & 0xFF for operand in operands[5:7]]

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        for target, table in zip(targets, tables, strict=False):
            if target is not None:
                found: Value = False
                for row in range(8):
                    if table >> row & 1:
                        term: Value = True
                        for bit, value in zip((4, 2, 1), values, strict=True):
                            term = both(term, value if row & bit else invert(value))
                        found = either(found, term)
                machine.write(target, found)

    return run


# ── Moves and bits ───────────────────────────────────────────────────────────────────────────────


def _select(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    real = statement.base in ("FSEL", "UFSEL")
    first, second, chosen = statement.operands[at : at + 3]
    if statement.has("64"):
        left, right, picks = wide(first), wide(second), predicate(chosen)
        return lambda machine: write_wide(
            machine, name, choose(picks(machine), left(machine), right(machine))
        )
    yes, no, chooses = source(first, real=real), source(second, real=real), predicate(chosen)
    return writes(name, lambda machine: choose(chooses(machine), yes(machine), no(machine)))


def _permute(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    first, selector, second = statement.operands[at : at + 3]
    if len(statement.modifiers) > 0 or selector.kind is not OperandKind.NUMBER:
        return _permute_by_register(statement, name, (first, selector, second))
    low, high = source(first), source(second)
    picks = [(selector.value >> (4 * byte)) & 15 for byte in range(4)]

    def permute(a: Known, b: Known) -> Known:
        found: Known = 0
        for byte, pick in enumerate(picks):
            taken = ((a if pick & 7 < 4 else b) >> (8 * (pick & 3))) & 0xFF
            if pick & 8:
                taken = (taken >> 7) * 0xFF
            found = found | (taken << (8 * byte))
        return found

    def permuted(machine: Machine) -> Value:
        a, b = low(machine), high(machine)
        found: Value = permute(data_of(a), data_of(b))
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            bad = permute(bits_unknown(a), bits_unknown(b))  # a sign is as unknown as its bit
            why = (a.why if isinstance(a, Unknown) else 0) | (b.why if isinstance(b, Unknown) else 0)
            found = Unknown(data_of(found), bad, why) if np.any(bad) else found
        return found

    return writes(name, permuted)


def _permute_by_register(statement: Statement, name: str | None, operands: tuple[Operand, ...]) -> Run:
    if statement.modifiers:
        return not_understood(name, statement.opcode)
    readers = [source(operand) for operand in operands]

    def permute(a: Known, picks: Known, b: Known) -> Known:
        found: Known = 0
        both = a | (b << 32)
        for byte in range(4):
            pick = (picks >> (4 * byte)) & 15
            taken = (both >> (8 * (pick & 7))) & 0xFF
            whole = (taken >> 7) * 0xFF
            found = found | (np.where(pick & 8, whole, taken).astype(np.int64) << (8 * byte))
        return found

    return writes(name, lambda machine: _single(apply(permute, *(reader(machine) for reader in readers))))


def _single(value: Value) -> Value:
    """A zero-dimensional array as a number."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return value.item()
    return value


def _find_leading(statement: Statement) -> Run:
    name, beside, at = results(statement, 0)
    operand = statement.operands[at]
    unsigned, shift = statement.has("U32"), statement.has("SH")
    reader = source(operand)

    def leading(number: int) -> int:
        if not unsigned and number >> 31:
            number ^= FULL
        if number == 0:
            return FULL
        top = number.bit_length() - 1
        return 31 - top if shift else top

    def run(machine: Machine) -> None:
        value = reader(machine)
        if name is not None:
            machine.write(name, apply(partial(each, leading), value))
        if beside and beside[0] is not None:
            machine.write(beside[0], as_predicate(apply(lambda v: v != 0, value)))

    return run


def _extend(statement: Statement) -> Run:
    name, _, at = results(statement, 0)
    value, width = source(statement.operands[at]), source(statement.operands[at + 1])
    unsigned, wraps = statement.has("U32"), statement.has("W")

    def extend(number: Known, bits: Known) -> Known:
        bits = bits & 31 if wraps else least(bits, 32)
        kept = number & ((1 << bits) - 1)
        if unsigned:
            return kept
        sign = (1 << bits) >> 1
        return ((kept ^ sign) - sign) & FULL

    return writes(name, lambda machine: apply(extend, value(machine), width(machine)))


def _bit_mask(a: Known, width: Known) -> Known:
    return (((1 << least(width, 32)) - 1) << least(a, 32)) & FULL


def _pack_predicates(statement: Statement) -> Run:
    """P2R: replace the bits of a register that a mask selects by predicates."""
    name, _, at = results(statement, 0)
    bank = "UP" if statement.operands[at].name == "UPR" else "P"
    under, mask = source(statement.operands[at + 1]), statement.operands[at + 2].value
    shift = next((8 * int(m[1:]) for m in statement.modifiers if m in ("B1", "B2", "B3")), 0)

    def packed(machine: Machine) -> Value:
        found = under(machine)
        for number in range(7):
            if mask >> number & 1:
                found = _put_bit(found, 1 << (number + shift), machine.read(f"{bank}{number}"))
        return found

    return writes(name, packed)


def _put_bit(value: Value, bit: int, holds: Value) -> Value:
    data = data_of(value) & (FULL ^ bit)
    on = data_of(holds)
    data = data | (np.where(on, bit, 0) if isinstance(on, np.ndarray) else (bit if on else 0))
    if not isinstance(value, Unknown) and not isinstance(holds, Unknown):
        return data
    bad: Any = (value.bad & (FULL ^ bit)) if isinstance(value, Unknown) else 0
    why = (value.why if isinstance(value, Unknown) else 0) | (holds.why if isinstance(holds, Unknown) else 0)
    if isinstance(holds, Unknown):
        bad = bad | np.where(holds.bad, bit, 0)
    return Unknown(data, bad, why) if np.any(bad) else data


def _unpack_predicates(statement: Statement) -> Run:
    """R2P: copy the bits of a register that a mask selects to predicates."""
    bank = "UP" if statement.operands[0].name == "UPR" else "P"
    reader, mask = source(statement.operands[1]), statement.operands[2].value
    shift = next((8 * int(s[1:]) for s in statement.operands[1].suffix if s in ("B1", "B2", "B3")), 0)

    def run(machine: Machine) -> None:
        value = reader(machine)
        for number in range(7):
            if mask >> number & 1:
                bit = 1 << (number + shift)
                machine.write(f"{bank}{number}", _bit_of(value, bit))

    return run


def _bit_of(value: Value, bit: int) -> Value:
    data: Any = (data_of(value) & bit) != 0
    if isinstance(value, Unknown):
        bad: Any = (value.bad & bit) != 0
        return Unknown(data, bad, value.why) if np.any(bad) else data
    return as_predicate(data)


LOGIC: Mapping[str, Build] = {
    "LOP3": _logic,
    "PLOP3": _predicates,
    "MOV": move,
    "MOV32I": move,
    "SEL": _select,
    "FSEL": _select,
    "PRMT": _permute,
    "POPC": plain(partial(each, int.bit_count), 1),
    "BREV": plain(partial(each, lambda number: int(f"{number:032b}"[::-1], 2)), 1),
    "BMSK": plain(_bit_mask, 2),
    "FLO": _find_leading,
    "SGXT": _extend,
    "P2R": _pack_predicates,
    "UP2UR": _pack_predicates,
    "R2P": _unpack_predicates,
    "UR2UP": _unpack_predicates,
}
"""Opcode, without modifiers and without the `U` of uniform instructions → builder of its run."""
