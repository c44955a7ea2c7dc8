"""AMDGCN integer arithmetic: sums, products, shifts and bit operations, scalar and vector.

**Source** AMD Instinct MI300 and RDNA 3 Instruction Set Architecture documents, "Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from artifact_inspector.execution.amdgcn.operands import (
    Build,
    Reader,
    Run,
    mask_of,
    nonzero,
    on_lanes,
    put,
    put_halves,
    put_mask,
    put_wide,
    source,
    sources,
    wide,
)
from artifact_inspector.execution.amdgcn.plain import (
    is_scalar,
    operate,
    run_of,
    sum_wide,
    then_test,
    with_scc,
)
from artifact_inspector.execution.interpreter.lanes import FULL, Known, Unknown, Value, apply, signed
from artifact_inspector.execution.interpreter.numbers import as_predicate, cut, each, to_number
from artifact_inspector.formats.amdgcn.operations import Action, Meaning
from artifact_inspector.formats.amdgcn.statement import Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

# ── Sums ─────────────────────────────────────────────────────────────────────────────────────────


def _add(sign: int, *, swapped: bool = False, carries_in: bool = False) -> Build:
    """Sums and differences, with carry in and carry out."""

    def build(statement: Statement, meaning: Meaning) -> Run:
        if statement.has("clamp"):
            if sign > 0 or swapped or carries_in or meaning.bits != 32 or meaning.signed:
                raise ValueError(statement.opcode)
            return operate(lambda a, b: (a - b) * (a >= b), 2)(statement, meaning)
        if meaning.bits == 64:
            return operate((lambda a, b: a + b) if sign > 0 else (lambda a, b: a - b), 2)(statement, meaning)
        if meaning.condition == "constant":
            return _add_constant(statement, meaning)
        vector = not is_scalar(statement)
        makes = vector and (carries_in or meaning.condition == "carry") and len(statement.operands) > 3
        first = 2 if makes else 1
        left, right = sources(statement, first, 2)
        if swapped:
            left, right = right, left
        carry = statement.operands[first + 2].names if vector and carries_in else ()
        write, bits, is_signed = put(statement), meaning.bits, meaning.signed
        taken = statement.operands[1].names if makes else ()

        def run(machine: Machine) -> None:
            a, b = left(machine), right(machine)
            given: Value = 0
            if carries_in:
                held = machine.read("scc") if not vector else mask_of(
                    machine, machine.read(carry[0]), machine.read(carry[-1])
                )  # fmt: skip
                given = apply(to_number, _as_bits(held))
            total = apply(lambda x, y, c: x + sign * (y + c), a, b, given)
            write(machine, apply(lambda v: v & ((1 << bits) - 1), total))
            if makes:
                put_mask(machine, taken, as_predicate(apply(lambda v: (v >> 32 & 1) != 0, total)))
            elif not vector:
                over = apply(lambda x, y, c: _overflows(x, y, c, sign), a, b, given) if is_signed else total
                machine.write(
                    "scc", as_predicate(over if is_signed else apply(lambda v: (v >> 32 & 1) != 0, over))
                )

        return run_of(statement, run)

    return build


def _as_bits(value: Value) -> Value:
    """A predicate as an operand of `apply`: its unknown lanes become unknown numbers."""
    if isinstance(value, Unknown):
        return Unknown(value.data, np.where(value.bad, FULL, 0), value.why)
    return value


def _overflows(a: Known, b: Known, carry: Known, sign: int) -> Known:
    total = signed(a) + sign * (signed(b) + carry)
    return (total < -(1 << 31)) | (total >= 1 << 31)


def _add_constant(statement: Statement, meaning: Meaning) -> Run:
    """`s_addk_i32`, `s_mulk_i32`: the destination register and a 16-bit constant."""
    reader, write = source(statement.operands[0]), put(statement)
    number = cut(statement.operands[1].value, 16, is_signed=True)
    adds = meaning.action is Action.ADD

    def run(machine: Machine) -> None:
        held = reader(machine)
        write(machine, apply(lambda v: (v + number if adds else v * number) & FULL, held))
        if adds:
            machine.write("scc", as_predicate(apply(lambda v: _overflows(v, number & FULL, 0, 1), held)))

    return run


def _multiply(statement: Statement, meaning: Meaning) -> Run:
    if meaning.condition == "constant":
        return _add_constant(statement, meaning)
    return operate(lambda a, b: a * b, 2)(statement, meaning)


def _high(a: Known, b: Known) -> Known:
    """The upper half of a 32 × 32-bit product; an unsigned product may not fit a signed 64-bit number."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b >> 32
    low = (a & 0xFFFF) * b
    return ((a >> 16) * b + (low >> 16)) >> 16


def _multiply_wide(statement: Statement, meaning: Meaning) -> Run:
    """`v_mad_u64_u32`: a 32 × 32-bit product plus a 64-bit addend."""
    makes = len(statement.operands) == 5
    first = 2 if makes else 1
    left, right = sources(statement, first, 2)
    operand, names = statement.operands[first + 2], statement.operands[0].names
    added, low = wide(operand), source(operand)
    taken = statement.operands[1].names if makes else ()
    is_signed = meaning.signed

    def run(machine: Machine) -> None:
        a, b = (apply(lambda v: cut(v, 32, is_signed=is_signed), reader(machine)) for reader in (left, right))
        whole, lower = apply(sum_wide, a, b, added(machine)), apply(sum_wide, a, b, low(machine))
        put_halves(machine, names, lower, whole)
        if taken:
            put_mask(
                machine, taken, Unknown(False, True, machine.unknown("the carry of a 64-bit product").why)
            )

    return on_lanes(run)


# ── Bits ─────────────────────────────────────────────────────────────────────────────────────────


def _shift(statement: Statement, meaning: Meaning) -> Run:
    """Vector instructions take the shift count first, scalar instructions last."""
    scalar, bits, is_signed = is_scalar(statement), meaning.bits, meaning.signed
    left = meaning.action is Action.SHIFT_LEFT
    if bits == 16 and statement.has("op_sel"):
        raise ValueError(statement.opcode)
    value_at, count_at = (1, 2) if scalar else (2, 1)
    operands = statement.operands
    plain = sources(statement, 1, 2)
    value = wide(operands[value_at]) if bits == 64 else plain[value_at - 1]
    count = source(operands[count_at]) if bits == 64 else plain[count_at - 1]
    write, names = put(statement), operands[0].names

    def compute(v: Known, by: Known) -> Known:
        by = by & (bits - 1)
        v = cut(v, bits, is_signed=is_signed) if bits < 64 else v
        if left:
            moved = v << by
            return sum_wide(moved, 1, 0) if bits == 64 else moved & ((1 << bits) - 1)
        if bits == 64 and not is_signed:
            if isinstance(v, int) and isinstance(by, int):
                return (v & ((1 << 64) - 1)) >> by
            kept = np.where(np.asarray(by) == 0, -1, ~(np.int64(-1) << (64 - np.maximum(by, 1))))
            return (v >> by) & kept
        return v >> by if bits == 64 else (v >> by) & ((1 << bits) - 1)

    def run(machine: Machine) -> None:
        found = apply(compute, value(machine), count(machine))
        if bits == 64:
            put_wide(machine, names, found)
        else:
            write(machine, found)

    return then_test(run, statement) if scalar else on_lanes(run)


def _extract(statement: Statement, meaning: Meaning) -> Run:
    """Extract a bit field; a scalar instruction has offset and width in one operand."""
    scalar, is_signed, bits = is_scalar(statement), meaning.signed, meaning.bits
    operands = statement.operands
    value = wide(operands[1]) if bits == 64 else source(operands[1])
    others = [source(operand) for operand in operands[2:4]]
    write, names = put(statement), operands[0].names

    def compute(v: Known, start: Known, count: Known) -> Known:
        count = np.minimum(count, bits - start) if isinstance(count, np.ndarray) else min(count, bits)
        part = (v >> start) & ((1 << count) - 1)
        sign = (1 << count) >> 1
        return (part ^ sign) - sign if is_signed else part

    def run(machine: Machine) -> None:
        given = [reader(machine) for reader in others]
        if scalar:
            most = bits - 1
            given = [apply(lambda v: v & most, given[0]), apply(lambda v: v >> 16 & 127, given[0])]
        else:
            given = [apply(lambda v: v & 31, one) for one in given]
        found = apply(compute, value(machine), *given)
        if bits == 64:
            put_wide(machine, names, found)
        else:
            write(machine, apply(lambda v: v & FULL, found))

    return then_test(run, statement) if scalar else on_lanes(run)


def _permute_bytes(high: Known, low: Known, selector: Known) -> Known:
    """`v_perm_b32`: each byte of the result is one of eight source bytes, or a constant."""
    found: Any = 0
    for byte in range(4):
        which = (selector >> 8 * byte) & 0xFF
        taken: Any = 0
        for place in range(8):
            part = ((low if place < 4 else high) >> 8 * (place & 3)) & 0xFF
            taken = taken + part * (which == place)
        found = found | ((taken + 0xFF * (which >= 13)) << 8 * byte)
    return found


def _permute(statement: Statement, _meaning: Meaning) -> Run:
    readers, write = sources(statement, 1, 3), put(statement)

    def run(machine: Machine) -> None:
        values = [reader(machine) for reader in readers]
        selector = values[2]
        found = apply(_permute_bytes, *values)
        if isinstance(selector, int) and all(8 <= (selector >> 8 * byte & 0xFF) < 12 for byte in range(4)):
            found = machine.unknown("the sign of a byte")
        write(machine, found)

    return on_lanes(run)


def _like_sign(value: int, bits: int) -> int:
    differs = value ^ (-(value >> bits - 1) & ((1 << bits) - 1))
    return bits - differs.bit_length() if differs else -1


def _bits_of(function: Callable[[Any, int], Any]) -> Build:
    """Instructions that count or find bits in one number."""

    def build(statement: Statement, meaning: Meaning) -> Run:
        bits, write = meaning.bits, put(statement)
        reader = wide(statement.operands[1]) if bits == 64 else source(statement.operands[1])
        added = source(statement.operands[2]) if len(statement.operands) > 2 else None
        scalar = is_scalar(statement) and meaning.action is Action.COUNT_BITS

        def of_bits(number: int) -> int:
            return int(function(number & ((1 << bits) - 1), bits)) & FULL

        def run(machine: Machine) -> None:
            found = apply(partial(each, of_bits), reader(machine))
            if added is not None:
                found = apply(lambda v, other: (v + other) & FULL, found, added(machine))
            write(machine, found)
            if scalar:
                machine.write("scc", nonzero(found))

        return run_of(statement, run)

    return build


def _middle(a: Known, b: Known, c: Known) -> Known:
    return _highest(_lowest(a, b), _lowest(_highest(a, b), c))


def _lowest(*values: Any) -> Any:
    found = values[0]
    for value in values[1:]:
        found = np.minimum(found, value)
    return int(found) if np.ndim(found) == 0 else found


def _highest(*values: Any) -> Any:
    return -_lowest(*(-value for value in values))


def _min_max(which: Callable[..., Known]) -> Build:
    """Minimum and maximum; the scalar form sets SCC if the result is the first operand."""
    plain = operate(which, 2)

    def build(statement: Statement, meaning: Meaning) -> Run:
        run = plain(statement, meaning)
        if not is_scalar(statement):
            return run
        first, second = sources(statement, 1, 2)

        def and_tell(machine: Machine) -> None:
            a, b = (
                apply(lambda v: cut(v, 32, is_signed=meaning.signed), r(machine)) for r in (first, second)
            )
            took = as_predicate(apply(lambda x, y: which(x, y) == x, a, b))
            run(machine)
            machine.write("scc", took)

        return and_tell

    return build


def _reverse(value: int, bits: int) -> int:
    return int(f"{value:0{bits}b}"[::-1], 2)


def _word(value: Any, up: bool) -> Any:
    return value >> 16 if up else value & 0xFFFF


def _pack(statement: Statement, meaning: Meaning) -> Run:
    low, high = (letter == "h" for letter in meaning.condition)
    return operate(lambda a, b: _word(a, low) | (_word(b, high) << 16), 2)(statement, meaning)


def _align(statement: Statement, meaning: Meaning) -> Run:
    step = meaning.bits
    plain = Meaning(meaning.action)
    return operate(lambda a, b, c: ((a << 32) | b) >> (step * (c & (31 // step))), 3)(statement, plain)


def _shift_add_scalars(statement: Statement, by: int) -> Run:
    """`s_lshl2_add_u32`: SCC is set if the sum exceeds 32 bits."""
    left, right = sources(statement, 1, 2)
    write = put(statement)

    def run(machine: Machine) -> None:
        total = apply(lambda a, b: (a << by) + b, left(machine), right(machine))
        write(machine, apply(lambda v: v & FULL, total))
        machine.write("scc", as_predicate(apply(lambda v: v > FULL, total)))

    return run


def _shift_add(statement: Statement, meaning: Meaning) -> Run:
    if meaning.condition:
        return _shift_add_scalars(statement, int(meaning.condition))
    if meaning.bits == 64:
        whole = [wide(statement.operands[at]) for at in (1, 3)]
        lower = [source(statement.operands[at]) for at in (1, 3)]
        count, names = source(statement.operands[2]), statement.operands[0].names

        def sum_of(machine: Machine, readers: list[Reader]) -> Value:
            value, added = (reader(machine) for reader in readers)
            return apply(lambda v, by, c: sum_wide(v << (by & 7), 1, c), value, count(machine), added)

        def run(machine: Machine) -> None:
            put_halves(machine, names, sum_of(machine, lower), sum_of(machine, whole))

        return on_lanes(run)
    return operate(lambda a, b, c: (a << (b & 31)) + c, 3)(statement, meaning)


def _low_24(value: Any, is_signed: bool) -> Any:
    return cut(value, 24, is_signed=is_signed)


def _multiply_24(statement: Statement, meaning: Meaning) -> Run:
    s = meaning.signed
    if meaning.action is Action.MULTIPLY_24:
        return operate(lambda a, b: _low_24(a, s) * _low_24(b, s), 2)(statement, meaning)
    return operate(lambda a, b, c: _low_24(a, s) * _low_24(b, s) + c, 3)(statement, meaning)


INTEGER: Mapping[Action, Build] = {
    Action.REVERSE_BITS: _bits_of(_reverse),
    Action.ADD: _add(1),
    Action.SUBTRACT: _add(-1),
    Action.SUBTRACT_FROM: _add(-1, swapped=True),
    Action.ADD_WITH_CARRY: _add(1, carries_in=True),
    Action.SUBTRACT_WITH_BORROW: _add(-1, carries_in=True),
    Action.SUBTRACT_FROM_WITH_BORROW: _add(-1, swapped=True, carries_in=True),
    Action.MULTIPLY: _multiply,
    Action.MULTIPLY_HIGH: operate(_high, 2),
    Action.MULTIPLY_24: _multiply_24,
    Action.MULTIPLY_ADD_24: _multiply_24,
    Action.MULTIPLY_ADD_WIDE: _multiply_wide,
    Action.SHIFT_LEFT: _shift,
    Action.SHIFT_RIGHT: _shift,
    Action.XOR_XOR: operate(lambda a, b, c: a ^ b ^ c, 3),
    Action.AND_OR: operate(lambda a, b, c: (a & b) | c, 3),
    Action.OR_OR: operate(lambda a, b, c: a | b | c, 3),
    Action.ADD_ADD: operate(lambda a, b, c: a + b + c, 3),
    Action.SHIFT_OR: operate(lambda a, b, c: (a << (b & 31)) | c, 3),
    Action.SHIFT_ADD: _shift_add,
    Action.ADD_SHIFT: operate(lambda a, b, c: (a + b) << (c & 31), 3),
    Action.XOR_ADD: operate(lambda a, b, c: (a ^ b) + c, 3),
    Action.EXTRACT: _extract,
    Action.INSERT: operate(lambda a, b, c: (a & b) | (~a & c), 3),
    Action.MASK_OF: operate(lambda a, b: ((1 << (a & 31)) - 1) << (b & 31), 2),
    Action.PERMUTE_BYTES: _permute,
    Action.ALIGN: _align,
    Action.LEAST: _min_max(_lowest),
    Action.MOST: _min_max(_highest),
    Action.LEAST_OF_THREE: operate(_lowest, 3),
    Action.MOST_OF_THREE: operate(_highest, 3),
    Action.MIDDLE: operate(_middle, 3),
    Action.ABSOLUTE: with_scc(abs, 1),
    Action.COUNT_BITS: _bits_of(lambda v, _bits: v.bit_count()),
    Action.FIRST_ONE: _bits_of(lambda v, _bits: (v & -v).bit_length() - 1),
    Action.FIRST_FROM_TOP: _bits_of(lambda v, bits: bits - v.bit_length() if v else -1),
    Action.LIKE_SIGN: _bits_of(_like_sign),
    Action.SIGN_EXTEND: operate(lambda a: a, 1),
    Action.PACK: _pack,
}
"""Action → builder of its run."""
