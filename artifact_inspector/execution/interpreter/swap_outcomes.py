"""Which lanes a compare-and-swap changed the word for, if no other wave did.

Other waves decide how often a compare-and-swap loop repeats, so a launch is simulated as if none interfered. Lanes of
one wave that share a word take turns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from artifact_inspector.analysis.access.swap_loops import SwapLoop, find_swap_loops
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.execution.interpreter.lane_accesses import LaneAccesses
from artifact_inspector.execution.interpreter.machine import Machine
from artifact_inspector.execution.interpreter.program import ProgramStep
from artifact_inspector.execution.interpreter.values import UnknownValue, Value
from artifact_inspector.model import SINKS

StepRun = Callable[[Machine], "bool | None"]


def assume_swaps(
    steps: list[ProgramStep],
    code: FunctionCode,
    index: Mapping[int, int] | Sequence[int],
    find_tests: Callable[[FunctionCode, SwapLoop], Iterable[tuple[int, StepRun]]],
) -> None:
    """Replace the comparisons at the ends of compare-and-swap loops; mark the loads of what the swaps expect.

    The comparisons compare values where a launch has those of its tensors.

    Args:
        steps: of the function.
        index: step of each instruction.
        find_tests: comparisons of a loop, and how they run if each swap succeeds.
    """

    def run_test(assumed: StepRun, compare: StepRun) -> StepRun:
        return lambda machine: (assumed if machine.memory.values is None else compare)(machine)

    for loop in find_swap_loops(code):
        for load in loop.loads:
            steps[index[load]] = replace(steps[index[load]], starts_swap=_is_only_expected(code, loop, load))
        for position, assumed in find_tests(code, loop):
            step = steps[index[position]]
            steps[step.index] = replace(step, run=run_test(assumed, step.run), assumes_swap=True)


def _is_only_expected(code: FunctionCode, loop: SwapLoop, load: int) -> bool:
    """Whether nothing but the swaps of a loop depends on what a load gives to it."""
    block, blocks = code.flow.block_of[load], code.flow.loops[loop.loop].blocks
    results, between = set(code.operands(load).results), range(load + 1, code.blocks[block].stop)
    sinks = [position for position in code.indices(blocks) if code.instructions[position].kind in SINKS]
    return block in blocks or (len(sinks) == 1 and not any(results & {*code.operands(at).reads} for at in between))


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


def has_swapped(machine: Machine, returned: str) -> Value:
    """Whether the last compare-and-swap that returned its old value in a register swapped, by lane."""
    return machine.read_register(_success(returned))


def _success(returned: str) -> str:
    return f"P swap {returned}"
