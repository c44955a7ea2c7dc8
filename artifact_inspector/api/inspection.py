"""One compiled kernel as an object, with assertions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from artifact_inspector.api._pictures import small_timeline
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
from artifact_inspector.api.region import RegionView
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.files.cache import Cache
from artifact_inspector.findings import find_findings
from artifact_inspector.model import EventKind, RegionKind, Severity, Stage
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.console import to_text
from artifact_inspector.report.findings import pick_rules
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.report.notebook_html import to_html
from artifact_inspector.report.phrases import plural
from artifact_inspector.vocabulary.rows import Summary, summarise

if TYPE_CHECKING:
    import networkx

    from artifact_inspector.hardware.targets import Target


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
            message_lines = "".join(f"\n  {x.code} {x.name}: {x.remark.message}" for x in failing)
            self._fail(
                f"has {len(failing)} {plural('finding', len(failing))}{message_lines}", [x.code for x in failing]
            )

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
        from artifact_inspector.facts.graph import graph_of
        from artifact_inspector.report.exchange.graph import to_networkx

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
