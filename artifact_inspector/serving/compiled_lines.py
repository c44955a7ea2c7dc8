"""The facts of one compiled variant by the lines of the user's file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from artifact_inspector.analysis.access.load_widths import LoadWidth
from artifact_inspector.comparison.decisive_phrases import value_text
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.facts.modules import read_module
from artifact_inspector.files.cache import Artifact
from artifact_inspector.findings import Finding, find_dots, find_findings, find_launch_findings
from artifact_inspector.findings.limit import find_first
from artifact_inspector.model import SourceLine, Stage
from artifact_inspector.model.region import RegionId
from artifact_inspector.model.text import parse_integer
from artifact_inspector.report.kernel_rows import shorten
from artifact_inspector.report.region_work import describe_matrix_work
from artifact_inspector.vocabulary.fact import BYTES
from artifact_inspector.vocabulary.names import name_regions
from artifact_inspector.vocabulary.rows import brief_of, summarise

if TYPE_CHECKING:  # a launch is simulated after the first answer: importing it earlier delays that by 0.3 s
    from artifact_inspector.execution.prediction import Prediction

MAX_VARIANT = 60
"""Characters of the description of a variant."""


@dataclass(frozen=True)
class CompiledVariant:
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

    @property
    def lens(self) -> str:
        """Target, variant, predicted time and worst finding in a line."""
        worst = find_first([finding for _, finding in self.findings])
        parts = [f"{self.target} {describe_variant(self.kernel.artifact)}"]
        if self.launch is not None and (time := self.launch.time) is not None:
            from artifact_inspector.report.phrases import format_us

            parts.append(f"about {format_us(time.us)} µs, limited by {time.bound}")
        parts += ["no finding" if worst is None else worst.remark.message]
        return f"{'stale: ' if self.is_stale else ''}{' · '.join(parts)}"

    def moved_to(self, first: int, *, is_edited: bool) -> CompiledVariant:
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
        all_findings = [*find_findings(self.kernel)]
        all_findings += [] if self.launch is None else find_launch_findings(self.launch)
        return tuple((next(self._current_lines(finding.remark.sources), None), finding) for finding in all_findings)

    @cached_property
    def hints(self) -> Mapping[int, str]:
        """Line of a load or store → short hint: `16 B · 3 ahead`."""
        hint_by_line: dict[int, str] = {}
        for access in (*self.kernel.widths, *self.kernel.store_widths):
            for line in self._current_lines([] if access.source is None else [access.source]):
                hint_parts = [] if access.width is None else [f"{access.width} B"]
                ahead = self._distance_by_line.get(line)
                hint_parts += [f"{ahead} ahead"] if ahead else []
                if hint_parts:
                    hint_by_line.setdefault(line, " · ".join(hint_parts))
        return hint_by_line

    def describe_line(self, line: int, first: int) -> list[str]:
        """Sentences about the compiled code of a line.

        Args:
            line: 1-based, in the current file.
            first: line of the kernel's `def`, which gets the facts of the whole kernel.
        """
        sentences = list(self._describe_kernel()) if line == first else []
        sentences += [*self._describe_loop(line), *self._describe_dots(line)]
        for access_name, accesses in (("load", self.kernel.widths), ("store", self.kernel.store_widths)):
            for access in accesses:
                if access.source is not None and line in self._current_lines([access.source]):
                    sentences.append(self._describe_access(access_name, access, line))
        return [*sentences, *self._describe_launch(line)]

    def _current_lines(self, sources: object) -> Iterator[int]:
        assert isinstance(sources, list | tuple)
        for source in sources:
            source_text = source.innermost if isinstance(source, SourceLine) else str(source)
            file, _, number = source_text.partition(" ")[0].rpartition(":")
            line = parse_integer(number)
            if file == self.file and line is not None:
                yield line + self.shift

    @cached_property
    def _distance_by_line(self) -> Mapping[int, int]:
        distance_by_line: dict[int, int] = {}
        last = self.kernel.last
        for region in () if last is None else last.regions:
            for round_facts in region.rounds:
                for source, distance in zip(round_facts.sources, round_facts.distances, strict=False):
                    for line in self._current_lines([source]):
                        distance_by_line[line] = max(distance_by_line.get(line, 0), distance)
        return distance_by_line

    @cached_property
    def _facts_by_region(self) -> Mapping[str, list[str]]:
        """Region (empty: the whole kernel) → its facts in brief."""
        summary = summarise(self.kernel)
        facts_by_region: dict[str, list[str]] = {}
        for row in summary.rows:
            name = brief_of(row.key, row.region, summary.steps)
            if name and row.value not in (None, (), 0):
                unit = " B" if row.unit in BYTES and isinstance(row.value, int) else ""
                facts_by_region.setdefault(row.region, []).append(f"{name} {value_text(row.value)}{unit}")
        return facts_by_region

    def _describe_kernel(self) -> Iterator[str]:
        yield self.lens
        region = self.kernel.principal_region
        if region is not None:
            yield f"{region.id}: {region.phrase}"
        if kernel_facts := self._facts_by_region.get(""):
            yield ", ".join(kernel_facts)

    def _describe_loop(self, line: int) -> Iterator[str]:
        for region, name in name_regions(self.kernel).items():
            loop_line = RegionId.parse(region).position
            if loop_line is not None and loop_line + self.shift == line and name in self._facts_by_region:
                yield f"{region}: {', '.join(self._facts_by_region[name])}"

    def _describe_dots(self, line: int) -> Iterator[str]:
        """The matrix instructions of a line's dots in the last stage, by region; of a dot without them, why."""
        for region, work in {} if self.kernel.last is None else self.kernel.last.work.items():
            works = [one for one in work.matrix if line in self._current_lines([*one.sources])]
            for one in works:
                shared = ", with the dots of other lines" if len(one.sources) > 1 else ""
                yield f"dot in {region}: {describe_matrix_work(one)}{shared}"
            generation = self.kernel.generations.get(region)
            if generation and not works and line in self._current_lines([*find_dots(self.kernel, region)[2]]):
                yield f"dot in {region}: {': '.join(filter(None, (generation.description, generation.reason)))}"

    def _describe_access(self, access_name: str, access: LoadWidth, line: int) -> str:
        name = f"{access_name} {access.name}" if access.name else access_name
        width = "width unknown" if access.width is None else f"{access.width} B per thread"
        count = sum(access.widths.values())
        times = f" in {count} instructions" if count > 1 else ""
        ahead = self._distance_by_line.get(line)
        distance_text = f", {ahead} iterations ahead" if ahead and access_name == "load" else ""
        causes = "; ".join(f"{cause.reason.value}{f' ({cause.name})' if cause.name else ''}" for cause in access.causes)
        return f"{name}: {width}{times}{distance_text}{f' — {causes}' if causes else ''}"

    def _describe_launch(self, line: int) -> Iterator[str]:
        if self.launch is None:
            return
        grid = "×".join(map(str, self.launch.grid))
        for line_counters in self.launch.by_source:
            if line_counters.source is not None and line in self._current_lines([line_counters.source]):
                counts = [] if line_counters.executed is None else [f"{line_counters.executed} instructions executed"]
                counts += _compare_with_ideal(line_counters.sectors, line_counters.sectors_ideal, "sectors")
                counts += _compare_with_ideal(
                    line_counters.wavefronts, line_counters.wavefronts_ideal, "shared-memory wavefronts"
                )
                yield f"a launch of {grid} CTAs: {', '.join(counts)}"


def describe_variant(artifact: Artifact) -> str:
    """What distinguishes the variants of a kernel, as the argument `target` takes it: `w4 s3 BLOCK=128`."""
    options = (("w", artifact.num_warps), ("s", artifact.num_stages))
    fields = [f"{letter}{value}" for letter, value in options if value is not None]
    return shorten(" ".join([*fields, *(f"{name}={value}" for name, value in artifact.constants.items())]), MAX_VARIANT)


def source_location(artifact: Artifact) -> tuple[str, int] | None:
    """File and line of the `def` that a kernel was compiled from; None without TTIR that records them."""
    module = read_module(artifact, Stage.TTIR, [])
    for function in () if module is None else module.functions:
        if function.name in (artifact.name, artifact.stem) and function.location:
            frame = function.location[-1]
            return frame.file, frame.line
    return None


def _compare_with_ideal(actual: int | None, ideal: int | None, counter_name: str) -> list[str]:
    if not actual:
        return []
    return [f"{actual} {counter_name}" if ideal in (None, actual) else f"{actual} {counter_name} (ideal: {ideal})"]
