"""The flow of loaded data in tensor-level IR: through values, control flow and shared memory.

All dataflow analyses use one graph. Its nodes are the values of a function and the buffers in shared memory. An edge is
a step that does not change the data. Computes end these steps: their inputs and results are listed separately.
"""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.model import COMPUTES, LOADS, SINKS, AccessOperands, EventKind, Instruction, Trait
from artifact_inspector.model.shared import SharedRole

PLAIN_EDGE = -1
"""Kind of an ordinary edge. A number from 0 on is the loop whose back edge it is."""
CONDITION_EDGE = -2
"""Kind of the edge from the condition of a selection to the selected values."""
NO_LOOP = -1
"""Home of a buffer, which belongs to no particular loop."""

_NAMING = frozenset({SharedRole.BUFFER, SharedRole.VIEW})
Edges = list[list[tuple[int, int]]]


class DataGraph:
    """The graph of one function whose language distinguishes addresses from values."""

    def __init__(self, code: FunctionCode) -> None:
        self._code = code
        values, flow = code.values, code.flow
        self.loop_of_node: list[int | None] = [None] * values.count
        """Innermost loop of each node; EVERYWHERE for a buffer."""
        self.successors: Edges = [[] for _ in range(values.count)]
        """Node → (node, kind) of its outgoing edges."""
        self.predecessors: Edges = [[] for _ in range(values.count)]
        """Node → (node, kind) of its incoming edges."""
        self.operands: dict[int, list[int]] = {}
        """Compute → the nodes that it reads; sink → those that it stores; load → those of its address."""
        self.results: dict[int, list[int]] = {}
        """Load or compute → the nodes that it writes."""
        self.users: dict[int, list[int]] = {}
        """Node → the computes that read it."""
        self.producer: dict[int, int] = {}
        """Node → the compute that produces it."""
        self._root = _find_roots(code)
        self._buffers: dict[int, int] = {}
        """Root → the node of its buffer's present contents."""
        self._is_looped = any(passed_value.is_back_edge for flows in values.flows for passed_value in flows)
        self._loop_of_operation = {code.blocks[loop.header].start - 1: number for number, loop in enumerate(flow.loops)}
        """Structured loop operation → its loop."""
        for index, instruction in enumerate(code.instructions):
            self._add(index, instruction)
            self._pass_values(index)
        del self._code  # the code may cache this graph, and a reference cycle would delay freeing both

    def _add(self, index: int, instruction: Instruction) -> None:
        kind, reads, results = (instruction.kind, self._code.values.reads[index], self._code.values.results[index])
        home = self._code.flow.loop_at(index)
        for value in results:
            self.loop_of_node[value] = home
        if kind in LOADS:
            self._add_load(index, instruction)
        elif kind in SINKS:
            self.operands[index] = self._nodes_of_names(index, self._access(instruction).value)
        elif kind in COMPUTES:
            operand_nodes = self.operands[index] = self._nodes(reads.values())
            self.results[index] = list(results)
            self.producer.update(dict.fromkeys(results, index))
            for node in operand_nodes:
                self.users.setdefault(node, []).append(index)
        elif kind is EventKind.SHARED_STORE:
            self._fill(reads.values(), self._nodes(reads.values()))
        else:
            decides = kind is EventKind.MOVE and self._code.has_trait(index, Trait.SELECTION)
            for name, value in reads.items():
                is_bound = decides and name == instruction.operands.reads[0]
                for node in self._nodes((value,)):
                    self._connect(node, results, CONDITION_EDGE if is_bound else PLAIN_EDGE)

    def _add_load(self, index: int, instruction: Instruction) -> None:
        access, reads = self._access(instruction), self._code.values.reads[index]
        self.operands[index] = self._nodes_of_names(index, access.address)
        passed_nodes = self._nodes_of_names(index, access.value)
        result_nodes = self.results[index] = list(self._code.values.results[index])
        for node in passed_nodes:
            self._connect(node, result_nodes, PLAIN_EDGE)
        if instruction.kind is EventKind.ASYNC_COPY:
            result_nodes += self._fill(reads.values(), passed_nodes)

    def _access(self, instruction: Instruction) -> AccessOperands:
        access = self._code.language.access_operands
        assert access is not None
        return access(instruction)

    def _nodes_of_names(self, index: int, names: Iterable[str]) -> list[int]:
        reads = self._code.values.reads[index]
        return self._nodes([reads[name] for name in names if name in reads])

    def _nodes(self, values: Iterable[int]) -> list[int]:
        """The nodes of some values, and of the contents of the buffers that they refer to."""
        nodes = []
        for value in values:
            nodes.append(value)
            if self._root.get(value) in self._buffers:
                nodes.append(self._buffers[self._root[value]])
        return nodes

    def _fill(self, values: Iterable[int], sources: list[int]) -> list[int]:
        """The nodes of the buffers that some values refer to, after adding edges from some nodes."""
        filled = []
        for value in values:
            root = self._root.get(value)
            if root is None:
                continue
            node = self._buffers.get(root)
            # In straight-line code a buffer holds the stores so far; in a loop, it may hold any store.
            if node is None or not self._is_looped:
                previous_node, node = node, len(self.loop_of_node)
                self.loop_of_node.append(NO_LOOP)
                self.successors.append([])
                self.predecessors.append([])
                self._buffers[root] = node
                if previous_node is not None:
                    self._connect(previous_node, (node,), PLAIN_EDGE)
            for source in sources:
                self._connect(source, (node,), PLAIN_EDGE)
            filled.append(node)
        return filled

    def _connect(self, source: int, targets: Iterable[int], kind: int) -> None:
        for target in targets:
            if target != source:
                self.successors[source].append((target, kind))
                self.predecessors[target].append((source, kind))

    def _pass_values(self, index: int) -> None:
        flow = self._code.flow
        for source, target, owner, back in self._code.values.flows[index]:
            loop = flow.loop_of[-1 - owner] if owner < 0 else self._loop_of_operation.get(owner)
            self.loop_of_node[target] = loop
            if owner >= 0 and (loop is None or (index != owner and not back and self._is_result(target, loop))):
                self.loop_of_node[target] = flow.loop_at(owner)
            for node in self._nodes((source,)):
                self._connect(node, (target,), loop if back and loop is not None else PLAIN_EDGE)

    def _is_result(self, value: int, loop: int) -> bool:
        """True for a result of a loop, used after it; an argument of its body is used inside."""
        users = self._code.values.uses.get(value, ())
        return not any(self._code.flow.encloses(loop, self._code.flow.loop_at(user)) for user in users[:1])


def _find_roots(code: FunctionCode) -> dict[int, int]:
    """Value that refers to shared memory → the value of its allocation."""
    function, values = code.function, code.values
    root: dict[int, int] = {}
    for index, instruction in enumerate(function.instructions):
        results = values.results[index]
        role = code.language.shared_use(instruction).role if results else SharedRole.NONE
        if role is SharedRole.ALLOCATION:
            root[results[0]] = results[0]
        elif role in _NAMING and instruction.kind is EventKind.MOVE:
            named = next((root[value] for value in values.reads[index].values() if value in root), None)
            if named is not None:
                root[results[0]] = named
        for passed_value in values.flows[index]:
            if passed_value.source in root:
                root[passed_value.target] = root[passed_value.source]
    return root
