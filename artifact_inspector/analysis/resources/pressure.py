"""Live registers at each instruction of machine code: backward liveness over its blocks.

A register is live from its write to its last read. A guarded write keeps the other lanes' values live. The pressure at
an instruction counts the registers live before it and those it writes.

**Source** Aho, Lam, Sethi, Ullman, "Compilers", §9.2.5 (live-variable analysis).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.model import Function, RegisterBank


@dataclass(frozen=True, slots=True)
class RegisterPressure:
    """Live registers of one function."""

    live_counts: Mapping[RegisterBank, tuple[int, ...]]
    """Register pressure at each instruction."""
    peaks: Mapping[RegisterBank, int]
    """The first instruction with the maximum pressure."""
    live_at_peak: Mapping[str, int | None]
    """Register live at the peak of vector registers → the last earlier instruction in text order that wrote it; None if
    none did.
    """


def find_pressure(function: Function, bank_of: Callable[[str], RegisterBank | None]) -> RegisterPressure:
    """Live registers at each instruction, and the registers live at the peak.

    Args:
        bank_of: the register file of a name; None if it is not a register.
    """
    names: dict[str, int] = {}
    reads, writes, kills = [], [], []
    for instruction in function.instructions:
        write_bits, read_bits = (
            reduce(or_, (1 << names.setdefault(name, len(names)) for name in filter(bank_of, side)), 0)
            for side in instruction.operands
        )
        reads.append(read_bits)
        writes.append(write_bits)
        kills.append(write_bits if instruction.guard is None else 0)
    live = _live_out(function, reads, kills)
    live_sets = _live_at_instructions(function, reads, writes, kills, live)
    banks: dict[RegisterBank, int] = {}
    for name, bit in names.items():
        bank = bank_of(name)
        assert bank is not None
        banks[bank] = banks.get(bank, 0) | 1 << bit
    live_counts = {
        bank: tuple((live_bits & mask).bit_count() for live_bits in live_sets)
        for bank, mask in sorted(banks.items(), key=lambda item: item[0].value)
    }
    peaks = {bank: max(range(len(counts)), key=counts.__getitem__) for bank, counts in live_counts.items()}
    at = peaks.get(RegisterBank.VECTOR)
    written_by: dict[str, int | None] = {}
    if at is not None:
        counted_names = {name for name, bit in names.items() if live_sets[at] >> bit & 1 and bank_of(name) in _COUNTED}
        written_by = dict.fromkeys(sorted(counted_names, key=lambda name: names[name]))
        for index in range(at + 1):
            for name in function.instructions[index].operands.results:
                if name in counted_names:
                    written_by[name] = index
    return RegisterPressure(live_counts, peaks, written_by)


_COUNTED = (RegisterBank.VECTOR, RegisterBank.ACCUMULATOR)


def _live_out(function: Function, reads: Sequence[int], kills: Sequence[int]) -> list[int]:
    """Registers live at the end of each block."""
    blocks = function.blocks
    uses, defines = [], []
    for block in blocks:
        use = define = 0
        for index in range(block.start, block.stop):
            use |= reads[index] & ~define
            define |= kills[index]
        uses.append(use)
        defines.append(define)
    predecessors = group_by_key((successor, block.index) for block in blocks for successor in block.successors)
    live_in = list(uses)

    def live_after(at: int) -> int:
        return reduce(or_, (live_in[successor] for successor in blocks[at].successors), 0)

    waiting = list(range(len(blocks)))
    while waiting:
        at = waiting.pop()
        live = uses[at] | (live_after(at) & ~defines[at])
        if live != live_in[at]:
            live_in[at] = live
            waiting += predecessors.get(at, ())
    return list(map(live_after, range(len(blocks))))


def _live_at_instructions(
    function: Function, reads: Sequence[int], writes: Sequence[int], kills: Sequence[int], live_out: Sequence[int]
) -> list[int]:
    """Registers live before each instruction, plus those that it writes."""
    live_sets = [0] * len(function.instructions)
    for block, live in zip(function.blocks, live_out, strict=True):
        for index in range(block.stop - 1, block.start - 1, -1):
            live = (live & ~kills[index]) | reads[index]
            live_sets[index] = live | writes[index]
    return live_sets


def registers_to_free(blocks_with: Callable[[int], int | None], registers: int) -> int | None:
    """The smallest reduction of registers with which one more block fits; None if registers are not the limit.

    Args:
        blocks_with: blocks that fit for a number of registers per thread.
        registers: per thread at present.
    """
    current_blocks = blocks_with(registers)
    if current_blocks is None:
        return None
    fits = (fewer for fewer in range(1, registers) if (blocks_with(registers - fewer) or 0) > current_blocks)
    return next(fits, None)
