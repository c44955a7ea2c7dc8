"""SASS matrix products of a warpgroup: HGMMA, IGMMA and QGMMA.

Four warps share the reads of B from shared memory; each has 16 rows of the sum, and reads its part of A from shared
memory or registers. A sum has blocks of 16×8 as those of HMMA.

**Source** PTX ISA, "Asynchronous warpgroup level matrix instructions". Wavefronts as measured with ncu on an H200: n/4
for the four warps, and four more per warp for A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import takewhile

import numpy as np

from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import (
    BoolArray,
    IntArray,
    Value,
    broadcast_value,
    data_of,
    unknown_bits_of,
)
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.execution.sass.products import (
    INTEGERS,
    Decoder,
    accumulate,
    decode_rows,
    decode_sums,
    decoder_of,
    encode_sums,
    gather_words,
    write_words,
)
from artifact_inspector.formats.sass.statement import SassOperandKind, SassStatement
from artifact_inspector.model.float_formats import FLOAT16, FLOAT32, FORMATS, Doubles

_UNIT = 16
"""Bytes that a product reads at a time."""
_WARPS = 4


@lru_cache(maxsize=1024)
def operand_units(descriptor: int, rows: int, *, is_transposed: bool, is_blackwell: bool) -> IntArray:
    """Addresses of the 16-byte units of shared memory that a product reads of one operand.

    **Source** PTX ISA, "Asynchronous warpgroup level matrix instructions: matrix descriptor, strides, swizzling".

    Args:
        rows: extent of the operand in M or N; in K it has 32 bytes.
        is_transposed: whether M or N is contiguous; such elements have 2 bytes.
        is_blackwell: whether the descriptor is of sm_100 or later.
    """
    start, leading, stride = ((descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    mode = descriptor >> 61 & 7
    width = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}.get(mode, 16) if is_blackwell else (16, 128, 64, 32)[mode >> 1]
    if is_transposed:
        row, unit = np.arange(16)[:, None], _UNIT * np.arange(rows * 2 // _UNIT)
        at = row // 8 * stride + row % 8 * width + unit // width * leading + unit % width
    else:
        row, unit = np.arange(rows)[:, None], np.arange(2)
        at = row // 8 * stride + row % 8 * width + unit * (leading if width == _UNIT else _UNIT)
    at = at.ravel() + start
    return np.asarray(at ^ (at >> 3 & width - _UNIT), np.int64)


def _build_warpgroup_product(statement: SassStatement) -> op.StepRun:
    shape = next((m for m in statement.modifiers if m.count("x") == 2), "0x0x0")
    columns = int(shape.split("x")[1])
    sources = [o for o in statement.operands[1:] if o.kind is not SassOperandKind.PREDICATE]
    reads_a = bool(sources) and sources[0].prefix == "gdesc"
    wavefront_sixteenths = columns + (64 if reads_a else 0)  # in sixteenths per warp
    compute = _Computation(statement, columns)
    accumulator_words = columns // (4 if _accumulator(statement) is FLOAT16 else 2)
    names = [op.register_after(statement.operands[0].name, step) for step in range(accumulator_words)]

    def run(machine: Machine) -> None:
        counts, index = machine.counters, machine.step.index
        counts.wavefronts[index] += wavefront_sixteenths * machine.group.warps // 16
        counts.wavefronts_ideal[index] += wavefront_sixteenths * machine.group.warps // 16
        if machine.step.only_counts:
            return
        if machine.memory.values is None or not compute(machine, names):
            op.write_all(machine, names, machine.unknown_value(f"the result of {statement.base}"))

    return run


def _accumulator(statement: SassStatement) -> object:
    kinds = [m for m in statement.modifiers if m in FORMATS]
    return FLOAT16 if kinds[:1] == ["F16"] else FLOAT32


class _Computation:
    """Computes a product; returns whether it could.

    Args:
        columns: of the sum.
    """

    def __init__(self, statement: SassStatement, columns: int) -> None:
        kinds = [*takewhile(lambda m: not m.startswith("SAT"), statement.modifiers)][1:]
        self.is_integer = statement.base == "IGMMA"
        self.accumulator = FLOAT16 if _accumulator(statement) is FLOAT16 else FLOAT32
        named = [m for m in kinds if m in INTEGERS] if self.is_integer else [m for m in kinds if m in FORMATS][1:]
        self.pair = (named[0], named[-1]) if named else ("F16", "F16")
        self.columns, self.base = columns, statement.base
        operands = [o for o in statement.operands[1:] if o.kind is not SassOperandKind.PREDICATE]
        self.left = operands[0] if operands else None
        descriptors = [o for o in operands if o.prefix == "gdesc"]
        self.descriptor = descriptors[0] if descriptors else None
        addends = [o for o in operands[1:] if o.kind is SassOperandKind.REGISTER and o.prefix != "gdesc"]
        predicates = [o for o in statement.operands[1:] if o.kind is SassOperandKind.PREDICATE]
        words = columns // (4 if self.accumulator is FLOAT16 else 2)
        self.addend_readers = [op.word_reader(addends[0], word_offset=n) for n in range(words)] if addends else []
        self.adds: op.Reader = op.predicate_reader(predicates[0]) if predicates else (lambda _machine: True)

    def __call__(self, machine: Machine, names: Sequence[str]) -> bool:
        """Compute the product and write its registers."""
        group_threads = _WARPS * machine.warp_size
        adds = machine.resolve_active(self.adds(machine))
        if self.descriptor is None or not self.addend_readers or machine.threads % group_threads:
            return False
        if np.ndim(data_of(adds)) and len(np.unique(np.asarray(data_of(adds)))) > 1:
            return False
        rounding = machine.memory.rounding
        decoders = [decoder_of(kind, rounding, is_integer=self.is_integer) for kind in self.pair]
        register = self.descriptor.descriptor or self.descriptor.address_registers[0][0]
        second = self._load(machine, op.register_after(register, 2), self.columns, "tnspB", decoders[1])
        values: list[Value] = []
        first: tuple[Doubles, BoolArray] | None
        if self.left is not None and self.left.kind is SassOperandKind.REGISTER:
            values = [op.word_reader(self.left, word_offset=n)(machine) for n in range(4)]
            words, unknown = gather_words(machine, values)
            rows = [decode_rows(words[half::2], decoders[0]) for half in (0, 1)]
            first = (np.concatenate(rows, axis=-2), unknown)
        else:
            first = self._load(machine, register, 64, "tnspA", decoders[0])
        if first is None or second is None:
            return False
        a, a_unknown = first
        if a.shape[-2] == 64:  # of the warpgroup: each warp has 16 rows
            a = a.reshape(*a.shape[:2], _WARPS, 16, -1).reshape(len(a), -1, 16, a.shape[-1])
            a_unknown = np.repeat(a_unknown, _WARPS, axis=1)
        b, b_unknown = np.repeat(second[0], _WARPS, axis=1), np.repeat(second[1], _WARPS, axis=1)
        addends = [reader(machine) for reader in self.addend_readers] if np.asarray(data_of(adds)).any() else []
        words, c_unknown = gather_words(machine, addends or [0] * len(self.addend_readers))
        step = 2 if self.accumulator is FLOAT16 else 4
        blocks = [
            decode_sums(words[at : at + step], self.accumulator, is_integer=self.is_integer)
            for at in range(0, len(words), step)
        ]
        total = accumulate(a, b, np.concatenate(blocks, axis=-1), rounding)
        results = [
            register_words
            for at in range(0, self.columns, 8)
            for register_words in encode_sums(
                total[..., at : at + 8], self.accumulator, rounding, is_integer=self.is_integer
            )
        ]
        unknown = a_unknown | b_unknown | c_unknown
        write_words(machine, names, results, unknown, [values, addends, [machine.unknown_value("shared memory")]])
        return True

    def _load(
        self, machine: Machine, register: str, rows: int, transposed: str, decode: Decoder
    ) -> tuple[Doubles, BoolArray] | None:
        """An operand in shared memory, (CTAs, warpgroups, rows, K), and where it is unknown."""
        words = [machine.resolve_active(machine.read_register(op.register_after(register, n))) for n in (0, 1)]
        if any(np.any(np.asarray(unknown_bits_of(word)) != 0) for word in words) or self.descriptor is None:
            return None
        group_threads = _WARPS * machine.warp_size
        low, high = (broadcast_value(data_of(word), machine.shape)[:, ::group_threads] for word in words)
        is_transposed = transposed in self.descriptor.name.rpartition("]")[2]
        matrices, known = [], []
        for group in range(low.shape[1]):
            descriptors = [a | b << 32 for a, b in zip(low[:, group].tolist(), high[:, group].tolist(), strict=True)]
            addresses = np.stack(
                [operand_units(one, rows, is_transposed=is_transposed, is_blackwell=False) for one in descriptors]
            )
            at = (addresses[:, :, None] + np.arange(0, _UNIT, 4)).reshape(len(addresses), -1)
            loaded = machine.shared_memory.load(at, 4, np.ones(at.shape, bool))
            if loaded is None:
                return None
            data, is_known = np.broadcast_to(loaded[0], at.shape), np.broadcast_to(loaded[1], at.shape)
            numbers = decode(data).reshape(len(data), -1)
            matrix = numbers.reshape(len(data), 16, rows) if is_transposed else numbers.reshape(len(data), rows, -1)
            matrices.append(np.swapaxes(matrix, 1, 2) if is_transposed else matrix)
            known.append(is_known.all(axis=1))
        return np.stack(matrices, axis=1), ~np.stack(known, axis=1)


WARPGROUP_PRODUCTS: Mapping[str, op.RunBuilder] = dict.fromkeys(
    ("HGMMA", "IGMMA", "QGMMA", "BGMMA"), _build_warpgroup_product
)
"""Opcode without modifiers → builder of its run."""
