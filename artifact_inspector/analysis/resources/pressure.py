"""Live registers at each instruction of machine code: backward liveness over its blocks.

A register is live from its write to its last read. A guarded write keeps the other lanes' values live.
The pressure at an instruction counts the registers live before it and those it writes.

**Source** Aho, Lam, Sethi, Ullman, "Compilers", §9.2.5 (live-variable analysis).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from artifact_inspector.model import Function, RegisterBank


@dataclass(frozen=True, slots=True)
class Pressure:
    """Live registers of one function."""

    alive: Mapping[RegisterBank, tuple[int, ...]]
    """Register pressure at each instruction."""
    peaks: Mapping[RegisterBank, int]
    """The first instruction with the maximum pressure."""
    held: Mapping[str, int | None]
    """Register live at the peak of vector registers → the last earlier instruction in text order that
    wrote it; None if none did.
    """


def find_pressure(function: Function, bank_of: Callable[[str], RegisterBank | None]) -> Pressure:
    """Live registers at each instruction, and the registers live at the peak.

    Args:
        function: of machine code.
        bank_of: the register file of a name; None if it is not a register.
    """
    names: dict[str, int] = {}
    reads, writes, kills = [], [], []
    for instruction in function.instructions:
        operands = instruction.operands
        written, read = (
            _bits(names, [name for name in side if bank_of(name) is not None]) for side in operands
        )
        reads.append(read)
        writes.append(written)
        kills.append(written if instruction.guard is None else 0)
    live = _alive_behind(function, reads, kills)
    holds = _held(function, reads, writes, kills, live)
    banks: dict[RegisterBank, int] = {}
    for name, bit in names.items():
        bank = bank_of(name)
        assert bank is not None
        banks[bank] = banks.get(bank, 0) | 1 << bit
    alive = {
        bank: tuple((held & mask).bit_count() for held in holds)
        for bank, mask in sorted(banks.items(), key=lambda item: item[0].value)
    }
    peaks = {bank: max(range(len(counts)), key=counts.__getitem__) for bank, counts in alive.items()}
    at = peaks.get(RegisterBank.VECTOR)
    written_by: dict[str, int | None] = {}
    if at is not None:
        wanted = {name for name, bit in names.items() if holds[at] >> bit & 1 and bank_of(name) in _COUNTED}
        written_by = dict.fromkeys(sorted(wanted, key=lambda name: names[name]))
        for index in range(at + 1):
            for name in function.instructions[index].operands.results:
                if name in wanted:
                    written_by[name] = index
    return Pressure(alive, peaks, written_by)


_COUNTED = (RegisterBank.VECTOR, RegisterBank.ACCUMULATOR)


def _bits(names: dict[str, int], registers: Sequence[str]) -> int:
    found = 0
    for name in registers:
        found |= 1 << names.setdefault(name, len(names))
    return found


def _alive_behind(function: Function, reads: Sequence[int], kills: Sequence[int]) -> list[int]:
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
    before: list[list[int]] = [[] for _ in blocks]
    for at, block in enumerate(blocks):
        for after in block.successors:
            before[after].append(at)
    behind = [0] * len(blocks)
    front = [uses[at] for at in range(len(blocks))]
    waiting = list(range(len(blocks)))
    while waiting:
        at = waiting.pop()
        behind[at] = 0
        for after in blocks[at].successors:
            behind[at] |= front[after]
        found = uses[at] | (behind[at] & ~defines[at])
        if found != front[at]:
            front[at] = found
            waiting += before[at]
    for at, block in enumerate(blocks):
        behind[at] = 0
        for after in block.successors:
            behind[at] |= front[after]
    return behind


def _held(
    function: Function,
    reads: Sequence[int],
    writes: Sequence[int],
    kills: Sequence[int],
    behind: Sequence[int],
) -> list[int]:
    """Registers live before each instruction, plus those that it writes."""
    found = [0] * len(function.instructions)
    for block, end in zip(function.blocks, behind, strict=True):
        alive = end
        for index in range(block.stop - 1, block.start - 1, -1):
            alive = (alive & ~kills[index]) | reads[index]
            found[index] = alive | writes[index]
    return found


def count_to_shed(blocks_with: Callable[[int], int | None], registers: int) -> int | None:
    """The smallest reduction of registers with which one more block fits.

    None if registers are not the limit.

    Args:
        blocks_with: blocks that fit for a number of registers per thread.
        registers: per thread at present.
    """
    now = blocks_with(registers)
    if now is None:
        return None
    fits = (fewer for fewer in range(1, registers) if (blocks_with(registers - fewer) or 0) > now)
    return next(fits, None)
