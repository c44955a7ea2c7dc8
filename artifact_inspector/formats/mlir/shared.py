"""Shared memory needed by operations of Triton's dialects, and the launch parameters of their module.

Source: TritonOps.td, TritonGPUOps.td and TritonNvidiaGPUOps.td of Triton 2.1 to 3.9;
WarpSpecializeOp::getCaptureSizeAlign and getSharedMemorySize in lib/Dialect/TritonGPU/IR.
"""

from __future__ import annotations

import re
from functools import lru_cache

from artifact_inspector.formats.mlir.dialects import modern_opcode
from artifact_inspector.model import Instruction, Module
from artifact_inspector.model.shared import LaunchParameters, SharedRole, SharedUse
from artifact_inspector.model.text import split_list

_ROLES = {
    "local_alloc": SharedRole.ALLOCATION, "alloc_tensor": SharedRole.ALLOCATION,
    "alloc_mbarrier": SharedRole.ALLOCATION, "convert_layout": SharedRole.CONVERSION, "reduce": SharedRole.REDUCTION,
    "scan": SharedRole.SCAN, "histogram": SharedRole.HISTOGRAM, "gather": SharedRole.GATHER,
    "tensormap_create": SharedRole.TENSOR_MAP, "call": SharedRole.CALL, "warp_specialize": SharedRole.PARTITIONS,
    "init_barrier": SharedRole.BARRIER, "async_tma_store": SharedRole.STAGED_STORE, "trans": SharedRole.VIEW,
    "select": SharedRole.VIEW,
}  # fmt: skip
_BUFFERS = ("memdesc_index", "memdesc_subview", "extract_slice", "insert_slice_async")
_VIEWS = re.compile(r"memdesc|extract_slice|insert_slice|subview|reinterpret|select$|poison")
_PLAIN_MMA = {"tc_gen5_mma": 5, "tc_gen5_mma_scaled": 7}
"""Blackwell's matrix operations → number of operands without a barrier."""
_AXIS = re.compile(r"axis = (\d{1,2})\b")
_SCALAR = re.compile(r"-> (?:b?f|i)(\d{1,3})\b|, (?:b?f|i)(\d{1,3})(?:, i1)?\)?$")
_ALIGNMENT = re.compile(r"\balignment = (\d{1,9})\b")
_CALLEE = re.compile(r"@(\"[^\"]*\"|[\w$.]+)")
_CAPTURED = re.compile(r"(?:b?f|i)(\d{1,4})$")
_EXTENT = re.compile(r"(?<!\d)\d+x")
_WARPS = re.compile(r"\bpartition\d+ num_warps\((\d{1,4})\)")
_MAX_DIGITS = 9


@lru_cache(maxsize=4096)
def _role(opcode: str) -> SharedRole:
    name = modern_opcode(opcode).rpartition(".")[2]
    if name.endswith(_BUFFERS):
        return SharedRole.BUFFER
    if name in _ROLES:
        return _ROLES[name]
    if name in _PLAIN_MMA:
        return SharedRole.MATRIX_BARRIER
    if name.startswith("atomic_"):
        return SharedRole.ATOMIC
    if "local_to_global" in name:
        return SharedRole.STAGED_STORE
    return SharedRole.VIEW if _VIEWS.search(opcode) is not None else SharedRole.NONE


_ROLES_WITH_ATTRIBUTES = (
    SharedRole.ALLOCATION,
    SharedRole.REDUCTION,
    SharedRole.SCAN,
    SharedRole.ATOMIC,
    SharedRole.CALL,
    SharedRole.PARTITIONS,
    SharedRole.MATRIX_BARRIER,
)
"""Roles whose operations have more attributes than the role."""
_PLAIN_USES = {role: SharedUse(role) for role in SharedRole if role not in _ROLES_WITH_ATTRIBUTES}


def shared_use(instruction: Instruction) -> SharedUse:
    """How an operation uses shared memory, with the numbers in its text."""
    role, text = _role(instruction.opcode), instruction.text
    if role in _PLAIN_USES:
        return _PLAIN_USES[role]
    if role is SharedRole.ALLOCATION:
        return SharedUse(role, alignment=_matched_number(_ALIGNMENT.search(text)))
    if role in (SharedRole.REDUCTION, SharedRole.SCAN):
        return SharedUse(role, axis=_matched_number(_AXIS.search(text)))
    if role is SharedRole.ATOMIC:
        return SharedUse(role, scalar_bits=_matched_number(_SCALAR.search(text)))
    if role is SharedRole.CALL:
        callee = _CALLEE.search(text)
        return SharedUse(role, callee="" if callee is None else callee[1].strip('"'))
    if role is SharedRole.PARTITIONS:
        warps = _WARPS.findall(text)
        return SharedUse(role, captured_bytes=_captured_bytes(text), warps=sum(map(int, warps)) if warps else None)
    if role is SharedRole.MATRIX_BARRIER:
        name = instruction.opcode.rpartition(".")[2]
        return SharedUse(role if len(instruction.operands.reads) == _PLAIN_MMA[name] else SharedRole.NONE)
    return SharedUse(role)


def _matched_number(match: re.Match[str] | None) -> int | None:
    """The number in the first group that matched."""
    return None if match is None else int(next(group for group in match.groups() if group is not None))


def _captured_bytes(text: str) -> int | None:
    """Bytes of the values passed to partitions; None if their types are not in the text."""
    _, has_start, types_text = text.partition(" : (")
    types, has_end, _ = types_text.rpartition(") -> (")
    if not (has_start and has_end):
        return None
    size = 0
    for kind in split_list(types):
        scalar = _CAPTURED.match(kind)
        if scalar is not None:
            size += -(-int(scalar[1]) // 8)
        elif "memdesc<" in kind and "tensor_memory" not in kind:
            size += 8 + 4 * len(_EXTENT.findall(kind.partition("<")[2].partition(",")[0]))
        elif kind.startswith("!"):
            size += 8
        else:
            return None
    return size


def source_name(instruction: Instruction) -> str:
    """Source name of an operation's result; empty if the IR only has a number."""
    results = instruction.operands.results
    name = results[0].lstrip("%").partition("#")[0] if results else ""
    base, _, suffix = name.rpartition("_")
    name = base if base and suffix.isdigit() else name
    return "" if name.isdigit() or name.startswith("cst") else name


def launch_parameters(module: Module) -> LaunchParameters:
    """Launch parameters of a module, in any version's dialect."""
    attributes = module.attributes
    is_new = any(key.startswith("ttg.") for key in attributes)
    prefix = "ttg." if is_new else "triton_gpu."

    def integer_attribute(name: str) -> int | None:
        value = attributes.get(prefix + name, "")
        return int(value) if value.isdecimal() and len(value) <= _MAX_DIGITS else None

    target = attributes.get(f"{prefix}target", "")
    release: tuple[int, int] | None = None
    if not is_new:
        # 3.2 is the first release that names the memory space of a buffer, 2.2 the first that names CTAs.
        names_space = "#triton_gpu.shared_memory" in module.layouts.values()
        names_ctas = f"{prefix}num-ctas" in attributes
        release = (3, 2) if names_space else (3, 0) if target else (2, 2) if names_ctas else (2, 1)
    return LaunchParameters(
        target,
        integer_attribute("num-warps"),
        integer_attribute("total-num-warps"),
        integer_attribute("threads-per-warp"),
        integer_attribute("num-ctas"),
        release,
    )
