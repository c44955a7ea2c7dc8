"""What is known of a kernel when its files have been read: the types, and the views on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from artifact_inspector.analysis.access.accesses import Accesses
from artifact_inspector.analysis.access.bounds_checks import Check
from artifact_inspector.analysis.access.cache_policies import Policy
from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.analysis.access.tile_ends import Unmasked
from artifact_inspector.analysis.flow.program import Program
from artifact_inspector.analysis.flow.trips import Trips
from artifact_inspector.analysis.matrix.fragments import OperandReads
from artifact_inspector.analysis.matrix.generation import Generation
from artifact_inspector.analysis.matrix.identity import Identity
from artifact_inspector.analysis.matrix.work import MatrixWork
from artifact_inspector.analysis.order.facts import RegionFacts
from artifact_inspector.analysis.overlap.inflight import InFlight
from artifact_inspector.analysis.overlap.issue import Issue
from artifact_inspector.analysis.overlap.partitions import PartitionFacts, Slot
from artifact_inspector.analysis.overlap.pipeline import Pipeline
from artifact_inspector.analysis.overlap.waits import Wait as WaitFacts
from artifact_inspector.analysis.overlap.waits import depths_for_loads
from artifact_inspector.analysis.resources.intensity import Intensity, find_intensity
from artifact_inspector.analysis.resources.occupancy import Occupancy, find_occupancy
from artifact_inspector.analysis.resources.taken import Contradiction, Resources
from artifact_inspector.analysis.shared.bill import Bill
from artifact_inspector.analysis.shared.conversions import Conversion
from artifact_inspector.facts.records import Record
from artifact_inspector.files.cache import Artifact, Problem
from artifact_inspector.files.compiler_remarks import CompilerRemark
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import EventKind, Stage

__all__ = ["COUNTED", "TOLD", "KernelFacts", "Outline", "RegionWork", "StageFacts", "WaitFacts"]

COUNTED = tuple(
    kind for kind in EventKind if kind.letter and kind not in (EventKind.UNKNOWN, EventKind.SCHEDULE_HINT)
)
"""Kinds whose instructions are counted per file."""
TOLD = "told"
"""What a kernel is asked for by who has a problem to add to its own."""


@dataclass(frozen=True, slots=True)
class RegionWork(Record):
    """What the instructions of one region do, beside the order that they stand in."""

    in_flight: InFlight
    matrix: tuple[MatrixWork, ...]
    operand_reads: tuple[OperandReads, ...]
    """Of the last stage: how what matrix instructions multiply comes out of shared memory, on NVIDIA."""
    accesses: Accesses
    checks: Mapping[Check, int]
    """What staying inside the tensors costs: compares that decide accesses, integer divisions."""
    conversions: tuple[Conversion, ...]
    """TTGIR only."""
    trips: Trips | None
    """Of a loop of tensor-level IR whose bounds are constants."""
    slots: tuple[Slot, ...]
    """Between the schedule hints of a loop; empty where it has none."""
    issue: Issue | None
    """SASS with its encoding only."""


@dataclass(frozen=True, slots=True)
class Outline:
    """What is said of every stage that can be read."""

    file: str
    instructions: int
    unknown: Mapping[str, int]
    counts: Mapping[str, int]
    regions: tuple[RegionFacts, ...]
    attributes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StageFacts(Record):
    """What one file says."""

    stage: Stage
    file: str
    """Path relative to the cache directory."""
    instructions: int
    unknown: Mapping[str, int]
    """Opcodes of no known kind, with how often each stands there."""
    counts: Mapping[str, int]
    """Instructions of each counted kind, over all functions."""
    waits: tuple[WaitFacts, ...]
    regions: tuple[RegionFacts, ...]
    work: Mapping[str, RegionWork]
    """By region id."""
    accesses: Accesses
    """Of the whole file."""
    attributes: Mapping[str, str]

    def region(self, name: str) -> RegionFacts | None:
        """The region of that id, if the stage has it."""
        return self.derive("region", self._regions_by_id).get(name)

    def _regions_by_id(self) -> dict[str, RegionFacts]:
        return {found.id: found for found in reversed(self.regions)}

    def waits_in(self, *regions: str | None) -> tuple[WaitFacts, ...]:
        """The waits that stand in some regions, in text order."""
        places = self.derive("waits", self._waits_by_region)
        return tuple(
            self.waits[at] for at in sorted(at for one in set(regions) for at in places.get(one, ()))
        )

    def _waits_by_region(self) -> dict[str | None, list[int]]:
        found: dict[str | None, list[int]] = {}
        for at, wait in enumerate(self.waits):
            found.setdefault(wait.region, []).append(at)
        return found

    @property
    def has_matrix(self) -> bool:
        """True where any region has matrix work."""
        return self.derive("matrix", lambda: any(work.matrix for work in self.work.values()))


@dataclass(frozen=True, slots=True)
class KernelFacts(Record):
    """What a kernel's files say, stage by stage and together."""

    CHANGING = frozenset({"problems"})

    artifact: Artifact
    stages: dict[Stage, StageFacts]
    """Text stages that could be read, in compilation order."""
    program: Program | None
    """Arguments and tiles; None without tensor-level IR."""
    principal: str | None
    """The region that the kernel is known by: its deepest loop of matrix operations, else its
    deepest loop that computes on loads, else its straight-line code."""
    changed: Mapping[str, Stage]
    """Region → first stage whose order verdict differs from the stage before."""
    pipelines: Mapping[str, Pipeline]
    """By loop."""
    identities: Mapping[str, Identity]
    """By region with matrix work: whether the last stage does the work of the dots."""
    generations: Mapping[str, Generation]
    """By region with matrix work: which matrix unit does it, and which the target has."""
    widths: tuple[LoadWidth, ...]
    """The program's load statements, with how wide each became and what keeps it narrow."""
    store_widths: tuple[LoadWidth, ...]
    """The same of its store statements."""
    policies: tuple[Policy, ...]
    """Accesses that ask for a cache modifier or an eviction policy, and what became of it."""
    unmasked: tuple[Unmasked, ...]
    """Load statements that read past an end which a mask of another access names."""
    bill: Bill | None
    """Shared memory; None without TTGIR."""
    partitions: tuple[PartitionFacts, ...]
    """Of a warp-specialised kernel."""
    resources: Resources
    contradictions: tuple[Contradiction, ...]
    """Facts that two of its files tell differently."""
    problems: tuple[Problem, ...]
    """What went wrong while the facts that were asked for so far were found."""
    remarks: tuple[CompilerRemark, ...] | None = None
    """What the compilers said; None where nobody kept it."""

    def tell(self, problem: Problem) -> None:
        """Add what went wrong while the kernel's facts were looked at."""
        told: list[Problem] = self._ask(TOLD)
        if problem not in told:
            told.append(problem)

    @property
    def last(self) -> StageFacts | None:
        """The last text stage."""
        return next(reversed(self.stages.values()), None)

    @property
    def verdict(self) -> str | None:
        """The principal region's verdict in the last text stage."""
        found = self.principal_region
        return None if found is None else found.verdict

    @property
    def principal_region(self) -> RegionFacts | None:
        """The principal region in the last text stage that has it."""
        if self.principal is None:
            return None
        for stage in reversed(self.stages.values()):
            found = stage.region(self.principal)
            if found is not None:
                return found
        return None

    @property
    def changed_at(self) -> Stage | None:
        """The stage where the principal region's order verdict first changed."""
        return None if self.principal is None else self.changed.get(self.principal)

    @property
    def occupancy(self) -> Occupancy | None:
        """On the target that the kernel was compiled for; None where that is not known."""
        return None if self.artifact.target is None else self.occupancy_on(self.artifact.target)

    def occupancy_on(self, target: Target) -> Occupancy:
        """The occupancy on a target, if this same binary's registers and shared memory held there.

        Another vendor's binary, or one for waves of another width, has other figures: nothing is said of it
        but why.
        """
        own = self.artifact.target
        if own is not None and (own.backend is not target.backend or own.warp_size != target.warp_size):
            apart = (
                "is another vendor's"
                if own.backend is not target.backend
                else f"has waves of {own.warp_size}, not {target.warp_size}"
            )
            why = f"a binary for {target}: one for {own} {apart}"
            return replace(
                find_occupancy(target, registers=None, shared_bytes=None, warps_per_block=None),
                allowed={},
                missing=(why,),
            )
        taken = self.resources
        return find_occupancy(
            target,
            registers=taken.registers.value,
            shared_bytes=taken.shared.value,
            warps_per_block=taken.warps_per_block.value,
            scalar_registers=taken.scalar_registers.value,
            barriers=taken.barriers.value,
            tensor_columns=taken.tensor_columns.value,
            workgroup_processor=taken.workgroup_processor,
        )

    def drains(self, region: str) -> tuple[int, ...]:
        """Lines of the waits that drain a pipelined loop in the last stage that has it."""
        pipeline = self.pipelines.get(region)
        if pipeline is None or pipeline.kind is None:
            return ()
        stage = next((facts for facts in reversed(self.stages.values()) if region in facts.work), None)
        return () if stage is None else stage.work[region].in_flight.drains

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
        """Depths of the waits for loads in the principal region of the last stage, in program order."""
        return () if self.last is None else depths_for_loads(self.last.waits_in(self.principal))
