"""Compare-and-swap loops of AMDGCN, which repeat until memory holds the value that they expect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.swap_outcomes import has_swapped
from artifact_inspector.execution.interpreter.values import invert
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement, parse_statement
from artifact_inspector.model import SINKS, BasicBlock, EventKind, Function

_SWAP = re.compile(r"(?:buffer|flat|global)_atomic_cmpswap")
_COMPARISON = re.compile(r"v_cmp_(eq|ne|lg)_[iu](?:32|64)$")


def is_swap(statement: AmdgcnStatement) -> bool:
    """Whether a statement is a compare-and-swap of global memory."""
    return _SWAP.match(statement.base) is not None


class RetryTest(NamedTuple):
    """The comparison at the end of a compare-and-swap loop."""

    position: int
    returned: str
    """The register of the returned value."""
    first_load: int | None
    """The load of the first expected value, if nothing else reads that value."""


def find_retry_tests(function: Function, branch_targets: Mapping[int, int]) -> Iterator[RetryTest]:
    """Comparisons of the value that a compare-and-swap returned with the expected one, each at the end of its loop.

    Args:
        branch_targets: branch → its target instruction.
    """
    for block in function.blocks:
        if branch_targets.get(block.stop - 1, block.stop) > block.start:
            continue
        swapped: dict[frozenset[tuple[str, ...]], tuple[str, tuple[str, ...]]] = {}
        for position in range(block.start, block.stop):
            instruction = function.instructions[position]
            statement = parse_statement(instruction.text)
            sources = frozenset(operand.names for operand in statement.operands[1:])
            if sources in swapped and _COMPARISON.match(statement.base) and not statement.modifiers:
                returned, expected = swapped[sources]
                yield RetryTest(position, returned, _find_first_load(function, block, expected))
            results = set(instruction.operands.results)
            swapped = {pair: names for pair, names in swapped.items() if not results & frozenset().union(*pair)}
            if is_swap(statement) and results and len(statement.operands) > 2:
                data = statement.operands[0 if statement.base.startswith("buffer") else 2].names
                expected = data[len(data) // 2 :]
                results_of_swap = statement.operands[0].names[: len(expected)]
                if results_of_swap and set(results_of_swap).isdisjoint(expected):
                    swapped[frozenset((results_of_swap, expected))] = results_of_swap[0], expected


def _find_first_load(function: Function, loop: BasicBlock, expected: tuple[str, ...]) -> int | None:
    """The load before a loop that defines the expected value, unless the value has another use."""
    sinks = [each for each in function.instructions[loop.start : loop.stop] if each.kind in SINKS]
    starts = [block.start for block in function.blocks if block.stop == loop.start]
    if len(sinks) != 1 or not starts:
        return None
    for position in range(loop.start - 1, starts[0] - 1, -1):
        instruction = function.instructions[position]
        if set(instruction.operands.results) & set(expected):
            is_load = instruction.kind is EventKind.GLOBAL_LOAD
            return position if is_load and set(instruction.operands.results) == set(expected) else None
        if set(instruction.operands.reads) & set(expected):
            return None
    return None


def build_retry_test(statement: AmdgcnStatement, returned: str) -> op.StepRun:
    """The run of a comparison that `find_retry_tests` found."""
    names, is_equality = statement.operands[0].names, statement.base.startswith("v_cmp_eq")

    def run(machine: Machine) -> None:
        is_equal = has_swapped(machine, returned)
        op.write_mask(machine, names, is_equal if is_equality else invert(is_equal))

    return op.under_exec(run)
