"""Which loads through the scalar cache bring data, and which the arguments of the kernel."""

from __future__ import annotations

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import EventKind

_SCALAR_LOADS = frozenset({EventKind.SCALAR_LOAD})


def find_scalar_data(code: Code) -> frozenset[int]:
    """The scalar loads whose address the kernel made; that of its arguments it is given in registers.

    A load of arguments bears any line of the kernel.
    """
    scalar = code.find(_SCALAR_LOADS)
    if not scalar:
        return frozenset()
    found: set[int] = set()
    made: set[str] = set()
    position = code.flow.position
    last = max(position[index] for index in scalar)
    for index in sorted(range(len(position)), key=position.__getitem__):
        if position[index] > last:
            break
        operands = code.operands(index)
        if code.function.instructions[index].kind is EventKind.SCALAR_LOAD and made.intersection(
            operands.reads
        ):
            found.add(index)
        made.update(operands.results)
    return frozenset(found)
