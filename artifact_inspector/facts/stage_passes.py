"""What is found of one stage: a pass for each fact, and the table of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from artifact_inspector.analysis.access.accesses import (
    Accesses,
    MemoryAccess,
    StageAccesses,
    count_accesses,
    find_accesses,
)
from artifact_inspector.analysis.access.bounds_checks import BoundsCheck, Check, find_bounds_checks
from artifact_inspector.analysis.access.tile_ends import Unmasked, find_unmasked
from artifact_inspector.analysis.flow.asm_lines import find_calls, on_lines_of_calls
from artifact_inspector.analysis.flow.code import Code
from artifact_inspector.analysis.flow.program import Program, find_program
from artifact_inspector.analysis.flow.trips import Trips, find_trips
from artifact_inspector.analysis.matrix.fragments import OperandReads, find_operand_reads
from artifact_inspector.analysis.matrix.generation import count_packed_dots
from artifact_inspector.analysis.matrix.work import MatrixWork, find_matrix_work, warps_of
from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.analysis.order.placement import Memory
from artifact_inspector.analysis.order.reference import ReferenceRegion, find_reference
from artifact_inspector.analysis.order.regions import Region, find_regions
from artifact_inspector.analysis.order.verdict import judge
from artifact_inspector.analysis.overlap.buffers import LoopBuffers, find_loop_buffers
from artifact_inspector.analysis.overlap.inflight import InFlight, find_in_flight
from artifact_inspector.analysis.overlap.issue import Issue, find_issue
from artifact_inspector.analysis.overlap.partitions import Slot, find_slots
from artifact_inspector.analysis.overlap.steady_state import Walk, walk_through
from artifact_inspector.analysis.overlap.waits import find_waits
from artifact_inspector.analysis.shared.conversions import Conversion, find_conversions
from artifact_inspector.facts.kernel import COUNTED, Outline, WaitFacts
from artifact_inspector.facts.modules import Disassemble, parse_source, read_source
from artifact_inspector.facts.table import Pass, at, earlier
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.formats import format_of
from artifact_inspector.model import EventKind, Function, Module, Stage
from artifact_inspector.model.text import SourceText

if TYPE_CHECKING:
    from artifact_inspector.facts.lane import Lane

_PLAIN = re.compile(r"[^\w$]")
_TENSOR = (Stage.TTIR, Stage.TTGIR)

Placed = TypeVar("Placed", MemoryAccess, BoundsCheck)
References = Mapping[str, tuple[ReferenceRegion, ...]]
"""The regions of the program, by function."""


@dataclass(frozen=True, slots=True)
class Measure:
    """What a stage is measured by: the regions of the program, from the first stage that tells them."""

    references: References
    exact: bool
    """True for the stage that they were read from."""


@dataclass(frozen=True, slots=True)
class OrderedFunction:
    """One function of a stage, with its regions where the stage has them."""

    code: Code
    name: str
    """As the first stage has it, else its own."""
    prefix: str
    """Of the names of its regions; empty for a function that is alone."""
    regions: tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A stage whose regions are found and judged."""

    functions: tuple[OrderedFunction, ...]
    facts: tuple[RegionFacts, ...]
    memories: Mapping[str, Memory]
    """What this stage and those before say of each region, for the one after."""
    left_over: frozenset[str]
    """Loops of the program that the stage has no loop for."""


# -- the stage as a whole --------------------------------------------------------------


def _source(
    artifact: Artifact, stage: Stage, disassemble: Disassemble | None, problems: list[Problem]
) -> SourceText | None:
    return read_source(artifact, stage, problems, disassemble)


def _module(stage: Stage, source: SourceText | None, problems: list[Problem]) -> Module | None:
    return None if source is None else parse_source(source, stage, problems)


def _codes(module: Module, before: Sequence[Module]) -> tuple[Code, ...]:
    language = format_of(module.stage)
    functions = module.functions
    if module.stage is Stage.SASS and before:
        calls = find_calls(before[-1], format_of(before[-1].stage))
        functions = tuple(on_lines_of_calls(function, module, language, calls) for function in functions)
    return tuple(Code(function, language, is_whole=module.is_whole) for function in functions)


def _measure(module: Module, codes: Sequence[Code], before: Sequence[Measure]) -> Measure:
    known: References = next((one.references for one in before if one.references), {})
    access = format_of(module.stage).access
    # A file that is cut off may lack the very loop that the kernel is about.
    if known or access is None or not module.is_whole:
        return Measure(known, exact=False)
    found = {
        code.function.name: find_reference(code, pipelined=module.stage is not Stage.TTIR) for code in codes
    }
    return Measure(found, exact=True)


def _program(artifact: Artifact, module: Module, measure: Measure) -> Program | None:
    return find_program(module, format_of(module.stage), artifact.name) if measure.exact else None


def _order(module: Module, codes: Sequence[Code], measure: Measure, before: Sequence[Ordered]) -> Ordered:
    references = measure.references
    alone = len(references or module.functions) == 1
    earlier_on: Mapping[str, Memory] = before[-1].memories if before else {}
    memories = dict(earlier_on)
    functions, judged, left_over = [], [], set()
    for code in codes:
        original = _original(code.function, module, references)
        # Machine code may hold functions that the program does not have (traps, divisions).
        known = original or not references
        prefix = "" if alone and known else f"{original or code.function.name}/"
        regions = find_regions(code, references.get(original, ()), exact=measure.exact)
        for region in regions:
            name = prefix + region.id
            said = earlier_on.get(name)
            if said is None and region.reference is not None:
                said = earlier_on.get(prefix + region.reference.id)  # of a loop whose parts are apart now
            facts, memories[name] = judge(code, region, said, exact=measure.exact)
            judged.append(_prefixed(facts, prefix))
            if region.remains is not None:
                left_over.add(name)
        functions.append(OrderedFunction(code, original or code.function.name, prefix, regions))
    return Ordered(tuple(functions), tuple(judged), memories, frozenset(left_over))


def _original(function: Function, module: Module, references: References) -> str:
    """The name of a function in the first stage, empty when it was not there.

    LLVM's NVPTX back end writes `_$_` for characters that PTX does not allow in a name.
    """
    if function.name in references:
        return function.name
    spelled = {_PLAIN.sub("_$_", name): name for name in references}
    if function.name in spelled:
        return spelled[function.name]
    if len(references) == 1 and len(module.functions) == 1:
        return next(iter(references))
    return ""


def _prefixed(facts: RegionFacts, prefix: str) -> RegionFacts:
    if not prefix:
        return facts
    parent = None if facts.parent is None else prefix + facts.parent
    return replace(facts, id=prefix + facts.id, parent=parent)


def _outline(source: SourceText, module: Module, codes: Sequence[Code], ordered: Ordered) -> Outline:
    counts: Counter[EventKind] = Counter()
    unknown: Counter[str] = Counter()
    for code in codes:
        counts.update({kind: len(found) for kind, found in code.of_kind.items()})
        instructions = code.function.instructions
        unknown.update(instructions[index].opcode for index in code.of_kind.get(EventKind.UNKNOWN, ()))
    return Outline(
        source.name,
        counts.total(),
        dict(unknown.most_common()),
        {kind.count_name: counts[kind] for kind in COUNTED},
        ordered.facts,
        module.attributes,
    )


def _waits(module: Module, ordered: Ordered) -> tuple[WaitFacts, ...]:
    language = format_of(module.stage)
    waits: list[WaitFacts] = []
    for function in ordered.functions:
        code = function.code
        home = {block: function.prefix + region.id for region in function.regions for block in region.blocks}
        waits += find_waits(code, module, language, home)
    return tuple(waits)


# -- its functions ---------------------------------------------------------------------


def _accessed(module: Module, ordered: Ordered) -> dict[str, StageAccesses]:
    language = format_of(module.stage)
    return {
        function.name: StageAccesses(
            function.code, module, language, find_accesses(function.code, module, language)
        )
        for function in ordered.functions
    }


def _accesses(accessed: Mapping[str, StageAccesses]) -> Accesses:
    return count_accesses(access for read in accessed.values() for access in read.accesses)


def _past_the_end(accessed: Mapping[str, StageAccesses]) -> tuple[Unmasked, ...]:
    return tuple(found for read in accessed.values() for found in find_unmasked(read))


def _buffers(module: Module, ordered: Ordered, measure: Measure) -> dict[str, LoopBuffers]:
    language = format_of(module.stage)
    return {
        function.prefix + region: buffers
        for function in ordered.functions
        for region, buffers in find_loop_buffers(
            function.code, function.regions, module, language, exact=measure.exact
        ).items()
    }


def _threads(artifact: Artifact, stage: Stage, tensor: Sequence[Code] | None) -> int | None:
    """Threads that share what moves for a whole block; in tensor-level IR, for a cluster of them.

    None for a warp-specialised kernel: its partitions load for each other.
    """
    warps, target = artifact.num_warps, artifact.target
    if warps is None or target is None:
        return None
    if stage is not Stage.TTIR and any(code.function.partitions for code in tensor or ()):
        return None
    blocks = artifact.metadata.get("num_ctas")
    together = blocks if stage.order <= Stage.TTGIR.order and isinstance(blocks, int) else 1
    return warps * target.warp_size * max(1, together)


# -- its regions -----------------------------------------------------------------------


def _walks(module: Module, ordered: Ordered, threads: int | None) -> tuple[Walk, ...]:
    language = format_of(module.stage)
    return tuple(
        walk_through(function.code, function.regions, module, language, threads)
        for function in ordered.functions
    )


def _in_flight(ordered: Ordered, walks: Sequence[Walk]) -> dict[str, InFlight]:
    unrolled = {region.id: region.unrolled_by for region in ordered.facts}
    return {
        name: found
        for function, walk in zip(ordered.functions, walks, strict=True)
        for name, found in find_in_flight(walk, function.prefix, unrolled).items()
    }


def _lanes(module: Module, ordered: Ordered, walks: Sequence[Walk]) -> tuple[Lane, ...]:
    from artifact_inspector.analysis.overlap.track import find_track  # for pictures alone
    from artifact_inspector.facts.lane import make_lane

    return tuple(
        make_lane(
            module,
            walk.code.function,
            find_track(
                walk,
                function.name,
                function.prefix,
                {
                    index: number
                    for region in function.regions
                    for index, number in ordered.memories[function.prefix + region.id].rounds.items()
                },
            ),
        )
        for function, walk in zip(ordered.functions, walks, strict=True)
    )


Matrix = Mapping[str, tuple[MatrixWork, ...]]


def _matrix(
    artifact: Artifact, module: Module, ordered: Ordered, before: Sequence[Mapping[str, int | None]]
) -> Matrix:
    language, warps = format_of(module.stage), artifact.num_warps
    issuers = {name: count for told in before for name, count in told.items()}
    return {
        (name := function.prefix + region.id): find_matrix_work(
            function.code, region, module, language, issuers.get(name, issuers.get(function.prefix, warps))
        )
        for function in ordered.functions
        for region in function.regions
    }


def _issuers(artifact: Artifact, module: Module, ordered: Ordered, matrix: Matrix) -> dict[str, int | None]:
    """Warps that run the dots of each region; by prefix, those of a function, for regions yet to come."""
    warps, found = artifact.num_warps, {}
    for function in ordered.functions:
        code = function.code
        names = [function.prefix + region.id for region in function.regions]
        for name in names:
            found[name] = warps_of(code, matrix[name], module, warps)
        if module.stage is Stage.TTGIR:
            all_dots = [work for name in names for work in matrix[name]]
            found[function.prefix] = warps_of(code, all_dots, module, warps)
    return found


def _by_region(ordered: Ordered, find: Callable[[Code, Region], Any]) -> dict[str, Any]:
    return {
        function.prefix + region.id: find(function.code, region)
        for function in ordered.functions
        for region in function.regions
    }


def _packed_dots(ordered: Ordered) -> dict[str, int]:
    return _by_region(ordered, count_packed_dots)


def _operand_reads(ordered: Ordered) -> dict[str, tuple[OperandReads, ...]]:
    return _by_region(ordered, find_operand_reads)


def _region_accesses(ordered: Ordered, accessed: Mapping[str, StageAccesses]) -> dict[str, Accesses]:
    found = {}
    for function in ordered.functions:
        held = _by_block(accessed[function.name].accesses)
        for region in function.regions:
            found[function.prefix + region.id] = count_accesses(_among(region, held))
    return found


def _by_block(found: Iterable[Placed]) -> dict[int, list[Placed]]:
    """What stands in each block, in text order."""
    held: dict[int, list[Placed]] = {}
    for one in found:
        held.setdefault(one.block, []).append(one)
    return held


def _among(region: Region, held: Mapping[int, list[Placed]]) -> Iterator[Placed]:
    """What stands directly in a region, in text order."""
    return (one for block in sorted(region.blocks & held.keys()) for one in held[block])


def _checks(
    module: Module, ordered: Ordered, accessed: Mapping[str, StageAccesses]
) -> dict[str, dict[Check, int]]:
    language, found = format_of(module.stage), {}
    for function in ordered.functions:
        held = _by_block(find_bounds_checks(function.code, accessed[function.name].accesses, language))
        for region in function.regions:
            counted = Counter(one.check for one in _among(region, held))
            found[function.prefix + region.id] = dict(counted)
    return found


def _conversions(artifact: Artifact, module: Module, ordered: Ordered) -> dict[str, tuple[Conversion, ...]]:
    language = format_of(module.stage)
    return _by_region(
        ordered,
        lambda code, region: find_conversions(code, region, module, language, artifact.triton_version),
    )


def _trips(ordered: Ordered) -> dict[str, Trips | None]:
    return _by_region(ordered, lambda code, region: find_trips(code, region.loop))


def _slots(ordered: Ordered) -> dict[str, tuple[Slot, ...]]:
    return _by_region(ordered, find_slots)


def _issue(ordered: Ordered) -> dict[str, Issue | None]:
    return _by_region(ordered, find_issue)


def _is_last(stage: Stage, artifact: Artifact) -> bool:
    return not any(later.value in artifact.files for later in Stage if later.order > stage.order)


def _tells_bounds(stage: Stage, artifact: Artifact) -> bool:
    """What staying in bounds costs is told by the first and the last stages; LLIR is on the way."""
    return stage is not Stage.LLIR or _is_last(stage, artifact)


def _is_tensor_level(stage: Stage, _artifact: Artifact) -> bool:
    return stage in _TENSOR


def _is_ttgir(stage: Stage, _artifact: Artifact) -> bool:
    return stage is Stage.TTGIR


def _none() -> None:
    return None


STAGE_PASSES = (
    Pass("source", ("artifact", "stage", "disassemble", "problems"), _source, _none),
    Pass("module", ("stage", "source", "problems"), _module, _none, of_text=True),
    Pass("codes", ("module", earlier("module")), _codes, tuple, of_text=True),
    Pass("measure", ("module", "codes", earlier("measure")), _measure, _none, of_text=True),
    Pass("signature", ("artifact", "module", "measure"), _program, _none),
    Pass("order", ("module", "codes", "measure", earlier("order")), _order, _none, of_text=True),
    Pass("outline", ("source", "module", "codes", "order"), _outline, _none),
    Pass("waits", ("module", "order"), _waits, tuple, of_text=True),
    Pass("accessed", ("module", "order"), _accessed, dict, of_text=True),
    Pass("accesses", ("accessed",), _accesses, lambda: count_accesses(()), of_text=True),
    Pass("past_the_end", ("accessed",), _past_the_end, tuple, applies=_is_tensor_level, of_text=True),
    Pass("buffers", ("module", "order", "measure"), _buffers, dict, of_text=True),
    Pass("threads", ("artifact", "stage", at(Stage.TTGIR, "codes")), _threads, _none),
    Pass("walks", ("module", "order", "threads"), _walks, tuple),
    Pass("in_flight", ("order", "walks"), _in_flight, dict),
    Pass("lanes", ("module", "order", "walks"), _lanes, tuple),
    Pass("matrix", ("artifact", "module", "order", earlier("issuers")), _matrix, dict),
    Pass("issuers", ("artifact", "module", "order", "matrix"), _issuers, dict, applies=_is_tensor_level),
    Pass("packed_dots", ("order",), _packed_dots, dict, applies=_is_last),
    Pass("operand_reads", ("order",), _operand_reads, dict, applies=_is_last),
    Pass("region_accesses", ("order", "accessed"), _region_accesses, dict, of_text=True),
    Pass("checks", ("module", "order", "accessed"), _checks, dict, applies=_tells_bounds, of_text=True),
    Pass("conversions", ("artifact", "module", "order"), _conversions, dict, applies=_is_ttgir),
    Pass("trips", ("order",), _trips, dict, applies=_is_tensor_level, of_text=True),
    Pass("slots", ("order",), _slots, dict, of_text=True),
    Pass("issue", ("order",), _issue, dict, of_text=True),
)
"""The passes over one stage, each after those that it needs."""
