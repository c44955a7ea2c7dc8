"""Semantics of AMDGCN instructions in assembly files, intrinsics and LLVM's inline assembly.

Source: AMD's ISA manuals of CDNA and RDNA; LLVM's AMDGPU back end where stated.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import TraitTable
from artifact_inspector.model import Arch, MatrixOp, Queue, RegisterBank, Trait, Transfer, WaitOp
from artifact_inspector.model.text import parse_integer

TRAITS = TraitTable(
    {
        Trait.FUSED: r"v_\w*fma(?!x)|v_mac_|v_mad_f|v_dot",
        Trait.PACKED_PRODUCT: r"v_dot\d",
        Trait.MAXIMUM: r"v_(dual_|pk_)?max_(num_)?b?f",
        Trait.SWAPS: r".*atomic[._]f?cmpswap|ds_cmpst",
        Trait.ACCESSES_ELEMENT: r"ds_(read|load|write|store)_[uib](8|16)(_|$)",
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
_WAIT_BITS = {8: 0x0F7F, 9: 0xCF7F, 10: 0xFF7F, 11: 0xFFF7}
"""Generation → the bits of an `s_waitcnt` that it uses."""
_QUEUES = {"s_wait_asynccnt": Queue.COPIES, "s_wait_tensorcnt": Queue.TENSORS}


def wait_of(opcode: str, text: str, target: str) -> WaitOp | None:
    """What a wait instruction waits for; None for an `s_waitcnt` on other counters than vmcnt."""
    operands = text[text.find(opcode) + len(opcode) :].strip()
    if opcode == "s_waitcnt":
        named = _VMCNT.search(operands)
        if named is not None:
            return wait_for_loads(parse_integer(named[1]))
        immediate = parse_integer(operands)
        return None if immediate is None else wait_of_immediate(immediate, target)
    numbers = _NUMBER.findall(operands)
    count = parse_integer(numbers[-1]) if numbers else None
    if opcode == "s_wait_loadcnt_dscnt" and count is not None:
        count = count >> 8 & 63
    return WaitOp(opcode, count, _QUEUES.get(opcode, Queue.LOADS))


def wait_for_loads(depth: int | None) -> WaitOp:
    """An `s_waitcnt` that counts vector-memory operations; the depth is None if unknown."""
    return WaitOp("s_waitcnt vmcnt", depth, Queue.LOADS, template="{op}({depth})")


def wait_of_immediate(immediate: int, target: str) -> WaitOp | None:
    """What an encoded `s_waitcnt` waits for; None if it waits for no vector-memory operation.

    Without a target, every generation counts whose encoding uses all bits that are set, or else every generation. The
    depth is unknown if these do not agree.

    Source: `encodeWaitcnt` and `decodeWaitcnt` in LLVM's AMDGPUBaseInfo.cpp: bits 3:0 up to gfx8, 3:0 and 15:14 on gfx9
    and gfx10, 15:10 from gfx11 on; all bits set means no wait.
    """
    arch = Arch.parse(target)
    fitting = [major for major, used in _WAIT_BITS.items() if not immediate & ~used] or _WAIT_BITS
    depths = {_depth(immediate, major) for major in (fitting if arch is None else (arch.generation,))}
    if depths == {None}:
        return None
    return wait_for_loads(depths.pop() if len(depths) == 1 else None)


def _depth(immediate: int, major: int) -> int | None:
    if major >= 11:
        depth, no_wait = immediate >> 10 & 63, 63
    elif major >= 9:
        depth, no_wait = immediate & 15 | (immediate >> 14 & 3) << 4, 63
    else:
        depth, no_wait = immediate & 15, 15
    return None if depth == no_wait else depth


@lru_cache(maxsize=1 << 12)
def transfer_of(opcode: str, text: str, target: str) -> Transfer | None:
    """What a vector-memory instruction moves; None for one that only accesses LDS (`ds_add`).

    Up to gfx9, vmcnt counts all of them. From gfx10 on, stores and atomics without return have a separate counter, but
    a load that writes LDS counts as a load. An unknown target counts stores as gfx9 does.

    **Source** LLVM's SIInsertWaitcnts.cpp (`getVmemWaitEventType`); CDNA and RDNA ISA manuals, "Data dependency
    resolution".
    """
    if opcode.startswith(("ds_", "s_")):
        return None
    operands = text[text.find(opcode) + len(opcode) :]
    cache_modifiers: tuple[str, ...] = tuple(_CACHE.findall(operands))
    if opcode.startswith("tensor_"):
        return Transfer(None, Queue.TENSORS, cache_modifiers, is_per_block=True)
    if "_async_" in opcode:
        return Transfer(_transfer_width(opcode), Queue.COPIES, cache_modifiers)
    is_store = "_store" in opcode
    if "_atomic_" in opcode:
        # This flag requests the old value; it is no cache policy.
        is_store = _RETURNS.search(operands) is None
        cache_modifiers = tuple(modifier for modifier in cache_modifiers if _RETURNS.search(modifier) is None)
    arch = Arch.parse(target)
    queue = Queue.STORES if is_store and arch is not None and arch.generation >= 10 else Queue.LOADS
    return Transfer(_transfer_width(opcode), queue, cache_modifiers)


@lru_cache(maxsize=1024)
def _transfer_width(opcode: str) -> int | None:
    """Bytes per thread; None for images, whose channels a mask selects, and for `…_block`."""
    formatted = _FORMATTED.search(opcode)
    if formatted is not None:
        return len(formatted[2]) * (2 if formatted[1] else 4)
    match = _WIDTH.search(opcode)
    if match is not None:
        if match[2]:
            return 1 if match[2] == "byte" else 2
        # Packed: two halves in one register.
        return int(match[4]) * (2 if match[3] else 1) // 8 if match[4] else 4 * int(match[1] or 1)
    if "_atomic_" in opcode and not opcode.startswith("image"):
        return 8 if opcode.endswith("_x2") else 4
    return None


@lru_cache(maxsize=1024)
def matrix_of(name: str, registers: int | None, formats: tuple[int, int] = (0, 0)) -> MatrixOp | None:
    """What one issue computes, from an opcode name with `_` or `.` as separator.

    Opcodes of gfx908 and gfx90a do not name the number of blocks of an MFMA; it is derived from the size of the result
    over all 64 lanes. A sparse product counts as the dense product of its shape. **Source** CDNA3 ISA, "Matrix
    Arithmetic Instructions"; LLVM IntrinsicsAMDGPU.td for `formats`.

    Args:
        registers: 32-bit registers per lane that the result takes, where known.
        formats: how an `f8f6f4` product reads a and b.
    """
    match = _MATRIX.search(name.replace(".", "_"))
    if match is None:
        return None
    unit, scale, result, m, n, k = match[1], match[2], match[3], int(match[4]), int(match[5]), int(match[6])
    types = match[9].strip("_").split("_")
    a, b = types[0], types[1] if len(types) > 1 else types[0]
    if a == "f8f6f4":
        a, b = (_FORMATS[code] if code < len(_FORMATS) else a for code in formats)
    family = "wmma" if "wmma" in unit else "mfma"
    blocks: int | None = int(match[8] or 1)
    if family == "mfma" and not match[7]:
        result_bits = m * n * int(re.findall(r"\d+", result)[0])
        blocks = registers * 32 * 64 // result_bits if registers is not None and result_bits else None
    if not blocks:
        return None
    return MatrixOp(f"v_{unit}{scale}", family, m, n, k, blocks, f"{a}×{b}→{result}", "wavefront")


def result_registers(text: str) -> int | None:
    """Registers of the first operand."""
    match = _RESULT.search(text)
    return None if match is None else 1 if match[1] is None else int(match[2]) - int(match[1]) + 1


def operand_formats(text: str) -> tuple[int, int]:
    """The formats of a and b in an `f8f6f4` instruction, from its modifiers."""
    a, b = (_format_code(pattern.search(text)) for pattern in (_FORMAT_OF_A, _FORMAT_OF_B))
    return a, b


def _format_code(match: re.Match[str] | None) -> int:
    if match is None:
        return 0
    if match[1] is not None:
        return int(match[1])
    return _FORMATS.index(match[2].lower()) if match[2].lower() in _FORMATS else len(_FORMATS)


_BANKS = {"v": RegisterBank.VECTOR, "a": RegisterBank.ACCUMULATOR, "s": RegisterBank.SCALAR}


def register_bank(register: str) -> RegisterBank | None:
    """The register file of a register; None for registers that are not allocated to a kernel (`exec`)."""
    return RegisterBank.SCALAR if register.startswith("vcc") else _BANKS.get(register.rstrip("0123456789"))
