"""What single AMDGCN instructions do, in an assembly file, an intrinsic or LLVM's inline assembly.

Source: AMD's ISA manuals of CDNA and RDNA; LLVM's AMDGPU back end where it is named.
"""

from __future__ import annotations

import re

from artifact_inspector.model import Queue, Wait

__all__ = ["loads_in_flight", "wait_of"]

_GENERATION = re.compile(r"gfx(\d+)(?=[0-9a-f]{2}$|-)")
_NUMBER = re.compile(r"0x[\da-fA-F]+|\d+")
_VMCNT = re.compile(r"\bvmcnt\((\d+|0x[\da-f]+)\)")
_QUEUES = {"s_wait_asynccnt": Queue.COPIES, "s_wait_tensorcnt": Queue.TENSORS}


def wait_of(opcode: str, text: str, target: str) -> Wait | None:
    """What a wait instruction waits for; None for an `s_waitcnt` of other counters than vmcnt."""
    operands = text[text.find(opcode) + len(opcode) :].strip()
    if opcode == "s_waitcnt":
        named = _VMCNT.search(operands)
        if named is not None:
            return Wait("s_waitcnt vmcnt", int(named[1], 0), Queue.LOADS)
        depth = loads_in_flight(int(operands, 0), target) if _NUMBER.fullmatch(operands) is not None else None
        return None if depth is None else Wait("s_waitcnt vmcnt", depth, Queue.LOADS)
    numbers = _NUMBER.findall(operands)
    count = int(numbers[-1], 0) if numbers else None
    if opcode == "s_wait_loadcnt_dscnt" and count is not None:
        count = count >> 8 & 63
    return Wait(opcode, count, _QUEUES.get(opcode, Queue.LOADS))


def loads_in_flight(immediate: int, target: str) -> int | None:
    """Vector-memory operations that an `s_waitcnt` lets fly on, None when it waits for none.

    Source: `decodeWaitcnt` in LLVM's AMDGPUBaseInfo.cpp: bits 3:0 up to gfx8, 3:0 and 15:14 on gfx9 and
    gfx10, 15:10 from gfx11 on; all bits set means no wait. An unknown target is read as gfx9.
    """
    found = _GENERATION.search(target)
    generation = 9 if found is None else int(found[1])
    if generation >= 11:
        count, most = immediate >> 10 & 63, 63
    elif generation >= 9:
        count, most = immediate & 15 | (immediate >> 14 & 3) << 4, 63
    else:
        count, most = immediate & 15, 15
    return None if count == most else count
