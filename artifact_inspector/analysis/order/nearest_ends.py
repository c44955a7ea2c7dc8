"""The ends (anchors or stores) that data reaches first, for each node of a data graph.

Ends are ordered by iterations, then by position in execution order. Labels are propagated backwards from the ends and
each node keeps a few, so every edge is visited a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from artifact_inspector.analysis.flow.control_flow import ControlFlow
from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, NO_LOOP, PLAIN_EDGE, DataGraph
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable

MAX_DISTANCE = 8
"""Iterations that data is followed across back edges. Deeper prefetch does not occur in practice."""
MAX_ENDS = 4
"""Number of ends kept for each node."""

Labels = dict[int, list[tuple[int, int]]]
"""Node → (iterations, end), nearest first, each end once."""
Seeds = list[tuple[int, int, int]]
"""(iterations, end, node)"""


class NearestEnds:
    """The nearest ends of the nodes of a graph.

    Args:
        ends: instructions, with the nodes that they use.
        stops: computes that data does not pass through.
        loaded: loop → the nodes written in it, whose ends are counted in iterations of it.
        is_bound: ignore edges from a condition to the values that it selects.
        cut: nodes that no data enters: results of instructions that are ends here and moves elsewhere.
    """

    def __init__(
        self,
        graph: DataGraph,
        flow: ControlFlow,
        ends: Mapping[int, Collection[int]],
        stops: Collection[int],
        loaded: Mapping[int, Collection[int]],
        *,
        is_bound: bool,
        cut: Collection[int] = (),
    ) -> None:
        self._graph, self._flow, self._stops, self._loaded = graph, flow, stops, loaded
        self._is_bound, self._cut_nodes = is_bound, cut
        self._ends = group_by_key((node, end) for end, nodes in ends.items() for node in nodes)
        """Node → the ends that use it."""
        self._function_labels: Labels = {}
        self._propagate(self._function_labels, self._seeds_at(self._ends), None, None)
        self._loop_labels: dict[int, Labels] = {}
        self._loop_nodes: dict[int, dict[int, None]] = {}

    def reached_from(self, nodes: Iterable[int], loop: int | None) -> list[tuple[int, int]]:
        """(iterations of a loop, end) for the ends that data in some nodes reaches, nearest first.

        Ends `MAX_DISTANCE` or more iterations away are omitted.
        """
        labels = self._function_labels if loop is None else self._labels_in_loop(loop)
        inside = () if loop is None else self._loop_nodes[loop]
        distances: dict[int, int] = {}
        for node in nodes:
            for distance, end in (labels if node in inside else self._function_labels).get(node, ()):
                distances[end] = min(distance, distances.get(end, distance))
        return sorted(((distance, end) for end, distance in distances.items()), key=self._rank)

    def _rank(self, label: tuple[int, ...]) -> tuple[int, int]:
        return label[0], self._flow.position[label[1]]

    def _labels_in_loop(self, loop: int) -> Labels:
        """Labels of the nodes that data loaded in a loop reaches inside it."""
        if loop in self._loop_labels:
            return self._loop_labels[loop]
        homes, encloses = self._graph.loop_of_node, self._flow.encloses
        inside = self._loop_nodes[loop] = reachable(
            self._loaded[loop],
            lambda node: (n for n, _ in self._successors(node) if homes[n] == NO_LOOP or encloses(loop, homes[n])),
        )
        seeds = self._seeds_at(inside)
        for node in inside:  # data that leaves the loop does not cross its back edge again
            exit_nodes = {successor for successor, _ in self._successors(node) if successor not in inside}
            seeds += [(0, end, node) for successor in exit_nodes for _, end in self._function_labels.get(successor, ())]
        labels = self._loop_labels[loop] = {}
        while seeds:
            seeds = self._propagate(labels, seeds, inside, loop)
        return labels

    def _seeds_at(self, nodes: Iterable[int]) -> Seeds:
        return [(0, end, node) for node in nodes for end in self._ends.get(node, ())]

    def _propagate(self, labels: Labels, seeds: Seeds, inside: dict[int, None] | None, loop: int | None) -> Seeds:
        """Label the predecessors of some nodes. Returns the seeds that cross the loop's back edge."""
        crossing: Seeds = []
        for distance, end, seed in sorted(seeds, key=self._rank):
            pending = [seed]
            while pending:
                node = pending.pop()
                node_labels = labels.setdefault(node, [])
                if len(node_labels) >= MAX_ENDS or any(other_end == end for _, other_end in node_labels):
                    continue
                node_labels.append((distance, end))
                for predecessor, kind in self._predecessors(node):
                    if inside is not None and predecessor not in inside:
                        continue
                    if kind != loop:
                        pending.append(predecessor)
                    elif distance + 1 < MAX_DISTANCE:
                        crossing.append((distance + 1, end, predecessor))
        return crossing

    def _predecessors(self, node: int) -> Iterator[tuple[int, int]]:
        if node in self._cut_nodes:
            return
        for edge in self._graph.predecessors[node]:
            if not (self._is_bound and edge[1] == CONDITION_EDGE):
                yield edge
        compute = self._graph.producer.get(node)
        if compute is not None and compute not in self._stops:
            for operand_node in self._graph.operands[compute]:
                yield operand_node, PLAIN_EDGE

    def _successors(self, node: int) -> Iterator[tuple[int, int]]:
        for edge in self._graph.successors[node]:
            if not (self._is_bound and edge[1] == CONDITION_EDGE) and edge[0] not in self._cut_nodes:
                yield edge
        for compute in self._graph.users.get(node, ()):
            if compute not in self._stops:
                for result_node in self._graph.results[compute]:
                    yield result_node, PLAIN_EDGE
