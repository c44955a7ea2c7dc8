"""Readers and writers of AMDGCN operands: registers, lane masks, EXEC, DPP lanes, sub-registers.

A scalar register holds one number for all lanes of a wave. A lane mask, EXEC too, is a number with a bit for
each lane, in one register or two. Vector instructions execute for the lanes whose EXEC bit is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.conversions import to_number, truncate
from artifact_inspector.execution.interpreter.values import (
    FULL,
    Known,
    Mask,
    UnknownValue,
    Value,
    apply,
    broadcast_value,
    data_of,
    has_lanes,
    is_entirely_unknown,
    join_words,
    select_lanes,
    unknown_bits_of,
)
from artifact_inspector.formats.amdgcn.operations import OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnOperand, AmdgcnOperandKind, AmdgcnStatement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

StepRun: TypeAlias = Callable[["Machine"], "bool | None"]
RunBuilder: TypeAlias = Callable[[AmdgcnStatement, OpcodeSemantics], StepRun]
Reader: TypeAlias = Callable[["Machine"], Value]


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────────


def word_reader(operand: AmdgcnOperand, word_offset: int = 0) -> Reader:
    """Reader of 32 bits of an operand: a register, the `word_offset`-th register after it, or a number."""
    if operand.kind in (AmdgcnOperandKind.NUMBER, AmdgcnOperandKind.FLOAT):
        number = (operand.value >> 32 * word_offset if word_offset else operand.value) & FULL
        return lambda _machine: number
    if word_offset < len(operand.names) and operand.kind not in (AmdgcnOperandKind.LABEL, AmdgcnOperandKind.OTHER):
        name = operand.names[word_offset]
        if name == "scc":
            return lambda machine: apply(to_number, machine.read_register("scc"))
        return lambda machine: machine.read_register(name)
    if operand.kind is AmdgcnOperandKind.NULL or operand.names:
        if operand.kind in (AmdgcnOperandKind.LABEL, AmdgcnOperandKind.OTHER):
            return lambda machine: machine.unknown_value(f"the value of {operand.names[0]}")
        return lambda _machine: 0
    raise ValueError(operand)


def wide_reader(operand: AmdgcnOperand) -> Reader:
    """Reader of 64 bits as a signed number: two registers, or a literal."""
    if operand.kind in (AmdgcnOperandKind.NUMBER, AmdgcnOperandKind.FLOAT):
        number = operand.value
        return lambda _machine: number
    low_reader, high_reader = (word_reader(operand), word_reader(operand, 1) if len(operand.names) > 1 else _read_zero)
    return lambda machine: join_words(low_reader(machine), high_reader(machine))


def _read_zero(_machine: Machine) -> Value:
    return 0


def source_readers(statement: AmdgcnStatement, first: int, count: int) -> list[Reader]:
    """Readers of some operands; the first may come from other lanes (DPP) or be a sub-register (SDWA)."""
    readers = []
    for position, operand in enumerate(statement.operands[first : first + count]):
        reader = word_reader(operand)
        selection = statement.register_select(f"src{position}_sel")
        if selection is not None:
            reader = _field_reader(reader, selection.shift, selection.bits, signed=operand.is_sign_extended)
        readers.append(_dpp_reader(statement, reader) if position == 0 and _is_dpp(statement) else reader)
    return readers


def _field_reader(reader: Reader, shift: int, bits: int, *, signed: bool) -> Reader:
    return lambda machine: apply(lambda v: truncate(v >> shift, bits, is_signed=signed) & FULL, reader(machine))


# ── Lanes of DPP ─────────────────────────────────────────────────────────────────────────────────

_DPP_MODIFIERS = (
    "quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_bcast",
    "row_newbcast", "row_share", "row_xmask", "wave_shl", "wave_shr", "wave_rol", "wave_ror", "dpp8",
)  # fmt: skip


def _is_dpp(statement: AmdgcnStatement) -> bool:
    return any(statement.has_modifier(name) for name in _DPP_MODIFIERS)


def _dpp_sources(statement: AmdgcnStatement, warp: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The source lane of each lane of a wave, and whether it exists.

    **Source** AMD Instinct MI300 ISA, "DPP_CTRL Enumerations"; RDNA 3 ISA, the same chapter.
    """
    lane = np.arange(warp)
    row, position = lane & ~15, lane & 15
    valid = np.ones(warp, bool)
    if statement.has_modifier("dpp8"):
        return (lane & ~7) | np.array(statement.list("dpp8"))[lane & 7], valid
    if statement.has_modifier("quad_perm"):
        return (lane & ~3) | np.array(statement.list("quad_perm"))[lane & 3], valid
    for name, source_lane in (
        ("row_shl", position + statement.modifier_number("row_shl")),
        ("row_shr", position - statement.modifier_number("row_shr")),
    ):
        if statement.has_modifier(name):
            return row | (source_lane & 15), (source_lane >= 0) & (source_lane < 16)
    for name, source_position in (
        ("row_ror", (position - statement.modifier_number("row_ror")) & 15),
        ("row_mirror", 15 - position),
        ("row_half_mirror", (position & 8) | (7 - (position & 7))),
        ("row_newbcast", 0 * position + statement.modifier_number("row_newbcast")),
        ("row_share", 0 * position + statement.modifier_number("row_share")),
        ("row_xmask", position ^ statement.modifier_number("row_xmask")),
    ):
        if statement.has_modifier(name):
            return row | source_position, valid
    if statement.has_modifier("row_bcast"):
        broadcast_width = statement.modifier_number("row_bcast") + 1  # 16 or 32 lanes
        return np.maximum((lane // broadcast_width) * broadcast_width - 1, 0), lane >= broadcast_width
    step = 1 if statement.has_modifier("wave_shl") or statement.has_modifier("wave_rol") else -1
    wraps_around = statement.has_modifier("wave_rol") or statement.has_modifier("wave_ror")
    source_lane = lane + step
    return source_lane % warp, valid if wraps_around else (source_lane >= 0) & (source_lane < warp)


def _dpp_reader(statement: AmdgcnStatement, reader: Reader) -> Reader:
    """Reader of another lane's register. Lanes without a source lane, or masked off, do not write."""
    has_bound_control = statement.modifiers.get("bound_ctrl") is not None
    rows = statement.modifier_number("row_mask") if statement.has_modifier("row_mask") else 15
    banks = statement.modifier_number("bank_mask") if statement.has_modifier("bank_mask") else 15

    def read_lanes(machine: Machine) -> Value:
        value = reader(machine)
        warp = machine.program.warp_size
        source_lanes, has_source = _dpp_sources(statement, warp)
        lane = np.arange(warp)
        writing_lanes = (rows >> (lane // 16 % 4) & 1).astype(bool) & (banks >> (lane // 4 % 4) & 1).astype(bool)
        if not has_bound_control:
            writing_lanes = writing_lanes & has_source
        if not writing_lanes.all():
            machine.active_mask = machine.active_mask & np.tile(writing_lanes, machine.threads // warp)[None, :]
        if is_entirely_unknown(value):
            return value
        return select_lanes(_repeat_for_waves(machine, has_source), _gather_lanes(machine, value, source_lanes), 0)

    return read_lanes


def _repeat_for_waves(machine: Machine, lanes: NDArray[np.bool_]) -> Mask:
    return True if lanes.all() else np.tile(lanes, machine.threads // len(lanes))[None, :]


def _gather_lanes(machine: Machine, value: Value, source_lanes: NDArray[np.int64]) -> Value:
    if isinstance(value, UnknownValue):
        data, bad = (_gather_lanes(machine, plane, source_lanes) for plane in (value.data, value.unknown_bits))
        return UnknownValue(data, bad, value.missing_inputs)
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    warp = machine.program.warp_size
    first_lane = np.arange(machine.threads) // warp * warp
    return value[:, first_lane + source_lanes[np.arange(machine.threads) % warp]]


# ── Masks of lanes ───────────────────────────────────────────────────────────────────────────────


def unpack_mask(machine: Machine, low: Value, high: Value) -> Value:
    """The lanes whose bit is set in one register or two."""
    if isinstance(low, UnknownValue) or isinstance(high, UnknownValue):
        data = _unpack(machine, data_of(low), data_of(high))
        unknown_lanes = _unpack(machine, unknown_bits_of(low), unknown_bits_of(high))
        missing_inputs = sum({half.missing_inputs for half in (low, high) if isinstance(half, UnknownValue)})
        return UnknownValue(data, unknown_lanes, missing_inputs) if has_lanes(unknown_lanes) else data
    return _unpack(machine, low, high)


def _unpack(machine: Machine, low: Known, high: Known) -> Mask:
    warp = machine.program.warp_size
    if warp == 32:
        high = low
    if isinstance(low, int) and isinstance(high, int) and low == high and low in (0, FULL):
        return low == FULL
    lane = np.arange(machine.threads).reshape(1, -1) % warp
    mask_word = low if warp == 32 else np.where(lane < 32, low, high)
    lane_mask: Mask = (mask_word >> (lane & 31) & 1).astype(bool)
    return lane_mask


def pack_mask(machine: Machine, mask: Mask) -> tuple[Known, Known]:
    """A lane mask as the numbers of two registers, for each wave."""
    if isinstance(mask, (bool, np.bool_)):
        return (FULL, FULL) if mask else (0, 0)
    warp = machine.program.warp_size
    lanes = np.broadcast_to(mask, (mask.shape[0], machine.threads)).reshape(mask.shape[0], -1, warp)
    wave_words = np.packbits(lanes, axis=2, bitorder="little").view(np.uint32).astype(np.int64)
    halves = [_repeat_in_waves(wave_words[:, :, at], warp) for at in range(wave_words.shape[2])]
    return halves[0], halves[-1]


def _repeat_in_waves(wave_words: NDArray[np.int64], warp: int) -> Known:
    """One number for each wave, repeated in all of its lanes."""
    first = wave_words.flat[0]
    return int(first) if (wave_words == first).all() else np.repeat(wave_words, warp, axis=1)


def write_mask(machine: Machine, names: tuple[str, ...], mask: Value) -> None:
    """Write a mask of the active lanes to one scalar register or two."""
    active_lanes, undecided_lanes = machine.active_mask, machine.undecided_lanes
    data, unknown_lanes, missing_inputs = (
        data_of(mask),
        unknown_bits_of(mask),
        mask.missing_inputs if isinstance(mask, UnknownValue) else 0,
    )
    data = data & active_lanes if active_lanes is not True else data
    unknown_lanes = unknown_lanes & active_lanes if active_lanes is not True else unknown_lanes
    if undecided_lanes is not None:
        unknown_lanes, missing_inputs = (
            unknown_lanes | undecided_lanes.unknown_bits,
            missing_inputs | undecided_lanes.missing_inputs,
        )
    machine.active_mask, machine.undecided_lanes = machine.group.mask, None
    halves = pack_mask(machine, data if isinstance(data, np.ndarray) else bool(data))
    unknown_halves = pack_mask(machine, unknown_lanes if isinstance(unknown_lanes, np.ndarray) else bool(unknown_lanes))
    for name, value, unknown_half in zip(names, halves, unknown_halves, strict=False):
        machine.write_register(
            name, UnknownValue(value, unknown_half, missing_inputs) if np.any(unknown_half) else value
        )


def under_exec(run: StepRun) -> StepRun:
    """The run of a vector instruction: it executes for the lanes whose EXEC bit is set."""

    def run_under_exec(machine: Machine) -> bool | None:
        registers = machine.registers
        exec_mask = unpack_mask(machine, registers["exec_lo"], registers["exec_hi"])
        if exec_mask is True:
            return run(machine)
        group = machine.group
        known_lanes = data_of(exec_mask)
        if isinstance(exec_mask, UnknownValue):
            unknown_lanes = machine.intersect(group.mask, exec_mask.unknown_bits)
            if has_lanes(unknown_lanes):
                machine.undecided_lanes = UnknownValue(False, unknown_lanes, exec_mask.missing_inputs)
            known_lanes = np.logical_and(known_lanes, np.logical_not(exec_mask.unknown_bits))
        machine.active_mask = machine.intersect(group.mask, known_lanes)
        machine.counters.threads_executed[machine.step.index] += machine.count_lanes(machine.active_mask) - group.lanes
        return run(machine)

    return run_under_exec


# ── Results ──────────────────────────────────────────────────────────────────────────────────────


def word_writer(statement: AmdgcnStatement, position: int = 0) -> Callable[[Machine, Value], None]:
    """Writer of 32 bits of an operand, or of the sub-register that SDWA selects."""
    operand = statement.operands[position]
    name = operand.names[0] if operand.names else None
    selection = statement.register_select("dst_sel")
    if selection is None:

        def write_register(machine: Machine, value: Value) -> None:
            if name is not None:
                machine.write_register(name, value)

        return write_register
    shift, bits = selection
    field_mask = ((1 << bits) - 1) << shift
    unused_policy = statement.modifiers.get("dst_unused")

    def write_field(machine: Machine, value: Value) -> None:
        assert name is not None
        shifted_value = apply(lambda v: (v << shift) & field_mask, value)
        if unused_policy == "UNUSED_PRESERVE":
            shifted_value = apply(
                lambda v, old: v | (old & ~field_mask & FULL), shifted_value, machine.read_register(name)
            )
        elif unused_policy == "UNUSED_SEXT":
            shifted_value = machine.unknown_value("the sign of a part of a register")
        machine.write_register(name, shifted_value)

    return write_field


def write_all(machine: Machine, names: Iterable[str], values: Iterable[Value]) -> None:
    """Write one value to each register; registers without a value keep theirs."""
    for name, value in zip(names, values, strict=False):
        machine.write_register(name, value)


def write_wide(machine: Machine, names: tuple[str, ...], value: Value) -> None:
    """Write a 64-bit number to two registers."""
    write_all(machine, names, (apply(lambda v, by=shift: (v >> by) & FULL, value) for shift in (0, 32)))


def write_sum_halves(machine: Machine, names: tuple[str, ...], lower: Value, full_sum: Value) -> None:
    """Write a sum to two registers; the lower half is known if the lower halves of the addends are."""
    halves = (lower, apply(lambda v: v >> 32, full_sum))
    write_all(machine, names, (apply(lambda v: v & FULL, half) for half in halves))


def is_nonzero(*values: Value) -> Value:
    """Whether any of the registers is nonzero; known as soon as one known bit is set."""
    data: Any = 0
    unknown_bits: Any = 0
    missing_inputs = 0
    for value in values:
        value_unknown_bits = unknown_bits_of(value)
        data, unknown_bits = data | (data_of(value) & ~value_unknown_bits), unknown_bits | value_unknown_bits
        missing_inputs |= value.missing_inputs if isinstance(value, UnknownValue) else 0
    has_known_bit = data != 0
    if not missing_inputs or not np.any((unknown_bits != 0) & np.logical_not(has_known_bit)):
        return has_known_bit if isinstance(has_known_bit, np.ndarray) else bool(has_known_bit)
    return UnknownValue(has_known_bit, (np.asarray(unknown_bits) != 0) & np.logical_not(has_known_bit), missing_inputs)


def first_active_lanes(machine: Machine, value: Known, mask: Mask) -> Known:
    """The value of the first active lane of each wave, or of lane 0 if none is active."""
    if not isinstance(value, np.ndarray) or value.shape[1] == 1:
        return value
    warp = machine.program.warp_size
    rows = value.shape[0] if isinstance(mask, bool) else max(value.shape[0], mask.shape[0])
    lanes = np.broadcast_to(broadcast_value(mask, (rows, machine.threads)), (rows, machine.threads))
    first = lanes.reshape(rows, -1, warp).argmax(axis=2)
    wave_values = np.broadcast_to(value, (rows, machine.threads)).reshape(rows, -1, warp)
    return _repeat_in_waves(np.take_along_axis(wave_values, first[:, :, None], axis=2)[:, :, 0], warp)
