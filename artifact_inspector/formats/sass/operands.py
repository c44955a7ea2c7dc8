"""Registers that SASS instructions write and read, with register ranges expanded.

The text only names the first register of a range; the opcode determines the length. RZ, PT and their uniform
counterparts, which hold no value, are omitted.

**Source** CUDA Binary Utilities, "Instruction Set Reference", lists the opcodes. The widths are those of `nvdisasm
-print-life-ranges`; tests/oracle compares them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from artifact_inspector.formats._format import DECODE_CACHE_SIZE
from artifact_inspector.formats.sass.instructions import bytes_moved, matrix_of
from artifact_inspector.model import Operands
from artifact_inspector.model.text import parse_integer

_STATEMENT = re.compile(r"(?:@!?(U?P\w+)\s+)?([A-Z][\w.:]*)\s*")
_PREDICATE = re.compile(r"U?P(?:[0-9]|T)$")
_PLAIN = re.compile(r"[-~|+!\s]*(U?R)(\d{1,3}|Z)\b((?:\.\w+)*)")
_NAMED = re.compile(r"(?<![\w.])(U?P\d|(U?R)(\d{1,3})((?:\.\w+)*))(?!\w)")
_BRACKET = re.compile(r"(?<!\w)(\w*)\[([^][]*)\]")
_COUNT = re.compile(r"\.(?:16dp(\d+)bit\w*\.)?x(\d{1,3})(?=\.|$)")
_MATRICES = re.compile(r"88\.(\d)(?=\.|$)")
_TYPES = re.compile(r"\.([FUS])(8|16|32|64)(?=\.|$)")
_DIMENSIONS = re.compile(r"\.(\d)D")


def _opcode_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_RESULT = _opcode_set("""
    ST STG STS STSM STL STT STTM STAS SUST RED REDG REDS REDAS SURED UTMASTG UTMALDG UTMAPF UTMAREDG UTMACCTL
    UTMACMDFLUSH UBLKCP UBLKPF UBLKRED USTGR UREDGR LDGSTS LDGDEPBAR DEPBAR ARRIVES WARPGROUP WARPSYNC BAR BRA BRX BRXU
    JMP JMX JMXU CALL RET EXIT KILL BPT BSSY BSYNC BREAK NOP NANOSLEEP YIELD MEMBAR FENCE ERRBAR CGAERRBAR CCTL CCTLL
    CCTLT UCCTL UCGABAR_ARV UCGABAR_WAIT UTCBAR UTCHMMA UTCIMMA UTCQMMA UTCOMMA UTCCP UTCSHIFT UVIRTCOUNT ACQBULK
    PREEXIT PMTRIG ENDCOLLECTIVE
    """)
_COMPARISONS = _opcode_set("ISETP FSETP DSETP HSETP2 PSETP PLOP3 UISETP UFSETP UPSETP UPLOP3")
"""Writes two predicates and no register."""
_WRITES_CARRY = _opcode_set("IADD IADD3 IADD32I UIADD3 LEA ULEA IMAD UIMAD VOTE VOTEU")
"""Also writes the predicates right after the result."""
_GLOBAL = _opcode_set("LD LDG ST STG ATOM ATOMG RED REDG CCTL LDGSTS QSPC")
_SIZED = _opcode_set("LD LDG LDS LDL LDC LDCU ULDC ATOM ATOMG ATOMS ST STG STS STL RED REDG STAS REDAS")
_SCALE_OPERAND = 5
"""Position of the `UTC*MMA` operand with the addresses of both scales, if there are scales."""
_PACKED = _opcode_set("FADD2 FMUL2 FFMA2")
_DOUBLES = _opcode_set("DADD DMUL DFMA DSETP DMNMX DSET")


class _RegisterCounts(NamedTuple):
    """Register counts of the operands of an opcode."""

    result: int
    sources: tuple[int, ...]
    """Registers of each operand after the results; the last one also for all further operands."""


@lru_cache(maxsize=DECODE_CACHE_SIZE)
def decode(text: str) -> Operands:
    """Operands: results come first, predicates before the register."""
    match = _STATEMENT.match(text)
    if match is None:
        return Operands((), ())
    guard, opcode = match[1], match[2]
    base = opcode.partition(".")[0]
    operand_text = text[match.end() :].partition("(*")[0]
    operands = [operand.strip() for operand in operand_text.split(",")] if operand_text and base != "DEPBAR" else []
    widths = _widths(opcode)
    results, at = _results(base, opcode, operands, widths)
    reads: list[str] = [] if guard is None or guard.endswith("T") else [guard]
    sources = widths.sources
    for operand_index, operand in enumerate(operands[at:]):
        if "[" in operand:
            reads += _address_registers(base, opcode, operand, operand_index)
        elif operand == "PR":
            reads += _mask_predicates(operands)
        elif (plain := _PLAIN.match(operand)) is not None:
            # `.F32` is one value for both halves of a packed operation.
            is_single = base in _PACKED and plain[3].endswith(".F32")
            width = 1 if is_single else sources[min(operand_index, len(sources) - 1)]
            reads += _register_range(plain[1], plain[2], width)
        elif _has_value(name := operand.lstrip("!")):
            reads.append(name)
    return Operands(tuple(results), tuple(reads))


def _mask_predicates(operands: list[str]) -> list[str]:
    """The predicates in the mask of P2R and R2P; all of them if it is not a number."""
    mask = parse_integer(operands[-1])
    mask = 127 if mask is None else mask
    return [f"P{number}" for number in range(7) if mask >> number & 1]


def _has_value(name: str) -> bool:
    return _PREDICATE.match(name) is not None and not name.endswith("T")


def _register_range(bank: str, first: str, width: int) -> list[str]:
    return [] if first == "Z" else [f"{bank}{number}" for number in range(int(first), int(first) + width)]


def _results(base: str, opcode: str, operands: list[str], widths: _RegisterCounts) -> tuple[list[str], int]:
    """The results, and the number of operands that name them."""
    if base in _NO_RESULT:
        return [], 0
    names: list[str] = []
    at = 0
    if base == "R2P":
        return _mask_predicates(operands), 1
    max_predicates = 2 if base in _COMPARISONS else 1
    while at < len(operands) and at < max_predicates and _PREDICATE.match(operands[at]) is not None:
        names += [operands[at]] if _has_value(operands[at]) else []
        at += 1
    if base in _COMPARISONS or base == "FCHK" or opcode.startswith("SYNCS.PHASECHK"):
        return names, at
    plain = _PLAIN.match(operands[at]) if at < len(operands) and "[" not in operands[at] else None
    if plain is None:
        return names, at
    names += _register_range(plain[1], plain[2], widths.result)
    at += 1
    if ".ENL2" in opcode:  # two ranges
        second = _PLAIN.match(operands[at]) if at < len(operands) else None
        if second is not None:
            names += _register_range(second[1], second[2], widths.result)
            at += 1
    if base in _WRITES_CARRY:
        while at < len(operands) and _PREDICATE.match(operands[at]) is not None:
            names += [operands[at]] if _has_value(operands[at]) else []
            at += 1
            if base.startswith("VOTE"):
                break
    return names, at


def _address_registers(base: str, opcode: str, operand: str, operand_index: int) -> list[str]:
    """Registers of an address, a descriptor or an index into constants."""
    names: list[str] = []
    for prefix, inside in _BRACKET.findall(operand):
        for name, bank, first, suffix in _NAMED.findall(inside):
            if not bank:
                names.append(name)
                continue
            width = 1
            if prefix in ("desc", "cx") or ".64" in suffix:
                width = 2
            elif prefix == "gdesc":
                width = 4 if base[1:] == "GMMA" else 2  # for both a and b, or for one
            elif prefix == "tmem":
                width = 2 if operand_index == _SCALE_OPERAND else 1
            elif prefix == "" and base in _GLOBAL:
                is_shared = base == "LDGSTS" and operand_index == 0
                width = 2 if bank != "R" or (".E" in opcode and not suffix and not is_shared) else 1
            elif base.startswith("UBLK"):
                # A global address has 64 bits; next to the shared address is the barrier.
                width = 1 if operand_index and ".G.S" in opcode else 2
            elif base.startswith("UTMA"):
                dimensions = _DIMENSIONS.search(opcode)
                # The shared address, a load's barrier, the coordinates; and the tensor map.
                if operand_index == 0 and dimensions is not None:
                    width = int(dimensions[1]) + (2 if base == "UTMALDG" else 1)
                else:
                    width = 2
            names += _register_range(bank, first, width)
    return names


@lru_cache(maxsize=4096)
def _widths(opcode: str) -> _RegisterCounts:
    base = opcode.partition(".")[0]
    if "MMA" in base:
        return _matrix_widths(opcode)
    if base in _SIZED:
        width = (bytes_moved(opcode) + 3) // 4 // (2 if ".ENL2" in opcode else 1)  # in two ranges
        return _RegisterCounts(width, (width,))
    if base in ("LDSM", "STSM"):
        match = _MATRICES.search(opcode)
        width = 1 if match is None else int(match[1])
        return _RegisterCounts(width, (width,))
    if base in ("LDTM", "STTM"):
        match = _COUNT.search(opcode)
        width = 1 if match is None else int(match[2]) * {"128": 2, "256": 4}.get(match[1], 1)
        return _RegisterCounts(width, (width,))
    if base in ("IMAD", "UIMAD") and (".WIDE" in opcode or ".HI" in opcode):
        return _RegisterCounts(2 if ".WIDE" in opcode else 1, (1, 1, 2, 1))
    if base in _DOUBLES or base in _PACKED or opcode.startswith("SYNCS.EXCH.64"):
        return _RegisterCounts(2, (2,))
    if base in ("F2F", "I2F", "F2I", "FRND", "I2I"):
        return _conversion_widths(base, opcode)
    if base == "MOVM":
        return _RegisterCounts(2 if ".U4TO8" in opcode else 1, (1,))
    if base == "CS2R":
        return _RegisterCounts(1 if ".32" in opcode else 2, (1,))
    if base in ("RET", "CALL", "BRX", "JMX", "LEPC"):
        return _RegisterCounts(2, (2,))
    if re.search(r"\.[US]?64(?=\.|$)", opcode) and base not in ("SHF", "USHF"):
        return _RegisterCounts(2, (2,))
    return _RegisterCounts(1, (1,))


def _conversion_widths(base: str, opcode: str) -> _RegisterCounts:
    types = _TYPES.findall(opcode)
    if base == "F2F":
        result, source = ([bits for _, bits in types] * 2)[:2] if types else ("32", "32")
    elif base in ("FRND", "I2I"):
        result = source = types[0][1] if types else "32"
    else:
        float_bits = [bits for letter, bits in types if letter == "F"]
        integer_bits = [bits for letter, bits in types if letter != "F"]
        result, source = (float_bits, integer_bits) if base == "I2F" else (integer_bits, float_bits)
        result, source = (bit_widths[0] if bit_widths else "32" for bit_widths in (result, source))
    return _RegisterCounts(2 if result == "64" else 1, (2 if source == "64" else 1,))


_BITS = {"f64": 64, "f32": 32, "s32": 32, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}


def _matrix_widths(opcode: str) -> _RegisterCounts:
    """Registers of the fragments, spread over the 32 threads of a warp or the 128 of a warpgroup."""
    operation = matrix_of(opcode)
    if operation is None:
        return _RegisterCounts(1, (1,))
    if ".STEP" in opcode:  # two of the four registers per quarter warp
        return _RegisterCounts(2, (2,))
    inputs, _, result = operation.types.partition("→")
    a, b = inputs.split("×")
    threads = 128 if operation.issuer == "warpgroup" else 32

    def registers(elements: int, element: str) -> int:
        # QMMA keeps smaller floats in one byte each (PTX ISA, `mma` with `kind::f8f6f4`); OMMA packs them.
        bits = _BITS.get(element, 4 if opcode.startswith("OMMA") else 8)
        return max(1, elements * bits // (threads * 32))

    d = registers(operation.m * operation.n, result)
    first = registers(operation.m * operation.k, a) // (2 if ".SP" in opcode else 1)
    if operation.issuer == "warpgroup":
        return _RegisterCounts(d, (first, d))
    return _RegisterCounts(d, (first, registers(operation.k * operation.n, b), d, 1))
