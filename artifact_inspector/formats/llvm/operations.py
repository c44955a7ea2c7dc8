"""Semantics of LLVM operations: instructions, intrinsics and inline assembly.

Source: LLVM Language Reference Manual; AMDGPUUsage and IntrinsicsAMDGPU.td for the intrinsics of AMD.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeVar

from artifact_inspector.formats import _amd, _nvidia
from artifact_inspector.formats._format import TRANSFER_KINDS, TraitTable
from artifact_inspector.model import Arch, EventKind, Instruction, MatrixOp, Module, Queue, Trait, Transfer, WaitOp
from artifact_inspector.model.text import parse_integer, split_list

TRAITS = TraitTable(
    {
        Trait.FUSED: r".*(?:fma(?!x)|fmuladd)",
        Trait.RENAMES: r"(?:phi|freeze|bitcast|(?:extract|insert)(?:value|element)|shufflevector)$",
        Trait.PHI: r"phi$",
        Trait.SWAPS: r"cmpxchg$",
        Trait.EXPANDABLE: r"atomicrmw$",
        Trait.PACKED_PRODUCT: r"llvm\.amdgcn\.[fsu]u?dot\d",
    },
    _nvidia.TRAITS,
    _amd.TRAITS,
)
"""Inline assembly adds the opcodes of PTX and AMD's assembler."""

_TYPE = r"(<\d+ x [^>]+>|\w+(?: addrspace\(\d+\))?\**)"
_LOAD_TYPE = re.compile(rf"\bload (?:atomic )?(?:volatile )?{_TYPE}, ")
_STORE_TYPE = re.compile(rf"\bstore (?:atomic )?(?:volatile )?{_TYPE} ")
_ATOMIC_TYPE = re.compile(rf"\b(?:atomicrmw|cmpxchg) ([^,]*), {_TYPE} ")
_VECTOR = re.compile(r"<(\d+) x (.*)>")
_FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}
_CACHE = re.compile(r"(?:(?<= )|(?<=!))(volatile|nontemporal)\b")
_MANGLED = re.compile(r"\.(?:v(\d+))?(?:i|bf|f)(\d+)(?=\.|$|v\d|p\d)")
_BITS = re.compile(r"\.b(\d+)(?=\.|$)")
_COPY_BYTES = re.compile(r"\.c[ag]\.shared\.global\.(\d+)")
_VALUE = re.compile(r'[%@](?:"[^"]*"|[-\w.$]+)$|\b(?:getelementptr|inttoptr|addrspacecast|bitcast)\b.*$|(?<!\S)\S+$')
_HINTS = ("", "NT", "HT", "", "NT_RT", "RT_NT", "NT_HT", "NT_WB")
_SCOPES = ("CU", "SE", "DEV", "SYS")
_SIZED_BY_OPERAND = re.compile(r"load(?:\.async)?(?:\.to)?\.lds(?:\.p\d+)?$")
_IMMEDIATE = re.compile(r"\(i\d+ (-?\d+)\)")
_RETURNED = re.compile(r"\bcall (?:\w+ ){0,12}(<[^>]*>|\w+) @")
_WAIT_NAMES = {
    "llvm.nvvm.cp.async.wait.group": ("cp.async.wait_group", Queue.GROUP),
    "llvm.nvvm.cp.async.wait.all": ("cp.async.wait_all", Queue.GROUP),
    "llvm.nvvm.cp.async.bulk.wait.group": ("cp.async.bulk.wait_group", Queue.STORES),
    "llvm.nvvm.cp.async.bulk.wait.group.read": ("cp.async.bulk.wait_group.read", Queue.STORES),
    "llvm.nvvm.mbarrier.try.wait": ("mbarrier.try_wait", Queue.PHASE),
    "llvm.nvvm.mbarrier.test.wait": ("mbarrier.test_wait", Queue.PHASE),
    "llvm.nvvm.wgmma.wait_group": ("wgmma.wait_group", Queue.MATRIX),
    "llvm.nvvm.tcgen05.wait": ("tcgen05.wait", Queue.TENSOR_MEMORY),
    "llvm.amdgcn.wait.asyncmark": ("wait.asyncmark", Queue.GROUP),
    "llvm.amdgcn.s.wait.loadcnt": ("s_wait_loadcnt", Queue.LOADS),
    "llvm.amdgcn.s.wait.asynccnt": ("s_wait_asynccnt", Queue.COPIES),
    "llvm.amdgcn.s.wait.tensorcnt": ("s_wait_tensorcnt", Queue.TENSORS),
}

_WaitOrTransfer = TypeVar("_WaitOrTransfer", WaitOp, Transfer)


def wait_of(instruction: Instruction, module: Module) -> WaitOp | None:
    """What a WAIT instruction waits for; the encoding of `s.waitcnt` depends on the module's target."""
    opcode, text = instruction.opcode, instruction.text
    target = module.attributes.get("target", "")
    if not opcode.startswith("llvm."):
        wait = _nvidia.wait_of(opcode, text)
        return _amd.wait_of(opcode, text, target) if wait is None else _with_barrier(wait, text)
    name = max((name for name in _WAIT_NAMES if opcode.startswith(name)), key=len, default="")
    op, queue = _WAIT_NAMES.get(name, (opcode, Queue.PHASE))
    if opcode == "llvm.amdgcn.s.waitcnt":
        return wait_of_immediate(text, target)
    if queue is Queue.PHASE:
        arguments = _arguments_of(text, opcode)
        return WaitOp(op, None, queue, _value_of(arguments[0]) if arguments else None)
    if op == "cp.async.wait_all":
        return WaitOp(op, 0, queue, includes_uncommitted=True)
    depth = re.search(rf"{re.escape(opcode)}\(i\d+ (\d+)", text)
    return WaitOp(op, None if depth is None else parse_integer(depth[1]), queue)


def transfer(instruction: Instruction, module: Module) -> Transfer | None:
    """What a global load, store, atomic or asynchronous copy moves; None for an atomic on shared memory."""
    if instruction.kind not in TRANSFER_KINDS and "expect_tx" not in instruction.opcode:
        return None
    opcode, text = instruction.opcode, instruction.text
    target = module.attributes.get("target", "")
    if opcode.startswith("llvm."):
        return _intrinsic_transfer(opcode, text, target)
    if "." not in opcode:
        return _amd.transfer_of(opcode, text, target) if "_" in opcode else _instruction_transfer(opcode, text)
    moved = _nvidia.transfer_of(opcode, text)
    return None if moved is None else _with_barrier(moved, text)


def _with_barrier(operation: _WaitOrTransfer, text: str) -> _WaitOrTransfer:
    """The same, with the barrier's operand (`$5`) replaced by the value passed to it."""
    return operation if operation.barrier is None else operation._replace(barrier=_asm_operand(operation.barrier, text))


def commit(instruction: Instruction) -> Queue | None:
    """The queue in which a COMMIT instruction closes a group."""
    if instruction.kind is not EventKind.COMMIT:
        return None
    if instruction.opcode.startswith("llvm.amdgcn."):
        return Queue.GROUP  # asyncmark
    # Intrinsics separate words with dots where PTX uses an underscore.
    return _nvidia.commit_queue(instruction.opcode.removeprefix("llvm.nvvm.").replace("commit.group", "commit_group"))


def matrix_of(instruction: Instruction, _module: Module) -> MatrixOp | None:
    """What one issue of a MATRIX instruction computes; None for NVIDIA's intrinsics (unused by Triton)."""
    if instruction.opcode.startswith("llvm.nvvm."):
        return None
    opcode, text = instruction.opcode, instruction.text
    if opcode.startswith("llvm.amdgcn."):
        arguments = _arguments_of(text, opcode)
        # In MFMA, the formats of a and b follow c; in WMMA, each precedes its matrix.
        formats = [_number_argument(arguments, position) or 0 for position in ((0, 2) if "wmma" in opcode else (3, 4))]
        result = _RETURNED.search(text)
        bits = None if result is None else _type_bits(result[1])
        return _amd.matrix_of(opcode, None if bits is None else bits // 32, (formats[0], formats[1]))
    if opcode.startswith("v_"):
        return _amd.matrix_of(opcode, None, _amd.operand_formats(text))
    descriptor = None
    if opcode.startswith("tcgen05"):
        operands = text[text.find(opcode) + len(opcode) :].partition(";")[0].split(",")
        position = _nvidia.descriptor_operand(opcode)
        descriptor = parse_integer(_asm_operand(operands[position].strip(), text)) if position < len(operands) else None
    return _nvidia.matrix_of(opcode, descriptor)


def _number_argument(arguments: list[str], index: int) -> int | None:
    return parse_integer(_value_of(arguments[index])) if index < len(arguments) else None


def _arguments_of(text: str, callee: str) -> list[str]:
    """The arguments of a call, with their types."""
    at = text.find(f"@{callee}(")
    return [] if at < 0 else split_list(text, at + len(callee) + 2)


def _value_of(argument: str) -> str:
    """The name, number or constant expression of an argument, without its type."""
    match = _VALUE.search(argument)
    return argument if match is None else match[0]


def _asm_operand(reference: str, text: str) -> str:
    """The value that `$5` refers to in a call of inline assembly; other text is unchanged.

    Outputs are numbered first, and tied inputs have their own numbers.
    """
    if reference[:1] != "$" or not reference[1:].isdecimal():
        return reference
    quoted_parts = text.split('"')
    if len(quoted_parts) < 5:
        return reference
    outputs = sum(constraint.startswith("=") for constraint in quoted_parts[3].split(","))
    operand_index = (parse_integer(reference[1:]) or 0) - outputs
    arguments = split_list('"'.join(quoted_parts[4:]).partition("(")[2])
    return _value_of(arguments[operand_index]) if 0 <= operand_index < len(arguments) else reference


@lru_cache(maxsize=1024)
def _type_bits(type_text: str) -> int | None:
    """Bits of a scalar or vector type; None for structures, arrays and pointers of unknown size."""
    vector = _VECTOR.fullmatch(type_text)
    if vector is not None:
        bits = _type_bits(vector[2])
        count = parse_integer(vector[1])
        return None if bits is None or count is None else count * bits
    if type_text.endswith("*") or type_text.startswith("ptr"):
        # The size of pointers to shared and private memory depends on the target.
        return 64 if re.search(r"addrspace\([35]\)\*?$", type_text) is None else None
    if type_text[:1] == "i" and type_text[1:].isdecimal():
        return parse_integer(type_text[1:])
    return _FLOATS.get(type_text)


def _bytes(bits: int | None) -> int | None:
    return None if bits is None else (bits + 7) // 8


def _instruction_transfer(opcode: str, text: str) -> Transfer | None:
    """What `load`, `store`, `atomicrmw` or `cmpxchg` moves; None for an atomic on shared memory."""
    cache = tuple(_CACHE.findall(text))
    if opcode in ("load", "store"):
        match = (_LOAD_TYPE if opcode == "load" else _STORE_TYPE).search(text)
        size = None if match is None else _bytes(_type_bits(match[1]))
        return Transfer(size, Queue.USE if opcode == "load" else None, cache)
    match = _ATOMIC_TYPE.search(text)
    if match is None:
        return Transfer(None, Queue.USE, cache)
    return None if "addrspace(3)" in match[1] else Transfer(_bytes(_type_bits(match[2])), Queue.USE, cache)


def _intrinsic_transfer(name: str, text: str, target: str) -> Transfer | None:
    """What a call of a memory intrinsic moves; None for an atomic on shared memory."""
    if name.startswith("llvm.nvvm.cp."):
        return _copy_transfer(name, text)
    if not name.startswith("llvm.amdgcn."):
        is_load = ".load" in name or ".ld" in name or ".atomic" in name or "gather" in name
        return Transfer(_width(name), Queue.USE if is_load else None)
    if name.startswith("llvm.amdgcn.ds."):
        return None
    cache = _cache_policy(name, text, target)
    if name.startswith("llvm.amdgcn.tensor."):
        return Transfer(None, Queue.TENSORS, cache, is_per_block=True)
    if _SIZED_BY_OPERAND.search(name) is not None:
        queue = Queue.GROUP if ".async" in name else Queue.LOADS
        return Transfer(_number_argument(_arguments_of(text, name), 2), queue, cache)
    if ".async." in name:
        return Transfer(_width(name), Queue.COPIES, cache)
    return Transfer(_width(name), None if ".store" in name else Queue.USE, cache)


def _copy_transfer(name: str, text: str) -> Transfer:
    """What NVIDIA's copy intrinsics move; the barrier of a bulk load is the second operand."""
    copied = _COPY_BYTES.search(name)
    if copied is not None:
        return Transfer(parse_integer(copied[1]), Queue.GROUP, (name[len("llvm.nvvm.cp.async.") :][:2],))
    if ".g2s." not in name and ".global.to." not in name:
        return Transfer(None, Queue.STORES, is_per_block=True)
    arguments = _arguments_of(text, name)
    size = _value_of(arguments[3]) if ".global.to." in name and len(arguments) > 3 else ""
    barrier = _value_of(arguments[1]) if len(arguments) > 1 else None
    return Transfer(parse_integer(size), Queue.PHASE, is_per_block=True, barrier=barrier)


@lru_cache(maxsize=1024)
def _width(name: str) -> int | None:
    """Bytes of the type suffix of an intrinsic (`….v4i32`), else of its width (`….b128`)."""
    typed = _MANGLED.search(name)
    if typed is not None:
        return _bytes((parse_integer(typed[1] or "1") or 0) * (parse_integer(typed[2]) or 0) or None)
    sized = _BITS.search(name)
    return None if sized is None else _bytes(parse_integer(sized[1]))


def _cache_policy(name: str, text: str, target: str) -> tuple[str, ...]:
    """The last operand as assembly modifiers; the number itself if the target is unknown.

    Source: IntrinsicsAMDGPU.td, "auxiliary/cachepolicy".
    """
    arguments = _arguments_of(text, name)
    policy_text = arguments[-1].removeprefix("i32 ") if arguments else ""
    # These two have no such operand.
    policy = parse_integer(policy_text)
    if policy is None or policy < 0 or name.startswith(("llvm.amdgcn.global.atomic", "llvm.amdgcn.flat.atomic")):
        return ()
    arch = Arch.parse(target)
    if arch is None:
        return (f"cachepolicy={policy}",) if policy else ()
    if arch.generation >= 12:
        return _temporal_modifiers(name, policy & 7, _SCOPES[policy >> 3 & 3])
    is_cdna3 = arch.version in ((9, 4), (9, 5))
    bit_names = ("sc0", "nt", "", "", "sc1") if is_cdna3 else ("glc", "slc", "dlc", "", "scc")
    return tuple(modifier for bit, modifier in enumerate(bit_names) if modifier and policy >> bit & 1)


def _temporal_modifiers(name: str, hint: int, scope: str) -> tuple[str, ...]:
    """A temporal hint and a scope in the spelling of `AMDGPUInstPrinter::printTH` and `printScope`."""
    modifiers = []
    if ".atomic." in name:
        modifiers += ["th:TH_ATOMIC_NT"] if hint & 2 else []
    elif hint:
        is_store = ".store" in name
        last = "BYPASS" if scope == "SYS" else "RT_WB" if is_store else "LU"
        modifiers.append(f"th:TH_{'STORE' if is_store else 'LOAD'}_{_HINTS[hint] or last}")
    return tuple(modifiers if scope == "CU" else [*modifiers, f"scope:SCOPE_{scope}"])


def wait_of_immediate(text: str, target: str) -> WaitOp | None:
    """What a call of `s.waitcnt` waits for; None if it waits for no vector load."""
    immediate = _IMMEDIATE.search(text)
    code = None if immediate is None else parse_integer(immediate[1])
    return None if code is None else _amd.wait_of_immediate(code, target)
