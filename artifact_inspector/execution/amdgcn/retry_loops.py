"""Ends of compare-and-swap loops of AMDGCN."""

from __future__ import annotations

import re
from collections.abc import Iterator

from artifact_inspector.analysis.access.swap_loops import SwapLoop
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.amdgcn import operands as op
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.swap_outcomes import has_swapped
from artifact_inspector.execution.interpreter.values import invert
from artifact_inspector.formats.amdgcn.statement import AmdgcnStatement, parse_statement

_SWAP = re.compile(r"(?:buffer|flat|global)_atomic_cmpswap")
_COMPARISON = re.compile(r"v_cmp_(eq|ne|lg)_[iu](?:32|64)$")


def is_swap(statement: AmdgcnStatement) -> bool:
    """Whether a statement is a compare-and-swap of global memory."""
    return _SWAP.match(statement.base) is not None


def find_retry_tests(code: FunctionCode, loop: SwapLoop) -> Iterator[tuple[int, op.StepRun]]:
    """Comparisons of the returned with the expected value, in the block of the swap, and what they become."""
    swap = parse_statement(code.instructions[loop.swap].text)
    if not is_swap(swap) or len(swap.operands) < 3:
        return
    data = swap.operands[0 if swap.base.startswith("buffer") else 2].names
    expected = data[len(data) // 2 :]
    returned = swap.operands[0].names[: len(expected)]
    for position in range(loop.swap + 1, code.blocks[code.flow.block_of[loop.swap]].stop):
        statement = parse_statement(code.instructions[position].text)
        sources = {operand.names for operand in statement.operands[1:]}
        if sources == {returned, expected} and _COMPARISON.match(statement.base) and not statement.modifiers:
            yield position, _build_retry_test(statement, returned[0])
        elif {*returned, *expected} & {*code.operands(position).results}:
            return


def _build_retry_test(statement: AmdgcnStatement, returned: str) -> op.StepRun:
    names, is_equality = statement.operands[0].names, statement.base.startswith("v_cmp_eq")

    def run(machine: Machine) -> None:
        is_equal = has_swapped(machine, returned)
        op.write_mask(machine, names, is_equal if is_equality else invert(is_equal))

    return op.under_exec(run)
