"""The regions of a stage, and the program region that each one corresponds to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from math import inf

from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.source_locations import Chain, chain_of, source_of, without_column
from artifact_inspector.analysis.flow.traversal import group_by_key
from artifact_inspector.analysis.order.loop_matching import match_loops
from artifact_inspector.analysis.order.reference_regions import STRAIGHT, ReferenceRegion, loop_names
from artifact_inspector.model import COMPUTES, LOADS, EventKind, OrderVerdict, RegionKind, SourceLine, Trait

_ALL_KINDS = frozenset(EventKind)
TRIP_KINDS = frozenset(
    kind.count_name for kind in (EventKind.WAIT, EventKind.BARRIER, EventKind.LOCAL_LOAD, EventKind.LOCAL_STORE)
)
"""Kinds that every iteration pays for, whatever else it does: waits, barriers and accesses to scratch memory."""

_NO_WORK = frozenset(kind.count_name for kind in (EventKind.OTHER, EventKind.BRANCH, EventKind.SCHEDULE_HINT))
_MOST_KINDS = 3


class _LoopShare(Enum):
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
    enclosed_blocks: frozenset[int]
    """The same plus all loops inside: where its computes may be."""
    loop: int | None = None
    parent: str | None = None
    depth: int = 0
    reference: ReferenceRegion | None = None
    """The matching region of the program, if source locations identify it."""
    residue: tuple[int, ...] | None = None
    """For a program loop that is no loop at this stage: the remaining instructions."""
    is_source: bool = False
    """The stage is the one that the reference was read from: the region has its instruction indices."""
    is_specialised: bool = False
    """Another loop computes on its loads, or it computes on another loop's loads (warp specialisation)."""
    is_dispatch: bool = False
    """Only the compiler made it, around loops of specialised warps: their partitions run in it."""

    def instructions_before_loop(self, code: FunctionCode, indices: Sequence[int]) -> list[int]:
        """The instructions before the region's loop that run when the loop is entered."""
        if self.loop is None:
            return []
        flow, block_of = code.flow, code.flow.block_of
        header = code.rank[flow.loops[self.loop].header]
        by_loop = code.compute_once(_blocks_by_loop)
        blocks = {
            block
            for loop in {None, *flow.enclosing(self.loop)}
            for block in by_loop.get(loop, frozenset()) - self.enclosed_blocks
            if code.rank[block] < header
        }
        return [index for index in indices if block_of[index] in blocks] if blocks else []


def _blocks_by_loop(code: FunctionCode) -> dict[int | None, frozenset[int]]:
    """The blocks directly in each loop, and in none."""
    blocks = group_by_key((loop, block) for block, loop in enumerate(code.flow.loop_of))
    return {loop: frozenset(members) for loop, members in blocks.items()}


def find_in_region(code: FunctionCode, region: Region, kinds: frozenset[EventKind]) -> list[int]:
    """Instructions of some kinds directly in a region, in execution order."""
    if region.residue is None:
        return code.find(kinds, region.blocks)
    return [index for index in region.residue if code.instructions[index].kind in kinds]


def count_with_trait(code: FunctionCode, region: Region, kind: EventKind, trait: Trait) -> int:
    """Number of instructions of a kind in a region that have a trait."""
    opcodes, instructions = code.opcodes_with(kind, trait), code.instructions
    if not opcodes:
        return 0
    return sum(instructions[i].opcode in opcodes for i in find_in_region(code, region, frozenset((kind,))))


@dataclass(frozen=True, slots=True)
class LineCount:
    """Instructions of one kind on one source line of a region."""

    kind: str
    """As in `RegionFacts.counts`: the result cache stores it."""
    source: SourceLine | None
    """None where the code has no locations."""
    instructions: int


@dataclass(frozen=True, slots=True)
class CostliestLine:
    """The line of a region that most of its instructions belong to."""

    source: str
    instructions: int
    kinds: tuple[tuple[str, int], ...]
    """Its most frequent kinds, with their instructions."""
    total: int
    """Instructions of the region that do work, at any line."""


def find_costliest_line(lines: Iterable[LineCount]) -> CostliestLine | None:
    """The line with most instructions; None without instructions that do work, or without locations."""
    counts = [line for line in lines if line.kind not in _NO_WORK]
    by_line: Counter[str] = Counter()
    for line in counts:
        if line.source is not None:
            by_line[str(line.source)] += line.instructions
    if not by_line:
        return None
    source, most = by_line.most_common(1)[0]
    kinds = Counter({line.kind: line.instructions for line in counts if str(line.source) == source})
    total = sum(line.instructions for line in counts)
    return CostliestLine(source, most, tuple(kinds.most_common(_MOST_KINDS)), total)


def count_by_line(code: FunctionCode, region: Region) -> tuple[LineCount, ...]:
    """The instructions of a region by kind and source line, in the order of the text."""
    instructions = [code.instructions[index] for index in find_in_region(code, region, _ALL_KINDS)]
    counts = Counter((one.kind.count_name, source_of(one.location)) for one in instructions)
    return tuple(LineCount(kind, source, count) for (kind, source), count in counts.items())


def find_regions(
    code: FunctionCode, reference: tuple[ReferenceRegion, ...], *, exact: bool, nested: frozenset[str] = frozenset()
) -> tuple[Region, ...]:
    """The regions of a stage: straight-line code and partitions first, then the loops in execution order.

    Args:
        exact: the stage is the one that the reference was read from.
        nested: loops that the previous stage has inside others, if the stage comes after the pipeliner.
    """
    function, flow = code.function, code.flow
    if exact:
        matched = {region.loop: region for region in reference if region.loop is not None}
    else:
        matched = match_loops(code, reference, nested)
    loop_shares = _find_loop_shares(code, reference, matched)
    loops: tuple[int | None, ...] = (None, *range(len(flow.loops)))
    by_loop = code.compute_once(_blocks_by_loop)
    blocks_by_loop = {loop: by_loop.get(loop, frozenset()) for loop in loops}
    partitions = [(p.name, frozenset(range(p.first, p.stop))) for p in function.partitions]
    homes = {block: name for name, inside in reversed(partitions) for block in inside}
    by_id = {region.id: region for region in reference}
    all_blocks = frozenset(range(len(function.blocks)))
    regions = [
        Region(
            id=STRAIGHT,
            kind=RegionKind.STRAIGHT,
            blocks=blocks_by_loop[None].difference(homes),
            scope=all_blocks.difference(*(flow.loops[loop].blocks for loop in matched)),
            enclosed_blocks=all_blocks,
            reference=by_id.get(STRAIGHT),
            is_source=exact,
        )
    ]
    for name, inside in partitions:
        blocks = inside & blocks_by_loop[None]
        regions.append(Region(name, RegionKind.PARTITION, blocks, blocks, inside, parent=STRAIGHT, is_source=exact))
    specialised = [
        flow.loops[loop].blocks
        for loop, region in matched.items()
        if region.schedule is not None and region.schedule.verdict is OrderVerdict.WARP_SPECIALISED
    ]
    names = _name_loops(code, by_id, matched, loop_shares)
    for loop, natural in enumerate(flow.loops):
        region = matched.get(loop)
        if region is not None and loop_shares.get(loop) is _LoopShare.NOTHING:
            region = region._replace(rounds=(), unassigned_loads=())
        parent = homes.get(natural.header, STRAIGHT) if natural.parent is None else names[natural.parent]
        regions.append(
            Region(
                id=names[loop],
                kind=RegionKind.LOOP,
                loop=loop,
                parent=parent,
                depth=natural.depth,
                blocks=blocks_by_loop[loop],
                scope=natural.blocks,
                enclosed_blocks=natural.blocks,
                reference=region,
                is_source=exact,
                is_specialised=loop_shares.get(loop) in (_LoopShare.LOADS, _LoopShare.COMPUTES),
                is_dispatch=region is None and any(map(natural.blocks.__gt__, specialised)),
            )
        )
    if not exact:
        matched_ids = {region.id for region in matched.values()}
        regions += [
            _dissolved_region(code, region)
            for region in reference
            if region.loop is not None and region.id not in matched_ids
        ]
    return tuple(regions)


def _name_loops(
    code: FunctionCode,
    by_id: dict[str, ReferenceRegion],
    matched: dict[int, ReferenceRegion],
    loop_shares: dict[int, _LoopShare],
) -> dict[int, str]:
    """A name for every loop that means the same at every stage, also if a program loop became several.

    Their order in the text varies. The loop with matrix operations keeps the name. The others are numbered by the
    program lines that they compute on. Loops without any of the rounds come last.
    """
    flow = code.flow
    spare = loop_names(code)
    bases: dict[str, list[int]] = {}
    for loop in range(len(flow.loops)):
        region = matched.get(loop)
        base = spare[loop] if region is None else region.id
        if loop_shares.get(loop) is _LoopShare.LOADS:
            base += "/loads"  # the loop with the computes keeps the name
        if region is None and base in by_id:
            base = f"{base}'"  # made by the compiler, on the line of a loop of the program
        bases.setdefault(base, []).append(loop)
    names: dict[int, str] = {}
    for base, loops in bases.items():
        if loop_shares.get(loops[0]) not in (None, _LoopShare.LOADS):
            loops.sort(key=lambda loop: (loop_shares[loop] is _LoopShare.NOTHING, _naming_key(code, loop)))
        for copy, loop in enumerate(loops, 1):
            names[loop] = base if copy == 1 else f"{base}/{copy}"
    return names


def _naming_key(code: FunctionCode, loop: int) -> tuple[bool, float]:
    """Sort key: whether a loop has no matrix operation, and the first kernel line that it computes on."""
    home = chain_of(code.function.location)
    indices = code.find(COMPUTES, code.flow.loops[loop].blocks)
    chains = (code.chains.get(index) for index in indices)
    frames = [chain[-1] for chain in chains if chain is not None and not code.has_no_location(chain)]
    first = min((line for file, line, _ in frames if home is None or file == home[-1][0]), default=inf)
    return all(code.instructions[index].kind is not EventKind.MATRIX for index in indices), first


def _dissolved_region(code: FunctionCode, region: ReferenceRegion) -> Region:
    """The region of a program loop that this stage has unrolled or folded away."""
    placed = code.compute_once(_instructions_at)
    chains = {code.visible_chain(chain) for chain in region.chains}
    residue = [index for chain in chains if chain is not None for index in placed.get(chain, ())]
    residue.sort(key=code.flow.position.__getitem__)
    none = frozenset[int]()
    kind = RegionKind.STRAIGHT
    return Region(region.id, kind, none, none, none, parent=region.parent, reference=region, residue=tuple(residue))


def _instructions_at(code: FunctionCode) -> dict[Chain, list[int]]:
    """Loads, computes and branches by location."""
    return group_by_key((chain, index) for index, chain in code.chains.items())


def _find_loop_shares(
    code: FunctionCode, reference: tuple[ReferenceRegion, ...], matched: dict[int, ReferenceRegion]
) -> dict[int, _LoopShare]:
    """What each loop holds if one loop of the program became several; empty for other loops.

    Warp specialisation puts the loads in one loop and the computes in another. A loop around them is repeated in every
    partition, and one partition may do all its own work. A load whose location matches no statement counts for the loop
    that contains it, because partitioning passes put their copies at the function's own line.
    """
    visible = code.visible_chain
    statement_locations = {
        visible(s.chain) for region in reference for s in (*region.statements, *region.unassigned_loads)
    }
    shares_by_region: dict[str, dict[int, _LoopShare]] = {}
    for loop, region in matched.items():
        if not region.rounds:
            continue
        loads = {chain for s in region.statements if (chain := visible(s.chain)) is not None}
        loads |= {without_column(chain) for chain in loads}
        levels = (level for r in region.rounds for compute in r.computes for level in compute.chains)
        computes = {visible(chain) for level in levels for chain in level}
        blocks = code.flow.loops[loop].blocks
        load_chains = [code.chains.get(i) for i in code.find(LOADS, blocks) if code.flow.loop_at(i) == loop]
        has_load = any(
            chain in loads or (chain not in statement_locations and code.has_no_location(chain))
            for chain in load_chains
        )
        compute_chains = (code.chains.get(index) for index in code.find(COMPUTES, blocks))
        has_compute = any(chain is not None and chain in computes for chain in compute_chains)
        share = _LoopShare.WORK if has_compute else _LoopShare.LOADS
        if not has_load:
            share = _LoopShare.COMPUTES if has_compute else _LoopShare.NOTHING
        shares_by_region.setdefault(region.id, {})[loop] = share
    split_shares: dict[int, _LoopShare] = {}
    for loop_shares in shares_by_region.values():
        present = set(loop_shares.values())
        if {_LoopShare.LOADS, _LoopShare.COMPUTES} <= present and _LoopShare.WORK not in present:
            replaced, by = {_LoopShare.NOTHING}, _LoopShare.COMPUTES
        elif {_LoopShare.WORK, _LoopShare.NOTHING} <= present:
            replaced, by = set(_LoopShare) - {_LoopShare.NOTHING}, _LoopShare.WORK
        else:
            continue
        split_shares.update((loop, by if share in replaced else share) for loop, share in loop_shares.items())
    return split_shares
