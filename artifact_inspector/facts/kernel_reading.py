"""A kernel as a whole: every fact that is computed from several of its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TypeVar

from artifact_inspector.analysis.access.accesses import StageAccesses
from artifact_inspector.analysis.access.cache_policies import CachePolicy, find_policies
from artifact_inspector.analysis.access.load_widths import LoadWidth, explain_widths
from artifact_inspector.analysis.access.missing_masks import MissingMask
from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.analysis.matrix.generation import MatrixGeneration, count_packed_dots, describe_generation
from artifact_inspector.analysis.matrix.widened_operands import WidenedDot, find_widened_dots
from artifact_inspector.analysis.matrix.work_balance import WorkBalance, check_work_balance
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.order.stage_invariants import find_broken_invariants
from artifact_inspector.analysis.overlap.loop_buffers import LoopBuffers
from artifact_inspector.analysis.overlap.partitions import (
    PartitionFacts,
    PartitionSchedule,
    find_partition_schedule,
    find_partitions,
)
from artifact_inspector.analysis.overlap.pipeline import Pipeline, explain_pipeline
from artifact_inspector.analysis.resources.contradictions import find_contradictions
from artifact_inspector.analysis.resources.usage import Contradiction, Resources, find_resources
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage, find_shared_memory_usage
from artifact_inspector.errors import CacheError
from artifact_inspector.facts.modules import BINARY_OF
from artifact_inspector.facts.ordering import OrderedStage
from artifact_inspector.facts.reading import computed, without_collection
from artifact_inspector.facts.stage_reading import KernelFiles, Matrix, StageReading
from artifact_inspector.files.binary import Binary
from artifact_inspector.files.cache import REMARKS, Artifact, Problem, read_binary, read_remarks
from artifact_inspector.files.compiler_remarks import CompilerRemark, parse_remarks
from artifact_inspector.formats import format_of
from artifact_inspector.formats.mlir.parser import PARTITIONS_OPCODE
from artifact_inspector.model import LOADS, EventKind, Module, OrderVerdict, Stage

Value = TypeVar("Value")

_STORES = frozenset({EventKind.GLOBAL_STORE})


class KernelReading(KernelFiles):
    """The files of a kernel: each member is computed when it is first read, and kept until `forget`."""

    _stages: tuple[Stage, ...] | None = None

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Stages that can be read."""
        if self._stages is None:
            with without_collection():
                self._stages = tuple(
                    stage for stage in Stage for _ in self.at(stage).if_available(lambda reading: reading.outline)
                )
        return self._stages

    def forget(self) -> None:
        """Let go of all values; problems are kept."""
        with self.lock:
            self.values.clear()
            self._values_at.clear()
            self._stages = self._texts = None

    def at_every_stage(self, read_member: Callable[[StageReading], Value | None]) -> dict[Stage, Value]:
        """A member of each stage that can be read, where it is available."""
        return {stage: value for stage in self.stages for value in self.at(stage).if_available(read_member)}

    @property
    def lowered(self) -> StageReading | None:
        """The last stage that can be read, if it is below tensor-level IR."""
        last = next(reversed(self.stages), None)
        return None if last is None or last.order <= Stage.TTGIR.order else self.present(last)

    @property
    def _orders(self) -> dict[Stage, OrderedStage]:
        return self.at_every_stage(lambda stage: stage.order)

    @computed
    def program(self) -> KernelProgram | None:
        """Arguments and tiles, from the last stage that has them."""
        programs = self.at_every_stage(lambda stage: stage.signature)
        return list(programs.values())[-1] if programs else None

    @computed
    def principal(self) -> str | None:
        """Id of the main loop, by the stage that the program was read from."""
        references = self.at_every_stage(lambda stage: stage.references)
        orders = self._orders
        if not orders:
            return None
        sources = [stage for stage in orders if stage in references and references[stage].is_source]
        regions = orders[sources[-1] if sources else next(iter(orders))].facts

        def weight(region: RegionFacts) -> tuple[bool, bool, bool, bool, int, int]:
            is_ordered = region.schedule is not None or region.verdict is OrderVerdict.WARP_SPECIALISED
            computes = bool(region.rounds) or (is_ordered and region.matrix > 0)
            is_busy = computes or region.count(EventKind.ASYNC_COPY) > 0  # does not just poll a barrier
            has_matrix = region.matrix > 0
            return (has_matrix and computes, computes, has_matrix, is_busy, region.depth, len(region.rounds))

        return max(regions, key=weight).id if regions else None

    @computed
    def changed(self) -> Mapping[str, Stage]:
        """Region → first stage whose order verdict differs from the stage before."""
        changed: dict[str, Stage] = {}
        orders = self._orders
        for complaint in find_broken_invariants({stage: order.facts for stage, order in orders.items()}):
            message = f"an error of inspect-kernel, please report it: {complaint}"
            self.log.current.append(Problem(self.artifact.directory, message))
        for stage, order in orders.items():
            for region in order.facts:
                if region.order_changed:
                    changed.setdefault(region.id, stage)
        return changed

    @computed
    def is_hand_scheduled(self) -> bool:
        """True for a program that orders its copies itself: in Gluon, or with buffers in TTIR (TLX)."""
        orders = self.at(Stage.TTIR).if_available(lambda stage: stage.order)
        return self.artifact.is_gluon or any(region.schedule is not None for x in orders for region in x.facts)

    @computed
    def pipelines(self) -> Mapping[str, Pipeline]:
        """Loop → how it is pipelined."""
        orders = self._orders
        by_loop: dict[str, dict[Stage, LoopBuffers]] = {}
        for stage, buffers in self.at_every_stage(lambda stage: stage.buffers).items():
            for name, of_loop in buffers.items():
                by_loop.setdefault(name, {})[stage] = of_loop
        regions = {stage: {region.id: region for region in order.facts} for stage, order in orders.items()}
        pipelines: dict[str, Pipeline] = {}
        first = regions.get(Stage.TTIR, {})
        for name, buffers_by_stage in by_loop.items():
            written = first.get(name)  # a loop of plain loads, which Triton pipelines
            is_left_to_triton = written is not None and written.schedule is None and bool(written.rounds)
            pipeline = explain_pipeline(
                num_stages=self.artifact.num_stages if is_left_to_triton or not self.is_hand_scheduled else None,
                target=self.artifact.target,
                version=self.artifact.triton_version,
                facts={stage: of_stage[name] for stage, of_stage in regions.items() if name in of_stage},
                buffers=buffers_by_stage,
            )
            if pipeline is not None:
                pipelines[name] = pipeline
        return pipelines

    @computed
    def identities(self) -> Mapping[str, WorkBalance]:
        """Region → whether the last stage does the work of the dots."""
        ttir, ttgir = self._dots_at(Stage.TTIR), self._dots_at(Stage.TTGIR)
        lowered = self.lowered
        if lowered is None:
            return {}
        regions = lowered.order.facts
        return check_work_balance(
            dict((ttir if ttgir is None else ttgir) or {}),
            dict(lowered.matrix),
            unrolled={region.id: region.unroll_factor for region in regions if region.unroll_factor > 1},
            dissolved=set(lowered.order.left_over),
            parents={region.id: region.parent for region in regions},
        )

    @computed
    def generations(self) -> Mapping[str, MatrixGeneration]:
        """Region → the matrix unit that does its work, and the one that the target has."""
        requested, dots = self._dots_at(Stage.TTIR) or {}, self._dots_at(Stage.TTGIR) or {}
        lowered, target = self.lowered, self.artifact.target
        if lowered is None or target is None:
            return {}
        regions, executed, packed = lowered.order.facts, lowered.matrix, lowered.order.by_region(count_packed_dots)
        everywhere = tuple(work for works in requested.values() for work in works)
        return {
            region.id: describe_generation(
                target,
                executed.get(region.id, ()),
                region.fused_multiply_adds,
                dots=dots.get(region.id, ()),
                program_dots=requested.get(region.id) or everywhere,
                packed=packed.get(region.id, 0),
            )
            for region in regions
            if executed.get(region.id) or dots.get(region.id)
        }

    def _dots_at(self, stage: Stage) -> Matrix | None:
        reading = self.present(stage)
        return None if reading is None else reading.matrix

    @computed
    def widths(self) -> tuple[LoadWidth, ...]:
        """How wide each load statement became."""
        return tuple(self._widths_of(LOADS))

    @computed
    def store_widths(self) -> tuple[LoadWidth, ...]:
        """How wide each store statement became."""
        return tuple(self._widths_of(_STORES))

    def _widths_of(self, kinds: frozenset[EventKind]) -> Iterator[LoadWidth]:
        layouts = self._accessed_at(self.present(Stage.TTGIR)) or {}
        for name, first, last in self._first_and_last:
            yield from explain_widths(first, last, layouts.get(name), first.code.function.divisibility, kinds)

    @computed
    def policies(self) -> tuple[CachePolicy, ...]:
        """Cache modifiers and eviction policies that the program requests."""
        return tuple(policy for _, first, last in self._first_and_last for policy in find_policies(first, last))

    @computed
    def unmasked(self) -> tuple[MissingMask, ...]:
        """Loads that may read past an end that the mask of another access names."""
        first = next(iter(self.stages), None)
        return () if first is None else self.at(first).past_the_end

    @computed
    def widened_dots(self) -> tuple[WidenedDot, ...]:
        """Dots that multiply wider elements than their operands are loaded with, in the program."""
        first = next((stage for stage in self.stages if stage.order <= Stage.TTGIR.order), None)
        return () if first is None else tuple(dot for code in self.at(first).codes for dot in find_widened_dots(code))

    @property
    def _first_and_last(self) -> tuple[tuple[str, StageAccesses, StageAccesses], ...]:
        """The functions of the program at the first stage that has loads, and at the last."""
        ttir, last = self._accessed_at(self.present(Stage.TTIR)), self._accessed_at(self.lowered) or {}
        first = (self._accessed_at(self.present(Stage.TTGIR)) if ttir is None else ttir) or {}
        return tuple((name, accesses, last[name]) for name, accesses in first.items() if name in last)

    def _accessed_at(self, stage: StageReading | None) -> Mapping[str, StageAccesses] | None:
        return None if stage is None else stage.accessed

    @computed
    def bill(self) -> SharedMemoryUsage | None:
        """Shared memory by purpose; None without TTGIR."""
        ttgir, artifact = self.present(Stage.TTGIR), self.artifact
        if ttgir is None or not ttgir.codes:
            return None
        return find_shared_memory_usage(list(ttgir.codes), artifact.shared_bytes, artifact.triton_version)

    @computed
    def partitions(self) -> tuple[PartitionFacts, ...]:
        """Partitions of a warp-specialised kernel."""
        source = self.at(Stage.TTGIR).source
        if source is None or PARTITIONS_OPCODE not in source.text:  # most kernels: nothing is parsed
            return ()
        ttgir, ptx = self.present(Stage.TTGIR), self.present(Stage.PTX)
        functions = () if ttgir is None else ttgir.order.functions
        lowered = () if ptx is None else ptx.order.functions
        by_name = {function.name: function.code.function for function in lowered}
        return tuple(
            partition
            for function in functions
            for partition in find_partitions(function.code, by_name.get(function.name), function.regions)
        )

    @computed
    def partition_schedule(self) -> PartitionSchedule | None:
        """How its partitions hand data to each other."""
        ttgir = self.present(Stage.TTGIR)
        functions = () if ttgir is None else ttgir.order.functions
        return next(filter(None, (find_partition_schedule(function.code) for function in functions)), None)

    @computed
    def modules(self) -> Mapping[Stage, Module]:
        """The parsed text of each stage."""
        return self.at_every_stage(lambda stage: stage.module)

    @computed
    def binary(self) -> Binary | None:
        """The tables of the binary; None where there is none, or it cannot be read."""
        artifact = self.artifact
        try:
            content = read_binary(artifact)
            if content is None:
                return None
            from artifact_inspector.files.binaries import read_cubin, read_hsaco

            suffix, code = content
            return (read_cubin if suffix == "cubin" else read_hsaco)(code, artifact.name)
        except CacheError as error:
            path = artifact.display_path(_binary_suffix(artifact))
            self.log.current.append(Problem(path, error.message.removeprefix(f"{path}: ")))
            return None

    @computed
    def resources(self) -> Resources:
        """Registers, shared memory and warps that a block takes."""
        modules, binary = self.modules, self.binary
        ptx, amdgcn = modules.get(Stage.PTX), modules.get(Stage.AMDGCN)
        return find_resources(
            self.artifact.target, self.artifact.metadata,
            ptx=None if ptx is None else format_of(Stage.PTX).figures(ptx),
            amdgcn=None if amdgcn is None else format_of(Stage.AMDGCN).figures(amdgcn),
            named_target=None if amdgcn is None else amdgcn.attributes.get("target"), binary=binary,
            unreadable=binary is None and _binary_suffix(self.artifact) != "",
        )  # fmt: skip

    @computed
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Facts on which two files disagree."""
        modules, resources, binary, bill = self.modules, self.resources, self.binary, self.bill
        name = self.artifact.metadata.get("name")
        between = find_contradictions(
            name if isinstance(name, str) else None if binary is None else binary.kernel,
            self.artifact.num_warps,
            {stage: module for stage, module in modules.items() if module.functions},
            None if Stage.TTGIR not in modules else format_of(Stage.TTGIR).launch_parameters(modules[Stage.TTGIR]),
            None if binary is None else (_binary_suffix(self.artifact), binary.kernel),
            bill,
        )
        return (*resources.contradictions, *between)

    @computed
    def written_remarks(self) -> tuple[CompilerRemark, ...] | None:
        """Remarks as the compilers wrote them; None where no remarks were kept."""
        try:
            text = read_remarks(self.artifact)
        except CacheError as error:
            self.log.current.append(Problem(self.artifact.display_path(REMARKS), error.message))
            return None
        return None if text is None else parse_remarks(text)

    @computed
    def remarks(self) -> tuple[CompilerRemark, ...] | None:
        """Remarks of the compilers, those on a line of PTX with the line of the program."""
        remarks, ptx = self.written_remarks, self.present(Stage.PTX)
        if remarks is None or ptx is None:
            return remarks
        return tuple(_with_source(remark, ptx.parsed) for remark in remarks)


def _binary_suffix(artifact: Artifact) -> str:
    """`cubin` or `hsaco`, whichever the kernel has; empty without either."""
    return next((suffix for suffix in BINARY_OF.values() if suffix in artifact.files), "")


def _with_source(remark: CompilerRemark, ptx: Module) -> CompilerRemark:
    """A remark on a line of PTX with the line of the program that it comes from."""
    if remark.ptx_line is None or remark.source is not None:
        return remark
    location = None
    for function in ptx.functions:
        for instruction in function.instructions:
            if instruction.line <= remark.ptx_line and instruction.location:
                location = instruction.location
    if location is None:
        return remark
    source, *callers = (f"{PurePath(frame.file).name}:{frame.line}" for frame in location)
    return replace(remark, source=source, called_from=tuple(callers))
