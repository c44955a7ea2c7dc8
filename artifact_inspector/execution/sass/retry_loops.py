"""Ends of compare-and-swap loops of SASS."""

from __future__ import annotations

from collections.abc import Iterator

from artifact_inspector.analysis.access.swap_loops import SwapLoop
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.swap_outcomes import has_swapped
from artifact_inspector.execution.interpreter.values import Value, invert
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement, parse_statement


def find_retry_tests(code: FunctionCode, loop: SwapLoop) -> Iterator[tuple[int, op.StepRun]]:
    """Comparisons of the returned with the expected value, in the block of the swap, and what they become."""
    swap = parse_statement(code.instructions[loop.swap].text)
    returned, expected = op.destinations(swap, 0)[0], swap.operands[-2].name
    for position in range(loop.swap + 1, code.blocks[code.flow.block_of[loop.swap]].stop):
        statement = parse_statement(code.instructions[position].text)
        names = {operand.name for operand in statement.operands[2:4]}
        if returned and statement.base == "ISETP" and names == {returned, expected}:
            if {"EQ", "NE"} & set(statement.modifiers):
                yield position, _build_retry_test(statement, returned)
        elif {returned, expected} & set(code.operands(position).results):
            return


def _build_retry_test(statement: SassStatement, returned: str) -> op.StepRun:
    def read_results(machine: Machine) -> tuple[Value, Value]:
        is_equal = has_swapped(machine, returned)
        return (is_equal, invert(is_equal)) if statement.has_modifier("EQ") else (invert(is_equal), is_equal)

    return op.comparison_run(statement, [statement.operands[4]], read_results)
