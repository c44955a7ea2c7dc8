"""The flow of loaded data in tensor-level IR: through values, control flow and shared memory.

All dataflow analyses use one graph. Its nodes are the values of a function and the buffers in shared
memory. An edge is a step that does not change the data. Computes end these steps: their inputs and
results are listed separately.
"""

from __future__ import annotations

from collections.abc import Iterable

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.model import COMPUTES, LOADS, SINKS, Access, EventKind, Instruction, Trait
from artifact_inspector.model.shared import SharedRole

PLAIN = -1
"""Kind of an ordinary edge. A number from 0 on is the loop whose back edge it is."""
BOUND = -2
"""Kind of the edge from the condition of a selection to the selected values."""
EVERYWHERE = -1
"""Home of a buffer, which belongs to no particular loop."""

_NAMING = frozenset({SharedRole.BUFFER, SharedRole.VIEW})
Edges = list[list[tuple[int, int]]]


class DataGraph:
    """The graph of one function whose language distinguishes addresses from values."""

    def __init__(self, code: Code) -> None:
        self._code = code
        values, flow = code.values, code.flow
        self.home: list[int | None] = [None] * values.count
        """Innermost loop of each node; EVERYWHERE for a buffer."""
        self.after: Edges = [[] for _ in range(values.count)]
        """Node → (node, kind) of its outgoing edges."""
        self.before: Edges = [[] for _ in range(values.count)]
        """Node → (node, kind) of its incoming edges."""
        self.taken: dict[int, list[int]] = {}
        """Compute → the nodes that it reads; sink → those that it stores; load → those of its address."""
        self.given: dict[int, list[int]] = {}
        """Load or compute → the nodes that it writes."""
        self.takers: dict[int, list[int]] = {}
        """Node → the computes that read it."""
        self.made_by: dict[int, int] = {}
        """Node → the compute that produces it."""
        self._root = _find_roots(code)
        self._buffers: dict[int, int] = {}
        """Root → the node of its buffer's present contents."""
        self._is_looped = any(handed.back for flows in values.flows for handed in flows)
        self._loop_behind = {
            code.function.blocks[loop.header].start - 1: number for number, loop in enumerate(flow.loops)
        }
        """Structured loop operation → its loop."""
        for index, instruction in enumerate(code.function.instructions):
            self._add(index, instruction)
            self._hand_over(index)
        del self._code  # the code may cache this graph, and a reference cycle would delay freeing both

    def _add(self, index: int, instruction: Instruction) -> None:
        kind, reads, results = (
            instruction.kind,
            self._code.values.reads[index],
            self._code.values.results[index],
        )
        home = self._code.flow.loop_at(index)
        for value in results:
            self.home[value] = home
        if kind in LOADS:
            self._add_load(index, instruction)
        elif kind in SINKS:
            self.taken[index] = self._named(index, self._access(instruction).value)
        elif kind in COMPUTES:
            taken = self.taken[index] = self._nodes(reads.values())
            self.given[index] = list(results)
            self.made_by.update(dict.fromkeys(results, index))
            for node in taken:
                self.takers.setdefault(node, []).append(index)
        elif kind is EventKind.SHARED_STORE:
            self._fill(reads.values(), self._nodes(reads.values()))
        else:
            decides = kind is EventKind.MOVE and self._code.has(index, Trait.SELECTION)
            for name, value in reads.items():
                is_bound = decides and name == instruction.operands.reads[0]
                for node in self._nodes((value,)):
                    self._connect(node, results, BOUND if is_bound else PLAIN)

    def _add_load(self, index: int, instruction: Instruction) -> None:
        access, reads = self._access(instruction), self._code.values.reads[index]
        self.taken[index] = self._named(index, access.address)
        kept = self._named(index, access.value)
        given = self.given[index] = list(self._code.values.results[index])
        for node in kept:
            self._connect(node, given, PLAIN)
        if instruction.kind is EventKind.ASYNC_COPY:
            given += self._fill(reads.values(), kept)

    def _access(self, instruction: Instruction) -> Access:
        access = self._code.language.access
        assert access is not None
        return access(instruction)

    def _named(self, index: int, names: Iterable[str]) -> list[int]:
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
                held, node = node, len(self.home)
                self.home.append(EVERYWHERE)
                self.after.append([])
                self.before.append([])
                self._buffers[root] = node
                if held is not None:
                    self._connect(held, (node,), PLAIN)
            for source in sources:
                self._connect(source, (node,), PLAIN)
            filled.append(node)
        return filled

    def _connect(self, source: int, targets: Iterable[int], kind: int) -> None:
        for target in targets:
            if target != source:
                self.after[source].append((target, kind))
                self.before[target].append((source, kind))

    def _hand_over(self, index: int) -> None:
        flow = self._code.flow
        for source, target, owner, back in self._code.values.flows[index]:
            loop = flow.loop_of[-1 - owner] if owner < 0 else self._loop_behind.get(owner)
            self.home[target] = loop
            if owner >= 0 and (
                loop is None or (index != owner and not back and self._is_result(target, loop))
            ):
                self.home[target] = flow.loop_at(owner)
            for node in self._nodes((source,)):
                self._connect(node, (target,), loop if back and loop is not None else PLAIN)

    def _is_result(self, value: int, loop: int) -> bool:
        """True for a result of a loop, used after it; an argument of its body is used inside."""
        users = self._code.values.uses.get(value, ())
        return not any(self._code.flow.encloses(loop, self._code.flow.loop_at(user)) for user in users[:1])


def _find_roots(code: Code) -> dict[int, int]:
    """Value that refers to shared memory → the value of its allocation."""
    function, values = code.function, code.values
    root: dict[int, int] = {}
    for index, instruction in enumerate(function.instructions):
        results = values.results[index]
        role = code.language.shared(instruction).role if results else SharedRole.NONE
        if role is SharedRole.ALLOCATION:
            root[results[0]] = results[0]
        elif role in _NAMING and instruction.kind is EventKind.MOVE:
            named = next((root[value] for value in values.reads[index].values() if value in root), None)
            if named is not None:
                root[results[0]] = named
        for handed in values.flows[index]:
            if handed.source in root:
                root[handed.target] = root[handed.source]
    return root
