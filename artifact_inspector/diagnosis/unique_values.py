"""The instructions of a function with a different name for each value: MLIR reuses names in sibling regions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.model import Flow, Function, Instruction


class NamedInstruction(NamedTuple):
    """An instruction with unique names."""

    instruction: Instruction
    results: tuple[str, ...]
    reads: tuple[str, ...]


def name_values(function: Function) -> tuple[Sequence[NamedInstruction], Mapping[int, Sequence[Flow]]]:
    """Instructions and flows (by instruction index) whose value names are unique; first uses keep their name."""
    current: dict[str, str] = {name: name for name in function.arguments}
    by_index: defaultdict[int, list[Flow]] = defaultdict(list)
    for flow in function.flows:
        by_index[flow.instruction_index].append(flow)
    used = set(current)

    def define(name: str, index: int) -> str:
        unique = name if name not in used else f"{name}@{index}"
        used.add(unique)
        current[name] = unique
        return unique

    named: list[NamedInstruction] = []
    flows: defaultdict[int, list[Flow]] = defaultdict(list)
    owned: dict[tuple[int, str], str] = {}
    for index, instruction in enumerate(function.instructions):
        operands = instruction.operands
        is_loop = instruction.opcode == "scf.for"
        entering = [flow for flow in by_index.get(index, ()) if flow.owner == index]
        sources = {flow: current.get(flow.source, flow.source) for flow in by_index.get(index, ())}
        reads = [current.get(name, name) for name in operands.reads]
        if is_loop and operands.reads:
            reads[0] = define(operands.reads[0], index)
        for flow in entering:
            owned[index, flow.target] = define(flow.target, index)
        results = tuple(define(name, index) for name in operands.results)
        named.append(NamedInstruction(instruction, results, tuple(reads)))
        for flow in by_index.get(index, ()):
            key = (flow.owner, flow.target)
            if key not in owned:
                owned[key] = define(flow.target, index)
            flows[index].append(flow._replace(source=sources[flow], target=owned[key]))
    return named, flows
