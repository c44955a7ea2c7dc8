"""The properties of a loop in tensor-level IR that the pipeliner checks before it transforms the loop.

Source: Triton, lib/Dialect/TritonGPU/Transforms/Pipeliner (AssignLatencies.cpp, earlier MatmulLoopPipeline.cpp;
`preCondition` and `loadOpsToIndirectionLevel`): counted innermost loops, no dependence over more than one iteration,
loads of the body itself that feed the operands of a dot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.loop_range import find_loop_range
from artifact_inspector.analysis.flow.source_locations import Chain
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.analysis.order.reference_regions import LoadStatement
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, EventKind, Trait

_MAX_LEVELS = 4
"""Maximum depth of address loads that is analysed."""


class LoopLoad(NamedTuple):
    """A load statement of the loop."""

    line: int
    label: str
    """Its name and location in the user's code."""
    chain: Chain | None
    levels: frozenset[int]
    """Loads of the loop between it and an operand of a dot: 0 if it feeds the dot, 1 if it addresses such a load. Empty
    if it reaches no dot.
    """
    is_conditional: bool
    """It is under a branch of the loop and does not run in every iteration."""


@dataclass(frozen=True, slots=True)
class LoopProperties:
    """Properties of a loop at one tensor-level stage."""

    line: int
    requested_stages: int | None
    """`tt.num_stages` of the loop itself."""
    is_counted: bool
    """It has bounds (`scf.for`); a `while` has none."""
    inner_loop_line: int | None
    """Line of a loop inside it."""
    requests_flattening: bool
    """The program requests that it be flattened with the loop inside it."""
    unchanged_value_line: int | None
    """Line that passes a value on unchanged. The iteration after the next reads it, so it is older than one iteration.
    """
    trip_count: int | None
    """Trip count, if its bounds are constants."""
    rounds: tuple[tuple[LoopLoad, ...], ...]
    """Its load statements as in the region's rounds. Empty if the rounds were read from another stage."""


def find_loop_properties(code: FunctionCode, region: Region) -> LoopProperties | None:
    """The properties of a loop of tensor-level IR; None if its first operation is not found."""
    assert region.loop is not None
    header = code.flow.loops[region.loop].header
    opening = code.blocks[header].start - 1
    if opening < 0 or code.instructions[opening].kind is not EventKind.BRANCH:
        return None
    operation = code.instructions[opening]
    inner = code.compute_once(_first_inner).get(region.loop)
    rounds: tuple[tuple[LoopLoad, ...], ...] = ()
    if region.is_source and region.reference is not None:
        levels = _find_levels(code, region)
        rounds = tuple(
            tuple(_describe_load(code, region, statement, levels) for statement in item.statements)
            for item in region.reference.rounds
        )
    request, trips = code.language.loop_header(operation), find_loop_range(code, region.loop)
    return LoopProperties(
        operation.line,
        request.num_stages,
        code.has_trait(opening, Trait.COUNTED_LOOP),
        None if inner is None else code.instructions[max(0, code.blocks[inner].start - 1)].line,
        request.is_flattened,
        _unchanged_value_line(code, opening),
        None if trips is None else trips.trip_count,
        rounds,
    )


def _first_inner(code: FunctionCode) -> dict[int, int]:
    """Header of the first loop directly inside each loop that has one."""
    loops = reversed(code.flow.loops)  # the first of several is written last
    return {loop.parent: loop.header for loop in loops if loop.parent is not None}


def _unchanged_value_line(code: FunctionCode, opening: int) -> int | None:
    """Line that passes a loop argument unchanged to a different argument of the next iteration."""
    flows = code.function.flows
    loop_arguments = {flow.target for flow in flows if flow.instruction_index == opening and flow.owner == opening}
    # A value passed to its own argument never changes; the canonicaliser removes these.
    for flow in flows:
        if flow.is_back_edge and flow.owner == opening and flow.source in loop_arguments and flow.source != flow.target:
            return code.instructions[flow.instruction_index].line
    return None


def _describe_load(
    code: FunctionCode, region: Region, statement: LoadStatement, levels: dict[int, frozenset[int]]
) -> LoopLoad:
    return LoopLoad(
        code.instructions[statement.index].line,
        statement.label,
        statement.chain,
        levels.get(statement.index, frozenset()),
        _is_conditional(code, region, statement.index),
    )


def _is_conditional(code: FunctionCode, region: Region, index: int) -> bool:
    """True if a path through the loop's body avoids the instruction's block."""
    assert region.loop is not None
    loop, avoided = code.flow.loops[region.loop], code.flow.block_of[index]
    if avoided == loop.header or avoided not in loop.blocks:
        return False
    inside = loop.blocks - {avoided}
    reached = reachable([loop.header], lambda block: inside.intersection(code.blocks[block].successors))
    return not reached.keys().isdisjoint(loop.latches)


def _find_levels(code: FunctionCode, region: Region) -> dict[int, frozenset[int]]:
    """For each load of a loop, the number of loads between it and the operands of its dots.

    Values are traced back from the dots within one iteration. The accumulator, a dot's last operand, is left out: no
    load is pipelined for it.
    """
    instructions = code.instructions
    indices = code.indices(region.blocks)
    reads = {index: code.instructions[index].operands.reads for index in indices}
    producers = {result: index for index in indices for result in instructions[index].operands.results}
    passed_from = group_by_key(
        (flow.target, flow.source)
        for flow in code.function.flows
        if not flow.is_back_edge and flow.instruction_index in reads
    )
    levels: dict[int, set[int]] = {}
    visited: set[tuple[int, int]] = set()
    dots = (index for index in indices if instructions[index].kind is EventKind.MATRIX)
    pending = [(name, 0) for dot in dots for name in reads[dot][:-1]]
    while pending:
        name, level = pending.pop()
        # The instructions that may define a value, through the results of branches.
        names = reachable([name], lambda name: passed_from.get(name, ()))
        for index in (producers[name] for name in names if name in producers):
            if (index, level) in visited:
                continue
            visited.add((index, level))
            below = level
            if instructions[index].kind in LOADS:
                levels.setdefault(index, set()).add(level)
                below = level + 1
            if below < _MAX_LEVELS:
                pending += [(operand, below) for operand in reads[index]]
    return {index: frozenset(load_levels) for index, load_levels in levels.items()}
