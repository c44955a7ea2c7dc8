"""Locates the rounds of the program in a region of a stage.

Source locations are compared first: a load or compute is found by its inline chain. If locations are missing or shared,
dataflow decides, and otherwise equal runs in program order. The method is noted, because a verdict that depends on it
must report it.
"""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain, without_column
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.compute_locator import ComputeLocator
from artifact_inspector.analysis.order.dataflow_locator import locate_by_dataflow, locate_by_runs, locate_by_structure
from artifact_inspector.analysis.order.placement import (
    LocatedRound,
    LocatedStatement,
    Placement,
    PreviousStage,
    sources_of,
    too_many_rounds,
)
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, equal_runs
from artifact_inspector.analysis.order.region_facts import RegionNote
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, Basis, EventKind
from artifact_inspector.model.limits import ROUNDS

_SCALAR_LOADS = frozenset({EventKind.SCALAR_LOAD})


def locate_rounds(code: FunctionCode, region: Region, previous: PreviousStage | None) -> Placement:
    """The rounds of a region's reference at this stage.

    Args:
        previous: results of the previous stage for this region.
    """
    reference = region.reference
    if region.residue is not None:
        return Placement([], [], Basis.SOURCE if code.max_chain_length else Basis.DATAFLOW)
    if reference is None:
        return locate_by_runs(code, region)
    if region.is_source:
        rounds = [
            LocatedRound(
                [LocatedStatement(s, [s.index], list(s.prologue)) for s in reference_round.statements],
                [c.index for c in reference_round.computes],
                identified_computes=frozenset(c.index for c in reference_round.computes),
            )
            for reference_round in reference.rounds
        ]
        return Placement(rounds, sources_of(reference.unassigned_loads), Basis.SOURCE)
    if len(reference.rounds) > ROUNDS.value:
        return too_many_rounds()
    locations = {s.chain for s in (*reference.statements, *reference.unassigned_loads)} - {None}
    if (not locations and (reference.rounds or reference.unassigned_loads)) or not code.max_chain_length:
        return locate_by_structure(code, region, reference) or locate_by_dataflow(code, region, reference, previous)
    return _RoundLocator(code, region, reference, previous).run()


class _RoundLocator:
    """Finds the statements and computes of one region by source location."""

    def __init__(
        self, code: FunctionCode, region: Region, reference: ReferenceRegion, previous: PreviousStage | None
    ) -> None:
        self.code, self.region, self.reference, self.previous = code, region, reference, previous
        self.position = code.flow.position
        self.notes: list[RegionNote] = []
        self.orphans: list[int] = []
        """Loads that have another statement's line only because they are in the same clause."""

    def run(self) -> Placement:
        located = [LocatedRound([LocatedStatement(s) for s in r.statements]) for r in self.reference.rounds]
        self._find_loads(located)
        self._find_missing([statement for located_round in located for statement in located_round.statements])
        computes = ComputeLocator(self.code, self.region, self.reference, self.previous)
        computes.run(located)
        notes = [*self.notes, *computes.notes]
        return Placement(located, sources_of(self.reference.unassigned_loads), Basis.SOURCE, notes)

    def _expected_loads(self, statements: list[LocatedStatement]) -> int:
        """Number of loads that some statements had at the previous stage."""
        return 0 if self.previous is None else sum(self.previous.loads.get(s.program.index, 0) for s in statements)

    def _find_loads(self, located: list[LocatedRound]) -> None:
        visible = self.code.visible_chain
        statements_at = group_by_key(
            (chain, statement)
            for located_round in located
            for statement in located_round.statements
            if (chain := visible(statement.program.chain)) is not None
        )
        for unassigned in self.reference.unassigned_loads:  # they take their share of a common location and are dropped
            location = visible(unassigned.chain)
            if location in statements_at:
                statements_at[location].append(LocatedStatement(unassigned))
        for chain, statements in statements_at.items():
            statements.sort(key=lambda statement: statement.program.index)
            loads = self.code.loads_at.get(chain) or self._scalar_loads(chain, statements)
            for matching_statements, statement_loads in self._match_kinds(statements, loads):
                self._assign_loads(matching_statements, statement_loads)

    def _match_kinds(
        self, statements: list[LocatedStatement], loads: list[int]
    ) -> list[tuple[list[LocatedStatement], list[int]]]:
        """Statements at one location, paired with the loads there whose kind matches the previous stage."""
        if self.previous is None or len(statements) == 1:
            return [(statements, loads)]
        previous_kinds = self.previous.kinds
        by_kinds = group_by_key((previous_kinds.get(s.program.index, frozenset()), s) for s in statements)
        loads_by_kinds = group_by_key((frozenset((self.code.instructions[index].kind,)), index) for index in loads)
        if by_kinds.keys() != loads_by_kinds.keys():
            return [(statements, loads)]
        return [(matching_statements, loads_by_kinds[kinds]) for kinds, matching_statements in by_kinds.items()]

    def _assign_loads(self, statements: list[LocatedStatement], loads: list[int]) -> None:
        """Distribute the loads at one location over its statements, in equal runs."""
        inside = [i for i in loads if self._in_scope(i)]
        loads_before_loop = self.region.instructions_before_loop(self.code, loads)
        if self.previous is not None and len(statements) == 1:
            inside = self._drop_clause_followers(inside, statements[0])
        for statement, share in zip(statements, equal_runs(inside, len(statements)), strict=True):
            statement.loads = share
            statement.is_uncertain = len(inside) % len(statements) > 0
        for statement, share in zip(statements, equal_runs(loads_before_loop, len(statements)), strict=True):
            statement.loads_before_loop = share

    def _in_scope(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.region.scope

    def _scalar_loads(self, chain: Chain, statements: list[LocatedStatement]) -> list[int]:
        """Scalar loads that a uniform load may have become. A wide one may replace several."""
        if self.previous is None or chain not in self.code.scalar_loads_at:
            return []
        data = self.code.compute_once(find_scalar_data)
        scalar_loads = [index for index in self.code.scalar_loads_at[chain] if index in data]
        inside = [index for index in scalar_loads if self._in_scope(index)]
        return scalar_loads if len(inside) <= self._expected_loads(statements) else []

    def _find_missing(self, statements: list[LocatedStatement]) -> None:
        missing = [s for s in statements if not s.loads and (not s.loads_before_loop or self._expected_loads([s]) > 0)]
        if not missing:
            return
        self._assign_unplaced(missing, statements)
        by_order = sorted(statements, key=lambda statement: statement.program.index)
        for number, statement in enumerate(by_order):
            if statement.loads or statement.loads_before_loop:
                continue
            # Only loads from one pointer can be merged into a wider load.
            base = statement.program.base
            neighbours = [*by_order[max(0, number - 1) : number], *by_order[number + 1 : number + 2]]
            neighbour = next((n for n in neighbours if n.loads and base is not None and base == n.program.base), None)
            if neighbour is not None:
                statement.loads, statement.is_merged = list(neighbour.loads), True
                own_label, other_label = statement.program.label, neighbour.program.label
                message = f"the load of {own_label} has no line of its own: it is merged with the load of {other_label}"
                self.notes.append(RegionNote(message))

    def _drop_clause_followers(self, loads: list[int], owner: LocatedStatement) -> list[int]:
        """A statement's loads, without those that only follow one of them in a clause.

        In `s_clause N`, only the first load has a line. Followers keep it up to the number of loads that the statement
        had at the previous stage. The remaining ones are left for other statements.
        """
        assert self.previous is not None
        clause_followers = self.code.function.clause_followers
        expected_count = self.previous.loads.get(owner.program.index, len(loads))
        followers = [i for i in loads if i in clause_followers]
        surplus = len(loads) - expected_count
        if surplus <= 0 or not followers:
            return loads
        if expected_count > 1:  # at the ends of clauses: a clause lists one statement after another
            following = zip(loads, [*loads[1:], -1], strict=True)
            followers = [i for i, after in following if i in clause_followers and after not in clause_followers]
        dropped = set(followers[:surplus])
        self.orphans += sorted(dropped, key=self.position.__getitem__)
        return [i for i in loads if i not in dropped]

    def _assign_unplaced(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> None:
        """Assign loads without a usable line (none, or the function's own) to statements without a load."""
        chains, is_homeless = self.code.chains, self.code.has_no_location
        visible_chains = (self.code.visible_chain(statement.program.chain) for statement in missing)
        lines = {without_column(chain) for chain in visible_chains if chain}
        unplaced = [
            index
            for index in self.code.find(LOADS, self.region.scope)
            if is_homeless(chains.get(index)) or chains[index] in lines
        ]
        unplaced = sorted({*unplaced, *self.orphans}, key=self.position.__getitem__)
        if len(unplaced) < len(missing) and self.previous is not None:
            unplaced = (
                self._unowned_scalar_loads(missing, located)
                or self._stray_loads(missing)
                or self._surplus_loads(missing, located, self.previous.loads)
            )
        if len(unplaced) < len(missing):
            return
        missing = sorted(missing, key=lambda statement: statement.program.index)
        for statement, share in zip(missing, equal_runs(unplaced, len(missing)), strict=True):
            statement.loads, statement.is_uncertain = share, True
        self.notes.append(RegionNote("loads without a line were assigned, in order, to the statements without a load"))

    def _unowned_scalar_loads(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> list[int]:
        """Scalar loads of data that belong to no other statement, if enough for the missing ones."""
        owned_loads = {index for statement in located for index in statement.loads}
        scalars = self.code.compute_once(find_scalar_data) - owned_loads
        unowned = sorted(filter(self._in_scope, scalars), key=self.position.__getitem__)
        return unowned if len(missing) <= len(unowned) <= self._expected_loads(missing) else []

    def _stray_loads(self, missing: list[LocatedStatement]) -> list[int]:
        """Loads whose location matches no load statement, if as many as are missing."""
        reference, visible = self.reference, self.code.visible_chain
        statement_locations = {visible(s.chain) for s in (*reference.statements, *reference.unassigned_loads)}
        unknown = reference.chains - statement_locations - set(map(visible, reference.sinks))
        loads = self.code.find(LOADS, self.region.blocks)
        strays = [index for index in loads if self.code.chains.get(index) in unknown]
        return strays if len(strays) == self._expected_loads(missing) else []

    def _surplus_loads(
        self, missing: list[LocatedStatement], located: list[LocatedStatement], expected: dict[int, int]
    ) -> list[int]:
        """Surplus loads of other statements, if as many are missing: a pass gave several one line."""
        surplus: list[int] = []
        for statement in located:
            extra = len(statement.loads) - expected.get(statement.program.index, len(statement.loads))
            if statement.loads and extra > 0:
                surplus += statement.loads[-extra:]
        if not surplus or len(surplus) != self._expected_loads(missing):
            return []
        for statement in located:
            statement.loads = [index for index in statement.loads if index not in surplus]
        return sorted(surplus, key=self.position.__getitem__)


def find_scalar_data(code: FunctionCode) -> frozenset[int]:
    """The scalar loads whose address the kernel computes. The address of its arguments is passed in registers.

    A load of arguments may have any line of the kernel.
    """
    data_loads: set[int] = set()
    computed_names: set[str] = set()
    position = code.flow.position
    stop = max((position[index] + 1 for index in code.find(_SCALAR_LOADS)), default=0)
    for index in sorted(range(len(position)), key=position.__getitem__)[:stop]:
        results, reads = code.operands(index)
        if code.instructions[index].kind is EventKind.SCALAR_LOAD and not computed_names.isdisjoint(reads):
            data_loads.add(index)
        computed_names.update(results)
    return frozenset(data_loads)
