"""Whether data of shared memory can reach an address, a predicate or the way of a program.

In most matrix products it cannot: copies go to shared memory, from there to products, and results to stores. Then a
simulation need not keep the content of shared memory, and iterations of a loop can run in parallel that could not if
each of them had a copy (`grouped_gemm`).
"""

from __future__ import annotations

from collections import defaultdict

from artifact_inspector.execution.sass.operands import split_words
from artifact_inspector.formats.sass.statement import parse_statement
from artifact_inspector.model import Function, Instruction

_LOADS, _STORES, _GENERIC = ("LDS", "LDSM"), ("STS", "STSM", "STG", "REDG"), ("LD", "ST", "ATOM", "RED")
_OTHER_ACCESSES = ("SYNCS", "ATOMS", "REDS", "UTMA", "UBLK", "UTC", "LDT", "STT", "CALL", "BRX", "JMX", "RET")
"""Beginnings of opcodes that use shared memory in other ways, or lead to code that is not looked at."""
_COMPUTING = split_words("""
    MOV SEL PRMT SHFL R2UR P2R I2F I2FP I2I F2F F2FP F2I FRND MUFU FADD FMUL FFMA FSEL FMNMX FSETP FSET FADD2 FMUL2
    FFMA2 HADD2 HMUL2 HFMA2 HMNMX2 HSETP2 HSET2 DADD DMUL DFMA DSETP IADD IADD3 VIADD IMAD IMUL IABS IMNMX VIMNMX ISETP
    LEA LOP LOP3 PLOP3 SHF SHL SHR SGXT BMSK BREV FLO POPC
    """)
"""Opcodes whose results depend on nothing but their operands."""


def data_decides(function: Function) -> bool:
    """Whether anything that is loaded from shared memory may reach an address, a guard or the control flow.

    A forward data flow over registers: a result is such data if an operand is. Every other use of it decides something.
    """
    opcodes = {instruction.opcode for instruction in function.instructions}
    if any(opcode.startswith(_OTHER_ACCESSES) or opcode.partition(".")[0] in _GENERIC for opcode in opcodes):
        return True
    tainted_at: defaultdict[int, set[str]] = defaultdict(set)
    pending = list(range(len(function.blocks)))
    while pending:
        number = pending.pop()
        block = function.blocks[number]
        tainted = set(tainted_at[number])
        for instruction in function.instructions[block.start : block.stop]:
            if _decides(instruction, tainted):
                return True
        for successor in block.successors:
            if not tainted <= tainted_at[successor]:
                tainted_at[successor] |= tainted
                pending.append(successor)
    return False


def _decides(instruction: Instruction, tainted: set[str]) -> bool:
    """Whether an instruction uses such data for more than its results; updates the registers that hold some."""
    base = instruction.opcode.partition(".")[0]
    results, reads = instruction.operands
    is_product = "MMA" in base
    is_data = base in _LOADS or is_product
    if tainted.intersection(reads):
        if instruction.guard is not None and instruction.guard.lstrip("!@") in tainted:
            return True
        if base in _STORES:
            return not tainted.isdisjoint(_address_reads(instruction, reads))
        is_computed = base in _COMPUTING or base.removeprefix("U") in _COMPUTING
        if not is_computed and (not is_product or any(name.startswith("U") for name in tainted.intersection(reads))):
            return True
        is_data = True
    if is_data:
        tainted.update(results)
    elif instruction.guard is None:
        tainted.difference_update(results)
    return False


def _address_reads(instruction: Instruction, reads: tuple[str, ...]) -> tuple[str, ...]:
    """What a store reads besides the data, its last operand."""
    data = parse_statement(instruction.text).operands[-1].name
    return reads[: len(reads) - 1 - reads[::-1].index(data)] if data in reads else reads
