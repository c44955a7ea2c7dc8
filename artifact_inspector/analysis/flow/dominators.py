"""Dominators of the blocks of a graph.

Source: Lengauer, Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979), with the simple link and
eval: m log n on any graph, so deep nests and long branch chains are not slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from artifact_inspector.analysis.flow.traversal import group_by_key


class Dominators:
    """Dominance among the blocks reachable from block 0."""

    def __init__(self, successors: Sequence[Sequence[int]]) -> None:
        children = group_by_key((upper, block) for block, upper in immediate_dominators(successors).items())
        self._first: dict[int, int] = {}
        """Block → preorder number in a walk of the dominator tree."""
        self._last: dict[int, int] = {}
        """Block → the highest preorder number among the blocks that it dominates."""
        pending = [(0, False)]
        while pending:
            block, is_done = pending.pop()
            if is_done:
                self._last[block] = len(self._first) - 1
            else:
                self._first[block] = len(self._first)
                pending.append((block, True))
                pending += [(child, False) for child in children.get(block, ())]

    def __contains__(self, block: int) -> bool:
        """True for a reachable block."""
        return block in self._first

    def dominates(self, upper: int, lower: int) -> bool:
        """True if every path from the entry to `lower` passes through `upper`.

        Example:
            >>> Dominators([(1, 2), (3,), (3,), ()]).dominates(0, 3)
            True
        """
        first = self._first
        return upper in first and lower in first and first[upper] <= first[lower] <= self._last[upper]


def strict_dominators(successors: Sequence[Sequence[int]], block: int) -> Iterator[int]:
    """The blocks on every path from block 0 to another block, the nearest first.

    Example:
        >>> list(strict_dominators([(1, 2), (3,), (3,), (4,), ()], 4))
        [3, 0]
    """
    above = immediate_dominators(successors)
    while block in above:
        block = above[block]
        yield block


def immediate_dominators(successors: Sequence[Sequence[int]]) -> dict[int, int]:
    """Block → its immediate dominator, for reachable blocks except the entry. Works on preorder numbers."""
    order, parent, predecessors = _preorder(successors)
    count = len(order)
    semi, label = list(range(count)), list(range(count))
    ancestor, above = [-1] * count, [0] * count
    buckets: list[list[int]] = [[] for _ in range(count)]
    for number in range(count - 1, 0, -1):
        for source in predecessors[number]:
            semi[number] = min(semi[number], semi[_least_ancestor(source, ancestor, label, semi)])
        buckets[semi[number]].append(number)
        upper = ancestor[number] = parent[number]
        for lower in buckets[upper]:
            least = _least_ancestor(lower, ancestor, label, semi)
            above[lower] = least if semi[least] < semi[lower] else upper
        buckets[upper] = []
    for number in range(1, count):
        if above[number] != semi[number]:
            above[number] = above[above[number]]
    return {order[number]: order[above[number]] for number in range(1, count)}


def _preorder(successors: Sequence[Sequence[int]]) -> tuple[list[int], list[int], list[list[int]]]:
    """Blocks in depth-first preorder, with the parent and the predecessors of each as preorder numbers."""
    place_of = {0: 0}
    order, parent = [0], [0]
    pending = [(0, iter(successors[0]))]
    while pending:
        number, targets = pending[-1]
        for target in targets:
            if target not in place_of:
                place_of[target] = len(order)
                parent.append(number)
                pending.append((len(order), iter(successors[target])))
                order.append(target)
                break
        else:
            pending.pop()
    predecessors: list[list[int]] = [[] for _ in order]
    for number, block in enumerate(order):
        for target in successors[block]:
            predecessors[place_of[target]].append(number)
    return order, parent, predecessors


def _least_ancestor(number: int, ancestor: list[int], label: list[int], semi: list[int]) -> int:
    """The node with the least semidominator on the path to the root of its tree. Compresses the path."""
    path = []
    while ancestor[number] >= 0 and ancestor[ancestor[number]] >= 0:
        path.append(number)
        number = ancestor[number]
    root = ancestor[number]
    best = label[number]
    for lower in reversed(path):
        if semi[best] < semi[label[lower]]:
            label[lower] = best
        best = label[lower]
        ancestor[lower] = root
    return best
