"""Semantics of AMDGCN instructions in assembly files, intrinsics and LLVM's inline assembly.

Source: AMD's ISA manuals of CDNA and RDNA; LLVM's AMDGPU back end where stated.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._scan import Traits
from artifact_inspector.model import Arch, MatrixOp, Queue, RegisterBank, Trait, Transfer, Wait
from artifact_inspector.model.text import integer

TRAITS = Traits(
    {
        Trait.FUSED: r"v_\w*fma(?!x)|v_mac_|v_mad_f|v_dot",
        Trait.PACKED_PRODUCT: r"v_dot\d",
    }
)

_NUMBER = re.compile(r"0x[\da-fA-F]+|\d+")
_VMCNT = re.compile(r"\bvmcnt\((\d+|0x[\da-f]+)\)")
_WIDTH = re.compile(r"_(?:dword(?:x(\d))?|[us]?(byte|short)|(pk_\w{1,40}_)?(?:[biu]|b?f)(\d{1,4}))(?=_|$)")
_FORMATTED = re.compile(r"_format_(d16_)?([xyzw]+)$")
_CACHE = re.compile(r"(?<=[\s,])(glc|slc|dlc|scc|sc[01]|nt|th:\w+|scope:\w+)\b")
_RETURNS = re.compile(r"\b(?:glc|sc0)\b|ATOMIC_RETURN")
_MATRIX = re.compile(
    r"(s?mfmac?|swmmac|wmma)((?:_scale(?:16)?)?)_([a-z]+\d{1,4}(?:[a-z]+\d+)*)_(\d{1,4})x(\d{1,4})x(\d{1,4})(_?)(?:(\d{1,4})b_)?"
    r"((?:(?:f8f6f4|xf32|b?fp?\d+|iu?\d+|u\d+)(?:_|$))+)"
)
_FORMATS = ("fp8", "bf8", "fp6", "bf6", "fp4")
_FORMAT_OF_A = re.compile(r"\bcbsz:(\d)|matrix_a_fmt:MATRIX_FMT_(\w+)")
_FORMAT_OF_B = re.compile(r"\bblgp:(\d)|matrix_b_fmt:MATRIX_FMT_(\w+)")
_RESULT = re.compile(r"\s[av](?:\d+\b|\[(\d{1,4}):(\d{1,4})\])")
_QUEUES = {"s_wait_asynccnt": Queue.COPIES, "s_wait_tensorcnt": Queue.TENSORS}


def wait_of(opcode: str, text: str, target: str) -> Wait | None:
    """What a wait instruction waits for; None for an `s_waitcnt` on other counters than vmcnt."""
    operands = text[text.find(opcode) + len(opcode) :].strip()
    if opcode == "s_waitcnt":
        named = _VMCNT.search(operands)
        if named is not None:
            return wait_for_loads(integer(named[1]))
        immediate = integer(operands)
        depth = None if immediate is None else loads_in_flight(immediate, target)
        return None if depth is None else wait_for_loads(depth)
    numbers = _NUMBER.findall(operands)
    count = integer(numbers[-1]) if numbers else None
    if opcode == "s_wait_loadcnt_dscnt" and count is not None:
        count = count >> 8 & 63
    return Wait(opcode, count, _QUEUES.get(opcode, Queue.LOADS))


def wait_for_loads(depth: int | None) -> Wait:
    """An `s_waitcnt` that counts vector-memory operations."""
    return Wait("s_waitcnt vmcnt", depth, Queue.LOADS, spelt="{op}({depth})")


def loads_in_flight(immediate: int, target: str) -> int | None:
    """Vector-memory operations that an `s_waitcnt` leaves in flight; None if it waits for none.

    Source: `decodeWaitcnt` in LLVM's AMDGPUBaseInfo.cpp: bits 3:0 up to gfx8, 3:0 and 15:14 on gfx9 and
    gfx10, 15:10 from gfx11 on; all bits set means no wait. An unknown target is read as gfx9.
    """
    major = generation(target)
    if major >= 11:
        count, most = immediate >> 10 & 63, 63
    elif major >= 9:
        count, most = immediate & 15 | (immediate >> 14 & 3) << 4, 63
    else:
        count, most = immediate & 15, 15
    return None if count == most else count


def generation(target: str) -> int:
    """9 for `gfx942`, 11 for `gfx1100`; an unknown target is read as gfx9."""
    arch = Arch.parse(target)
    return 9 if arch is None else arch.generation


@lru_cache(maxsize=1 << 12)
def transfer_of(opcode: str, text: str, target: str) -> Transfer | None:
    """What a vector-memory instruction moves; None for one that only accesses LDS (`ds_add`).

    Up to gfx9, vmcnt counts all of them. From gfx10 on, stores and atomics without return have a separate
    counter, but a load that writes LDS counts as a load.

    **Source** LLVM's SIInsertWaitcnts.cpp (`getVmemWaitEventType`); CDNA and RDNA ISA manuals, "Data
    dependency resolution".
    """
    if opcode.startswith(("ds_", "s_")):
        return None
    operands = text[text.find(opcode) + len(opcode) :]
    cache: tuple[str, ...] = tuple(_CACHE.findall(operands))
    if opcode.startswith("tensor_"):
        return Transfer(None, Queue.TENSORS, cache, of_block=True)
    if "_async_" in opcode:
        return Transfer(_width(opcode), Queue.COPIES, cache)
    stores = "_store" in opcode
    if "_atomic_" in opcode:
        # This flag requests the old value; it is no cache policy.
        stores = _RETURNS.search(operands) is None
        cache = tuple(word for word in cache if _RETURNS.search(word) is None)
    queue = Queue.STORES if stores and generation(target) >= 10 else Queue.LOADS
    return Transfer(_width(opcode), queue, cache)


@lru_cache(maxsize=1024)
def _width(opcode: str) -> int | None:
    """Bytes per thread; None for images, whose channels a mask selects, and for `…_block`."""
    formatted = _FORMATTED.search(opcode)
    if formatted is not None:
        return len(formatted[2]) * (2 if formatted[1] else 4)
    found = _WIDTH.search(opcode)
    if found is not None:
        if found[2]:
            return 1 if found[2] == "byte" else 2
        # Packed: two halves in one register.
        return int(found[4]) * (2 if found[3] else 1) // 8 if found[4] else 4 * int(found[1] or 1)
    if "_atomic_" in opcode and not opcode.startswith("image"):
        return 8 if opcode.endswith("_x2") else 4
    return None


@lru_cache(maxsize=1024)
def matrix_of(name: str, registers: int | None, formats: tuple[int, int] = (0, 0)) -> MatrixOp | None:
    """What one issue computes, from an opcode name with `_` or `.` as separator.

    Opcodes of gfx908 and gfx90a do not name the number of blocks of an MFMA; it is derived from the size of
    the result over all 64 lanes. A sparse product counts as the dense product of its shape. **Source** CDNA3
    ISA, "Matrix Arithmetic Instructions"; LLVM IntrinsicsAMDGPU.td for `formats`.

    Args:
        registers: 32-bit registers per lane that the result takes, where known.
        formats: how an `f8f6f4` product reads a and b.
    """
    found = _MATRIX.search(name.replace(".", "_"))
    if found is None:
        return None
    unit, scale, result, m, n, k = found[1], found[2], found[3], int(found[4]), int(found[5]), int(found[6])
    types = found[9].strip("_").split("_")
    a, b = types[0], types[1] if len(types) > 1 else types[0]
    if a == "f8f6f4":
        a, b = (_FORMATS[code] if code < len(_FORMATS) else a for code in formats)
    family = "wmma" if "wmma" in unit else "mfma"
    blocks: int | None = int(found[8] or 1)
    if family == "mfma" and not found[7]:
        bits = int(re.findall(r"\d+", result)[0])
        cells = m * n * bits
        blocks = registers * 32 * 64 // cells if registers is not None and cells else None
    if not blocks:
        return None
    return MatrixOp(f"v_{unit}{scale}", family, m, n, k, blocks, f"{a}×{b}→{result}", "wavefront")


def result_registers(text: str) -> int | None:
    """Registers of the first operand."""
    found = _RESULT.search(text)
    if found is None:
        return None
    return 1 if found[1] is None else int(found[2]) - int(found[1]) + 1


def formats_of(text: str) -> tuple[int, int]:
    """The formats of a and b in an `f8f6f4` instruction, from its modifiers."""
    a, b = (_format(pattern.search(text)) for pattern in (_FORMAT_OF_A, _FORMAT_OF_B))
    return a, b


def _format(found: re.Match[str] | None) -> int:
    if found is None:
        return 0
    if found[1] is not None:
        return int(found[1])
    return _FORMATS.index(found[2].lower()) if found[2].lower() in _FORMATS else len(_FORMATS)


_BANKS = {"v": RegisterBank.VECTOR, "a": RegisterBank.ACCUMULATOR, "s": RegisterBank.SCALAR}


def bank_of(register: str) -> RegisterBank | None:
    """The register file of a register; None for registers that are not allocated to a kernel (`exec`)."""
    return RegisterBank.SCALAR if register.startswith("vcc") else _BANKS.get(register.rstrip("0123456789"))
