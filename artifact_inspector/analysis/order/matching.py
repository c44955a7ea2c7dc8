"""Matches the loops of a stage to the loops of the program: by source locations, or else by order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from artifact_inspector.analysis.flow.code import PLACED, Code
from artifact_inspector.analysis.flow.places import Chain, without_column
from artifact_inspector.analysis.order.reference import ReferenceRegion, loop_chain
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind

MOST_TRIED = 64
"""Limit on the program loops tried for one loop of the stage, among those with the same signature that
are in use.
"""
CLOSING = 100.0
"""Score for closing on the line of a loop. A common load or compute scores 1, any other location 0.01."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_WAITS = frozenset({EventKind.WAIT})
_COUNTED = LOADS | {EventKind.MATRIX}
_WORK = LOADS | COMPUTES | SINKS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}


def match_loops(code: Code, reference: tuple[ReferenceRegion, ...]) -> dict[int, ReferenceRegion]:
    """The program region of each natural loop that could be matched."""
    loops = [region for region in reference if region.loop is not None]
    if not loops or not code.flow.loops:
        return {}
    if not any(region.chains for region in reference) or not code.chains:
        return _match_by_order(code, loops)
    return _Matching(code, loops).run()


@dataclass(frozen=True, slots=True)
class _Look:
    """Locations that identify a program loop at a stage. Equal for copies of a helper inlined twice."""

    closing: Chain | None
    strong: frozenset[Chain]
    """Locations of its loads and direct computes."""
    weak: frozenset[Chain | None]
    """Locations of everything in it."""


class _Matching:
    def __init__(self, code: Code, loops: list[ReferenceRegion]) -> None:
        self._code, self._flow, self._loops = code, code.flow, loops
        self._alike: dict[_Look, list[int]] = {}
        """Look → the loops of the program that have it, in order."""
        for place, region in enumerate(loops):
            visible = code.visible
            look = _Look(
                visible(region.chain),
                _with_lines(visible(chain) for chain in _strong_chains(region)),
                frozenset(visible(chain) for chain in region.chains),
            )
            self._alike.setdefault(look, []).append(place)
        self._scores: dict[int, dict[_Look, float]] = {}
        """Natural loop → the score of each look."""
        self._events: dict[int, set[Chain]] = {}
        """Natural loop → the locations of its own loads and computes."""
        self._chosen: dict[int, int] = {}
        self._holders: dict[int, list[int]] = {}
        """Loop of the program → the natural loops that it was assigned to."""
        self._passed: dict[_Look, int] = {}
        """Look → how many of its program loops are known to be assigned."""

    def run(self) -> dict[int, ReferenceRegion]:
        self._score()
        self._assign()
        self._give_to_unmatched()
        self._give_to_partitions()
        return {natural: self._loops[place] for natural, place in self._chosen.items()}

    # -- scores ---------------------------------------------------------------------

    def _score(self) -> None:
        closing_at = _by_key((look.closing, look) for look in self._alike)
        strong_at = _by_key((chain, look) for look in self._alike for chain in look.strong)
        weak_at = _by_key((chain, look) for look in self._alike for chain in look.weak)
        closed_by: set[tuple[int, _Look]] = set()
        for natural in reversed(range(len(self._flow.loops))):  # inner loops first
            blocks = self._flow.loops[natural].blocks
            own = frozenset(block for block in blocks if self._flow.loop_of[block] == natural)
            events, anywhere = self._places(own)
            self._events[natural] = events
            if self._spins(natural):
                continue
            scores: dict[_Look, float] = {}
            for chain in events:
                for look in strong_at.get(chain, ()):
                    scores[look] = scores.get(look, 0.0) + 1.0
            common: dict[_Look, int] = {}
            for chain in anywhere:
                for look in weak_at.get(chain, ()):
                    common[look] = common.get(look, 0) + 1
            for look, count in common.items():
                scores[look] = scores.get(look, 0.0) + 0.01 * count
            closing = self._code.visible(loop_chain(self._code, natural))
            for look in closing_at.get(closing, ()) if closing is not None else ():
                # An enclosing loop may close on a line left over from the loop inside it.
                scores.setdefault(look, 0.0)
                if (natural, look) not in closed_by:
                    scores[look] += CLOSING
                closed_by.update((outer, look) for outer in self._around(natural))
            self._scores[natural] = {look: score for look, score in scores.items() if score > 0}

    def _places(self, blocks: frozenset[int]) -> tuple[set[Chain], set[Chain]]:
        """Locations of the loads and computes in some blocks, and of everything that has one."""
        events: set[Chain] = set()
        anywhere: set[Chain] = set()
        for index in self._code.find(PLACED, blocks):
            chain = self._code.chains.get(index)
            if chain is not None:
                anywhere.add(chain)
                if self._code.function.instructions[index].kind is not EventKind.BRANCH:
                    events.add(chain)
        return events, anywhere

    def _spins(self, loop: int) -> bool:
        """True for a loop that only polls a barrier (SASS)."""
        blocks = self._flow.loops[loop].blocks
        return bool(self._code.find(_WAITS, blocks)) and not self._code.find(_WORK, blocks)

    def _around(self, loop: int) -> list[int]:
        found: list[int] = []
        parent = self._flow.loops[loop].parent
        while parent is not None:
            found.append(parent)
            parent = self._flow.loops[parent].parent
        return found

    # -- choice ---------------------------------------------------------------------

    def _assign(self) -> None:
        """Assign the best program region to each loop, highest score first.

        Of nested loops only one can match a given loop of the program. Prologue copies make the enclosing
        loop look the same, and so do the loops that dispatch the warps of a specialised kernel.
        """
        order = sorted(
            (
                (-score, natural, self._alike[look][0])
                for natural, scores in self._scores.items()
                for look, score in scores.items()
            )
        )
        for negated, natural, _ in order:
            if natural not in self._chosen:
                place = self._pick(natural, -negated)
                if place is not None:
                    self._choose(natural, place)

    def _pick(self, natural: int, score: float) -> int | None:
        # A helper inlined twice is ambiguous where only its own line is kept: assign its copies in order.
        ties = [look for look, other in self._scores[natural].items() if other == score]
        free = [place for look in ties if (place := self._first_free(look)) is not None]
        if free:
            return min(free)
        taken = sorted(place for look in ties for place in self._alike[look][:MOST_TRIED])
        return next((place for place in taken if not self._is_in_the_way(place, natural)), None)

    def _first_free(self, look: _Look) -> int | None:
        places = self._alike[look]
        passed = self._passed.get(look, 0)
        while passed < len(places) and places[passed] in self._holders:
            passed += 1
        self._passed[look] = passed
        return places[passed] if passed < len(places) else None

    def _is_in_the_way(self, place: int, natural: int) -> bool:
        """True if a loop of the program is already assigned to a loop around or inside another."""
        encloses = self._flow.encloses
        return any(encloses(other, natural) or encloses(natural, other) for other in self._holders[place])

    def _choose(self, natural: int, place: int) -> None:
        before = self._chosen.get(natural)
        if before is not None:
            self._holders[before].remove(natural)
        self._chosen[natural] = place
        self._holders.setdefault(place, []).append(natural)

    # -- loops that were flattened ----------------------------------------------------

    def _give_to_unmatched(self) -> None:
        """Assign a loop that was flattened into the enclosing one, which closes on its line.

        The contents identify it. The rest of the enclosing loop is another loop: the iterations without
        the inner one.
        """
        held: dict[_Look, list[tuple[float, int]]] = {}
        for natural, scores in self._scores.items():
            for look, score in scores.items():
                if score % CLOSING >= min(2, len(look.strong)) > 0:
                    held.setdefault(look, []).append((score % CLOSING, natural))
        for look, places in self._alike.items():
            candidates = sorted(held.get(look, []))
            for place in places:
                if self._holders.get(place) or not self._loops[place].rounds:
                    continue
                while candidates and not self._may_be_flattened(candidates[-1][1], place):
                    candidates.pop()
                if candidates:
                    self._choose(candidates.pop()[1], place)

    def _may_be_flattened(self, natural: int, place: int) -> bool:
        """True for a loop matched to a program loop without rounds, or to one that was to be flattened."""
        if natural not in self._chosen:
            return False
        around = self._loops[self._chosen[natural]]
        return not around.rounds or (around.is_flattened and self._loops[place].parent == around.id)

    def _give_to_partitions(self) -> None:
        """Assign a flattened and specialised loop: one natural loop has its loads, another its computes.

        They close on the line of the enclosing loop, which may be left over as a loop with neither.
        """
        holding = _by_key((chain, natural) for natural, events in self._events.items() for chain in events)
        visible = self._code.visible
        for place, region in enumerate(self._loops):
            if not region.rounds or not region.statements:
                continue
            loads = _with_lines(visible(s.chain) for s in region.statements)
            computes = {seen for chain in _compute_chains(region) if (seen := visible(chain)) is not None}
            loading = {n for chain in loads for n in holding.get(chain, ()) if self._may_be(n, place)}
            computing = {n for chain in computes for n in holding.get(chain, ()) if self._may_be(n, place)}
            if not loading or not computing or loading & computing:
                continue
            apart = loading | computing
            if not any(outer in apart for natural in apart for outer in self._around(natural)):
                for natural in sorted(apart):
                    self._choose(natural, place)

    def _may_be(self, natural: int, place: int) -> bool:
        return self._chosen.get(natural) == place or self._may_be_flattened(natural, place)


def _with_lines(chains: Iterable[Chain | None]) -> frozenset[Chain]:
    """The locations with and without column: a pass that merges two loads of a line drops the column."""
    known = {chain for chain in chains if chain is not None}
    return frozenset(known | {without_column(chain) for chain in known})


def _by_key(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _strong_chains(region: ReferenceRegion) -> set[Chain]:
    found = {s.chain for s in (*region.statements, *region.other) if s.chain is not None}
    return found | _compute_chains(region)


def _compute_chains(region: ReferenceRegion) -> set[Chain]:
    """Locations of the direct computes themselves."""
    computes = (compute for item in region.rounds for compute in item.computes)
    return {chain for compute in computes for chains in compute.chains[:1] for chain in chains}


def _match_by_order(code: Code, loops: list[ReferenceRegion]) -> dict[int, ReferenceRegion]:
    """Match in order if as many loops are at the same depths, for stages without locations.

    Otherwise match only the loops with matrix operations, if their number is equal. No match is better
    than a wrong one.
    """
    flow = code.flow
    kinds = [
        {code.function.instructions[i].kind for i in code.find(_COUNTED, loop.blocks)} for loop in flow.loops
    ]
    eventful = [loop for loop, found in enumerate(kinds) if found]
    wanted = [region for region in loops if region.rounds or region.other or region.has_matrix]
    for candidates, regions in (
        (list(range(len(flow.loops))), loops),
        (eventful, wanted),
        ([e for e in eventful if EventKind.MATRIX in kinds[e]], [r for r in wanted if r.has_matrix]),
    ):
        depths = [flow.loops[loop].depth for loop in candidates]
        if depths == [region.depth for region in regions]:
            return dict(zip(candidates, regions, strict=True))
    return {}
