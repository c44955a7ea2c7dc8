"""The source and every stage of a kernel side by side: lines, highlighting, and links between lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from pygments.lexers import PythonLexer
from pygments.token import STANDARD_TYPES

from artifact_inspector.facts.kernel import KernelFacts, StageFacts
from artifact_inspector.facts.modules import Disassemble, parse_source, read_source
from artifact_inspector.facts.pressure import count_live_by_line
from artifact_inspector.files.cache import Problem
from artifact_inspector.model import Module, SourceLine, Stage
from artifact_inspector.model.escaping import escape_unprintable
from artifact_inspector.report.html.sources import Sources
from artifact_inspector.report.lexers.scanner import scan
from artifact_inspector.report.listing import events_by_line
from artifact_inspector.vocabulary.names import step_of

MAX_HIGHLIGHTED_LINES = 30_000
"""Most lines of a file that is highlighted; a longer file is shown plain."""
MAX_LINE_LENGTH = 2_000
"""Most characters of a line; a longer line is cut with a note."""

Heat = Mapping[str, Mapping[int, float]]
"""Title of a margin → line → number."""


@dataclass(frozen=True, slots=True)
class Margin:
    """Numbers next to lines, shaded by magnitude."""

    title: str
    maximum: float
    lines: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class CodeRegion:
    """A region as a run of lines."""

    name: str
    verdict: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class FilePane:
    """One file."""

    name: str
    """`ptx`, or the name of a source file."""
    title: str
    """Its path, and the reason if the source is missing."""
    is_source: bool
    text: str
    numbers: tuple[int, ...] = ()
    """Line numbers, if not all lines from 1 are shown."""
    patterns: tuple[str, ...] = ()
    """Token classes and lengths of a line, as `k4 1 nv3`; equal lines share one pattern."""
    colours: tuple[int, ...] = ()
    """Index of each line's pattern; empty if the file is not highlighted."""
    links: tuple[int, ...] = ()
    """Index of each line's set of source lines."""
    begin: int = 1
    """The line to scroll to at first."""
    events: Mapping[int, str] = field(default_factory=dict)
    """Line → letters of its events, with their count."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Line → note on its rounds and waits."""
    margins: tuple[Margin, ...] = ()
    regions: tuple[CodeRegion, ...] = ()


@dataclass(frozen=True, slots=True)
class LinkedCode:
    """All files of a kernel, linked by source lines."""

    panes: tuple[FilePane, ...]
    locations: tuple[str, ...]
    """Source lines, `file.py:line`."""
    sets: tuple[tuple[int, ...], ...]
    """Sets of source lines of one instruction: innermost first, then its callers."""
    default_panes: tuple[str, ...]
    """Names of panes in the order in which they are opened."""
    missing: tuple[str, ...]
    """Notes on missing files or locations."""


def linked_code(
    kernels: Mapping[str, KernelFacts],
    sources: Sources,
    disassemble: Disassemble | None = None,
    heat: Mapping[str, Heat] | None = None,
    first_stage: str = "",
) -> LinkedCode:
    """The files of a kernel, or of several kernels of one source.

    Args:
        kernels: prefix of the stage names → kernel; an empty prefix for a single kernel.
        heat: counters of a launch: stage or source file → margins.
        first_stage: the stage to open first; the last one by default.
    """
    heat = heat or {}
    links = _SourceLinks()
    stages: list[FilePane] = []
    kernel_lines: dict[str, int] = {}
    for prefix, kernel in kernels.items():
        _record_kernel_line(kernel, sources, kernel_lines)
        for stage, facts in kernel.stages.items():
            problems: list[Problem] = []
            source = read_source(kernel.artifact, stage, problems, disassemble)
            module = None if source is None else parse_source(source, stage, problems)
            if source is not None and module is not None:
                sources.add_paths(_paths(module))
                figures = heat.get(stage.value, {})
                pane = _stage_pane(facts, source.text, module, kernel.artifact.name, links, figures)
                region = facts.region(kernel.principal or "")
                first_line = 1 if region is None else max(1, region.lines[0] - 2)
                stages.append(replace(pane, name=f"{prefix} {pane.name}".strip(), begin=first_line))
    files = sorted(links.files(), key=lambda file: file not in kernel_lines)
    source_panes = [
        replace(_source_pane(file, sources, links, heat.get(file, {})), begin=kernel_lines.get(file, 1))
        for file in files
    ]
    return LinkedCode(
        (*source_panes, *stages),
        tuple(links.locations),
        tuple(links.sets),
        tuple(_default_panes(kernels, source_panes, first_stage)),
        tuple(_describe_missing(source_panes, stages, is_single=len(kernels) == 1)),
    )


def _record_kernel_line(kernel: KernelFacts, sources: Sources, kernel_lines: dict[str, int]) -> None:
    location = None if kernel.program is None else kernel.program.location
    if location is not None:
        kernel_lines.setdefault(sources.add_kernel(location, kernel.artifact), max(1, location.line))


def _default_panes(
    kernels: Mapping[str, KernelFacts], source_panes: Sequence[FilePane], first_stage: str
) -> Iterator[str]:
    """Panes by importance; of several kernels, one stage of all of them before the next stage."""
    yield from (pane.name for pane in source_panes[:1])
    orders = [_rank_stages(kernel, first_stage) for kernel in kernels.values()]
    for index in range(max(map(len, orders), default=0)):
        for prefix, order in zip(kernels, orders, strict=True):
            if index < len(order):
                yield f"{prefix} {order[index]}".strip()


def _rank_stages(kernel: KernelFacts, first_stage: str) -> list[str]:
    names = [stage.value for stage in kernel.stages]
    last = names[-1:]
    requested = [stage.value for stage in kernel.stages if first_stage in (stage.value, step_of(stage))]
    ranked = [*requested, *last, *(name for name in ("ttgir", "ptx", "amdgcn", "llir", "ttir") if name in names)]
    return list(dict.fromkeys(ranked))


class _SourceLinks:
    """Numbers source lines and sets of source lines."""

    def __init__(self) -> None:
        self.locations: dict[str, int] = {}
        self.sets: dict[tuple[int, ...], int] = {(): 0}

    def number(self, chains: Iterable[tuple[str, ...]]) -> int:
        """The number of the set of all source lines of some call chains."""
        location_ids = dict.fromkeys(
            self.locations.setdefault(location, len(self.locations)) for chain in chains for location in chain
        )
        return self.sets.setdefault(tuple(location_ids), len(self.sets))

    def files(self) -> list[str]:
        """Names of all source files."""
        return list(dict.fromkeys(location.rpartition(":")[0] for location in self.locations))

    def lines(self, file: str) -> list[int]:
        """Lines of a source file that instructions come from."""
        split = (location.rpartition(":") for location in self.locations)
        return sorted(int(number) for name, _, number in split if name == file)


def _paths(module: Module) -> Iterator[str]:
    for function in module.functions:
        for location in dict.fromkeys(instruction.location for instruction in function.instructions):
            yield from (frame.file for frame in location or ())


def _stage_pane(facts: StageFacts, text: str, module: Module, kernel: str, links: _SourceLinks, heat: Heat) -> FilePane:
    lines = _displayed_lines(text)
    chains: dict[int, dict[tuple[str, ...], None]] = {}
    for function in module.functions:
        for instruction in function.instructions:
            if instruction.location:
                chain = SourceLine.from_location(instruction.location).chain
                chains.setdefault(instruction.line, {})[chain] = None
    patterns, colours = _highlight(lines, partial(scan, facts.stage))
    alive = count_live_by_line(module, kernel) if facts.stage in (Stage.SASS, Stage.AMDGCN) else {}
    levels = {line: level for work in facts.work.values() for line, level in work.in_flight.levels}
    regions = [region for region in facts.regions if region.lines[0] <= region.lines[1]]
    return FilePane(
        facts.stage.value,
        facts.file,
        False,
        "\n".join(lines),
        patterns=patterns,
        colours=colours,
        links=tuple(links.number(chains.get(number, ())) for number in range(1, len(lines) + 1)),
        events=events_by_line(module),
        notes=_notes(facts),
        margins=tuple(_margins({"in flight": levels, "registers": alive, **heat})),
        regions=tuple(CodeRegion(region.id, region.phrase, *region.lines) for region in regions),
    )


def _source_pane(file: str, sources: Sources, links: _SourceLinks, heat: Heat) -> FilePane:
    source = sources.text(file)
    linked_lines = links.lines(file)
    margins = tuple(_margins(heat))
    if source is None:
        numbers = tuple(linked_lines)
        ids = tuple(links.number([(f"{file}:{number}",)]) for number in numbers)
        text = "\n".join(f"{file}:{number}" for number in numbers)
        title = f"{file}: {'differs from the compiled source' if file in sources.changed else 'source not found'}"
        return FilePane(file, title, True, text, numbers, links=ids, margins=margins)
    lines = _displayed_lines(source.text)
    patterns, colours = _highlight(lines, PythonLexer(stripnl=False, ensurenl=False).get_tokens)
    known = set(linked_lines)
    ids = tuple(links.number([(f"{file}:{n}",)] if n in known else ()) for n in range(1, len(lines) + 1))
    return FilePane(file, file, True, "\n".join(lines), patterns=patterns, colours=colours, links=ids, margins=margins)


def _displayed_lines(text: str) -> list[str]:
    """The lines to show: without tabs and bidirectional controls, cut to a maximum length."""
    lines = text.removesuffix("\n").split("\n")
    lines = [escape_unprintable(line.expandtabs(4).rstrip("\r")) for line in lines]
    excess = [len(line) - MAX_LINE_LENGTH for line in lines]
    return [
        line if more <= 0 else f"{line[:MAX_LINE_LENGTH]} … {more} characters more"
        for line, more in zip(lines, excess, strict=True)
    ]


_CLASSES = (
    ("c", "c"), ("kt", "kt"), ("k", "k"), ("nb", "nb"), ("nf", "nf"), ("nc", "nc"), ("no", "no"),
    ("nl", "nl"), ("nv", "nv"), ("na", "na"), ("nd", "nd"), ("m", "m"), ("s", "s"), ("err", "err"),
)  # fmt: skip
"""Prefixes of Pygments' short token names → classes of the style sheet."""


def _highlight(
    lines: Sequence[str], tokenize: Callable[[str], Iterable[tuple[object, str]]]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The patterns of a file, and the pattern of each line. `tokenize`: splits a text into tokens."""
    if len(lines) > MAX_HIGHLIGHTED_LINES:
        return (), ()
    patterns: dict[str, int] = {}
    colours: list[int] = []
    runs: list[str] = []
    classes: dict[object, str] = {}
    for token, text in tokenize("\n".join(lines)):
        name = classes.get(token)
        if name is None:
            name = classes[token] = _class_of(token)
        if "\n" not in text:  # nearly all
            runs.append(f"{name}{len(text) if text.isascii() else _utf16_length(text)}")
            continue
        first, *further_lines = text.split("\n")
        if first:
            runs.append(f"{name}{_utf16_length(first)}")
        for line_part in further_lines:
            colours.append(patterns.setdefault(" ".join(runs), len(patterns)))
            runs = [f"{name}{_utf16_length(line_part)}"] if line_part else []
    colours.append(patterns.setdefault(" ".join(runs), len(patterns)))
    return tuple(patterns), tuple(colours)


def _class_of(token: object) -> str:
    short = STANDARD_TYPES.get(token, "")  # type: ignore[call-overload]
    while not short and getattr(token, "parent", None) is not None:
        token = token.parent  # type: ignore[attr-defined]
        short = STANDARD_TYPES.get(token, "")  # type: ignore[call-overload]
    return next((name for begin, name in _CLASSES if short.startswith(begin)), "")


def _utf16_length(text: str) -> int:
    """The length in UTF-16 units, as JavaScript counts."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


def _notes(facts: StageFacts) -> dict[int, str]:
    notes_by_line: dict[int, list[str]] = {}
    events = ("loads begin", "loads end", "computes begin", "computes end")
    for region in facts.regions:
        for number, item in enumerate(region.rounds, 1):
            lines = (item.first_load, item.last_load, item.first_compute, item.last_compute)
            for line, event in zip(lines, events, strict=True):
                if line is not None:
                    notes_by_line.setdefault(line, []).append(f"round {number}: {event}")
    for wait in facts.waits:
        if wait.depth is not None:
            notes_by_line.setdefault(wait.line, []).append(f"wait: leaves {wait.depth} in flight")
    return {line: "; ".join(dict.fromkeys(notes)) for line, notes in notes_by_line.items()}


def _margins(heat: Heat) -> Iterator[Margin]:
    for title, lines in heat.items():
        if lines:
            yield Margin(title, max(lines.values()), lines)


def _describe_missing(
    source_panes: Sequence[FilePane], stages: Sequence[FilePane], *, is_single: bool
) -> Iterator[str]:
    if source_panes and source_panes[0].numbers:  # the titles of other panes tell about them
        yield f"{source_panes[0].title}. Name its directory with --sources, or run the command there."
    if not source_panes and stages:
        yield "The files have no source locations, so lines cannot be linked."
    if len(stages) == 1 and is_single:
        yield f"The cache has only one stage, {stages[0].name}."
    if not stages:
        yield "This kernel has no stage that can be shown as text."
    long = [pane.name for pane in (*source_panes, *stages) if pane.text and not pane.colours and not pane.numbers]
    if long:
        yield f"{', '.join(long)}: too long to highlight."
