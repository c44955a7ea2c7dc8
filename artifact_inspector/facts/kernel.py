"""The facts of a kernel, of its stages and of their regions.

Each fact is a typed member that is read on demand. Its body leads to the method of `KernelReading` or
`StageReading` that computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from artifact_inspector.analysis.access.accesses import AccessCounts
from artifact_inspector.analysis.access.cache_policies import CachePolicy
from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.analysis.access.missing_masks import MissingMask
from artifact_inspector.analysis.flow.kernel_program import KernelProgram
from artifact_inspector.analysis.matrix.generation import MatrixGeneration
from artifact_inspector.analysis.matrix.widened_operands import WidenedDot
from artifact_inspector.analysis.matrix.work_balance import WorkBalance
from artifact_inspector.analysis.order.region_facts import RegionFacts
from artifact_inspector.analysis.overlap.partitions import PartitionFacts, PartitionSchedule
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import WaitFacts as WaitFacts
from artifact_inspector.analysis.overlap.waits import depths_for_loads
from artifact_inspector.analysis.resources.intensity import Intensity, find_intensity
from artifact_inspector.analysis.resources.occupancy import Occupancy, find_occupancy
from artifact_inspector.analysis.resources.usage import Contradiction, Resources, find_resources
from artifact_inspector.analysis.shared.shared_memory_usage import SharedMemoryUsage
from artifact_inspector.facts.lazy import Facts, derived, growing, hidden, lazy, of_files, or_else, read_all
from artifact_inspector.facts.outline import COUNTED, Outline
from artifact_inspector.facts.region import RegionWork, no_accesses
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Stage

if TYPE_CHECKING:
    from artifact_inspector.facts.kernel_reading import KernelReading
    from artifact_inspector.facts.stage_reading import StageReading

__all__ = ["COUNTED", "KernelFacts", "Outline", "RegionWork", "StageFacts", "WaitFacts"]


class StageFacts(Facts):
    """The facts of one stage."""

    stage: Stage

    @derived
    def file(self) -> str:
        """Path relative to the cache directory."""
        return self.source_of("file").locate(self.outline.file)

    @derived
    def instructions(self) -> int:
        """Instructions of all functions."""
        return self.outline.instructions

    @derived
    def unknown(self) -> Mapping[str, int]:
        """Opcodes of unknown kind → how often each occurs."""
        return self.outline.unknown

    @derived
    def counts(self) -> Mapping[str, int]:
        """Counted kind → instructions of that kind in all functions."""
        return self.outline.counts

    @or_else(tuple)
    def waits(self) -> tuple[WaitFacts, ...]:
        """Waits in text order."""
        return self.reading.waits

    @derived
    def regions(self) -> tuple[RegionFacts, ...]:
        """Loops, partitions and straight-line code, with the order of their loads and computes."""
        return self.outline.regions

    @derived
    def work(self) -> Mapping[str, RegionWork]:
        """By region id."""
        source = self.source_of("work")
        ids = tuple(region.id for region in self.outline.regions)
        return {region: RegionWork.on_demand(source, _stage=self.stage, _region=region, _regions=ids) for region in ids}

    @or_else(no_accesses)
    def accesses(self) -> AccessCounts:
        """Accesses of the whole file to global memory."""
        return self.reading.accesses

    @derived
    def attributes(self) -> Mapping[str, str]:
        """Attributes of the module."""
        return self.outline.attributes

    @hidden
    def outline(self) -> Outline:
        """The members that every view reads."""
        return self.reading.outline

    @property
    def reading(self) -> StageReading:
        """The file of the stage, with what was computed from it."""
        return self.source_of("reading").reading.at(self.stage)

    def section(self, name: str) -> str:
        """What the index calls a member."""
        return f"{name}@{self.stage.value}"

    def region(self, name: str) -> RegionFacts | None:
        """The region of that id, if the stage has it."""
        return self._regions_by_id.get(name)

    @cached_property
    def _regions_by_id(self) -> dict[str, RegionFacts]:
        return {region.id: region for region in reversed(self.regions)}

    def waits_in(self, *regions: str | None) -> tuple[WaitFacts, ...]:
        """The waits of some regions, in text order."""
        waits_by_region = self._waits_by_region
        return tuple(
            self.waits[at] for at in sorted(at for region in set(regions) for at in waits_by_region.get(region, ()))
        )

    @cached_property
    def _waits_by_region(self) -> dict[str | None, list[int]]:
        waits_by_region: dict[str | None, list[int]] = {}
        for at, wait in enumerate(self.waits):
            waits_by_region.setdefault(wait.region, []).append(at)
        return waits_by_region

    def drains(self, region: str, least: int = 1) -> tuple[int, ...]:
        """Lines of the waits that drain a loop; empty without a simulation if it has fewer than `least` waits."""
        return self.work[region].in_flight.drains if len(self.waits_in(region)) >= least else ()

    @cached_property
    def has_matrix(self) -> bool:
        """True where any region has matrix work."""
        return any(work.matrix for work in self.work.values())


class KernelFacts(Facts):
    """The facts of a kernel: of each stage, and of all files together."""

    artifact: Artifact

    @derived
    def stages(self) -> dict[Stage, StageFacts]:
        """Text stages that could be read, in compilation order."""
        source = self.source_of("stages")
        stages = {stage: StageFacts.on_demand(source, stage=stage) for stage in source.stages}
        for facts in stages.values():
            _ = facts.outline  # which every view reads, so it is always in the index
        return stages

    @property
    def truncated(self) -> str:
        """The stages whose files are cut off: "truncated: ttgir, ptx"; empty if none is."""
        text = ""
        for stage, facts in self.stages.items():
            if facts.is_on_demand and not facts.outline.is_complete:
                text += f", {stage.value}" if text else f"truncated: {stage.value}"
        return text

    @lazy
    def program(self) -> KernelProgram | None:
        """Arguments and tiles; None without tensor-level IR."""
        return self.reading.program

    @lazy
    def principal(self) -> str | None:
        """Id of the main loop.

        It is the deepest loop with matrix operations, else the deepest loop that computes on loads, else the
        straight-line code.
        """
        return self.reading.principal

    @or_else(dict)
    def changed(self) -> Mapping[str, Stage]:
        """Region → first stage whose order verdict differs from the stage before."""
        return self.reading.changed

    @or_else(dict)
    def pipelines(self) -> Mapping[str, Pipeline]:
        """By loop."""
        return self.reading.pipelines

    @or_else(dict)
    def identities(self) -> Mapping[str, WorkBalance]:
        """By region with matrix work: whether the last stage does the work of the dots."""
        return self.reading.identities

    @or_else(dict)
    def generations(self) -> Mapping[str, MatrixGeneration]:
        """By region with matrix work: which matrix unit does it, and which the target has."""
        return self.reading.generations

    @or_else(tuple)
    def widths(self) -> tuple[LoadWidth, ...]:
        """The program's load statements: how wide each became, and what keeps it narrow."""
        return self.reading.widths

    @or_else(tuple)
    def store_widths(self) -> tuple[LoadWidth, ...]:
        """The same for its store statements."""
        return self.reading.store_widths

    @or_else(tuple)
    def policies(self) -> tuple[CachePolicy, ...]:
        """Accesses that request a cache modifier or an eviction policy, and what became of it."""
        return self.reading.policies

    @or_else(tuple)
    def unmasked(self) -> tuple[MissingMask, ...]:
        """Loads that may read past an end that the mask of another access names."""
        return self.reading.unmasked

    @partial(of_files, missing=tuple)
    def widened_dots(self) -> tuple[WidenedDot, ...]:
        """Dots that multiply wider elements than their operands are loaded with."""
        return self.reading.widened_dots

    @of_files
    def is_hand_scheduled(self) -> bool:
        """True for a program that orders its copies itself, and reads no `num_stages`."""
        return self.reading.is_hand_scheduled

    @property
    def num_stages(self) -> int | None:
        """What Triton pipelines loops by; None if unknown, or if the program orders its copies itself."""
        return None if self.is_hand_scheduled else self.artifact.num_stages

    @lazy
    def bill(self) -> SharedMemoryUsage | None:
        """Shared memory by purpose; None without TTGIR."""
        return self.reading.bill

    @or_else(tuple)
    def partitions(self) -> tuple[PartitionFacts, ...]:
        """Partitions of a warp-specialised kernel."""
        return self.reading.partitions

    @of_files
    def partition_schedule(self) -> PartitionSchedule | None:
        """How partitions hand data to each other through barriers; None without partitions."""
        return self.reading.partition_schedule

    @or_else(lambda: find_resources(None, {}))
    def resources(self) -> Resources:
        """Registers, shared memory and warps that a block takes."""
        return self.reading.resources

    @or_else(tuple)
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Facts on which two files of the kernel disagree."""
        return self.reading.contradictions

    @growing
    def problems(self) -> tuple[Problem, ...]:
        """Problems that were met while the facts that were read so far were computed."""
        source = self.source_of("problems")
        return (*source.problems, *source.reported)

    @lazy
    def remarks(self) -> tuple[CompilerRemark, ...] | None:
        """Remarks of the compilers; None where no remarks were kept."""
        return self.reading.remarks

    @property
    def reading(self) -> KernelReading:
        """The files of the kernel, with what was computed from them."""
        return self.source_of("reading").reading

    def report(self, problem: Problem) -> None:
        """Add a problem that a view met."""
        if "problems" in self.__dict__:  # a record of given values
            self.__dict__["problems"] = tuple(dict.fromkeys((*self.problems, problem)))
        else:
            self.source_of("problems").report(problem)

    @property
    def last(self) -> StageFacts | None:
        """The last text stage."""
        return next(reversed(self.stages.values()), None)

    @property
    def verdict(self) -> str | None:
        """The main loop's verdict in the last text stage."""
        region = self.principal_region
        return None if region is None else region.verdict

    @property
    def principal_region(self) -> RegionFacts | None:
        """The main loop in the last text stage that has it."""
        return self.derive("principal_region", self._find_principal_region)

    def _find_principal_region(self) -> RegionFacts | None:
        if self.principal is None:
            return None
        for stage in reversed(self.stages.values()):
            region = stage.region(self.principal)
            if region is not None:
                return region
        return None

    @property
    def changed_at(self) -> Stage | None:
        """The stage where the main loop's order verdict first changed."""
        return None if self.principal is None else self.changed.get(self.principal)

    @property
    def occupancy(self) -> Occupancy | None:
        """On the target that the kernel was compiled for; None if unknown."""
        return None if self.artifact.target is None else self.occupancy_on(self.artifact.target)

    def occupancy_on(self, target: Target) -> Occupancy:
        """The occupancy on a target, with the registers and shared memory of this binary.

        For another vendor, or another wave width, the numbers do not apply: the occupancy is unknown, with the reason.
        """
        compiled_for = self.artifact.target
        if compiled_for is not None and (
            compiled_for.backend is not target.backend or compiled_for.warp_size != target.warp_size
        ):
            difference = (
                "is another vendor's"
                if compiled_for.backend is not target.backend
                else f"has waves of {compiled_for.warp_size}, not {target.warp_size}"
            )
            reason = f"a binary for {target}: one for {compiled_for} {difference}"
            return replace(
                find_occupancy(target, registers=None, shared_bytes=None, warps_per_block=None),
                blocks_by_resource={},
                missing=(reason,),
            )
        return occupancy_of(self.resources, target, self.resources.registers.value)

    def drains(self, region: str) -> tuple[int, ...]:
        """Lines of the waits that drain a pipelined loop in the last stage that has it."""
        pipeline = self.pipelines.get(region)
        if pipeline is None or pipeline.kind is None:
            return ()
        stage = next((facts for facts in reversed(self.stages.values()) if region in facts.work), None)
        return () if stage is None else stage.drains(region)

    def intensity(self, region: str) -> Intensity | None:
        """What a pass through a region loads and multiplies, by the first tensor-level stage that has it.

        None without dots, where a size is not known, and of a cluster of CTAs, which share tiles.
        """
        blocks = self.artifact.metadata.get("num_ctas")
        if isinstance(blocks, int) and blocks > 1:
            return None
        for stage in (Stage.TTIR, Stage.TTGIR):
            facts = self.stages.get(stage)
            work = None if facts is None else facts.work.get(region)
            if work is not None:
                return find_intensity(work.accesses, work.matrix)
        return None

    @property
    def wait_depths(self) -> tuple[int, ...]:
        """Depths of the waits for loads in the main loop of the last stage, in program order."""
        return () if self.last is None else depths_for_loads(self.last.waits_in(self.principal))


def occupancy_of(resources: Resources, target: Target, registers: int | None) -> Occupancy:
    """The occupancy of a kernel on a target if a thread has so many registers."""
    return find_occupancy(
        target, registers=registers, shared_bytes=resources.shared.value,
        warps_per_block=resources.warps_per_block.value, scalar_registers=resources.scalar_registers.value,
        barriers=resources.barriers.value, tensor_columns=resources.tensor_columns.value,
        workgroup_processor=resources.workgroup_processor,
    )  # fmt: skip


View = Callable[[KernelFacts], object]
"""Reads what it is going to show of a kernel."""


def read_everything(kernel: KernelFacts) -> None:
    """Read every fact of a kernel, of its stages and of their regions."""
    for stage in kernel.stages.values():
        for work in stage.work.values():
            read_all(work)
        read_all(stage)
    read_all(kernel)
    _ = kernel.partition_schedule, kernel.is_hand_scheduled, kernel.widened_dots  # for documents and findings


def read_nothing(kernel: KernelFacts) -> None:
    """Leave every fact to whoever reads it: a comparison keeps its result, and reads a part of the facts."""
