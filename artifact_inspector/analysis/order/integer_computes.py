"""Rounds of integer work: loads whose data only integer operations use.

The computes are then compares whose result is stored, integers carried by a loop (a count, a sum, a maximum), and
integer reductions. All other integer operations count as moves, as everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, DataGraph
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.analysis.order.nearest_ends import NearestEnds
from artifact_inspector.model import COMPUTES, EventKind, PointerUse, Trait


def body_of(code: FunctionCode, index: int) -> list[int]:
    """The instructions that combine two elements in a reduction or scan; empty for other operations."""
    body: list[int] = []
    if code.has_trait(index, Trait.HAS_BODY):
        for inside in range(index + 1, len(code.instructions)):
            if code.instructions[inside].kind is not EventKind.OTHER:
                break
            if code.has_trait(inside, Trait.END_OF_BODY):
                break
            body.append(inside)
    return body


def is_integer_reduction(code: FunctionCode, index: int) -> bool:
    """True for a reduction or scan that combines integers."""
    body = body_of(code, index)
    return bool(body) and not any(code.has_trait(inside, Trait.FLOATING_POINT) for inside in body)


class IntegerComputes:
    """The integer computes of a function, for loads that no float or matrix operation uses.

    Args:
        sinks: stores and atomics, as ends of data.
        carried: integer operations whose result a loop carries to its next iteration.
        stops: computes that data does not pass through.
        loaded: loop → the nodes that its own loads write.
    """

    def __init__(
        self,
        code: FunctionCode,
        graph: DataGraph,
        sinks: NearestEnds,
        carried: Iterable[int],
        stops: Collection[int],
        loaded: dict[int, list[int]],
    ) -> None:
        self._code, self._graph, self._sinks, self._stops = code, graph, sinks, stops
        values, instructions = code.values, code.instructions
        self._carried = {
            index
            for index in carried
            if code.language.pointer_use(instructions[index]) is PointerUse.NONE
            and sinks.reached_from(values.results[index], None)
        }
        computes = code.find(COMPUTES)
        reductions = [i for i in computes if instructions[i].kind is EventKind.FLOAT and is_integer_reduction(code, i)]
        self._floats = group_by_key(
            (loop, index)
            for index in set(computes).difference(reductions)
            for loop in (*code.flow.enclosing(code.flow.loop_at(index)), None)
        )
        """Innermost and enclosing loops (None: the function) → the float and matrix operations in them."""
        self._producer = {value: index for index in self._carried for value in values.results[index]}
        """Node → the integer compute that produces it."""
        operand_nodes = {index: list(values.reads[index].values()) for index in self._carried}
        operand_nodes.update((index, graph.operands[index]) for index in reductions)
        self._anchors = NearestEnds(
            graph, code.flow, operand_nodes, stops, loaded, is_bound=True, cut=frozenset(self._producer)
        )
        for index in code.of_kind.get(EventKind.INTEGER, ()):
            if code.has_trait(index, Trait.COMPARISON):
                self._producer.update(dict.fromkeys(values.results[index], index))
        self._nodes_reaching_floats: dict[int | None, dict[int, None]] = {}

    def feeds_floats(self, load: int) -> bool:
        """True if a float or matrix operation in the load's own loop uses its data."""
        loop = self._code.flow.loop_at(load)
        if loop not in self._nodes_reaching_floats:
            nodes = [node for index in self._floats.get(loop, ()) for node in self._graph.operands[index]]
            self._nodes_reaching_floats[loop] = reachable(nodes, self._sources)
        return not self._nodes_reaching_floats[loop].keys().isdisjoint(self._graph.results[load])

    def _sources(self, node: int) -> list[int]:
        """The nodes whose data a node may hold, also through computes."""
        sources = [source for source, _ in self._graph.predecessors[node]]
        compute = self._graph.producer.get(node)
        return sources if compute is None or compute in self._stops else sources + self._graph.operands[compute]

    def reached_anchors(self, load: int) -> list[tuple[int, int]]:
        """(iterations, anchor) of the integer anchors that a load reaches, or of the stores of compares."""
        loop, nodes = self._code.flow.loop_at(load), self._graph.results[load]
        anchors = self._anchors.reached_from(nodes, loop)
        return anchors or (self._sinks.reached_from(nodes, loop) if self._users(nodes) else [])

    def computes_of(self, anchor: int, loads: Iterable[int]) -> list[int]:
        """The integer computes that are the first to use the data of loads, on the path to their anchor."""
        users = self._users(node for load in loads for node in self._graph.results[load])
        direct = (index for index in users if self._leads_to(index, anchor))
        return sorted(direct, key=self._code.flow.position.__getitem__)

    def _leads_to(self, compute: int, anchor: int) -> bool:
        if compute == anchor:
            return True
        result_nodes = self._code.values.results[compute]
        ends = self._anchors.reached_from(result_nodes, None) or self._sinks.reached_from(result_nodes, None)
        return any(end == anchor for _, end in ends)

    def _users(self, nodes: Iterable[int]) -> set[int]:
        """The integer computes that use the data of some nodes unchanged."""
        users: set[int] = set()

        def successors(node: int) -> Iterator[int]:
            users.update(index for index in self._graph.users.get(node, ()) if index in self._stops)
            for successor, kind in self._graph.successors[node]:
                if kind != CONDITION_EDGE and successor in self._producer:
                    users.add(self._producer[successor])
                elif kind != CONDITION_EDGE:
                    yield successor

        reachable(nodes, successors)
        return users
