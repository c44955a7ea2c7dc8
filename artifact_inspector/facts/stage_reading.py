"""One stage of a kernel: its text, and every fact that is computed from it.

A member that needs a parsed file reads `parsed`; it is unavailable where the stage is absent or unreadable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from artifact_inspector.analysis.access.accesses import AccessCounts, StageAccesses, count_accesses, find_accesses
from artifact_inspector.analysis.access.bounds_checks import CheckKind, find_bounds_checks
from artifact_inspector.analysis.access.missing_masks import MissingMask, find_missing_masks
from artifact_inspector.analysis.access.swap_loops import find_swap_chains, is_added_loop
from artifact_inspector.analysis.flow.asm_lines import find_asm_calls, move_to_call_lines
from artifact_inspector.analysis.flow.function_code import FunctionCode
from artifact_inspector.analysis.flow.kernel_program import KernelProgram, find_program
from artifact_inspector.analysis.flow.loop_range import LoopRange, find_loop_range
from artifact_inspector.analysis.matrix.matrix_work import MatrixWork, find_matrix_work, warps_of
from artifact_inspector.analysis.matrix.operand_reads import OperandReads, count_element_accesses, find_operand_reads
from artifact_inspector.analysis.order.regions import LineCount, count_by_line
from artifact_inspector.analysis.overlap.issue_cycles import IssueEstimate, estimate_issue
from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight, find_in_flight
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers, find_loop_buffers
from artifact_inspector.analysis.overlap.partitions import PingPongSlot, find_slots
from artifact_inspector.analysis.overlap.steady_state import InFlightWalk, walk_function
from artifact_inspector.analysis.overlap.waits import WaitFacts, find_waits
from artifact_inspector.analysis.shared.layout_conversions import LayoutConversion, find_conversions
from artifact_inspector.facts.modules import Disassemble, parse_source, read_source
from artifact_inspector.facts.ordering import (
    OrderedStage,
    ReferenceRegions,
    find_reference_regions,
    group_by_block,
    located_in,
    order_stage,
)
from artifact_inspector.facts.outline import CAS_LOOPS, COUNTED, COUNTED_TRAITS, SWAPS, Outline
from artifact_inspector.facts.reading import MemberProblems, TextCache, Unavailable, computed, computed_from_text
from artifact_inspector.files.cache import Artifact
from artifact_inspector.formats import format_of
from artifact_inspector.formats._format import Format
from artifact_inspector.model import EventKind, Module, Stage
from artifact_inspector.model.text import SourceText

if TYPE_CHECKING:
    from artifact_inspector.facts.lane import Lane

_TENSOR_LEVEL = (Stage.TTIR, Stage.TTGIR)
_BEFORE = {stage: tuple(Stage)[:place] for place, stage in enumerate(Stage)}

Value = TypeVar("Value")
Matrix = Mapping[str, tuple[MatrixWork, ...]]
"""Region id → its matrix instructions."""


class KernelFiles:
    """The stages of a kernel, with the values that were computed from them."""

    stage, shared = None, None

    def __init__(
        self, artifact: Artifact, disassemble: Disassemble | None = None, texts: TextCache | None = None
    ) -> None:
        """Nothing is read yet; `texts` shares what is computed from the same text with other kernels."""
        self.artifact = artifact
        self.disassemble = disassemble
        self.log = MemberProblems()
        self.lock = RLock()
        self.values: dict[str, Any] = {}
        self.location = artifact.directory
        self._texts = texts
        self._values_at: dict[Stage, dict[str, Any]] = {}

    def at(self, stage: Stage) -> StageReading:
        """One stage, whether the kernel has it or not."""
        # Made anew: a stage that is kept here would be in a cycle with its kernel.
        return StageReading(self, stage, self._values_at.setdefault(stage, {}))

    def present(self, stage: Stage) -> StageReading | None:
        """One stage; None where the kernel has no text of it."""
        reading = self.at(stage)
        return None if reading.module is None else reading

    def members_of_text(self, stage: Stage) -> dict[str, Any] | None:
        """Members that kernels with the same text share; None for all but a first stage."""
        if (
            self._texts is None
            or self.artifact.other_kernels
            or any(self.at(x).source is not None for x in _BEFORE[stage])
        ):
            return None
        source = self.at(stage).source
        return None if source is None else self._texts.members_of(stage, source.text)


class StageReading:
    """One stage: each member is computed when it is first read."""

    def __init__(self, kernel: KernelFiles, stage: Stage, values: dict[str, Any]) -> None:
        """`values` are those of the stage that the kernel keeps."""
        self.kernel = kernel
        self.artifact = kernel.artifact
        self.stage = stage
        self.values = values
        self.log = kernel.log
        self.lock = kernel.lock

    @property
    def location(self) -> str:
        """The file that a fault is reported for."""
        if self.stage.value in self.artifact.files:
            return self.artifact.display_path(self.stage.value)
        return self.artifact.directory

    @computed
    def shared(self) -> dict[str, Any] | None:
        """Members of kernels with the same text."""
        return self.kernel.members_of_text(self.stage)

    def if_available(self, read_member: Callable[[StageReading], Value | None]) -> Iterator[Value]:
        """A member once, or not at all where it is unavailable or None."""
        try:
            value = None if self.module is None else read_member(self)
        except Unavailable:
            return
        if value is not None:
            yield value

    def earlier(self, read_member: Callable[[StageReading], Value | None]) -> tuple[Value, ...]:
        """A member of every stage before this one, where it is available."""
        return tuple(
            value for stage in _BEFORE[self.stage] for value in self.kernel.at(stage).if_available(read_member)
        )

    @property
    def is_tensor_level(self) -> bool:
        """True for TTIR and TTGIR."""
        return self.stage in _TENSOR_LEVEL

    @property
    def is_last(self) -> bool:
        """True where the kernel has no file of a later stage."""
        return not any(later.value in self.artifact.files for later in Stage if later.order > self.stage.order)

    @property
    def parsed(self) -> Module:
        """The parsed text.

        Raises:
            Unavailable: the kernel has no such stage, or the text cannot be parsed.
        """
        if self.module is None:
            raise Unavailable
        return self.module

    @property
    def language(self) -> Format:
        """The format of the stage."""
        return format_of(self.stage)

    @computed
    def source(self) -> SourceText | None:
        """The text; None where the kernel has none."""
        return read_source(self.artifact, self.stage, self.log.current, self.kernel.disassemble)

    @computed_from_text
    def module(self) -> Module | None:
        """The parsed text; None where there is none, or it cannot be parsed."""
        source = self.source
        module = None if source is None else parse_source(source, self.stage, self.log.current)
        others = self.artifact.other_kernels
        if module is None or not others:
            return module
        return replace(module, functions=tuple(x for x in module.functions if x.name not in others))

    @computed_from_text
    def codes(self) -> tuple[FunctionCode, ...]:
        """The functions, with their control flow."""
        module, language = self.parsed, self.language
        functions = module.functions
        earlier_modules = self.earlier(lambda stage: stage.module)
        if self.stage is Stage.SASS and earlier_modules:
            calls = find_asm_calls(earlier_modules[-1], format_of(earlier_modules[-1].stage))
            functions = tuple(move_to_call_lines(function, module, language, calls) for function in functions)
        return tuple(FunctionCode(function, module, language) for function in functions)

    @computed_from_text
    def references(self) -> ReferenceRegions:
        """The regions of the program."""
        return find_reference_regions(self.parsed, self.codes, self.earlier(lambda stage: stage.references))

    @computed
    def signature(self) -> KernelProgram | None:
        """Arguments and tiles, at the stage that the program is read from."""
        if not self.references.is_source:
            return None
        return find_program(self.parsed, self.language, self.artifact.name)

    @computed_from_text
    def order(self) -> OrderedStage:
        """The regions with their verdicts."""
        return order_stage(self.parsed, self.codes, self.references, self.earlier(lambda stage: stage.order))

    @computed
    def outline(self) -> Outline:
        """What every view reads."""
        source, module, order = self.source, self.parsed, self.order
        assert source is not None
        counts: Counter[EventKind] = Counter()
        unknown: Counter[str] = Counter()
        further: Counter[str] = Counter()
        for code in self.codes:
            for kind, indices in code.of_kind.items():
                counts[kind] += len(indices)
            instructions = code.function.instructions
            for name, of_trait in COUNTED_TRAITS.items():
                if opcodes := code.opcodes_with(*of_trait):
                    further[name] += sum(instructions[i].opcode in opcodes for i in code.of_kind[of_trait[0]])
            unknown.update(instructions[index].opcode for index in code.of_kind.get(EventKind.UNKNOWN, ()))
        if further[SWAPS] and not self.is_tensor_level:
            further[CAS_LOOPS] = self._count_added_loops()
        return Outline(
            source.name.rpartition("/")[2], counts.total(), dict(unknown.most_common()),
            {kind.count_name: counts[kind] for kind in COUNTED} | further, order.facts, module.attributes,
            module.is_complete,
        )  # fmt: skip

    def _count_added_loops(self) -> int:
        """Compare-and-swap loops that a compiler made of atomics."""
        chains = find_swap_chains(code for codes in self.earlier(lambda stage: stage.codes)[:1] for code in codes)
        return sum(self.order.by_region(lambda code, region: is_added_loop(code, region, chains)).values())

    @computed_from_text
    def waits(self) -> tuple[WaitFacts, ...]:
        """Waits in text order."""
        waits: list[WaitFacts] = []
        for function in self.order.functions:
            region_of = {block: function.prefix + region.id for region in function.regions for block in region.blocks}
            waits += find_waits(function.code, region_of)
        return tuple(waits)

    @computed_from_text
    def accessed(self) -> Mapping[str, StageAccesses]:
        """Function → its accesses to memory."""
        return {
            function.name: StageAccesses(function.code, find_accesses(function.code))
            for function in self.order.functions
        }

    @computed_from_text
    def accesses(self) -> AccessCounts:
        """Accesses of the whole file."""
        return count_accesses(access for of in self.accessed.values() for access in of.accesses)

    @computed_from_text
    def past_the_end(self) -> tuple[MissingMask, ...]:
        """Loads without a mask that another access has; tensor-level IR only."""
        if not self.is_tensor_level:
            return ()
        return tuple(load for of in self.accessed.values() for load in find_missing_masks(of))

    @computed_from_text
    def buffers(self) -> Mapping[str, LoopBuffers]:
        """Loop → the buffers that its loads rotate through."""
        return {
            function.prefix + region: buffers
            for function in self.order.functions
            for region, buffers in find_loop_buffers(function.code, function.regions).items()
        }

    @computed
    def threads(self) -> int | None:
        """Threads that share the transfers of a whole block; in tensor-level IR, of a cluster of blocks.

        None for a warp-specialised kernel: its partitions load for each other.
        """
        warps, target = self.artifact.num_warps, self.artifact.target
        tensor = self.kernel.present(Stage.TTGIR)
        codes = () if tensor is None else tensor.codes
        if warps is None or target is None:
            return None
        if self.stage is not Stage.TTIR and any(code.function.partitions for code in codes):
            return None
        blocks = self.artifact.metadata.get("num_ctas")
        in_cluster = blocks if self.stage.order <= Stage.TTGIR.order and isinstance(blocks, int) else 1
        return warps * target.warp_size * max(1, in_cluster)

    @computed
    def walks(self) -> tuple[InFlightWalk, ...]:
        """Each function as it runs in its steady state."""
        threads = self.threads
        return tuple(walk_function(function.code, function.regions, threads) for function in self.order.functions)

    @computed
    def in_flight(self) -> Mapping[str, LoadsInFlight]:
        """Region → loads between their issue and the wait for them."""
        unrolled = {region.id: region.unroll_factor for region in self.order.facts}
        return {
            name: in_flight
            for function, walk in zip(self.order.functions, self.walks, strict=True)
            for name, in_flight in find_in_flight(walk, function.prefix, unrolled).items()
        }

    @computed
    def lanes(self) -> tuple[Lane, ...]:
        """Each function as a timeline shows it."""
        from artifact_inspector.analysis.overlap.execution_track import find_execution_track  # for pictures only
        from artifact_inspector.facts.lane import make_lane

        order = self.order
        return tuple(
            make_lane(
                self.parsed,
                walk.code.function,
                find_execution_track(walk, function.name, function.prefix, order.rounds_of(function)),
            )
            for function, walk in zip(order.functions, self.walks, strict=True)
        )

    @computed
    def matrix(self) -> Matrix:
        """Region → its matrix instructions."""
        warps = self.artifact.num_warps
        issuers = {
            name: count for of_stage in self.earlier(lambda stage: stage.issuers) for name, count in of_stage.items()
        }
        return {
            (name := function.prefix + region.id): find_matrix_work(
                function.code, region, issuers.get(name, issuers.get(function.prefix, warps))
            )
            for function in self.order.functions
            for region in function.regions
        }

    @computed
    def issuers(self) -> Mapping[str, int | None]:
        """Region → warps that run its dots; tensor-level IR only.

        The entry of a function's prefix is for regions that only later stages have.
        """
        if not self.is_tensor_level:
            return {}
        warps, matrix = self.artifact.num_warps, self.matrix
        issuers: dict[str, int | None] = {}
        for function in self.order.functions:
            names = [function.prefix + region.id for region in function.regions]
            for name in names:
                issuers[name] = warps_of(function.code, matrix[name], warps)
            if self.stage is Stage.TTGIR:
                all_dots = [work for name in names for work in matrix[name]]
                issuers[function.prefix] = warps_of(function.code, all_dots, warps)
        return issuers

    @computed
    def operand_reads(self) -> Mapping[str, tuple[OperandReads, ...]]:
        """Region → how operands are read from shared memory; last stage only."""
        return self.order.by_region(find_operand_reads) if self.is_last else {}

    @computed
    def line_counts(self) -> Mapping[str, tuple[LineCount, ...]]:
        """Region → instructions by kind and source line; last stage only."""
        return self.order.by_region(count_by_line) if self.is_last else {}

    @computed
    def element_accesses(self) -> Mapping[str, int]:
        """Region → accesses of one element of shared memory; last stage only."""
        return self.order.by_region(count_element_accesses) if self.is_last else {}

    @computed_from_text
    def region_accesses(self) -> Mapping[str, AccessCounts]:
        """Region → its accesses."""
        accesses: dict[str, AccessCounts] = {}
        for function in self.order.functions:
            by_block = group_by_block(self.accessed[function.name].accesses)
            for region in function.regions:
                accesses[function.prefix + region.id] = count_accesses(located_in(region, by_block))
        return accesses

    @computed
    def checks(self) -> Mapping[str, Mapping[CheckKind, int]]:
        """Region → compares and divisions that keep its accesses in bounds; LLIR only where it is last."""
        return {} if self.stage is Stage.LLIR and not self.is_last else self.all_checks

    @computed_from_text
    def all_checks(self) -> Mapping[str, Mapping[CheckKind, int]]:
        """Region → compares and divisions that keep its accesses in bounds."""
        checks: dict[str, Mapping[CheckKind, int]] = {}
        for function in self.order.functions:
            accesses = self.accessed[function.name].accesses
            by_block = group_by_block(find_bounds_checks(function.code, accesses))
            for region in function.regions:
                counts = Counter(check.kind for check in located_in(region, by_block))
                checks[function.prefix + region.id] = dict(counts)
        return checks

    @computed
    def conversions(self) -> Mapping[str, tuple[LayoutConversion, ...]]:
        """Region → its layout conversions; TTGIR only."""
        if self.stage is not Stage.TTGIR:
            return {}
        version = self.artifact.triton_version
        return self.order.by_region(lambda code, region: find_conversions(code, region, version))

    @computed_from_text
    def trips(self) -> Mapping[str, LoopRange | None]:
        """Loop → its trips by constant bounds; tensor-level IR only."""
        if not self.is_tensor_level:
            return {}
        return self.order.by_region(lambda code, region: find_loop_range(code, region.loop))

    @computed_from_text
    def slots(self) -> Mapping[str, tuple[PingPongSlot, ...]]:
        """Region → groups between its schedule hints."""
        return self.order.by_region(find_slots)

    @computed_from_text
    def issue(self) -> Mapping[str, IssueEstimate | None]:
        """Region → its issue cycles."""
        return self.order.by_region(estimate_issue)
