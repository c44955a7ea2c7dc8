"""One region (loop or straight-line code) of a kernel at all stages, with assertions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from artifact_inspector.api._pictures import small_timeline
from artifact_inspector.api.evidence import MATRIX, ORDER, count_matching, describe_shortfall, format_evidence
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import narrow
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.kernel_report import KernelReport
from artifact_inspector.report.notebook_html import to_html
from artifact_inspector.report.phrases import describe_verdict, span

if TYPE_CHECKING:
    from artifact_inspector.analysis.matrix.matrix_work import MatrixWork
    from artifact_inspector.analysis.order.region_facts import RegionFacts
    from artifact_inspector.analysis.overlap.loads_in_flight import LoadsInFlight
    from artifact_inspector.analysis.overlap.pipeline import Pipeline
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.model import Stage


class InspectedKernel(Protocol):
    """The kernel of a region; `Inspection` implements it."""

    @property
    def cache(self) -> Cache:
        """The cache with its files."""
        ...

    @property
    def details(self) -> KernelFacts:
        """All facts of the kernel."""
        ...

    @property
    def title(self) -> str:
        """Name and target."""
        ...

    def stage(self, name: str | Stage) -> StageFacts:
        """The facts of one stage."""
        ...


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
        meaning = describe_verdict(str(self))
        sentence = f"{region.id} of {region.inspection.title} is {region.phrase} at {region.stage.value}"
        return [sentence if meaning is None else f"{sentence}: {meaning}"], region.evidence()


@dataclass(frozen=True, eq=False)
class RegionView:
    """One region of a kernel at all stages. Properties describe the last stage that has it."""

    inspection: InspectedKernel
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
                f"{self._name} has no region {self.id} at {facts.stage.value}.",
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
        raise AssertionError(escape_unprintable(f"{self.id} of {self._name} {sentence}\n\n{self.evidence(codes)}"))

    @property
    def _name(self) -> str:
        return self.inspection.title

    def __repr__(self) -> str:
        matrix = f", {self.matrix} MMA" if self.matrix else ""
        location = f"{self.stage.value} lines {span(*self.lines)}"
        return f"<{self.id} of {self._name}: {self.phrase}, {location}{matrix}>"

    def _repr_html_(self) -> str:
        kernel = narrow(self.inspection.details, (), self.id)
        picture = small_timeline(self.inspection.details, self.id)
        return picture + to_html(KernelReport(self.inspection.cache, kernel, is_one_region=True))
