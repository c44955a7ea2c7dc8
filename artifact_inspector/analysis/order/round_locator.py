"""Locates the rounds of the program in a region of a stage.

Source locations are compared first: a load or compute is found by its inline chain. If locations are missing or shared,
dataflow decides, and otherwise equal runs in program order. The method is noted, because a verdict that depends on it
must report it.
"""

from __future__ import annotations

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.scalar_data import find_scalar_data
from artifact_inspector.analysis.flow.source_locations import Chain, without_column
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


def locate_rounds(code: FunctionCode, region: Region, previous: PreviousStage | None, *, exact: bool) -> Placement:
    """The rounds of a region's reference at this stage.

    Args:
        previous: results of the previous stage for this region.
        exact: the region is the reference's own, so its instruction indices are used unchanged.
    """
    reference = region.reference
    if region.residue is not None:
        return Placement([], [], Basis.SOURCE if code.max_chain_length else Basis.DATAFLOW)
    if reference is None:
        return locate_by_runs(code, region)
    if exact:
        return _exact(code, region, reference)
    if len(reference.rounds) > ROUNDS.value:
        return too_many_rounds()
    locations = {s.chain for s in (*reference.statements, *reference.unassigned_loads)} - {None}
    if (not locations and (reference.rounds or reference.unassigned_loads)) or not code.max_chain_length:
        return locate_by_structure(code, region, reference) or locate_by_dataflow(code, region, reference, previous)
    return _RoundLocator(code, region, reference, previous).run()


def _exact(code: FunctionCode, region: Region, reference: ReferenceRegion) -> Placement:
    rounds = [
        LocatedRound(
            [LocatedStatement(s, [s.index], list(s.prologue)) for s in reference_round.statements],
            [c.index for c in reference_round.computes],
            identified_computes=frozenset(c.index for c in reference_round.computes),
        )
        for reference_round in reference.rounds
    ]
    return Placement(rounds, sources_of(reference.unassigned_loads), Basis.SOURCE)


class _RoundLocator:
    """Finds the statements and computes of one region by source location."""

    def __init__(
        self, code: FunctionCode, region: Region, reference: ReferenceRegion, previous: PreviousStage | None
    ) -> None:
        self.previous = previous
        self.code = code
        self.region = region
        self.reference = reference
        self.position = code.flow.position
        self.notes: list[RegionNote] = []
        self.orphans: list[int] = []
        """Loads that have another statement's line only because they are in the same clause."""

    def run(self) -> Placement:
        located = [
            LocatedRound([LocatedStatement(s) for s in reference_round.statements])
            for reference_round in self.reference.rounds
        ]
        self._find_loads(located)
        self._find_missing(located)
        computes = ComputeLocator(self.code, self.region, self.reference, self.previous)
        computes.run(located)
        notes = [*self.notes, *computes.notes]
        return Placement(located, sources_of(self.reference.unassigned_loads), Basis.SOURCE, notes)

    # -- loads -------------------------------------------------------------------

    def _find_loads(self, located: list[LocatedRound]) -> None:
        statements_at: dict[Chain, list[LocatedStatement]] = {}
        for located_round in located:
            for located_statement in located_round.statements:
                chain = self.code.visible_chain(located_statement.statement.chain)
                if chain is not None:
                    statements_at.setdefault(chain, []).append(located_statement)
        for statement in self.reference.unassigned_loads:  # they take their share of a common location and are dropped
            chain = self.code.visible_chain(statement.chain)
            if chain in statements_at:
                statements_at[chain].append(LocatedStatement(statement))
        for chain, statements in statements_at.items():
            statements.sort(key=lambda located_statement: located_statement.statement.index)
            loads = self.code.loads_at.get(chain) or self._scalar_loads(chain, statements)
            for matching_statements, statement_loads in self._match_kinds(statements, loads):
                self._assign_loads(matching_statements, statement_loads)

    def _match_kinds(
        self, statements: list[LocatedStatement], loads: list[int]
    ) -> list[tuple[list[LocatedStatement], list[int]]]:
        """Statements at one location, paired with the loads there whose kind matches the previous stage."""
        if self.previous is None or len(statements) == 1:
            return [(statements, loads)]
        statements_by_kinds: dict[frozenset[EventKind], list[LocatedStatement]] = {}
        for located_statement in statements:
            kinds = self.previous.kinds.get(located_statement.statement.index, frozenset())
            statements_by_kinds.setdefault(kinds, []).append(located_statement)
        loads_by_kinds: dict[frozenset[EventKind], list[int]] = {}
        for index in loads:
            kind = self.code.function.instructions[index].kind
            loads_by_kinds.setdefault(frozenset((kind,)), []).append(index)
        if statements_by_kinds.keys() != loads_by_kinds.keys():
            return [(statements, loads)]
        return [
            (matching_statements, loads_by_kinds[kinds]) for kinds, matching_statements in statements_by_kinds.items()
        ]

    def _assign_loads(self, statements: list[LocatedStatement], loads: list[int]) -> None:
        """Distribute the loads at one location over its statements, in equal runs."""
        inside = [i for i in loads if self._in_scope(i)]
        loads_before_loop = self.region.instructions_before_loop(self.code, loads)
        if self.previous is not None and len(statements) == 1:
            inside = self._drop_clause_followers(inside, statements[0])
        for located_statement, share in zip(statements, equal_runs(inside, len(statements)), strict=True):
            located_statement.loads = share
            located_statement.is_uncertain = len(inside) % len(statements) > 0
        for located_statement, share in zip(statements, equal_runs(loads_before_loop, len(statements)), strict=True):
            located_statement.loads_before_loop = share

    def _in_scope(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.region.scope

    def _scalar_loads(self, chain: Chain, statements: list[LocatedStatement]) -> list[int]:
        """Scalar loads that a uniform load may have become. A wide one may replace several."""
        if self.previous is None or chain not in self.code.scalar_loads_at:
            return []
        data = self.code.compute_once(find_scalar_data)
        scalar_loads = [index for index in self.code.scalar_loads_at[chain] if index in data]
        expected_count = sum(self.previous.loads.get(located.statement.index, 0) for located in statements)
        return scalar_loads if len([i for i in scalar_loads if self._in_scope(i)]) <= expected_count else []

    def _find_missing(self, located: list[LocatedRound]) -> None:
        all_statements = [
            located_statement for located_round in located for located_statement in located_round.statements
        ]
        missing = [
            located_statement
            for located_statement in all_statements
            if not located_statement.loads
            and (not located_statement.loads_before_loop or self._had_loads(located_statement))
        ]
        if not missing:
            return
        self._assign_unplaced(missing, all_statements)
        by_order = sorted(all_statements, key=lambda located_statement: located_statement.statement.index)
        for order_index, located_statement in enumerate(by_order):
            if located_statement.loads or located_statement.loads_before_loop:
                continue
            neighbours = [by_order[i] for i in (order_index - 1, order_index + 1) if 0 <= i < len(by_order)]
            neighbour = next((n for n in neighbours if n.loads and self._may_be_merged(located_statement, n)), None)
            if neighbour is not None:
                located_statement.loads, located_statement.is_merged = list(neighbour.loads), True
                own_label, neighbour_label = _label(located_statement), _label(neighbour)
                self.notes.append(
                    RegionNote(
                        f"the load of {own_label} has no line of its own: "
                        f"it is merged with the load of {neighbour_label}"
                    )
                )

    def _had_loads(self, located_statement: LocatedStatement) -> bool:
        return self.previous is not None and self.previous.loads.get(located_statement.statement.index, 0) > 0

    def _drop_clause_followers(self, loads: list[int], owner: LocatedStatement) -> list[int]:
        """A statement's loads, without those that only follow one of them in a clause.

        In `s_clause N`, only the first load has a line. Followers keep it up to the number of loads that the statement
        had at the previous stage. The remaining ones are left for other statements.
        """
        assert self.previous is not None
        expected_count = self.previous.loads.get(owner.statement.index, len(loads))
        followers = [i for i in loads if i in self.code.function.clause_followers]
        surplus = len(loads) - expected_count
        if surplus <= 0 or not followers:
            return loads
        dropped = (
            set(followers[:surplus]) if expected_count == 1 else set(self._followers_at_clause_ends(loads, surplus))
        )
        self.orphans += sorted(dropped, key=lambda i: self.position[i])
        return [i for i in loads if i not in dropped]

    def _followers_at_clause_ends(self, loads: list[int], surplus: int) -> list[int]:
        """Followers at the ends of clauses: a clause lists one statement after another."""
        ends = [
            index
            for index, next_load in zip(loads, [*loads[1:], -1], strict=True)
            if index in self.code.function.clause_followers and next_load not in self.code.function.clause_followers
        ]
        return ends[:surplus]

    def _assign_unplaced(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> None:
        """Assign loads without a usable line (none, or the function's own) to statements without a load."""
        chains, is_homeless = self.code.chains, self.code.has_no_location
        lines = {
            without_column(visible_chain)
            for m in missing
            if (visible_chain := self.code.visible_chain(m.statement.chain))
        }
        unplaced = [
            index
            for index in self.code.find(LOADS, self.region.scope)
            if is_homeless(chains.get(index)) or chains[index] in lines
        ]
        unplaced = sorted({*unplaced, *self.orphans}, key=lambda index: self.position[index])
        if len(unplaced) < len(missing):
            unplaced = (
                self._unowned_scalar_loads(missing, located)
                or self._stray_loads(missing)
                or self._surplus_loads(missing, located)
            )
        if len(unplaced) < len(missing):
            return
        missing = sorted(missing, key=lambda located_statement: located_statement.statement.index)
        for located_statement, share in zip(missing, equal_runs(unplaced, len(missing)), strict=True):
            located_statement.loads, located_statement.is_uncertain = share, True
        self.notes.append(RegionNote("loads without a line were assigned, in order, to the statements without a load"))

    def _unowned_scalar_loads(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> list[int]:
        """Scalar loads of data that belong to no other statement, if enough for the missing ones."""
        if self.previous is None:
            return []
        owned_loads = {index for located_statement in located for index in located_statement.loads}
        scalars = self.code.compute_once(find_scalar_data) - owned_loads
        unowned = sorted(filter(self._in_scope, scalars), key=lambda index: self.position[index])
        expected_count = sum(
            self.previous.loads.get(located_statement.statement.index, 0) for located_statement in missing
        )
        return unowned if len(missing) <= len(unowned) <= expected_count else []

    def _stray_loads(self, missing: list[LocatedStatement]) -> list[int]:
        """Loads whose location matches no load statement, if as many as are missing."""
        if self.previous is None:
            return []
        reference = self.reference
        statement_locations = {
            self.code.visible_chain(s.chain) for s in (*reference.statements, *reference.unassigned_loads)
        }
        statement_locations |= {self.code.visible_chain(chain) for chain in reference.sinks}
        strays = [
            index
            for index in self.code.find(LOADS, self.region.blocks)
            if self.code.chains.get(index) in reference.chains - statement_locations
        ]
        expected_count = sum(
            self.previous.loads.get(located_statement.statement.index, 0) for located_statement in missing
        )
        return strays if len(strays) == expected_count else []

    def _surplus_loads(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> list[int]:
        """Surplus loads of other statements, if as many are missing: a pass gave several one line."""
        if self.previous is None:
            return []
        expected_loads = self.previous.loads
        surplus: list[int] = []
        for located_statement in located:
            extra = len(located_statement.loads) - expected_loads.get(
                located_statement.statement.index, len(located_statement.loads)
            )
            if located_statement.loads and extra > 0:
                surplus += located_statement.loads[-extra:]
        if not surplus or len(surplus) != sum(expected_loads.get(m.statement.index, 0) for m in missing):
            return []
        for located_statement in located:
            located_statement.loads = [index for index in located_statement.loads if index not in surplus]
        return sorted(surplus, key=lambda index: self.position[index])

    def _may_be_merged(self, located_statement: LocatedStatement, neighbour: LocatedStatement) -> bool:
        # Only loads from one pointer can be merged into a wider load.
        return (
            located_statement.statement.base is not None
            and located_statement.statement.base == neighbour.statement.base
        )


def _label(located_statement: LocatedStatement) -> str:
    statement = located_statement.statement
    return statement.source if statement.source is not None else statement.name or "a load"
