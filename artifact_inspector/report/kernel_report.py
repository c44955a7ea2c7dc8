"""The full report on one kernel: resources, findings, every region at every stage, memory accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from artifact_inspector.analysis.order.reference_regions import STRAIGHT
from artifact_inspector.analysis.order.region_facts import QUIET, RegionFacts
from artifact_inspector.facts.kept_diagnosis import diagnosis_of
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.autotuning import EntryTiming
from artifact_inspector.files.cache import Cache
from artifact_inspector.files.sources import SourceLineReader
from artifact_inspector.findings.limit import find_limit
from artifact_inspector.findings.occupancy_limited import LATENCY_HIDING
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Basis, EventKind, OrderVerdict, RegionKind, Stage
from artifact_inspector.model.region import RegionId
from artifact_inspector.report.cache_report import problems_block
from artifact_inspector.report.findings import (
    MAX_QUOTES,
    describe_evidence,
    describe_remedies,
    findings_block,
    no_source,
)
from artifact_inspector.report.kernel_blocks import (
    access_block,
    bill_block,
    describe_timings,
    partitions_block,
    remarks_block,
)
from artifact_inspector.report.layout import (
    Signature,
    WrappedTexts,
    folded_column,
    number_column,
    phrase_text,
    plain_table,
    text_column,
)
from artifact_inspector.report.phrases import (
    TERMS,
    describe_changes,
    describe_counts,
    describe_notes,
    describe_target,
    describe_verdict,
    legend,
    load_statements,
    plural,
    shorten_locations,
    span,
)
from artifact_inspector.report.region_work import describe_copies, describe_waits, describe_work, in_flight_text
from artifact_inspector.report.resources import describe_resources
from artifact_inspector.vocabulary.rows import story_facts

if TYPE_CHECKING:
    from artifact_inspector.passes.retargeting import RetargetedKernel


@dataclass(frozen=True, slots=True)
class _RegionHistory:
    """A region and the stages that contain it."""

    id: str
    stages: dict[Stage, RegionFacts]

    @property
    def last(self) -> RegionFacts:
        return next(reversed(self.stages.values()))

    @property
    def last_stage(self) -> Stage:
        return next(reversed(self.stages))

    @property
    def in_program(self) -> bool:
        return any(region.is_in_program for region in self.stages.values())

    @property
    def is_quiet(self) -> bool:
        return all(region.verdict in QUIET and not region.unassigned for region in self.stages.values())


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The full report on one kernel of a cache."""

    cache: Cache
    kernel: KernelFacts
    other_targets: Sequence[Target] = ()
    """Further targets to report the occupancy on."""
    compiled_elsewhere: Sequence[RetargetedKernel] = ()
    """The kernel compiled for some of them."""
    is_full: bool = True
    """False for the diagnosis, the remedy, its numbers and the verdicts only."""
    is_one_region: bool = False
    """True to omit everything that is not about a region."""
    with_definitions: bool = True
    """False to omit the definitions of terms."""
    source_readers: Callable[[KernelFacts], SourceLineReader] = no_source
    """Reads lines of its source."""
    timings: Sequence[EntryTiming] = ()
    """The times that Triton's autotuner measured of it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kernel = self.kernel
        if not (self.is_full or self.is_one_region):
            yield from self._story()
            return
        yield from self._header()
        if not self.is_one_region:
            resources = describe_resources(kernel, self.other_targets, self.compiled_elsewhere)
            remarks = _remark_grid([*resources, *story_facts(kernel), *describe_timings(self.timings)])
            findings = findings_block(kernel, self.source_readers(kernel))
            yield from _spaced_blocks(_limit(kernel), remarks, findings, remarks_block(kernel.remarks))
        signatures: list[str] = []
        quiet_regions: list[_RegionHistory] = []
        compiler_loops: list[_RegionHistory] = []
        for family in self._families():
            first = family[0]
            is_minor = first.id != kernel.principal and len(family) == 1
            if is_minor and not first.in_program:
                compiler_loops.append(first)
            elif is_minor and first.is_quiet:
                quiet_regions.append(first)
            else:
                signatures += [region.signature for history in family for region in history.stages.values()]
                yield ""
                yield from _region_block(kernel, family)
        if quiet_regions:
            yield from ("", _quiet_regions(quiet_regions))
        if compiler_loops:
            yield from ("", _compiler_loops(compiler_loops))
        if signatures:
            yield from ("", WrappedTexts(["signature: instructions in program order", *legend(signatures)], "dim"))
            if self.with_definitions:
                yield from self._define_terms()
        if not self.is_one_region:
            yield from _spaced_blocks(partitions_block(kernel), bill_block(kernel), access_block(kernel))
        yield from self._problems()

    def _problems(self) -> Iterator[RenderableType]:
        directory = self.kernel.artifact.directory
        yield from problems_block(
            [self.kernel],
            [x for x in self.cache.problems if directory in (".", x.path) or x.path.startswith(f"{directory}/")],
        )

    def _story(self) -> Iterator[RenderableType]:
        """The diagnosis and the remedy, the numbers behind it, the verdicts, and what `--full` adds."""
        kernel, families = self.kernel, self._families()
        yield from list(self._header())[:3]
        command = f"{self.cache.title} {kernel.artifact.hash[:8]}"
        resources = describe_resources(kernel, self.other_targets, self.compiled_elsewhere)
        remarks = [*describe_remedies(kernel, command), *resources, *_overlap(kernel), *describe_timings(self.timings)]
        read_line = self.source_readers(kernel)
        quotes = [
            f"{x.rpartition(':')[2]} │ {text}"
            for x in find_limit(kernel).sources[:MAX_QUOTES]
            if (text := read_line(x))
        ]
        limit = Group(_limit(kernel), *(Text(quote, "italic") for quote in quotes))
        findings = findings_block(kernel, read_line, is_first_printed=True)
        verdicts = [_verdict_line(kernel, family) for family in families if not family[0].is_quiet]
        yield from _spaced_blocks(limit, _remark_grid(remarks), findings, remarks_block(kernel.remarks))
        if verdicts:
            yield from ("", Text("loads and computes", "bold"))
            yield Padding(_remark_grid(verdicts), (0, 0, 0, 2))
        sections = ["each stage", "rounds", "waits"] * bool(families)
        sections += ["warp partitions"] * bool(kernel.partitions)
        sections += [f"shared memory ({kernel.artifact.shared_bytes} B)"] * bool(kernel.artifact.shared_bytes)
        sections += ["memory access"] * (kernel.last is not None and bool(kernel.last.accesses.total))
        if sections:
            yield from ("", Text(f"--full adds {', '.join(sections)}.", "dim"))
        yield from self._problems()

    def brief(self) -> RenderableType:
        """The kernel in a few lines: target, order of loads and computes, resources and findings."""
        kernel, region = self.kernel, self.kernel.principal_region
        head = list(self._header())[:2]
        if region is not None:
            changed = [f"{label} {detail}" for label, detail in describe_changes(kernel, region.id)]
            head.append(Text("; ".join([f"{region.id} {region.phrase}", *changed])))
        findings = findings_block(kernel, self.source_readers(kernel))
        resources = _remark_grid(describe_resources(kernel, self.other_targets, self.compiled_elsewhere))
        return Group(*head, resources, *([] if findings is None else [findings]))

    def _define_terms(self) -> Iterator[RenderableType]:
        stages = self.kernel.stages.values()
        regions = [region for facts in stages for region in facts.regions]
        used = {
            "round": any(region.rounds for region in regions),
            "main loop": any(len(facts.regions) > 1 for facts in stages),
            "in flight": any(work.in_flight.max_loads for facts in stages for work in facts.work.values()),
            "ahead": any(any(item.distances) for region in regions for item in region.rounds),
        }
        used["overlap"] = used["in flight"]
        yield WrappedTexts([f"{term}: {definition}" for term, definition in TERMS.items() if used[term]], "dim")

    def _header(self) -> Iterator[RenderableType]:
        artifact = self.kernel.artifact
        head = Text(artifact.display_name, "bold", overflow="fold")
        if artifact.name != artifact.display_name:
            head.append(f"  {artifact.name}", "dim")
        yield head
        texts = [describe_target(self.kernel), f"Triton {artifact.triton_version or 'unknown'}"]
        if artifact.num_warps is not None:
            texts.append(f"{artifact.num_warps} {plural('warp', artifact.num_warps)}")
        if self.kernel.num_stages is not None:
            # not "4 stages": elsewhere a stage is a stage of the compiler
            texts.append(f"num_stages {self.kernel.num_stages}")
        if artifact.shared_bytes is not None:
            texts.append(_describe_shared(artifact.shared_bytes, self.kernel))
        if artifact.state is not Completeness.COMPLETE:
            texts.append(_STATE_TEXTS.get(artifact.state, artifact.state))
        if self.kernel.truncated:
            texts.append(self.kernel.truncated)
        if artifact.gaps:
            texts.append(f"incomplete: lacks {', '.join(artifact.gaps)}")
        yield WrappedTexts(texts)
        yield Text(f"hash {artifact.hash}", "dim", no_wrap=True, overflow="ignore")
        last = self.kernel.last
        if last is not None:
            # the terminal wraps a path, so that it can be copied
            yield Text(last.file, "dim", no_wrap=True, overflow="ignore")
            yield WrappedTexts([f"{last.instructions} instructions", *describe_counts(last)], "dim")

    def _families(self) -> list[list[_RegionHistory]]:
        """Regions, the main one first; the parts of a warp-specialised loop are grouped.

        The loop that loads is named after the one that computes: `loop@9/loads`, `loop@9/2`.
        """
        histories: dict[str, _RegionHistory] = {}
        for stage, facts in self.kernel.stages.items():
            for region in facts.regions:
                histories.setdefault(region.id, _RegionHistory(region.id, {})).stages[stage] = region
        families: dict[str, list[_RegionHistory]] = {}
        for history in histories.values():
            loop_id = RegionId.parse(history.id).loop_id
            families.setdefault(loop_id if loop_id in histories else history.id, []).append(history)
        sorted_families = [
            sorted(family, key=lambda history: history.id not in families) for family in families.values()
        ]
        return sorted(sorted_families, key=lambda family: all(x.id != self.kernel.principal for x in family))


_STATE_TEXTS = {
    Completeness.BINARY_ONLY: "binary only: pass --sass to disassemble it",
    Completeness.PARTIAL: "partial: no metadata",
}


def _describe_shared(size: int, kernel: KernelFacts) -> str:
    target = kernel.artifact.target
    limit = None if target is None else target.limits.shared_per_block
    if limit is None or size == 0:
        return f"{size} B of shared memory"
    share = "less than 1%" if 100 * size < limit else f"{size / limit:.0%}"
    return f"{size} B of shared memory ({share} of {limit} per block)"


def _spaced_blocks(*blocks: RenderableType | None) -> Iterator[RenderableType]:
    """The blocks that are not None, each after an empty line."""
    for block in blocks:
        if block is not None:
            yield ""
            yield block


def _quiet_regions(regions: Sequence[_RegionHistory]) -> RenderableType:
    """Regions with nothing to order, one line each: their last stage."""
    grid = Table.grid(text_column(), text_column(), text_column(), "", padding=(0, 2, 0, 0))
    for history in regions:
        phrases = " → ".join(dict.fromkeys(region.phrase for region in history.stages.values()))
        stage, signature = Text(history.last_stage.value, "dim"), Signature(history.last.signature, "dim")
        grid.add_row(Text(history.id, "bold"), Text(phrases, "dim"), stage, signature)
    loadless_regions = [history.last for history in regions if history.last.verdict is OrderVerdict.NO_LOADS]
    if not any(region.count(EventKind.GLOBAL_LOAD) + region.count(EventKind.ASYNC_COPY) for region in loadless_regions):
        return grid
    return Group(grid, Text("no-loads: its loads belong to a loop or to an atomic", "dim"))


def _compiler_loops(regions: Sequence[_RegionHistory]) -> Text:
    texts = []
    for stages in dict.fromkeys(tuple(history.stages) for history in regions):
        names = ", ".join(history.id for history in regions if tuple(history.stages) == stages)
        texts.append(f"{names} ({', '.join(stage.value for stage in stages)})")
    retries = all(history.last.count(EventKind.ATOMIC) for history in regions)
    lead = "compare-and-swap loops" if retries else f"{plural('loop', len(regions))} added by the compiler"
    return Text(f"{lead}: {', '.join(texts)}", "dim", overflow="fold")


def _region_block(kernel: KernelFacts, family: Sequence[_RegionHistory]) -> Iterator[RenderableType]:
    first = family[0]
    last = first.last
    head = Text(first.id, "bold")
    bases = {region.basis for history in family for region in history.stages.values()}
    kind = next(iter(first.stages.values())).kind
    is_main = first.id == kernel.principal and any(len(s.regions) > 1 for s in kernel.stages.values())
    if kind is RegionKind.STRAIGHT:
        texts = ["straight-line code", *(["main region"] if is_main else [])]
    else:
        texts = [f"{'main ' if is_main else ''}{kind}"]
    if last.parent not in (None, STRAIGHT):
        texts.append(f"inside {last.parent}")
    if len(bases) == 1:
        texts.append("rounds matched by " + ("source line" if bases == {Basis.SOURCE} else str(bases.pop())))
    head.append(f"  {', '.join(texts)}", "dim")
    yield head
    body: list[RenderableType] = [_stages(kernel, family, show_basis=len(bases) > 1)]
    rounds = _rounds(family)
    body += [] if rounds is None else ["", rounds]
    remarks = dict.fromkeys(_remarks(kernel, family))
    if remarks:
        body += ["", _remark_grid(remarks)]
    yield Padding(Group(*body), (0, 0, 0, 2))


def _overlap(kernel: KernelFacts) -> Iterator[tuple[str, str]]:
    """The share of compute of the main loop that overlaps with loads, and why if it is zero."""
    last, region = kernel.last, kernel.principal_region
    work = None if last is None or region is None else last.work.get(region.id)
    overlap = None if work is None else work.in_flight.compute_overlap
    if last is None or last.stage is Stage.TTIR or work is None or region is None or overlap is None:
        return
    name = "straight-line code" if region.kind is RegionKind.STRAIGHT else region.id
    text = f"{overlap:.0%} of the compute in {name} is issued while a load is in flight"
    if region.matrix_in_flight:
        count = f"{region.matrix_in_flight} {plural('matrix operation', region.matrix_in_flight)}"
        text += f"; up to {count} in flight while it waits for its copies"
    elif not overlap and region.verdict in LATENCY_HIDING:
        text += ": it loads ahead, but none of its loads is still in flight when it computes"
    yield "overlap", text


def _verdict_line(kernel: KernelFacts, family: Sequence[_RegionHistory]) -> tuple[str, str]:
    """The verdict of a region at its last stage, what it means, and how it changed."""
    first = family[0]
    changes = [f"{label} {detail}" for label, detail in describe_changes(kernel, first.id)]
    meaning = describe_verdict(first.last.verdict, first.last_stage)
    name = "no loop" if first.id == STRAIGHT else first.id
    return name, "; ".join([f"{first.last.phrase} at {first.last_stage.value}", *filter(None, [meaning]), *changes])


_LOUD = frozenset({"changed", "contradiction", "spills"})


def _limit(kernel: KernelFacts) -> Text:
    """One sentence: what limits the kernel, with its evidence; first that of `advise`, if it was run."""
    limit, kept = find_limit(kernel), diagnosis_of(kernel)
    lead = limit.lead if kept is None else "In the code"
    first = "" if kept is None else f"By `advise`: {kept.summary}\n"
    text = Text(first + (f"{lead}: " if limit.lead else ""), "bold", overflow="fold")
    text.append(limit.description, "" if limit.lead else "bold")
    return text.append(" ".join(filter(None, (" ", limit.code, describe_evidence(limit)))), "dim")


def _remark_grid(remarks: Iterable[tuple[str, str]]) -> Table:
    """Sentences after their labels; a repeated label is printed once."""
    grid = Table.grid(Column(no_wrap=True, style="dim"), folded_column(), padding=(0, 2, 0, 0))
    previous_label = ""
    for label, text in remarks:
        loud = label in _LOUD and text != "none"
        grid.add_row("" if label == previous_label else label, Text(text, "bold yellow" if loud else ""))
        previous_label = label
    return grid


def _stages(kernel: KernelFacts, family: Sequence[_RegionHistory], *, show_basis: bool) -> Table:
    table = plain_table()
    matrix = any(region.matrix for history in family for region in history.stages.values())
    has_in_flight = any(
        kernel.stages[stage].work[history.id].in_flight.max_loads
        for history in family
        for stage in history.stages
        if history.id in kernel.stages[stage].work
    )
    for heading, is_shown, right in (
        ("stage", True, False),
        ("region", len(family) > 1, False),
        ("verdict", True, False),
        ("MMA", matrix, True),
        ("in flight", has_in_flight, True),
        ("overlap", has_in_flight, True),
        ("lines", True, True),
        ("matched by", show_basis, False),
    ):
        if is_shown:
            table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    table.add_column("signature")
    order = list(kernel.stages)
    for stage in order[min(order.index(next(iter(history.stages))) for history in family) :]:
        histories = [history for history in family if stage in history.stages]
        if not histories:
            absent: list[RenderableType] = [Text(stage.value), *([Text()] if len(family) > 1 else [])]
            table.add_row(*absent, Text("no such loop", "dim"))
        for history in histories:
            region = history.stages[stage]
            phrase = phrase_text(region)
            if stage is kernel.changed.get(history.id):
                phrase.stylize("yellow")
            cells: list[RenderableType] = [Text(stage.value if history is histories[0] else "")]
            cells += [Text(history.id, "dim")] if len(family) > 1 else []
            cells += [phrase]
            cells += [Text(str(region.matrix))] if matrix else []
            if has_in_flight:
                work = kernel.stages[stage].work.get(history.id)
                overlap = None if work is None else work.in_flight.compute_overlap
                cells.append(Text("?" if work is None else in_flight_text(work.in_flight)))
                cells.append(Text("–" if overlap is None else f"{overlap:.0%}"))
            cells.append(Text(span(*region.lines), "dim"))
            cells += [Text(region.basis, "dim")] if show_basis else []
            table.add_row(*cells, Signature(region.signature))
    return table


def _rounds(family: Sequence[_RegionHistory]) -> Table | None:
    stage = family[0].last_stage
    regions = [history.last for history in family if history.last_stage is stage and history.last.rounds]
    if not regions:
        return None
    table = plain_table(
        number_column("round"),
        folded_column("load statement"),
        number_column("loads"),
        number_column(f"{stage.value} lines"),
        number_column("compute lines"),
    )
    has_distances = any(any(item.distances) for region in regions for item in region.rounds)
    if has_distances:
        table.add_column("ahead", justify="right", no_wrap=True)
    for number, item in enumerate(regions[0].rounds):
        rounds = [region.rounds[number] for region in regions if number < len(region.rounds)]
        loads = _join_spans((x.first_load, x.last_load) for x in rounds)
        computes = _join_spans((x.first_compute, x.last_compute) for x in rounds)
        statements = WrappedTexts(load_statements(item), gap=", ")
        cells: list[RenderableType] = [str(number + 1), statements, str(sum(x.loads for x in rounds)), loads, computes]
        if has_distances:
            cells.append(", ".join(dict.fromkeys(str(d) for d in item.distances)))
        table.add_row(*cells)
    return table


def _join_spans(spans: Iterable[tuple[int | None, int | None]]) -> str:
    return ", ".join(span(first, last) for first, last in spans if first is not None) or "–"


def _remarks(kernel: KernelFacts, family: Sequence[_RegionHistory]) -> Iterator[tuple[str, str]]:
    first, last = family[0], family[0].last
    stage = kernel.stages[first.last_stage]
    meaning = describe_verdict(last.verdict, first.last_stage)
    if meaning is not None:
        yield last.verdict, meaning
    yield from describe_changes(kernel, first.id)
    for history in family:
        copies = describe_copies(kernel, history.last)
        if copies is not None:
            yield "copies", copies
    regions = [
        region_facts for region_facts in (stage.region(history.id) for history in family) if region_facts is not None
    ]
    for sentence in describe_waits(kernel, stage, *regions):
        yield f"{stage.stage.value} wait", sentence
    for history in family:
        yield from describe_work(kernel, history.id, is_loop=last.kind is RegionKind.LOOP)
        yield from story_facts(kernel, history.id)
    shared = dict.fromkeys(name for item in last.rounds for name in item.shared)
    if shared and len(last.rounds) > 1:
        yield "reused", f"later rounds also use {', '.join(shared)}"
    for history in family:
        for stage_of_region, region in history.stages.items():
            for note in describe_notes(
                x for x in region.region_notes if region is history.last or x not in history.last.region_notes
            ):
                yield "note", note if region is history.last else f"{note} ({stage_of_region.value})"
        if history.last.unassigned:
            yield ("other", f"loads that no compute uses: {', '.join(shorten_locations(history.last.unassigned))}")
