"""The regions of a stage, and which region of the program each of them is."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from artifact_inspector.analysis.flow.code import PLACED, Code
from artifact_inspector.analysis.flow.places import Chain, chain_of
from artifact_inspector.analysis.order.reference import STRAIGHT, ReferenceRegion, loop_chain, loop_names
from artifact_inspector.model import COMPUTES, LOADS, SINKS, EventKind, RegionKind, Trait

__all__ = ["Region", "count_with_trait", "find_in_region", "find_regions"]


_WAITS = frozenset({EventKind.WAIT})
_COUNTED = LOADS | {EventKind.MATRIX}
_WORK = LOADS | COMPUTES | SINKS | {EventKind.SHARED_LOAD, EventKind.SHARED_STORE}


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, a partition or the straight-line code of one stage."""

    id: str
    kind: RegionKind
    loop: int | None
    parent: str | None
    depth: int
    blocks: frozenset[int]
    """Blocks that stand directly in it."""
    scope: frozenset[int]
    """The same with loops inside that only the compiler made: where its own loads may stand."""
    whole: frozenset[int]
    """The same with all loops inside: where its computes may stand."""
    reference: ReferenceRegion | None
    """The region of the program that it is, as far as the places tell."""
    remains: tuple[int, ...] | None = None
    """Of a loop of the program that is no loop here: the instructions that are left of it."""
    computes_elsewhere: bool = False
    """Its loads are computed on in another loop (or it computes on another's): warp-specialised."""


def find_in_region(code: Code, region: Region, kinds: frozenset[EventKind]) -> list[int]:
    """Instructions of some kinds that stand directly in a region, in execution order."""
    if region.remains is None:
        return code.find(kinds, region.blocks)
    return [index for index in region.remains if code.function.instructions[index].kind in kinds]


def count_with_trait(code: Code, region: Region, kind: EventKind, trait: Trait) -> int:
    """How many instructions of a kind in a region have a trait."""
    return sum(code.has(index, trait) for index in find_in_region(code, region, frozenset((kind,))))


def find_regions(code: Code, reference: tuple[ReferenceRegion, ...], *, exact: bool) -> tuple[Region, ...]:
    """Straight-line code and partitions first, then the loops in execution order.

    Args:
        exact: the stage is the one that the reference was read from.
    """
    function, flow = code.function, code.flow
    if exact:
        matched = {region.loop: region for region in reference if region.loop is not None}
    else:
        matched = _match_loops(code, reference)
    split = _split_regions(code, reference, matched)
    own: dict[int | None, set[int]] = {loop: set() for loop in (None, *range(len(flow.loops)))}
    for block in range(len(function.blocks)):
        own[flow.loop_of[block]].add(block)
    straight = own[None]
    partitions = []
    for partition in function.partitions:
        inside = frozenset(range(partition.first, partition.stop))
        partitions.append((partition.name, inside))
        straight = straight - inside
    by_id = {region.id: region for region in reference}
    everything = frozenset(range(len(function.blocks)))
    looped = frozenset().union(*(flow.loops[loop].blocks for loop in matched))
    regions = [
        Region(
            STRAIGHT,
            RegionKind.STRAIGHT,
            None,
            None,
            0,
            frozenset(straight),
            everything - looped,
            everything,
            by_id.get(STRAIGHT),
        )
    ]
    for name, inside in partitions:
        blocks = frozenset(own[None]) & inside
        regions.append(Region(name, RegionKind.PARTITION, None, STRAIGHT, 0, blocks, blocks, inside, None))
    names = _name_loops(code, by_id, matched, split)
    for loop, natural in enumerate(flow.loops):
        region = matched.get(loop)
        home = next((n for n, inside in partitions if natural.header in inside), STRAIGHT)
        parent = home if natural.parent is None else names[natural.parent]
        regions.append(
            Region(
                names[loop],
                RegionKind.LOOP,
                loop,
                parent,
                natural.depth,
                frozenset(own[loop]),
                natural.blocks,
                natural.blocks,
                region,
                computes_elsewhere=loop in split,
            )
        )
    if not exact:
        found = {region.id for region in matched.values()}
        regions += [
            _remains(code, region)
            for region in reference
            if region.loop is not None and region.id not in found
        ]
    return tuple(regions)


def _name_loops(
    code: Code,
    by_id: dict[str, ReferenceRegion],
    matched: dict[int, ReferenceRegion],
    split: dict[int, str],
) -> dict[int, str]:
    """A name for every loop, which means the same at every stage where one of the program became several.

    They stand in any order in the text: the one with matrix operations keeps the name, the others are
    numbered in the order of the program's lines that they compute on.
    """
    flow = code.flow
    spare = loop_names(code)
    bases: dict[str, list[int]] = {}
    for loop in range(len(flow.loops)):
        region = matched.get(loop)
        base = spare[loop] if region is None else region.id
        if split.get(loop) == "loads":
            base += "/loads"  # the computes keep the loop's name
        if region is None and base in by_id:
            base = f"{base}'"  # a loop that the compiler made on a line that has one of its own
        bases.setdefault(base, []).append(loop)
    names: dict[int, str] = {}
    for base, loops in bases.items():
        if split.get(loops[0]) == "computes":
            loops.sort(key=lambda loop: _held_first(code, loop))
        for copy, loop in enumerate(loops, 1):
            names[loop] = base if copy == 1 else f"{base}/{copy}"
    return names


def _held_first(code: Code, loop: int) -> tuple[bool, float]:
    """Whether a loop holds no matrix operation, and the first line of the kernel that it computes on."""
    home = chain_of(code.function.location)
    has_matrix = False
    first = inf
    for index in code.find(COMPUTES, code.flow.loops[loop].blocks):
        kind, chain = code.function.instructions[index].kind, code.chains.get(index)
        has_matrix = has_matrix or kind is EventKind.MATRIX
        if chain is None or code.is_homeless(chain):
            continue
        if home is None or chain[-1][0] == home[-1][0]:
            first = min(first, chain[-1][1])
    return not has_matrix, first


def _remains(code: Code, region: ReferenceRegion) -> Region:
    """A loop of the program that this stage has unrolled or folded away."""
    chains = {code.visible(chain) for chain in region.chains}
    left = tuple(index for index, chain in code.chains.items() if chain in chains)
    return Region(
        region.id,
        RegionKind.STRAIGHT,
        None,
        region.parent,
        0,
        frozenset(),
        frozenset(),
        frozenset(),
        region,
        left,
    )


def _match_loops(code: Code, reference: tuple[ReferenceRegion, ...]) -> dict[int, ReferenceRegion]:
    """Which loop of the program each natural loop is."""
    loops = [region for region in reference if region.loop is not None]
    if not loops or not code.flow.loops:
        return {}
    if not any(region.chains for region in reference) or not code.chains:
        return _match_by_order(code, loops)
    wanted = [
        (
            code.visible(region.chain),
            {code.visible(chain) for chain in _strong_chains(region)},
            {code.visible(chain) for chain in region.chains},
        )
        for region in loops
    ]
    scores: dict[tuple[int, int], float] = {}
    closed_by: set[tuple[int, int]] = set()
    for natural in reversed(range(len(code.flow.loops))):  # inner loops first
        blocks = frozenset(b for b in code.flow.loops[natural].blocks if code.flow.loop_of[b] == natural)
        if _spins(code, natural):
            continue
        events, anywhere = _places(code, blocks)
        closing = code.visible(loop_chain(code, natural))
        for place, (closes, strong, weak) in enumerate(wanted):
            score = float(len(strong & events))
            if closing is not None and closes == closing:
                # The loop around may close on a line that was left standing from the one inside.
                if (natural, place) not in closed_by:
                    score += 100.0
                closed_by.update((outer, place) for outer in _ancestors(code, natural))
            score += 0.01 * len(weak & anywhere)
            if score > 0:
                scores[natural, place] = score
    chosen = _assign(code, scores)
    _give_to_unmatched(chosen, loops, scores)
    _give_to_partitions(code, chosen, loops)
    return {natural: loops[place] for natural, place in chosen.items()}


def _spins(code: Code, loop: int) -> bool:
    """True for a loop that only waits for a barrier, by asking again and again (SASS)."""
    blocks = code.flow.loops[loop].blocks
    return bool(code.find(_WAITS, blocks)) and not code.find(_WORK, blocks)


def _give_to_unmatched(
    chosen: dict[int, int], loops: list[ReferenceRegion], scores: dict[tuple[int, int], float]
) -> None:
    """A loop flattened into the one around it closes on that one's line: what it holds tells it."""
    for place, region in enumerate(loops):
        if place in chosen.values() or not region.rounds:
            continue
        held = [
            (score % 100, natural)
            for (natural, p), score in scores.items()
            if p == place and natural in chosen and not loops[chosen[natural]].rounds and score % 100 >= 2
        ]
        if held:
            chosen[max(held)[1]] = place


def _give_to_partitions(code: Code, chosen: dict[int, int], loops: list[ReferenceRegion]) -> None:
    """A flattened loop that was specialised stands in several: one with its loads, one with its computes.

    They close on the line of the loop around it, of which a loop of neither may be left.
    """
    for place, region in enumerate(loops):
        if not region.rounds or not region.statements:
            continue
        loads = {code.visible(s.chain) for s in region.statements} - {None}
        computes = {code.visible(chain) for chain in _compute_chains(region)} - {None}
        candidates = [n for n, p in chosen.items() if p == place or not loops[p].rounds]
        holds = {}
        for natural in candidates:
            own = frozenset(b for b in code.flow.loops[natural].blocks if code.flow.loop_of[b] == natural)
            events, _ = _places(code, own)
            holds[natural] = (not events.isdisjoint(loads), not events.isdisjoint(computes))
        if (True, True) in holds.values():
            continue
        apart = [natural for natural, held in holds.items() if any(held)]
        if {holds[n] for n in apart} == {(True, False), (False, True)} and not any(
            outer in apart for natural in apart for outer in _ancestors(code, natural)
        ):
            chosen.update(dict.fromkeys(apart, place))


def _assign(code: Code, scores: dict[tuple[int, int], float]) -> dict[int, int]:
    """The best region for each loop, best fits first.

    Of nested loops only one can be a given loop of the program: prologue copies make the one around
    it look alike, and so do the loops that send the warps of a specialised kernel to their work.
    """
    chosen: dict[int, int] = {}
    around = [_ancestors(code, loop) for loop in range(len(code.flow.loops))]
    for (natural, _), score in sorted(scores.items(), key=lambda item: (-item[1], item[0])):
        if natural in chosen:
            continue
        # A helper inlined twice looks the same where only its own line is kept: take them in turn.
        ties = sorted(
            (place for (n, place), other in scores.items() if n == natural and other == score),
            key=lambda place: (place in chosen.values(), place),
        )
        for place in ties:
            if not any(
                chosen.get(loop) == place and (loop in around[natural] or natural in around[loop])
                for loop in chosen
            ):
                chosen[natural] = place
                break
    return chosen


def _ancestors(code: Code, loop: int) -> list[int]:
    found: list[int] = []
    parent = code.flow.loops[loop].parent
    while parent is not None:
        found.append(parent)
        parent = code.flow.loops[parent].parent
    return found


def _places(code: Code, blocks: frozenset[int]) -> tuple[set[Chain], set[Chain]]:
    """Places of the loads and computes in some blocks, and of everything that has one."""
    events: set[Chain] = set()
    anywhere: set[Chain] = set()
    for index in code.find(PLACED, blocks):
        chain = code.chains.get(index)
        if chain is not None:
            anywhere.add(chain)
            if code.function.instructions[index].kind is not EventKind.BRANCH:
                events.add(chain)
    return events, anywhere


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


def _statement_places(code: Code, reference: tuple[ReferenceRegion, ...]) -> set[Chain | None]:
    """Places of all load statements of the program, as this stage writes them."""
    return {code.visible(s.chain) for region in reference for s in (*region.statements, *region.other)}


def _split_regions(
    code: Code, reference: tuple[ReferenceRegion, ...], matched: dict[int, ReferenceRegion]
) -> dict[int, str]:
    """Loops that hold only the `loads`, or only the `computes`, of a region that none holds both of.

    A load at the place of no statement counts for the loop it stands in: partitioning passes put
    their copies at the function's own line.
    """
    known = _statement_places(code, reference)
    holds: dict[str, dict[int, tuple[bool, bool]]] = {}
    for loop, region in matched.items():
        if not region.rounds:
            continue
        loads = {code.visible(s.chain) for s in region.statements}
        computes = {
            code.visible(chain)
            for item in region.rounds
            for c in item.computes
            for level in c.chains
            for chain in level
        }
        has_load = has_compute = False
        blocks = code.flow.loops[loop].blocks
        for index in code.find(LOADS, blocks):
            if code.flow.loop_at(index) == loop:
                chain = code.chains.get(index)
                has_load = has_load or chain in loads or (chain not in known and code.is_homeless(chain))
        for index in code.find(COMPUTES, blocks):
            chain = code.chains.get(index)
            has_compute = has_compute or (chain is not None and chain in computes)
        holds.setdefault(region.id, {})[loop] = (has_load, has_compute)
    split: dict[int, str] = {}
    for found in holds.values():
        pairs = set(found.values())
        if (True, False) in pairs and (False, True) in pairs and (True, True) not in pairs:
            split.update({loop: "loads" if has_load else "computes" for loop, (has_load, _) in found.items()})
    return split
