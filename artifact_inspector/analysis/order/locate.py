"""Where the rounds of the program ended up in a region of a stage.

By place first: a load or compute is found again by its inline chain. Where places are missing or
shared, dataflow decides, and where that fails too, equal runs in program order; what was used is
noted, because a verdict that rests on it must say so.
"""

from __future__ import annotations

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain
from artifact_inspector.analysis.order.lineless import (
    find_computes_taking,
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
)
from artifact_inspector.analysis.order.reference import ReferenceRegion, ReferenceRound, equal_runs
from artifact_inspector.analysis.order.regions import Region
from artifact_inspector.analysis.order.rounds import bits_of
from artifact_inspector.model import LOADS, Basis, EventKind

__all__ = ["locate"]

_ATOMICS = frozenset({EventKind.ATOMIC})


def locate(code: Code, region: Region, before: Memory | None, *, exact: bool) -> Placement:
    """The rounds of a region's reference at this stage.

    Args:
        before: what the stage before said of it.
        exact: the region is the reference's own: instruction indices are taken as they are.
    """
    reference = region.reference
    if region.remains is not None:
        return Placement([], [], Basis.SOURCE if code.longest else Basis.DATAFLOW)
    if reference is None:
        return locate_by_runs(code, region)
    if exact:
        return _exact(code, region, reference)
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
        )
        for item in reference.rounds
    ]
    return Placement(rounds, sources_of(reference.other), Basis.SOURCE)


class _Locator:
    """Finds the statements and computes of one region by place."""

    def __init__(self, code: Code, region: Region, reference: ReferenceRegion, before: Memory | None) -> None:
        self.before = before
        self.code = code
        self.region = region
        self.reference = reference
        flow = code.flow
        self.position = flow.position
        if region.loop is None:
            self.start = -1
            self.ancestors: set[int | None] = set()
        else:
            loop = flow.loops[region.loop]
            self.start = code.start_of(loop.blocks)
            self.ancestors = {None}
            parent = loop.parent
            while parent is not None:
                self.ancestors.add(parent)
                parent = flow.loops[parent].parent
        self.integer_places = {
            code.visible(chain)
            for item in reference.rounds
            for compute in item.computes
            if compute.is_integer
            for chain in compute.chains[0]
        }
        self.notes: list[str] = []
        self.taking: list[list[int]] | None = None
        self.inside: dict[Chain, list[int]] = {}
        """Computes of the region at a place, as far as they were asked for."""
        self.orphans: list[int] = []
        """Loads that stand at the line of another statement only because they share its clause."""

    def run(self) -> Placement:
        located = [
            LocatedRound([LocatedStatement(s) for s in item.statements]) for item in self.reference.rounds
        ]
        self._find_loads(located)
        self._find_missing(located)
        self._find_computes(located)
        return Placement(located, sources_of(self.reference.other), Basis.SOURCE, self.notes)

    # -- loads -------------------------------------------------------------------

    def _find_loads(self, located: list[LocatedRound]) -> None:
        at: dict[Chain, list[LocatedStatement]] = {}
        for item in located:
            for found in item.statements:
                chain = self.code.visible(found.statement.chain)
                if chain is not None:
                    at.setdefault(chain, []).append(found)
        for statement in self.reference.other:  # they take their share of a common place, and are dropped
            chain = self.code.visible(statement.chain)
            if chain in at:
                at[chain].append(LocatedStatement(statement))
        for chain, statements in at.items():
            statements.sort(key=lambda found: found.statement.index)
            loads = self.code.loads_at.get(chain) or self._scalar_loads(chain, statements)
            inside = [i for i in loads if self._in_scope(i)]
            front = [i for i in loads if self._is_front(i)]
            if self.before is not None and len(statements) == 1:
                inside = self._share_clauses(inside, statements[0])
            for found, share in zip(statements, equal_runs(inside, len(statements)), strict=True):
                found.loads = share
            for found, share in zip(statements, equal_runs(front, len(statements)), strict=True):
                found.front = share

    def _in_scope(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.region.scope

    def _in_whole(self, index: int) -> bool:
        return self.code.flow.block_of[index] in self.region.whole

    def _scalar_loads(self, chain: Chain, statements: list[LocatedStatement]) -> list[int]:
        """What a load that is the same for all threads may have become.

        Loads of kernel arguments bear any line, so there must be as many as at the stage before.
        """
        if self.before is None:
            return []
        found = self.code.scalar_loads_at.get(chain, [])
        due = sum(self.before.loads.get(located.statement.index, 0) for located in statements)
        return found if len([i for i in found if self._in_scope(i)]) == due else []

    def _is_front(self, index: int) -> bool:
        flow = self.code.flow
        return (
            self.region.loop is not None
            and not self._in_whole(index)
            and flow.loop_at(index) in self.ancestors
            and self.position[index] < self.start
        )

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
            near = next((n for n in neighbours if n.loads and not n.merged), None)
            if near is not None and self._may_be_merged(found, near):
                found.loads, found.merged = list(near.loads), True
                self.notes.append(
                    f"the load of {_label(found)} has no line of its own: it shares that of {_label(near)}"
                )

    def _was_inside(self, found: LocatedStatement) -> bool:
        return self.before is not None and self.before.loads.get(found.statement.index, 0) > 0

    def _share_clauses(self, loads: list[int], owner: LocatedStatement) -> list[int]:
        """A statement's loads without those that only follow one of them in a clause.

        Of the loads behind `s_clause N` the first alone has a line. They keep it as long as their
        statement had as many loads at the stage before; the rest are left for other statements.
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
        """Followers at the ends of clauses: a clause lists statement after statement."""
        ends = [
            index
            for index, after in zip(loads, [*loads[1:], -1], strict=True)
            if index in self.code.function.followers and after not in self.code.function.followers
        ]
        return ends[:surplus]

    def _take_unplaced(self, missing: list[LocatedStatement], located: list[LocatedStatement]) -> None:
        """Loads that lost their line (at none, or at the function's own) belong to what is missing."""
        unplaced = [
            index
            for index in self.code.find(LOADS, self.region.scope)
            if self.code.is_homeless(self.code.chains.get(index))
        ]
        unplaced = sorted({*unplaced, *self.orphans}, key=lambda index: self.position[index])
        if len(unplaced) < len(missing):
            unplaced = self._strays(missing) or self._surplus(missing, located)
        if len(unplaced) < len(missing):
            return
        missing = sorted(missing, key=lambda found: found.statement.index)
        for found, share in zip(missing, equal_runs(unplaced, len(missing)), strict=True):
            found.loads = share
        self.notes.append(
            "loads without a line of their own were taken, in order, for the statements without a load"
        )

    def _strays(self, missing: list[LocatedStatement]) -> list[int]:
        """Loads at the place of no load statement, if they are as many as are missing."""
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
        """Loads that others have too many, if as many are missing: a pass gave several one line."""
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
        # Only what comes from one pointer can be one wider load.
        return found.statement.base is not None and found.statement.base == near.statement.base

    # -- computes ------------------------------------------------------------------

    def _find_computes(self, located: list[LocatedRound]) -> None:
        levels = [self._level(reference) for reference in self.reference.rounds]
        owners: dict[Chain, list[int]] = {}
        for number, level in enumerate(levels):
            for chain in self._chains(number, level, level + 1):
                owners.setdefault(chain, []).append(number)
        for chain, owning in owners.items():
            everywhere = [i for i in self._table(chain) if self._is_front(i)]
            for indices, rounds in self._by_kind(self._computes_at(chain), owning):
                kinds = {self.code.function.instructions[i].kind for i in indices}
                front = [i for i in everywhere if self.code.function.instructions[i].kind in kinds]
                shares = [indices] if len(rounds) == 1 else self._apart(indices, rounds, located)
                for number, share in zip(rounds, shares, strict=True):
                    located[number].computes += share
                    # Rounds of one line (an unrolled loop of the program) peel as many as they keep inside.
                    peeled = round(len(front) * len(share) / len(indices))
                    located[number].front_computes += front[:peeled]
        for number, item in enumerate(located):
            self._complete(number, item, levels[number], located)
            item.computes = sorted(set(item.computes), key=lambda index: self.position[index])
        lacking = [item for item in located if item.has_loads and not item.computes]
        tallies = self._tallies() if lacking else []
        if tallies:
            for item, share in zip(lacking, equal_runs(tallies, len(lacking)), strict=True):
                item.computes = share
            self.notes.append(
                "a histogram is made by atomics in shared memory: they are taken for its computes"
            )

    def _by_kind(self, indices: list[int], rounds: list[int]) -> list[tuple[list[int], list[int]]]:
        """The computes at one place with the rounds that they may be of.

        Where only some of the rounds have a matrix operation, it is theirs, and what else stands there is
        the others' (`acc += dot(a, b) * scale` is one line).
        """
        instructions = self.code.function.instructions
        matrix = [i for i in indices if instructions[i].kind is EventKind.MATRIX]
        kinds = {n: {compute.is_matrix for compute in self.reference.rounds[n].computes} for n in rounds}
        multiplying = [n for n in rounds if True in kinds[n]]
        others = [n for n in rounds if False in kinds[n]]
        if not multiplying or not others or not 0 < len(matrix) < len(indices) or multiplying == others:
            return [(indices, rounds)]
        return [(matrix, multiplying), ([i for i in indices if i not in set(matrix)], others)]

    def _tallies(self) -> list[int]:
        """Atomics in shared memory, in execution order: what Triton makes of a histogram.

        Source: Triton, HistogramOpToLLVM.cpp. A program's own atomics go to global memory.
        """
        atomics = self.code.find(_ATOMICS, self.region.whole)
        instructions, in_shared = self.code.function.instructions, self.code.language.in_shared
        return [index for index in atomics if in_shared(instructions[index])]

    def _complete(self, number: int, item: LocatedRound, level: int, located: list[LocatedRound]) -> None:
        """Add computes that were contracted into a consumer, or that bear another operation's line."""
        if not item.has_loads:
            return
        if level < 0:
            item.computes = self._taking(located)[number]
            if item.computes:
                self.notes.append(f"round {number + 1}: computes found by dataflow, none stands at its line")
            return
        contracted = level > 0
        known = 0 if self.before is None else self.before.computes.get(number, 0)
        if level == 0 and (len(item.computes) >= known or len(located) == 1):
            return
        places = set(self._chains(number, 0, None))
        taking = [i for i in self._taking(located)[number] if self.code.chains.get(i) in places]
        if level == 0:
            contracted = bool(set(taking) - set(item.computes))
            item.computes += taking
        elif taking:
            item.computes = taking
        if contracted:
            self.notes.append(f"round {number + 1}: computes were contracted into their consumers")

    def _chains(self, number: int, first: int, stop: int | None) -> list[Chain]:
        """Places that hold a round's computes, or their consumers `first` to `stop` steps away."""
        if first < 0:
            return []
        found: dict[Chain, None] = {}
        for compute in self.reference.rounds[number].computes:
            levels = compute.chains[min(first, len(compute.chains) - 1) : stop]
            for chain in (self.code.visible(chain) for level in levels for chain in level):
                if chain is not None and self._computes_at(chain):
                    found[chain] = None
        return list(found)

    def _level(self, reference: ReferenceRound) -> int:
        """0 when a direct compute stands at its own place, n when the n-th consumer must stand in."""
        deepest = max((len(compute.chains) for compute in reference.computes), default=0)
        for level in range(deepest):
            for compute in reference.computes:
                if level < len(compute.chains) and any(
                    self._computes_at(self.code.visible(chain)) for chain in compute.chains[level]
                ):
                    return level
        return -1

    def _computes_at(self, chain: Chain | None) -> list[int]:
        if chain is None:
            return []
        if chain not in self.inside:
            self.inside[chain] = [index for index in self._table(chain) if self._in_whole(index)]
        return self.inside[chain]

    def _table(self, chain: Chain) -> list[int]:
        found = self.code.computes_at.get(chain, [])
        return found or self.code.integers_at.get(chain, []) if chain in self.integer_places else found

    def _taking(self, located: list[LocatedRound]) -> list[list[int]]:
        """For each round, the computes that take its data first, by dataflow; found once."""
        if self.taking is None:
            taking = find_computes_taking(self.code, self.region, [item.loads for item in located])
            self.taking = [[] for _ in located]
            for index, bits in taking.items():
                for number in bits_of(bits):
                    self.taking[number].append(index)
        return self.taking

    def _apart(self, indices: list[int], rounds: list[int], located: list[LocatedRound]) -> list[list[int]]:
        """Tell the computes at one place apart: by the loads they take, else in equal runs."""
        here, taking = set(indices), self._taking(located)
        shares = [[i for i in taking[number] if i in here] for number in rounds]
        return shares if all(shares) else equal_runs(indices, len(rounds))


def _label(found: LocatedStatement) -> str:
    statement = found.statement
    return statement.source if statement.source is not None else statement.name or "a load"
