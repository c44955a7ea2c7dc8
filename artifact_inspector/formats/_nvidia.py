"""Semantics of PTX instructions, in PTX files or in LLVM's inline assembly (PTX ISA, chapter 9).

Every function takes the opcode with its modifiers and the text with its operands.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import TraitTable
from artifact_inspector.model import MatrixOp, Queue, Trait, Transfer, WaitOp
from artifact_inspector.model.text import parse_integer

TRAITS = TraitTable(
    {
        Trait.FUSED: r"fma(?!x)",
        Trait.PACKED_PRODUCT: r"dp[24]a",
        Trait.READS_ROWS: r"(llvm\.nvvm\.)?ldmatrix\.",
        Trait.READS_WORD: r"ld\.shared\.[busf](8|16|32)$",
        Trait.ACCESSES_ELEMENT: r"(ld|st)\.shared\.[busf]?(8|16)$",
        Trait.RENAMES: r"mov\.\w+$",
        Trait.SWAPS: r"atom\..*\bcas\b",
        Trait.EXPANDABLE: r"(atom|red)\.(.*\bb?f16|.*\bshared\b.*\bf(32|64)\b)",
    }
)

_WAITS = {
    "cp.async.wait_group": Queue.GROUP, "cp.async.wait_all": Queue.GROUP, "cp.async.bulk.wait_group.read": Queue.STORES,
    "cp.async.bulk.wait_group": Queue.STORES, "wgmma.wait_group": Queue.MATRIX, "tcgen05.wait": Queue.TENSOR_MEMORY,
    "mbarrier.try_wait": Queue.PHASE, "mbarrier.test_wait": Queue.PHASE,
}  # fmt: skip
_COMMITS = {
    "cp.async.commit_group": Queue.GROUP,
    "cp.async.bulk.commit_group": Queue.STORES,
    "cp.async.mbarrier.arrive": Queue.PHASE,
    "mbarrier": Queue.PHASE,
    "wgmma.commit_group": Queue.MATRIX,
    "tcgen05.commit": Queue.MATRIX,
}
_ADDRESS = re.compile(r"\[\s*([%$\w.]+)")
_CACHE = re.compile(r"\.(c[agsv]|lu|w[bt]|nc|volatile|L[12]::[\w:]+)(?=\.|$)")
_ELEMENT = re.compile(r"\.(?:(?:[bsuf]|bf)(\d{1,4})|e\dm\d)(?:x(\d))?(?=\.|$)")
_VECTOR = re.compile(r"\.v(\d)(?=\.|$)")
_SIZE = re.compile(r"\]\s*,\s*(0x[\da-fA-F]+|\d+)")
_LOADS = ("ld", "tex", "tld4", "suld", "atom", "wmma.load", "multimem.ld")

_SHAPE = re.compile(r"\.m(\d{1,4})n(\d{1,4})k(\d{1,4})(?=\.|$)")
_TYPE = re.compile(r"\.(b?f16|f32|f64|tf32|[bsu]\d+|e\dm\d)(?=\.|$)")
_MATRIX = re.compile(r"(mma|wgmma\.mma_async|wmma\.mma|tcgen05\.mma)(\.sp(?:::\w+)?|\.ws(?:\.sp)?)?(?:\.|$)")
_KIND = re.compile(r"\.kind::(\w+)")
_MATRIX_NAMES = {
    "mma": ("mma.sync", "mma", "warp"),
    "wmma.mma": ("wmma.mma", "mma", "warp"),
    "wgmma.mma_async": ("wgmma.mma_async", "wgmma", "warpgroup"),
}
_FLOAT8 = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}
_TCGEN05_TYPES: dict[str, tuple[dict[int, str], dict[int, str], int]] = {
    "tf32": ({2: "tf32"}, {1: "f32"}, 8),
    "f16": ({0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}, 16),
    "i8": ({0: "u8", 1: "s8"}, {2: "s32"}, 32),
    "f8f6f4": (_FLOAT8, {0: "f16", 1: "f32"}, 32),
    "mxf8f6f4": (_FLOAT8, {}, 32),
    "mxf4": ({1: "e2m1"}, {}, 64),
    "mxf4nvf4": ({1: "e2m1"}, {}, 64),
}
"""By kind: types of a and b, types of d as encoded in the descriptor, and the k of a dense product."""


def wait_of(opcode: str, text: str) -> WaitOp | None:
    """What a wait waits for; the depth is None if the operand is not a number."""
    op = next((op for op in _WAITS if opcode.startswith(op)), None)
    if op is None:
        return None
    queue = _WAITS[op]
    operands = text[text.find(opcode) + len(opcode) :]
    if queue is Queue.PHASE:
        barrier = _ADDRESS.search(operands)
        return WaitOp(op, None, queue, None if barrier is None else barrier[1])
    if op == "cp.async.wait_all":
        return WaitOp(op, 0, queue, includes_uncommitted=True)
    number = re.match(r"\s*(0x[\da-fA-F]+|\d+)", operands) if "wait_group" in op else None
    return WaitOp(op, None if number is None else parse_integer(number[1]), queue)


def commit_queue(opcode: str) -> Queue | None:
    """The queue in which a commit closes a group."""
    return next((queue for op, queue in _COMMITS.items() if opcode.startswith(op)), None)


@lru_cache(maxsize=1 << 12)
def transfer_of(opcode: str, text: str) -> Transfer | None:
    """What a memory operation or asynchronous copy moves; None for an atomic on shared memory."""
    width, cache = _modifiers(opcode)
    operands = text[text.find(opcode) + len(opcode) :].partition(";")[0]
    size = None if ".tensor" in opcode else _SIZE.search(operands)
    size_bytes = None if size is None else parse_integer(size[1])
    if opcode.startswith("mbarrier."):  # the bytes that a phase of the barrier expects
        return Transfer(size_bytes, Queue.PHASE, is_per_block=True, barrier=_address_operand(operands, 0))
    if opcode.startswith("cp."):
        if ".bulk" not in opcode:
            return Transfer(size_bytes, Queue.GROUP, cache)
        if "mbarrier::complete_tx" not in opcode:
            return Transfer(size_bytes, Queue.STORES, cache, is_per_block=True)
        return Transfer(size_bytes, Queue.PHASE, cache, is_per_block=True, barrier=_address_operand(operands, 2))
    if ".async" in opcode:  # st.async, red.async
        return Transfer(width, Queue.PHASE, cache, barrier=_address_operand(operands, 1))
    if ".shared" in opcode:
        return None
    return Transfer(width, Queue.USE if opcode.startswith(_LOADS) else None, cache)


@lru_cache(maxsize=1024)
def _modifiers(opcode: str) -> tuple[int | None, tuple[str, ...]]:
    """Bytes per thread and cache modifiers of an opcode; a `wmma` fragment's size is not in the opcode."""
    element, vector = _ELEMENT.search(opcode), _VECTOR.search(opcode)
    cache = tuple(_CACHE.findall(opcode))
    if element is None or opcode.startswith("wmma"):
        return None, cache
    bits = int(element[1] or 8) * int(element[2] or 1) * (1 if vector is None else int(vector[1]))
    return (bits + 7) // 8, cache


def _address_operand(operands: str, index: int) -> str | None:
    addresses = _ADDRESS.findall(operands)
    return addresses[index] if index < len(addresses) else None


@lru_cache(maxsize=1024)
def matrix_of(opcode: str, descriptor: int | None) -> MatrixOp | None:
    """What one issue computes; the shape of `tcgen05.mma` is in its instruction descriptor.

    A sparse product counts as the dense product of its shape. `mma.m8n8k4` on half precision is four products, one for
    each quarter of the warp (PTX ISA, "Matrix Fragments for mma.m8n8k4").
    """
    match = _MATRIX.match(opcode)
    if match is None:
        return None
    variant = match[2] or ""
    if match[1] == "tcgen05.mma":
        return None if descriptor is None else _tcgen05_op(opcode, variant, descriptor)
    shape, types = _SHAPE.search(opcode), _TYPE.findall(opcode)
    if shape is None or len(types) < 2:
        return None
    op, family, issuer = _MATRIX_NAMES[match[1]]
    if variant:
        op = match[1] + ".sp"
    m, n, k = (int(extent) for extent in shape.groups())
    # d, a, b and usually c; `wmma.mma` on half precision names d and c only.
    result, a, b = types[:3] if len(types) > 2 else (types[0], "f16", "f16")
    blocks = 4 if (m, n, k) == (8, 8, 4) and a == "f16" else 1
    return MatrixOp(op, family, m, n, k, blocks, f"{a}×{b}→{result}", issuer)


def descriptor_operand(opcode: str) -> int:
    """Index of the instruction descriptor among the operands of `tcgen05.mma`."""
    return 4 if ".sp" in opcode else 3


def _tcgen05_op(opcode: str, variant: str, descriptor: int) -> MatrixOp | None:
    """The product described by an instruction descriptor; None for an unknown kind or type.

    **Source** PTX ISA 9.0, "Instruction descriptor" of the tcgen05 family, and its table of shapes by kind.
    """
    match = _KIND.search(opcode)
    rules = None if match is None else _TCGEN05_TYPES.get(match[1])
    if match is None or rules is None:
        return None
    inputs, results, k = rules
    scaled = match[1].startswith("mx")
    is_four_bit = match[1].startswith("mxf4")
    a = inputs.get(descriptor >> 7 & 7)
    b = inputs.get(descriptor >> 10 & (3 if is_four_bit else 7))
    # Block-scaled kinds accumulate in f32 only, and have scales in place of the type field.
    result = "f32" if scaled else results.get(descriptor >> 4 & 3)
    m, n = (descriptor >> 24 & 31) * 16, (descriptor >> 17 & 63) * 8
    if is_four_bit and descriptor >> 31 & 1:
        k = 96
    if ".sp" in variant:
        k *= 2
    if a is None or b is None or result is None or not m or not n:
        return None
    issuer = "CTA pair" if ".cta_group::2" in opcode else "CTA"
    return MatrixOp(f"tcgen05.mma{variant}", "tcgen05", m, n, k, 1, f"{a}×{b}→{result}", issuer)
