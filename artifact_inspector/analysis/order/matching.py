"""Which loop of the program each loop of a stage is: by the places of what they hold, else by their order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from artifact_inspector.analysis.flow.code import PLACED, Code
from artifact_inspector.analysis.flow.places import Chain, without_column
from artifact_inspector.analysis.order.reference import ReferenceRegion, loop_chain
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind

MOST_TRIED = 64
"""Loops of the program that are tried for one of the stage, of those that look alike and are taken."""
CLOSING = 100.0
"""Weight of closing on the line of a loop; of a common load or compute 1, of any other place 0.01."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_WAITS = frozenset({EventKind.WAIT})
_COUNTED = LOADS | {EventKind.MATRIX}
_WORK = LOADS | COMPUTES | SINKS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}


def match_loops(code: Code, reference: tuple[ReferenceRegion, ...]) -> dict[int, ReferenceRegion]:
    """The region of the program that natural loops are, as far as that can be told."""
    loops = [region for region in reference if region.loop is not None]
    if not loops or not code.flow.loops:
        return {}
    if not any(region.chains for region in reference) or not code.chains:
        return _match_by_order(code, loops)
    return _Matching(code, loops).run()


@dataclass(frozen=True, slots=True)
class _Look:
    """What tells a loop of the program at a stage; several may look alike (a helper inlined twice)."""

    closing: Chain | None
    strong: frozenset[Chain]
    """Places of its loads and direct computes."""
    weak: frozenset[Chain | None]
    """Places of all that stands in it."""


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
        """Natural loop → how well each look fits it."""
        self._events: dict[int, set[Chain]] = {}
        """Natural loop → the places of its own loads and computes."""
        self._chosen: dict[int, int] = {}
        self._holders: dict[int, list[int]] = {}
        """Loop of the program → the natural loops that it was chosen for."""
        self._passed: dict[_Look, int] = {}
        """Look → how many loops of the program that have it are known to be chosen."""

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
                # The loop around may close on a line that was left standing from the one inside.
                scores.setdefault(look, 0.0)
                if (natural, look) not in closed_by:
                    scores[look] += CLOSING
                closed_by.update((outer, look) for outer in self._around(natural))
            self._scores[natural] = {look: score for look, score in scores.items() if score > 0}

    def _places(self, blocks: frozenset[int]) -> tuple[set[Chain], set[Chain]]:
        """Places of the loads and computes in some blocks, and of everything that has one."""
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
        """True for a loop that only waits for a barrier, by asking again and again (SASS)."""
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
        """The best region for each loop, best fits first.

        Of nested loops only one can be a given loop of the program: prologue copies make the one around
        it look alike, and so do the loops that send the warps of a specialised kernel to their work.
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
        # A helper inlined twice looks the same where only its own line is kept: take them in turn.
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
        """True where a loop of the program is chosen for a loop around or inside another."""
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
        """A loop flattened into the one around it closes on that one's line: what it holds tells it.

        What is left of the loop around is another loop: that of the turns without the one inside.
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
        """True for a loop that was chosen for one without rounds, or for one that was to be flattened."""
        if natural not in self._chosen:
            return False
        around = self._loops[self._chosen[natural]]
        return not around.rounds or (around.is_flattened and self._loops[place].parent == around.id)

    def _give_to_partitions(self) -> None:
        """A flattened loop that was specialised stands in several: one with its loads, one with its computes.

        They close on the line of the loop around it, of which a loop of neither may be left.
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
    """Places, and their lines alone: a pass that joins two loads of a line leaves their copies no column."""
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
    """Places of the direct computes themselves."""
    computes = (compute for item in region.rounds for compute in item.computes)
    return {chain for compute in computes for chains in compute.chains[:1] for chain in chains}


def _match_by_order(code: Code, loops: list[ReferenceRegion]) -> dict[int, ReferenceRegion]:
    """Without places: in order, when as many loops stand at the same depths.

    Else only those of matrix operations, when there are as many; none is better than the wrong one.
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
