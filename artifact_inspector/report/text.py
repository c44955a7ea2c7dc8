"""A cache as a table: one row per kernel, then everything else that was found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.cache import Cache, Problem
from artifact_inspector.findings import find_findings
from artifact_inspector.hardware.targets import Target
from artifact_inspector.report.layout import Pieces
from artifact_inspector.report.resources import registers_text
from artifact_inspector.report.waits import load_depths
from artifact_inspector.report.words import (
    describe_notes,
    describe_unknown,
    describe_verdict,
    mma_count,
    plural,
)

__all__ = ["CacheReport", "faults", "phrase_text"]

MOST_PROBLEMS = 20


@dataclass(frozen=True, slots=True)
class CacheReport:
    """The table of some kernels of a cache and what lies beside them."""

    cache: Cache
    kernels: Sequence[KernelFacts]
    narrowed: bool
    """True when a name was given that fits all of these."""
    others: Sequence[Target] = ()
    """Further targets to give the occupancy for."""

    @staticmethod
    def view(kernel: KernelFacts) -> None:
        """Ask a kernel for what its row shows."""
        _Row.of(kernel, "")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.kernels:
            yield Text(f"No kernels in {self.cache.root}.")
        else:
            yield self._kernels(console, options)
            yield from _unknowns(self.kernels)
            yield _key(self.kernels)
        beside = _beside(self.cache)
        if beside is not None and not self.narrowed:
            yield beside
        yield from faults(self.kernels, () if self.narrowed else self.cache.problems)
        if self.narrowed:
            fit = f"{len(self.kernels)} kernels fit"
            yield Text(f"\n{fit}: for a whole story give more of a name or a hash, or --target.", "dim")

    def _kernels(self, console: Console, options: ConsoleOptions) -> RenderableType:
        rows = [
            _Row.of(kernel, digest)
            for kernel, digest in zip(self.kernels, _digests(self.kernels), strict=True)
        ]
        whole = len(self.cache.entries)
        count = (
            f"{len(rows)} {plural('kernel', len(rows))}"
            if len(rows) == whole
            else f"{len(rows)} of {whole} kernels"
        )
        title = Text(f"{count} in {self.cache.root}", "bold", no_wrap=True, overflow="ignore")
        further = [
            (f"on {target}", [_blocks(kernel.occupancy_on(target)) for kernel in self.kernels])
            for target in self.others
        ]
        for compact in (False, True):
            table, constants = _table(rows, further, compact=compact)
            if Measurement.get(console, options.update(width=10**4), table).maximum <= options.max_width:
                lead = Text(f" · {constants}" if constants else "").join([title, Text()])
                return Group(lead, "", table)
        return Group(title, *(_card(row) for row in rows))


@dataclass(frozen=True, slots=True)
class _Row:
    """One kernel in words; an empty text stands for nothing to say."""

    name: str
    hash: str
    target: str
    triton: str
    warps: str
    stages: str
    shared: str
    registers: str
    occupancy: str
    mma: str
    wait: str
    verdict: Text
    changed: str
    findings: str
    state: str

    @classmethod
    def of(cls, kernel: KernelFacts, digest: str) -> _Row:
        artifact, last = kernel.artifact, kernel.last
        changed = kernel.changed_at
        if artifact.state == "binary-only":
            state = "binary only"
        elif last is None:
            state = "no readable stage"
        else:
            state = f"partial, ends at {last.stage.value}" if artifact.state == "partial" else ""
        return cls(
            name=artifact.display_name,
            hash=digest,
            target=_or_dash(None if artifact.target is None else artifact.target.arch),
            triton=_or_dash(artifact.triton_version),
            warps=_or_dash(artifact.num_warps),
            stages=_or_dash(artifact.num_stages),
            shared=_or_dash(artifact.shared_bytes),
            registers=registers_text(kernel),
            occupancy=_occupancy(kernel),
            mma=mma_count(kernel),
            wait=load_depths(kernel),
            verdict=_verdict(kernel),
            changed="" if changed is None else changed.value,
            findings=" ".join(dict.fromkeys(x.code.removeprefix("AI") for x in find_findings(kernel))),
            state=state,
        )


# heading, heading where room is scarce, alignment, what stands in the column
_COLUMNS: tuple[tuple[str, str, bool, Callable[[_Row], str | Text]], ...] = (
    ("kernel", "kernel", False, lambda row: row.name),
    ("hash", "hash", False, lambda row: Text(row.hash, "dim")),
    ("target", "target", False, lambda row: row.target),
    ("Triton", "Triton", False, lambda row: row.triton),
    ("warps", "w", True, lambda row: row.warps),
    ("stages", "st", True, lambda row: row.stages),
    ("shared", "shared", True, lambda row: row.shared),
    ("regs", "regs", True, lambda row: row.registers),
    ("blocks", "bl", True, lambda row: row.occupancy),
    ("MMA", "MMA", True, lambda row: row.mma),
    ("wait", "wait", True, lambda row: row.wait),
    ("verdict", "verdict", False, lambda row: row.verdict),
    ("changed at", "changed", False, lambda row: Text(row.changed, "yellow")),
    ("findings AI…", "AI…", False, lambda row: Text(row.findings, "dim")),
    ("state", "state", False, lambda row: Text(row.state, "magenta")),
)
_OPTIONAL = ("hash", "regs", "blocks", "changed at", "findings AI…", "state")
_CONSTANT = ("target", "Triton")


def _table(
    rows: Sequence[_Row], further: Sequence[tuple[str, list[str]]], *, compact: bool
) -> tuple[Table, str]:
    """The table, and what its title says in place of a column that would repeat itself.

    Args:
        further: columns of blocks on other targets, by heading.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1 if compact else 2, 0, 0), header_style="dim")
    shown = []
    constants = []
    for heading, short, right, cell in _COLUMNS:
        texts = {str(cell(row)) for row in rows}
        if heading in _OPTIONAL and texts == {""}:
            continue
        if compact and heading in _CONSTANT and len(texts) == 1:
            constants.append(texts.pop() if heading == "target" else f"{heading} {texts.pop()}")
            continue
        shown.append(cell)
        table.add_column(short if compact else heading, justify="right" if right else "left", no_wrap=True)
    for heading, _ in further:
        table.add_column(heading, justify="right", no_wrap=True)
    for place, row in enumerate(rows):
        table.add_row(*(cell(row) for cell in shown), *(cells[place] for _, cells in further))
    return table, " · ".join(constants)


def _card(row: _Row) -> RenderableType:
    """A kernel on lines of its own, for a narrow terminal."""
    first = Text.assemble(row.name, " ", (row.hash, "dim"), overflow="fold")
    parts = [
        row.target,
        f"Triton {row.triton}",
        f"warps {row.warps}",
        f"stages {row.stages}",
        f"shared {row.shared}",
    ]
    facts = [f"MMA {row.mma}", f"wait {row.wait}"]
    facts += [f"registers {row.registers}"] if row.registers else []
    facts += [f"blocks {row.occupancy}"] if row.occupancy else []
    facts += [f"changed at {row.changed}"] if row.changed else []
    facts += [f"AI {row.findings}"] if row.findings else []
    facts += [row.state] if row.state else []
    lines = (Pieces(parts, "dim"), Pieces([row.verdict, *facts]))
    return Group("", first, *(Padding(line, (0, 0, 0, 2)) for line in lines))


def _occupancy(kernel: KernelFacts) -> str:
    return "" if kernel.occupancy is None else _blocks(kernel.occupancy)


def _blocks(held: Occupancy) -> str:
    return "" if held.blocks is None else str(held.blocks)


def _verdict(kernel: KernelFacts) -> Text:
    region, last = kernel.principal_region, kernel.last
    if region is None or last is None:
        return Text("–", "dim")
    phrase = phrase_text(region.phrase)
    if last.region(region.id) is None:
        where = next(
            s.value for s, facts in reversed(kernel.stages.items()) if facts.region(region.id) is not None
        )
        phrase.append(f" in {where}, no such loop in {last.stage.value}", "dim")
    return phrase


def phrase_text(phrase: str) -> Text:
    """A verdict as it is highlighted: no colour of praise or blame, a verdict is neither."""
    if phrase.startswith("unknown"):
        return Text(phrase, "bold magenta")
    if phrase.startswith("no-"):
        return Text(phrase, "dim")
    return Text(phrase, "bold")


def _digests(kernels: Sequence[KernelFacts]) -> list[str]:
    """As much of each hash as tells kernels of one name apart; nothing where the name does.

    Copies of one entry have their hash in common, and are told apart by directory.
    """
    by_name: dict[str, list[str]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.artifact.display_name, []).append(kernel.artifact.hash)
    digests = []
    for kernel in kernels:
        same = by_name[kernel.artifact.display_name]
        length = 6
        while length < 64 and len({other[:length] for other in same}) < len(set(same)):
            length += 1
        own = kernel.artifact.hash
        digests.append(
            kernel.artifact.directory if same.count(own) > 1 else own[:length] if len(same) > 1 else ""
        )
    return digests


def _unknowns(kernels: Sequence[KernelFacts]) -> Iterator[RenderableType]:
    """Why a verdict in the table is unknown."""
    for kernel, digest in zip(kernels, _digests(kernels), strict=True):
        region = kernel.principal_region
        if region is not None and region.verdict == "unknown":
            why = "; ".join(describe_notes(region.notes)) or "no reason was noted"
            name = Text.assemble(
                (f"{kernel.artifact.display_name} {digest}".rstrip(), "bold"), f" {region.id}"
            )
            yield Padding(name.append(f" is unknown: {why}"), (1, 0, 0, 0))


def _key(kernels: Sequence[KernelFacts]) -> RenderableType:
    """What the verdicts and the bare numbers of the table mean."""
    regions = [region for region in (kernel.principal_region for kernel in kernels) if region is not None]
    if not regions:
        return Text()
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for verdict in sorted({region.verdict for region in regions}):
        grid.add_row(verdict, describe_verdict(verdict))
    if any(region.unrolled_by > 1 for region in regions):
        grid.add_row(
            "×u", "the compiler unrolled the loop u times; distances are in iterations of the source"
        )
    floats = (
        "; float: scalar instructions in their place" if any("float" in mma_count(k) for k in kernels) else ""
    )
    grid.add_row("MMA", f"matrix instructions in the region of the verdict, of all in the file{floats}")
    grid.add_row("wait", _WAIT_KEY)
    if any(registers_text(kernel) for kernel in kernels):
        grid.add_row(
            "regs, blocks",
            "registers per thread (+ bytes spilled), blocks that fit on a multiprocessor",
        )
    if any(find_findings(kernel) for kernel in kernels):
        grid.add_row("AI…", "findings, as `inspect-kernel findings` lists them")
    return Padding(grid, (1, 0, 0, 0), style="dim")


_WAIT_KEY = (
    "how many younger loads, or groups of copies, the region's waits leave in flight; "
    "phase: they wait for a barrier"
)


def _beside(cache: Cache) -> Text | None:
    if not cache.others:
        return None
    kinds = Counter(other.kind for other in cache.others)
    said = ", ".join(f"{kind} ×{count}" for kind, count in sorted(kinds.items()))
    return Text(f"\nnot kernels: {said}", "dim")


def faults(kernels: Sequence[KernelFacts], problems: Sequence[Problem]) -> Iterator[RenderableType]:
    """Opcodes of no known kind, then what could not be read, each with its path."""
    unknown = describe_unknown(facts for kernel in kernels for facts in kernel.stages.values())
    if unknown is not None:
        yield Text(f"\n{unknown}", "magenta")
    found = list(dict.fromkeys([*problems, *(x for kernel in kernels for x in kernel.problems)]))
    if not found:
        return
    yield Text(f"\n{len(found)} problem{'s' if len(found) != 1 else ''}", "bold red")
    for problem in found[:MOST_PROBLEMS]:
        yield Padding(
            Text.assemble((problem.path, "bold"), ": ", problem.problem, overflow="fold"), (0, 0, 0, 2)
        )
    if len(found) > MOST_PROBLEMS:
        yield Text(f"  and {len(found) - MOST_PROBLEMS} more; --json has them all", "dim")


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
