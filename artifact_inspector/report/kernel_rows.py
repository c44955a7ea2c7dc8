"""The rows and columns of kernel lists, fitted to the width of a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from artifact_inspector.analysis.resources.occupancy import Occupancy
from artifact_inspector.facts.kernel import KernelFacts
from artifact_inspector.files.artifact import Completeness
from artifact_inspector.findings import find_findings
from artifact_inspector.report.layout import phrase_text
from artifact_inspector.report.phrases import mma_count
from artifact_inspector.report.region_work import load_depths
from artifact_inspector.report.resources import registers_text

MAX_NAME_WIDTH = 40
"""Columns of a name on a terminal; a longer name is cut in the middle."""


@dataclass(frozen=True, slots=True)
class KernelRow:
    """The cells of one kernel; an empty text means nothing to report."""

    name: str
    variant: str
    """The label of its variant; empty if the name identifies it."""
    hash: str
    target: str
    triton: str
    warps: str
    stages: str
    shared_bytes: str
    registers: str
    occupancy: str
    mma: str
    wait: str
    verdict: Text
    changed: str
    findings: str
    state: str

    @classmethod
    def of(cls, kernel: KernelFacts) -> KernelRow:
        """The row of one kernel, without hash and variant, which depend on the other kernels."""
        return kernel.derive("row", lambda: cls._of(kernel))

    @staticmethod
    def _of(kernel: KernelFacts) -> KernelRow:
        artifact, last = kernel.artifact, kernel.last
        changed = kernel.changed_at
        if kernel.occupancy is not None and kernel.occupancy.blocks == 0:
            state = "does not fit"
        elif artifact.state is Completeness.BINARY_ONLY:
            state = "binary only"
        elif last is None:
            state = "no readable stage"
        else:
            state = f"ends at {last.stage.value}" if artifact.state is Completeness.PARTIAL else ""
        return KernelRow(
            name=artifact.display_name,
            variant="",
            hash="",
            target=_or_dash(None if artifact.target is None else artifact.target.arch),
            triton=_or_dash(artifact.triton_version),
            warps=_or_dash(artifact.num_warps),
            stages=_or_dash(artifact.num_stages),
            shared_bytes=_or_dash(artifact.shared_bytes),
            registers=registers_text(kernel),
            occupancy=_occupancy(kernel),
            mma=mma_count(kernel),
            wait=load_depths(kernel),
            verdict=_verdict(kernel),
            changed="" if changed is None else changed.value,
            findings=" ".join(dict.fromkeys(x.code.removeprefix("AI") for x in find_findings(kernel))),
            state=state,
        )


# heading, heading of a narrow table, right-aligned, cell
_COLUMNS: tuple[tuple[str, str, bool, Callable[[KernelRow], str | Text]], ...] = (
    ("kernel", "kernel", False, lambda row: row.name),
    ("variant", "variant", False, lambda row: row.variant),
    ("hash", "hash", False, lambda row: Text(row.hash, "dim")),
    ("target", "target", False, lambda row: row.target),
    ("Triton", "Triton", False, lambda row: row.triton),
    ("warps", "warps", True, lambda row: row.warps),
    ("stages", "stages", True, lambda row: row.stages),
    ("smem", "smem", True, lambda row: row.shared_bytes),
    ("regs", "regs", True, lambda row: row.registers),
    ("blocks/SM", "blk", True, lambda row: row.occupancy),
    ("MMA", "MMA", True, lambda row: row.mma),
    ("wait", "wait", True, lambda row: row.wait),
    ("verdict", "verdict", False, lambda row: row.verdict),
    ("changed at", "changed", False, lambda row: Text(row.changed, "yellow")),
    ("findings", "findings", False, lambda row: Text(row.findings, "dim")),
    ("state", "state", False, lambda row: Text(row.state, "magenta")),
)
_OPTIONAL = ("variant", "hash", "regs", "blocks/SM", "changed at", "findings", "state")
_CONSTANT = ("target", "Triton")
_IN_VARIANT = ("warps", "stages")
_HIDDEN_FIRST = (
    "smem", "MMA", "wait", "blk", "stages", "warps", "changed", "variant", "Triton", "regs", "target",
    "findings",
)  # fmt: skip
"""Columns of a narrow table that are hidden if it does not fit, the least important first."""
NARROWER = ((24, 22, 20), (18, 18, 16))
"""Characters of names, variants and verdicts in tables that would not fit otherwise."""
NARROWEST = (10, 14, 14)
"""The same where even hidden columns do not make the table fit."""


class RenderedColumn(NamedTuple):
    """One column of a table."""

    heading: str
    right: bool
    """Whether it is right-aligned, as numbers are."""
    cells: Sequence[str | Text]

    @property
    def width(self) -> int:
        """Columns that it takes, without padding."""
        return max(cell_len(self.heading), *(cell_len(str(cell)) for cell in self.cells))


class FittedTable(NamedTuple):
    """A table that fits the width of a terminal."""

    table: Table
    headings: frozenset[str]
    constants: str
    """Target and Triton version, if they are the same in all rows."""
    hidden: tuple[str, ...]
    """Headings of the columns that did not fit."""


def fit_table(rows: Sequence[KernelRow], further: Sequence[tuple[str, list[str]]], width: int) -> FittedTable:
    """The most complete table of `width` columns: first shorter headings and names, then fewer columns.

    Args:
        further: additional columns by heading.
    """
    full = [replace(row, name=shorten(row.name)) for row in rows]
    wide, _ = make_columns(full, further, compact=False)
    if _width(wide, 2) <= width:
        return FittedTable(make_table(wide, compact=False), _headings(wide), "", ())
    layouts = [make_columns(full, further, compact=True)]
    for limits in (*NARROWER, NARROWEST):
        layouts.append(make_columns([cut_row(row, *limits) for row in full], further, compact=True))
    for count in range(len(_HIDDEN_FIRST) + 1):
        # the shortest names only if no column is left to hide
        for columns, constants in layouts if count == len(_HIDDEN_FIRST) else layouts[:-1]:
            hidden = [column for column in columns if column.heading in _HIDDEN_FIRST[:count]]
            room = width - _width([column for column in columns if column not in hidden], 1)
            if room >= 0 or count == len(_HIDDEN_FIRST):
                for column in sorted(hidden, key=lambda entry: -_HIDDEN_FIRST.index(entry.heading)):
                    if column.width < room:  # a hidden column that fits after all
                        hidden.remove(column)
                        room -= column.width + 1
                visible = [column for column in columns if column not in hidden]
                names = tuple(column.heading for column in hidden)
                return FittedTable(make_table(visible, compact=True), _headings(visible), constants, names)
    raise AssertionError


def _width(columns: Sequence[RenderedColumn], gap: int) -> int:
    return sum(column.width for column in columns) + gap * (len(columns) - 1)


def _headings(columns: Sequence[RenderedColumn]) -> frozenset[str]:
    return frozenset(column.heading for column in columns)


def make_columns(
    rows: Sequence[KernelRow], further: Sequence[tuple[str, list[str]]], *, compact: bool
) -> tuple[list[RenderedColumn], str]:
    """The columns, and the target and version that the title names instead of a constant column.

    Args:
        further: additional columns by heading: blocks on other targets, times.
    """
    columns = []
    constants = []
    for heading, short, right, cell in _COLUMNS:
        cells = [cell(row) for row in rows]
        texts = set(map(str, cells))
        if heading in _OPTIONAL and texts == {""}:
            continue
        if heading in _IN_VARIANT and all(row.variant for row in rows):
            continue
        if compact and heading in _CONSTANT and len(texts) == 1:
            constants.append(texts.pop() if heading == "target" else f"{heading} {texts.pop()}")
            continue
        columns.append(RenderedColumn(short if compact else heading, right, cells))
    columns += [RenderedColumn(heading, True, cells) for heading, cells in further]
    return columns, " · ".join(constants)


def make_table(columns: Sequence[RenderedColumn], *, compact: bool) -> Table:
    """The columns as a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 1 if compact else 2, 0, 0), header_style="dim")
    for heading, right, _ in columns:
        table.add_column(heading, justify="right" if right else "left", no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def make_lines(columns: Sequence[RenderedColumn]) -> list[str] | None:
    """The same as lines of plain text, 1000 times faster; None if a cell has control characters."""
    aligned_columns = []
    for heading, right, cells in columns:
        texts = [heading, *map(str, cells)]
        if not all(map(str.isprintable, texts)):
            return None
        texts = [text.rstrip() for text in texts] if right else texts
        width = max(map(cell_len, texts))
        blanks = [" " * (width - cell_len(text)) for text in texts]
        pairs = zip(texts, blanks, strict=True)
        aligned_columns.append([blank + text if right else text + blank for text, blank in pairs])
    return ["  ".join(cells).rstrip() for cells in zip(*aligned_columns, strict=True)]


def make_rows(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> list[KernelRow]:
    """A row for each kernel.

    Args:
        labels: of their variants; shown if they distinguish kernels of one name.
    """
    has_variants = _labels_distinguish(kernels, labels)
    return [
        replace(KernelRow.of(kernel), hash=digest, variant=label if has_variants else "")
        for kernel, digest, label in zip(kernels, short_hashes(kernels), labels, strict=True)
    ]


def shorten(name: str, max_length: int = MAX_NAME_WIDTH) -> str:
    """A name cut in the middle to at most `max_length` + 2 characters.

    Args:
        max_length: characters; up to two more are kept.

    Example:
        >>> shorten("triton_poi_fused_add_native_layer_norm_backward_mul_relu_23")
        'triton_poi_fused_add…_backward_mul_relu_23'
    """
    half = max_length // 2
    return name if len(name) <= max_length + 2 else f"{name[:half]}…{name[-half - 1 :]}"


def cut_row(row: KernelRow, name: int, variant: int, verdict: int) -> KernelRow:
    """A row with name, variant and verdict cut to so many characters; the hash still identifies it."""
    phrase = row.verdict.copy()
    phrase.truncate(verdict, overflow="ellipsis")
    return replace(row, name=shorten(row.name, name - 2), variant=shorten(row.variant, variant - 2), verdict=phrase)


def _labels_distinguish(kernels: Sequence[KernelFacts], labels: Sequence[str]) -> bool:
    """Whether labels distinguish some kernels of one name, target and version."""
    labels_by_kernel: dict[tuple[object, ...], set[str]] = {}
    for kernel, label in zip(kernels, labels, strict=True):
        artifact = kernel.artifact
        key = artifact.display_name, artifact.target, artifact.triton_version
        labels_by_kernel.setdefault(key, set()).add(label)
    return any(len(kernel_labels) > 1 for kernel_labels in labels_by_kernel.values())


def _occupancy(kernel: KernelFacts) -> str:
    return "" if kernel.occupancy is None else blocks_text(kernel.occupancy)


def blocks_text(occupancy: Occupancy) -> str:
    """Blocks that fit on an SM or CU; empty if unknown."""
    return "" if occupancy.blocks is None else str(occupancy.blocks)


def _verdict(kernel: KernelFacts) -> Text:
    region, last = kernel.principal_region, kernel.last
    if region is None or last is None:
        return Text("–", "dim")
    phrase = phrase_text(region)
    if last.region(region.id) is None:
        stage_name = next(
            s.value for s, facts in reversed(kernel.stages.items()) if facts.region(region.id) is not None
        )
        phrase.append(f" in {stage_name}, no such loop in {last.stage.value}", "dim")
    return phrase


def short_hashes(kernels: Sequence[KernelFacts]) -> list[str]:
    """The shortest prefixes of the hashes that distinguish kernels of one name; empty for a unique name.

    Copies of one entry have the same hash; they are distinguished by directory.
    """
    by_name: dict[str, Counter[str]] = {}
    for kernel in kernels:
        by_name.setdefault(kernel.artifact.display_name, Counter())[kernel.artifact.hash] += 1
    lengths = {name: _distinguishing_length(counts) for name, counts in by_name.items()}
    digests = []
    for kernel in kernels:
        name, full_hash = kernel.artifact.display_name, kernel.artifact.hash
        counts = by_name[name]
        hash_prefix = full_hash[: lengths[name]] if counts.total() > 1 else ""
        digests.append(kernel.artifact.directory if counts[full_hash] > 1 else hash_prefix)
    return digests


def _distinguishing_length(hashes: Collection[str]) -> int:
    """The number of characters, at least six, that distinguish some hashes."""
    length = 6
    while length < 64 and len({digest[:length] for digest in hashes}) < len(hashes):
        length += 1
    return length


def _or_dash(value: object) -> str:
    return "–" if value is None else str(value)
