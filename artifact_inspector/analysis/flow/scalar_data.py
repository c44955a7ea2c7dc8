"""Distinguishes scalar loads of data from scalar loads of kernel arguments."""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import EventKind

_SCALAR_LOADS = frozenset({EventKind.SCALAR_LOAD})


def find_scalar_data(code: FunctionCode) -> frozenset[int]:
    """The scalar loads whose address the kernel computes. The address of its arguments is passed in registers.

    A load of arguments may have any line of the kernel.
    """
    data_loads: set[int] = set()
    computed_names: set[str] = set()
    position = code.flow.position
    stop = max((position[index] + 1 for index in code.find(_SCALAR_LOADS)), default=0)
    for index in sorted(range(len(position)), key=position.__getitem__)[:stop]:
        results, reads = code.operands(index)
        if code.instructions[index].kind is EventKind.SCALAR_LOAD and not computed_names.isdisjoint(reads):
            data_loads.add(index)
        computed_names.update(results)
    return frozenset(data_loads)
