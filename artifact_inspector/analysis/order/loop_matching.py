"""Matches the loops of a stage to the loops of the program: by source locations, or else by order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from artifact_inspector.analysis.flow.function_code import LOCATED_KINDS, FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain, without_column
from artifact_inspector.analysis.order.reference_regions import ReferenceRegion, loop_chain
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind

MAX_CANDIDATES = 64
"""Limit on the program loops tried for one loop of the stage, among those with the same signature that are in use."""
CLOSING_SCORE = 100.0
"""Score for closing on the line of a loop. A common load or compute scores 1, any other location 0.01."""

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_WAITS = frozenset({EventKind.WAIT})
_COUNTED = LOADS | {EventKind.MATRIX}
_WORK = LOADS | COMPUTES | SINKS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}


def match_loops(code: FunctionCode, reference: tuple[ReferenceRegion, ...]) -> dict[int, ReferenceRegion]:
    """The program region of each natural loop that could be matched."""
    loops = [region for region in reference if region.loop is not None]
    if not loops or not code.flow.loops:
        return {}
    if not any(region.chains for region in reference) or not code.chains:
        return _match_by_order(code, loops)
    return _LoopMatcher(code, loops).run()


@dataclass(frozen=True, slots=True)
class _LoopSignature:
    """Locations that identify a program loop at a stage. Equal for copies of a helper inlined twice."""

    closing_location: Chain | None
    event_locations: frozenset[Chain]
    """Locations of its loads and direct computes."""
    all_locations: frozenset[Chain | None]
    """Locations of everything in it."""


class _LoopMatcher:
    def __init__(self, code: FunctionCode, loops: list[ReferenceRegion]) -> None:
        self._code, self._flow, self._loops = code, code.flow, loops
        self._regions_by_signature: dict[_LoopSignature, list[int]] = {}
        """Look → the loops of the program that have it, in order."""
        for region_index, region in enumerate(loops):
            visible = code.visible_chain
            signature = _LoopSignature(
                visible(region.chain),
                _with_lines(visible(chain) for chain in _event_chains(region)),
                frozenset(visible(chain) for chain in region.chains),
            )
            self._regions_by_signature.setdefault(signature, []).append(region_index)
        self._scores: dict[int, dict[_LoopSignature, float]] = {}
        """Natural loop → the score of each look."""
        self._event_locations: dict[int, set[Chain]] = {}
        """Natural loop → the locations of its own loads and computes."""
        self._region_of_loop: dict[int, int] = {}
        self._loops_of_region: dict[int, list[int]] = {}
        """Loop of the program → the natural loops that it was assigned to."""
        self._assigned_count: dict[_LoopSignature, int] = {}
        """Look → how many of its program loops are known to be assigned."""

    def run(self) -> dict[int, ReferenceRegion]:
        self._score()
        self._assign_by_score()
        self._assign_flattened()
        self._assign_specialised()
        return {natural: self._loops[region_index] for natural, region_index in self._region_of_loop.items()}

    # -- scores ---------------------------------------------------------------------

    def _score(self) -> None:
        closing_at = _group_by_key((signature.closing_location, signature) for signature in self._regions_by_signature)
        strong_at = _group_by_key(
            (chain, signature) for signature in self._regions_by_signature for chain in signature.event_locations
        )
        weak_at = _group_by_key(
            (chain, signature) for signature in self._regions_by_signature for chain in signature.all_locations
        )
        closed_by: set[tuple[int, _LoopSignature]] = set()
        for natural in reversed(range(len(self._flow.loops))):  # inner loops first
            blocks = self._flow.loops[natural].blocks
            own_blocks = frozenset(block for block in blocks if self._flow.loop_of[block] == natural)
            event_locations, all_locations = self._find_locations(own_blocks)
            self._event_locations[natural] = event_locations
            if self._is_spin_loop(natural):
                continue
            scores: dict[_LoopSignature, float] = {}
            for chain in event_locations:
                for signature in strong_at.get(chain, ()):
                    scores[signature] = scores.get(signature, 0.0) + 1.0
            common_locations: dict[_LoopSignature, int] = {}
            for chain in all_locations:
                for signature in weak_at.get(chain, ()):
                    common_locations[signature] = common_locations.get(signature, 0) + 1
            for signature, count in common_locations.items():
                scores[signature] = scores.get(signature, 0.0) + 0.01 * count
            closing = self._code.visible_chain(loop_chain(self._code, natural))
            for signature in closing_at.get(closing, ()) if closing is not None else ():
                # An enclosing loop may close on a line left over from the loop inside it.
                scores.setdefault(signature, 0.0)
                if (natural, signature) not in closed_by:
                    scores[signature] += CLOSING_SCORE
                closed_by.update((outer, signature) for outer in self._enclosing_loops(natural))
            self._scores[natural] = {signature: score for signature, score in scores.items() if score > 0}

    def _find_locations(self, blocks: frozenset[int]) -> tuple[set[Chain], set[Chain]]:
        """Locations of the loads and computes in some blocks, and of everything that has one."""
        event_locations: set[Chain] = set()
        all_locations: set[Chain] = set()
        for index in self._code.find(LOCATED_KINDS, blocks):
            chain = self._code.chains.get(index)
            if chain is not None:
                all_locations.add(chain)
                if self._code.function.instructions[index].kind is not EventKind.BRANCH:
                    event_locations.add(chain)
        return event_locations, all_locations

    def _is_spin_loop(self, loop: int) -> bool:
        """True for a loop that only polls a barrier (SASS)."""
        blocks = self._flow.loops[loop].blocks
        return bool(self._code.find(_WAITS, blocks)) and not self._code.find(_WORK, blocks)

    def _enclosing_loops(self, loop: int) -> list[int]:
        enclosing_loops: list[int] = []
        parent = self._flow.loops[loop].parent
        while parent is not None:
            enclosing_loops.append(parent)
            parent = self._flow.loops[parent].parent
        return enclosing_loops

    # -- choice ---------------------------------------------------------------------

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
            if natural not in self._region_of_loop:
                region_index = self._pick_region(natural, -negated)
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
        assigned_regions = sorted(
            region_index
            for signature in ties
            for region_index in self._regions_by_signature[signature][:MAX_CANDIDATES]
        )
        return next(
            (region_index for region_index in assigned_regions if not self._conflicts(region_index, natural)), None
        )

    def _first_free_region(self, signature: _LoopSignature) -> int | None:
        region_indices = self._regions_by_signature[signature]
        assigned_count = self._assigned_count.get(signature, 0)
        while assigned_count < len(region_indices) and region_indices[assigned_count] in self._loops_of_region:
            assigned_count += 1
        self._assigned_count[signature] = assigned_count
        return region_indices[assigned_count] if assigned_count < len(region_indices) else None

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

    # -- loops that were flattened ----------------------------------------------------

    def _assign_flattened(self) -> None:
        """Assign a loop that was flattened into the enclosing one, which closes on its line.

        The contents identify it. The rest of the enclosing loop is another loop: the iterations without the inner one.
        """
        candidates_by_signature: dict[_LoopSignature, list[tuple[float, int]]] = {}
        for natural, scores in self._scores.items():
            for signature, score in scores.items():
                if score % CLOSING_SCORE >= min(2, len(signature.event_locations)) > 0:
                    candidates_by_signature.setdefault(signature, []).append((score % CLOSING_SCORE, natural))
        for signature, region_indices in self._regions_by_signature.items():
            candidates = sorted(candidates_by_signature.get(signature, []))
            for region_index in region_indices:
                if self._loops_of_region.get(region_index) or not self._loops[region_index].rounds:
                    continue
                while candidates and not self._may_be_flattened(candidates[-1][1], region_index):
                    candidates.pop()
                if candidates:
                    self._assign_region(candidates.pop()[1], region_index)

    def _may_be_flattened(self, natural: int, region_index: int) -> bool:
        """True for a loop matched to a program loop without rounds, or to one that was to be flattened."""
        if natural not in self._region_of_loop:
            return False
        matched_region = self._loops[self._region_of_loop[natural]]
        return not matched_region.rounds or (
            matched_region.is_flattened and self._loops[region_index].parent == matched_region.id
        )

    def _assign_specialised(self) -> None:
        """Assign a flattened and specialised loop: one natural loop has its loads, another its computes.

        They close on the line of the enclosing loop, which may be left over as a loop with neither.
        """
        loops_by_location = _group_by_key(
            (chain, natural) for natural, events in self._event_locations.items() for chain in events
        )
        visible = self._code.visible_chain
        for region_index, region in enumerate(self._loops):
            if not region.rounds or not region.statements:
                continue
            loads = _with_lines(visible(s.chain) for s in region.statements)
            computes = {
                visible_chain for chain in _compute_chains(region) if (visible_chain := visible(chain)) is not None
            }
            loading = {
                n for chain in loads for n in loops_by_location.get(chain, ()) if self._may_match(n, region_index)
            }
            computing = {
                n for chain in computes for n in loops_by_location.get(chain, ()) if self._may_match(n, region_index)
            }
            if not loading or not computing or loading & computing:
                continue
            split_loops = loading | computing
            if not any(outer in split_loops for natural in split_loops for outer in self._enclosing_loops(natural)):
                for natural in sorted(split_loops):
                    self._assign_region(natural, region_index)

    def _may_match(self, natural: int, region_index: int) -> bool:
        return self._region_of_loop.get(natural) == region_index or self._may_be_flattened(natural, region_index)


def _with_lines(chains: Iterable[Chain | None]) -> frozenset[Chain]:
    """The locations with and without column: a pass that merges two loads of a line drops the column."""
    locations = {chain for chain in chains if chain is not None}
    return frozenset(locations | {without_column(chain) for chain in locations})


def _group_by_key(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    groups: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _event_chains(region: ReferenceRegion) -> set[Chain]:
    chains = {s.chain for s in (*region.statements, *region.unassigned_loads) if s.chain is not None}
    return chains | _compute_chains(region)


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
    kinds = [{code.function.instructions[i].kind for i in code.find(_COUNTED, loop.blocks)} for loop in flow.loops]
    eventful = [loop for loop, loop_kinds in enumerate(kinds) if loop_kinds]
    eventful_regions = [region for region in loops if region.rounds or region.unassigned_loads or region.has_matrix]
    for candidates, regions in (
        (list(range(len(flow.loops))), loops),
        (eventful, eventful_regions),
        ([e for e in eventful if EventKind.MATRIX in kinds[e]], [r for r in eventful_regions if r.has_matrix]),
    ):
        depths = [flow.loops[loop].depth for loop in candidates]
        if depths == [region.depth for region in regions]:
            return dict(zip(candidates, regions, strict=True))
    return {}
