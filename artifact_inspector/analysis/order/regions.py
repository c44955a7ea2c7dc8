"""The regions of a stage, and the program region that each one corresponds to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import inf

from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.places import Chain, chain_of, without_column
from artifact_inspector.analysis.order.matching import match_loops
from artifact_inspector.analysis.order.reference import STRAIGHT, ReferenceRegion, loop_names
from artifact_inspector.model import COMPUTES, LOADS, EventKind, RegionKind, Trait


class _Part(Enum):
    """What a loop holds if one loop of the program became several."""

    LOADS = "loads"
    COMPUTES = "computes"
    WORK = "work"
    """Loads and computes."""
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Region:
    """A loop, a partition or the straight-line code of one stage."""

    id: str
    kind: RegionKind
    blocks: frozenset[int]
    """Blocks directly in the region."""
    scope: frozenset[int]
    """The same plus the loops inside that only the compiler made: where its own loads may be."""
    whole: frozenset[int]
    """The same plus all loops inside: where its computes may be."""
    loop: int | None = None
    parent: str | None = None
    depth: int = 0
    reference: ReferenceRegion | None = None
    """The matching region of the program, if source locations identify it."""
    remains: tuple[int, ...] | None = None
    """For a program loop that is no loop at this stage: the remaining instructions."""
    computes_elsewhere: bool = False
    """Another loop computes on its loads, or it computes on another loop's loads (warp specialisation)."""

    def in_front(self, code: Code, indices: Sequence[int]) -> list[int]:
        """The instructions before the region's loop that run when the loop is entered."""
        if self.loop is None:
            return []
        flow, block_of = code.flow, code.flow.block_of
        header = code.rank[flow.loops[self.loop].header]
        blocks = {
            block
            for block in {block_of[index] for index in indices}.difference(self.whole)
            if code.rank[block] < header and flow.encloses(flow.loop_of[block], self.loop)
        }
        return [index for index in indices if block_of[index] in blocks] if blocks else []


def find_in_region(code: Code, region: Region, kinds: frozenset[EventKind]) -> list[int]:
    """Instructions of some kinds directly in a region, in execution order."""
    if region.remains is None:
        return code.find(kinds, region.blocks)
    return [index for index in region.remains if code.function.instructions[index].kind in kinds]


def count_with_trait(code: Code, region: Region, kind: EventKind, trait: Trait) -> int:
    """Number of instructions of a kind in a region that have a trait."""
    opcodes, instructions = code.opcodes_with(kind, trait), code.function.instructions
    if not opcodes:
        return 0
    return sum(instructions[i].opcode in opcodes for i in find_in_region(code, region, frozenset((kind,))))


def find_regions(code: Code, reference: tuple[ReferenceRegion, ...], *, exact: bool) -> tuple[Region, ...]:
    """The regions of a stage: straight-line code and partitions first, then the loops in execution order.

    Args:
        exact: the stage is the one that the reference was read from.
    """
    function, flow = code.function, code.flow
    if exact:
        matched = {region.loop: region for region in reference if region.loop is not None}
    else:
        matched = match_loops(code, reference)
    parts = _find_parts(code, reference, matched)
    own: dict[int | None, set[int]] = {loop: set() for loop in (None, *range(len(flow.loops)))}
    for block in range(len(function.blocks)):
        own[flow.loop_of[block]].add(block)
    partitions = [(one.name, frozenset(range(one.first, one.stop))) for one in function.partitions]
    homes = {block: name for name, inside in reversed(partitions) for block in inside}
    straight = own[None].difference(homes)
    by_id = {region.id: region for region in reference}
    everything = frozenset(range(len(function.blocks)))
    looped = frozenset().union(*(flow.loops[loop].blocks for loop in matched))
    regions = [
        Region(
            id=STRAIGHT,
            kind=RegionKind.STRAIGHT,
            blocks=frozenset(straight),
            scope=everything - looped,
            whole=everything,
            reference=by_id.get(STRAIGHT),
        )
    ]
    for name, inside in partitions:
        blocks = inside & own[None]
        regions.append(Region(name, RegionKind.PARTITION, blocks, blocks, inside, parent=STRAIGHT))
    names = _name_loops(code, by_id, matched, parts)
    for loop, natural in enumerate(flow.loops):
        region = matched.get(loop)
        if region is not None and parts.get(loop) is _Part.NOTHING:
            region = replace(region, rounds=(), other=())
        parent = homes.get(natural.header, STRAIGHT) if natural.parent is None else names[natural.parent]
        regions.append(
            Region(
                id=names[loop],
                kind=RegionKind.LOOP,
                loop=loop,
                parent=parent,
                depth=natural.depth,
                blocks=frozenset(own[loop]),
                scope=natural.blocks,
                whole=natural.blocks,
                reference=region,
                computes_elsewhere=parts.get(loop) in (_Part.LOADS, _Part.COMPUTES),
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
    parts: dict[int, _Part],
) -> dict[int, str]:
    """A name for every loop that means the same at every stage, also if a program loop became several.

    Their order in the text varies. The loop with matrix operations keeps the name. The others are
    numbered by the program lines that they compute on. Loops without any of the rounds come last.
    """
    flow = code.flow
    spare = loop_names(code)
    bases: dict[str, list[int]] = {}
    for loop in range(len(flow.loops)):
        region = matched.get(loop)
        base = spare[loop] if region is None else region.id
        if parts.get(loop) is _Part.LOADS:
            base += "/loads"  # the loop with the computes keeps the name
        if region is None and base in by_id:
            base = f"{base}'"  # made by the compiler, on the line of a loop of the program
        bases.setdefault(base, []).append(loop)
    names: dict[int, str] = {}
    for base, loops in bases.items():
        if parts.get(loops[0]) not in (None, _Part.LOADS):
            loops.sort(key=lambda loop: (parts[loop] is _Part.NOTHING, _held_first(code, loop)))
        for copy, loop in enumerate(loops, 1):
            names[loop] = base if copy == 1 else f"{base}/{copy}"
    return names


def _held_first(code: Code, loop: int) -> tuple[bool, float]:
    """Sort key: whether a loop has no matrix operation, and the first kernel line that it computes on."""
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
    """The region of a program loop that this stage has unrolled or folded away."""
    placed = code.once(_instructions_at)
    chains = {code.visible(chain) for chain in region.chains}
    left = [index for chain in chains if chain is not None for index in placed.get(chain, ())]
    left.sort(key=code.flow.position.__getitem__)
    none = frozenset[int]()
    kind = RegionKind.STRAIGHT
    return Region(
        region.id, kind, none, none, none, parent=region.parent, reference=region, remains=tuple(left)
    )


def _instructions_at(code: Code) -> dict[Chain, list[int]]:
    """Loads, computes and branches by location."""
    found: dict[Chain, list[int]] = {}
    for index, chain in code.chains.items():
        found.setdefault(chain, []).append(index)
    return found


def _statement_places(code: Code, reference: tuple[ReferenceRegion, ...]) -> set[Chain | None]:
    """Locations of all load statements of the program, as this stage writes them."""
    return {code.visible(s.chain) for region in reference for s in (*region.statements, *region.other)}


def _find_parts(
    code: Code, reference: tuple[ReferenceRegion, ...], matched: dict[int, ReferenceRegion]
) -> dict[int, _Part]:
    """What each loop holds if one loop of the program became several; empty for other loops.

    Warp specialisation puts the loads in one loop and the computes in another. A loop around them is
    repeated in every partition, and one partition may do all its own work. A load whose location matches
    no statement counts for the loop that contains it, because partitioning passes put their copies at the
    function's own line.
    """
    known = _statement_places(code, reference)
    holds: dict[str, dict[int, _Part]] = {}
    for loop, region in matched.items():
        if not region.rounds:
            continue
        loads = {chain for s in region.statements if (chain := code.visible(s.chain)) is not None}
        loads |= {without_column(chain) for chain in loads}
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
        part = _Part.WORK if has_compute else _Part.LOADS
        if not has_load:
            part = _Part.COMPUTES if has_compute else _Part.NOTHING
        holds.setdefault(region.id, {})[loop] = part
    found: dict[int, _Part] = {}
    for parts in holds.values():
        present = set(parts.values())
        if {_Part.LOADS, _Part.COMPUTES} <= present and _Part.WORK not in present:
            found.update(
                (loop, _Part.COMPUTES if part is _Part.NOTHING else part) for loop, part in parts.items()
            )
        elif _Part.WORK in present and _Part.NOTHING in present:
            found.update(
                (loop, _Part.WORK if part is not _Part.NOTHING else part) for loop, part in parts.items()
            )
    return found
