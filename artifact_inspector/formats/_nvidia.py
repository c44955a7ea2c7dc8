"""What single PTX instructions do, in a PTX file or inside LLVM's inline assembly (PTX ISA, chapter 9).

Every function takes the opcode with its modifiers and the text that holds its operands.
"""

from __future__ import annotations

import re

from artifact_inspector.model import Queue, Wait

__all__ = ["commit_queue", "wait_of"]

_WAITS = {
    "cp.async.wait_group": Queue.GROUP,
    "cp.async.wait_all": Queue.GROUP,
    "cp.async.bulk.wait_group": Queue.STORES,
    "wgmma.wait_group": Queue.MATRIX,
    "tcgen05.wait": Queue.MATRIX,
    "mbarrier.try_wait": Queue.PHASE,
    "mbarrier.test_wait": Queue.PHASE,
}
_COMMITS = {
    "cp.async.commit_group": Queue.GROUP,
    "cp.async.bulk.commit_group": Queue.STORES,
    "cp.async.mbarrier.arrive": Queue.PHASE,
    "mbarrier": Queue.PHASE,
    "wgmma.commit_group": Queue.MATRIX,
    "tcgen05.commit": Queue.MATRIX,
}
_ADDRESS = re.compile(r"\[\s*([%$\w.]+)")


def wait_of(opcode: str, text: str) -> Wait | None:
    """What a wait waits for; the depth is None where the operand is no number."""
    op = next((op for op in _WAITS if opcode.startswith(op)), None)
    if op is None:
        return None
    queue = _WAITS[op]
    operands = text[text.find(opcode) + len(opcode) :]
    if queue is Queue.PHASE:
        barrier = _ADDRESS.search(operands)
        return Wait(op, None, queue, None if barrier is None else barrier[1])
    if op == "cp.async.wait_all":
        return Wait(op, 0, queue)
    number = re.match(r"\s*(0x[\da-fA-F]+|\d+)", operands) if op.endswith("wait_group") else None
    return Wait(op, None if number is None else int(number[1], 0), queue)


def commit_queue(opcode: str) -> Queue | None:
    """The queue in which a commit closes a group."""
    return next((queue for op, queue in _COMMITS.items() if opcode.startswith(op)), None)
