"""Compare-and-swap loops of AMDGCN, which repeat until memory holds the value that they expect.

Other waves decide how often, so a launch is simulated as if none interfered. Lanes of one wave that share a word
take turns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import numpy as np

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.values import UnknownValue, Value, invert
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement, parse_statement
from artifact_inspector.model import Function

_SWAP = re.compile(r"(?:buffer|flat|global)_atomic_cmpswap")
_COMPARISON = re.compile(r"v_cmp_(eq|ne|lg)_[iu](?:32|64)$")


def is_swap(statement: AmdgcnStatement) -> bool:
    """Whether a statement is a compare-and-swap of global memory."""
    return _SWAP.match(statement.base) is not None


def find_retry_tests(function: Function, branch_targets: Mapping[int, int]) -> Iterator[tuple[int, str]]:
    """Comparisons of the value that a compare-and-swap returned with the expected one, each at the end of its loop.

    Args:
        function: the kernel.
        branch_targets: branch → its target instruction.

    Yields:
        The instruction, and the register of the returned value.
    """
    for block in function.blocks:
        if branch_targets.get(block.stop - 1, block.stop) > block.start:
            continue
        swapped: dict[frozenset[tuple[str, ...]], str] = {}
        for position in range(block.start, block.stop):
            instruction = function.instructions[position]
            statement = parse_statement(instruction.text)
            sources = frozenset(operand.names for operand in statement.operands[1:])
            if sources in swapped and _COMPARISON.match(statement.base) and not statement.modifiers:
                yield position, swapped[sources]
            results = set(instruction.operands.results)
            swapped = {pair: name for pair, name in swapped.items() if not results & frozenset().union(*pair)}
            if is_swap(statement) and results and len(statement.operands) > 2:
                data = statement.operands[0 if statement.base.startswith("buffer") else 2].names
                expected = data[len(data) // 2 :]
                returned = statement.operands[0].names[: len(expected)]
                if returned and set(returned).isdisjoint(expected):
                    swapped[frozenset((returned, expected))] = returned[0]


def record_swap(machine: Machine, returned: str, lanes: LaneAccesses | None) -> None:
    """Record which lanes swap: those that no earlier lane of their wave shares a word with."""
    machine.write_register(_success(returned), _first_lanes_of_words(machine, lanes))


def _first_lanes_of_words(machine: Machine, lanes: LaneAccesses | None) -> Value:
    if lanes is None:
        missing_inputs = machine.counters.missing_inputs.get(machine.step.index, 0)
        return UnknownValue(False, True, missing_inputs) if missing_inputs else True
    addresses, mask, *_ = lanes.expanded
    keys = addresses.reshape(-1, machine.warp_size)
    if mask is not None:  # inactive lanes share nothing
        keys = np.where(mask.reshape(keys.shape), keys, -1 - np.arange(machine.warp_size))
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    is_first = np.ones(keys.shape, bool)
    np.put_along_axis(is_first, order[:, 1:], ordered[:, 1:] != ordered[:, :-1], axis=1)
    return True if is_first.all() else is_first.reshape(addresses.shape)


def build_retry_test(statement: AmdgcnStatement, returned: str) -> op.StepRun:
    """The run of a comparison that `find_retry_tests` found."""
    names, is_equality = statement.operands[0].names, statement.base.startswith("v_cmp_eq")

    def run(machine: Machine) -> None:
        has_swapped = machine.read_register(_success(returned))
        op.write_mask(machine, names, has_swapped if is_equality else invert(has_swapped))

    return op.under_exec(run)


def _success(returned: str) -> str:
    return f"P swap {returned}"
