"""The rounds of a kernel, read from its tensor-level IR: which loads belong together.

docs/verdicts.md defines load statement, anchor, round and direct compute. SSA gives them exactly at the first stage.
Later stages inherit them and only have to locate their loads and computes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from artifact_inspector.analysis.flow.control_flow import ControlFlow
from artifact_inspector.analysis.flow.data_graph import CONDITION_EDGE, DataGraph
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.traversal import group_by_key, reachable
from artifact_inspector.analysis.order.integer_computes import IntegerComputes, is_integer_reduction
from artifact_inspector.analysis.order.nearest_ends import NearestEnds
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind, PointerUse, Trait


@dataclass(frozen=True, slots=True)
class ProgramLoad:
    """One load operation of the program as written."""

    index: int
    """Its instruction."""
    loop: int | None
    """Innermost loop that contains it."""
    distance: int
    """Source iterations between the load and the first anchor its data reaches."""
    is_shared: bool
    """Its data also reaches later anchors."""
    is_index: bool
    """Its data is only used in addresses of other loads."""
    base: str | None
    """The argument that its address is computed from."""


class ProgramRound(NamedTuple):
    """Load statements with the same first anchor, and the computes that are the first to use their data."""

    loop: int | None
    anchor: int
    statements: tuple[ProgramLoad, ...]
    computes: tuple[int, ...]
    """Direct computes, in program order."""


@dataclass(frozen=True, slots=True)
class StageRounds:
    """The rounds of a function, and the loads that belong to none."""

    rounds: tuple[ProgramRound, ...]
    """Of all regions, in program order of their first direct computes (ties: of their anchors)."""
    unassigned_loads: tuple[ProgramLoad, ...]
    _reach: _DataReach

    def consumers(self, compute: int, anchor: int) -> list[int]:
        """The next computes that use a compute's result, on its path to an anchor."""
        return self._reach.consumers(compute, anchor)


def find_rounds(code: FunctionCode) -> StageRounds | None:
    """The rounds of every region of a function; None where it is not in tensor-level SSA form."""
    return None if code.language.access_operands is None else _RoundSearch(code).run()


class _DataReach:
    """What data reaches in a function. It is cached with the `Code`, so it holds no reference to it."""

    def __init__(
        self, graph: DataGraph, flow: ControlFlow, anchors: set[int], sinks: list[int], loaded: dict[int, list[int]]
    ) -> None:
        self._graph, self._flow, self._loaded = graph, flow, loaded
        self._anchors, self._sinks = anchors, sinks
        self._nearest: dict[tuple[bool, bool], NearestEnds] = {}

    def ends(self, *, sinks: bool, is_bound: bool) -> NearestEnds:
        """The nearest anchors, or stores and atomics."""
        key = (sinks, is_bound)
        if key not in self._nearest:
            ends = {end: self._graph.operands[end] for end in (self._sinks if sinks else self._anchors)}
            self._nearest[key] = NearestEnds(
                self._graph, self._flow, ends, self._anchors, self._loaded, is_bound=is_bound
            )
        return self._nearest[key]

    def users(self, nodes: list[int], *, is_bound: bool = False) -> set[int]:
        """The computes that use the data of some nodes unchanged."""
        visited = reachable(nodes, lambda node: _unselected(self._graph.successors[node], is_bound=is_bound))
        return {user for node in visited for user in self._graph.users.get(node, ())}

    def leads_to(self, compute: int, anchor: int, loop: int | None) -> bool:
        """True if a compute is the anchor, or its result reaches that end before any other anchor."""
        if compute in self._anchors:
            return compute == anchor
        ends = self.ends(sinks=anchor not in self._anchors, is_bound=False)
        reached = ends.reached_from(self._graph.results[compute], loop if loop in self._loaded else None)
        return any(end == anchor for _, end in reached)

    def consumers(self, compute: int, anchor: int) -> list[int]:
        """The next computes that use a compute's result, on its path to an anchor."""
        if compute not in self._graph.results:
            return [anchor] if anchor != compute else []  # integer work: the value that it accumulates into
        loop = self._flow.loop_at(compute)
        return sorted(u for u in self.users(self._graph.results[compute]) if self.leads_to(u, anchor, loop))


def _unselected(edges: Iterable[tuple[int, int]], *, is_bound: bool) -> Iterable[int]:
    """The nodes at the other ends of edges. If `is_bound`, edges from a condition are left out."""
    return (node for node, kind in edges if not (is_bound and kind == CONDITION_EDGE))


class _RoundSearch:
    """The loads of a function by the anchors that their data reaches first."""

    def __init__(self, code: FunctionCode) -> None:
        self._code, self._flow = code, code.flow
        self._graph = DataGraph(code)
        kinds = [instruction.kind for instruction in code.instructions]
        self._loads = [index for index, kind in enumerate(kinds) if kind in LOADS]
        self._carried = _find_carried_operations(code)
        self._base_of_value = _pointer_bases(code)
        self._anchors = {
            index
            for index, kind in enumerate(kinds)
            if kind is EventKind.MATRIX
            or index in self._carried[EventKind.FLOAT]
            or (kind in COMPUTES and code.has_trait(index, Trait.COMBINATION))
        }
        sinks = [index for index, kind in enumerate(kinds) if kind in SINKS]
        self._loaded: dict[int, list[int]] = {}
        """Loop → the nodes that its own loads write."""
        for index in self._loads:
            loop = self._flow.loop_at(index)
            if loop is not None:
                self._loaded.setdefault(loop, []).extend(self._graph.results[index])
        self._reach = _DataReach(self._graph, self._flow, self._anchors, sinks, self._loaded)
        self._anchor_of_load: dict[int, tuple[int, int]] = {}
        """Load → (iterations, the anchor or sink of its round)."""
        self._integer_computes: IntegerComputes | None = None
        self._integer_loads: set[int] = set()
        """Loads of rounds of integer work."""

    def _is_scalar(self, load: int) -> bool:
        """True for a load of one element."""
        return self._code.language.pointer_use(self._code.instructions[load]) is PointerUse.ONE

    def _reached(self, load: int, *, sinks: bool = False) -> list[tuple[int, int]]:
        ends = self._reach.ends(sinks=sinks, is_bound=self._is_scalar(load))
        return ends.reached_from(self._graph.results[load], self._flow.loop_at(load))

    def run(self) -> StageRounds:
        shared = self._choose_anchors()
        self._choose_integer_anchors(shared)
        indices = self._choose_index_loads()
        grouped: dict[tuple[int | None, int], list[ProgramLoad]] = {}
        unassigned_loads: list[ProgramLoad] = []
        for load in self._loads:
            loop = self._flow.loop_at(load)
            if load not in self._anchor_of_load:
                unassigned_loads.append(ProgramLoad(load, loop, 0, False, False, self._base_of(load)))
                continue
            distance, anchor = self._anchor_of_load[load]
            statement = ProgramLoad(load, loop, distance, load in shared, load in indices, self._base_of(load))
            grouped.setdefault((loop, anchor), []).append(statement)
        for key, statements in list(grouped.items()):
            if all(statement.is_index for statement in statements):
                # The loads that they address are in another region, so they compute nothing here.
                unassigned_loads += grouped.pop(key)
        unassigned_loads.sort(key=lambda statement: statement.index)
        rounds = [
            ProgramRound(loop, anchor, tuple(statements), self._computes_of(anchor, loop, statements))
            for (loop, anchor), statements in grouped.items()
        ]
        position = self._flow.position
        # In the order of their first direct computes, then of their anchors.
        ends = {id(r): ((r.computes or (r.anchor,))[0], r.anchor, r.statements[0].index) for r in rounds}
        rounds.sort(key=lambda r: [position[index] for index in ends[id(r)]])
        return StageRounds(tuple(rounds), tuple(unassigned_loads), self._reach)

    def _choose_anchors(self) -> set[int]:
        """Assign each load to the first anchor that its data reaches. Returns the loads that reach several."""
        shared: set[int] = set()
        without: list[int] = []
        for load in self._loads:
            reached = self._reached(load)
            if len(reached) == 1:
                self._anchor_of_load[load] = reached[0]
            elif reached:  # of several loops that read one buffer, its own comes first
                self._anchor_of_load[load] = min(reached, key=lambda end: (end[0], not self._is_next(load, end[1])))
            else:
                without.append(load)
            if len(reached) > 1:
                shared.add(load)
        computed = {b: self._nodes_feeding_computes(is_bound=b) for b in (False, True)} if without else {}
        for load in without:
            if not computed[self._is_scalar(load)].isdisjoint(self._graph.results[load]):
                reached = self._reached(load, sinks=True)
                if reached:
                    self._anchor_of_load[load] = reached[0]
        self._join_steps(without)
        return shared

    def _join_steps(self, loads: list[int]) -> None:
        """Move loads that end in one store to the rounds whose results they scale, if these are several.

        Steps that the source unrolls sum up what they scale, and store it once.
        """
        results, loop_at = self._graph.results, self._flow.loop_at
        anchors = {anchor for _, anchor in self._anchor_of_load.values()} & self._anchors
        users = {anchor: self._reach.users(results[anchor]) for anchor in anchors}
        steps: dict[int, dict[int, int]] = {}
        for load in self._anchor_of_load.keys() & loads:
            own = self._reach.users(results[load])
            scaled = [x for x, after in users.items() if loop_at(x) == loop_at(load) and not after.isdisjoint(own)]
            if len(scaled) == 1:
                steps.setdefault(self._anchor_of_load[load][1], {})[load] = scaled[0]
        for scaled_by in steps.values():
            if len(set(scaled_by.values())) > 1:
                self._anchor_of_load |= {load: (0, anchor) for load, anchor in scaled_by.items()}

    def _choose_integer_anchors(self, shared: set[int]) -> None:
        """Assign loads that no float or matrix operation uses to the first integer anchor of their data."""
        reductions = {end for _, end in self._anchor_of_load.values() if is_integer_reduction(self._code, end)}
        anchors = self._anchor_of_load
        candidates = [load for load in self._loads if load not in anchors or anchors[load][1] in reductions]
        if not candidates:
            return
        self._integer_computes = work = IntegerComputes(
            self._code,
            self._graph,
            self._reach.ends(sinks=True, is_bound=True),
            self._carried[EventKind.INTEGER],
            self._anchors,
            self._loaded,
        )
        for load in candidates:
            reached = [] if work.feeds_floats(load) else work.reached_anchors(load)
            if reached and work.computes_of(reached[0][1], (load,)):
                self._anchor_of_load[load] = reached[0]
                self._integer_loads.add(load)
                shared.discard(load)
                if len(reached) > 1:
                    shared.add(load)

    def _is_next(self, load: int, anchor: int) -> bool:
        """True if an anchor is after a load in the load's own loop."""
        loop, position = self._flow.loop_at(load), self._flow.position
        blocks = frozenset() if loop is None else self._flow.loops[loop].blocks
        return self._flow.block_of[anchor] in blocks and position[anchor] > position[load]

    def _nodes_feeding_computes(self, *, is_bound: bool) -> set[int]:
        """The nodes whose data a compute uses unchanged."""
        edges = self._graph.predecessors
        return set(reachable(self._graph.users, lambda node: _unselected(edges[node], is_bound=is_bound)))

    def _choose_index_loads(self) -> set[int]:
        """Assign loads that only feed addresses to the round of the first load that they address."""
        filled = group_by_key(
            (node, load)
            for load in self._loads
            if load not in self._anchor_of_load
            for node in self._graph.results[load]
        )
        indices: set[int] = set()
        if not filled:
            return indices
        visited: set[tuple[int, bool]] = set()
        for target in sorted(self._anchor_of_load, key=lambda load: self._flow.position[self._anchor_of_load[load][1]]):
            anchor_entry = self._anchor_of_load[target]
            pending = [(node, False) for node in self._graph.operands[target]]
            while pending:
                node, bound = pending.pop()
                if (node, bound) in visited:
                    continue
                visited.add((node, bound))
                for load in filled.get(node, ()):
                    if load not in self._anchor_of_load and not (bound and self._is_scalar(load)):
                        self._anchor_of_load[load] = anchor_entry
                        indices.add(load)
                        pending += [(address, False) for address in self._graph.operands[load]]
                pending += [(n, bound or kind == CONDITION_EDGE) for n, kind in self._graph.predecessors[node]]
                compute = self._graph.producer.get(node)
                if compute is not None and compute not in self._anchors:
                    pending += [(n, bound) for n in self._graph.operands[compute]]
        return indices

    def _computes_of(self, anchor: int, loop: int | None, statements: list[ProgramLoad]) -> tuple[int, ...]:
        """The computes that are the first to use the data of a round's loads, on the path to its anchor."""
        integer_loads = [statement.index for statement in statements if statement.index in self._integer_loads]
        if integer_loads and self._integer_computes is not None:
            return tuple(self._integer_computes.computes_of(anchor, integer_loads))
        users: set[int] = set()
        for load in (statement.index for statement in statements):
            users |= self._reach.users(self._graph.results[load], is_bound=self._is_scalar(load))
        direct_computes = [compute for compute in users if self._reach.leads_to(compute, anchor, loop)]
        return tuple(sorted(direct_computes, key=self._flow.position.__getitem__))

    def _base_of(self, load: int) -> str | None:
        access = self._code.language.access_operands
        assert access is not None
        reads = self._code.values.reads[load]
        address = [reads[name] for name in access(self._code.instructions[load]).address if name in reads]
        return next((self._base_of_value[value] for value in address if value in self._base_of_value), None)


def _find_carried_operations(code: FunctionCode) -> dict[EventKind, set[int]]:
    """Float and integer operations whose result a loop carries to its next iteration, moves aside, by kind."""
    values = code.values
    carried = {passed_value.source for flows in values.flows for passed_value in flows if passed_value.is_back_edge}
    operations_by_kind: dict[EventKind, set[int]] = {EventKind.FLOAT: set(), EventKind.INTEGER: set()}
    for index in range(len(code.instructions) - 1, -1, -1):
        kind = code.instructions[index].kind
        for passed_value in values.flows[index]:
            if not passed_value.is_back_edge and passed_value.target in carried:
                carried.add(passed_value.source)  # out of an `scf.if` on the path to the back edge
        if not carried.isdisjoint(values.results[index]):
            if kind in operations_by_kind:
                operations_by_kind[kind].add(index)
            elif kind in (EventKind.MOVE, EventKind.LAYOUT_CONVERSION):
                carried.update(values.reads[index].values())
    return operations_by_kind


def _pointer_bases(code: FunctionCode) -> dict[int, str]:
    """The argument that each pointer or descriptor value is derived from."""
    values = code.values
    base = dict(enumerate(code.function.arguments))
    for index, instruction in enumerate(code.instructions):
        if instruction.kind not in LOADS and values.results[index]:
            origin = next((base[v] for v in values.reads[index].values() if v in base), None)
            if origin is not None and code.language.pointer_use(instruction) is not PointerUse.NONE:
                base.update(dict.fromkeys(values.results[index], origin))
        for passed_value in values.flows[index]:
            if passed_value.source in base:
                base.setdefault(passed_value.target, base[passed_value.source])
    return base
