"""Compare-and-swap loops of SASS: each swap succeeds, as if no other warp changed the word."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from artifact_inspector.analysis.access.swap_loops import SwapLoop, find_swap_loops
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.interpreter.swap_outcomes import has_swapped
from artifact_inspector.execution.interpreter.values import Value, invert
from artifact_inspector.execution.sass import operands as op
from artifact_inspector.formats.sass.statement import SassStatement, parse_statement


def assume_swaps(steps: list[ProgramStep], code: FunctionCode) -> None:
    """Replace the comparisons at the ends of compare-and-swap loops; mark the loads of what the swaps expect.

    Args:
        steps: of the function, by instruction.
    """
    for loop in find_swap_loops(code):
        for load in loop.loads:
            steps[load] = replace(steps[load], starts_swap=True)
        for position, statement, returned in _find_retry_tests(code, loop):
            steps[position] = replace(
                steps[position], run=_build_retry_test(statement, returned, steps[position].run), assumes_swap=True
            )


def _find_retry_tests(code: FunctionCode, loop: SwapLoop) -> Iterator[tuple[int, SassStatement, str]]:
    """Comparisons of the returned with the expected value, in the block of the swap."""
    swap = parse_statement(code.instructions[loop.swap].text)
    returned, expected = op.destinations(swap, 0)[0], swap.operands[-2].name
    for position in range(loop.swap + 1, code.blocks[code.flow.block_of[loop.swap]].stop):
        statement = parse_statement(code.instructions[position].text)
        names = {operand.name for operand in statement.operands[2:4]}
        if returned and statement.base == "ISETP" and names == {returned, expected}:
            if {"EQ", "NE"} & set(statement.modifiers):
                yield position, statement, returned
        elif {returned, expected} & set(code.operands(position).results):
            return


def _build_retry_test(statement: SassStatement, returned: str, compare: op.StepRun) -> op.StepRun:
    """The comparison by whether a lane swapped; by the values themselves where a launch has those of its tensors."""

    def read_results(machine: Machine) -> tuple[Value, Value]:
        is_equal = has_swapped(machine, returned)
        return (is_equal, invert(is_equal)) if statement.has_modifier("EQ") else (invert(is_equal), is_equal)

    run_assumed = op.comparison_run(statement, [statement.operands[4]], read_results)
    return lambda machine: (run_assumed if machine.memory.values is None else compare)(machine)
