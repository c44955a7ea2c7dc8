"""One kernel in one row: what stands in the columns of a list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.findings import find_findings
from artifact_inspector.report.layout import Pieces, cut, phrase_text
from artifact_inspector.report.resources import registers_text
from artifact_inspector.report.waits import load_depths
from artifact_inspector.report.words import mma_count

MOST_NAME = 40
"""Columns of a name on a terminal; what is longer gives way in the middle."""


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel in words; an empty text stands for nothing to say."""

    name: str
    form: str
    """The label of its configuration; empty where the name alone tells it."""
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
    def of(cls, kernel: KernelFacts) -> Row:
        """The row of one kernel, without the part of its hash and the label that tell it from others."""
        return kernel.derive("row", lambda: cls._of(kernel))

    @classmethod
    def _of(cls, kernel: KernelFacts) -> Row:
        artifact, last = kernel.artifact, kernel.last
        changed = kernel.changed_at
        if kernel.occupancy is not None and kernel.occupancy.blocks == 0:
            state = "does not fit"
        elif artifact.state is Completeness.BINARY_ONLY:
            state = "binary only"
        elif last is None:
            state = "no readable stage"
        else:
            state = f"partial, ends at {last.stage.value}" if artifact.state is Completeness.PARTIAL else ""
        return cls(
            name=artifact.display_name,
            form="",
            hash="",
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
_COLUMNS: tuple[tuple[str, str, bool, Callable[[Row], str | Text]], ...] = (
    ("kernel", "kernel", False, lambda row: row.name),
    ("form", "form", False, lambda row: row.form),
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
_OPTIONAL = ("form", "hash", "regs", "blocks", "changed at", "findings AI…", "state")
_CONSTANT = ("target", "Triton")
_IN_FORM = ("warps", "stages")


class Shown(NamedTuple):
    """A column as it is shown."""

    heading: str
    right: bool
    """Whether it stands at the right, as numbers do."""
    cells: Sequence[str | Text]


def columns_of(
    rows: Sequence[Row], further: Sequence[tuple[str, list[str]]], *, compact: bool
) -> tuple[list[Shown], str]:
    """The columns, and what the title says in place of one that would repeat itself.

    Args:
        further: columns of blocks on other targets, by heading.
    """
    shown = []
    constants = []
    for heading, short, right, cell in _COLUMNS:
        cells = [cell(row) for row in rows]
        texts = set(map(str, cells))
        if heading in _OPTIONAL and texts == {""}:
            continue
        if heading in _IN_FORM and all(row.form for row in rows):
            continue
        if compact and heading in _CONSTANT and len(texts) == 1:
            constants.append(texts.pop() if heading == "target" else f"{heading} {texts.pop()}")
            continue
        shown.append(Shown(short if compact else heading, right, cells))
    shown += [Shown(heading, True, cells) for heading, cells in further]
    return shown, " · ".join(constants)


def table_of(columns: Sequence[Shown], *, compact: bool) -> Table:
    """The columns as a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 1 if compact else 2, 0, 0), header_style="dim")
    for heading, right, _ in columns:
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def lines_of(columns: Sequence[Shown]) -> list[str] | None:
    """The same as lines of plain text, in a thousandth of the time; None where a cell is no plain word."""
    laid = []
    for heading, right, cells in columns:
        texts = [heading, *map(str, cells)]
        if not all(map(str.isprintable, texts)):
            return None
        texts = [text.rstrip() for text in texts] if right else texts
        width = max(map(cell_len, texts))
        blanks = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, blanks, strict=True)
        laid.append([blank + text if right else text + blank for text, blank in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*laid, strict=True)]


def card(row: Row) -> RenderableType:
    """A kernel on lines of its own, for a narrow terminal."""
    first = Text.assemble(row.name, f" {row.form}".rstrip(), " ", (row.hash, "dim"), overflow="fold")
    parts = [row.target, f"Triton {row.triton}"]
    parts += [] if row.form else [f"warps {row.warps}", f"stages {row.stages}"]
    parts += [f"shared {row.shared}"]
    facts = [f"MMA {row.mma}", f"wait {row.wait}"]
    facts += [f"registers {row.registers}"] if row.registers else []
    facts += [f"blocks {row.occupancy}"] if row.occupancy else []
    facts += [f"changed at {row.changed}"] if row.changed else []
    facts += [f"AI {row.findings}"] if row.findings else []
    facts += [row.state] if row.state else []
    lines = (Pieces(parts, "dim"), Pieces([row.verdict, *facts]))
    return Group("", first, *(Padding(line, (0, 0, 0, 2)) for line in lines))


def rows_of(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> list[Row]:
    """A row for each kernel.

    Args:
        labels: of their forms; shown where they tell kernels of one name apart.
    """
    several = _tell_apart(kernels, labels)
    return [
        replace(Row.of(kernel), hash=digest, form=label if several else "")
        for kernel, digest, label in zip(kernels, digests(kernels), labels, strict=True)
    ]


def shorten(name: str, most: int = MOST_NAME) -> str:
    """A name that leaves room for what is said of it.

    Args:
        most: characters, or two more.

    Example:
        >>> shorten("triton_poi_fused_add_native_layer_norm_backward_mul_relu_23")
        'triton_poi_fused_add…_backward_mul_relu_23'
    """
    half = most // 2
    return name if len(name) <= most + 2 else f"{name[:half]}…{name[-half - 1 :]}"


def cut_words(row: Row, name: int, form: int, verdict: int) -> Row:
    """A row whose longest words are cut to so many characters; the hash beside them still tells it apart."""
    phrase = row.verdict.copy()
    phrase.truncate(verdict, overflow="ellipsis")
    return replace(row, name=shorten(row.name, name - 2), form=cut(row.form, form), verdict=phrase)


def _tell_apart(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> bool:
    """Whether labels tell some kernels of one name, target and version apart."""
    told: dict[tuple[object, ...], set[str]] = {}
    for kernel, label in zip(kernels, labels, strict=True):
        artifact = kernel.artifact
        key = artifact.display_name, artifact.target, artifact.triton_version
        told.setdefault(key, set()).add(label)
    return any(len(found) > 1 for found in told.values())


def _occupancy(kernel: KernelFacts) -> str:
    return "" if kernel.occupancy is None else blocks_text(kernel.occupancy)


def blocks_text(held: Occupancy) -> str:
    """Blocks that fit, empty where that is not known."""
    return "" if held.blocks is None else str(held.blocks)


def _verdict(kernel: KernelFacts) -> Text:
    region, last = kernel.principal_region, kernel.last
    if region is None or last is None:
        return Text("–", "dim")
    phrase = phrase_text(region)
    if last.region(region.id) is None:
        where = next(
            s.value for s, facts in reversed(kernel.stages.items()) if facts.region(region.id) is not None
        )
        phrase.append(f" in {where}, no such loop in {last.stage.value}", "dim")
    return phrase


def digests(kernels: Sequence[KernelFacts]) -> list[str]:
    """As much of each hash as tells kernels of one name apart; nothing where the name does.

    Copies of one entry have their hash in common, and are told apart by directory.
    """
    by_name: dict[str, Counter[str]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.artifact.display_name, Counter())[kernel.artifact.hash] += 1
    lengths = {name: _length(same) for name, same in by_name.items()}
    digests = []
    for kernel in kernels:
        name, own = kernel.artifact.display_name, kernel.artifact.hash
        same = by_name[name]
        told = own[: lengths[name]] if same.total() > 1 else ""
        digests.append(kernel.artifact.directory if same[own] > 1 else told)
    return digests


def _length(hashes: Collection[str]) -> int:
    """Characters, six at least, that tell some hashes apart."""
    length = 6
    while length < 64 and len({one[:length] for one in hashes}) < len(hashes):
        length += 1
    return length


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
