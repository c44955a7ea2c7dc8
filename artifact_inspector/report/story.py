"""One kernel, whole: every region at every stage, its rounds, its waits and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.order import RegionFacts, RoundFacts
from artifact_inspector.cache import Cache
from artifact_inspector.inspection import KernelFacts, StageFacts
from artifact_inspector.model import Stage
from artifact_inspector.report.layout import Pieces, Signature
from artifact_inspector.report.text import faults, phrase_text
from artifact_inspector.report.words import (
    describe_changes,
    describe_copies,
    describe_counts,
    describe_target,
    describe_waits,
    legend,
    letter_counts,
    span,
)

__all__ = ["KernelReport"]

QUIET = ("no-loads", "no-compute")


@dataclass(frozen=True, slots=True)
class KernelReport:
    """The full story of one kernel of a cache."""

    cache: Cache
    kernel: KernelFacts

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._header()
        letters: set[str] = set()
        short: list[tuple[str, list[tuple[Stage, RegionFacts]]]] = []
        for region_id, found in self._regions():
            if region_id != self.kernel.principal and _is_quiet(found):
                short.append((region_id, found))
                continue
            for _, region in found:
                letters.update(letter_counts(region.signature))
            yield ""
            yield from _region(self.kernel, region_id, found)
        if short:
            yield ""
            yield _shorts(short)
        if letters:
            yield ""
            yield Pieces(legend(letters), "dim")
        own = [x for x in self.cache.problems if _belongs(x.path, self.kernel.artifact.directory)]
        yield from faults([self.kernel], own)

    def _header(self) -> Iterator[RenderableType]:
        artifact = self.kernel.artifact
        head = Text(artifact.display_name, "bold", overflow="fold")
        if artifact.name != artifact.display_name:
            head.append(f"  {artifact.name}", "dim")
        yield head
        parts = [describe_target(self.kernel)]
        version = artifact.triton_version
        parts.append("Triton unknown" if version is None else f"Triton {version}")
        for count, word in ((artifact.num_warps, "warp"), (artifact.num_stages, "stage")):
            if count is not None:
                parts.append(f"{count} {word}{'s' if count != 1 else ''}")
        if artifact.shared_bytes is not None:
            parts.append(_shared(artifact.shared_bytes, self.kernel))
        if artifact.state != "complete":
            parts.append(_STATES.get(artifact.state, artifact.state))
        yield Pieces(parts)
        yield Text(f"hash {artifact.hash}", "dim", no_wrap=True, overflow="ignore")
        last = self.kernel.last
        if last is not None:
            # the terminal may wrap a path, so that it can still be copied
            yield Text(last.file, "dim", no_wrap=True, overflow="ignore")
            yield Pieces([f"{last.instructions} instructions", *describe_counts(last)], "dim")

    def _regions(self) -> Iterator[tuple[str, list[tuple[Stage, RegionFacts]]]]:
        """Regions with the stages that have them: the principal one, the program's, the compiler's."""
        found: dict[str, list[tuple[Stage, RegionFacts]]] = {}
        for stage, facts in self.kernel.stages.items():
            for region in facts.regions:
                found.setdefault(region.id, []).append((stage, region))

        def rank(item: tuple[str, list[tuple[Stage, RegionFacts]]]) -> int:
            if item[0] == self.kernel.principal:
                return 0
            return 1 if any(region.in_program for _, region in item[1]) else 2

        yield from sorted(found.items(), key=rank)


_STATES = {"binary-only": "binary only: no text to read", "partial": "partial: no metadata"}


def _shared(size: int, kernel: KernelFacts) -> str:
    target = kernel.artifact.target
    most = None if target is None else target.limits.shared_per_block
    if most is None or size == 0:
        return f"{size} B shared"
    return f"{size} B shared ({size / most:.0%} of a block's {most})"


def _is_quiet(found: Sequence[tuple[Stage, RegionFacts]]) -> bool:
    made_here = not any(region.in_program for _, region in found)
    return made_here or all(region.verdict in QUIET and not region.other for _, region in found)


def _belongs(path: str, directory: str) -> bool:
    return directory in (".", path) or path.startswith(f"{directory}/")


def _shorts(regions: Sequence[tuple[str, list[tuple[Stage, RegionFacts]]]]) -> Table:
    """Regions with nothing to order, a line each: what their last stage looks like."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(3):
        grid.add_column(no_wrap=True)
    grid.add_column()
    for region_id, found in regions:
        stage, last = found[-1]
        by = "" if any(region.in_program for _, region in found) else "made by the compiler"
        verdicts = dict.fromkeys(region.phrase for _, region in found)
        grid.add_row(
            Text(region_id, "bold"),
            Text(" → ".join(verdicts), "dim"),
            Text(" ".join(part for part in (by, stage.value) if part), "dim"),
            Signature(last.signature, "dim"),
        )
    return grid


def _region(
    kernel: KernelFacts, region_id: str, found: Sequence[tuple[Stage, RegionFacts]]
) -> Iterator[RenderableType]:
    last_stage, last = found[-1]
    head = Text(region_id, "bold")
    bases = {region.basis for _, region in found}
    parts = [last.kind if last.kind != "straight" else "straight-line code"]
    if region_id == kernel.principal and sum(len(s.regions) > 1 for s in kernel.stages.values()):
        parts.append("principal region")
    if last.parent not in (None, "straight"):
        parts.append(f"inside {last.parent}")
    if len(bases) == 1:
        parts.append(f"by {'source lines' if bases == {'source'} else bases.pop()}")
    head.append(f"  {', '.join(parts)}", "dim")
    yield head
    body: list[RenderableType] = [_stages(kernel, found, show_basis=len(bases) > 1)]
    if last.rounds:
        body += ["", _rounds(last_stage, last)]
    remarks = list(_remarks(kernel, found, kernel.stages[last_stage]))
    if remarks:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, style="dim")
        grid.add_column(overflow="fold")
        for label, text in remarks:
            grid.add_row(label, text)
        body += ["", grid]
    yield Padding(Group(*body), (0, 0, 0, 2))


def _stages(kernel: KernelFacts, found: Sequence[tuple[Stage, RegionFacts]], *, show_basis: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    matrix = any(region.matrix for _, region in found)
    for heading, shown, right in (
        ("stage", True, False),
        ("verdict", True, False),
        ("MMA", matrix, True),
        ("lines", True, True),
        ("basis", show_basis, False),
    ):
        if shown:
            table.add_column(heading, no_wrap=True, justify="right" if right else "left")
    table.add_column("signature")
    have = dict(found)
    first = list(kernel.stages).index(found[0][0])
    changed = kernel.changed.get(found[0][1].id)
    for stage in list(kernel.stages)[first:]:
        region = have.get(stage)
        if region is None:
            absent: list[RenderableType] = [Text(stage.value), Text("no such loop", "dim")]
            table.add_row(*absent)
            continue
        phrase = phrase_text(region.phrase)
        if stage is changed:
            phrase.stylize("yellow")
        cells: list[RenderableType] = [Text(stage.value), phrase]
        cells += [Text(str(region.matrix))] if matrix else []
        cells.append(Text(span(*region.lines), "dim"))
        cells += [Text(region.basis, "dim")] if show_basis else []
        table.add_row(*cells, Signature(region.signature))
    return table


def _rounds(stage: Stage, region: RegionFacts) -> Table:
    """Where the last stage issues each round's loads and computes on them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("round", justify="right", no_wrap=True)
    table.add_column("of", overflow="fold")
    table.add_column("loads", justify="right", no_wrap=True)
    table.add_column(f"{stage.value} lines", justify="right", no_wrap=True)
    table.add_column("computes at", justify="right", no_wrap=True)
    ahead = any(any(item.distances) for item in region.rounds)
    if ahead:
        table.add_column("ahead", justify="right", no_wrap=True)
    for number, item in enumerate(region.rounds, 1):
        cells: list[RenderableType] = [
            str(number),
            Pieces(_statements(item), gap=", "),
            str(item.loads),
            span(item.first_load, item.last_load),
            span(item.first_compute, item.last_compute),
        ]
        if ahead:
            cells.append(", ".join(dict.fromkeys(str(d) for d in item.distances)))
        table.add_row(*cells)
    return table


def _statements(item: RoundFacts) -> list[str]:
    """The load statements of a round: `a gemv.py:20`, `b :21`."""
    said = []
    before = ""
    for source in item.sources:
        file, _, line = source.rpartition(":")
        said.append(f":{line}" if file == before else source)
        before = file
    if item.names and len(item.names) == len(item.sources):
        return [f"{name} {place}" for name, place in zip(item.names, said, strict=True)]
    return [*item.names, *said] or ["–"]


def _remarks(
    kernel: KernelFacts, found: Sequence[tuple[Stage, RegionFacts]], stage: StageFacts
) -> Iterator[tuple[str, str | Text]]:
    last = found[-1][1]
    for sentence, of_order in describe_changes(kernel, last.id):
        yield ("changed", Text(sentence, "bold yellow") if of_order else Text(sentence))
    copies = describe_copies(kernel, last)
    if copies is not None:
        yield "copies", copies
    for sentence in describe_waits(kernel, stage, last):
        yield "wait", sentence
    lowered = last.verdict not in QUIET and not last.matrix and letter_counts(last.signature)["F"]
    if lowered and any(region.matrix for _, region in found):
        yield "MMA", f"none in {stage.stage.value}: the dot became {lowered} scalar float instructions"
    shared = dict.fromkeys(name for item in last.rounds for name in item.shared)
    if shared and len(last.rounds) > 1:
        yield "shared", f"later rounds use it too: {', '.join(shared)}"
    for region_stage, region in found:
        for note in region.notes:
            if region is last or note not in last.notes:
                yield "note", note if region is last else f"{note} ({region_stage.value})"
    if last.other:
        yield "other", f"loads that no compute takes: {', '.join(last.other)}"
