"""Readers and writers of AMDGCN operands: registers, lane masks, EXEC, DPP lanes, sub-registers.

A scalar register holds one number for all lanes of a wave. A lane mask, EXEC too, is a number with a bit for
each lane, in one register or two. Vector instructions execute for the lanes whose EXEC bit is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import numpy as np

from artifact_inspector.execution.interpreter.affine import is_bool_array, simplest_mask
from artifact_inspector.execution.interpreter.conversions import to_number, truncate
from artifact_inspector.execution.interpreter.lane_partition import LanePartition, Register, materialize
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    BoolArray,
    IntArray,
    Known,
    Mask,
    Plain,
    UnknownValue,
    Value,
    Word,
    apply,
    as_mask,
    as_plain_array,
    data_of,
    invert_mask,
    is_entirely_unknown,
    join_words,
    missing_inputs_of,
    move_lanes,
    select_lanes,
    unknown_bits_of,
    with_unknown_bits,
)
from artifact_inspector.formats.amdgcn.operations import OpcodeSemantics
from artifact_inspector.formats.amdgcn.statement import AmdgcnOperand, AmdgcnOperandKind, AmdgcnStatement

StepRun: TypeAlias = Callable[[Machine], "bool | None"]
RunBuilder: TypeAlias = Callable[[AmdgcnStatement, OpcodeSemantics], StepRun]
Reader: TypeAlias = Callable[[Machine], Value]


def is_scalar(statement: AmdgcnStatement) -> bool:
    """Whether a wave executes it once: its results are scalar registers and SCC."""
    return statement.base.startswith("s_")


# ── Numbers ──────────────────────────────────────────────────────────────────────────────────────


def word_reader(operand: AmdgcnOperand, word_offset: int = 0) -> Reader:
    """Reader of 32 bits of an operand: a register, the `word_offset`-th register after it, or a number."""
    if operand.kind in (AmdgcnOperandKind.NUMBER, AmdgcnOperandKind.FLOAT):
        number = (operand.value >> 32 * word_offset) & FULL
        return lambda _machine: number
    if operand.kind in (AmdgcnOperandKind.LABEL, AmdgcnOperandKind.OTHER):
        if operand.names:
            return lambda machine: machine.unknown_value(f"the value of {operand.names[0]}")
        raise ValueError(operand)
    if word_offset < len(operand.names):
        name = operand.names[word_offset]
        if name == "scc":
            return lambda machine: apply(to_number, machine.read_register("scc"))
        return lambda machine: machine.read_register(name)
    if operand.kind is AmdgcnOperandKind.NULL or operand.names:
        return lambda _machine: 0
    raise ValueError(operand)


def wide_reader(operand: AmdgcnOperand) -> Reader:
    """Reader of 64 bits as a signed number: two registers, or a literal."""
    if operand.kind in (AmdgcnOperandKind.NUMBER, AmdgcnOperandKind.FLOAT):
        number = operand.value
        return lambda _machine: number
    low_reader = word_reader(operand)
    if len(operand.names) < 2:
        return lambda machine: join_words(low_reader(machine), 0)
    high_reader = word_reader(operand, 1)
    return lambda machine: join_words(low_reader(machine), high_reader(machine))


def operand_reader(operand: AmdgcnOperand, bits: int) -> Reader:
    """Reader of 32 or 64 bits."""
    return wide_reader(operand) if bits == 64 else word_reader(operand)


def source_readers(statement: AmdgcnStatement, first: int, count: int) -> list[Reader]:
    """Readers of some operands; the first may come from other lanes (DPP) or be a sub-register (SDWA)."""
    readers = []
    for position, operand in enumerate(statement.operands[first : first + count]):
        reader = word_reader(operand)
        selection = statement.register_select(f"src{position}_sel")
        if selection is not None:
            reader = _field_reader(reader, selection.shift, selection.bits, signed=operand.is_sign_extended)
        is_dpp = position == 0 and any(map(statement.has_modifier, _DPP_MODIFIERS))
        readers.append(_dpp_reader(statement, reader) if is_dpp else reader)
    return readers


def _field_reader(reader: Reader, shift: int, bits: int, *, signed: bool) -> Reader:
    return lambda machine: apply(lambda v: truncate(v >> shift, bits, is_signed=signed) & FULL, reader(machine))


# ── Lanes of DPP ─────────────────────────────────────────────────────────────────────────────────

_DPP_MODIFIERS = (
    "quad_perm", "row_shl", "row_shr", "row_ror", "row_mirror", "row_half_mirror", "row_bcast",
    "row_newbcast", "row_share", "row_xmask", "wave_shl", "wave_shr", "wave_rol", "wave_ror", "dpp8",
)  # fmt: skip


def _dpp_sources(statement: AmdgcnStatement, warp: int) -> tuple[IntArray, BoolArray]:
    """The source lane of each lane of a wave, and whether it exists.

    **Source** AMD Instinct MI300 ISA, "DPP_CTRL Enumerations"; RDNA 3 ISA, the same chapter.
    """
    lane: IntArray = np.arange(warp)
    row, position = lane & ~15, lane & 15
    valid = np.ones(warp, bool)
    name = next(name for name in ("dpp8", *_DPP_MODIFIERS) if statement.has_modifier(name))
    number = statement.modifier_number(name) if name not in ("dpp8", "quad_perm") else 0
    match name:
        case "dpp8":
            return (lane & ~7) | np.array(statement.list("dpp8"))[lane & 7], valid
        case "quad_perm":
            return (lane & ~3) | np.array(statement.list("quad_perm"))[lane & 3], valid
        case "row_shl" | "row_shr":
            source_lane = position + (number if name == "row_shl" else -number)
            return row | (source_lane & 15), (source_lane >= 0) & (source_lane < 16)
        case "row_ror":
            return row | ((position - number) & 15), valid
        case "row_mirror":
            return row | (15 - position), valid
        case "row_half_mirror":
            return row | (position & 8) | (7 - (position & 7)), valid
        case "row_newbcast" | "row_share":
            return row | number, valid
        case "row_xmask":
            return row | (position ^ number), valid
        case "row_bcast":  # 16 or 32 lanes
            return np.maximum((lane // (number + 1)) * (number + 1) - 1, 0), lane > number
    source_lane = lane + (1 if name in ("wave_shl", "wave_rol") else -1)
    wraps_around = name in ("wave_rol", "wave_ror")
    return source_lane % warp, valid if wraps_around else (source_lane >= 0) & (source_lane < warp)


def _dpp_reader(statement: AmdgcnStatement, reader: Reader) -> Reader:
    """Reader of another lane's register. Lanes without a source lane, or masked off, do not write."""
    has_bound_control = statement.modifiers.get("bound_ctrl") is not None
    rows, banks = (
        statement.modifier_number(name) if statement.has_modifier(name) else 15 for name in ("row_mask", "bank_mask")
    )

    def read_lanes(machine: Machine) -> Value:
        value, warp = reader(machine), machine.warp_size
        source_lanes, has_source = _dpp_sources(statement, warp)
        lane = np.arange(warp)
        writing_lanes = (rows >> (lane // 16 % 4) & 1).astype(bool) & (banks >> (lane // 4 % 4) & 1).astype(bool)
        if not has_bound_control:
            writing_lanes = writing_lanes & has_source
        machine.active_mask = machine.active_mask & _repeat_for_waves(machine, writing_lanes)
        if is_entirely_unknown(value):
            return value
        thread = np.arange(machine.threads)
        sources = thread // warp * warp + source_lanes[thread % warp]

        def gather(plane: Known) -> Plain:
            plain = as_plain_array(plane)
            return plain[:, sources] if isinstance(plain, np.ndarray) and plain.shape[1] > 1 else plain

        return select_lanes(_repeat_for_waves(machine, has_source), move_lanes(gather, value), 0)

    return read_lanes


def _repeat_for_waves(machine: Machine, lanes: BoolArray) -> Mask:
    return True if lanes.all() else np.tile(lanes, machine.threads // len(lanes))[None, :]


# ── Masks of lanes ───────────────────────────────────────────────────────────────────────────────


def read_mask(machine: Machine, names: tuple[str, ...]) -> Value:
    """The lanes whose bit is set in one register or two."""
    low, high = machine.registers.get(names[0]), machine.registers.get(names[-1])
    if low is None or high is None:
        return _unpack_value(machine, machine.read_register(names[0]), machine.read_register(names[-1]))
    return _kept_mask(machine, low, high)


_MOST_MASKS = 16
"""Masks of lanes that are kept. `matmul_splitk` on gfx942 spends half of its time on masks otherwise."""


def _kept_mask(machine: Machine, low: Register, high: Register) -> Value:
    """The lanes whose bit is set in two registers, unpacked once."""
    kept = machine.masks.get((id(low), id(high)))
    if kept is not None and kept[0] is low and kept[1] is high:
        return kept[2]
    mask = _unpack_value(machine, materialize(low), materialize(high))
    if is_bool_array(mask):
        _keep_mask(machine, low, high, mask)
    return mask


def _keep_mask(machine: Machine, low: Register, high: Register, mask: Mask) -> None:
    if len(machine.masks) >= _MOST_MASKS:
        machine.masks.clear()
    machine.masks[id(low), id(high)] = low, high, mask


def _unpack_value(machine: Machine, low: Value, high: Value) -> Value:
    data = _unpack(machine, as_plain_array(data_of(low)), as_plain_array(data_of(high)))
    if not isinstance(low, UnknownValue) and not isinstance(high, UnknownValue):
        return data
    return with_unknown_bits(data, _unpack(machine, unknown_bits_of(low), unknown_bits_of(high)), low, high)


def _unpack(machine: Machine, low: Plain, high: Plain) -> Mask:
    warp = machine.warp_size
    if warp == 32:
        high = low
    if isinstance(low, int) and isinstance(high, int) and low == high and low in (0, FULL):
        return low == FULL
    if low is high and np.shape(low)[1:] == (1,) and np.isin(low, (0, FULL)).all():
        return low != 0
    lane = np.arange(machine.threads).reshape(1, -1) % warp
    mask_word = low if warp == 32 else np.where(lane < 32, low, high)
    return (mask_word >> (lane & 31) & 1).astype(bool)


def _pack_mask(machine: Machine, mask: Mask) -> tuple[Word, Word]:
    """A lane mask as the numbers of two registers, for each wave."""
    if not isinstance(mask, np.ndarray):
        return (FULL, FULL) if mask else (0, 0)
    if mask.shape[1] == 1:  # the lanes of a CTA agree
        return (words := mask * FULL), words
    lanes = np.broadcast_to(mask, (len(mask), machine.threads)).reshape(len(mask), -1, machine.warp_size)
    wave_words = np.packbits(lanes, axis=2, bitorder="little").view(np.uint32).astype(np.int64)
    halves = [machine.repeat_in_warps(wave_words[:, :, at]) for at in range(wave_words.shape[2])]
    return halves[0], halves[-1]


def write_mask(machine: Machine, names: tuple[str, ...], mask: Value) -> None:
    """Write a mask of the active lanes to one scalar register or two."""
    unknown_lanes = machine.intersect(machine.active_mask, unknown_bits_of(mask))
    missing_inputs = missing_inputs_of(mask)
    if machine.undecided_lanes is not None:
        unknown_lanes = unknown_lanes | as_mask(machine.undecided_lanes.unknown_bits)
        missing_inputs |= machine.undecided_lanes.missing_inputs
    lanes = machine.intersect(machine.active_mask, data_of(mask))
    lanes = simplest_mask(lanes) if isinstance(lanes, np.ndarray) else lanes
    halves = _pack_mask(machine, lanes)
    unknown_halves = _pack_mask(machine, unknown_lanes)
    machine.active_mask, machine.undecided_lanes = machine.group.mask, None
    for name, value, unknown_half in zip(names, halves, unknown_halves, strict=False):
        is_unknown = np.any(unknown_half)
        machine.write_register(name, UnknownValue(value, unknown_half, missing_inputs) if is_unknown else value)
    if names and isinstance(lanes, np.ndarray) and lanes.shape[1] == machine.threads:
        low, high = (machine.registers[name] for name in (names[0], names[-1]))
        if not any(isinstance(word, (UnknownValue, LanePartition)) for word in (low, high)):
            _keep_mask(machine, low, high, lanes)


def under_exec(run: StepRun) -> StepRun:
    """The run of a vector instruction: it executes for the lanes whose EXEC bit is set."""

    def run_under_exec(machine: Machine) -> bool | None:
        low, high = machine.registers["exec_lo"], machine.registers["exec_hi"]
        if low.__class__ is int and low == FULL and (low is high or machine.warp_size == 32):
            return run(machine)
        exec_mask = _kept_mask(machine, low, high)
        if exec_mask is True:
            return run(machine)
        group = machine.group
        if isinstance(exec_mask, UnknownValue):
            exec_mask = machine.decide_lanes(group.mask, exec_mask)
        machine.active_mask = machine.intersect(group.mask, exec_mask)
        machine.counters.threads_executed[machine.step.index] += machine.count_lanes(machine.active_mask) - group.lanes
        return run(machine)

    return run_under_exec


def scalar_or_vector_run(statement: AmdgcnStatement, run: StepRun) -> StepRun:
    """The run of a scalar instruction unchanged, or of a vector instruction under EXEC."""
    return run if is_scalar(statement) else under_exec(run)


# ── Results ──────────────────────────────────────────────────────────────────────────────────────


def word_writer(statement: AmdgcnStatement) -> Callable[[Machine, Value], None]:
    """Writer of 32 bits of the first operand, or of the sub-register that SDWA selects."""
    names, selection = statement.operands[0].names, statement.register_select("dst_sel")
    if selection is None:
        return lambda machine, value: write_all(machine, names[:1], (value,))
    (name, *_), (shift, bits) = names, selection
    field_mask = ((1 << bits) - 1) << shift
    unused_policy = statement.modifiers.get("dst_unused")

    def write_field(machine: Machine, value: Value) -> None:
        shifted_value = apply(lambda v: (v << shift) & field_mask, value)
        if unused_policy == "UNUSED_PRESERVE":
            old_value = machine.read_register(name)
            shifted_value = apply(lambda v, old: v | (old & ~field_mask & FULL), shifted_value, old_value)
        elif unused_policy == "UNUSED_SEXT":
            shifted_value = machine.unknown_value("the sign of a part of a register")
        machine.write_register(name, shifted_value)

    return write_field


def result_writer(statement: AmdgcnStatement, bits: int) -> Callable[[Machine, Value], None]:
    """Writer of 32 or 64 bits of the first operand."""
    names = statement.operands[0].names
    return word_writer(statement) if bits != 64 else lambda machine, value: write_sum_halves(machine, names, value)


def write_all(machine: Machine, names: Iterable[str], values: Iterable[Value]) -> None:
    """Write one value to each register; registers without a value keep theirs."""
    for name, value in zip(names, values, strict=False):
        machine.write_register(name, value)


def write_sum_halves(
    machine: Machine, names: tuple[str, ...], total: Value, add_lower: Callable[[], Value] | None = None
) -> None:
    """Write a number to two registers; the lower half of a sum may be known although the sum is not."""
    lower = add_lower() if add_lower is not None and isinstance(total, UnknownValue) else total
    write_all(machine, names, (apply(lambda v: v & FULL, lower), apply(lambda v: (v >> 32) & FULL, total)))


def is_nonzero(*values: Value) -> Value:
    """Whether any of the registers is nonzero; known as soon as one known bit is set."""
    has_known_bit: Mask = False
    has_unknown_bit: Mask = False
    for value in values[:1] if values[0] is values[-1] else values:
        unknown_bits = unknown_bits_of(value)
        known_bits = as_plain_array(data_of(value)) & ~unknown_bits if isinstance(value, UnknownValue) else value != 0
        has_known_bit = has_known_bit | as_mask(known_bits)
        has_unknown_bit = has_unknown_bit | as_mask(unknown_bits)
    return with_unknown_bits(has_known_bit, has_unknown_bit & invert_mask(has_known_bit), *values)
