"""Rounds of integer work: loads whose data only integer operations use.

The computes are then compares whose result is stored, integers carried by a loop (a count, a sum, a
maximum), and integer reductions. All other integer operations count as moves, as everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.datagraph import BOUND, DataGraph
from artifact_inspector.analysis.order.nearest import Nearest
from artifact_inspector.model import COMPUTES, EventKind, Pointing, Trait


def body_of(code: Code, index: int) -> list[int]:
    """The instructions that combine two elements in a reduction or scan; empty for other operations."""
    body: list[int] = []
    if code.has(index, Trait.WITH_BODY):
        for inside in range(index + 1, len(code.function.instructions)):
            if code.function.instructions[inside].kind is not EventKind.OTHER:
                break
            if code.has(inside, Trait.END_OF_BODY):
                break
            body.append(inside)
    return body


def is_integer_reduction(code: Code, index: int) -> bool:
    """True for a reduction or scan that combines integers."""
    body = body_of(code, index)
    return bool(body) and not any(code.has(inside, Trait.ON_FLOATS) for inside in body)


class IntegerWork:
    """The integer computes of a function, for loads that no float or matrix operation uses.

    Args:
        sinks: stores and atomics, as ends of data.
        carried: integer operations whose result a loop carries to its next iteration.
        stops: computes that data does not pass through.
        loaded: loop → the nodes that its own loads write.
    """

    def __init__(
        self,
        code: Code,
        graph: DataGraph,
        sinks: Nearest,
        carried: Iterable[int],
        stops: Collection[int],
        loaded: dict[int, list[int]],
    ) -> None:
        self._code, self._graph, self._sinks, self._stops = code, graph, sinks, stops
        values, instructions = code.values, code.function.instructions
        self._carried = {
            index
            for index in carried
            if code.language.pointing(instructions[index]) is Pointing.NONE
            and sinks.of(values.results[index], None)
        }
        reductions = [
            index
            for index in code.find(COMPUTES)
            if instructions[index].kind is EventKind.FLOAT and is_integer_reduction(code, index)
        ]
        self._floats: dict[int | None, list[int]] = {}
        """Innermost and enclosing loops (None: the function) → the float and matrix operations in them."""
        for index in set(code.find(COMPUTES)).difference(reductions):
            around = code.flow.loop_at(index)
            while around is not None:
                self._floats.setdefault(around, []).append(index)
                around = code.flow.loops[around].parent
            self._floats.setdefault(None, []).append(index)
        self._made_by = {value: index for index in self._carried for value in values.results[index]}
        """Node → the integer compute that produces it."""
        taken = {index: list(values.reads[index].values()) for index in self._carried}
        taken.update((index, graph.taken[index]) for index in reductions)
        self._anchors = Nearest(
            graph, code.flow, taken, stops, loaded, is_bound=True, cut=frozenset(self._made_by)
        )
        for index in code.of_kind.get(EventKind.INTEGER, ()):
            if code.has(index, Trait.COMPARISON):
                self._made_by.update(dict.fromkeys(values.results[index], index))
        self._computed_on: dict[int | None, set[int]] = {}

    def is_of_floats(self, load: int) -> bool:
        """True if a float or matrix operation in the load's own loop uses its data."""
        loop = self._code.flow.loop_at(load)
        if loop not in self._computed_on:
            self._computed_on[loop] = self._reaching_floats(loop)
        return not self._computed_on[loop].isdisjoint(self._graph.given[load])

    def _reaching_floats(self, loop: int | None) -> set[int]:
        pending = [node for index in self._floats.get(loop, ()) for node in self._graph.taken[index]]
        found = set(pending)
        while pending:
            node = pending.pop()
            before = [n for n, _ in self._graph.before[node]]
            compute = self._graph.made_by.get(node)
            if compute is not None and compute not in self._stops:
                before += self._graph.taken[compute]
            for other in before:
                if other not in found:
                    found.add(other)
                    pending.append(other)
        return found

    def reached(self, load: int) -> list[tuple[int, int]]:
        """(iterations, anchor) of the integer anchors that a load reaches, or of the stores of compares."""
        loop, nodes = self._code.flow.loop_at(load), self._graph.given[load]
        found = self._anchors.of(nodes, loop)
        return found or (self._sinks.of(nodes, loop) if self._takers(nodes) else [])

    def computes_of(self, anchor: int, loads: Iterable[int]) -> list[int]:
        """The integer computes that are the first to use the data of loads, on the path to their anchor."""
        taking = self._takers(node for load in loads for node in self._graph.given[load])
        return sorted(
            (index for index in taking if self._serves(index, anchor)),
            key=self._code.flow.position.__getitem__,
        )

    def _serves(self, compute: int, anchor: int) -> bool:
        if compute == anchor:
            return True
        given = self._code.values.results[compute]
        ends = self._anchors.of(given, None) or self._sinks.of(given, None)
        return any(end == anchor for _, end in ends)

    def _takers(self, nodes: Iterable[int]) -> set[int]:
        """The integer computes that use the data of some nodes unchanged."""
        pending = list(nodes)
        seen, taking = set(pending), set[int]()
        while pending:
            node = pending.pop()
            taking.update(index for index in self._graph.takers.get(node, ()) if index in self._stops)
            for after, kind in self._graph.after[node]:
                if kind == BOUND or after in seen:
                    continue
                seen.add(after)
                if after in self._made_by:
                    taking.add(self._made_by[after])
                else:
                    pending.append(after)
        return taking
