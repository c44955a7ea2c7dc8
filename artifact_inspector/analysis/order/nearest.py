"""The ends (anchors or stores) that data reaches first, for each node of a data graph.

Ends are ordered by iterations, then by position in execution order. Labels are propagated backwards from
the ends and each node keeps a few, so every edge is visited a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from artifact_inspector.analysis.flow.cfg import ControlFlow
from artifact_inspector.analysis.flow.datagraph import BOUND, EVERYWHERE, PLAIN, DataGraph

FARTHEST = 8
"""Iterations that data is followed across back edges. Deeper prefetch does not occur in practice."""
NEAREST = 4
"""Number of ends kept for each node."""

Labels = dict[int, list[tuple[int, int]]]
"""Node → (iterations, end), nearest first, each end once."""
Seeds = list[tuple[int, int, int]]
"""(iterations, end, node)"""


class Nearest:
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
        self._is_bound, self._cut = is_bound, cut
        self._ends: dict[int, list[int]] = {}
        """Node → the ends that use it."""
        for end, nodes in ends.items():
            for node in nodes:
                self._ends.setdefault(node, []).append(end)
        self._anywhere: Labels = {}
        self._spread(self._anywhere, self._seeds_at(self._ends), None, None)
        self._by_loop: dict[int, Labels] = {}
        self._inside_of: dict[int, set[int]] = {}

    def of(self, nodes: Iterable[int], loop: int | None) -> list[tuple[int, int]]:
        """(iterations of a loop, end) for the ends that data in some nodes reaches, nearest first.

        Ends `FARTHEST` or more iterations away are omitted.
        """
        labels = self._anywhere if loop is None else self._counted(loop)
        inside = () if loop is None else self._inside_of[loop]
        found: dict[int, int] = {}
        for node in nodes:
            for distance, end in (labels if node in inside else self._anywhere).get(node, ()):
                found[end] = min(distance, found.get(end, distance))
        return sorted(((distance, end) for end, distance in found.items()), key=self._rank)

    def _rank(self, label: tuple[int, ...]) -> tuple[int, int]:
        return label[0], self._flow.position[label[1]]

    def _counted(self, loop: int) -> Labels:
        """Labels of the nodes that data loaded in a loop reaches inside it."""
        if loop in self._by_loop:
            return self._by_loop[loop]
        inside = self._inside_of[loop] = self._inside(loop)
        seeds = self._seeds_at(inside)
        for node in inside:  # data that leaves the loop does not cross its back edge again
            left = {after for after, _ in self._ahead(node) if after not in inside}
            seeds += [(0, end, node) for after in left for _, end in self._anywhere.get(after, ())]
        labels: Labels = {}
        self._by_loop[loop] = labels
        while seeds:
            seeds = self._spread(labels, seeds, inside, loop)
        return labels

    def _inside(self, loop: int) -> set[int]:
        pending = list(self._loaded[loop])
        inside = set(pending)
        while pending:
            for node, _ in self._ahead(pending.pop()):
                if node not in inside and self._lives_in(node, loop):
                    inside.add(node)
                    pending.append(node)
        return inside

    def _lives_in(self, node: int, loop: int) -> bool:
        home = self._graph.home[node]
        return home == EVERYWHERE or self._flow.encloses(loop, home)

    def _seeds_at(self, nodes: Iterable[int]) -> Seeds:
        return [(0, end, node) for node in nodes for end in self._ends.get(node, ())]

    def _spread(self, labels: Labels, seeds: Seeds, inside: set[int] | None, loop: int | None) -> Seeds:
        """Label the predecessors of some nodes. Returns the seeds that cross the loop's back edge."""
        crossing: Seeds = []
        for distance, end, seed in sorted(seeds, key=self._rank):
            pending = [seed]
            while pending:
                node = pending.pop()
                known = labels.setdefault(node, [])
                if len(known) >= NEAREST or any(other == end for _, other in known):
                    continue
                known.append((distance, end))
                for before, kind in self._behind(node):
                    if inside is not None and before not in inside:
                        continue
                    if kind != loop:
                        pending.append(before)
                    elif distance + 1 < FARTHEST:
                        crossing.append((distance + 1, end, before))
        return crossing

    def _behind(self, node: int) -> Iterator[tuple[int, int]]:
        if node in self._cut:
            return
        for before in self._graph.before[node]:
            if not (self._is_bound and before[1] == BOUND):
                yield before
        compute = self._graph.made_by.get(node)
        if compute is not None and compute not in self._stops:
            for taken in self._graph.taken[compute]:
                yield taken, PLAIN

    def _ahead(self, node: int) -> Iterator[tuple[int, int]]:
        for after in self._graph.after[node]:
            if not (self._is_bound and after[1] == BOUND) and after[0] not in self._cut:
                yield after
        for compute in self._graph.takers.get(node, ()):
            if compute not in self._stops:
                for given in self._graph.given[compute]:
                    yield given, PLAIN
