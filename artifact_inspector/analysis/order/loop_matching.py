"""Matches the loops of a stage to the loops of the program: by source locations, or else by order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from artifact_inspector.analysis.flow.function_code import LOCATED_KINDS, FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain, without_column
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, loop_chain
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind

MAX_CANDIDATES = 64
"""Limit on the program loops tried for one loop of the stage, among those with the same signature that are in use."""
CLOSING_SCORE = 100.0
"""Score for closing on the line of a loop. A common load or compute scores 1, any other location 0.01."""

_WAITS = frozenset({EventKind.WAIT})
_COUNTED = LOADS | {EventKind.MATRIX}
_WORK = LOADS | COMPUTES | SINKS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}


def match_loops(
    code: FunctionCode, reference: tuple[ReferenceRegion, ...], nested: frozenset[str] = frozenset()
) -> dict[int, ReferenceRegion]:
    """The program region of each natural loop that could be matched.

    Args:
        nested: loops that the previous stage has inside others; no back end makes one loop of two.
    """
    loops = [region for region in reference if region.loop is not None]
    if not loops or not code.flow.loops:
        return {}
    if not any(region.chains for region in reference) or not code.chains:
        return _match_by_order(code, loops)
    return _LoopMatcher(code, loops, nested).run()


class _LoopSignature(NamedTuple):
    """Locations that identify a program loop at a stage. Equal for copies of a helper inlined twice."""

    closing: Chain | None
    """Location that closes it."""
    event_locations: frozenset[Chain]
    """Locations of its loads and direct computes."""
    all_locations: frozenset[Chain | None]
    """Locations of everything in it."""


class _LoopMatcher:
    def __init__(self, code: FunctionCode, loops: list[ReferenceRegion], nested: frozenset[str]) -> None:
        self._code, self._flow, self._loops, self._nested = code, code.flow, loops, nested
        self._regions_by_signature: dict[_LoopSignature, list[int]] = {}
        self._regions_by_signature = group_by_key((self._signature(region), n) for n, region in enumerate(loops))
        """The loops of the program that have a signature, in order."""
        self._scores: dict[int, dict[_LoopSignature, float]] = {}
        """Natural loop → the score of each signature."""
        self._event_locations: dict[int, set[Chain]] = {}
        """Natural loop → the locations of its own loads and computes."""
        self._region_of_loop: dict[int, int] = {}
        self._loops_of_region: dict[int, list[int]] = {}
        """Loop of the program → the natural loops that it was assigned to."""
        self._assigned_count: Counter[_LoopSignature] = Counter()
        """How many program loops of a signature are known to be assigned."""

    def run(self) -> dict[int, ReferenceRegion]:
        self._score()
        self._assign_by_score()
        self._assign_flattened()
        self._assign_specialised()
        return {natural: self._loops[region_index] for natural, region_index in self._region_of_loop.items()}

    def _signature(self, region: ReferenceRegion) -> _LoopSignature:
        visible = self._code.visible_chain
        chains = {s.chain for s in (*region.statements, *region.unassigned_loads) if s.chain is not None}
        matrix = frozenset[Chain]() if region.schedule is None else region.matrix_chains
        events = _with_lines(map(visible, chains | _compute_chains(region) | matrix))
        return _LoopSignature(visible(region.chain), events, frozenset(map(visible, region.chains)))

    def _score(self) -> None:
        signatures = self._regions_by_signature
        closing_at = group_by_key((signature.closing, signature) for signature in signatures)
        strong_at = group_by_key((chain, s) for s in signatures for chain in s.event_locations)
        weak_at = group_by_key((chain, s) for s in signatures for chain in s.all_locations)
        closed_by: set[tuple[int, _LoopSignature]] = set()
        for natural in reversed(range(len(self._flow.loops))):  # inner loops first
            blocks = self._flow.loops[natural].blocks
            loop_blocks = frozenset(block for block in blocks if self._flow.loop_of[block] == natural)
            code = self._code
            located = [i for i in code.find(LOCATED_KINDS, loop_blocks) if i in code.chains]
            all_locations = {code.chains[index] for index in located}
            event_locations = {code.chains[i] for i in located if code.instructions[i].kind is not EventKind.BRANCH}
            self._event_locations[natural] = event_locations
            if self._code.find(_WAITS, blocks) and not self._code.find(_WORK, blocks):
                continue  # it only polls a barrier (SASS)
            scores: dict[_LoopSignature, float] = {}
            for chain in event_locations:
                for signature in strong_at.get(chain, ()):
                    scores[signature] = scores.get(signature, 0.0) + 1.0
            common = Counter(signature for chain in all_locations for signature in weak_at.get(chain, ()))
            for signature, count in common.items():
                scores[signature] = scores.get(signature, 0.0) + 0.01 * count
            closing = self._code.visible_chain(loop_chain(self._code, natural))
            for signature in closing_at.get(closing, ()) if closing is not None else ():
                # An enclosing loop may close on a line left over from the loop inside it.
                scores.setdefault(signature, 0.0)
                if (natural, signature) not in closed_by:
                    scores[signature] += CLOSING_SCORE
                closed_by.update((outer, signature) for outer in self._flow.enclosing(natural) if outer != natural)
            self._scores[natural] = {signature: score for signature, score in scores.items() if score > 0}

    def _assign_by_score(self) -> None:
        """Assign the best program region to each loop, highest score first.

        Of nested loops only one can match a given loop of the program. Prologue copies make the enclosing loop look the
        same, and so do the loops that dispatch the warps of a specialised kernel.
        """
        order = sorted(
            (
                (-score, natural, self._regions_by_signature[signature][0])
                for natural, scores in self._scores.items()
                for signature, score in scores.items()
            )
        )
        for negated, natural, _ in order:
            region_index = None if natural in self._region_of_loop else self._pick_region(natural, -negated)
            if region_index is not None:
                self._assign_region(natural, region_index)

    def _pick_region(self, natural: int, score: float) -> int | None:
        # A helper inlined twice is ambiguous where only its own line is kept: assign its copies in order.
        ties = [signature for signature, other_score in self._scores[natural].items() if other_score == score]
        free_regions = [
            region_index for signature in ties if (region_index := self._first_free_region(signature)) is not None
        ]
        if free_regions:
            return min(free_regions)
        assigned = sorted(i for signature in ties for i in self._regions_by_signature[signature][:MAX_CANDIDATES])
        return next((region_index for region_index in assigned if not self._conflicts(region_index, natural)), None)

    def _first_free_region(self, signature: _LoopSignature) -> int | None:
        region_indices = self._regions_by_signature[signature]
        while self._assigned_count[signature] < len(region_indices):
            region_index = region_indices[self._assigned_count[signature]]
            if region_index not in self._loops_of_region:
                return region_index
            self._assigned_count[signature] += 1
        return None

    def _conflicts(self, region_index: int, natural: int) -> bool:
        """True if a loop of the program is already assigned to a loop around or inside another."""
        encloses = self._flow.encloses
        return any(
            encloses(assigned_loop, natural) or encloses(natural, assigned_loop)
            for assigned_loop in self._loops_of_region[region_index]
        )

    def _assign_region(self, natural: int, region_index: int) -> None:
        previous_region = self._region_of_loop.get(natural)
        if previous_region is not None:
            self._loops_of_region[previous_region].remove(natural)
        self._region_of_loop[natural] = region_index
        self._loops_of_region.setdefault(region_index, []).append(natural)

    def _assign_flattened(self) -> None:
        """Assign a loop that was flattened into the enclosing one, which closes on its line.

        The contents identify it. The rest of the enclosing loop is another loop: the iterations without the inner one.
        """
        candidates_by_signature = group_by_key(
            (signature, (score % CLOSING_SCORE, natural))
            for natural, scores in self._scores.items()
            for signature, score in scores.items()
            if score % CLOSING_SCORE >= min(2, len(signature.event_locations)) > 0
        )
        for signature, region_indices in self._regions_by_signature.items():
            candidates = sorted(candidates_by_signature.get(signature, []))
            for region_index in region_indices:
                region = self._loops[region_index]
                if self._loops_of_region.get(region_index) or not region.rounds or region.id in self._nested:
                    continue
                while candidates and not self._may_be_flattened(candidates[-1][1], region_index):
                    candidates.pop()
                if candidates:
                    self._assign_region(candidates.pop()[1], region_index)

    def _may_be_flattened(self, natural: int, region_index: int) -> bool:
        """True for a loop matched to a program loop without rounds, or to one that was to be flattened."""
        if natural not in self._region_of_loop:
            return False
        matched = self._loops[self._region_of_loop[natural]]
        return not matched.rounds or (matched.is_flattened and self._loops[region_index].parent == matched.id)

    def _assign_specialised(self) -> None:
        """Assign a flattened and specialised loop: one natural loop has its loads, another its computes.

        They close on the line of the enclosing loop, which may be left over as a loop with neither.
        """
        loops_by_location = group_by_key(
            (chain, natural) for natural, events in self._event_locations.items() for chain in events
        )
        visible = self._code.visible_chain
        for region_index, region in enumerate(self._loops):
            if not region.rounds or not region.statements or region.schedule is not None:
                continue  # a program that specialises its warps itself has a loop for each

            def matching(chains: Iterable[Chain | None], region_index: int = region_index) -> set[int]:
                loops = (natural for chain in chains if chain for natural in loops_by_location.get(chain, ()))
                return {
                    natural
                    for natural in loops
                    if self._region_of_loop.get(natural) == region_index
                    or self._may_be_flattened(natural, region_index)
                }

            loading = matching(_with_lines(visible(s.chain) for s in region.statements))
            computing = matching(map(visible, _compute_chains(region)))
            if not loading or not computing or loading & computing:
                continue
            split = loading | computing
            if all(split.isdisjoint({*self._flow.enclosing(natural)} - {natural}) for natural in split):
                for natural in sorted(split):
                    self._assign_region(natural, region_index)


def _with_lines(chains: Iterable[Chain | None]) -> frozenset[Chain]:
    """The locations with and without column: a pass that merges two loads of a line drops the column."""
    locations = {chain for chain in chains if chain is not None}
    return frozenset(locations | {without_column(chain) for chain in locations})


def _compute_chains(region: ReferenceRegion) -> set[Chain]:
    """Locations of the direct computes themselves."""
    computes = (compute for item in region.rounds for compute in item.computes)
    return {chain for compute in computes for chains in compute.chains[:1] for chain in chains}


def _match_by_order(code: FunctionCode, loops: list[ReferenceRegion]) -> dict[int, ReferenceRegion]:
    """Match in order if as many loops are at the same depths, for stages without locations.

    Otherwise match only the loops with matrix operations, if their number is equal. No match is better than a wrong
    one.
    """
    flow = code.flow
    kinds = [{code.instructions[i].kind for i in code.find(_COUNTED, loop.blocks)} for loop in flow.loops]
    eventful = [loop for loop, loop_kinds in enumerate(kinds) if loop_kinds]
    eventful_regions = [region for region in loops if region.rounds or region.unassigned_loads or region.has_matrix]
    for candidates, regions in (
        (list(range(len(flow.loops))), loops),
        (eventful, eventful_regions),
        ([e for e in eventful if EventKind.MATRIX in kinds[e]], [r for r in eventful_regions if r.has_matrix]),
    ):
        if [flow.loops[loop].depth for loop in candidates] == [region.depth for region in regions]:
            return dict(zip(candidates, regions, strict=True))
    return {}
