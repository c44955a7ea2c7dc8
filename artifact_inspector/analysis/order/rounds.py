"""The rounds of a kernel, read from its tensor-level IR: which loads belong together.

docs/verdicts.md defines load statement, anchor, round and direct compute. SSA gives them exactly at the
first stage. Later stages inherit them and only have to locate their loads and computes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from artifact_inspector.analysis.flow.cfg import ControlFlow
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.datagraph import BOUND, DataGraph
from artifact_inspector.analysis.order.integers import IntegerWork, is_integer_reduction
from artifact_inspector.analysis.order.nearest import Nearest
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind, Pointing, Trait


@dataclass(frozen=True, slots=True)
class Statement:
    """One load operation of the program as written."""

    index: int
    """Its instruction."""
    loop: int | None
    """Innermost loop that contains it."""
    distance: int
    """Source iterations between the load and the first anchor its data reaches."""
    shared: bool
    """Its data also reaches later anchors."""
    is_index: bool
    """Its data is only used in addresses of other loads."""
    base: str | None
    """The argument that its address is computed from."""


@dataclass(frozen=True, slots=True)
class Round:
    """Load statements with the same first anchor, and the computes that are the first to use their data."""

    loop: int | None
    anchor: int
    statements: tuple[Statement, ...]
    computes: tuple[int, ...]
    """Direct computes, in program order."""


@dataclass(frozen=True, slots=True)
class RoundsOf:
    """The rounds of a function, and the loads that belong to none."""

    rounds: tuple[Round, ...]
    """Of all regions, in program order of their first direct computes (ties: of their anchors)."""
    other: tuple[Statement, ...]
    _reach: _Reach

    def consumers(self, compute: int, anchor: int) -> list[int]:
        """The next computes that use a compute's result, on its path to an anchor."""
        return self._reach.consumers(compute, anchor)


def find_rounds(code: Code) -> RoundsOf | None:
    """The rounds of every region of a function; None where it is not in tensor-level SSA form."""
    return None if code.language.access is None else _Search(code).run()


class _Reach:
    """What data reaches in a function. It is cached with the `Code`, so it holds no reference to it."""

    def __init__(
        self,
        graph: DataGraph,
        flow: ControlFlow,
        anchors: Collection[int],
        sinks: Collection[int],
        loaded: Mapping[int, Collection[int]],
    ) -> None:
        self._graph, self._flow, self._loaded = graph, flow, loaded
        self._anchors, self._sinks = anchors, sinks
        self._nearest: dict[tuple[bool, bool], Nearest] = {}

    def ends(self, *, sinks: bool, is_bound: bool) -> Nearest:
        """The nearest anchors, or stores and atomics."""
        key = (sinks, is_bound)
        if key not in self._nearest:
            ends = {end: self._graph.taken[end] for end in (self._sinks if sinks else self._anchors)}
            self._nearest[key] = Nearest(
                self._graph, self._flow, ends, self._anchors, self._loaded, is_bound=is_bound
            )
        return self._nearest[key]

    def takers(self, nodes: list[int], *, is_bound: bool = False) -> set[int]:
        """The computes that use the data of some nodes unchanged."""
        pending, seen = list(nodes), set(nodes)
        taking: set[int] = set()
        while pending:
            node = pending.pop()
            taking.update(self._graph.takers.get(node, ()))
            for after, kind in self._graph.after[node]:
                if after not in seen and not (is_bound and kind == BOUND):
                    seen.add(after)
                    pending.append(after)
        return taking

    def serves(self, compute: int, anchor: int, loop: int | None) -> bool:
        """True if a compute is the anchor, or its result reaches that end before any other anchor."""
        if compute in self._anchors:
            return compute == anchor
        ends = self.ends(sinks=anchor not in self._anchors, is_bound=False)
        reached = ends.of(self._graph.given[compute], loop if loop in self._loaded else None)
        return any(end == anchor for _, end in reached)

    def consumers(self, compute: int, anchor: int) -> list[int]:
        """The next computes that use a compute's result, on its path to an anchor."""
        if compute not in self._graph.given:
            return [anchor] if anchor != compute else []  # integer work: the value that it accumulates into
        taking = self.takers(self._graph.given[compute])
        loop = self._flow.loop_at(compute)
        return sorted(found for found in taking if self.serves(found, anchor, loop))


class _Search:
    """The loads of a function by the anchors that their data reaches first."""

    def __init__(self, code: Code) -> None:
        self._code, self._flow = code, code.flow
        self._graph = DataGraph(code)
        instructions = code.function.instructions
        self._loads = [index for index, found in enumerate(instructions) if found.kind in LOADS]
        self._carried = _carried(code)
        self._base = _pointer_bases(code)
        self._anchors = {
            index
            for index, found in enumerate(instructions)
            if found.kind in COMPUTES and self._is_anchor(index)
        }
        sinks = [index for index, found in enumerate(instructions) if found.kind in SINKS]
        self._loaded: dict[int, list[int]] = {}
        """Loop → the nodes that its own loads write."""
        for index in self._loads:
            loop = self._flow.loop_at(index)
            if loop is not None:
                self._loaded.setdefault(loop, []).extend(self._graph.given[index])
        self._reach = _Reach(self._graph, self._flow, self._anchors, sinks, self._loaded)
        self._chosen: dict[int, tuple[int, int]] = {}
        """Load → (iterations, the anchor or sink of its round)."""
        self._integers: IntegerWork | None = None
        self._of_integers: set[int] = set()
        """Loads of rounds of integer work."""

    def _is_anchor(self, index: int) -> bool:
        return (
            self._code.function.instructions[index].kind is EventKind.MATRIX
            or index in self._carried[EventKind.FLOAT]
            or self._code.has(index, Trait.COMBINATION)
        )

    def _is_scalar(self, load: int) -> bool:
        """True for a load of one element."""
        return self._code.language.pointing(self._code.function.instructions[load]) is Pointing.ONE

    def _reached(self, load: int, *, sinks: bool = False) -> list[tuple[int, int]]:
        ends = self._reach.ends(sinks=sinks, is_bound=self._is_scalar(load))
        return ends.of(self._graph.given[load], self._flow.loop_at(load))

    # -- rounds --------------------------------------------------------------------

    def run(self) -> RoundsOf:
        """The rounds."""
        shared = self._choose()
        self._choose_integers(shared)
        indices = self._choose_for_indices()
        grouped: dict[tuple[int | None, int], list[Statement]] = {}
        other: list[Statement] = []
        for load in self._loads:
            loop = self._flow.loop_at(load)
            if load not in self._chosen:
                other.append(Statement(load, loop, 0, False, False, self._base_of(load)))
                continue
            distance, anchor = self._chosen[load]
            statement = Statement(load, loop, distance, load in shared, load in indices, self._base_of(load))
            grouped.setdefault((loop, anchor), []).append(statement)
        for key, statements in list(grouped.items()):
            if all(statement.is_index for statement in statements):
                # The loads that they address are in another region, so they compute nothing here.
                other += grouped.pop(key)
        other.sort(key=lambda statement: statement.index)
        rounds = [
            Round(loop, anchor, tuple(statements), self._computes_of(anchor, loop, statements))
            for (loop, anchor), statements in grouped.items()
        ]
        rounds.sort(key=self._place)
        return RoundsOf(tuple(rounds), tuple(other), self._reach)

    def _place(self, found: Round) -> tuple[int, int, int]:
        """Sort key of a round: its first direct compute, then its anchor."""
        position = self._flow.position
        first = position[found.computes[0] if found.computes else found.anchor]
        return first, position[found.anchor], position[found.statements[0].index]

    def _choose(self) -> set[int]:
        """Assign each load to the first anchor that its data reaches.

        Returns the loads that reach several.
        """
        shared: set[int] = set()
        without: list[int] = []
        for load in self._loads:
            reached = self._reached(load)
            if reached:
                self._chosen[load] = reached[0]
            else:
                without.append(load)
            if len(reached) > 1:
                shared.add(load)
        if without:
            computed = {is_bound: self._computed(is_bound=is_bound) for is_bound in (False, True)}
            for load in without:
                if not computed[self._is_scalar(load)].isdisjoint(self._graph.given[load]):
                    reached = self._reached(load, sinks=True)
                    if reached:
                        self._chosen[load] = reached[0]
        return shared

    def _choose_integers(self, shared: set[int]) -> None:
        """Assign loads that no float or matrix operation uses to the first integer anchor of their data."""
        reductions = {end for _, end in self._chosen.values() if is_integer_reduction(self._code, end)}
        candidates = [
            load for load in self._loads if load not in self._chosen or self._chosen[load][1] in reductions
        ]
        if not candidates:
            return
        self._integers = work = IntegerWork(
            self._code,
            self._graph,
            self._reach.ends(sinks=True, is_bound=True),
            self._carried[EventKind.INTEGER],
            self._anchors,
            self._loaded,
        )
        for load in candidates:
            reached = [] if work.is_of_floats(load) else work.reached(load)
            if reached and work.computes_of(reached[0][1], (load,)):
                self._chosen[load] = reached[0]
                self._of_integers.add(load)
                shared.discard(load)
                if len(reached) > 1:
                    shared.add(load)

    def _computed(self, *, is_bound: bool) -> set[int]:
        """The nodes whose data a compute uses unchanged."""
        pending = list(self._graph.takers)
        found = set(pending)
        while pending:
            for before, kind in self._graph.before[pending.pop()]:
                if before not in found and not (is_bound and kind == BOUND):
                    found.add(before)
                    pending.append(before)
        return found

    def _choose_for_indices(self) -> set[int]:
        """Assign loads that only feed addresses to the round of the first load that they address."""
        filled: dict[int, list[int]] = {}
        for load in self._loads:
            if load not in self._chosen:
                for node in self._graph.given[load]:
                    filled.setdefault(node, []).append(load)
        indices: set[int] = set()
        if not filled:
            return indices
        seen: set[tuple[int, bool]] = set()
        for target in sorted(self._chosen, key=lambda load: self._flow.position[self._chosen[load][1]]):
            chosen = self._chosen[target]
            pending = [(node, False) for node in self._graph.taken[target]]
            while pending:
                node, bound = pending.pop()
                if (node, bound) in seen:
                    continue
                seen.add((node, bound))
                for load in filled.get(node, ()):
                    if load not in self._chosen and not (bound and self._is_scalar(load)):
                        self._chosen[load] = chosen
                        indices.add(load)
                        pending += [(address, False) for address in self._graph.taken[load]]
                pending += [(n, bound or kind == BOUND) for n, kind in self._graph.before[node]]
                compute = self._graph.made_by.get(node)
                if compute is not None and compute not in self._anchors:
                    pending += [(n, bound) for n in self._graph.taken[compute]]
        return indices

    def _computes_of(self, anchor: int, loop: int | None, statements: list[Statement]) -> tuple[int, ...]:
        """The computes that are the first to use the data of a round's loads, on the path to its anchor."""
        counted = [found.index for found in statements if found.index in self._of_integers]
        if counted and self._integers is not None:
            return tuple(self._integers.computes_of(anchor, counted))
        taking: set[int] = set()
        for is_bound in (False, True):
            nodes = [
                node
                for found in statements
                if self._is_scalar(found.index) is is_bound
                for node in self._graph.given[found.index]
            ]
            taking.update(self._reach.takers(nodes, is_bound=is_bound))
        direct_computes = [compute for compute in taking if self._reach.serves(compute, anchor, loop)]
        return tuple(sorted(direct_computes, key=self._flow.position.__getitem__))

    def _base_of(self, load: int) -> str | None:
        access = self._code.language.access
        assert access is not None
        reads = self._code.values.reads[load]
        address = [
            reads[name] for name in access(self._code.function.instructions[load]).address if name in reads
        ]
        return next((self._base[value] for value in address if value in self._base), None)


def bits_of(mask: int) -> list[int]:
    """Indices of the bits that are set, lowest first."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


def _carried(code: Code) -> dict[EventKind, set[int]]:
    """Float and integer operations whose result a loop carries to its next iteration, by kind.

    Moves may be in between.
    """
    function, values = code.function, code.values
    carried = {handed.source for flows in values.flows for handed in flows if handed.back}
    found: dict[EventKind, set[int]] = {EventKind.FLOAT: set(), EventKind.INTEGER: set()}
    for index in range(len(function.instructions) - 1, -1, -1):
        kind = function.instructions[index].kind
        for handed in values.flows[index]:
            if not handed.back and handed.target in carried:
                carried.add(handed.source)  # out of an `scf.if` on the path to the back edge
        if not carried.isdisjoint(values.results[index]):
            if kind in found:
                found[kind].add(index)
            elif kind in (EventKind.MOVE, EventKind.LAYOUT_CONVERSION):
                carried.update(values.reads[index].values())
    return found


def _pointer_bases(code: Code) -> dict[int, str]:
    """The argument that each pointer or descriptor value is derived from."""
    function, values = code.function, code.values
    base = dict(enumerate(function.arguments))
    for index, instruction in enumerate(function.instructions):
        if instruction.kind not in LOADS and values.results[index]:
            origin = next((base[v] for v in values.reads[index].values() if v in base), None)
            if origin is not None and code.language.pointing(instruction) is not Pointing.NONE:
                base.update(dict.fromkeys(values.results[index], origin))
        for handed in values.flows[index]:
            if handed.source in base:
                base.setdefault(handed.target, base[handed.source])
    return base
