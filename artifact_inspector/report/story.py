"""The full report on one kernel: resources, findings, every region at every stage, memory accesses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.order.facts import QUIET, RegionFacts
from artifact_inspector.analysis.order.reference import STRAIGHT
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.files.cache import Cache
from artifact_inspector.files.sources import Quote
from artifact_inspector.files.tuning import Timed
from artifact_inspector.findings.limit import find_limit
from artifact_inspector.hardware.targets import Target
from artifact_inspector.model import Basis, EventKind, RegionKind, Stage, Verdict
from artifact_inspector.model.region import RegionId
from artifact_inspector.report.accesses import access_block
from artifact_inspector.report.compiler_remarks import remarks_block
from artifact_inspector.report.findings import findings_block, nothing_to_quote, place_text
from artifact_inspector.report.layout import Pieces, Signature, phrase_text
from artifact_inspector.report.partitions import partitions_block
from artifact_inspector.report.resources import describe_resources
from artifact_inspector.report.shared_memory import bill_block
from artifact_inspector.report.text import faults
from artifact_inspector.report.tuning import describe_timings
from artifact_inspector.report.waits import describe_copies, describe_waits
from artifact_inspector.report.words import (
    TERMS,
    describe_changes,
    describe_counts,
    describe_notes,
    describe_target,
    describe_verdict,
    legend,
    plural,
    shortened,
    span,
    statements,
)
from artifact_inspector.report.work import describe_work, in_flight_text
from artifact_inspector.vocabulary.rows import story_facts

if TYPE_CHECKING:
    from artifact_inspector.passes.elsewhere import Elsewhere


@dataclass(frozen=True, slots=True)
class _Seen:
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
        return any(region.in_program for region in self.stages.values())

    @property
    def is_quiet(self) -> bool:
        return all(region.verdict in QUIET and not region.other for region in self.stages.values())


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The full report on one kernel of a cache."""

    cache: Cache
    kernel: KernelFacts
    others: Sequence[Target] = ()
    """Further targets to report the occupancy on."""
    elsewhere: Sequence[Elsewhere] = ()
    """The kernel compiled for some of them."""
    one_region: bool = False
    """True to omit everything that is not about a region."""
    explained: bool = True
    """False to omit the definitions of terms."""
    quotes: Callable[[KernelFacts], Quote] = nothing_to_quote
    """Reads lines of its source."""
    timings: Sequence[Timed] = ()
    """The times that Triton's autotuner measured of it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._header()
        if not self.one_region:
            yield ""
            yield _limit(self.kernel)
            yield ""
            resources = describe_resources(self.kernel, self.others, self.elsewhere)
            yield _remark_grid([*resources, *story_facts(self.kernel), *describe_timings(self.timings)])
            yield from _apart(
                findings_block(self.kernel, self.quotes(self.kernel)), remarks_block(self.kernel.remarks)
            )
        signatures: list[str] = []
        short: list[_Seen] = []
        made: list[_Seen] = []
        for family in self._families():
            first = family[0]
            if first.id != self.kernel.principal and len(family) == 1:
                if not first.in_program:
                    made.append(first)
                    continue
                if first.is_quiet:
                    short.append(first)
                    continue
            signatures += [region.signature for seen in family for region in seen.stages.values()]
            yield ""
            yield from _block(self.kernel, family)
        if short:
            yield ""
            yield _shorts(short)
        if made:
            yield ""
            yield _made_by_compiler(made)
        if signatures:
            yield ""
            yield Pieces(["signature: instructions in program order", *legend(signatures)], "dim")
            if self.explained:
                yield from self._terms()
        if not self.one_region:
            kernel = self.kernel
            yield from _apart(partitions_block(kernel.partitions), bill_block(kernel), access_block(kernel))
        own = [x for x in self.cache.problems if _belongs(x.path, self.kernel.artifact.directory)]
        yield from faults([self.kernel], own)

    def brief(self) -> RenderableType:
        """The kernel in a few lines: target, order of loads and computes, resources and findings."""
        kernel, region = self.kernel, self.kernel.principal_region
        head = list(self._header())[:2]
        order = []
        if region is not None:
            changed = [f"{what} {where}" for what, where in describe_changes(kernel, region.id)]
            order = [Text("; ".join([f"{region.id} {region.phrase}", *changed]), overflow="fold")]
        found = findings_block(kernel, self.quotes(kernel))
        told = [
            _remark_grid(describe_resources(kernel, self.others, self.elsewhere)),
            *([] if found is None else [found]),
        ]
        return Group(*head, *order, *told)

    def _terms(self) -> Iterator[RenderableType]:
        """Definitions of the terms that the regions above use."""
        stages = self.kernel.stages.values()
        regions = [region for facts in stages for region in facts.regions]
        used = {
            "round": any(region.rounds for region in regions),
            "main loop": any(len(facts.regions) > 1 for facts in stages),
            "in flight": any(work.in_flight.max_loads for facts in stages for work in facts.work.values()),
            "ahead": any(any(item.distances) for region in regions for item in region.rounds),
        }
        used["overlap"] = used["in flight"]
        yield Pieces([f"{term}: {said}" for term, said in TERMS.items() if used[term]], "dim")

    def _header(self) -> Iterator[RenderableType]:
        artifact = self.kernel.artifact
        head = Text(artifact.display_name, "bold", overflow="fold")
        if artifact.name != artifact.display_name:
            head.append(f"  {artifact.name}", "dim")
        yield head
        parts = [describe_target(self.kernel)]
        version = artifact.triton_version
        parts.append("Triton unknown" if version is None else f"Triton {version}")
        if artifact.num_warps is not None:
            parts.append(f"{artifact.num_warps} {plural('warp', artifact.num_warps)}")
        if artifact.num_stages is not None:
            # not "4 stages": elsewhere a stage is a stage of the compiler
            parts.append(f"num_stages {artifact.num_stages}")
        if artifact.shared_bytes is not None:
            parts.append(_shared(artifact.shared_bytes, self.kernel))
        if artifact.state is not Completeness.COMPLETE:
            parts.append(_STATES.get(artifact.state, artifact.state))
        yield Pieces(parts)
        yield Text(f"hash {artifact.hash}", "dim", no_wrap=True, overflow="ignore")
        last = self.kernel.last
        if last is not None:
            # the terminal wraps a path, so that it can be copied
            yield Text(last.file, "dim", no_wrap=True, overflow="ignore")
            yield Pieces([f"{last.instructions} instructions", *describe_counts(last)], "dim")

    def _families(self) -> list[list[_Seen]]:
        """Regions, the main one first; the parts of a warp-specialised loop are grouped.

        The loop that loads is named after the one that computes: `loop@9/loads`, `loop@9/2`.
        """
        found: dict[str, _Seen] = {}
        for stage, facts in self.kernel.stages.items():
            for region in facts.regions:
                found.setdefault(region.id, _Seen(region.id, {})).stages[stage] = region
        families: dict[str, list[_Seen]] = {}
        for seen in found.values():
            whole = RegionId.parse(seen.id).whole
            families.setdefault(whole if whole in found else seen.id, []).append(seen)
        parted = [sorted(family, key=lambda seen: seen.id not in families) for family in families.values()]
        return sorted(parted, key=lambda family: all(x.id != self.kernel.principal for x in family))


_STATES = {
    Completeness.BINARY_ONLY: "binary only: pass --sass to disassemble it",
    Completeness.PARTIAL: "partial: no metadata",
}


def _shared(size: int, kernel: KernelFacts) -> str:
    target = kernel.artifact.target
    most = None if target is None else target.limits.shared_per_block
    if most is None or size == 0:
        return f"{size} B of shared memory"
    share = "less than 1%" if 100 * size < most else f"{size / most:.0%}"
    return f"{size} B of shared memory ({share} of {most} per block)"


def _apart(*blocks: RenderableType | None) -> Iterator[RenderableType]:
    """The blocks that are not None, each after an empty line."""
    for block in blocks:
        if block is not None:
            yield ""
            yield block


def _belongs(path: str, directory: str) -> bool:
    return directory in (".", path) or path.startswith(f"{directory}/")


def _shorts(regions: Sequence[_Seen]) -> RenderableType:
    """Regions with nothing to order, one line each: their last stage."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_column()
    for seen in regions:
        grid.add_row(
            Text(seen.id, "bold"),
            Text(" → ".join(dict.fromkeys(region.phrase for region in seen.stages.values())), "dim"),
            Text(seen.last_stage.value, "dim"),
            Signature(seen.last.signature, "dim"),
        )
    bare = [seen.last for seen in regions if seen.last.verdict is Verdict.NO_LOADS]
    if not any(region.count(EventKind.GLOBAL_LOAD) + region.count(EventKind.ASYNC_COPY) for region in bare):
        return grid
    return Group(grid, Text("no-loads: its loads belong to a loop or to an atomic", "dim"))


def _made_by_compiler(regions: Sequence[_Seen]) -> Text:
    """Loops that the compiler added, on one line."""
    said = []
    for stages in dict.fromkeys(tuple(seen.stages) for seen in regions):
        names = ", ".join(seen.id for seen in regions if tuple(seen.stages) == stages)
        said.append(f"{names} ({', '.join(stage.value for stage in stages)})")
    retries = all(seen.last.count(EventKind.ATOMIC) for seen in regions)
    what = "atomic retry loops" if retries else f"{plural('loop', len(regions))} added by the compiler"
    return Text(f"{what}: {', '.join(said)}", "dim", overflow="fold")


def _block(kernel: KernelFacts, family: Sequence[_Seen]) -> Iterator[RenderableType]:
    """A region, or the parts of a warp-specialised one, at every stage."""
    first = family[0]
    last = first.last
    head = Text(first.id, "bold")
    bases = {region.basis for seen in family for region in seen.stages.values()}
    kind = next(iter(first.stages.values())).kind
    is_main = first.id == kernel.principal and any(len(s.regions) > 1 for s in kernel.stages.values())
    if kind is RegionKind.STRAIGHT:
        parts = ["straight-line code", *(["main region"] if is_main else [])]
    else:
        line = first.id.partition("@")[2]
        where = f" at line {line}" if line.isdecimal() else ""
        parts = [f"{'main ' if is_main else ''}{kind}{where}"]
    if last.parent not in (None, STRAIGHT):
        parts.append(f"inside {last.parent}")
    if len(bases) == 1:
        parts.append("rounds matched by " + ("source line" if bases == {Basis.SOURCE} else str(bases.pop())))
    head.append(f"  {', '.join(parts)}", "dim")
    yield head
    body: list[RenderableType] = [_stages(kernel, family, show_basis=len(bases) > 1)]
    rounds = _rounds(family)
    body += [] if rounds is None else ["", rounds]
    remarks = dict.fromkeys(_remarks(kernel, family))
    if remarks:
        body += ["", _remark_grid(remarks)]
    yield Padding(Group(*body), (0, 0, 0, 2))


_LOUD = frozenset({"changed", "contradiction", "spills"})


def _limit(kernel: KernelFacts) -> Text:
    """One sentence: what limits the kernel, with its evidence."""
    limit = find_limit(kernel)
    said = Text(f"{limit.lead}: " if limit.lead else "", "bold", overflow="fold")
    said.append(limit.words, "" if limit.lead else "bold")
    return said.append(" ".join(filter(None, (" ", limit.code, place_text(limit)))), "dim")


def _remark_grid(remarks: Iterable[tuple[str, str]]) -> Table:
    """Sentences after their labels; a repeated label is printed once."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="dim")
    grid.add_column(overflow="fold")
    said = ""
    for label, text in remarks:
        loud = label in _LOUD and text != "none"
        grid.add_row("" if label == said else label, Text(text, "bold yellow" if loud else ""))
        said = label
    return grid


def _stages(kernel: KernelFacts, family: Sequence[_Seen], *, show_basis: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    matrix = any(region.matrix for seen in family for region in seen.stages.values())
    flying = any(
        kernel.stages[stage].work[seen.id].in_flight.max_loads
        for seen in family
        for stage in seen.stages
        if seen.id in kernel.stages[stage].work
    )
    for heading, shown, right in (
        ("stage", True, False),
        ("region", len(family) > 1, False),
        ("verdict", True, False),
        ("MMA", matrix, True),
        ("in flight", flying, True),
        ("overlap", flying, True),
        ("lines", True, True),
        ("matched by", show_basis, False),
    ):
        if shown:
            table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    table.add_column("signature")
    order = list(kernel.stages)
    for stage in order[min(order.index(next(iter(seen.stages))) for seen in family) :]:
        found = [seen for seen in family if stage in seen.stages]
        if not found:
            absent: list[RenderableType] = [Text(stage.value), *([Text()] if len(family) > 1 else [])]
            table.add_row(*absent, Text("no such loop", "dim"))
        for seen in found:
            region = seen.stages[stage]
            phrase = phrase_text(region)
            if stage is kernel.changed.get(seen.id):
                phrase.stylize("yellow")
            cells: list[RenderableType] = [Text(stage.value if seen is found[0] else "")]
            cells += [Text(seen.id, "dim")] if len(family) > 1 else []
            cells += [phrase]
            cells += [Text(str(region.matrix))] if matrix else []
            if flying:
                work = kernel.stages[stage].work.get(seen.id)
                covered = None if work is None else work.in_flight.compute_covered
                cells.append(Text("?" if work is None else in_flight_text(work.in_flight)))
                cells.append(Text("–" if covered is None else f"{covered:.0%}"))
            cells.append(Text(span(*region.lines), "dim"))
            cells += [Text(region.basis, "dim")] if show_basis else []
            table.add_row(*cells, Signature(region.signature))
    return table


def _rounds(family: Sequence[_Seen]) -> Table | None:
    """The lines at which the last stage issues each round's loads and computes."""
    stage = family[0].last_stage
    regions = [seen.last for seen in family if seen.last_stage is stage and seen.last.rounds]
    if not regions:
        return None
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("round", justify="right", no_wrap=True)
    table.add_column("load statement", overflow="fold")
    table.add_column("loads", justify="right", no_wrap=True)
    table.add_column(f"{stage.value} lines", justify="right", no_wrap=True)
    table.add_column("compute lines", justify="right", no_wrap=True)
    ahead = any(any(item.distances) for region in regions for item in region.rounds)
    if ahead:
        table.add_column("ahead", justify="right", no_wrap=True)
    for number, item in enumerate(regions[0].rounds):
        same = [region.rounds[number] for region in regions if number < len(region.rounds)]
        cells: list[RenderableType] = [
            str(number + 1),
            Pieces(statements(item), gap=", "),
            str(sum(one.loads for one in same)),
            _places((one.first_load, one.last_load) for one in same),
            _places((one.first_compute, one.last_compute) for one in same),
        ]
        if ahead:
            cells.append(", ".join(dict.fromkeys(str(d) for d in item.distances)))
        table.add_row(*cells)
    return table


def _places(spans: Iterable[tuple[int | None, int | None]]) -> str:
    return ", ".join(span(first, last) for first, last in spans if first is not None) or "–"


def _remarks(kernel: KernelFacts, family: Sequence[_Seen]) -> Iterator[tuple[str, str]]:
    first, last = family[0], family[0].last
    stage = kernel.stages[first.last_stage]
    meaning = describe_verdict(last.verdict)
    if meaning is not None:
        yield last.verdict, meaning
    yield from describe_changes(kernel, first.id)
    for seen in family:
        copies = describe_copies(kernel, seen.last)
        if copies is not None:
            yield "copies", copies
    here = [found for found in (stage.region(seen.id) for seen in family) if found is not None]
    for sentence in describe_waits(kernel, stage, *here):
        yield f"{stage.stage.value} wait", sentence
    for seen in family:
        yield from describe_work(kernel, seen.id, is_loop=last.kind is RegionKind.LOOP)
        yield from story_facts(kernel, seen.id)
    shared = dict.fromkeys(name for item in last.rounds for name in item.shared)
    if shared and len(last.rounds) > 1:
        yield "reused", f"later rounds also use {', '.join(shared)}"
    for seen in family:
        for where, region in seen.stages.items():
            for note in describe_notes(
                x for x in region.noted if region is seen.last or x not in seen.last.noted
            ):
                yield "note", note if region is seen.last else f"{note} ({where.value})"
        if seen.last.other:
            yield "other", f"loads that no compute uses: {', '.join(shortened(seen.last.other))}"
