"""Locates the rounds of the program in a region of a stage.

Source locations are compared first: a load or compute is found by its inline chain. If locations are
missing or shared, dataflow decides, and otherwise equal runs in program order. The method is noted,
because a verdict that depends on it must report it.
"""

from __future__ import annotations

from artifact_inspector.analysis.flow.arguments import find_scalar_data
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain, without_column
from artifact_inspector.analysis.order.computes import ComputeLocator
from artifact_inspector.analysis.order.facts import Note
from artifact_inspector.analysis.order.lineless import (
    locate_by_dataflow,
    locate_by_runs,
    locate_by_structure,
)
from artifact_inspector.analysis.order.placement import (
    LocatedRound,
    LocatedStatement,
    Memory,
    Placement,
    sources_of,
    too_many_rounds,
)
from artifact_inspector.analysis.order.reference import ReferenceRegion, equal_runs
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.model import LOADS, Basis, EventKind
from artifact_inspector.model.limits import ROUNDS


def locate(code: Code, region: Region, before: Memory | None, *, exact: bool) -> Placement:
    """The rounds of a region's reference at this stage.

    Args:
        before: results of the previous stage for this region.
        exact: the region is the reference's own, so its instruction indices are used unchanged.
    """
    reference = region.reference
    if region.remains is not None:
        return Placement([], [], Basis.SOURCE if code.longest else Basis.DATAFLOW)
    if reference is None:
        return locate_by_runs(code, region)
    if exact:
        return _exact(code, region, reference)
    if len(reference.rounds) > ROUNDS.most:
        return too_many_rounds()
    places = {s.chain for s in (*reference.statements, *reference.other)} - {None}
    if (not places and (reference.rounds or reference.other)) or not code.longest:
        return locate_by_structure(code, region, reference) or locate_by_dataflow(
            code, region, reference, before
        )
    return _Locator(code, region, reference, before).run()


def _exact(code: Code, region: Region, reference: ReferenceRegion) -> Placement:
    rounds = [
        LocatedRound(
            [LocatedStatement(s, [s.index], list(s.prologue)) for s in item.statements],
            [c.index for c in item.computes],
            found=frozenset(c.index for c in item.computes),
        )
        for item in reference.rounds
    ]
    return Placement(rounds, sources_of(reference.other), Basis.SOURCE)


class _Locator:
    """Finds the statements and computes of one region by source location."""

    def __init__(self, code: Code, region: Region, reference: ReferenceRegion, before: Memory | None) -> None:
        self.before = before
        self.code = code
        self.region = region
        self.reference = reference
        self.position = code.flow.position
        self.notes: list[Note] = []
        self.orphans: list[int] = []
        """Loads that have another statement's line only because they are in the same clause."""

    def run(self) -> Placement:
        located = [
            LocatedRound([LocatedStatement(s) for s in item.statements]) for item in self.reference.rounds
        ]
        self._find_loads(located)
        self._find_missing(located)
        computes = ComputeLocator(self.code, self.region, self.reference, self.before)
        computes.run(located)
        notes = [*self.notes, *computes.notes]
        return Placement(located, sources_of(self.reference.other), Basis.SOURCE, notes)

    # -- loads -------------------------------------------------------------------

    def _find_loads(self, located: list[LocatedRound]) -> None:
        at: dict[Chain, list[LocatedStatement]] = {}
        for item in located:
            for found in item.statements:
                chain = self.code.visible(found.statement.chain)
                if chain is not None:
                    at.setdefault(chain, []).append(found)
        for statement in self.reference.other:  # they take their share of a common location and are dropped
            chain = self.code.visible(statement.chain)
            if chain in at:
                at[chain].append(LocatedStatement(statement))
        for chain, statements in at.items():
            statements.sort(key=lambda found: found.statement.index)
            loads = self.code.loads_at.get(chain) or self._scalar_loads(chain, statements)
            for alike, own in self._told_apart(statements, loads):
                self._give(alike, own)

    def _told_apart(
        self, statements: list[LocatedStatement], loads: list[int]
    ) -> list[tuple[list[LocatedStatement], list[int]]]:
        """Statements at one location, paired with the loads there whose kind matches the previous stage."""
        if self.before is None or len(statements) == 1:
            return [(statements, loads)]
        wanted: dict[frozenset[EventKind], list[LocatedStatement]] = {}
        for found in statements:
            kinds = self.before.kinds.get(found.statement.index, frozenset())
            wanted.setdefault(kinds, []).append(found)
        present: dict[frozenset[EventKind], list[int]] = {}
        for index in loads:
            kind = self.code.function.instructions[index].kind
            present.setdefault(frozenset((kind,)), []).append(index)
        if wanted.keys() != present.keys():
            return [(statements, loads)]
        return [(alike, present[kinds]) for kinds, alike in wanted.items()]

    def _give(self, statements: list[LocatedStatement], loads: list[int]) -> None:
        """Distribute the loads at one location over its statements, in equal runs."""
        inside = [i for i in loads if self._in_scope(i)]
        front = self.region.in_front(self.code, loads)
        if self.before is not None and len(statements) == 1:
            inside = self._share_clauses(inside, statements[0])
        for found, share in zip(statements, equal_runs(inside, len(statements)), strict=True):
            found.loads = share
            found.guessed = len(inside) % len(statements) > 0
        for found, share in zip(statements, equal_runs(front, len(statements)), strict=True):
            found.front = share

    def _in_scope(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.region.scope

    def _scalar_loads(self, chain: Chain, statements: list[LocatedStatement]) -> list[int]:
        """Scalar loads that a uniform load may have become. A wide one may replace several."""
        if self.before is None or chain not in self.code.scalar_loads_at:
            return []
        data = self.code.once(find_scalar_data)
        found = [index for index in self.code.scalar_loads_at[chain] if index in data]
        due = sum(self.before.loads.get(located.statement.index, 0) for located in statements)
        return found if len([i for i in found if self._in_scope(i)]) <= due else []

    def _find_missing(self, located: list[LocatedRound]) -> None:
        everything = [found for item in located for found in item.statements]
        missing = [
            found for found in everything if not found.loads and (not found.front or self._was_inside(found))
        ]
        if not missing:
            return
        self._take_unplaced(missing, everything)
        by_order = sorted(everything, key=lambda found: found.statement.index)
        for place, found in enumerate(by_order):
            if found.loads or found.front:
                continue
            neighbours = [by_order[i] for i in (place - 1, place + 1) if 0 <= i < len(by_order)]
            near = next((n for n in neighbours if n.loads and self._may_be_merged(found, n)), None)
            if near is not None:
                found.loads, found.merged = list(near.loads), True
                own, other = _label(found), _label(near)
                self.notes.append(
                    Note(f"the load of {own} has no line of its own: it is merged with the load of {other}")
                )

    def _was_inside(self, found: LocatedStatement) -> bool:
        return self.before is not None and self.before.loads.get(found.statement.index, 0) > 0

    def _share_clauses(self, loads: list[int], owner: LocatedStatement) -> list[int]:
        """A statement's loads, without those that only follow one of them in a clause.

        In `s_clause N`, only the first load has a line. Followers keep it up to the number of loads that
        the statement had at the previous stage. The remaining ones are left for other statements.
        """
        assert self.before is not None
        due = self.before.loads.get(owner.statement.index, len(loads))
        followers = [i for i in loads if i in self.code.function.followers]
        surplus = len(loads) - due
        if surplus <= 0 or not followers:
            return loads
        dropped = set(followers[:surplus]) if due == 1 else set(self._worst_followers(loads, surplus))
        self.orphans += sorted(dropped, key=lambda i: self.position[i])
        return [i for i in loads if i not in dropped]

    def _worst_followers(self, loads: list[int], surplus: int) -> list[int]:
        """Followers at the ends of clauses: a clause lists one statement after another."""
        ends = [
            index
            for index, after in zip(loads, [*loads[1:], -1], strict=True)
            if index in self.code.function.followers and after not in self.code.function.followers
        ]
        return ends[:surplus]

    def _take_unplaced(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> None:
        """Assign loads without a usable line (none, or the function's own) to statements without a load."""
        chains, is_homeless = self.code.chains, self.code.is_homeless
        lines = {without_column(seen) for m in missing if (seen := self.code.visible(m.statement.chain))}
        unplaced = [
            index
            for index in self.code.find(LOADS, self.region.scope)
            if is_homeless(chains.get(index)) or chains[index] in lines
        ]
        unplaced = sorted({*unplaced, *self.orphans}, key=lambda index: self.position[index])
        if len(unplaced) < len(missing):
            unplaced = (
                self._scalars(missing, located) or self._strays(missing) or self._surplus(missing, located)
            )
        if len(unplaced) < len(missing):
            return
        missing = sorted(missing, key=lambda found: found.statement.index)
        for found, share in zip(missing, equal_runs(unplaced, len(missing)), strict=True):
            found.loads, found.guessed = share, True
        self.notes.append(
            Note("loads without a line were assigned, in order, to the statements without a load")
        )

    def _scalars(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> list[int]:
        """Scalar loads of data that belong to no other statement, if enough for the missing ones."""
        if self.before is None:
            return []
        taken = {index for found in located for index in found.loads}
        scalars = self.code.once(find_scalar_data) - taken
        unowned = sorted(filter(self._in_scope, scalars), key=lambda index: self.position[index])
        due = sum(self.before.loads.get(found.statement.index, 0) for found in missing)
        return unowned if len(missing) <= len(unowned) <= due else []

    def _strays(self, missing: list[LocatedStatement]) -> list[int]:
        """Loads whose location matches no load statement, if as many as are missing."""
        if self.before is None:
            return []
        reference = self.reference
        known = {self.code.visible(s.chain) for s in (*reference.statements, *reference.other)}
        known |= {self.code.visible(chain) for chain in reference.sinks}
        strays = [
            index
            for index in self.code.find(LOADS, self.region.blocks)
            if self.code.chains.get(index) in reference.chains - known
        ]
        due = sum(self.before.loads.get(found.statement.index, 0) for found in missing)
        return strays if len(strays) == due else []

    def _surplus(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> list[int]:
        """Surplus loads of other statements, if as many are missing: a pass gave several one line."""
        if self.before is None:
            return []
        due = self.before.loads
        surplus: list[int] = []
        for found in located:
            extra = len(found.loads) - due.get(found.statement.index, len(found.loads))
            if found.loads and extra > 0:
                surplus += found.loads[-extra:]
        if not surplus or len(surplus) != sum(due.get(m.statement.index, 0) for m in missing):
            return []
        for found in located:
            found.loads = [index for index in found.loads if index not in surplus]
        return sorted(surplus, key=lambda index: self.position[index])

    def _may_be_merged(self, found: LocatedStatement, near: LocatedStatement) -> bool:
        # Only loads from one pointer can be merged into a wider load.
        return found.statement.base is not None and found.statement.base == near.statement.base


def _label(found: LocatedStatement) -> str:
    statement = found.statement
    return statement.source if statement.source is not None else statement.name or "a load"
