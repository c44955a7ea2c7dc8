"""Whether each differing fact of two kernels is better, worse or neutral on the right side.

The direction of a fact decides, except where the two values are not comparable: another vendor's registers,
bytes of another tile, a loop that one compiler unrolled. Such differences are neutral.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.comparison.consequence import EXCHANGES, SYNCHRONISATION, consequence_of
from artifact_inspector.comparison.fact_pair import FactPair, State
from artifact_inspector.errors import UsageError
from artifact_inspector.findings import RULES
from artifact_inspector.hardware.targets import parse_target
from artifact_inspector.model import Backend, Consequence, OrderVerdict, PipelineKind, Stage
from artifact_inspector.vocabulary import file_facts, finding_facts, iteration_facts, kernel_facts, region_facts
from artifact_inspector.vocabulary.fact import Category, Direction, Fact, Sign, Value
from artifact_inspector.vocabulary.names import STEPS, is_loop_name, step_of
from artifact_inspector.vocabulary.options import WARP_COUNT
from artifact_inspector.vocabulary.rows import Summary, fact_of
from artifact_inspector.vocabulary.value_reading import (
    MINOR_SHARE,
    compare_widths,
    find_common_widths,
    read_matrix,
    read_strictest_waits,
    read_verdict,
    read_widths,
)

ELSEWHERE = "that kernel has its matrix instructions outside of this loop"
_OF_ONE_WARP_COUNT = frozenset({Category.ATOMICS, Category.BOUNDS, Category.INSTRUCTIONS})
_OF_ONE_VENDOR = _OF_ONE_WARP_COUNT | {Category.SHARED, Category.REGISTERS, Category.LOADS, Category.STORES}
"""Categories whose figures of two vendors do not compare: other instructions, registers and limits."""
_OF_ONE_TILE = _OF_ONE_VENDOR | SYNCHRONISATION | {Category.IN_FLIGHT}
"""Categories of amounts per thread or CTA, which grow with its work."""
_ZERO_IF_ABSENT = SYNCHRONISATION | {
    Category.ATOMICS, Category.WAITS, Category.IN_FLIGHT, Category.SHARED, Category.SPILLS,
}  # fmt: skip
"""Categories in which a missing row means none: no pipeline, no bytes in flight, no such buffer."""
ENOUGH_WARPS = 50
"""Percent of the warps of a multiprocessor above which the share of two vendors does not compare."""
LANE_RATIO = 2
"""Lanes of a wavefront ÷ those of a warp."""
_RANKS = {
    **dict.fromkeys((OrderVerdict.PIPELINED, OrderVerdict.WARP_SPECIALISED), 2),
    **dict.fromkeys((OrderVerdict.PARTLY_PIPELINED, OrderVerdict.OVERLAPPED), 1),
}
_UNRANKED = frozenset(
    {OrderVerdict.UNROLLED, OrderVerdict.GONE, OrderVerdict.NO_LOADS, OrderVerdict.NO_COMPUTE, OrderVerdict.SINGLE}
)
"""Verdicts of regions without rounds of their own."""
_DISSOLVED = (OrderVerdict.UNROLLED, OrderVerdict.GONE)
"""Verdicts of loops whose work is outside of them."""
OTHER_BODY = 1.5
"""Factor of all amounts of a body beyond which it has more iterations of the source."""


_ON_ORDER = frozenset(rule.code for rule in RULES if rule.consequence in (Consequence.IN_FLIGHT, Consequence.ORDER))
"""Findings on waits, and on the order of loads."""
ON_ACCESS = frozenset({"AI006", "AI022"})
"""Findings on narrow accesses."""
_ON_OCCUPANCY = frozenset(rule.code for rule in RULES if rule.consequence is Consequence.OCCUPANCY)


Statements = Mapping[str, tuple[Sequence[LoadWidth], Sequence[LoadWidth]]]
"""Key of a fact of widths → the statements of both sides."""


class _Sides(NamedTuple):
    """What the sign of one fact needs of all others."""

    left: Mapping[str, Value]
    right: Mapping[str, Value]
    last_step: str
    """The last stage that both have."""
    has_ptx: bool
    """Whether the last stage of both is an assembly, and PTX on a side."""
    is_one_vendor: bool
    has_one_tile: bool
    has_one_warp_count: bool
    are_single_warps: bool
    """Whether a CTA is one warp on both sides: a barrier waits for no other."""
    have_dots: bool
    """Whether both programs multiply matrices: without dots there is no matrix work to lose."""
    common: Mapping[str, tuple[Mapping[int, float], Mapping[int, float]]]
    """Key of a fact → width → share of the statements that both vendors execute by vectors; empty for one vendor."""

    def value_pair(self, key: str) -> tuple[Value, Value]:
        return self.left.get(key), self.right.get(key)


def sign_facts(
    facts: Sequence[FactPair], left: Summary, right: Summary, statements: Statements | None = None
) -> tuple[FactPair, ...]:
    """The facts with their direction; matrix work that is outside of a loop on one side is not compared.

    Args:
        statements: if known.
    """
    steps = [step for step in STEPS if step in left.steps and step in right.steps]
    vendors = _vendor(left), _vendor(right)
    is_one_vendor = vendors[0] == vendors[1]
    weights = {} if is_one_vendor else {
        key: find_common_widths(*of_key, are_stores=key == file_facts.store_widths.key)
        for key, of_key in (statements or {}).items()
    }  # fmt: skip
    dots = [side.tiles is None or any(tile.is_dot for tile in side.tiles) for side in (left, right)]
    warps = [side.options.get(WARP_COUNT) for side in (left, right)]
    sides = _Sides(
        left=left.facts, right=right.facts, last_step=steps[-1] if steps else "",
        has_ptx=steps[-1:] == [step_of(Stage.PTX)] and Backend.CUDA in vendors, is_one_vendor=is_one_vendor,
        has_one_tile=left.tiles == right.tiles, has_one_warp_count=warps[0] == warps[1],
        are_single_warps=warps == [1, 1], have_dots=all(dots), common=weights,
    )  # fmt: skip
    return tuple(_sign_fact(fact, sides) for fact in facts)


def _vendor(summary: Summary) -> object:
    try:
        return None if summary.target is None else parse_target(summary.target).backend
    except UsageError:
        return summary.target


def _sign_fact(fact: FactPair, sides: _Sides) -> FactPair:
    if not fact.differs:
        return fact
    definition = fact_of(fact.key, fact.region)
    if definition in (region_facts.matrix, region_facts.flop) and _is_elsewhere(fact, sides):
        return fact._replace(state=State.NOT_COMPARED, reason=ELSEWHERE)
    if sides.has_ptx and definition is iteration_facts.instructions:
        return fact  # ptxas removes, adds and moves instructions: an iteration with more in PTX may run faster
    if definition is None:  # a member of a family, or a fact of another version
        is_amount = fact.category in (Category.SHARED, Category.SPILLS)
        direction = Direction.LESS_IS_BETTER if is_amount else Direction.NEUTRAL
        sign = _sign_amount(fact, direction, sides)
        is_exchange = consequence_of(fact) is Consequence.EXCHANGE and fact.state is State.ONE_SIDED
        if fact.category == Category.SHARED and not is_exchange:
            # moved between purposes, or exchanged in more rounds of fewer bytes
            is_clear = sign is _sign_total(sides) and {sign, _sign_barriers(sides)} != {Sign.WORSE, Sign.BETTER}
            sign = sign if is_clear else Sign.NEUTRAL
        return fact._replace(direction=sign)
    trip = iteration_facts.TRIPS.get(definition.key)
    if trip is not None and any(key.endswith(f".{trip.key}") for key in (*sides.left, *sides.right)):
        return fact._replace(direction=Sign.NEUTRAL)  # loops repeat some: copies of a body are no more work
    judge = _JUDGES.get(definition.key)
    sign = _sign_amount(fact, definition.direction, sides) if judge is None else judge(fact, sides, definition)
    return fact._replace(direction=sign)


def _sign_amount(fact: FactPair, direction: Direction, sides: _Sides) -> Sign:
    if direction is Direction.NEUTRAL or not _is_comparable(fact, sides):
        return Sign.NEUTRAL
    if fact.category == Category.BARRIERS and sides.are_single_warps:
        return Sign.NEUTRAL
    left, right = fact.left, fact.right
    if fact.state is State.ONE_SIDED:
        is_zero = fact.category in _ZERO_IF_ABSENT or fact_of(fact.key, fact.region) in iteration_facts.TRIPS.values()
        if not is_zero or not _has_region(fact, sides):
            return Sign.NEUTRAL
        left, right = left or 0, right or 0
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return Sign.NEUTRAL
    return _sign_change(left, right, direction)


def _sign_total(sides: _Sides) -> Sign:
    """The sign of all shared memory of a block."""
    left, right = sides.value_pair(kernel_facts.shared.key)
    if not isinstance(left, int) or not isinstance(right, int):
        return Sign.NEUTRAL
    return _sign_change(left, right, Direction.LESS_IS_BETTER)


def _sign_barriers(sides: _Sides) -> Sign:
    left, right = (value if isinstance(value, int) else 0 for value in sides.value_pair(file_facts.barriers.key))
    return _sign_change(left, right, Direction.LESS_IS_BETTER)


def _is_comparable(fact: FactPair, sides: _Sides) -> bool:
    if fact.category == Category.ATOMICS and not (fact.left and fact.right):
        return True
    if not sides.is_one_vendor and fact.category in _OF_ONE_VENDOR:
        return False
    if not sides.has_one_tile and fact.category in _OF_ONE_TILE:
        return False
    return sides.has_one_warp_count or fact.category not in _OF_ONE_WARP_COUNT


def _has_region(fact: FactPair, sides: _Sides) -> bool:
    """Whether the side without the fact has its region in the last text; True for facts of the kernel."""
    if not fact.region:
        return True
    values = sides.left if fact.left is None else sides.right
    verdict = read_verdict(values.get(f"{fact.region}.verdict.{sides.last_step}"))
    return verdict is not None and verdict not in _DISSOLVED


def _sign_verdict(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """Only pipelines are better or worse than other orders, and only in the last text."""
    if fact.step != sides.last_step:
        return Sign.NEUTRAL
    left, right = read_verdict(fact.left), read_verdict(fact.right)
    if left is None or right is None or {left, right} & _UNRANKED:
        return Sign.NEUTRAL
    return _sign_change(_RANKS.get(left, 0), _RANKS.get(right, 0), Direction.MORE_IS_BETTER)


def _sign_waits(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """A strictest wait that drains, or stops to drain, in a loop; further waits of equal depth are neutral."""
    if not is_loop_name(fact.region):
        return Sign.NEUTRAL
    left, right = read_strictest_waits(fact.left), read_strictest_waits(fact.right)
    if not left or left.keys() != right.keys():
        return Sign.NEUTRAL
    drains = [all(depth == 0 for depth in waits.values()) for waits in (left, right)]
    return _sign_change(drains[0], drains[1], Direction.LESS_IS_BETTER)


def _sign_pipeline(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Depths compare where both pipelines are made of the same groups or loads; few of many loads are none."""
    kinds = sides.value_pair(f"{fact.region}.{region_facts.pipeline_kind.key}")
    if not is_loop_name(fact.region) or (None not in kinds and kinds[0] != kinds[1]):
        return Sign.NEUTRAL
    counts = [
        abs(value)
        for value in sides.value_pair(f"{fact.region}.{region_facts.loads_in_flight.key}")
        if isinstance(value, int)
    ]
    depths = [value for value in (fact.left or 0, fact.right or 0) if isinstance(value, int)]
    is_known = len(counts) == len(depths) == len(kinds) and set(kinds) == {PipelineKind.REGISTERS}
    if is_known and abs(depths[1] - depths[0]) <= MINOR_SHARE * min(counts):
        return Sign.NEUTRAL
    return _sign_amount(fact, definition.direction, sides)


def _sign_iterations(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """A few loads of many in flight are no iteration."""
    left, right = fact.left or 0, fact.right or 0
    is_small = isinstance(left, int | float) and isinstance(right, int | float) and abs(right - left) <= MINOR_SHARE
    return Sign.NEUTRAL if is_small else _sign_amount(fact, definition.direction, sides)


def _sign_kind(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """A loop that both have, pipelined on one side only, or by asynchronous copies on one side only.

    The straight-line code of an unrolled loop has lost them where the whole kernel has none any more.
    """
    if not is_loop_name(fact.region):
        return Sign.NEUTRAL
    if not _has_region(fact, sides):
        values, kind = (sides.left, fact.right) if fact.left is None else (sides.right, fact.left)
        has_copies = any(values.get(key) for key in (file_facts.copy_widths.key, file_facts.tile_widths.key))
        verdict = read_verdict(values.get(f"{fact.region}.verdict.{sides.last_step}"))
        is_unrolled = verdict is OrderVerdict.UNROLLED and sides.has_one_tile
        if has_copies or not is_unrolled or kind == PipelineKind.REGISTERS:
            return Sign.NEUTRAL
        return Sign.WORSE if fact.right is None else Sign.BETTER
    if fact.state is State.ONE_SIDED:
        return Sign.WORSE if fact.right is None else Sign.BETTER
    left, right = (kind != PipelineKind.REGISTERS for kind in (fact.left, fact.right))
    return _sign_change(left, right, Direction.MORE_IS_BETTER)


def _sign_in_flight(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Loops decide: beside one, straight-line code has only its first and last loads.

    Without a pipeline, machine code decides: ptxas orders the loads of PTX again. Between vendors, pipelines decide.
    """
    kinds = sides.value_pair(f"{fact.region}.{region_facts.pipeline_kind.key}")
    if kinds == (None, None) and (sides.has_ptx or not sides.is_one_vendor):
        return Sign.NEUTRAL
    suffix = f".verdict.{sides.last_step}"
    has_loop = any(
        read_verdict(value) is not None and is_loop_name(key.removesuffix(suffix))
        for values in (sides.left, sides.right)
        for key, value in values.items()
        if key.endswith(suffix)
    )
    if not is_loop_name(fact.region) and has_loop:
        return Sign.NEUTRAL
    return _sign_amount(fact, definition.direction, sides)


def _sign_overlap(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Of two pipelines of one kind that run equally far ahead, one that waits earlier may load earlier too."""
    kinds, iterations = (
        sides.value_pair(f"{fact.region}.{one.key}")
        for one in (region_facts.pipeline_kind, region_facts.pipeline_iterations)
    )
    is_one_pipeline = kinds[0] == kinds[1] is not None and iterations[0] == iterations[1]
    if is_one_pipeline and fact.left and fact.right:
        return Sign.NEUTRAL
    return _sign_in_flight(fact, sides, definition)


def _sign_loads_in_flight(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Fewer, wider loads are no loss: bytes decide where both sides know them."""
    byte_pair = sides.value_pair(f"{fact.region}.{region_facts.bytes_in_flight.key}")
    return Sign.NEUTRAL if None not in byte_pair else _sign_in_flight(fact, sides, definition)


def _sign_widths(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Mean width of accesses; loads and copies count together, since a pass turns one into the other.

    A wavefront of 64 lanes shares a tile among more lanes than a warp: narrower loads are worse there too. A store of
    half the width per lane writes the same bytes at once.
    """
    keys = [definition.key]
    if definition in (file_facts.load_widths, file_facts.copy_widths):
        keys = [file_facts.load_widths.key, file_facts.copy_widths.key]
        if sides.value_pair(file_facts.tile_widths.key) != (None, None):
            return Sign.NEUTRAL  # whole tiles were moved without threads
    if not sides.has_one_warp_count or not (sides.is_one_vendor or sides.has_one_tile):
        return Sign.NEUTRAL
    means = _mean_widths(keys, sides)
    if means is None:
        return Sign.NEUTRAL
    is_small = abs(means[1] - means[0]) <= MINOR_SHARE * max(means)
    is_small |= definition is file_facts.store_widths and max(means) <= LANE_RATIO * min(means)
    if is_small and not sides.is_one_vendor:  # other instructions split the same bytes
        return Sign.NEUTRAL
    return _sign_change(means[0], means[1], Direction.MORE_IS_BETTER)


def _mean_widths(keys: Sequence[str], sides: _Sides) -> tuple[float, float] | None:
    common = sides.common.get(keys[0])
    if common is not None and all(common):
        return compare_widths(*common)
    rows = [read_widths(*(values.get(key) for key in keys)) for values in (sides.left, sides.right)]
    return None if rows[0] is None or rows[1] is None else compare_widths(rows[0], rows[1])


def _count_accesses(keys: Sequence[str], sides: _Sides) -> tuple[int, int]:
    left, right = (read_widths(*(values.get(key) for key in keys)) or {} for values in (sides.left, sides.right))
    return sum(left.values()), sum(right.values())


def _sign_codes(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """Findings that appear are worse, findings that vanish better; an exchange of some is neutral.

    Between vendors or tiles, widths decide on accesses, not counts. Where neither pipelines a loop, findings on the
    order are neutral: PTX does not show all waits. A finding on occupancy does not outweigh a share that is not worse.
    """
    if not isinstance(fact.left, tuple) or not isinstance(fact.right, tuple):
        return Sign.NEUTRAL
    suffix = f".{region_facts.pipeline_kind.key}"
    has_pipeline = any(key.endswith(suffix) for values in (sides.left, sides.right) for key in values)
    ignored = set() if sides.is_one_vendor else ON_ACCESS if has_pipeline else ON_ACCESS | _ON_ORDER
    ignored |= set() if sides.has_one_tile else ON_ACCESS
    shares = sides.value_pair(kernel_facts.occupancy_share.key)
    left, right = set(fact.left) - ignored, set(fact.right) - ignored
    if isinstance(shares[0], int | float) and isinstance(shares[1], int | float):  # the share itself decides
        right -= _ON_OCCUPANCY - left if shares[1] >= shares[0] else set()
        left -= _ON_OCCUPANCY - right if shares[0] >= shares[1] else set()
    return Sign.WORSE if left < right else Sign.BETTER if right < left else Sign.NEUTRAL


def _is_elsewhere(fact: FactPair, sides: _Sides) -> bool:
    """Whether the side without a loop's matrix work has it elsewhere, and no multiply-adds in its place."""
    if fact.state is not State.ONE_SIDED:
        return False
    values = sides.left if fact.left is None else sides.right
    is_lost = values.get(f"{fact.region}.{region_facts.fused.key}")
    return bool(values.get(file_facts.matrix_instructions.key)) and not is_lost


def _sign_matrix(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """Lost or won matrix instructions, another generation, or wider operands; their number is neutral."""
    if fact.state is State.ONE_SIDED:
        return Sign.NEUTRAL if not sides.have_dots else Sign.WORSE if fact.right is None else Sign.BETTER
    left, right = read_matrix(fact.left), read_matrix(fact.right)
    if not sides.is_one_vendor:
        return Sign.NEUTRAL
    if left.generation != right.generation:
        return _sign_change(left.generation or 0, right.generation or 0, Direction.MORE_IS_BETTER)
    return _sign_change(left.operand_bits or 0, right.operand_bits or 0, Direction.LESS_IS_BETTER)


def _sign_elements(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """Element-wise shared accesses of equal tiles, where both sides multiply matrices in the region; none is 0."""
    left, right = (value if isinstance(value, int | float) else 0 for value in (fact.left, fact.right))
    has_matrix = None not in sides.value_pair(f"{fact.region}.{region_facts.matrix.key}")
    if not has_matrix or not sides.has_one_tile or _are_traded(left, right, sides):
        return Sign.NEUTRAL
    return _sign_change(left, right, Direction.LESS_IS_BETTER)


def _are_traded(left: float, right: float, sides: _Sides) -> bool:
    """Whether at least as many loads from global memory came in the place of element-wise shared accesses."""
    counts = _count_accesses([file_facts.load_widths.key, file_facts.copy_widths.key], sides)
    return (right - left) * (counts[1] - counts[0]) < 0 and abs(counts[1] - counts[0]) >= abs(right - left)


def _sign_fused(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Multiply-adds of dots are worse than matrix instructions of the same region, or of the kernel."""
    if fact.state is not State.ONE_SIDED:
        return _sign_amount(fact, definition.direction, sides)
    values = sides.left if fact.left is None else sides.right
    own_values = sides.right if fact.left is None else sides.left
    has_matrix = values.get(f"{fact.region}.{region_facts.matrix.key}") is not None
    count_key = file_facts.matrix_instructions.key
    if has_matrix or (values.get(count_key) and own_values.get(count_key) == 0):
        return Sign.WORSE if fact.left is None else Sign.BETTER
    return Sign.NEUTRAL


def _sign_matrix_count(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    if (not fact.left) == (not fact.right) or not sides.have_dots:
        return Sign.NEUTRAL
    return Sign.WORSE if fact.left else Sign.BETTER


def _sign_partitions(fact: FactPair, sides: _Sides, _definition: Fact) -> Sign:
    """More partitions than one are worse where each multiplies as much of every loop as all of the other side's."""
    flops, others = (_flops_by_loop(values) for values in (sides.left, sides.right))
    is_known = bool(flops) and flops == others and not any(None in of_loop for of_loop in flops.values())
    if not is_known or not sides.has_one_tile or fact.state is State.ONE_SIDED:
        return Sign.NEUTRAL
    return _sign_amount(fact, Direction.LESS_IS_BETTER, sides)


def _flops_by_loop(values: Mapping[str, Value]) -> dict[str, set[Value]]:
    """Loop → FLOP of an iteration, of each partition that has it: `loop1` and `loop1/2` are one loop of two."""
    suffix = f".{region_facts.flop.key}"
    flops: dict[str, set[Value]] = {}
    for key, value in values.items():
        if key.endswith(suffix):
            flops.setdefault(key.removesuffix(suffix).partition("/")[0], set()).add(value)
    return flops


def _sign_blocks(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Blocks of equal size compare; of other sizes or vendors only whether one fits at all."""
    if sides.is_one_vendor and sides.has_one_warp_count:
        return _sign_amount(fact, definition.direction, sides)
    if 0 in (fact.left, fact.right) and None not in (fact.left, fact.right):
        return Sign.WORSE if fact.right == 0 else Sign.BETTER
    return Sign.NEUTRAL


def _sign_threads(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    return _sign_amount(fact, definition.direction, sides) if sides.is_one_vendor else Sign.NEUTRAL


def _sign_share(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Of two vendors, both with more than half of their warps, neither hides latency better."""
    is_enough = all(isinstance(share, int | float) and share > ENOUGH_WARPS for share in (fact.left, fact.right))
    is_neutral = is_enough and not sides.is_one_vendor
    return Sign.NEUTRAL if is_neutral else _sign_amount(fact, definition.direction, sides)


def _sign_shared_accesses(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Twice as many accesses through a buffer of half the size are one exchange in more rounds."""
    sign = _sign_amount(fact, definition.direction, sides)
    values = [[side.get(key) for key in EXCHANGES] for side in (sides.left, sides.right)]
    left, right = (sum(value for value in of_side if isinstance(value, int)) for of_side in values)
    if sign is Sign.NEUTRAL or not isinstance(fact.left, int) or not isinstance(fact.right, int):
        return sign
    moved = fact.left * left, fact.right * right
    is_traded = (moved[1] <= moved[0]) if fact.right > fact.left else (moved[1] >= moved[0])
    return Sign.NEUTRAL if all(moved) and is_traded else sign


def _sign_trip(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """An amount of one iteration; neutral where all amounts grow alike: one body has more iterations of the source."""
    keys = (region_facts.flop.key, iteration_facts.read_bytes.key, iteration_facts.instructions.key)
    pairs = [sides.value_pair(f"{fact.region}.{key}") for key in keys]
    ratios = [right / left for left, right in pairs if isinstance(left, int | float) and isinstance(right, int | float)]
    if len(ratios) > 1 and (min(ratios) >= OTHER_BODY or max(ratios) <= 1 / OTHER_BODY):
        return Sign.NEUTRAL
    return _sign_shared_accesses(fact, sides, definition)


def _sign_once(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """What runs outside of loops; neutral where a loop, or its work, is outside of loops on one side only."""
    suffix = f".verdict.{sides.last_step}"
    loops = [
        {key for key, value in values.items() if key.endswith(suffix) and read_verdict(value) not in _DISSOLVED}
        for values in (sides.left, sides.right)
    ]
    if fact.state is State.ONE_SIDED or loops[0] != loops[1]:
        return Sign.NEUTRAL
    return _sign_shared_accesses(fact, sides, definition)


def _sign_instructions(fact: FactPair, sides: _Sides, definition: Fact) -> Sign:
    """Only the instructions of the last text run."""
    return _sign_amount(fact, definition.direction, sides) if fact.step == sides.last_step else Sign.NEUTRAL


def _sign_change(left: float, right: float, direction: Direction) -> Sign:
    if left == right:
        return Sign.NEUTRAL
    return Sign.BETTER if (right > left) is (direction is Direction.MORE_IS_BETTER) else Sign.WORSE


_Judge = Callable[[FactPair, _Sides, Fact], Sign]
_JUDGES: dict[str, _Judge] = {
    region_facts.verdict.key: _sign_verdict, region_facts.waits.key: _sign_waits,
    region_facts.pipeline_kind.key: _sign_kind, region_facts.pipeline_depth.key: _sign_pipeline,
    region_facts.pipeline_buffers.key: _sign_pipeline, region_facts.pipeline_iterations.key: _sign_iterations,
    region_facts.loads_in_flight.key: _sign_loads_in_flight, region_facts.bytes_in_flight.key: _sign_in_flight,
    region_facts.overlap_percentage.key: _sign_overlap, region_facts.matrix.key: _sign_matrix,
    region_facts.fused.key: _sign_fused, region_facts.element_accesses.key: _sign_elements,
    file_facts.matrix_instructions.key: _sign_matrix_count, file_facts.load_widths.key: _sign_widths,
    file_facts.copy_widths.key: _sign_widths, file_facts.store_widths.key: _sign_widths,
    file_facts.instructions.key: _sign_instructions, file_facts.shared_loads.key: _sign_shared_accesses,
    file_facts.shared_stores.key: _sign_shared_accesses, kernel_facts.compute_partitions.key: _sign_partitions,
    kernel_facts.blocks.key: _sign_blocks, kernel_facts.threads.key: _sign_threads,
    kernel_facts.occupancy_share.key: _sign_share, finding_facts.findings.key: _sign_codes,
    finding_facts.findings_on_registers.key: _sign_codes,
    **dict.fromkeys((fact.key for fact in iteration_facts.TRIPS.values()), _sign_trip),
    **dict.fromkeys((fact.key for fact in iteration_facts.ONCE), _sign_once),
}  # fmt: skip
"""Key of a fact whose sign its direction does not decide → what does."""
