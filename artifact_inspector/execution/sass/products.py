"""SASS matrix products of a warp: HMMA, IMMA and QMMA, computed where the launch has values for its data.

A word holds 4 bytes of neighbours along K. Lane / 4 selects the row of A, the column of B, and the row of the sum;
lane % 4 selects the word, or the pair of columns. Register r of A holds rows 8·(r % 2) onwards and the words
4·(r / 2) onwards. Products are exact, and so are sums whose terms fit 24 bits. Others are off by at most 2⁻²³ of the
sum of the magnitudes, because the hardware drops low bits of its addends.

**Source** PTX ISA, "Matrix Fragments for mma.m16n8k16". M. Fasi et al., "Numerical behavior of NVIDIA tensor cores"
(2021), for the accumulation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    FULL,
    IntArray,
    UnknownValue,
    Value,
    broadcast_value,
    data_of,
    unknown_bits_of,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement
from artifact_inspector.model.float_formats import (
    FLOAT16,
    FLOAT32,
    FORMATS,
    TF32,
    Doubles,
    FloatFormat,
    Rounding,
    bits_of,
    numbers_of,
)

_SHAPE = re.compile(r"(?:16)(8)(8|16|32|64|128)$")
INTEGERS: Mapping[str, tuple[int, bool]] = {"S8": (8, True), "U8": (8, False), "S4": (4, True), "U4": (4, False)}
Decoder = Callable[[IntArray], NDArray[np.float64]]
"""Words → the numbers in each, along a new last axis."""


def decoder_of(kind: str, rounding: Rounding, *, is_integer: bool) -> Decoder:
    """Decoder of a format, by its modifier."""
    return _integer_decoder(*INTEGERS[kind]) if is_integer else _float_decoder(FORMATS[kind], rounding)


def _float_decoder(source: FloatFormat, rounding: Rounding) -> Decoder:

    def decode(words: IntArray) -> Doubles:
        shifts = np.arange(0, 32, source.bits)
        numbers = numbers_of(words[..., None] >> shifts, source)
        return rounding.to_format(numbers, TF32) if source is TF32 else np.asarray(numbers)

    return decode


def _integer_decoder(bits: int, is_signed: bool) -> Decoder:
    def decode(words: IntArray) -> Doubles:
        fields = words[..., None] >> np.arange(0, 32, bits) & (1 << bits) - 1
        sign = 1 << bits - 1
        return np.asarray((fields ^ sign) - sign if is_signed else fields, np.float64)

    return decode


def accumulate(a: Doubles, b: Doubles, c: Doubles, rounding: Rounding) -> Doubles:
    """The rows of A times the rows of B, plus C, before it is rounded to the format of the sum."""
    with np.errstate(all="ignore"):
        total: Doubles = np.matmul(a, np.swapaxes(b, -1, -2)) + c
        if not rounding.is_random:
            return total
        magnitude = np.matmul(np.abs(a), np.swapaxes(np.abs(b), -1, -2)) + np.abs(c)
        unit = np.minimum(_smallest_unit(a) * _smallest_unit(b), _smallest_unit(c))
        is_exact = magnitude < unit * 2.0**23
        return np.asarray(np.where(is_exact, total, rounding.approximate(total, 0.0, magnitude * 2.0**-23)))


def _smallest_unit(matrix: Doubles) -> Doubles:
    """The smallest power of two of which all elements of each matrix are multiples."""
    mantissa, exponent = np.frexp(np.where(np.isfinite(matrix), matrix, 0.0))
    digits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    units = np.where(digits == 0, np.inf, np.ldexp((digits & -digits).astype(float), exponent - 53))
    return np.asarray(units.min(axis=(-1, -2), keepdims=True))


def _build_product(statement: SassStatement) -> op.StepRun:
    shape = next((match for m in statement.modifiers if (match := _SHAPE.match(m))), None)
    kinds = list(takewhile(lambda m: not m.startswith("SAT"), statement.modifiers))
    name, _, at = op.destinations(statement, 0)
    a, b, c, *rest = statement.operands[at:]
    sources = [m for m in kinds[1:] if m in INTEGERS] or [m for m in kinds[1:] if m in FORMATS][1:] or ["F16"]
    is_integer = statement.base == "IMMA"
    accumulator = FLOAT16 if not is_integer and "F16" in kinds[1:2] else FLOAT32
    if shape is None or name is None or statement.has_modifier("SP") or (rest and rest[0].name not in ("PT", "UPT")):
        return op.unknown_result_run(name, statement)
    pair = (sources[0], sources[-1])
    bits = INTEGERS[pair[0]][0] if is_integer else FORMATS[pair[0]].bits
    word_count = int(shape[2]) * bits // 128
    sum_words = 2 if accumulator is FLOAT16 else 4
    counts = (2 * word_count, word_count, sum_words)
    readers = [
        [op.word_reader(operand, word_offset=step) for step in range(count)]
        for operand, count in zip((a, b, c), counts, strict=True)
    ]

    def run(machine: Machine) -> None:
        if machine.memory.values is None:
            op.write_all(machine, names, machine.unknown_value(f"the result of {statement.opcode}"))
            return
        values = [[reader(machine) for reader in part] for part in readers]
        rounding = machine.memory.rounding
        decoders = [decoder_of(kind, rounding, is_integer=is_integer) for kind in pair]
        words, unknown = gather_words(machine, [value for part in values for value in part])
        left = decode_rows([words[r] for r in range(0, counts[0], 2)], decoders[0])
        lower = decode_rows([words[r] for r in range(1, counts[0], 2)], decoders[0])
        right = decode_rows(words[counts[0] : counts[0] + counts[1]], decoders[1])
        addends = decode_sums(words[counts[0] + counts[1] :], accumulator, is_integer=is_integer)
        total = accumulate(np.concatenate((left, lower), axis=-2), right, addends, rounding)
        results = encode_sums(total, accumulator, rounding, is_integer=is_integer)
        write_words(machine, names, results, unknown, values)

    names = [op.register_after(name, step) for step in range(sum_words)]
    return run


def gather_words(machine: Machine, values: Sequence[Value]) -> tuple[list[IntArray], NDArray[np.bool_]]:
    """Registers by CTA, warp and lane, (CTAs, warps, 8, 4), and which warps have an unknown one."""
    rows = max((np.shape(data_of(value))[0] for value in values if np.ndim(data_of(value)) == 2), default=1)
    rows = max((np.shape(unknown_bits_of(v))[0] for v in values if np.ndim(unknown_bits_of(v)) == 2), default=rows)
    rows = machine.rows if rows > 1 else rows
    shape = (rows, machine.threads)
    words = [broadcast_value(data_of(value), shape).reshape(rows, -1, 8, 4) for value in values]
    unknown = np.zeros((rows, machine.threads // machine.warp_size), bool)
    for value in values:
        if isinstance(value, UnknownValue):
            lanes = broadcast_value(value.unknown_bits, shape).reshape(*unknown.shape, -1)
            unknown |= (lanes != 0).any(axis=2)
    return words, unknown


def decode_rows(words: Sequence[IntArray], decode: Decoder) -> Doubles:
    """The rows that the lanes hold, (CTAs, warps, 8, K)."""
    parts = [decode(word) for word in words]  # each (CTAs, warps, 8, 4, elements of a word)
    return np.concatenate([part.reshape(*part.shape[:3], -1) for part in parts], axis=-1)


def decode_sums(words: Sequence[IntArray], target: FloatFormat, *, is_integer: bool) -> Doubles:
    """The 16×8 addends: registers hold columns 2·lane and 2·lane + 1 of the upper and then of the lower rows."""
    if target is FLOAT16:
        columns = [numbers_of(word >> shift, FLOAT16) for word in words for shift in (0, 16)]
    elif is_integer:
        columns = [((word ^ 0x80000000) - 0x80000000).astype(np.float64) for word in words]
    else:
        columns = [numbers_of(word, FLOAT32) for word in words]
    halves = [np.stack(columns[first : first + 2], axis=-1) for first in (0, 2)]
    return np.concatenate([half.reshape(*half.shape[:3], 8) for half in halves], axis=-2)


def encode_sums(total: Doubles, target: FloatFormat, rounding: Rounding, *, is_integer: bool) -> list[IntArray]:
    """The registers that hold a 16×8 sum, each (CTAs, threads)."""
    codes = np.rint(total).astype(np.int64) & FULL if is_integer else bits_of(rounding.to_format(total, target), target)
    rows = [codes[..., first : first + 8, :].reshape(*codes.shape[:2], 8, 4, 2) for first in (0, 8)]
    registers = [half[..., column] for half in rows for column in (0, 1)]
    if target is FLOAT16:
        registers = [registers[first] | registers[first + 1] << 16 for first in (0, 2)]
    return [register.reshape(len(codes), -1) for register in registers]


def write_words(
    machine: Machine,
    names: Sequence[str],
    results: Sequence[IntArray],
    unknown: NDArray[np.bool_],
    sources: Sequence[Sequence[Value]],
) -> None:
    """Write the registers of a product; those of warps with unknown sources are unknown."""
    missing = 0
    for value in (value for part in sources for value in part):
        missing |= value.missing_inputs if isinstance(value, UnknownValue) else 0
    lanes = np.repeat(np.where(unknown, FULL, 0), machine.warp_size, axis=1)
    for name, result in zip(names, results, strict=True):
        machine.write_register(name, UnknownValue(result, lanes, missing) if unknown.any() else result)


PRODUCTS: Mapping[str, op.RunBuilder] = dict.fromkeys(("HMMA", "IMMA", "QMMA"), _build_product)
"""Opcode without modifiers → builder of its run."""
