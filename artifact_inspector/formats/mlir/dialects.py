"""Semantics of operations of Triton's dialects: transfers, waits and products.

Source: the assembly formats of TritonOps.td, TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td in
Triton 2.0 to 3.9.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._scan import TRANSFERS, Traits
from artifact_inspector.formats.mlir.types import element_bits, parse_types
from artifact_inspector.model import (
    Access,
    EventKind,
    Instruction,
    MatrixOp,
    Module,
    Pointing,
    Queue,
    TensorType,
    Trait,
    Transfer,
    Wait,
)
from artifact_inspector.model.text import integer

TRAITS = Traits(
    {
        Trait.FUSED: r"math\.fma",
        Trait.LOOP: r"scf\.(?:for|while)$",
        Trait.COUNTED: r"scf\.for$",
        Trait.SELECTION: r"arith\.select$",
        Trait.COMBINATION: r".*\.(?:reduce|scan|histogram)$",
        Trait.WITH_BODY: r".*\.(?:reduce|scan)$",
        Trait.END_OF_BODY: r".*\.return$",
        Trait.AT_BARRIER: r".*barrier",
        Trait.ARRIVES: r".*(?:arrive_barrier|barrier_expect|tc_gen5_commit)$",
        Trait.MARKS_NO_PLACE: r".*instruction_sched_hint$",
        Trait.COMPARISON: r"arith\.cmpi$",
        Trait.ON_FLOATS: r"arith\.\w+f$|math\.",
    }
)

_DIALECTS = {"triton_gpu.": "ttg.", "triton_nvidia_gpu.": "ttng.", "amdgpu.": "amdg.", "triton.": "tt."}
VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_NUMBER = re.compile(r"(?:num|pendings|num_inst|num_groups|num_ops|numOps|num_loads|count) = (\d+)")
# By a word of the opcode; the first match counts.
_WAIT_QUEUES = {
    "store": Queue.STORES,
    "bulk": Queue.STORES,
    "tdm": Queue.TENSORS,
    "dot_wait": Queue.MATRIX,
    "amdg.async_wait": Queue.COPIES,
    "async_wait": Queue.GROUP,
    "waitcnt": Queue.LOADS,
    "memory_counter": Queue.LOADS,
}
_TILE_FIRST = frozenset(("load", "store", "atomic_rmw", "atomic_cas"))
# Until 2.3 the printer writes the numbers of these enumerations (TritonAttrDefs.td).
_CACHE_MODIFIERS = ("", "none", "ca", "cg", "wb", "cs", "wt", "cv")
_EVICTION_POLICIES = ("", "evict_normal", "evict_first", "evict_last")
_CACHE = re.compile(r"\b(?:cacheModifier|cache_modifier|evictionPolicy|eviction_policy) = (\w+)")
_NUMBERED_CACHE = re.compile(r"\b(cache|evict) = (\d+) : i32")
_SCALAR = re.compile(r"(?:!tt\.ptr<(\w+)|\b([iufb]\w*\d))")
_OPERAND_FORMAT = re.compile(r"\b(lhs|rhs) = (\w+)")

_PRECISION = re.compile(r"inputPrecision = (\w+)|(allowTF32 = true)|rhs = \w+")
# Triton, TritonAttrDefs.td: TT_InputPrecisionAttr, which some operations print as a number.
_PRECISIONS = {"0": "tf32", "1": "tf32x3", "2": "ieee", "3": "bf16x3", "4": "bf16x6"}


@lru_cache(maxsize=4096)
def modern(opcode: str) -> str:
    """The name of an operation in the newest dialects."""
    for old, new in _DIALECTS.items():
        if opcode.startswith(old):
            return new + opcode[len(old) :]
    return opcode


def access(instruction: Instruction) -> Access:
    """The reads of a memory operation by role: address, mask and value."""
    reads = instruction.operands.reads
    opcode = modern(instruction.opcode)
    name = opcode.rpartition(".")[2]
    text = instruction.text
    if name == "load":
        return Access(reads[:1], reads[1:2], reads[2:3])
    if name == "store":
        return Access(reads[:1], reads[2:3], reads[1:2])
    if name == "atomic_rmw":
        return Access(reads[:1], reads[2:3], reads[1:2])
    if name == "atomic_cas":
        return Access(reads[:1], (), reads[1:])
    if name in ("insert_slice_async", "async_copy_global_to_local"):
        mask = _after(text, " mask ") if " mask " in text else (reads[3:4] if "insert" in name else ())
        other = _after(text, " other ") if " other " in text else (reads[4:5] if "insert" in name else ())
        # Until 2.3 the buffer is a tensor value: its previous content stays in the result.
        held = reads[1:2] if "insert" in name else ()
        return Access(reads[:1], mask, held + other)
    if name.startswith("buffer_"):
        # %pointer[%offsets], %mask, %other stride = … ; stores and atomics name the value first.
        close = text.find("]")
        inside = tuple(VALUE.findall(text, text.find("["), close)) if close > 0 else ()
        behind = tuple(value for value in reads if value not in inside)
        if name.startswith("buffer_load"):
            pointer, rest = behind[:1], tuple(v for v in behind[1:] if f"stride = {v}" not in text)
            return Access(pointer + inside, rest[:1], rest[1:2])
        return Access(behind[1:2] + inside, behind[2:3], behind[:1])
    if instruction.kind is EventKind.GLOBAL_STORE or name == "descriptor_reduce":
        return Access(reads[:-1], (), reads[-1:])
    return Access(reads, (), ())


def _after(text: str, word: str) -> tuple[str, ...]:
    found = VALUE.match(text, text.find(word) + len(word))
    return () if found is None else (found[0],)


def pointing(instruction: Instruction) -> Pointing:
    """Whether an operation's text has the type of one pointer, of a tensor of pointers, or of none."""
    if ": !tt.ptr<" in instruction.text:
        return Pointing.ONE
    named = "!tt.ptr" in instruction.text or "tensordesc" in instruction.text
    return Pointing.MANY if named else Pointing.NONE


def wait_of(instruction: Instruction, _module: Module) -> Wait | None:
    """What a wait leaves pending: `num` of `async_wait`, `pendings` of a dot or store wait."""
    opcode = modern(instruction.opcode)
    queue = next((queue for word, queue in _WAIT_QUEUES.items() if word in opcode), Queue.PHASE)
    if queue is Queue.PHASE:
        reads = instruction.operands.reads
        return Wait(instruction.opcode, None, queue, reads[0] if reads else None)
    found = _NUMBER.search(instruction.text)
    return Wait(instruction.opcode, integer(found[1]) if found is not None else None, queue)


def transfer(instruction: Instruction, module: Module) -> Transfer | None:
    """What a load, store, atomic or asynchronous copy moves, for the whole block."""
    kind = instruction.kind
    if kind not in TRANSFERS:
        return None
    text = instruction.text
    opcode = modern(instruction.opcode)
    name = opcode.rpartition(".")[2]
    moved = parse_types(text, module.layouts)
    if not moved:
        size = _scalar_size(text)
    else:
        # A slice of a buffer (2.x), a value or a pointer comes first; otherwise the tile comes last.
        size = (moved[0] if name in _TILE_FIRST or name.startswith("insert_slice") else moved[-1]).size
    queue, barrier = Queue.USE, None
    if "tdm" in name:
        queue = Queue.TENSORS
    elif kind is EventKind.ASYNC_COPY and opcode.startswith("ttng."):
        queue, barrier = Queue.PHASE, _barrier(name, instruction)
    elif kind is EventKind.ASYNC_COPY:
        queue = Queue.GROUP
    elif "tma" in name or name == "store_async":
        queue = Queue.STORES
    elif kind is EventKind.GLOBAL_STORE or name == "descriptor_reduce":
        return Transfer(size, None, _cache_words(text), of_block=True)
    return Transfer(size, queue, _cache_words(text), of_block=True, barrier=barrier)


def _cache_words(text: str) -> tuple[str, ...]:
    words = [word for word in _CACHE.findall(text) if word not in ("none", "evict_normal")]
    for name, number in _NUMBERED_CACHE.findall(text):
        names = _CACHE_MODIFIERS if name == "cache" else _EVICTION_POLICIES
        place = integer(number) or 0
        if 1 < place < len(names):
            words.append(names[place])
    if "isVolatile = true" in text:
        words.append("volatile")
    return tuple(words)


def _scalar_size(text: str) -> int | None:
    """Bytes of the first scalar type of an operation."""
    found = _SCALAR.search(text, text.rfind(" : ") + 1)
    bits = 0 if found is None else element_bits(found[1] or found[2])
    return (bits + 7) // 8 or None


def _barrier(name: str, instruction: Instruction) -> str | None:
    """The barrier of a TMA copy: it follows the destination, which follows the coordinates."""
    if name.startswith("insert_slice"):  # source, buffer, index, barrier (2.x)
        values, place = instruction.operands.reads, 3
    else:
        operands = instruction.text.partition(" : ")[0]
        values, place = tuple(VALUE.findall(operands, operands.rfind("]") + 1)), 1
    return values[place] if len(values) > place else None


def commit(instruction: Instruction) -> Queue | None:
    """The queue in which a COMMIT operation closes a group."""
    if instruction.kind is not EventKind.COMMIT:
        return None
    name = modern(instruction.opcode).rpartition(".")[2]
    if name == "async_commit_group":
        return Queue.GROUP
    return Queue.MATRIX if name == "tc_gen5_commit" else Queue.PHASE


def matrix_of(instruction: Instruction, module: Module) -> MatrixOp | None:
    """What a dot computes. For 4-bit operands, which are stored in pairs, k counts single values."""
    text = instruction.text
    found = [one for one in parse_types(text, module.layouts) if len(one.shape) > 1]
    if len(found) < 3:
        return None
    opcode = instruction.opcode
    if "tc_gen5_mma" in opcode:
        a, b, d = found[:3]
    else:
        # Scales follow their operands.
        second = len(parse_types(text.partition(" * ")[0], module.layouts))
        a, b, d = found[0], found[min(second, len(found) - 2)], found[-1]
    formats = dict(_OPERAND_FORMAT.findall(text))
    m, n = d.shape[-2:]
    if not d.elements:
        return None
    blocks = d.elements // (m * n)
    left, right = (formats.get("lhs", a.element), formats.get("rhs", b.element))
    k, rest = divmod(a.elements * (2 if left == "e2m1" and a.bits == 8 else 1), m * blocks)
    if rest or not k or k * n * blocks != b.elements * (2 if right == "e2m1" and b.bits == 8 else 1):
        return None
    return MatrixOp(opcode, "dot", m, n, k, blocks, f"{left}×{right}→{d.element}", "block")


def types(instruction: Instruction, module: Module) -> tuple[TensorType, ...]:
    """Tensor types in the text of an operation, in order; usually the last one is the result's."""
    return parse_types(instruction.text, module.layouts)


def precision(instruction: Instruction) -> str | None:
    """Input precision of a dot, where stated: `tf32`, `tf32x3`, `ieee` …."""
    found = _PRECISION.search(instruction.text)
    if found is None or not (found[1] or found[2]):
        return None
    return "tf32" if found[2] else _PRECISIONS.get(found[1], found[1].lower())
