"""Values of a function by number, so that a name reused in a sibling region is another value."""

from __future__ import annotations

from dataclasses import dataclass

from artifact_inspector.model import Function

__all__ = ["Values", "number_values"]

_LOOPS = frozenset({"scf.for", "scf.while"})


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
    entered = _find_partitions(function)
    entries: dict[int, dict[str, int | None]] = {}
    """First instruction of a partition → the values of its arguments."""
    reads: list[dict[str, int]] = []
    results: list[tuple[int, ...]] = []
    flows: list[list[tuple[int, int, int, bool]]] = []
    for index, instruction in enumerate(function.instructions):
        if index in entries:  # the region in front may have used the names of its arguments again
            _bind(current, entries[index])
        operands = instruction.operands
        names = operands.reads
        if instruction.opcode in _LOOPS:  # it spells `%argument = %value` for the arguments of its body
            own = {function.flows[place].target for place in flows_at.get(index, ())}
            if instruction.opcode == "scf.for":
                current.pop(names[0], None)  # the variable that it counts
            names = tuple(name for name in names if name not in own)
        reads.append({name: current[name] for name in names if name in current})
        numbers = []
        for name in operands.results:
            current[name] = count
            numbers.append(count)
            count += 1
        results.append(tuple(numbers))
        handed: list[tuple[int, int, int, bool]] = []
        arguments: dict[str, int | None] = {}
        for place in flows_at.get(index, ()):
            source, target, _, owner, back = function.flows[place]
            if source not in current:
                if owner >= 0:
                    arguments[target] = None
                continue
            origin = current[source]
            key = (owner, target)
            if key not in owned:
                owned[key] = count
                count += 1
            if owner >= 0:
                # Behind its back edge nothing sees a loop's argument, and the body of a reduction may have
                # one of that name, which no flow hands over.
                arguments[target] = None if back else owned[key]
            handed.append((origin, owned[key], owner, back))
        _bind(current, arguments)
        if index in entered:
            entries.update(dict.fromkeys(entered[index], arguments))
        flows.append(handed)
    return Values(count, reads, results, flows)


def _bind(current: dict[str, int], arguments: dict[str, int | None]) -> None:
    """Lets names stand for other values from here on, or for none that is known."""
    for name, value in arguments.items():
        if value is None:
            current.pop(name, None)
        else:
            current[name] = value


def _find_partitions(function: Function) -> dict[int, list[int]]:
    """For each warp-specialised operation, the first instructions of the partitions that it hands values."""
    entered: dict[int, list[int]] = {}
    operation = -1
    for part in function.partitions:
        start = function.blocks[part.first].start
        if part.name == "default":
            operation = start - 1  # its own region sees the names around it
        else:
            entered.setdefault(operation, []).append(start)
    return entered
