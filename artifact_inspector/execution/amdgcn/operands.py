"""Readers and writers of AMDGCN operands: registers, lane masks, EXEC, DPP lanes, sub-registers.

A scalar register holds one number for all lanes of a wave. A lane mask, EXEC too, is a number with a bit for
each lane, in one register or two. Vector instructions execute for the lanes whose EXEC bit is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.lanes import (
    FULL,
    Known,
    Mask,
    Unknown,
    Value,
    apply,
    as_wide,
    bits_unknown,
    choose,
    data_of,
    is_spoiled,
    is_true,
    spread,
)
from artifact_inspector.execution.interpreter.numbers import cut, to_number
from artifact_inspector.formats.amdgcn.operations import Meaning
from artifact_inspector.formats.amdgcn.statement import Bank, Operand, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

Run: TypeAlias = Callable[["Machine"], "bool | None"]
Build: TypeAlias = Callable[[Statement, Meaning], Run]
Reader: TypeAlias = Callable[["Machine"], Value]


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────────


def source(operand: Operand, step: int = 0) -> Reader:
    """Reader of 32 bits of an operand: a register, the `step`-th register after it, or a number."""
    if operand.bank in (Bank.NUMBER, Bank.FLOAT):
        number = (operand.value >> 32 * step if step else operand.value) & FULL
        return lambda _machine: number
    if step < len(operand.names) and operand.bank not in (Bank.LABEL, Bank.OTHER):
        name = operand.names[step]
        if name == "scc":
            return lambda machine: apply(to_number, machine.read("scc"))
        return lambda machine: machine.read(name)
    if operand.bank is Bank.NOTHING or operand.names:
        if operand.bank in (Bank.LABEL, Bank.OTHER):
            return lambda machine: machine.unknown(f"the value of {operand.names[0]}")
        return lambda _machine: 0
    raise ValueError(operand)


def wide(operand: Operand) -> Reader:
    """Reader of 64 bits as a signed number: two registers, or a literal."""
    if operand.bank in (Bank.NUMBER, Bank.FLOAT):
        number = operand.value
        return lambda _machine: number
    low, high = source(operand), source(operand, 1) if len(operand.names) > 1 else _nought
    return lambda machine: as_wide(low(machine), high(machine))


def _nought(_machine: Machine) -> Value:
    return 0


def sources(statement: Statement, first: int, count: int) -> list[Reader]:
    """Readers of some operands; the first may come from other lanes (DPP) or be a sub-register (SDWA)."""
    found = []
    for at, operand in enumerate(statement.operands[first : first + count]):
        reader = source(operand)
        part = statement.select(f"src{at}_sel")
        if part is not None:
            reader = _part(reader, part.shift, part.bits, signed=operand.extends)
        found.append(_from_lanes(statement, reader) if at == 0 and _is_dpp(statement) else reader)
    return found


def _part(reader: Reader, shift: int, bits: int, *, signed: bool) -> Reader:
    return lambda machine: apply(lambda v: cut(v >> shift, bits, is_signed=signed) & FULL, reader(machine))


# ── Lanes of DPP ─────────────────────────────────────────────────────────────────────────────────

_DPP = (
    "quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_bcast",
    "row_newbcast", "row_share", "row_xmask", "wave_shl", "wave_shr", "wave_rol", "wave_ror", "dpp8",
)  # fmt: skip


def _is_dpp(statement: Statement) -> bool:
    return any(statement.has(name) for name in _DPP)


def _origin(statement: Statement, warp: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The source lane of each lane of a wave, and whether it exists.

    **Source** AMD Instinct MI300 ISA, "DPP_CTRL Enumerations"; RDNA 3 ISA, the same chapter.
    """
    lane = np.arange(warp)
    row, at = lane & ~15, lane & 15
    valid = np.ones(warp, bool)
    if statement.has("dpp8"):
        return (lane & ~7) | np.array(statement.list("dpp8"))[lane & 7], valid
    if statement.has("quad_perm"):
        return (lane & ~3) | np.array(statement.list("quad_perm"))[lane & 3], valid
    for name, goes in (
        ("row_shl", at + statement.number("row_shl")),
        ("row_shr", at - statement.number("row_shr")),
    ):
        if statement.has(name):
            return row | (goes & 15), (goes >= 0) & (goes < 16)
    for name, place in (
        ("row_ror", (at - statement.number("row_ror")) & 15),
        ("row_mirror", 15 - at),
        ("row_half_mirror", (at & 8) | (7 - (at & 7))),
        ("row_newbcast", 0 * at + statement.number("row_newbcast")),
        ("row_share", 0 * at + statement.number("row_share")),
        ("row_xmask", at ^ statement.number("row_xmask")),
    ):
        if statement.has(name):
            return row | place, valid
    if statement.has("row_bcast"):
        every = statement.number("row_bcast") + 1  # 16 or 32 lanes
        return np.maximum((lane // every) * every - 1, 0), lane >= every
    step = 1 if statement.has("wave_shl") or statement.has("wave_rol") else -1
    turns = statement.has("wave_rol") or statement.has("wave_ror")
    goes = lane + step
    return goes % warp, valid if turns else (goes >= 0) & (goes < warp)


def _from_lanes(statement: Statement, reader: Reader) -> Reader:
    """Reader of another lane's register. Lanes without a source lane, or masked off, do not write."""
    bound = statement.modifiers.get("bound_ctrl") is not None
    rows = statement.number("row_mask") if statement.has("row_mask") else 15
    banks = statement.number("bank_mask") if statement.has("bank_mask") else 15

    def read(machine: Machine) -> Value:
        value = reader(machine)
        warp = machine.program.warp
        origin, valid = _origin(statement, warp)
        lane = np.arange(warp)
        takes = (rows >> (lane // 16 % 4) & 1).astype(bool) & (banks >> (lane // 4 % 4) & 1).astype(bool)
        if not bound:
            takes = takes & valid
        if not takes.all():
            machine.on = machine.on & np.tile(takes, machine.threads // warp)[None, :]
        if is_spoiled(value):
            return value
        return choose(_tile(machine, valid), _permute(machine, value, origin), 0)

    return read


def _tile(machine: Machine, lanes: NDArray[np.bool_]) -> Mask:
    return True if lanes.all() else np.tile(lanes, machine.threads // len(lanes))[None, :]


def _permute(machine: Machine, value: Value, origin: NDArray[np.int64]) -> Value:
    if isinstance(value, Unknown):
        data, bad = (_permute(machine, held, origin) for held in (value.data, value.bad))
        return Unknown(data, bad, value.why)
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    warp = machine.program.warp
    first = np.arange(machine.threads) // warp * warp
    return value[:, first + origin[np.arange(machine.threads) % warp]]


# ── Masks of lanes ───────────────────────────────────────────────────────────────────────────────


def mask_of(machine: Machine, low: Value, high: Value) -> Value:
    """The lanes whose bit is set in one register or two."""
    if isinstance(low, Unknown) or isinstance(high, Unknown):
        data = _unpack(machine, data_of(low), data_of(high))
        bad = _unpack(machine, bits_unknown(low), bits_unknown(high))
        why = sum({held.why for held in (low, high) if isinstance(held, Unknown)})
        return Unknown(data, bad, why) if is_true(bad) else data
    return _unpack(machine, low, high)


def _unpack(machine: Machine, low: Known, high: Known) -> Mask:
    warp = machine.program.warp
    if warp == 32:
        high = low
    if isinstance(low, int) and isinstance(high, int) and low == high and low in (0, FULL):
        return low == FULL
    lane = np.arange(machine.threads).reshape(1, -1) % warp
    word = low if warp == 32 else np.where(lane < 32, low, high)
    found: Mask = (word >> (lane & 31) & 1).astype(bool)
    return found


def pack(machine: Machine, mask: Mask) -> tuple[Known, Known]:
    """A lane mask as the numbers of two registers, for each wave."""
    if isinstance(mask, (bool, np.bool_)):
        return (FULL, FULL) if mask else (0, 0)
    warp = machine.program.warp
    lanes = np.broadcast_to(mask, (mask.shape[0], machine.threads)).reshape(mask.shape[0], -1, warp)
    words = np.packbits(lanes, axis=2, bitorder="little").view(np.uint32).astype(np.int64)
    found = [_of_waves(words[:, :, at], warp) for at in range(words.shape[2])]
    return found[0], found[-1]


def _of_waves(words: NDArray[np.int64], warp: int) -> Known:
    """One number for each wave, repeated in all of its lanes."""
    first = words.flat[0]
    return int(first) if (words == first).all() else np.repeat(words, warp, axis=1)


def put_mask(machine: Machine, names: tuple[str, ...], mask: Value) -> None:
    """Write a mask of the active lanes to one scalar register or two."""
    on, maybe = machine.on, machine.maybe
    data, bad, why = data_of(mask), bits_unknown(mask), mask.why if isinstance(mask, Unknown) else 0
    data = data & on if on is not True else data
    bad = bad & on if on is not True else bad
    if maybe is not None:
        bad, why = bad | maybe.bad, why | maybe.why
    machine.on, machine.maybe = machine.group.mask, None
    halves = pack(machine, data if isinstance(data, np.ndarray) else bool(data))
    lost = pack(machine, bad if isinstance(bad, np.ndarray) else bool(bad))
    for name, value, missing in zip(names, halves, lost, strict=False):
        machine.write(name, Unknown(value, missing, why) if np.any(missing) else value)


def on_lanes(run: Run) -> Run:
    """The run of a vector instruction: it executes for the lanes whose EXEC bit is set."""

    def masked(machine: Machine) -> bool | None:
        registers = machine.registers
        exec_mask = mask_of(machine, registers["exec_lo"], registers["exec_hi"])
        if exec_mask is True:
            return run(machine)
        group = machine.group
        known = data_of(exec_mask)
        if isinstance(exec_mask, Unknown):
            bad = machine._and(group.mask, exec_mask.bad)
            if is_true(bad):
                machine.maybe = Unknown(False, bad, exec_mask.why)
            known = np.logical_and(known, np.logical_not(exec_mask.bad))
        machine.on = machine._and(group.mask, known)
        machine.counts.lanes[machine.step.index] += machine.count_lanes(machine.on) - group.lanes
        return run(machine)

    return masked


# ── Results ──────────────────────────────────────────────────────────────────────────────────────


def put(statement: Statement, place: int = 0) -> Callable[[Machine, Value], None]:
    """Writer of 32 bits of an operand, or of the sub-register that SDWA selects."""
    operand = statement.operands[place]
    name = operand.names[0] if operand.names else None
    part = statement.select("dst_sel")
    if part is None:

        def whole(machine: Machine, value: Value) -> None:
            if name is not None:
                machine.write(name, value)

        return whole
    shift, bits = part
    window = ((1 << bits) - 1) << shift
    unused = statement.modifiers.get("dst_unused")

    def write(machine: Machine, value: Value) -> None:
        assert name is not None
        moved = apply(lambda v: (v << shift) & window, value)
        if unused == "UNUSED_PRESERVE":
            moved = apply(lambda v, old: v | (old & ~window & FULL), moved, machine.read(name))
        elif unused == "UNUSED_SEXT":
            moved = machine.unknown("the sign of a part of a register")
        machine.write(name, moved)

    return write


def write_all(machine: Machine, names: Iterable[str], values: Iterable[Value]) -> None:
    """Write one value to each register; registers without a value keep theirs."""
    for name, value in zip(names, values, strict=False):
        machine.write(name, value)


def put_wide(machine: Machine, names: tuple[str, ...], value: Value) -> None:
    """Write a 64-bit number to two registers."""
    write_all(machine, names, (apply(lambda v, by=shift: (v >> by) & FULL, value) for shift in (0, 32)))


def put_halves(machine: Machine, names: tuple[str, ...], lower: Value, whole: Value) -> None:
    """Write a sum to two registers; the lower half is known if the lower halves of the addends are."""
    halves = (lower, apply(lambda v: v >> 32, whole))
    write_all(machine, names, (apply(lambda v: v & FULL, half) for half in halves))


def nonzero(*values: Value) -> Value:
    """Whether any of the registers is nonzero; known as soon as one known bit is set."""
    data: Any = 0
    bad: Any = 0
    why = 0
    for value in values:
        missing = bits_unknown(value)
        data, bad = data | (data_of(value) & ~missing), bad | missing
        why |= value.why if isinstance(value, Unknown) else 0
    found = data != 0
    if not why or not np.any((bad != 0) & np.logical_not(found)):
        return found if isinstance(found, np.ndarray) else bool(found)
    return Unknown(found, (np.asarray(bad) != 0) & np.logical_not(found), why)


def first_lanes(machine: Machine, value: Known, mask: Mask) -> Known:
    """The value of the first active lane of each wave, or of lane 0 if none is active."""
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    warp = machine.program.warp
    rows = value.shape[0] if isinstance(mask, bool) else max(value.shape[0], mask.shape[0])
    lanes = np.broadcast_to(spread(mask, (rows, machine.threads)), (rows, machine.threads))
    first = lanes.reshape(rows, -1, warp).argmax(axis=2)
    held = np.broadcast_to(value, (rows, machine.threads)).reshape(rows, -1, warp)
    return _of_waves(np.take_along_axis(held, first[:, :, None], axis=2)[:, :, 0], warp)
