"""Values of a function by number, so that a name reused in a sibling region is another value."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.model import Function

__all__ = ["Values", "number_values"]


@dataclass(frozen=True, slots=True)
class Values:
    """Static single assignment, spelled in numbers; every list is by instruction index."""

    count: int
    reads: list[dict[str, int]]
    """Name → value, as each instruction reads it."""
    results: list[tuple[int, ...]]
    flows: list[list[tuple[int, int, int, bool]]]
    """Hand-overs at each instruction: (source value, target value, owner, back edge)."""


def number_values(function: Function) -> Values:
    """Numbers for the values of an SSA function, read in text order (definitions come first)."""
    current: dict[str, int] = {}
    owned: dict[tuple[int, str], int] = {}
    count = 0
    for name in function.arguments:
        current[name] = count
        count += 1
    flows_at: dict[int, list[int]] = {}
    for place, flow in enumerate(function.flows):
        flows_at.setdefault(flow.at, []).append(place)
        # Arguments of blocks may be read before the jump that hands them over is met.
        if flow.owner < 0 and (flow.owner, flow.target) not in owned:
            owned[flow.owner, flow.target] = current[flow.target] = count
            count += 1
    reads: list[dict[str, int]] = []
    results: list[tuple[int, ...]] = []
    flows: list[list[tuple[int, int, int, bool]]] = []
    for index, instruction in enumerate(function.instructions):
        operands = instruction.operands
        reads.append({name: current[name] for name in operands.reads if name in current})
        numbers = []
        for name in operands.results:
            current[name] = count
            numbers.append(count)
            count += 1
        results.append(tuple(numbers))
        handed: list[tuple[int, int, int, bool]] = []
        for place in flows_at.get(index, ()):
            source, target, _, owner, back = function.flows[place]
            if source not in current:
                continue
            origin = current[source]
            key = (owner, target)
            if key not in owned:
                owned[key] = count
                count += 1
            if not back and owner >= 0:
                current[target] = owned[key]
            handed.append((origin, owned[key], owner, back))
        flows.append(handed)
    return Values(count, reads, results, flows)
