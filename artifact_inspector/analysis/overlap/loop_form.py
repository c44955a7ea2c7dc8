"""The properties of a loop in tensor-level IR that the pipeliner checks before it transforms the loop.

Source: Triton, lib/Dialect/TritonGPU/Transforms/Pipeliner (AssignLatencies.cpp, earlier
MatmulLoopPipeline.cpp; `preCondition` and `loadOpsToIndirectionLevel`): counted innermost loops, no
dependence over more than one iteration, loads of the body itself that feed the operands of a dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain
from artifact_inspector.analysis.flow.trips import find_trips
from artifact_inspector.analysis.order.reference import LoadStatement
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, EventKind, Trait

_FARTHEST = 4
"""Maximum depth of address loads that is analysed."""


class LoopLoad(NamedTuple):
    """A load statement of the loop."""

    line: int
    label: str
    """Its name and location in the user's code."""
    chain: Chain | None
    levels: frozenset[int]
    """Loads of the loop between it and an operand of a dot: 0 if it feeds the dot, 1 if it addresses such
    a load. Empty if it reaches no dot.
    """
    conditional: bool
    """It is under a branch of the loop and does not run in every iteration."""


@dataclass(frozen=True, slots=True)
class LoopForm:
    """Properties of a loop at one tensor-level stage."""

    line: int
    asked: int | None
    """`tt.num_stages` of the loop itself."""
    is_counted: bool
    """It has bounds (`scf.for`); a `while` has none."""
    inner: int | None
    """Line of a loop inside it."""
    flattens: bool
    """The program requests that it be flattened with the loop inside it."""
    old_values: int | None
    """Line that passes a value on unchanged. The iteration after the next reads it, so it is older than
    one iteration.
    """
    trips: int | None
    """Trip count, if its bounds are constants."""
    rounds: tuple[tuple[LoopLoad, ...], ...]
    """Its load statements as in the region's rounds. Empty if the rounds were read from another stage."""


def find_loop_form(code: Code, region: Region, *, exact: bool) -> LoopForm | None:
    """The properties of a loop of tensor-level IR; None if its first operation is not found.

    Args:
        exact: the stage is the one that the reference was read from.
    """
    assert region.loop is not None
    flow, function = code.flow, code.function
    loop = flow.loops[region.loop]
    opening = function.blocks[loop.header].start - 1
    if opening < 0 or function.instructions[opening].kind is not EventKind.BRANCH:
        return None
    operation = function.instructions[opening]
    inner = code.once(_first_inner).get(region.loop)
    rounds: tuple[tuple[LoopLoad, ...], ...] = ()
    if exact and region.reference is not None:
        levels = _find_levels(code, region)
        rounds = tuple(
            tuple(_read(code, region, statement, levels) for statement in item.statements)
            for item in region.reference.rounds
        )
    header, trips = code.language.loop_header(operation), find_trips(code, region.loop)
    return LoopForm(
        operation.line,
        header.num_stages,
        code.has(opening, Trait.COUNTED),
        None if inner is None else _first_line(code, inner),
        header.flattens,
        _old_values(code, opening),
        None if trips is None else trips.passes,
        rounds,
    )


def _first_inner(code: Code) -> dict[int, int]:
    """Header of the first loop directly inside each loop that has one."""
    found: dict[int, int] = {}
    for loop in code.flow.loops:
        if loop.parent is not None:
            found.setdefault(loop.parent, loop.header)
    return found


def _first_line(code: Code, block: int) -> int:
    return code.function.instructions[max(0, code.function.blocks[block].start - 1)].line


def _old_values(code: Code, opening: int) -> int | None:
    """Line that passes a loop argument unchanged to a different argument of the next iteration."""
    flows = code.function.flows
    handed = {flow.target for flow in flows if flow.at == opening and flow.owner == opening}
    # A value passed to its own argument never changes; the canonicaliser removes these.
    for flow in flows:
        if flow.back and flow.owner == opening and flow.source in handed and flow.source != flow.target:
            return code.function.instructions[flow.at].line
    return None


def _read(
    code: Code, region: Region, statement: LoadStatement, levels: dict[int, frozenset[int]]
) -> LoopLoad:
    source = statement.source
    name = statement.name or "a load"
    return LoopLoad(
        code.function.instructions[statement.index].line,
        name if source is None else f"{name} ({source})" if statement.name else source,
        statement.chain,
        levels.get(statement.index, frozenset()),
        _is_conditional(code, region, statement.index),
    )


def _is_conditional(code: Code, region: Region, index: int) -> bool:
    """True if a path through the loop's body avoids the instruction's block."""
    assert region.loop is not None
    loop = code.flow.loops[region.loop]
    avoided = code.flow.block_of[index]
    if avoided == loop.header or avoided not in loop.blocks:
        return False
    seen, pending = {loop.header, avoided}, [loop.header]
    while pending:
        block = pending.pop()
        if block in loop.latches:
            return True
        for successor in code.function.blocks[block].successors:
            if successor in loop.blocks and successor not in seen:
                seen.add(successor)
                pending.append(successor)
    return False


def _find_levels(code: Code, region: Region) -> dict[int, frozenset[int]]:
    """For each load of a loop, the number of loads between it and the operands of its dots.

    Values are traced back from the dots within one iteration. The accumulator, a dot's last operand, is
    left out: no load is pipelined for it.
    """
    instructions = code.function.instructions
    own = code.indices(region.blocks)
    dots = [index for index in own if instructions[index].kind is EventKind.MATRIX]
    if not dots:
        return {}
    made: dict[str, int] = {}
    reads: dict[int, tuple[str, ...]] = {}
    for index in own:
        results, reads[index] = instructions[index].operands
        made.update(dict.fromkeys(results, index))
    inside = set(own)
    handed: dict[str, list[str]] = {}
    for flow in code.function.flows:
        if not flow.back and flow.at in inside:
            handed.setdefault(flow.target, []).append(flow.source)
    levels: dict[int, set[int]] = {}
    seen: set[tuple[int, int]] = set()
    pending = [(name, 0) for dot in dots for name in reads[dot][:-1]]
    while pending:
        name, level = pending.pop()
        for index in _makers(name, made, handed):
            if (index, level) in seen:
                continue
            seen.add((index, level))
            below = level
            if instructions[index].kind in LOADS:
                levels.setdefault(index, set()).add(level)
                below = level + 1
            if below < _FARTHEST:
                pending += [(read, below) for read in reads[index]]
    return {index: frozenset(found) for index, found in levels.items()}


def _makers(name: str, made: dict[str, int], handed: dict[str, list[str]]) -> Iterator[int]:
    """The instructions that may define a value, through the results of branches."""
    pending, seen = [name], {name}
    while pending:
        current = pending.pop()
        if current in made:
            yield made[current]
        for source in handed.get(current, ()):
            if source not in seen:
                seen.add(source)
                pending.append(source)
