"""One region of a kernel, at all stages, as an object to ask and to make assertions about."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from artifact_inspector.api._pictures import small_timeline
from artifact_inspector.api.evidence import MATRIX, ORDER, count_matching, describe_shortfall, explain
from artifact_inspector.errors import UsageError
from artifact_inspector.facts.selection import narrow
from artifact_inspector.model.printable import escaped
from artifact_inspector.report.markup import to_html
from artifact_inspector.report.story import KernelReport
from artifact_inspector.report.words import describe_verdict, span

if TYPE_CHECKING:
    from artifact_inspector.analysis.matrix.work import MatrixWork
    from artifact_inspector.analysis.order.facts import RegionFacts
    from artifact_inspector.analysis.overlap.inflight import InFlight
    from artifact_inspector.analysis.overlap.pipeline import Pipeline
    from artifact_inspector.facts.kernel import KernelFacts, StageFacts
    from artifact_inspector.files.cache import Cache
    from artifact_inspector.model import Stage


class Inspected(Protocol):
    """The kernel that a region belongs to, as `Inspection` is one."""

    @property
    def cache(self) -> Cache:
        """Where its files are."""
        ...

    @property
    def details(self) -> KernelFacts:
        """All that is known of it."""
        ...

    @property
    def title(self) -> str:
        """Its name with its target."""
        ...

    def stage(self, name: str | Stage) -> StageFacts:
        """What one stage says."""
        ...


class Verdict(str):
    """A verdict as a plain string, which can say where it comes from when a test expected another."""

    _region: RegionView

    def __new__(cls, word: str, region: RegionView) -> Verdict:
        """The word of a region's verdict."""
        made = super().__new__(cls, word)
        made._region = region
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        # a copy in another process is the word
        return str, (str(self),)

    def explain_comparison(self, other: object) -> tuple[list[str], str]:
        """What a failed comparison with another word says: sentences, then the evidence."""
        region = self._region
        meaning = describe_verdict(str(self))
        said = f"{region.id} of {region.inspection.title} is {region.phrase} at {region.stage.value}"
        return [said if meaning is None else f"{said}: {meaning}"], region.evidence()


@dataclass(frozen=True, eq=False)
class RegionView:
    """One region of a kernel at all stages; what is said of it is said of the last stage that has it."""

    inspection: Inspected
    id: str

    @cached_property
    def stages(self) -> dict[Stage, RegionFacts]:
        """The stages that have it, in compilation order."""
        found = {stage: facts.region(self.id) for stage, facts in self.inspection.details.stages.items()}
        return {stage: region for stage, region in found.items() if region is not None}

    @property
    def last(self) -> RegionFacts:
        """What the last stage that has it says."""
        return next(reversed(self.stages.values()))

    @property
    def stage(self) -> Stage:
        """The last stage that has it."""
        return next(reversed(self.stages))

    def at(self, stage: str | Stage) -> RegionFacts:
        """What one stage says of it.

        Raises:
            UsageError: the stage does not have it.
        """
        __tracebackhide__ = True
        facts = self.inspection.stage(stage)
        found = facts.region(self.id)
        if found is None:
            raise UsageError(
                f"{self._name} has no region {self.id} at {facts.stage.value}.",
                f"The stages that have it: {', '.join(one.value for one in self.stages)}.",
            )
        return found

    @property
    def verdict(self) -> Verdict:
        """In which order it loads and computes, without the distance: `pipelined`, not `pipelined(3)`."""
        return Verdict(self.last.verdict, self)

    @property
    def phrase(self) -> str:
        """The verdict as reports print it: `pipelined(3)`."""
        return self.last.phrase

    @property
    def distance(self) -> int | tuple[int, int] | None:
        """Iterations that its loads run ahead; a range where they differ."""
        return self.last.distance

    @property
    def signature(self) -> str:
        """Its events in order, run by run."""
        return self.last.signature

    @property
    def lines(self) -> tuple[int, int]:
        """First and last line in the file of its last stage."""
        return self.last.lines

    @property
    def matrix(self) -> int:
        """Its matrix instructions."""
        return self.last.matrix

    @property
    def matrix_work(self) -> tuple[MatrixWork, ...]:
        """Its matrix instructions by opcode, shape and types."""
        work = self.inspection.details.stages[self.stage].work.get(self.id)
        return () if work is None else work.matrix

    @property
    def in_flight(self) -> InFlight | None:
        """What is in flight in it."""
        work = self.inspection.details.stages[self.stage].work.get(self.id)
        return None if work is None else work.in_flight

    @property
    def pipeline(self) -> Pipeline | None:
        """How deep it is pipelined, or why it is not; of a loop."""
        return self.inspection.details.pipelines.get(self.id)

    def assert_interleaved(self) -> None:
        """Fail unless each round's loads stand behind the computes of the round before."""
        __tracebackhide__ = True
        self._assert_verdict("interleaved")

    def assert_clustered(self) -> None:
        """Fail unless each round's loads stand in front of the computes of the round before."""
        __tracebackhide__ = True
        self._assert_verdict("clustered")

    def assert_pipelined(self, distance: int | None = None) -> None:
        """Fail unless the loop's loads run ahead of its computes, by so many iterations if given."""
        __tracebackhide__ = True
        self._assert_verdict("pipelined")
        if distance is not None and self.distance != distance:
            self._fail(f"is {self.phrase}, where a distance of {distance} was expected", ORDER)

    def assert_mma(
        self, count: int | None = None, *, op: str | None = None, shape: str | None = None
    ) -> None:
        """Fail unless it has matrix instructions: so many, of that name and shape.

        Args:
            count: how many there must be; any but none without it.
            op: as reports name it: `mma.sync`, `wgmma.mma_async`, `v_mfma` …
            shape: `m16n8k16`.
        """
        __tracebackhide__ = True
        found = count_matching(self.matrix_work, op, shape) if op or shape else self.matrix
        if not (found if count is None else found == count):
            self._fail(describe_shortfall(found, count, op, shape, self.stage, self.matrix_work), MATRIX)

    def evidence(self, codes: Iterable[str] = ORDER) -> str:
        """The region at every stage with its lines, and the pages of those findings that were made."""
        kernel = narrow(self.inspection.details, (), self.id)
        own = {name: found for name, found in kernel.pipelines.items() if name == self.id}
        return explain(self.inspection.cache, replace(kernel, pipelines=own), codes)

    def _assert_verdict(self, word: str) -> None:
        __tracebackhide__ = True
        if self.verdict != word:
            self._fail(f"is {self.phrase} at {self.stage.value}, not {word}", ORDER)

    def _fail(self, sentence: str, codes: Iterable[str]) -> None:
        __tracebackhide__ = True
        raise AssertionError(escaped(f"{self.id} of {self._name} {sentence}\n\n{self.evidence(codes)}"))

    @property
    def _name(self) -> str:
        return self.inspection.title

    def __repr__(self) -> str:
        matrix = f", {self.matrix} MMA" if self.matrix else ""
        where = f"{self.stage.value} lines {span(*self.lines)}"
        return f"<{self.id} of {self._name}: {self.phrase}, {where}{matrix}>"

    def _repr_html_(self) -> str:
        kernel = narrow(self.inspection.details, (), self.id)
        picture = small_timeline(self.inspection.details, self.id)
        return picture + to_html(KernelReport(self.inspection.cache, kernel, one_region=True))
