"""Buffers, barriers and phases in operations of Triton's dialects, and the value of integer operations.

Source: TritonGPUOps.td, TritonNvidiaGPUOps.td and TritonAMDGPUOps.td of Triton 3.2 to 3.9; MLIR's arith dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

from artifact_inspector.formats.mlir.axes import axis_operation
from artifact_inspector.formats.mlir.dialects import VALUE, modern_opcode, transfer, wait_of
from artifact_inspector.formats.mlir.types import parse_types
from artifact_inspector.model import EventKind, Instruction, Module
from artifact_inspector.model.memory import Queue
from artifact_inspector.model.schedule import ScheduleRole, ScheduleStep

_ROLES = {
    name: role
    for role, names in {
        ScheduleRole.ALLOCATION: "local_alloc tmem_alloc alloc_mbarrier",
        ScheduleRole.INDEX: "memdesc_index memdesc_subview",
        ScheduleRole.VIEW: "memdesc_trans memdesc_reshape memdesc_reinterpret memdesc_subslice tmem_subslice",
        ScheduleRole.REMOTE: "map_to_remote_buffer",
        ScheduleRole.STORE: "local_store tmem_store",
        ScheduleRole.TRANSFER: "tmem_copy",
        ScheduleRole.READ: "local_load tmem_load local_load_packed_tranposed",
        ScheduleRole.INITIALISATION: "init_barrier",
        ScheduleRole.ARRIVAL: "arrive_barrier async_copy_mbarrier_arrive",
        ScheduleRole.EXPECTATION: "barrier_expect",
        ScheduleRole.COMMIT: "tc_gen5_commit",
    }.items()
    for name in names.split()
}
_COUNT = re.compile(r", (\d{1,9})\b")
_ARRIVING_COPY = re.compile(r", barrier = (%[\w$.#-]+)")
_BRACKETS = re.compile(r"\[[^\[\]]*\]")
_COMPARISON = re.compile(r"arith\.cmpi (\w+)")
_MATRIX_PREDICATES = {"tc_gen5_mma": 4, "tc_gen5_mma_scaled": 6}
"""Operand that switches a matrix operation off."""
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    **dict.fromkeys(("slt", "ult"), lambda a, b: a < b),
    **dict.fromkeys(("sle", "ule"), lambda a, b: a <= b),
    **dict.fromkeys(("sgt", "ugt"), lambda a, b: a > b),
    **dict.fromkeys(("sge", "uge"), lambda a, b: a >= b),
}

_OF_LARGE = {**dict.fromkeys(("sgt", "sge", "ugt", "uge"), 1), **dict.fromkeys(("slt", "sle", "ult", "ule"), 0)}
"""Compares of an unknown number with a constant: problems are taken to be large."""


def _divide(a: int, b: int) -> int | None:
    return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int | None:
    quotient = _divide(a, b)
    return None if quotient is None else a - b * quotient


_ARITHMETIC: dict[str, Callable[[int, int], int | None]] = {
    "addi": lambda a, b: a + b, "subi": lambda a, b: a - b, "muli": lambda a, b: a * b,
    **dict.fromkeys(("divsi", "divui"), _divide), **dict.fromkeys(("remsi", "remui"), _remainder),
    "andi": lambda a, b: a & b, "ori": lambda a, b: a | b, "xori": lambda a, b: a ^ b,
    "shli": lambda a, b: a << b if 0 <= b < 64 else None,
    **dict.fromkeys(("shrsi", "shrui"), lambda a, b: a >> b if 0 <= b < 64 else None),
    **dict.fromkeys(("maxsi", "maxui"), max), **dict.fromkeys(("minsi", "minui"), min),
}  # fmt: skip
_SAME = frozenset({"extsi", "extui", "trunci", "index_cast", "index_castui"})


def schedule_step(instruction: Instruction, module: Module) -> ScheduleStep:
    """What an operation does to buffers, barriers and asynchronous work."""
    name, kind, text = _plain_name(instruction.opcode), instruction.kind, instruction.text
    role = _ROLES.get(name, ScheduleRole.NONE)
    if kind is EventKind.ASYNC_COPY:
        moved = transfer(instruction, module)
        head = text.partition(" : ")[0]
        operands = VALUE.findall(head, head.rfind("]") + 1)
        is_tensor = moved is not None and moved.queue is Queue.PHASE
        predicate = operands[2] if is_tensor and len(operands) > 2 else None
        barrier = None if moved is None else moved.barrier
        arrival = _ARRIVING_COPY.search(head)  # of gfx1250: once for each warp
        reached = barrier if arrival is None else str(arrival[1])
        return ScheduleStep(ScheduleRole.COPY, is_per_thread=arrival is not None, predicate=predicate, barrier=reached)
    if kind is EventKind.MATRIX:
        operands = VALUE.findall(_BRACKETS.sub("", text.partition(" : ")[0].partition("=")[2]))
        at = _MATRIX_PREDICATES.get(name, len(operands))
        predicate = operands[at] if len(operands) > at else None
        is_asynchronous = name in _MATRIX_PREDICATES or "isAsync = true" in text
        return ScheduleStep(ScheduleRole.MATRIX, is_asynchronous=is_asynchronous, predicate=predicate)
    if kind is EventKind.WAIT:
        return _wait_step(instruction, module)
    if role is ScheduleRole.ALLOCATION:
        types = parse_types(text, module.layouts)
        tile = types[-1] if types else None
        is_array = tile is not None and len(tile.shape) > (0 if tile.element == "i64" else 2)
        return ScheduleStep(role, slots=tile.shape[0] if tile is not None and is_array else 0)
    if role in (ScheduleRole.INITIALISATION, ScheduleRole.ARRIVAL):
        count = _COUNT.search(text)
        predicate = instruction.operands.reads[1:2] if role is ScheduleRole.ARRIVAL else ()
        return ScheduleStep(
            role,
            1 if count is None else int(count[1]),
            "{perThread" in text or instruction.opcode.startswith("amdg."),
            predicate=next(iter(predicate), None),
        )
    if role is ScheduleRole.REMOTE:
        pair = 2 if "tlx.enable_paired_cta_mma" in module.attributes else 1  # TTIR has no cluster dimensions
        extents = (module.attributes.get(f"ttg.cluster-dim-{axis}", "1") for axis in "xyz")
        return ScheduleStep(role, max(pair, prod(int(extent) for extent in extents if extent.isdecimal())))
    if role in (ScheduleRole.EXPECTATION, ScheduleRole.COMMIT):
        return ScheduleStep(role, predicate=next(iter(instruction.operands.reads[1:2]), None))
    return ScheduleStep(role)


def _wait_step(instruction: Instruction, module: Module) -> ScheduleStep:
    wait = wait_of(instruction, module)
    queue = None if wait is None else wait.queue
    if queue is Queue.PHASE:
        operands = VALUE.findall(instruction.text.partition(" deps ")[0].partition(" : ")[0])
        return ScheduleStep(ScheduleRole.PHASE_WAIT, predicate=operands[2] if len(operands) > 2 else None)
    if queue is Queue.MATRIX:
        return ScheduleStep(ScheduleRole.MATRIX_WAIT, 0 if wait is None or wait.depth is None else wait.depth)
    is_of_copies = queue is not None and queue.completes_loads
    return ScheduleStep(ScheduleRole.COPY_WAIT if is_of_copies else ScheduleRole.NONE)


def integer_value(instruction: Instruction, operands: Sequence[int | None]) -> int | None:
    """The integer that an operation gives for some operands, without the limits of its type; None if unknown.

    A number that is not known is larger than any constant that it is compared with.
    """
    name = instruction.opcode.rpartition(".")[2]
    if name == "select" and len(operands) == 3:
        condition, first, second = operands
        return (first if condition else second) if condition is not None else first if first == second else None
    if name == "constant":
        return axis_operation(instruction).value
    if name == "cmpi" and len(operands) == 2 and operands[0] is None and operands[1] is not None:
        predicate = _COMPARISON.search(instruction.text)
        return _OF_LARGE.get("" if predicate is None else predicate[1])
    if None in operands:
        return 0 if name in ("andi", "muli") and 0 in operands else None
    known = [operand for operand in operands if operand is not None]
    if name in _SAME and len(known) == 1:
        return known[0]
    if name == "cmpi" and len(known) == 2:
        predicate = _COMPARISON.search(instruction.text)
        compare = None if predicate is None else _COMPARE.get(predicate[1])
        return None if compare is None else int(compare(*known))
    operation = _ARITHMETIC.get(name)
    return None if operation is None or len(known) != 2 else operation(*known)


@lru_cache(maxsize=4096)
def _plain_name(opcode: str) -> str:
    return modern_opcode(opcode).rpartition(".")[2]
