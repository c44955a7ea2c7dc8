"""Semantics of operations of Triton's dialects: transfers, waits and products.

Source: the assembly formats of TritonOps.td, TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td in Triton
2.0 to 3.9.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats._format import TRANSFER_KINDS, TraitTable
from artifact_inspector.formats.mlir.types import element_bits, parse_types
from artifact_inspector.model import EventKind, Instruction, MatrixOp, Module, TensorType, Trait
from artifact_inspector.model.memory import AccessOperands, PointerUse, Queue, Transfer, WaitOp
from artifact_inspector.model.text import parse_integer

TRAITS = TraitTable(
    {
        Trait.FUSED: r"math\.fma",
        Trait.LOOP: r"scf\.(?:for|while)$",
        Trait.COUNTED_LOOP: r"scf\.for$",
        Trait.SELECTION: r"arith\.select$",
        Trait.COMBINATION: r".*\.(?:reduce|scan|histogram)$",
        Trait.HAS_BODY: r".*\.(?:reduce|scan)$",
        Trait.END_OF_BODY: r".*\.return$",
        Trait.AT_BARRIER: r".*barrier",
        Trait.ARRIVES: r".*(?:arrive_barrier|barrier_expect|tc_gen5_commit)$",
        Trait.POSITIONLESS: r".*instruction_sched_hint$",
        Trait.SWAPS: r".*atomic_cas$",
        Trait.COMPARISON: r"arith\.cmpi$",
        Trait.FLOATING_POINT: r"arith\.\w+f$|math\.",
    }
)

_DIALECTS = {"triton_gpu.": "ttg.", "triton_nvidia_gpu.": "ttng.", "amdgpu.": "amdg.", "triton.": "tt."}
VALUE = re.compile(r"%[\w$.-]+(?:#\d+)?")
_NUMBER = re.compile(r"(?:num|pendings|num_inst|num_groups|num_ops|numOps|num_loads|count) = (\d+)")
# By a word of the opcode; the first match counts.
_WAIT_QUEUES = {
    "store": Queue.STORES, "bulk": Queue.STORES, "tdm": Queue.TENSORS, "dot_wait": Queue.MATRIX,
    "amdg.async_wait": Queue.COPIES, "async_wait": Queue.GROUP, "waitcnt": Queue.LOADS, "memory_counter": Queue.LOADS,
}  # fmt: skip
_TILE_FIRST = frozenset(("load", "store", "atomic_rmw", "atomic_cas"))
# Until 2.3 the printer writes the numbers of these enumerations (TritonAttrDefs.td).
_CACHE_MODIFIERS = ("", "none", "ca", "cg", "wb", "cs", "wt", "cv")
_EVICTION_POLICIES = ("", "evict_normal", "evict_first", "evict_last")
_CACHE = re.compile(r"\b(?:cacheModifier|cache_modifier|evictionPolicy|eviction_policy) = (\w+)")
_NUMERIC_CACHE = re.compile(r"\b(cache|evict) = (\d+) : i32")
_SCALAR = re.compile(r"(?:!tt\.ptr<(\w+)|\b([iufb]\w*\d))")
_OPERAND_FORMAT = re.compile(r"\b(lhs|rhs) = (\w+)")

_PRECISION = re.compile(r"inputPrecision = (\w+)|(allowTF32 = true)|rhs = \w+")
# Triton, TritonAttrDefs.td: TT_InputPrecisionAttr, which some operations print as a number.
_PRECISIONS = {"0": "tf32", "1": "tf32x3", "2": "ieee", "3": "bf16x3", "4": "bf16x6"}


@lru_cache(maxsize=4096)
def modern_opcode(opcode: str) -> str:
    """The name of an operation in the newest dialects."""
    for old, new in _DIALECTS.items():
        if opcode.startswith(old):
            return new + opcode[len(old) :]
    return opcode


def access_operands(instruction: Instruction) -> AccessOperands:
    """The reads of a memory operation by role: address, mask and value."""
    reads, text = instruction.operands.reads, instruction.text
    name = modern_opcode(instruction.opcode).rpartition(".")[2]
    if name == "load":
        return AccessOperands(reads[:1], reads[1:2], reads[2:3])
    if name in ("store", "atomic_rmw"):
        return AccessOperands(reads[:1], reads[2:3], reads[1:2])
    if name == "atomic_cas":
        return AccessOperands(reads[:1], (), reads[1:])
    if name in ("insert_slice_async", "async_copy_global_to_local"):
        mask = _value_after(text, " mask ") if " mask " in text else (reads[3:4] if "insert" in name else ())
        other_value = _value_after(text, " other ") if " other " in text else (reads[4:5] if "insert" in name else ())
        # Until 2.3 the buffer is a tensor value: its previous content stays in the result.
        previous_content = reads[1:2] if "insert" in name else ()
        return AccessOperands(reads[:1], mask, previous_content + other_value)
    if name.startswith("buffer_"):
        # %pointer[%offsets], %mask, %other stride = … ; stores and atomics name the value first.
        closing_bracket = text.find("]")
        offset_values = tuple(VALUE.findall(text, text.find("["), closing_bracket)) if closing_bracket > 0 else ()
        outer_values = tuple(value for value in reads if value not in offset_values)
        if name.startswith("buffer_load"):
            mask_and_other = tuple(v for v in outer_values[1:] if f"stride = {v}" not in text)
            return AccessOperands(outer_values[:1] + offset_values, mask_and_other[:1], mask_and_other[1:2])
        return AccessOperands(outer_values[1:2] + offset_values, outer_values[2:3], outer_values[:1])
    if instruction.kind is EventKind.GLOBAL_STORE or name == "descriptor_reduce":
        return AccessOperands(reads[:-1], (), reads[-1:])
    return AccessOperands(reads, (), ())


def _value_after(text: str, keyword: str) -> tuple[str, ...]:
    match = VALUE.match(text, text.find(keyword) + len(keyword))
    return () if match is None else (match[0],)


def pointer_use(instruction: Instruction) -> PointerUse:
    """Whether an operation's text has the type of one pointer, of a tensor of pointers, or of none."""
    if ": !tt.ptr<" in instruction.text:
        return PointerUse.ONE
    return PointerUse.MANY if "!tt.ptr" in instruction.text or "tensordesc" in instruction.text else PointerUse.NONE


def wait_of(instruction: Instruction, _module: Module) -> WaitOp | None:
    """What a wait leaves pending: `num` of `async_wait`, `pendings` of a dot or store wait."""
    opcode = modern_opcode(instruction.opcode)
    queue = next((queue for name_part, queue in _WAIT_QUEUES.items() if name_part in opcode), Queue.PHASE)
    if queue is Queue.PHASE:
        reads = instruction.operands.reads
        return WaitOp(instruction.opcode, None, queue, reads[0] if reads else None)
    match = _NUMBER.search(instruction.text)
    return WaitOp(instruction.opcode, parse_integer(match[1]) if match is not None else None, queue)


def transfer(instruction: Instruction, module: Module) -> Transfer | None:
    """What a load, store, atomic or asynchronous copy moves, for the whole block."""
    kind, text = instruction.kind, instruction.text
    if kind not in TRANSFER_KINDS:
        return None
    opcode = modern_opcode(instruction.opcode)
    name = opcode.rpartition(".")[2]
    types_in_text = parse_types(text, module.layouts)
    # A slice of a buffer (2.x), a value or a pointer comes first; otherwise the tile comes last.
    tile = 0 if name in _TILE_FIRST or name.startswith("insert_slice") else -1
    size = types_in_text[tile].size if types_in_text else _scalar_size(text)
    queue, barrier = Queue.USE, None
    if "tdm" in name:
        queue = Queue.TENSORS
    elif kind is EventKind.ASYNC_COPY and opcode.startswith("ttng."):
        queue, barrier = Queue.PHASE, _barrier_operand(name, instruction)
    elif kind is EventKind.ASYNC_COPY:
        queue = Queue.GROUP
    elif "tma" in name or name == "store_async":
        queue = Queue.STORES
    elif kind is EventKind.GLOBAL_STORE or name == "descriptor_reduce":
        return Transfer(size, None, _cache_modifiers(text), is_per_block=True)
    return Transfer(size, queue, _cache_modifiers(text), is_per_block=True, barrier=barrier)


def _cache_modifiers(text: str) -> tuple[str, ...]:
    modifiers = [modifier for modifier in _CACHE.findall(text) if modifier not in ("none", "evict_normal")]
    for name, number in _NUMERIC_CACHE.findall(text):
        names = _CACHE_MODIFIERS if name == "cache" else _EVICTION_POLICIES
        index = parse_integer(number) or 0
        if 1 < index < len(names):
            modifiers.append(names[index])
    if "isVolatile = true" in text:
        modifiers.append("volatile")
    return tuple(modifiers)


def _scalar_size(text: str) -> int | None:
    """Bytes of the first scalar type of an operation."""
    match = _SCALAR.search(text, text.rfind(" : ") + 1)
    bits = 0 if match is None else element_bits(match[1] or match[2])
    return (bits + 7) // 8 or None


def _barrier_operand(name: str, instruction: Instruction) -> str | None:
    """The barrier of a TMA copy: it follows the destination, which follows the coordinates."""
    if name.startswith("insert_slice"):  # source, buffer, index, barrier (2.x)
        values, index = instruction.operands.reads, 3
    else:
        operands = instruction.text.partition(" : ")[0]
        values, index = tuple(VALUE.findall(operands, operands.rfind("]") + 1)), 1
    return values[index] if len(values) > index else None


def commit(instruction: Instruction) -> Queue | None:
    """The queue in which a COMMIT operation closes a group."""
    if instruction.kind is not EventKind.COMMIT:
        return None
    name = modern_opcode(instruction.opcode).rpartition(".")[2]
    if name == "async_commit_group":
        return Queue.GROUP
    return Queue.MATRIX if name == "tc_gen5_commit" else Queue.PHASE


def matrix_of(instruction: Instruction, module: Module) -> MatrixOp | None:
    """What a dot computes. For 4-bit operands, which are stored in pairs, k counts single values."""
    text = instruction.text
    tile_types = [tensor_type for tensor_type in parse_types(text, module.layouts) if len(tensor_type.shape) > 1]
    if len(tile_types) < 3:
        return None
    opcode = instruction.opcode
    if "tc_gen5_mma" in opcode:
        a, b, d = tile_types[:3]
    else:
        # Scales follow their operands.
        second = len(parse_types(text.partition(" * ")[0], module.layouts))
        a, b, d = tile_types[0], tile_types[min(second, len(tile_types) - 2)], tile_types[-1]
    formats = dict(_OPERAND_FORMAT.findall(text))
    m, n = d.shape[-2:]
    if not d.elements:
        return None
    blocks = d.elements // (m * n)
    a_format, b_format = (formats.get("lhs", a.element), formats.get("rhs", b.element))
    k, remainder = divmod(a.elements * (2 if a_format == "e2m1" and a.bits == 8 else 1), m * blocks)
    if remainder or not k or k * n * blocks != b.elements * (2 if b_format == "e2m1" and b.bits == 8 else 1):
        return None
    return MatrixOp(opcode, "dot", m, n, k, blocks, f"{a_format}×{b_format}→{d.element}", "block")


def tensor_types(instruction: Instruction, module: Module) -> tuple[TensorType, ...]:
    """Tensor types in the text of an operation, in order; usually the last one is the result's."""
    return parse_types(instruction.text, module.layouts)


def input_precision(instruction: Instruction) -> str | None:
    """Input precision of a dot, where stated: `tf32`, `tf32x3`, `ieee` …."""
    match = _PRECISION.search(instruction.text)
    if match is None or not (match[1] or match[2]):
        return None
    return "tf32" if match[2] else _PRECISIONS.get(match[1], match[1].lower())
