"""The facts of one compiled variant by the lines of the user's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.execution.prediction import Prediction
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import Finding, find_findings, find_launch_findings
from artifact_inspector.model import SourceLine, Stage
from artifact_inspector.model.region import RegionId
from artifact_inspector.model.text import integer
from artifact_inspector.report.diff import value_text
from artifact_inspector.vocabulary.fact import BYTES
from artifact_inspector.vocabulary.names import name_regions
from artifact_inspector.vocabulary.rows import brief_of, summarise

KILOBYTE = 1024


@dataclass(frozen=True)
class Form:
    """A kernel compiled for one target, with the lines of its source."""

    kernel: KernelFacts
    file: str
    """Name of the user's file, without directories."""
    compiled_first: int
    """Line of its `def` when it was compiled."""
    first: int
    """Line of its `def` now; reported lines move with it."""
    is_stale: bool = False
    """Whether the function may have been edited since it was compiled."""
    launch: Prediction | None = None
    """Its recorded launch, simulated; None without one."""

    @property
    def shift(self) -> int:
        """Lines that the function moved down since it was compiled."""
        return self.first - self.compiled_first

    def seen_now(self, first: int, *, is_edited: bool) -> Form:
        """The same variant for a function that has moved or was edited."""
        if first == self.first and not is_edited:
            return self
        return replace(self, first=first, is_stale=self.is_stale or is_edited)

    @property
    def target(self) -> str:
        """The GPU it was compiled for."""
        return str(self.kernel.artifact.target or "unknown target")

    @cached_property
    def findings(self) -> tuple[tuple[int | None, Finding], ...]:
        """Its findings, each with its line; None if it has no line in this file."""
        found = [*find_findings(self.kernel)]
        found += [] if self.launch is None else find_launch_findings(self.launch)
        return tuple((next(self._lines(one.remark.sources), None), one) for one in found)

    @cached_property
    def hints(self) -> Mapping[int, str]:
        """Line of a load or store → short hint: `16 B · 3 ahead`."""
        found: dict[int, str] = {}
        for access in (*self.kernel.widths, *self.kernel.store_widths):
            for line in self._lines([] if access.source is None else [access.source]):
                parts = [] if access.width is None else [f"{access.width} B"]
                ahead = self._ahead.get(line)
                parts += [f"{ahead} ahead"] if ahead else []
                if parts:
                    found.setdefault(line, " · ".join(parts))
        return found

    def told(self, line: int, first: int) -> list[str]:
        """Sentences about the compiled code of a line.

        Args:
            line: 1-based, in the current file.
            first: line of the kernel's `def`, which gets the facts of the whole kernel.
        """
        said = list(self._of_kernel()) if line == first else []
        said += self._of_loop(line)
        for what, accesses in (("load", self.kernel.widths), ("store", self.kernel.store_widths)):
            for access in accesses:
                if access.source is not None and line in self._lines([access.source]):
                    said.append(self._of_access(what, access, line))
        return [*said, *self._of_launch(line)]

    def _lines(self, sources: object) -> Iterator[int]:
        """Current lines of this file among the sources."""
        assert isinstance(sources, list | tuple)
        for source in sources:
            place = source.innermost if isinstance(source, SourceLine) else str(source)
            file, _, number = place.partition(" ")[0].rpartition(":")
            line = integer(number)
            if file == self.file and line is not None:
                yield line + self.shift

    @cached_property
    def _ahead(self) -> Mapping[int, int]:
        """Line of a load → iterations that it runs ahead."""
        found: dict[int, int] = {}
        last = self.kernel.last
        for region in () if last is None else last.regions:
            for one in region.rounds:
                for source, distance in zip(one.sources, one.distances, strict=False):
                    for line in self._lines([source]):
                        found[line] = max(found.get(line, 0), distance)
        return found

    @cached_property
    def _rows(self) -> Mapping[str, list[str]]:
        """Region (empty: the whole kernel) → its facts in brief."""
        told = summarise(self.kernel)
        found: dict[str, list[str]] = {}
        for row in told.rows:
            name = brief_of(row.key, row.region, told.steps)
            if name and row.value not in (None, (), 0):
                unit = " B" if row.unit in BYTES and isinstance(row.value, int) else ""
                found.setdefault(row.region, []).append(f"{name} {value_text(row.value)}{unit}")
        return found

    def _of_kernel(self) -> Iterator[str]:
        region = self.kernel.principal_region
        if region is not None:
            yield f"{region.id}: {region.phrase}"
        if told := self._rows.get(""):
            yield ", ".join(told)

    def _of_loop(self, line: int) -> Iterator[str]:
        for region, name in name_regions(self.kernel).items():
            place = RegionId.parse(region).place
            if place is not None and place + self.shift == line and name in self._rows:
                yield f"{region}: {', '.join(self._rows[name])}"

    def _of_access(self, what: str, access: LoadWidth, line: int) -> str:
        name = f"{what} {access.name}" if access.name else what
        width = "width unknown" if access.width is None else f"{access.width} B per thread"
        count = sum(access.widths.values())
        times = f" in {count} instructions" if count > 1 else ""
        ahead = self._ahead.get(line)
        runs = f", {ahead} iterations ahead" if ahead and what == "load" else ""
        why = "; ".join(f"{one.reason.value}{f' ({one.name})' if one.name else ''}" for one in access.causes)
        return f"{name}: {width}{times}{runs}{f' — {why}' if why else ''}"

    def _of_launch(self, line: int) -> Iterator[str]:
        if self.launch is None:
            return
        grid = "×".join(map(str, self.launch.grid))
        for one in self.launch.by_source:
            if one.source is not None and line in self._lines([one.source]):
                said = [] if one.executed is None else [f"{one.executed} instructions executed"]
                said += _against(one.sectors, one.sectors_ideal, "sectors")
                said += _against(one.wavefronts, one.wavefronts_ideal, "shared-memory wavefronts")
                yield f"a launch of {grid} CTAs: {', '.join(said)}"


def compiled_at(artifact: Artifact) -> tuple[str, int] | None:
    """File and line of the `def` that a kernel was compiled from; None without TTIR that records them."""
    module = read_module(artifact, Stage.TTIR, [])
    for function in () if module is None else module.functions:
        if function.name in (artifact.name, artifact.stem) and function.location:
            frame = function.location[-1]
            return frame.file, frame.line
    return None


def _against(found: int | None, ideal: int | None, what: str) -> list[str]:
    if not found:
        return []
    return [f"{found} {what}" if ideal in (None, found) else f"{found} {what} (ideal: {ideal})"]
