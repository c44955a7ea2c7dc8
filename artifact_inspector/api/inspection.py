"""One compiled kernel and its regions (loops, straight-line code) as objects, with assertions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from artifact_inspector.api.evidence import (
    MATRIX,
    ORDER,
    SPILLS,
    count_matching,
    describe_shortfall,
    format_evidence,
    spill_lines,
)
from artifact_inspector.api.notebook import FindingTable
from artifact_inspector.api.records import Tabular, records_of
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.facts.selection import narrow
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import find_findings
from artifact_inspector.findings.limit import Limit, find_limit
from artifact_inspector.model import EventKind, RegionKind, Severity, Stage
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.pictures.timeline import timeline
from artifact_inspector.report.console import to_text
from artifact_inspector.report.findings import pick_rules
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.report.notebook_html import to_html
from artifact_inspector.report.phrases import describe_verdict, plural, span
from artifact_inspector.vocabulary.rows import Summary, summarise

if TYPE_CHECKING:
    import networkx

    from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
    from artifact_inspector.analysis.order.region_facts import RegionFacts
    from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
    from artifact_inspector.analysis.overlap.pipeline import Pipeline
    from artifact_inspector.analysis.resources.occupancy import Occupancy
    from artifact_inspector.hardware.targets import Target

WIDTH = 760
MAX_LANES = 2
"""Lanes of the picture: TTGIR and the last stage."""


@dataclass(frozen=True, slots=True, repr=False)
class KernelSummary(Summary):
    """A summary with a reference to its kernel."""

    inspection: Inspection = field(compare=False)

    def __repr__(self) -> str:
        return f"<facts of {self.inspection.title}>"


@dataclass(frozen=True, eq=False)
class Inspection(Tabular):
    """One compiled kernel."""

    details: KernelFacts
    """All facts of its files."""
    cache: Cache
    """The cache it was read from, with problems of its files."""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.details.artifact.display_name

    @property
    def target(self) -> Target | None:
        """The GPU it was compiled for; `target.arch` is `sm_80`."""
        return self.details.artifact.target

    @property
    def triton_version(self) -> str | None:
        """The Triton version that compiled it; None if no file records it."""
        return self.details.artifact.triton_version

    @property
    def title(self) -> str:
        """`matmul_kernel for sm_80`."""
        return self.name if self.target is None else f"{self.name} for {self.target}"

    @property
    def verdict(self) -> str | None:
        """The verdict of the main loop, or of the straight-line code without one, in its last stage."""
        return None if self.details.principal_region is None else self.region().verdict

    @property
    def facts(self) -> KernelSummary:
        """Its facts as flat rows with stable keys, to compare with a stored copy."""
        summary = summarise(self.details)
        values = {summary_field.name: getattr(summary, summary_field.name) for summary_field in fields(summary)}
        return KernelSummary(**values, inspection=self)

    @property
    def findings(self) -> FindingTable:
        """Its findings, most important first."""
        return FindingTable(find_findings(self.details))

    @property
    def regions(self) -> tuple[RegionView, ...]:
        """All regions of all stages."""
        stages = self.details.stages.values()
        return tuple(RegionView(self, name) for name in dict.fromkeys(x.id for s in stages for x in s.regions))

    @property
    def loops(self) -> tuple[RegionView, ...]:
        """The loops of the source program; without tensor-level IR, which identifies them, all loops."""
        has_tensor_ir = any(stage.order <= Stage.TTGIR.order for stage in self.details.stages)
        return tuple(
            region
            for region in self.regions
            if any(x.kind is RegionKind.LOOP and (x.is_in_program or not has_tensor_ir) for x in region.stages.values())
        )

    @property
    def registers(self) -> int | None:
        """Registers per thread; None if unknown."""
        return self.details.resources.registers.value

    @property
    def spill_bytes(self) -> int | None:
        """Spilled bytes per thread; None if unknown."""
        return self.details.resources.spill_bytes.value

    spills = spill_bytes
    """The same, by its heading in reports."""

    @property
    def occupancy(self) -> Occupancy | None:
        """Blocks and warps per SM with their limits; None if unknown."""
        return self.details.occupancy

    @property
    def limit(self) -> Limit:
        """What limits it, with the evidence: the first sentence of its report."""
        return find_limit(self.details)

    @property
    def shared_bytes(self) -> int | None:
        """Bytes of shared memory per block, as launched; None if unknown."""
        return self.details.resources.shared.value

    @property
    def matrix(self) -> int:
        """The number of matrix instructions in the last stage."""
        last = self.details.last
        return 0 if last is None else last.counts[EventKind.MATRIX.count_name]

    def region(self, name: str | None = None) -> RegionView:
        """The region with that id; by default the main loop.

        Raises:
            UsageError: there is none; the remedy lists the regions.
        """
        __tracebackhide__ = True
        return self._find_region("region", self.regions, name if name is not None else self.details.principal)

    def loop(self, name: str | int | None = None) -> RegionView:
        """The loop with that id (`loop@81`) or source line; by default the main loop.

        Raises:
            UsageError: there is none, or no main loop; the remedy lists the loops.
        """
        __tracebackhide__ = True
        loops = self.loops
        if name is None:
            name = self.details.principal if any(x.id == self.details.principal for x in loops) else None
            name = loops[0].id if name is None and len(loops) == 1 else name
        return self._find_region("loop", loops, f"loop@{name}" if isinstance(name, int) else name)

    def stage(self, name: str | Stage) -> StageFacts:
        """The facts of one stage.

        Raises:
            UsageError: the stage was not read; the remedy lists the others.
        """
        __tracebackhide__ = True
        for stage, facts in self.details.stages.items():
            if name in (stage, stage.value):
                return facts
        stage_name = name.value if isinstance(name, Stage) else name
        have = ", ".join(stage.value for stage in self.details.stages)
        raise UsageError(f"{self.title} has no readable stage {stage_name!r}.", f"It has {have or 'none'}.")

    def assert_interleaved(self) -> None:
        """Fail unless the main loop is interleaved."""
        __tracebackhide__ = True
        self.region().assert_interleaved()

    def assert_clustered(self) -> None:
        """Fail unless the main loop is clustered."""
        __tracebackhide__ = True
        self.region().assert_clustered()

    def assert_pipelined(self, distance: int | None = None) -> None:
        """Fail unless the main loop is pipelined, by `distance` iterations if given."""
        __tracebackhide__ = True
        self.loop().assert_pipelined(distance)

    def assert_mma(self, count: int | None = None, *, op: str | None = None, shape: str | None = None) -> None:
        """Fail unless the last stage has `count` (default: any) matrix instructions of this kind."""
        __tracebackhide__ = True
        last = self.details.last
        work = (
            ()
            if last is None
            else tuple(matches for region_work in last.work.values() for matches in region_work.matrix)
        )
        matches = count_matching(work, op, shape) if op or shape else self.matrix
        if not (matches if count is None else matches == count):
            stage = None if last is None else last.stage
            self._fail(describe_shortfall(matches, count, op, shape, stage, work), MATRIX)

    def assert_no_spills(self) -> None:
        """Fail if registers are spilled, or if it is unknown whether they are."""
        __tracebackhide__ = True
        resources = self.details.resources
        if resources.spill_bytes.value is None:
            self._fail(f"may spill registers (unknown: {resources.spill_bytes.source})", SPILLS)
        if resources.spill_bytes.value or resources.reload_bytes.value:
            reload_bytes = resources.reload_bytes.value
            reload_text = "" if reload_bytes is None else f" and reads {reload_bytes} back"
            line_text = "".join(f"\n{line}" for line in spill_lines(self.details))
            spills = f"spills {resources.spill_bytes.value} B of registers per thread{reload_text}"
            self._fail(f"{spills} ({resources.spill_bytes.source}){line_text}", SPILLS)

    def assert_no_findings(self, *codes: str) -> None:
        """Fail if the kernel has one of these findings (`AI001`, `narrow-loads`); by default any warning.

        Raises:
            UsageError: there is no finding with that code or name.
        """
        __tracebackhide__ = True
        codes_to_fail = {rule.code for code in codes for rule in pick_rules(code)}
        failing = [
            x for x in self.findings if x.code in codes_to_fail or (not codes and x.severity is Severity.WARNING)
        ]
        if failing:
            names = ", ".join(dict.fromkeys(f"{x.code} {x.name}" for x in failing))
            self._fail(f"has {len(failing)} {plural('finding', len(failing))}: {names}", [x.code for x in failing])

    def evidence(self, codes: Iterable[str] = ORDER) -> str:
        """The main loop at every stage, and the pages of its findings."""
        if self.details.principal_region is None:
            return format_evidence(self.cache, self.details, codes)
        return self.region().evidence(codes)

    def report(self, width: int = 100) -> str:
        """The full report of the kernel as text, `width` columns wide."""
        return to_text(KernelReport(self.cache, self.details), width)

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per region and stage, for pandas and Arrow.

        Example:
            >>> pandas.DataFrame(kernel.to_records())  # doctest: +SKIP
            >>> pyarrow.Table.from_pylist(kernel.to_records())  # doctest: +SKIP
        """
        return records_of(self.details)

    def graph(self, stage: str | Stage | None = None, region: str | None = None) -> networkx.DiGraph[str]:
        """The graph of blocks, loads, computes and stores of a stage (default: the last) or of one region.

        Nodes have `kind`, `label` (the opcode), `line` and `source`. Edges have `kind` (`control`, `holds`,
        `data`, `address`) and `carried`: whether they lead into the next iteration.

        Raises:
            UsageError: there is no such stage or region; the remedy lists them.
        """
        __tracebackhide__ = True
        from artifact_inspector.facts.graph import graph_of  # few callers draw graphs
        from artifact_inspector.report.exchange.graph import to_networkx  # which lists need not load

        graph_stage = None if stage is None else self.stage(stage).stage
        return to_networkx(graph_of(self.details.artifact, graph_stage, region))

    def _find_region(self, kind: str, regions: tuple[RegionView, ...], name: str | None) -> RegionView:
        __tracebackhide__ = True
        for region in regions:
            if region.id == name:
                return region
        region_list = ", ".join(f"{region.id} ({region.phrase})" for region in regions)
        if not regions:
            remedy = f"Its regions are {', '.join(x.id for x in self.regions)}." if self.regions else None
            raise UsageError(f"{self.title} has no {kind}.", remedy)
        missing = f"no {kind} {name!r}" if name is not None else f"{len(regions)} {kind}s and no main one"
        raise UsageError(f"{self.title} has {missing}.", f"It has {region_list}.")

    def _fail(self, sentence: str, codes: Iterable[str]) -> None:
        __tracebackhide__ = True
        raise AssertionError(escape_unprintable(f"{self.title} {sentence}\n\n{self.evidence(codes)}"))

    def __repr__(self) -> str:
        region = self.details.principal_region
        verdict = "no readable stage" if region is None else f"{region.id} {region.phrase}"
        version = "" if self.triton_version is None else f" by Triton {self.triton_version}"
        return f"<{self.title}{version}: {verdict}>"

    def _repr_html_(self) -> str:
        return small_timeline(self.details) + to_html(KernelReport(self.cache, self.details))


class Verdict(str):
    """A verdict: a plain string that explains itself when a test compares it with another word."""

    _region: RegionView

    def __new__(cls, verdict: str, region: RegionView) -> Verdict:
        """The word of a region's verdict."""
        instance = super().__new__(cls, verdict)
        instance._region = region
        return instance

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # another process receives the plain word
        return str, (str(self),)

    def explain_comparison(self, expected: object) -> tuple[list[str], str]:
        """The message of a failed comparison with another word: sentences, then the evidence."""
        region = self._region
        meaning = describe_verdict(str(self), region.stage)
        sentence = f"{region.id} of {region.inspection.title} is {region.phrase} at {region.stage.value}"
        return [sentence if meaning is None else f"{sentence}: {meaning}"], region.evidence()


@dataclass(frozen=True, eq=False)
class RegionView:
    """One region of a kernel at all stages. Properties describe the last stage that has it."""

    inspection: Inspection
    id: str

    @cached_property
    def stages(self) -> dict[Stage, RegionFacts]:
        """The stages that have it, in compilation order."""
        regions = {stage: facts.region(self.id) for stage, facts in self.inspection.details.stages.items()}
        return {stage: region for stage, region in regions.items() if region is not None}

    @property
    def last(self) -> RegionFacts:
        """The facts of the last stage that has it."""
        return next(reversed(self.stages.values()))

    @property
    def stage(self) -> Stage:
        """The last stage that has it."""
        return next(reversed(self.stages))

    def at(self, stage: str | Stage) -> RegionFacts:
        """The facts of the region at one stage.

        Raises:
            UsageError: the stage does not have it.
        """
        __tracebackhide__ = True
        facts = self.inspection.stage(stage)
        region = facts.region(self.id)
        if region is None:
            raise UsageError(
                f"{self.inspection.title} has no region {self.id} at {facts.stage.value}.",
                f"Stages that have it: {', '.join(other_stage.value for other_stage in self.stages)}.",
            )
        return region

    @property
    def verdict(self) -> Verdict:
        """The order of loads and computes, without the distance: `pipelined`, not `pipelined(3)`."""
        return Verdict(self.last.verdict, self)

    @property
    def phrase(self) -> str:
        """The verdict as reports print it: `pipelined(3)`."""
        return self.last.phrase

    @property
    def distance(self) -> int | tuple[int, int] | None:
        """Iterations that its loads run ahead; a range if they differ."""
        return self.last.distance

    @property
    def signature(self) -> str:
        """Its events in order, equal ones counted: `L2 F1`."""
        return self.last.signature

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line in the file of its last stage."""
        return self.last.lines

    @property
    def matrix(self) -> int:
        """The number of its matrix instructions."""
        return self.last.matrix

    @property
    def matrix_work(self) -> tuple[MatrixWork, ...]:
        """Its matrix instructions by opcode, shape and types."""
        work = self.inspection.details.stages[self.stage].work.get(self.id)
        return () if work is None else work.matrix

    @property
    def in_flight(self) -> LoadsInFlight | None:
        """Loads and copies in flight in it."""
        work = self.inspection.details.stages[self.stage].work.get(self.id)
        return None if work is None else work.in_flight

    @property
    def pipeline(self) -> Pipeline | None:
        """The pipeline depth of a loop, or why the loop is not pipelined."""
        return self.inspection.details.pipelines.get(self.id)

    def assert_interleaved(self) -> None:
        """Fail unless each round's loads are after the computes of the previous round."""
        __tracebackhide__ = True
        self._assert_verdict("interleaved")

    def assert_clustered(self) -> None:
        """Fail unless each round's loads are before the computes of the previous round."""
        __tracebackhide__ = True
        self._assert_verdict("clustered")

    def assert_pipelined(self, distance: int | None = None) -> None:
        """Fail unless the loop's loads run ahead of its computes, by `distance` iterations if given."""
        __tracebackhide__ = True
        self._assert_verdict("pipelined")
        if distance is not None and self.distance != distance:
            self._fail(f"is {self.phrase}; expected a distance of {distance}", ORDER)

    def assert_mma(self, count: int | None = None, *, op: str | None = None, shape: str | None = None) -> None:
        """Fail unless it has matrix instructions with this opcode and shape.

        Args:
            count: expected number; at least one by default.
            op: opcode as in reports: `mma.sync`, `wgmma.mma_async`, `v_mfma` …
            shape: `m16n8k16`.
        """
        __tracebackhide__ = True
        count_present = count_matching(self.matrix_work, op, shape) if op or shape else self.matrix
        if not (count_present if count is None else count_present == count):
            self._fail(describe_shortfall(count_present, count, op, shape, self.stage, self.matrix_work), MATRIX)

    def evidence(self, codes: Iterable[str] = ORDER) -> str:
        """The region at every stage with its lines, and the pages of its findings."""
        kernel = narrow(self.inspection.details, (), self.id)
        pipelines = {name: pipeline for name, pipeline in kernel.pipelines.items() if name == self.id}
        return format_evidence(self.inspection.cache, replace(kernel, pipelines=pipelines), codes)

    def _assert_verdict(self, verdict: str) -> None:
        __tracebackhide__ = True
        if self.verdict != verdict:
            self._fail(f"is {self.phrase} at {self.stage.value}, not {verdict}", ORDER)

    def _fail(self, sentence: str, codes: Iterable[str]) -> None:
        __tracebackhide__ = True
        raise AssertionError(
            escape_unprintable(f"{self.id} of {self.inspection.title} {sentence}\n\n{self.evidence(codes)}")
        )

    def __repr__(self) -> str:
        matrix = f", {self.matrix} MMA" if self.matrix else ""
        location = f"{self.stage.value} lines {span(*self.lines)}"
        return f"<{self.id} of {self.inspection.title}: {self.phrase}, {location}{matrix}>"

    def _repr_html_(self) -> str:
        kernel = narrow(self.inspection.details, (), self.id)
        picture = small_timeline(self.inspection.details, self.id)
        return picture + to_html(KernelReport(self.inspection.cache, kernel, is_one_region=True))


def small_timeline(kernel: KernelFacts, region: str | None = None) -> str:
    """The timeline in TTGIR and in the last stage of the region, as SVG; empty if nothing can be drawn."""
    region_stages = [stage for stage, facts in kernel.stages.items() if region is None or facts.region(region)]
    lanes = [stage for stage in region_stages if stage is Stage.TTGIR or stage is region_stages[-1]]
    try:
        return timeline(kernel, region, lanes[-MAX_LANES:], width=WIDTH) if lanes else ""
    except UsageError:
        return ""
