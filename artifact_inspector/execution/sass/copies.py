"""SASS copies by the tensor memory accelerator: of boxes by a tensor map, and bulk copies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from artifact_inspector.execution.interpreter.access import lose_shared
from artifact_inspector.execution.interpreter.lanes import Unknown, as_wide, distinct, spread
from artifact_inspector.execution.interpreter.tensor_maps import WINDOW, Descriptor, copy_box, read_maps
from artifact_inspector.execution.sass.operands import Build, Run, following
from artifact_inspector.formats.sass.statement import OperandKind, Statement

if TYPE_CHECKING:
    from artifact_inspector.execution.interpreter.machine import Machine

_OWN = 0x400
"""Where a CTA's own shared memory begins on GPUs with such copies: the first 1 KiB is reserved."""


def _tensor_copy(statement: Statement) -> Run:
    """TMA: the tensor map says what it copies; the data in shared memory becomes unknown."""
    reads = statement.base == "UTMALDG"

    def run(machine: Machine) -> None:
        names = _copy(machine, statement)
        if reads:
            why = [machine.unknown(f"values of {name}").why for name in names]
            lose_shared(machine, reduce(or_, why, machine.counts.why.get(machine.step.index, 0)), _OWN)

    return run


def _copy(machine: Machine, statement: Statement) -> list[str]:
    """Record a copy by the tensor map whose address is the last operand.

    Returns:
        The tensors of which it copies parts; empty if unknown, which is recorded.
    """
    places = [operand for operand in statement.operands if operand.kind is OperandKind.ADDRESS]
    dimensions = next((int(m[0]) for m in statement.modifiers if m[:1].isdigit() and m[1:] == "D"), 0)
    reads = statement.base == "UTMALDG"
    first = places[0].parts[0][0]
    skip = 2 if reads else 1  # address in shared memory, and the barrier of a load
    coordinates = [machine.read(following(first, skip + axis)) for axis in range(dimensions)]
    address = as_wide(*(machine.read(following(places[-1].parts[0][0], step)) for step in (0, 1)))
    if isinstance(address, Unknown):
        if spread(address.bad, machine.shape)[spread(machine.on, machine.shape)].any():
            machine.counts.mark(machine.step.index, address.why)
            return []
        address = address.data
    described = _descriptors(machine, distinct(address, machine.on))
    names = []
    for held, its in described:
        if held is None or dimensions != len(held.tensor.shape):
            why = "a tensor map that cannot be read" if held is None else "a tensor map of another rank"
            machine.counts.mark(machine.step.index, machine.unknown(why).why)
            return []
        mask = True if len(described) == 1 else np.isin(spread(address, machine.shape), its)
        copy_box(machine, held, coordinates, reads=reads, updates=statement.base == "UTMAREDG", mask=mask)
        region = machine.memory.region_of(held.tensor.pointer or 0)
        names.append("memory outside of every tensor" if region is None else region.name)
    return names


def _descriptors(
    machine: Machine, places: NDArray[np.int64]
) -> list[tuple[Descriptor | None, NDArray[np.int64]]]:
    """The descriptors at some addresses: kernel parameters, or maps that the kernel made."""
    environment = machine.environment
    found: list[tuple[Descriptor | None, NDArray[np.int64]]] = []
    own = np.zeros(len(places), bool)
    for offset, held in environment.descriptors.items():
        here = np.isin(places - WINDOW, (offset, offset - environment.first_parameter))
        if here.any():
            found.append((held, places[here]))
            own |= here
    if not own.all():
        found += read_maps(machine.memory, places[~own])
    return found


def _bulk(statement: Statement) -> Run:
    del statement
    return lambda machine: machine.counts.mark(
        machine.step.index, machine.unknown("the size of a bulk copy").why
    )


COPIES: Mapping[str, Build] = {
    "UTMALDG": _tensor_copy,
    "UTMASTG": _tensor_copy,
    "UTMAREDG": _tensor_copy,
    "UBLKCP": _bulk,
    "UBLKRED": _bulk,
}
"""Opcode without modifiers → builder of its run."""
